/* The configuration in force. It is the last one in the log, committed or not (Raft 6). */
#include "raft/membership.h"

#include "raft/log.h"
#include "raft/peer.h"
#include "raft/state.h"
#include "raft/update.h"

int membership_enter(struct raft *raft, struct raft_configuration *configuration, raft_index index)
{
    if (peers_rebuild(raft, configuration) != BATON_OK) {
        return BATON_ENOMEM;
    }
    raft_configuration_fini(&raft->configuration);
    raft->configuration = *configuration;
    raft->configuration_index = index;
    *configuration = (struct raft_configuration){0};
    (void)update_event(raft, RAFT_EV_MEMBERSHIP);
    return BATON_OK;
}

int membership_at(const struct raft *raft, raft_index index, struct raft_configuration *ret,
                  raft_index *ret_index)
{
    const struct raft_entry *entry;

    while ((entry = log_at(&raft->log, index)) && entry->kind != RAFT_ENTRY_CONFIGURATION) {
        index--;
    }
    *ret_index = entry ? index : raft->log.snapshot_index;
    return entry ? raft_configuration_decode(ret, entry->data, entry->bytes)
                 : raft_configuration_copy(ret, &raft->snapshot.configuration);
}

bool membership_before_holds(const struct raft *raft, raft_id id,
                             bool (*holds)(const struct raft_configuration *, raft_id))
{
    struct raft_configuration before = {0};
    raft_index ignored;
    bool held;

    if (raft->configuration_index <= raft->commit ||
        membership_at(raft, raft->configuration_index - 1, &before, &ignored) != BATON_OK) {
        return false;
    }
    held = holds(&before, id);
    raft_configuration_fini(&before);
    return held;
}

int membership_revert(struct raft *raft, raft_index from)
{
    struct raft_configuration found = {0};
    raft_index index;
    int r = membership_at(raft, from - 1, &found, &index);

    if (r == BATON_OK) {
        r = membership_enter(raft, &found, index);
    }
    raft_configuration_fini(&found);
    return r;
}
