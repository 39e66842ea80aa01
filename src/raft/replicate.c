/* The leader's side of the log: what each follower has, and what to send it next. */
#include "raft/replicate.h"

#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/state.h"
#include "raft/update.h"

/* Empty appends to one follower in a heartbeat interval, to announce commits. */
enum { ANNOUNCEMENTS_AN_INTERVAL = 16 };

int replicate_append(struct raft *raft, const struct raft_entry *entry)
{
    raft_index index = log_last_index(&raft->log) + 1;

    if (log_append(&raft->log, entry, 1, update_write_id(raft)) != BATON_OK) {
        return BATON_ENOMEM;
    }
    if (raft->out.append_from == 0) {
        raft->out.append_from = index;
    }
    raft->uncommitted_bytes += entry->bytes;
    return BATON_OK;
}

/* Whether all wait for the entry that the append has, or for the commit that it announces. Entries
 * in a stream are not meant: behind a lost one the next ones show the loss. */
static bool is_awaited(const struct raft *raft, const struct peer *peer, size_t count)
{
    if (count > 0) {
        return count == 1 && peer->inflight == 0 && peer->awaited_by_all == peer->next;
    }
    return peer->announced < peer->awaited_by_all && peer->awaited_by_all <= raft->commit;
}

static void send_append(struct raft *raft, struct peer *peer, size_t count)
{
    struct raft_message *message = update_message(raft, RAFT_MSG_APPEND, peer->id, AFTER_NOTHING);

    if (!message) {
        return;
    }
    message->append.prev_index = peer->next - 1;
    message->append.prev_term = log_term_at(&raft->log, peer->next - 1);
    message->append.commit = raft->commit;
    message->append.is_awaited = is_awaited(raft, peer, count);
    message->append.entry_count = count; /* update.c points to the entries at the end of the step */
    peer->sent_at = raft->now;
    peer->announced = raft->commit < peer->next - 1 + count ? raft->commit : peer->next - 1 + count;
    if (peer->state == REPLICATION_PROBE) {
        peer->inflight = 1;
    } else if (count > 0) {
        peer->inflight++;
        peer->next += count;
    }
}

/* A commit is news for a follower that has the entry already and has nothing in flight. A stream of
 * entries carries the commit index along; otherwise an empty append announces it: at once to a
 * follower that waits for this commit, else a few times in a heartbeat interval at most. The next
 * heartbeat makes up for a lost one. */
static void announce_commit(struct raft *raft, struct peer *peer)
{
    instant due = instant_add(peer->announced_at, SPAN_NS(raft->settings.heartbeat_interval.ns /
                                                          ANNOUNCEMENTS_AN_INTERVAL));
    bool is_urgent;

    if (peer->announced >= raft->commit) {
        return;
    }
    is_urgent = peer->announced < peer->awaited && peer->awaited <= raft->commit;
    if (!is_urgent && instant_before(raft->now, due)) {
        raft->announce_at = instant_min(raft->announce_at, due);
        return;
    }
    peer->announced_at = raft->now;
    send_append(raft, peer, 0);
}

static void send_snapshot(struct raft *raft, struct peer *peer)
{
    const struct raft_snapshot *snapshot = &raft->snapshot;
    struct raft_message *message = update_message(raft, RAFT_MSG_SNAPSHOT, peer->id, AFTER_NOTHING);
    size_t chunk = raft->settings.message_bytes_max;

    if (!message) {
        return;
    }
    if (chunk < RAFT_SNAPSHOT_CHUNK_MIN) {
        chunk = RAFT_SNAPSHOT_CHUNK_MIN;
    }
    if (peer->snapshot_index != snapshot->index || peer->snapshot_offset > snapshot->bytes) {
        peer->snapshot_index = snapshot->index;
        peer->snapshot_offset = 0;
    }
    if (chunk > snapshot->bytes - peer->snapshot_offset) {
        chunk = snapshot->bytes - (size_t)peer->snapshot_offset;
    }
    message->snapshot.index = snapshot->index;
    message->snapshot.snapshot_term = snapshot->term;
    message->snapshot.configuration = peer->snapshot_offset == 0 ? &snapshot->configuration : NULL;
    message->snapshot.offset = peer->snapshot_offset;
    message->snapshot.total_bytes = snapshot->bytes;
    message->snapshot.data =
        chunk > 0 ? (const char *)snapshot->data + peer->snapshot_offset : NULL;
    message->snapshot.bytes = chunk;
    peer->sent_at = raft->now;
    peer->inflight = 1;
}

/* A reply that has not come for this long was lost, or the message was. */
static bool is_overdue(const struct raft *raft, const struct peer *peer)
{
    int64_t patience = raft->settings.heartbeat_interval.ns;
    if (patience < 3 * peer->round_trip.ns) {
        patience = 3 * peer->round_trip.ns;
    }
    return peer->inflight > 0 && instant_since(raft->now, peer->sent_at).ns >= patience;
}

static bool is_compacted_for(const struct raft *raft, const struct peer *peer)
{
    return peer->next <= raft->log.snapshot_index;
}

void replicate_to(struct raft *raft, struct peer *peer)
{
    raft_index last = log_last_index(&raft->log);

    if (peer->id == raft->id) {
        return;
    }
    if (is_overdue(raft, peer)) {
        peer->inflight = 0;
        if (peer->state == REPLICATION_PIPELINE) {
            peer->state = REPLICATION_PROBE;
            peer->next = peer->match + 1;
        }
    }
    if (is_compacted_for(raft, peer)) {
        peer->state = REPLICATION_SNAPSHOT;
    }
    if (peer->state == REPLICATION_SNAPSHOT) {
        if (peer->inflight == 0) {
            send_snapshot(raft, peer);
        }
        return;
    }
    if (peer->state == REPLICATION_PROBE) {
        if (peer->inflight == 0 && peer->match < last) {
            send_append(raft, peer,
                        log_fitting(&raft->log, peer->next, raft->settings.message_bytes_max));
        }
        return;
    }
    if (peer->match == last) {
        announce_commit(raft, peer);
    }
    while (peer->next <= last && peer->inflight < raft->settings.inflight_max) {
        send_append(raft, peer,
                    log_fitting(&raft->log, peer->next, raft->settings.message_bytes_max));
    }
}

void replicate_to_all(struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        replicate_to(raft, &raft->peers[i]);
    }
}

/* Sends committed entries to a node whose progress is not tracked; the message may be lost. */
static void send_committed(struct raft *raft, raft_id to, raft_index after)
{
    size_t count = log_fitting(&raft->log, after + 1, raft->settings.message_bytes_max);
    struct raft_message *message;

    if (after < raft->log.snapshot_index || after >= raft->commit || RAFT_MUTANT(FAREWELL_UNSAID) ||
        !(message = update_message(raft, RAFT_MSG_APPEND, to, AFTER_NOTHING))) {
        return;
    }
    message->append.prev_index = after;
    message->append.prev_term = log_term_at(&raft->log, after);
    message->append.commit = raft->commit;
    message->append.entry_count = count < raft->commit - after ? count : raft->commit - after;
}

void replicate_farewell(struct raft *raft)
{
    for (size_t i = 0; i < raft->departed_count; i++) {
        send_committed(raft, raft->departed[i].id, raft->departed[i].match);
    }
    raft->departed_count = 0;
}

/* A removed member whose farewell was lost asks for votes, in vain. It gets the entries that it
 * lacks, one append for each of its messages; where the logs differ, its reply says from where. */
void replicate_to_stranger(struct raft *raft, const struct raft_message *message)
{
    raft_index after = message->vote.last_index;
    raft_term term = message->vote.last_term;

    if (message->type == RAFT_MSG_APPEND_REPLY && message->append_reply.rejected) {
        after = message->append_reply.hint;
        term = message->append_reply.hint_term;
    } else if (message->type == RAFT_MSG_APPEND_REPLY) {
        after = message->append_reply.index;
        term = message->term; /* the logs agree up to there */
    } else if (message->type != RAFT_MSG_PRE_VOTE && message->type != RAFT_MSG_VOTE) {
        return;
    }
    if (raft->role != RAFT_LEADER) {
        return;
    }
    if (after > raft->commit) {
        after = raft->commit;
    }
    while (after > raft->log.snapshot_index && log_term_at(&raft->log, after) > term) {
        after--;
    }
    send_committed(raft, message->from, after);
}

void replicate_snapshot_anew(struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (peer->state == REPLICATION_SNAPSHOT) {
            peer->snapshot_offset = 0;
            peer->inflight = 0;
            replicate_to(raft, peer);
        }
    }
}
