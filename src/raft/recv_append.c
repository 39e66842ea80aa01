/* A follower's side of the log: take what the leader sends where it fits, say where it does not. */
#include "raft/internal.h"

static void answer(struct raft *raft, raft_id to, bool rejected, raft_index index, raft_index hint)
{
    struct raft_message *reply = update_message(
        raft, RAFT_MSG_APPEND_REPLY, to, RAFT_MUTANT(ACK_BEFORE_STORE) ? AFTER_NOTHING : AFTER_ALL);
    if (reply) {
        reply->append_reply.rejected = rejected;
        reply->append_reply.index = index;
        reply->append_reply.hint = hint;
        reply->append_reply.hint_term = rejected ? log_term_at(&raft->log, hint) : 0;
    }
}

/* The logs differ at prev_index: the last place at which they could agree is where our term is not
 * above the leader's. Skips a whole term of ours in one answer. */
static raft_index place_to_try(const struct raft *raft, const struct raft_message *message)
{
    raft_index hint = message->append.prev_index > 0 ? message->append.prev_index - 1 : 0;
    if (hint > log_last_index(&raft->log)) {
        hint = log_last_index(&raft->log);
    }
    while (hint > raft->commit && log_term_at(&raft->log, hint) > message->append.prev_term) {
        hint--;
    }
    return hint;
}

/* How many of the entries we have already, in the same term. */
static size_t already_there(const struct raft *raft, const struct raft_message *message)
{
    raft_index index = message->append.prev_index + 1;
    size_t same = 0;

    while (same < message->append.entry_count &&
           (index + same <= raft->log.snapshot_index ||
            log_term_at(&raft->log, index + same) == message->append.entries[same].term) &&
           index + same <= log_last_index(&raft->log)) {
        same++;
    }
    return same;
}

static int truncate(struct raft *raft, raft_index from)
{
    RAFT_INVARIANT(from > raft->commit);
    if (raft->configuration_index >= from && !RAFT_MUTANT(MEMBERS_KEPT_AT_TRUNCATION) &&
        configuration_revert(raft, from) != BATON_OK) {
        return BATON_ENOMEM;
    }
    log_truncate(&raft->log, from);
    raft->out.truncates = true;
    raft->out.truncate_from = from;
    if (raft->stored_index >= from && !RAFT_MUTANT(STORED_KEPT_AT_TRUNCATION)) {
        raft->stored_index = from - 1;
    }
    return BATON_OK;
}

/* A configuration is in force from the moment that it is in the log. */
static int enter_configurations(struct raft *raft, raft_index from)
{
    for (raft_index i = log_last_index(&raft->log); i >= from; i--) {
        const struct raft_entry *entry = log_at(&raft->log, i);
        struct raft_configuration configuration = {0};
        int r;
        if (entry->kind != RAFT_ENTRY_CONFIGURATION) {
            continue;
        }
        r = raft_configuration_decode(&configuration, entry->data, entry->bytes);
        if (r == BATON_OK) {
            r = configuration_enter(raft, &configuration, i);
        }
        raft_configuration_fini(&configuration);
        return r;
    }
    return BATON_OK;
}

static int take_entries(struct raft *raft, const struct raft_message *message)
{
    size_t same = already_there(raft, message);
    raft_index first = message->append.prev_index + 1 + same;
    size_t count = message->append.entry_count - same;
    int r = BATON_OK;

    if (count == 0) {
        return BATON_OK;
    }
    if (first <= log_last_index(&raft->log)) {
        r = truncate(raft, first);
    }
    if (r == BATON_OK) {
        r = log_append(&raft->log, message->append.entries + same, count, update_write_id(raft));
    }
    if (r == BATON_OK && (r = enter_configurations(raft, first)) != BATON_OK) {
        log_truncate(&raft->log, first);
    }
    if (r == BATON_OK) {
        raft->out.append_from = first;
    }
    return r;
}

static bool fits(const struct raft *raft, const struct raft_message *message)
{
    raft_index prev = message->append.prev_index;

    if (prev > log_last_index(&raft->log)) {
        return false;
    }
    return prev < raft->log.snapshot_index || RAFT_MUTANT(PREV_NOT_CHECKED) ||
           log_term_at(&raft->log, prev) == message->append.prev_term;
}

void recv_append(struct raft *raft, const struct raft_message *message)
{
    raft_index through = message->append.prev_index + message->append.entry_count;

    if ((message->term >= raft->hard.term && sane_contradicts(raft, message)) ||
        !recv_from_leader(raft, message)) {
        return;
    }
    if (!fits(raft, message)) {
        answer(raft, message->from, true, message->append.prev_index, place_to_try(raft, message));
        return;
    }
    if (take_entries(raft, message) != BATON_OK) {
        raft->out.out_of_memory = true; /* as if the message had been lost */
        return;
    }
    replicate_commit_to(raft, message->append.commit < through || RAFT_MUTANT(COMMIT_UNCHECKED)
                                  ? message->append.commit
                                  : through);
    answer(raft, message->from, false, through, 0);
}
