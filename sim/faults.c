/* The faults, one at a time, as often as the profile says; and the end of them. */
#include "sim/faults.h"

#include "sim/acting.h"
#include "sim/arena.h"
#include "sim/client.h"
#include "sim/clock.h"
#include "sim/directory.h"
#include "sim/fences.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/proofs.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/watch.h"

static int64_t some(struct world *world, int64_t most)
{
    return random_between(&world->random, 0, most);
}

static struct node *any(struct world *world)
{
    struct node *node = &world->nodes[1 + random_below(&world->random, world->node_count)];
    return node->is_up && world->now >= node->paused_until ? node : NULL;
}

static struct node *leader_or_any(struct world *world)
{
    struct node *leader = world_leader(world);
    return leader && world->now >= leader->paused_until ? leader : any(world);
}

static void crash_for(struct world *world, struct node *node, int64_t down)
{
    node_crash(world, node);
    queue_push(world, (struct event){.kind = EVENT_RESTART,
                                     .at = world->now + some(world, down),
                                     .node = node->id});
}

static void crash(struct world *world, struct node *node)
{
    bool is_short = random_chance(&world->random, 500000);
    crash_for(world, node, world->profile.down_time / (is_short ? 50 : 1));
}

/* Crashes the leader, and later the next winners: see series.c. */
static void crash_series(struct world *world, struct node *first)
{
    world->series = random_chance(&world->random, 700000) ? 1 : 2;
    crash_for(world, first, world->profile.down_time / 50);
}

void faults_follow(struct world *world, raft_id id)
{
    struct node *node = &world->nodes[id];

    if (node->is_up && world->now >= node->paused_until) {
        crash(world, node);
    }
}

static void pause_node(struct world *world, struct node *node)
{
    int64_t lease = world->profile.settings.lease.ns;
    int64_t most = random_chance(&world->random, 500000) ? lease / 2 : 3 * lease;

    node->is_paused = true;
    node->paused_until = world->now + some(world, most);
    trace_say(world, node->id, "is stopped for %.3f ms",
              (double)(node->paused_until - world->now) / 1e6);
    watch_stop(world, node);
    queue_push(world, (struct event){.kind = EVENT_TICK,
                                     .at = node->paused_until,
                                     .node = node->id,
                                     .life = node->incarnation});
}

static int64_t until_healed(struct world *world)
{
    int64_t lease = world->profile.settings.lease.ns;
    return world->now + lease / 10 + some(world, 4 * lease);
}

/* Cuts two sides off each other, perhaps with a node that both reach, or in one direction only. */
static void cut_sides(struct world *world, struct partition *partition)
{
    uint64_t sides = random_next(&world->random);
    raft_id bridge = random_chance(&world->random, 250000)
                         ? 1 + random_below(&world->random, world->node_count)
                         : RAFT_NOBODY;
    bool one_way = random_chance(&world->random, 250000);

    for (raft_id i = 1; i <= world->node_count; i++) {
        for (raft_id j = 1; j <= world->node_count; j++) {
            bool crosses = (sides >> i & 1) != (sides >> j & 1);
            bool is_cut = crosses && i != bridge && j != bridge && (!one_way || sides >> i & 1);
            partition->cut[i] = (uint16_t)(partition->cut[i] | (unsigned)is_cut << j);
        }
    }
}

static void cut_links(struct world *world, struct partition *partition)
{
    for (raft_id i = 1; i <= world->node_count; i++) {
        for (raft_id j = 1; j <= world->node_count; j++) {
            bool is_cut = i != j && random_chance(&world->random, 300000);
            partition->cut[i] = (uint16_t)(partition->cut[i] | (unsigned)is_cut << j);
        }
    }
}

static void cut(struct world *world)
{
    struct partition *partition = arena_take(&world->arena, sizeof(*partition));

    *partition = (struct partition){0};
    if (random_chance(&world->random, 750000)) {
        cut_sides(world, partition);
    } else {
        cut_links(world, partition);
    }
    trace_say(world, RAFT_NOBODY, "network is cut");
    network_cut(world, partition, until_healed(world));
}

static void isolate(struct world *world, struct node *node)
{
    struct partition *partition = arena_take(&world->arena, sizeof(*partition));
    bool in = random_chance(&world->random, 800000);
    bool out = !in || random_chance(&world->random, 600000);

    *partition = (struct partition){0};
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != node->id) {
            partition->cut[id] = (uint16_t)((unsigned)in << node->id);
            partition->cut[node->id] = (uint16_t)(partition->cut[node->id] | (unsigned)out << id);
        }
    }
    trace_say(world, node->id, "is cut off%s", in && out ? "" : in ? " (deaf)" : " (mute)");
    network_cut(world, partition, until_healed(world));
}

/* The leader and another node cannot reach each other, and nodes that reach both are restarted
 * meanwhile: only their promises keep the other node from being elected. */
static void divide(struct world *world, struct node *leader)
{
    struct partition *partition = arena_take(&world->arena, sizeof(*partition));
    raft_id other = 1 + random_below(&world->random, world->node_count);
    int64_t heal_at = until_healed(world);

    *partition = (struct partition){0};
    partition->cut[leader->id] = (uint16_t)(1u << other);
    partition->cut[other] = (uint16_t)(1u << leader->id);
    trace_say(world, leader->id, "and n%llu lose each other", (unsigned long long)other);
    network_cut(world, partition, heal_at);
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != leader->id && id != other && random_chance(&world->random, 700000)) {
            queue_push(world, (struct event){.kind = EVENT_FAULT,
                                             .at = world->now + some(world, heal_at - world->now),
                                             .node = id});
        }
    }
}

static void cordon(struct world *world, struct node *node)
{
    struct raft_input input = {.type = RAFT_IN_ELIGIBLE};

    node->eligible = !node->eligible;
    input.eligible = node->eligible;
    trace_say(world, node->id, node->eligible ? "is uncordoned" : "is cordoned");
    node_step(world, node, &input);
}

/* A node that was never a member sends a message of a higher term to a node of the group. */
static void hear_stranger(struct world *world, struct node *node)
{
    static const enum raft_message_type types[] = {
        RAFT_MSG_PRE_VOTE_REPLY,  RAFT_MSG_VOTE,   RAFT_MSG_VOTE_REPLY,   RAFT_MSG_HEARTBEAT,
        RAFT_MSG_HEARTBEAT_REPLY, RAFT_MSG_APPEND, RAFT_MSG_APPEND_REPLY, RAFT_MSG_RESIGN,
    };
    struct raft_message message = {
        .type = types[random_below(&world->random, sizeof(types) / sizeof(types[0]))],
        .from = SIM_STRANGER,
        .to = node->id,
        .incarnation = 1,
        .term = node->status.term + 1 + random_below(&world->random, 5)};
    struct raft_input input = {.type = RAFT_IN_MESSAGE, .message = &message};

    if (message.type == RAFT_MSG_VOTE) {
        message.vote.last_index = node->status.last_index + 1;
        message.vote.last_term = message.term;
    } else if (message.type == RAFT_MSG_HEARTBEAT) {
        message.heartbeat.lease = world->profile.settings.lease;
    }
    if (node->is_up && world->now >= node->paused_until && SIM_STRANGER > world->node_count) {
        trace_say(world, node->id, "hears a stranger: %s, term %llu",
                  raft_message_name(message.type), (unsigned long long)message.term);
        node_step(world, node, &input);
    }
}

static void with_node(struct world *world, enum sim_fault fault, struct node *node)
{
    switch (fault) {
    case SIM_FAULT_CRASH:
    case SIM_FAULT_CRASH_LEADER:
        crash(world, node);
        break;
    case SIM_FAULT_CRASH_SERIES:
        crash_series(world, node);
        break;
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_PAUSE_LEADER:
        pause_node(world, node);
        break;
    case SIM_FAULT_ISOLATE_LEADER:
        isolate(world, node);
        break;
    case SIM_FAULT_DIVIDE:
        divide(world, node);
        break;
    case SIM_FAULT_RESET:
        proofs_reset(world, node);
        break;
    case SIM_FAULT_SLOW_DISK:
        trace_say(world, node->id, "has a slow disk");
        node->disk_slow_until = world->now + some(world, 3 * world->profile.settings.lease.ns);
        break;
    case SIM_FAULT_BAD_DISK:
        node->disk_fails_next = true;
        break;
    case SIM_FAULT_CLOCK_RATE:
        clock_change_rate(world, node);
        break;
    case SIM_FAULT_COPY_DIRECTORY:
        directory_copy(world, node);
        break;
    case SIM_FAULT_REPLACE_DIRECTORY:
        directory_replace(world, node);
        break;
    case SIM_FAULT_CORDON:
        cordon(world, node);
        break;
    case SIM_FAULT_TRANSFER:
        client_transfer(world, node);
        break;
    case SIM_FAULT_RECONFIGURE:
        client_reconfigure(world, node);
        hear_stranger(world, &world->nodes[1 + random_below(&world->random, world->node_count)]);
        break;
    case SIM_FAULT_COMPACT:
        client_compact(world, node);
        break;
    default:
        break;
    }
}

static enum sim_fault draw(struct world *world)
{
    uint64_t at = random_below(&world->random, world->profile.fault_weight_sum);
    int fault = 0;

    while (at >= world->profile.fault_weight[fault]) {
        at -= world->profile.fault_weight[fault++];
    }
    return (enum sim_fault)fault;
}

static bool wants_leader(enum sim_fault fault)
{
    return fault == SIM_FAULT_CRASH_LEADER || fault == SIM_FAULT_CRASH_SERIES ||
           fault == SIM_FAULT_PAUSE_LEADER || fault == SIM_FAULT_ISOLATE_LEADER ||
           fault == SIM_FAULT_DIVIDE || fault == SIM_FAULT_RESET || fault == SIM_FAULT_TRANSFER ||
           fault == SIM_FAULT_RECONFIGURE;
}

void faults_next(struct world *world)
{
    enum sim_fault fault = draw(world);
    struct node *node = wants_leader(fault) ? leader_or_any(world) : any(world);

    if (fault == SIM_FAULT_PARTITION) {
        cut(world);
    } else if (fault == SIM_FAULT_OLD_CERTIFICATE) {
        proofs_old(world);
    } else if (fault == SIM_FAULT_REPLAY) {
        proofs_replay(world);
    } else if (node) {
        with_node(world, fault, node);
    }
    queue_push(world,
               (struct event){.kind = EVENT_FAULT,
                              .at = world->now + 1 + some(world, 2 * world->profile.fault_every)});
}

static void crash_aside(struct world *world, struct node *node)
{
    int64_t down = random_between(&world->aside, 0, world->profile.down_time);

    node_crash(world, node);
    queue_push(world,
               (struct event){.kind = EVENT_RESTART, .at = world->now + down, .node = node->id});
}

void faults_killed(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];

    if (node->is_up && event->number == node->incarnation) {
        crash_aside(world, node);
    }
}

void faults_switched_off(struct world *world, const struct event *event)
{
    for (raft_id id = 1; id <= world->node_count; id++) {
        struct node *node = &world->nodes[id];
        if (fences_host(world, id) != event->number) {
            continue;
        }
        node->program.runs = false;
        if (node->is_up) {
            trace_say(world, id, "its host is switched off");
            crash_aside(world, node);
        }
    }
}

static void heal_network(struct world *world)
{
    for (raft_id i = 1; i <= world->node_count; i++) {
        for (raft_id j = 1; j <= world->node_count; j++) {
            world->cut[i][j] = 0;
        }
    }
}

/* A slow disk catches up: all writes under way are stored now. */
static void drain_disk(struct world *world, struct node *node)
{
    size_t waiting = 0;

    node->disk_slow_until = 0;
    node->disk_fails_next = false;
    node->disk_free_at = world->now;
    for (const struct pending_write *w = node->is_up ? node->writes : NULL; w; w = w->next) {
        waiting++;
    }
    for (; waiting > 0; waiting--) {
        node_stored(world, node);
    }
}

/* Nodes that are down start, paused ones wake, links and disks work again. */
void faults_stop(struct world *world)
{
    struct raft_input eligible = {.type = RAFT_IN_ELIGIBLE, .eligible = true};

    heal_network(world);
    for (raft_id id = 1; id <= world->node_count; id++) {
        struct node *node = &world->nodes[id];
        struct raft_status status;
        if (node->is_up && node->watch.has_killed) {
            node_crash(world, node);
        }
        node->eligible = true;
        node->paused_until = world->now;
        node->is_paused = false;
        drain_disk(world, node);
        if (node->is_up) {
            raft_get_status(node->raft, &status);
            if (status.storage_failed || node->disk_failed) {
                node_crash(world, node);
            }
        }
        if (node->is_up) {
            node_step(world, node, &eligible);
        }
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        struct node *node = &world->nodes[id];
        if (node->is_up) {
            node_connect(world, node);
        } else if (!node->is_refused) {
            node_start(world, node);
        }
    }
}
