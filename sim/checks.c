/* The rules that must hold after every event, for the state that it changed. A check fails when:
 *
 *   two-leaders         is_leader() is true in two processes at one instant
 *   two-act             a program that outlived its process acts while another node leads
 *   two-programs        or while another program of the same node acts
 *   epoch-order         a leadership is acquired with an epoch not above all before it
 *   two-in-a-term       a term has two winners
 *   two-votes           a node gave, or asked for, two votes in one term
 *   term-went-back      the stored term, or the term in force, goes back
 *   vote-changed        the stored vote changes within its term
 *   log-matching        two logs agree at an index and differ below it
 *   leader-incomplete   a new leader lacks a committed entry
 *   committed-lost      another entry is committed at an index than before
 *   not-durable         a committed entry is not on the disks of a quorum
 *   applied-differs     a node applies another entry, or not in order
 *   vote-under-lease    a voter votes although it made a promise to a leader that leads now
 *   lease-not-covered   a lease outlasts the promises of its quorum
 *   gave-way            a leader under its lease enters a term because a candidate asks for votes
 *   stranger-heard      a node with a leader enters the term of a node that was never a member
 *   old-term-counted    a leader commits an entry of an earlier term by counting
 *   won-without-votes   a winner lacks the votes of a quorum
 *   vote-not-stored     a vote leaves that neither the disk nor a stored pledge holds
 *   vote-unproved       a vote leaves by a pledge, but the leader that asked for it is not gone
 *   vote-against-pledge a vote is below the stored pledge, or in its term for another node
 *   ran-under-promise   a node campaigns while a promise binds it
 *   pledge-changed      a stored pledge goes back, or to another node
 *   promise-not-stored  a promise leaves that is longer than the stored one
 *   not-stored          a node counts an entry as stored that its disk does not hold
 *   commit-beyond       a follower commits entries that the append did not reach
 *   stale-read          a read index is below what was committed when the read was asked
 *   snapshot-differs    an installed snapshot is not the state that was committed
 *   snapshot-untried    a snapshot is installed that the process could not decode
 *
 * play.c has liveness (no leader makes progress after the last fault) and stuck (an entry, a change
 * or a member makes none).
 *
 * A lease begins with a step of its holder and ends by its clock. Of two leases that overlap, the
 * later one begins within the other. So it is enough to look for a second leader after each step
 * that leaves one.
 */
#include "sim/checks.h"

#include "sim/acting.h"
#include "sim/arena.h"
#include "sim/checks_votes.h"
#include "sim/clock.h"
#include "sim/journal.h"
#include "sim/members.h"
#include "sim/queue.h"
#include "sim/seen.h"
#include "sim/trace.h"
#include "sim/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void checks_begin(struct world *world)
{
    struct checks *checks = &world->checks;

    if (!checks->entries) {
        checks->entries = calloc(SIM_SEEN_SIZE, sizeof(*checks->entries));
        checks->votes = calloc(SIM_SEEN_SIZE, sizeof(*checks->votes));
        checks->leaders = calloc(SIM_SEEN_SIZE, sizeof(*checks->leaders));
        if (!checks->entries || !checks->votes || !checks->leaders) {
            (void)fputs("baton-sim: out of memory\n", stderr);
            exit(3);
        }
    }
    checks->stamp++;
    memset(checks->promises, 0, sizeof(checks->promises));
    checks->highest_epoch = 0;
    checks->committed_count = 0;
    checks->reads_asked = 0;
}

uint64_t checks_committed_chain(const struct world *world, raft_index index)
{
    return index == 0 ? 0 : world->checks.committed[index - 1].chain;
}

/* ---- Commits --------------------------------------------------------------------------------- */

static void commit(struct world *world, struct node *node, raft_index index, raft_term term,
                   uint64_t chain)
{
    struct checks *checks = &world->checks;

    if (index > checks->committed_count + 1) {
        violated(world, "committed-lost", "node %llu commits %llu, %zu were committed",
                 (unsigned long long)node->id, (unsigned long long)index, checks->committed_count);
    }
    if (index <= checks->committed_count) {
        if (checks->committed[index - 1].chain != chain) {
            violated(world, "committed-lost",
                     "node %llu commits entry %llu of term %llu; there it was one of term %llu",
                     (unsigned long long)node->id, (unsigned long long)index,
                     (unsigned long long)term,
                     (unsigned long long)checks->committed[index - 1].term);
        }
        return;
    }
    checks->committed = grow_array(checks->committed, &checks->committed_capacity, index,
                                   sizeof(*checks->committed));
    checks->committed[checks->committed_count++] =
        (struct committed){.term = term, .chain = chain, .committed_in = node->status.term};
    members_committed(world, node, index);
    world->result.counts[COUNT_COMMITTED]++;
}

static bool is_stored_at(const struct world *world, raft_id id, raft_index index, uint64_t chain)
{
    const struct node *node = id <= world->node_count ? &world->nodes[id] : NULL;
    raft_term term;
    uint64_t there;

    if (!node) {
        return false;
    }
    return node->is_refused || /* it votes no more, so it cannot contradict its acknowledgement */
           index < node->disk.base ||
           (journal_at(&node->disk, index, &term, &there) && there == chain);
}

static void check_durable(struct world *world, const struct node *leader, raft_index index,
                          uint64_t chain)
{
    const struct raft_configuration *c = raft_get_configuration(leader->raft);
    uint64_t all = 0, has = 0, all_old = 0, has_old = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct raft_member *member = &c->members[i];
        uint64_t is_there = is_stored_at(world, member->id, index, chain);
        all += member->weight;
        has += member->weight * is_there;
        all_old += member->old_weight;
        has_old += member->old_weight * is_there;
    }
    if (2 * has <= all || (c->is_joint && 2 * has_old <= all_old)) {
        violated(world, "not-durable",
                 "node %llu commits entry %llu, stored with weight %llu of %llu%s",
                 (unsigned long long)leader->id, (unsigned long long)index, (unsigned long long)has,
                 (unsigned long long)all, c->is_joint ? " (joint)" : "");
    }
}

static void check_commit(struct world *world, struct node *node, const struct raft_status *status)
{
    raft_term term;
    uint64_t chain = 0;

    if (status->commit_index <= node->seen_commit) {
        return;
    }
    for (raft_index i = node->seen_commit + 1; i <= status->commit_index; i++) {
        if (i >= node->memory.base && journal_at(&node->memory, i, &term, &chain)) {
            commit(world, node, i, term, chain);
        }
    }
    node->seen_commit = status->commit_index;
    if (status->role == RAFT_LEADER) {
        check_durable(world, node, status->commit_index, chain);
    }
}

/* An entry that a node counts as stored is on its disk. */
static void check_stored(struct world *world, const struct node *node)
{
    raft_index index = node->status.stored_index;
    raft_term term;
    uint64_t in_memory, on_disk;

    if (!node->disk_failed && index > node->disk.base && index > node->memory.base &&
        (!journal_at(&node->memory, index, &term, &in_memory) ||
         !journal_at(&node->disk, index, &term, &on_disk) || in_memory != on_disk)) {
        violated(world, "not-stored", "node %llu takes entry %llu for stored",
                 (unsigned long long)node->id, (unsigned long long)index);
    }
}

/* ---- Leaders --------------------------------------------------------------------------------- */

/* A winner has the votes of a quorum of the members in force on it, in both halves if joint. */
static void check_votes(struct world *world, const struct node *node, raft_term term)
{
    const struct raft_configuration *c = raft_get_configuration(node->raft);
    uint64_t all = 0, has = 0, all_old = 0, has_old = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct raft_member *member = &c->members[i];
        uint64_t voted = seen_value(world, world->checks.votes, member->id, term) == node->id;
        all += member->weight;
        has += member->weight * voted;
        all_old += member->old_weight;
        has_old += member->old_weight * voted;
    }
    if (2 * has <= all || (c->is_joint && 2 * has_old <= all_old)) {
        violated(world, "won-without-votes", "node %llu wins term %llu with weight %llu of %llu%s",
                 (unsigned long long)node->id, (unsigned long long)term, (unsigned long long)has,
                 (unsigned long long)all, c->is_joint ? " (joint)" : "");
    }
}

static void check_winner(struct world *world, struct node *node, raft_term term)
{
    const struct checks *checks = &world->checks;
    uint64_t winner = node->id << 32 | node->incarnation;

    trace_say(world, node->id, "wins term %llu", (unsigned long long)term);
    if (seen_first(world, world->checks.leaders, term, 0, winner) != winner) {
        violated(world, "two-in-a-term", "node %llu wins term %llu, which another won before",
                 (unsigned long long)node->id, (unsigned long long)term);
    }
    checks_voted(world, node, term, node->id);
    check_votes(world, node, term);
    for (raft_index i = node->memory.base; i <= checks->committed_count; i++) {
        raft_term there;
        uint64_t chain;
        if (i > 0 && checks->committed[i - 1].committed_in >= term) {
            break; /* a late winner of an earlier term need not have it, and cannot commit */
        }
        if (i > 0 && (!journal_at(&node->memory, i, &there, &chain) ||
                      chain != checks->committed[i - 1].chain)) {
            violated(world, "leader-incomplete",
                     "node %llu wins term %llu without committed entry %llu",
                     (unsigned long long)node->id, (unsigned long long)term, (unsigned long long)i);
        }
    }
}

static void check_acquired(struct world *world, struct node *node, raft_term epoch)
{
    trace_say(world, node->id, "leads with epoch %llu", (unsigned long long)epoch);
    world->result.counts[COUNT_ACQUIRED]++;
    if (epoch <= world->checks.highest_epoch) {
        violated(world, "epoch-order", "node %llu leads with epoch %llu after epoch %llu",
                 (unsigned long long)node->id, (unsigned long long)epoch,
                 (unsigned long long)world->checks.highest_epoch);
    }
    world->checks.highest_epoch = epoch;
    members_acquired(world, node);
}

static void check_alone(struct world *world, const struct node *node)
{
    if (!node_leads(world, node)) {
        return;
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        const struct node *other = &world->nodes[id];
        if (id != node->id && node_acts(world, other) && !node_leads(world, other)) {
            violated(world, "two-act",
                     "node %llu (epoch %llu) and the program of n%llu/%llu (epoch %llu)",
                     (unsigned long long)node->id, (unsigned long long)node->lease.epoch,
                     (unsigned long long)id, (unsigned long long)other->program.life,
                     (unsigned long long)other->program.lease.epoch);
        }
        if (id != node->id && node_leads(world, other)) {
            violated(world, "two-leaders",
                     "node %llu (epoch %llu) and node %llu (epoch %llu%s), which has %.6f ms left",
                     (unsigned long long)node->id, (unsigned long long)node->lease.epoch,
                     (unsigned long long)other->id, (unsigned long long)other->lease.epoch,
                     other->is_paused ? ", paused" : "",
                     (double)(other->lease.end.ns - clock_local(other, world->now).ns) / 1e6);
        }
    }
}

static void say_members(struct world *world, const struct node *node)
{
    static const char kinds[] = {'v', 'w', 'l'};
    const struct raft_configuration *c = raft_get_configuration(node->raft);
    char text[STORY_COLUMNS] = "";
    size_t used = 0;

    for (size_t i = 0; i < c->count && used < sizeof(text); i++) {
        const struct raft_member *m = &c->members[i];
        used += (size_t)snprintf(text + used, sizeof(text) - used, " n%llu:%c%u%s",
                                 (unsigned long long)m->id, kinds[m->kind], m->weight,
                                 m->is_leaving ? "-" : "");
        if (c->is_joint && used < sizeof(text)) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "/%u", m->old_weight);
        }
    }
    trace_show(world, node->id, "members%s:%s", c->is_joint ? " (joint)" : "", text);
}

/* The program of every other node stops in time; the rest never stop. */
static void drain(struct world *world, const struct node *node, const struct raft_event *event)
{
    trace_say(world, node->id, "drains, for n%llu", (unsigned long long)event->node);
    if (node->id % 2 == 1) {
        queue_push(world, (struct event){.kind = EVENT_DRAINED,
                                         .at = world->now + event->left.ns / 3,
                                         .node = node->id,
                                         .life = node->incarnation});
    }
}

static void check_events(struct world *world, struct node *node, const struct raft_update *update)
{
    for (size_t i = 0; i < update->event_count; i++) {
        const struct raft_event *event = &update->events[i];
        if (event->type == RAFT_EV_ACQUIRED) {
            check_acquired(world, node, event->term);
        } else if (event->type == RAFT_EV_LOST) {
            trace_say(world, node->id, "leads no more: %s", raft_loss_name(event->loss));
        } else if (event->type == RAFT_EV_DRAIN) {
            drain(world, node, event);
        } else if (event->type == RAFT_EV_PROOF_ACCEPTED) {
            trace_say(world, node->id, "accepts proof %s of n%llu/%llu",
                      raft_proof_name(event->proof_kind), (unsigned long long)event->node,
                      (unsigned long long)event->incarnation);
            world->result.counts[COUNT_PROOFS]++;
        } else if (event->type == RAFT_EV_MEMBERSHIP && trace_wants(world)) {
            say_members(world, node);
        }
    }
}

/* ---- Applying and reading -------------------------------------------------------------------- */

static void check_installed(struct world *world, struct node *node,
                            const struct raft_snapshot *snapshot)
{
    uint64_t said = 0;

    if (snapshot->index > world->checks.committed_count || snapshot->bytes < sizeof(said)) {
        violated(world, "snapshot-differs", "node %llu installs a snapshot of entry %llu",
                 (unsigned long long)node->id, (unsigned long long)snapshot->index);
    }
    memcpy(&said, snapshot->data, sizeof(said));
    for (size_t i = sizeof(said); i < snapshot->bytes; i++) {
        if (((const unsigned char *)snapshot->data)[i] != (unsigned char)(said + i)) {
            violated(world, "snapshot-differs", "node %llu: byte %zu of the snapshot is damaged",
                     (unsigned long long)node->id, i);
        }
    }
    if (said != checks_committed_chain(world, snapshot->index)) {
        violated(world, "snapshot-differs", "node %llu: the state at entry %llu is another",
                 (unsigned long long)node->id, (unsigned long long)snapshot->index);
    }
    if (node->offered != snapshot->index) {
        violated(world, "snapshot-untried", "node %llu installs a snapshot that it has not tried",
                 (unsigned long long)node->id);
    }
    trace_say(world, node->id, "installs snapshot %llu", (unsigned long long)snapshot->index);
    node->applied = node->applied_reported = snapshot->index;
    if (node->seen_commit < snapshot->index) {
        node->seen_commit = snapshot->index;
    }
}

void checks_applied(struct world *world, struct node *node, const struct raft_update *update)
{
    if (update->install) {
        check_installed(world, node, update->install);
    }
    for (size_t i = 0; i < update->apply_count; i++) {
        raft_index index = update->apply_first + i;
        const struct raft_entry *entry = &update->apply[i];
        uint64_t chain;
        if (index != node->applied + 1) {
            violated(world, "applied-differs", "node %llu applies %llu after %llu",
                     (unsigned long long)node->id, (unsigned long long)index,
                     (unsigned long long)node->applied);
        }
        chain = chain_of(index > world->checks.committed_count + 1
                             ? 0
                             : checks_committed_chain(world, index - 1),
                         entry->term, entry->kind, entry->data, entry->bytes);
        commit(world, node, index, entry->term, chain);
        node->applied = index;
    }
}

void checks_read_asked(struct world *world, uint64_t context)
{
    world->checks.read_floor[context % SIM_READS_KEPT] = world->checks.committed_count;
}

static void check_reads(struct world *world, struct node *node, const struct raft_update *update)
{
    for (size_t i = 0; i < update->read_count; i++) {
        const struct raft_read *read = &update->reads[i];
        bool is_kept = read->context + SIM_READS_KEPT > world->checks.reads_asked;
        raft_index floor = world->checks.read_floor[read->context % SIM_READS_KEPT];
        if (read->index != 0 && is_kept && read->index < floor) {
            violated(world, "stale-read", "node %llu reads at %llu, %llu were committed before",
                     (unsigned long long)node->id, (unsigned long long)read->index,
                     (unsigned long long)floor);
        }
    }
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* Whether promises of a quorum reach to the lease's end, as clocks run now: a quorum of the members
 * in force, or of either half where an election needs both. */
static bool is_covered(const struct world *world, const struct node *leader)
{
    const struct raft_configuration *c = raft_get_configuration(leader->raft);
    int64_t end = clock_true(leader, leader->lease.end);
    uint64_t all = 0, has = 0, all_old = 0, has_old = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct raft_member *member = &c->members[i];
        const struct promise *promise = &world->checks.promises[member->id][leader->id];
        uint64_t holds =
            member->id == leader->id ||
            (promise->term == leader->lease.epoch && promise->incarnation == leader->incarnation &&
             clock_true(&world->nodes[member->id], promise->until) + 2 >= end); /* rounding */
        all += member->weight;
        has += member->weight * holds;
        all_old += member->old_weight;
        has_old += member->old_weight * holds;
    }
    return 2 * has > all || (c->is_joint && 2 * has_old > all_old);
}

static void check_covered(struct world *world, const struct node *node,
                          const struct raft_status *before)
{
    const struct raft_lease *was = &before->lease;
    const struct raft_lease *is = &node->lease;
    bool is_new = !was->held || was->end.ns != is->end.ns || was->epoch != is->epoch;

    if (node_leads(world, node) && (is_new || before->last_index != node->status.last_index) &&
        !is_covered(world, node)) {
        violated(world, "lease-not-covered",
                 "node %llu leads for %.6f ms more, its quorum's promises end before",
                 (unsigned long long)node->id,
                 (double)(is->end.ns - clock_local(node, world->now).ns) / 1e6);
    }
}

/* A follower commits only entries that the leader's message shows to be common to both logs. */
static void check_followed(struct world *world, const struct node *node,
                           const struct raft_status *before, const struct raft_input *input)
{
    const struct raft_message *message = input->type == RAFT_IN_MESSAGE ? input->message : NULL;

    if (message && message->type == RAFT_MSG_APPEND &&
        node->status.commit_index > before->commit_index &&
        node->status.commit_index > message->append.prev_index + message->append.entry_count) {
        violated(world, "commit-beyond", "node %llu commits entry %llu, the append ends at %llu",
                 (unsigned long long)node->id, (unsigned long long)node->status.commit_index,
                 (unsigned long long)(message->append.prev_index + message->append.entry_count));
    }
}

static bool is_stranger(const struct node *node, raft_id id)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    return id == SIM_STRANGER && members->count > 0 && !raft_configuration_find(members, id);
}

static void check_rules(struct world *world, const struct node *node,
                        const struct raft_status *before, const struct raft_input *input)
{
    const struct raft_status *status = &node->status;
    bool is_asked = input->type == RAFT_IN_MESSAGE && (input->message->type == RAFT_MSG_VOTE ||
                                                       input->message->type == RAFT_MSG_PRE_VOTE);
    raft_term term;
    uint64_t chain;

    if ((status->role == RAFT_PRE_CANDIDATE || status->role == RAFT_CANDIDATE) &&
        status->promised_to != RAFT_NOBODY) {
        violated(world, "ran-under-promise", "node %llu runs, but promised node %llu",
                 (unsigned long long)node->id, (unsigned long long)status->promised_to);
    }
    if (is_asked && before->lease.held && status->term > before->term &&
        clock_local(node, world->now).ns < before->lease.end.ns) {
        violated(world, "gave-way", "node %llu leads in term %llu and enters term %llu",
                 (unsigned long long)node->id, (unsigned long long)before->term,
                 (unsigned long long)status->term);
    }
    if (input->type == RAFT_IN_MESSAGE && status->term > before->term &&
        clock_local(node, world->now).ns <
            (before->lease.held ? before->lease.end.ns : before->promised_until.ns) &&
        before->promised_to != input->message->from && is_stranger(node, input->message->from)) {
        violated(world, "stranger-heard", "node %llu, under a leader, enters term %llu of n%llu",
                 (unsigned long long)node->id, (unsigned long long)status->term,
                 (unsigned long long)input->message->from);
    }
    if (before->role == RAFT_LEADER && status->role == RAFT_LEADER &&
        before->term == status->term && status->commit_index > before->commit_index &&
        journal_at(&node->memory, status->commit_index, &term, &chain) && term != status->term) {
        violated(world, "old-term-counted",
                 "node %llu commits entry %llu of term %llu in term %llu",
                 (unsigned long long)node->id, (unsigned long long)status->commit_index,
                 (unsigned long long)term, (unsigned long long)status->term);
    }
}

void checks_stepped(struct world *world, struct node *node, const struct raft_update *update,
                    const struct raft_status *before, const struct raft_input *input)
{
    const struct raft_status *status = &node->status;

    if (status->term < node->hard.term) {
        violated(world, "term-went-back", "node %llu is in term %llu, stored is %llu",
                 (unsigned long long)node->id, (unsigned long long)status->term,
                 (unsigned long long)node->hard.term);
    }
    if (status->role == RAFT_LEADER &&
        (node->role != RAFT_LEADER || node->role_term != status->term)) {
        check_winner(world, node, status->term);
    }
    node->role = status->role;
    node->role_term = status->term;
    check_events(world, node, update);
    members_stepped(world, node, update);
    check_stored(world, node);
    check_alone(world, node);
    if (!world->options.breaks_drift) { /* under --break-drift two-leaders must find it */
        check_covered(world, node, before);
    }
    check_rules(world, node, before, input);
    check_followed(world, node, before, input);
    check_commit(world, node, status);
    check_reads(world, node, update);
}
