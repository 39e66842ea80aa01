/* Proofs of a process's end, and ends of connections, which prove nothing. The proofs are true,
 * since the driver authenticates and a certificate cannot exist before the death. But they may be
 * late, lost, repeated, or about an earlier incarnation. */
#include "sim/proofs.h"

#include "sim/acting.h"
#include "sim/arena.h"
#include "sim/network.h"
#include "sim/queue.h"
#include "sim/trace.h"

static int64_t soon(struct world *world)
{
    const struct profile *p = &world->profile;
    return world->now + p->delay + random_between(&world->random, 0, p->jitter);
}

static int64_t late(struct world *world)
{
    int64_t lease = world->profile.settings.lease.ns;
    return world->now + random_between(&world->random, 0, 6 * lease);
}

static void tell(struct world *world, raft_id to, const struct proof_input *proof, int64_t at)
{
    queue_push(world, (struct event){.kind = EVENT_PROOF,
                                     .at = at,
                                     .node = to,
                                     .peer = proof->proof.node,
                                     .number = proof->kind,
                                     .proof = proof});
}

static const struct proof_input *make(struct world *world, enum raft_proof_kind kind, raft_id node,
                                      uint64_t incarnation, raft_id heir)
{
    struct proof_input *proof = arena_take(&world->arena, sizeof(*proof));
    *proof = (struct proof_input){
        .kind = kind,
        .proof = {.node = node, .incarnation = incarnation, .through_term = RAFT_TERM_FOREVER},
        .heir = heir};
    return proof;
}

static void keep(struct world *world, const struct proof_input *proof)
{
    size_t kept = sizeof(world->old_proofs) / sizeof(world->old_proofs[0]);
    world->old_proofs[world->old_proof_count++ % kept] = *proof;
}

static void spread(struct world *world, const struct proof_input *proof)
{
    const struct profile *p = &world->profile;

    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id == proof->proof.node || random_chance(&world->random, p->loss_ppm)) {
            continue;
        }
        if (random_chance(&world->random, p->certificate_late_ppm)) {
            tell(world, id, proof, late(world));
        } else if (!network_is_cut(world, proof->proof.node, id)) {
            tell(world, id, proof, soon(world));
        }
        if (random_chance(&world->random, p->certificate_again_ppm)) {
            tell(world, id, proof, late(world));
        }
    }
}

/* The guardian's certificate: no process or program acts for that incarnation any more. */
void proofs_certify(struct world *world, const struct node *node, uint64_t incarnation)
{
    raft_id heir = random_chance(&world->random, 800000) ? node->heir : RAFT_NOBODY;
    const struct proof_input *proof = make(world, RAFT_PROOF_GUARDIAN, node->id, incarnation, heir);

    keep(world, proof);
    if (random_chance(&world->random, world->profile.certificate_ppm)) {
        trace_say(world, node->id, "the end of incarnation %llu is certified, heir n%llu",
                  (unsigned long long)incarnation, (unsigned long long)heir);
        spread(world, proof);
    }
}

/* The proof that the driver finds when the connection to a dead process has ended. It accepts none
 * about a node whose program may outlive it; a refusal counts on a path declared trusted. */
static void believe(struct world *world, const struct node *node)
{
    bool by_refusal = random_chance(&world->random, 500000);
    enum raft_proof_kind kind = by_refusal ? RAFT_PROOF_REFUSED : RAFT_PROOF_PIDFD;
    bool is_outlived = node->is_outlived &&
                       !(by_refusal ? SIM_MUTANT(TUNNEL_REFUSES) : SIM_MUTANT(PIDFD_OF_OUTLIVED));

    if (!is_outlived && random_chance(&world->random, world->profile.certificate_ppm / 2)) {
        keep(world, make(world, kind, node->id, node->incarnation, RAFT_NOBODY));
        spread(world, make(world, kind, node->id, node->incarnation, RAFT_NOBODY));
    }
}

/* The process is dead. */
void proofs_of_death(struct world *world, const struct node *node)
{
    const struct proof_input *end =
        make(world, RAFT_PROOF_EOF_ONLY, node->id, node->incarnation, RAFT_NOBODY);

    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != node->id && random_chance(&world->random, 500000)) {
            tell(world, id, end, soon(world));
            queue_push(world, (struct event){.kind = EVENT_CONNECTION,
                                             .at = soon(world),
                                             .node = id,
                                             .peer = node->id});
        }
    }
    believe(world, node);
    if (!program_outlives(world, node, node->incarnation) || SIM_MUTANT(CERTIFIED_WHILE_IT_LIVES)) {
        proofs_certify(world, node, node->incarnation);
    }
}

/* A new incarnation holds the data directory. That proves to every peer which it greets that the
 * earlier one is dead, unless a program may have outlived that. */
void proofs_greet(struct world *world, const struct node *node)
{
    const struct proof_input *proof;

    if (node->incarnation < 2 || (node->is_outlived && !SIM_MUTANT(GREETING_OF_OUTLIVED))) {
        return;
    }
    proof = make(world, RAFT_PROOF_GREETING, node->id, node->incarnation - 1, RAFT_NOBODY);
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != node->id && !network_is_cut(world, node->id, id) &&
            random_chance(&world->random, 700000)) {
            tell(world, id, proof, soon(world));
        }
    }
}

/* Another process greets as this node in its present incarnation, and then certifies its death with
 * a secret of its own: a forgery, or a copy of the data directory. A peer that has the first
 * commitment accepts no other. */
static void forge(struct world *world, const struct node *node)
{
    if (SIM_MUTANT(COMMITMENT_REPLACED)) {
        spread(world, make(world, RAFT_PROOF_GUARDIAN, node->id, node->incarnation, RAFT_NOBODY));
    }
}

/* A middlebox resets the connections of a process that lives on. */
void proofs_reset(struct world *world, const struct node *node)
{
    const struct proof_input *end =
        make(world, RAFT_PROOF_EOF_ONLY, node->id, node->incarnation, node->heir);

    trace_say(world, node->id, "its connections are reset; it lives");
    forge(world, node);
    if (SIM_MUTANT(TUNNEL_REFUSES)) {
        spread(world, make(world, RAFT_PROOF_REFUSED, node->id, node->incarnation, RAFT_NOBODY));
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id == node->id || random_chance(&world->random, 200000)) {
            continue;
        }
        tell(world, id, end, soon(world));
        queue_push(world,
                   (struct event){
                       .kind = EVENT_CONNECTION, .at = soon(world), .node = id, .peer = node->id});
        queue_push(world, (struct event){.kind = EVENT_CONNECTION,
                                         .at = soon(world) + world->profile.jitter,
                                         .node = id,
                                         .peer = node->id,
                                         .number = 1});
    }
}

/* A true certificate about an earlier life of a node, preferably of the leader. */
void proofs_old(struct world *world)
{
    struct node *node = world_leader(world);

    if (!node || node->incarnation < 2) {
        node = &world->nodes[1 + random_below(&world->random, world->node_count)];
    }
    if (node->incarnation > 1) {
        uint64_t earlier = 1 + random_below(&world->random, node->incarnation - 1);
        raft_id heir = 1 + random_below(&world->random, world->node_count);
        if (program_outlives(world, node, earlier)) {
            return;
        }
        trace_say(world, node->id, "a certificate of its incarnation %llu comes",
                  (unsigned long long)earlier);
        spread(world, make(world, RAFT_PROOF_GUARDIAN, node->id, earlier, heir));
    }
}

void proofs_replay(struct world *world)
{
    size_t kept = sizeof(world->old_proofs) / sizeof(world->old_proofs[0]);
    size_t count = world->old_proof_count < kept ? world->old_proof_count : kept;

    if (count > 0) {
        const struct proof_input *old = &world->old_proofs[random_below(&world->random, count)];
        spread(world, arena_copy(&world->arena, old, sizeof(*old)));
    }
}
