/* One process around one core. It keeps the driver's contract of raft.h:
 *
 *   1 publish the lease · 2 send messages that wait for no write · 3 store · 4 send the others
 *   5 apply and report that · 6 come back at the deadline
 *
 * A paused process takes no input: its events wait until it wakes. Its lease counts as held until
 * its own clock has passed the end. A crashed process holds no lease.
 */
#include "sim/node.h"

#include "sim/arena.h"
#include "sim/checks.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "sim/fences.h"
#include "sim/network.h"
#include "sim/profile.h"
#include "sim/program.h"
#include "sim/proofs.h"
#include "sim/queue.h"
#include "sim/series.h"
#include "sim/trace.h"
#include "sim/verdict.h"
#include "sim/watch.h"

#include <stdlib.h>
#include <string.h>

static void begin_life(struct world *world, struct node *node)
{
    node->incarnation++;
    node->is_up = true;
    node->is_paused = false;
    node->lease = (struct raft_lease){0};
    node->role = RAFT_FOLLOWER;
    node->role_term = 0;
    node->heir = RAFT_NOBODY;
    node->offered = 0;
    node->tick_at = INT64_MAX;
    node->applied = node->applied_reported = node->snapshot.index;
    node->seen_commit = 0;
    node->status = (struct raft_status){0};
    node->asked = node->hard;
    node->stored_write = 0;
    node->disk_free_at = world->now;
    node->writes = NULL;
    node->writes_end = &node->writes;
    node->held = NULL;
    node->held_end = &node->held;
    node->memory.count = 0;
    node->memory.base = node->disk.base;
    node->memory.base_term = node->disk.base_term;
    node->memory.base_chain = node->disk.base_chain;
    node->memory.records = grow_array(node->memory.records, &node->memory.capacity,
                                      node->disk.count + 1, sizeof(*node->memory.records));
    if (node->disk.count > 0) {
        memcpy(node->memory.records, node->disk.records,
               node->disk.count * sizeof(*node->disk.records));
    }
    node->memory.count = node->disk.count;
    node->base_members = node->snapshot.configuration;
    profile_settings(world, &node->settings);
    watch_begin(world, node);
    fences_begin(world, node);
}

static struct raft_entry *stored_entries(struct world *world, const struct node *node)
{
    struct raft_entry *entries = arena_take(&world->arena, node->disk.count * sizeof(*entries) + 1);
    for (size_t i = 0; i < node->disk.count; i++) {
        const struct record *record = &node->disk.records[i];
        entries[i] = (struct raft_entry){.term = record->term,
                                         .kind = record->kind,
                                         .data = record->data,
                                         .bytes = record->bytes};
    }
    return entries;
}

void node_connect(struct world *world, struct node *node)
{
    network_connect(world, node);
    proofs_greet(world, node);
}

void node_start(struct world *world, struct node *node)
{
    struct raft_input tick = {.type = RAFT_IN_TICK};
    struct raft_start start;
    struct baton_error error;

    begin_life(world, node);
    program_look_for(world, node);
    start = (struct raft_start){.id = node->id,
                                .incarnation = node->incarnation,
                                .seed = random_next(&world->random),
                                .settings = node->settings,
                                .hard = node->hard,
                                .snapshot = {.index = node->snapshot.index,
                                             .term = node->snapshot.term,
                                             .configuration = node->snapshot.configuration,
                                             .data = node->snapshot.data,
                                             .bytes = node->snapshot.bytes},
                                .entries = stored_entries(world, node),
                                .entry_count = node->disk.count,
                                .eligible = node->eligible,
                                .is_outlived = node->is_outlived};
    trace_say(
        world, node->id, "starts: term %llu, vote n%llu, log %llu..%llu, lease %.3f ms of %.3f",
        (unsigned long long)node->hard.term, (unsigned long long)node->hard.vote,
        (unsigned long long)node->disk.base,
        (unsigned long long)(node->disk.base + node->disk.count),
        (double)node->settings.lease.ns / 1e6, (double)node->settings.heartbeat_timeout.ns / 1e6);
    if (raft_new(&node->raft, &start, clock_local(node, world->now), &error) != BATON_OK) {
        node->raft = NULL;
        violated(world, "start-refused", "node %llu: %s", (unsigned long long)node->id,
                 error.message);
    }
    node_step(world, node, &tick);
    node_connect(world, node);
}

void node_crash(struct world *world, struct node *node)
{
    trace_say(world, node->id, "crashes");
    world->result.counts[COUNT_CRASHES]++;
    disk_crash(world, node);
    raft_free(node->raft);
    node->raft = NULL;
    node->is_up = false;
    node->is_paused = false;
    node->lease = (struct raft_lease){0};
    fences_crashed(world, node);
    program_outlive(world, node);
    proofs_of_death(world, node);
}

static void hold(struct world *world, struct node *node, const struct raft_message *message)
{
    struct held_message *held = arena_take(&world->arena, sizeof(*held));
    *held = (struct held_message){.message = message, .after_write = message->after_write};
    *node->held_end = held;
    node->held_end = &held->next;
}

static void send_all(struct world *world, struct node *node, const struct raft_update *update,
                     bool waiting)
{
    for (size_t i = 0; i < update->message_count; i++) {
        const struct raft_message *message = &update->messages[i];
        bool waits = message->after_write > node->stored_write;
        if (waits != waiting) {
            continue;
        }
        message = network_copy(world, message, clock_local(node, world->now));
        if (!waits) {
            network_send(world, node, message);
        } else if (!node->disk_failed || raft_mutant != RAFT_MUTANT_NONE) {
            hold(world, node, message);
        }
    }
}

static void apply(struct world *world, struct node *node, const struct raft_update *update)
{
    checks_applied(world, node, update);
    if (node->applied > node->applied_reported) {
        node->applied_reported = node->applied;
        queue_push(world, (struct event){.kind = EVENT_APPLIED,
                                         .at = world->now + world->profile.disk_delay / 4,
                                         .node = node->id,
                                         .life = node->incarnation,
                                         .number = node->applied});
    }
}

static void plan_tick(struct world *world, struct node *node, instant deadline)
{
    int64_t at = clock_true(node, deadline);

    if (at < world->now) {
        at = world->now;
    }
    if (at >= node->tick_at) {
        return; /* the tick under way comes earlier */
    }
    node->tick_at = at;
    if (!world->is_calm && at != INT64_MAX) {
        node->tick_at += random_between(&world->random, 0, world->profile.lateness);
    }
    queue_push(world, (struct event){.kind = EVENT_TICK,
                                     .at = node->tick_at,
                                     .node = node->id,
                                     .life = node->incarnation});
}

/* A few processes cannot decode the snapshot: out of memory, or another version. */
static void answer_offer(struct world *world, struct node *node, raft_index index)
{
    struct raft_input input = {.type = RAFT_IN_SNAPSHOT, .snapshot = {.index = index}};

    input.snapshot.is_taken = world->is_calm || random_chance(&world->random, 800000);
    node->offered = input.snapshot.is_taken ? index : 0;
    if (!input.snapshot.is_taken) {
        trace_say(world, node->id, "refuses snapshot %llu", (unsigned long long)index);
    }
    node_step(world, node, &input);
}

void node_step(struct world *world, struct node *node, const struct raft_input *input)
{
    const struct raft_update *update = NULL;
    struct raft_status before = node->status;
    raft_index offer;

    (void)raft_step(node->raft, input, clock_local(node, world->now), &update);
    offer = update->offer ? update->offer->index : 0;
    node->lease = update->lease;
    program_follow(world, node);
    watch_follow(world, node);
    raft_get_status(node->raft, &node->status);
    send_all(world, node, update, false);
    node->heir = update->heir;
    if (update->write) {
        disk_write(world, node, update->write);
    }
    send_all(world, node, update, true);
    apply(world, node, update);
    checks_stepped(world, node, update, &before, input);
    if (before.role != RAFT_LEADER && node->status.role == RAFT_LEADER) {
        series_on_win(world);
    }
    plan_tick(world, node, update->deadline);
    if (offer > 0) {
        answer_offer(world, node, offer);
    }
}

void node_stored(struct world *world, struct node *node)
{
    struct raft_input input;

    if (disk_done(world, node, &input)) {
        node_step(world, node, &input);
    }
}

static void take_tick(struct world *world, struct node *node, const struct event *event)
{
    struct raft_input input = {.type = RAFT_IN_TICK};

    if (event->at == node->tick_at || node->tick_at <= world->now) {
        node->tick_at = INT64_MAX;
        node_step(world, node, &input);
    }
}

static void take_proof(struct world *world, struct node *node, const struct proof_input *proof)
{
    struct raft_input input = {.type = RAFT_IN_PROOF};

    input.proof.kind = proof->kind;
    input.proof.proof = proof->proof;
    input.proof.heir = proof->heir;
    node_step(world, node, &input);
}

static void take(struct world *world, struct node *node, const struct event *event)
{
    struct raft_input input = {0};

    switch (event->kind) {
    case EVENT_TICK:
        take_tick(world, node, event);
        return;
    case EVENT_DISK:
        node_stored(world, node);
        return;
    case EVENT_PROOF:
        take_proof(world, node, event->proof);
        return;
    case EVENT_FENCE_LOOK:
        fences_look(world, node);
        return;
    case EVENT_FENCE_NOTE:
        fences_take(world, node, event->note);
        return;
    case EVENT_FENCE_ENDED:
        fences_ended(world, node);
        return;
    case EVENT_MESSAGE:
        fences_heard(world, node, event->message);
        input.type = RAFT_IN_MESSAGE;
        input.message = event->message;
        break;
    case EVENT_DRAINED:
        input.type = RAFT_IN_DRAINED;
        break;
    case EVENT_APPLIED:
        input.type = RAFT_IN_APPLIED;
        input.index = event->number;
        break;
    default:
        input.type = RAFT_IN_CONNECTION;
        input.connection.peer = event->peer;
        input.connection.is_up = event->number != 0;
        break;
    }
    node_step(world, node, &input);
}

void node_event(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    struct event later = *event;

    if (!node->is_up || (event->life != 0 && event->life != node->incarnation)) {
        return;
    }
    if (node->is_paused && world->now < node->paused_until) {
        later.at = node->paused_until;
        if (event->kind == EVENT_TICK && event->at == node->tick_at) {
            node->tick_at = later.at;
        }
        queue_push(world, later);
        return;
    }
    node->is_paused = false;
    trace_event(world, event);
    take(world, node, event);
}
