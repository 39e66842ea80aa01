/* The start of a node from its stored state, and its end. */
#include "raft/candidacy.h"
#include "raft/configuration.h"
#include "raft/incoming.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/quorum.h"
#include "raft/sane.h"
#include "raft/state.h"
#include "raft/update.h"

#include <stdlib.h>
#include <string.h>

static int check_hard(const struct raft_hard_state *hard, raft_term last,
                      struct baton_error *reterr)
{
    if (hard->term < last) {
        return error_set(reterr, BATON_ECORRUPT,
                         "stored term %llu is below the last entry's term %llu",
                         (unsigned long long)hard->term, (unsigned long long)last);
    }
    if (hard->term >= RAFT_SANE_MAX || hard->pledged_term >= RAFT_SANE_MAX) {
        return error_set(reterr, BATON_ECORRUPT, "stored term %llu, pledged %llu: at most 2^56",
                         (unsigned long long)hard->term, (unsigned long long)hard->pledged_term);
    }
    if (hard->promised_max.ns < 0 || hard->promised_max.ns > SPAN_S(3600).ns) {
        return error_set(reterr, BATON_ECORRUPT, "stored longest promise %lld ns: 0 to one hour",
                         (long long)hard->promised_max.ns);
    }
    return BATON_OK;
}

static int check_entry(const struct raft_entry *entry, raft_index index, raft_term before,
                       struct baton_error *reterr)
{
    if (entry->term < before || entry->term == 0) {
        return error_set(reterr, BATON_ECORRUPT,
                         "stored log: entry %llu is of term %llu, the one before it of %llu",
                         (unsigned long long)index, (unsigned long long)entry->term,
                         (unsigned long long)before);
    }
    if (!sane_entry(entry)) {
        return error_set(reterr, BATON_ECORRUPT,
                         "stored log: entry %llu is of no known kind, or holds no configuration",
                         (unsigned long long)index);
    }
    return BATON_OK;
}

static int check_start(const struct raft_start *start, struct baton_error *reterr)
{
    const struct raft_snapshot *snapshot = &start->snapshot;
    raft_term before = snapshot->term;
    int r = BATON_OK;

    if (start->id == RAFT_NOBODY || start->incarnation == 0) {
        return error_set(reterr, BATON_EINVAL, "a node's id and incarnation start at 1, not 0");
    }
    if (snapshot->index >= RAFT_SANE_MAX || (snapshot->index == 0) != (snapshot->term == 0)) {
        return error_set(reterr, BATON_ECORRUPT, "stored snapshot of entry %llu and term %llu",
                         (unsigned long long)snapshot->index, (unsigned long long)snapshot->term);
    }
    if (snapshot->configuration.count > 0 && !configuration_is_sane(&snapshot->configuration)) {
        return error_set(reterr, BATON_ECORRUPT,
                         "stored snapshot: in its configuration nobody could ever lead");
    }
    for (size_t i = 0; i < start->entry_count && r == BATON_OK; i++) {
        r = check_entry(&start->entries[i], snapshot->index + i + 1, before, reterr);
        before = start->entries[i].term;
    }
    if (r == BATON_OK) {
        r = check_hard(&start->hard, before, reterr);
    }
    return r == BATON_OK ? raft_settings_check(&start->settings, reterr) : r;
}

static int copy_snapshot(struct raft_snapshot *ret, const struct raft_snapshot *from)
{
    void *data;

    if (data_copy(&data, from->data, from->bytes) != BATON_OK) {
        return BATON_ENOMEM;
    }
    *ret = *from;
    ret->data = data;
    ret->configuration = (struct raft_configuration){0};
    return raft_configuration_copy(&ret->configuration, &from->configuration);
}

static int load(struct raft *raft, const struct raft_start *start)
{
    struct raft_configuration configuration = {0};
    raft_index index;
    int r = copy_snapshot(&raft->snapshot, &start->snapshot);

    if (r != BATON_OK) {
        return r;
    }
    log_reset(&raft->log, raft->snapshot.index, raft->snapshot.term);
    r = log_append(&raft->log, start->entries, start->entry_count, 0);
    if (r != BATON_OK) {
        return r;
    }
    raft->stored_index = log_last_index(&raft->log);
    raft->commit = raft->handed = raft->applied = raft->snapshot.index;
    r = membership_at(raft, log_last_index(&raft->log), &configuration, &index);
    if (r == BATON_OK) {
        r = membership_enter(raft, &configuration, index);
    }
    raft_configuration_fini(&configuration);
    return r;
}

/* A node that never made a promise, because it has always been a quorum alone, need not be silent.
 * One that is a quorum alone only now must be: an earlier incarnation may have made a promise. */
static void be_silent(struct raft *raft)
{
    raft->silent_until = INSTANT_PAST;
    if (raft->hard.promised_max.ns > 0) {
        span longest = raft->hard.promised_max;
        if (longest.ns < raft->settings.heartbeat_timeout.ns || RAFT_MUTANT(SILENCE_OF_TODAY)) {
            longest = raft->settings.heartbeat_timeout;
        }
        raft->silent_until = instant_add(raft->now, longest);
    }
}

static void first_wait(struct raft *raft)
{
    instant from = instant_max(raft->now, raft->silent_until);

    if (quorum_is_self(raft)) {
        raft->election_at = from;
    } else {
        raft->election_at =
            candidacy_after(raft, instant_add(from, raft->settings.election_timeout_min));
    }
}

int raft_new(struct raft **ret, const struct raft_start *start, instant now,
             struct baton_error *reterr)
{
    struct raft *raft;
    int r = check_start(start, reterr);

    if (r != BATON_OK) {
        return r;
    }
    raft = calloc(1, sizeof(*raft));
    if (!raft) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a node");
    }
    raft->id = start->id;
    raft->incarnation = start->incarnation;
    raft->settings = start->settings;
    raft->random_state = start->seed;
    raft->hard = start->hard;
    raft->eligible = start->eligible;
    raft->is_outlived = start->is_outlived;
    raft->now = now;
    raft->leader_until = INSTANT_PAST;
    raft->store_at = INSTANT_NEVER;
    raft->jeopardy_at = INSTANT_NEVER;
    raft->completed_term = start->hard.term;
    r = load(raft, start);
    if (r != BATON_OK) {
        raft_free(raft);
        return error_set(reterr, r, "stored log or configuration: %s", baton_strerror(r));
    }
    be_silent(raft);
    first_wait(raft);
    *ret = raft;
    return BATON_OK;
}

void raft_free(struct raft *raft)
{
    if (!raft) {
        return;
    }
    incoming_drop(raft);
    log_fini(&raft->log);
    free((void *)raft->snapshot.data);
    raft_configuration_fini(&raft->snapshot.configuration);
    raft_configuration_fini(&raft->configuration);
    free(raft->peers);
    free(raft->departed);
    free(raft->scratch);
    update_fini(raft);
    free(raft);
}
