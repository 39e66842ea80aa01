/* Each node's part in fences. The rule is that of src/provider/raft/fence.c; here are its messages,
 * and the command, which switches a host off or fails, and says so or not.
 *
 * What must hold at each beginning of a command: no other one runs, a quorum of voters has granted
 * it and not another one since, and the asker has not just heard the host. */
#include "sim/fences.h"

#include "sim/arena.h"
#include "sim/clock.h"
#include "sim/network.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/verdict.h"

uint64_t fences_host(const struct world *world, raft_id id)
{
    return (id - 1) / world->profile.host_nodes + 1;
}

static instant local(const struct world *world, const struct node *node)
{
    return clock_local(node, world->now);
}

static void plan_look(struct world *world, struct node *node)
{
    instant next = instant_add(local(world, node), fence_look_every(&node->fencer.fence));
    int64_t late = world->is_calm ? 0 : fence_look_every(&node->fencer.fence).ns / 2;

    queue_push(world,
               (struct event){.kind = EVENT_FENCE_LOOK,
                              .at = clock_true(node, next) + random_between(&world->aside, 0, late),
                              .node = node->id,
                              .life = node->incarnation});
}

void fences_begin(struct world *world, struct node *node)
{
    const struct fence_settings settings = {.after = world->profile.fence_after,
                                            .timeout = world->profile.fence_timeout,
                                            .drift_ppm = (uint32_t)world->profile.drift_ppm,
                                            .has_command = true};
    struct fencer *fencer = &node->fencer;

    if (settings.after.ns == 0) {
        return;
    }
    fence_fini(&fencer->fence);
    fence_init(&fencer->fence, &settings, node->id, fencer->granted_max, local(world, node));
    plan_look(world, node);
}

void fences_end(struct node *node)
{
    fence_fini(&node->fencer.fence);
}

void fences_crashed(struct world *world, struct node *node)
{
    (void)world;
    node->fencer.runs = false;
}

void fences_heard(struct world *world, struct node *node, const struct raft_message *message)
{
    struct fencer *fencer = &node->fencer;

    if (world->profile.fence_after.ns == 0 || message->from > SIM_NODES_MAX) {
        return;
    }
    fence_heard(&fencer->fence, message->from, local(world, node));
    fencer->heard_at[message->from] = world->now;
    if (message->incarnation > fencer->known[message->from]) {
        fencer->known[message->from] = message->incarnation;
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void send(struct world *world, const struct node *from, raft_id to, struct fence_note note)
{
    const struct profile *p = &world->profile;
    int64_t delay = p->delay + random_between(&world->aside, 0, p->jitter);

    if (to == from->id || to > world->node_count || network_is_cut(world, from->id, to) ||
        (!world->is_calm && random_chance(&world->aside, p->loss_ppm))) {
        return;
    }
    note.from = from->id;
    note.incarnation = from->incarnation;
    queue_push(world, (struct event){.kind = EVENT_FENCE_NOTE,
                                     .at = world->now + delay,
                                     .node = to,
                                     .peer = from->id,
                                     .note = arena_copy(&world->arena, &note, sizeof(note))});
}

static void send_to_all(struct world *world, const struct node *node, struct fence_note note)
{
    const struct fence *fence = &node->fencer.fence;

    note.round = fence->round;
    note.host = fence->host;
    note.hold = fence_hold(fence);
    for (size_t i = 0; i < fence->count; i++) {
        send(world, node, fence->members[i].id, note);
    }
}

static void probe(struct world *world, const struct node *node)
{
    const struct fence *fence = &node->fencer.fence;

    for (size_t i = 0; i < fence->count; i++) {
        if (fence_wants_probe(fence, &fence->members[i], local(world, node))) {
            send(world, node, fence->members[i].id, (struct fence_note){.kind = NOTE_PROBE});
        }
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static void check_grants(struct world *world, const struct node *node, bool of_old_half)
{
    const struct fence *fence = &node->fencer.fence;
    uint64_t all = 0, granted = 0;

    for (size_t i = 0; i < fence->count; i++) {
        const struct fence_member *member = &fence->members[i];
        const struct node *voter = &world->nodes[member->id];
        const struct granted *grant = &voter->fencer.granted;
        uint64_t weight = of_old_half ? member->old_weight : member->weight;
        bool stands = grant->to == node->id && grant->incarnation == node->incarnation &&
                      instant_before(local(world, voter), grant->until);
        all += weight;
        granted += voter == node || stands ? weight : 0;
    }
    if (2 * granted <= all) {
        violated(world, "fence-ungranted", "node %llu fences with grants of %llu of %llu",
                 (unsigned long long)node->id, (unsigned long long)granted,
                 (unsigned long long)all);
    }
}

static void check_beginning(struct world *world, const struct node *node)
{
    const struct fencer *fencer = &node->fencer;

    for (raft_id id = 1; id <= world->node_count; id++) {
        bool is_there =
            fences_host(world, id) == fencer->fence.host && fence_find(&fencer->fence, id);
        const struct fencer *other = &world->nodes[id].fencer;
        if (id != node->id && other->runs && world->now < other->ends_at) {
            violated(world, "two-fences", "node %llu fences, and so does node %llu",
                     (unsigned long long)node->id, (unsigned long long)id);
        }
        if (is_there && world->now - fencer->heard_at[id] < fencer->fence.settings.after.ns / 2) {
            violated(world, "fenced-alive", "node %llu fences the host of node %llu, which answers",
                     (unsigned long long)node->id, (unsigned long long)id);
        }
    }
    check_grants(world, node, false);
    if (fencer->fence.is_joint) {
        check_grants(world, node, true);
    }
}

/* Three of five switch the host off and say so; of the others some switch it off, too. */
static void run(struct world *world, struct node *node)
{
    struct fencer *fencer = &node->fencer;
    int64_t limit = fencer->fence.settings.timeout.ns;
    int64_t took = random_between(&world->aside, 1, limit);
    uint64_t fate = random_below(&world->aside, 10);
    bool is_off = fate < 7;

    check_beginning(world, node);
    fencer->runs = true;
    fencer->exit_code = fate < 6 ? 0 : 1;
    fencer->was_in_time = fate != 9;
    took = fencer->was_in_time ? took : limit;
    for (raft_id id = 1; id <= SIM_NODES_MAX; id++) {
        fencer->at_fence[id] = fencer->known[id];
    }
    trace_say(world, node->id, "fences host %llu: exit %d%s",
              (unsigned long long)fencer->fence.host, fencer->exit_code,
              fencer->was_in_time ? "" : ", too late");
    if (is_off) {
        queue_push(world, (struct event){.kind = EVENT_FENCE_OFF,
                                         .at = world->now + random_between(&world->aside, 0, took),
                                         .number = fencer->fence.host});
    }
    queue_push(world, (struct event){.kind = EVENT_FENCE_ENDED,
                                     .at = world->now + took,
                                     .node = node->id,
                                     .life = node->incarnation});
    fencer->ends_at = world->now + took; /* even if its asker is stopped */
}

static void prove(struct world *world, const struct node *node, raft_id id)
{
    const struct proof_input proof = {.kind = RAFT_PROOF_GUARDIAN,
                                      .proof = {.node = id,
                                                .incarnation = node->fencer.at_fence[id],
                                                .through_term = RAFT_TERM_FOREVER},
                                      .heir = node->id};

    if (proof.proof.incarnation > 0) {
        queue_push(world,
                   (struct event){.kind = EVENT_PROOF,
                                  .at = world->now,
                                  .node = node->id,
                                  .peer = id,
                                  .life = node->incarnation,
                                  .number = proof.kind,
                                  .proof = arena_copy(&world->arena, &proof, sizeof(proof))});
    }
}

void fences_ended(struct world *world, struct node *node)
{
    struct fencer *fencer = &node->fencer;
    uint64_t host = fencer->fence.host;
    bool is_proof =
        fence_take_exit(&fencer->fence, fencer->exit_code, fencer->was_in_time, local(world, node));

    fencer->runs = false;
    trace_say(world, node->id, "its fence %s", is_proof ? "is a proof" : "proves nothing");
    send_to_all(world, node, (struct fence_note){.kind = NOTE_RELEASE});
    for (raft_id id = 1; is_proof && id <= world->node_count; id++) {
        if (fences_host(world, id) == host) {
            prove(world, node, id);
        }
    }
}

/* ---- Looks and answers ----------------------------------------------------------------------- */

static void follow_members(struct world *world, struct node *node)
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    struct fence_member members[SIM_NODES_MAX + 1] = {0};
    size_t count = 0;

    for (size_t i = 0; i < now->count; i++) {
        const struct raft_member *member = &now->members[i];
        members[count++] = (struct fence_member){
            .id = member->id,
            .host = fences_host(world, member->id),
            .weight = member->is_leaving ? 0 : member->weight,
            .old_weight = member->old_weight,
            .may_lead = member->kind == RAFT_VOTER && member->weight > 0 && !member->is_leaving,
            .worth = node->status.promised_to == member->id ? FENCE_LEADER : FENCE_NOTHING};
    }
    (void)fence_set_members(&node->fencer.fence, members, count, now->is_joint, local(world, node));
}

static void look(struct world *world, struct node *node)
{
    struct fence *fence = &node->fencer.fence;
    struct fence_situation situation = {
        .leader = node->status.leader, .heir = node->status.heir, .incarnation = node->incarnation};
    const struct fence_member *self;

    raft_get_status(node->raft, &node->status);
    follow_members(world, node);
    self = fence_find(fence, node->id);
    situation.may_run = node->eligible && self && self->may_lead && !node->status.storage_failed;
    situation.leads = node->lease.held && instant_before(local(world, node), node->lease.end);
    switch (fence_look(fence, &situation, local(world, node))) {
    case FENCE_ASK:
        trace_say(world, node->id, "asks for a fence of host %llu",
                  (unsigned long long)fence->host);
        send_to_all(world, node, (struct fence_note){.kind = NOTE_ASK});
        break;
    case FENCE_RUN:
        run(world, node);
        break;
    case FENCE_RELEASE:
        trace_say(world, node->id, "gives up its fence: %s", fence_refusal_name(fence->refusal));
        send_to_all(world, node, (struct fence_note){.kind = NOTE_RELEASE});
        break;
    case FENCE_NONE:
        break;
    }
}

void fences_look(struct world *world, struct node *node)
{
    look(world, node);
    probe(world, node);
    plan_look(world, node);
}

/* Even a voter that has forgotten its grant in a crash must keep it. */
static void note_grant(struct world *world, struct node *node, const struct fence_note *note)
{
    struct granted *granted = &node->fencer.granted;
    bool is_another = granted->to != note->from || granted->incarnation != note->incarnation;

    if (is_another && instant_before(local(world, node), granted->until)) {
        violated(world, "granted-twice", "node %llu grants a fence to %llu, and has to %llu",
                 (unsigned long long)node->id, (unsigned long long)note->from,
                 (unsigned long long)granted->to);
    }
    *granted = (struct granted){.to = note->from,
                                .incarnation = note->incarnation,
                                .round = note->round,
                                .until = instant_add(local(world, node), note->hold)};
    if (note->hold.ns > node->fencer.granted_max.ns) {
        node->fencer.granted_max = note->hold;
    }
}

static void note_release(struct node *node, const struct fence_note *note)
{
    struct granted *granted = &node->fencer.granted;

    if (granted->to == note->from && granted->incarnation == note->incarnation &&
        granted->round == note->round) {
        granted->until = INSTANT_PAST;
    }
}

static enum fence_refusal consider(struct world *world, struct node *node,
                                   const struct fence_note *note)
{
    struct fencer *fencer = &node->fencer;
    raft_id ids[SIM_NODES_MAX];
    struct fence_ask ask = {.from = note->from,
                            .incarnation = note->incarnation,
                            .round = note->round,
                            .ids = ids,
                            .hold = note->hold};
    enum fence_refusal refusal;

    for (raft_id id = 1; id <= world->node_count; id++) {
        if (fences_host(world, id) == note->host && fence_find(&fencer->fence, id)) {
            ids[ask.count++] = id;
        }
    }
    refusal = fence_take_ask(&fencer->fence, &ask, local(world, node));
    if (refusal == FENCE_GRANTED) {
        note_grant(world, node, note);
    }
    return refusal;
}

void fences_take(struct world *world, struct node *node, const struct fence_note *note)
{
    struct fencer *fencer = &node->fencer;

    fence_heard(&fencer->fence, note->from, local(world, node));
    fencer->heard_at[note->from] = world->now;
    switch (note->kind) {
    case NOTE_PROBE:
        send(world, node, note->from, (struct fence_note){.kind = NOTE_ALIVE});
        break;
    case NOTE_ALIVE:
        break;
    case NOTE_ASK:
        send(world, node, note->from,
             (struct fence_note){.kind = NOTE_ANSWER,
                                 .round = note->round,
                                 .refusal = consider(world, node, note)});
        break;
    case NOTE_ANSWER:
        fence_take_reply(&fencer->fence, note->from, note->round, note->refusal);
        look(world, node);
        break;
    case NOTE_RELEASE:
        note_release(node, note);
        fence_take_release(&fencer->fence, note->from, note->incarnation, note->round);
        break;
    }
}
