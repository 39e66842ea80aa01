/* The rules for what a node stores and sends: votes, pledges and promises. checks.c lists the
 * checks.
 */
#include "sim/checks_votes.h"

#include "sim/acting.h"
#include "sim/clock.h"
#include "sim/journal.h"
#include "sim/seen.h"
#include "sim/verdict.h"

void checks_written(struct world *world, struct node *node, const struct raft_write *write)
{
    for (size_t i = 0; i < write->entry_count; i++) {
        raft_index index = write->first_index + i;
        raft_term term;
        uint64_t chain;
        if (journal_at(&node->memory, index, &term, &chain) &&
            seen_first(world, world->checks.entries, index, term, chain) != chain) {
            violated(world, "log-matching", "node %llu: entry %llu of term %llu",
                     (unsigned long long)node->id, (unsigned long long)index,
                     (unsigned long long)term);
        }
    }
}

/* A vote is given when its reply leaves; a node gives its own when it is stored or counted. */
static void count_vote(struct world *world, const struct node *node, raft_term term, raft_id vote)
{
    if (seen_first(world, world->checks.votes, node->id, term, vote) != vote) {
        violated(world, "two-votes", "node %llu votes a second time in term %llu, for %llu",
                 (unsigned long long)node->id, (unsigned long long)term, (unsigned long long)vote);
    }
}

void checks_stored(struct world *world, struct node *node, const struct raft_hard_state *hard)
{
    if (hard->term < node->hard.term) {
        violated(world, "term-went-back", "node %llu stores term %llu after %llu",
                 (unsigned long long)node->id, (unsigned long long)hard->term,
                 (unsigned long long)node->hard.term);
    }
    if (hard->term == node->hard.term && node->hard.vote != RAFT_NOBODY &&
        hard->vote != node->hard.vote) {
        violated(world, "vote-changed", "node %llu in term %llu: vote for %llu, then for %llu",
                 (unsigned long long)node->id, (unsigned long long)hard->term,
                 (unsigned long long)node->hard.vote, (unsigned long long)hard->vote);
    }
    if (hard->pledged_term < node->hard.pledged_term ||
        (hard->pledged_term == node->hard.pledged_term &&
         hard->pledged_to != node->hard.pledged_to)) {
        violated(world, "pledge-changed", "node %llu: pledge to %llu in term %llu, then in %llu",
                 (unsigned long long)node->id, (unsigned long long)node->hard.pledged_to,
                 (unsigned long long)node->hard.pledged_term,
                 (unsigned long long)hard->pledged_term);
    }
    if (hard->vote == node->id) {
        count_vote(world, node, hard->term, node->id);
    }
}

static void note_promise(struct world *world, const struct node *node,
                         const struct raft_message *message, uint64_t incarnation, span granted)
{
    struct promise *promise = &world->checks.promises[node->id][message->to];
    const struct outgoing *outgoing = (const struct outgoing *)message;
    instant until = instant_add(outgoing->made, granted);

    if (promise->term != message->term || promise->incarnation < incarnation) {
        *promise = (struct promise){
            .term = message->term, .incarnation = incarnation, .until = INSTANT_PAST};
    }
    if (promise->incarnation == incarnation) {
        promise->until = instant_max(promise->until, until);
    }
    if (granted.ns > node->hard.promised_max.ns) {
        violated(world, "promise-not-stored", "node %llu promises %.3f ms, stored are %.3f ms",
                 (unsigned long long)node->id, (double)granted.ns / 1e6,
                 (double)node->hard.promised_max.ns / 1e6);
    }
}

static void check_promises(struct world *world, const struct node *voter, raft_id candidate,
                           raft_term term)
{
    if (world->options.breaks_drift) {
        return;
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        const struct node *leader = &world->nodes[id];
        const struct promise *promise = &world->checks.promises[voter->id][id];
        if (id != candidate && node_leads(world, leader) && promise->term < term &&
            leader->lease.epoch == promise->term && leader->incarnation == promise->incarnation &&
            clock_local(voter, world->now).ns < promise->until.ns) {
            violated(world, "vote-under-lease",
                     "node %llu votes for %llu in term %llu, but promised %llu, which leads",
                     (unsigned long long)voter->id, (unsigned long long)candidate,
                     (unsigned long long)term, (unsigned long long)id);
        }
    }
}

/* A vote may leave before it is stored only if a stored pledge records it and the leader of the
 * stored term is gone: a crash takes this voter back to that term, in which no leader may count on
 * it. */
static void check_unstored_vote(struct world *world, const struct node *voter, raft_term term,
                                raft_id vote)
{
    const struct raft_hard_state *hard = &voter->hard;

    if (seen_value(world, world->checks.votes, voter->id, term) == vote ||
        seen_value(world, world->checks.leaders, term, 0) != 0) {
        return; /* given before, or in a term that was won without it */
    }
    if (term < hard->pledged_term || (term == hard->pledged_term && vote != hard->pledged_to)) {
        violated(world, "vote-against-pledge",
                 "node %llu votes for %llu in term %llu, pledged is %llu in %llu",
                 (unsigned long long)voter->id, (unsigned long long)vote, (unsigned long long)term,
                 (unsigned long long)hard->pledged_to, (unsigned long long)hard->pledged_term);
    }
    if (hard->term >= term) {
        return;
    }
    if (hard->pledged_term != term || hard->pledged_to != vote) {
        violated(world, "vote-not-stored",
                 "node %llu votes for %llu in term %llu, stored is term %llu",
                 (unsigned long long)voter->id, (unsigned long long)vote, (unsigned long long)term,
                 (unsigned long long)hard->term);
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        const struct node *leader = &world->nodes[id];
        if (id != voter->id && leader->is_up && leader->role == RAFT_LEADER &&
            leader->role_term == hard->term) {
            violated(world, "vote-unproved",
                     "node %llu votes in term %llu and has stored term %llu, which node %llu leads",
                     (unsigned long long)voter->id, (unsigned long long)term,
                     (unsigned long long)hard->term, (unsigned long long)id);
        }
    }
}

void checks_voted(struct world *world, const struct node *voter, raft_term term, raft_id vote)
{
    check_unstored_vote(world, voter, term, vote);
    count_vote(world, voter, term, vote);
}

void checks_sent(struct world *world, struct node *node, const struct raft_message *message)
{
    raft_id vote = RAFT_NOBODY;

    if (message->type == RAFT_MSG_VOTE) {
        check_promises(world, node, node->id, message->term);
    } else if (message->type == RAFT_MSG_VOTE_REPLY && message->vote_reply.granted) {
        vote = message->to;
        if (message->vote_reply.promised.ns > 0) {
            note_promise(world, node, message, message->vote_reply.promised_to,
                         message->vote_reply.promised);
        }
    } else if (message->type == RAFT_MSG_HEARTBEAT_REPLY &&
               message->heartbeat_reply.granted.ns > 0) {
        note_promise(world, node, message, world->nodes[message->to].incarnation,
                     message->heartbeat_reply.granted);
    }
    if (vote != RAFT_NOBODY) {
        check_promises(world, node, vote, message->term);
        checks_voted(world, node, message->term, vote);
    }
}
