/* Messages in flight: delayed, lost, repeated, reordered; and links that are cut, in one direction
 * or in both. */
#include "sim/network.h"

#include "sim/arena.h"
#include "sim/checks_votes.h"
#include "sim/journal.h"
#include "sim/queue.h"

const struct raft_message *network_copy(struct world *world, const struct raft_message *message,
                                        instant made)
{
    struct outgoing *outgoing = arena_take(&world->arena, sizeof(*outgoing));
    struct raft_message *copy = &outgoing->message;

    *outgoing = (struct outgoing){.message = *message, .made = made};
    copy->is_outlived = world->nodes[message->from].is_outlived;

    if (copy->type == RAFT_MSG_APPEND) {
        size_t count = copy->append.entry_count;
        struct raft_entry *entries =
            arena_copy(&world->arena, copy->append.entries, count * sizeof(*entries));
        for (size_t i = 0; i < count; i++) {
            entries[i].data = arena_copy(&world->arena, entries[i].data, entries[i].bytes);
        }
        copy->append.entries = entries;
    } else if (copy->type == RAFT_MSG_SNAPSHOT) {
        copy->snapshot.data = arena_copy(&world->arena, copy->snapshot.data, copy->snapshot.bytes);
        if (copy->snapshot.configuration) {
            struct raft_configuration *configuration =
                arena_take(&world->arena, sizeof(*configuration));
            configuration_to_arena(world, configuration, copy->snapshot.configuration);
            copy->snapshot.configuration = configuration;
        }
    }
    return copy;
}

bool network_is_cut(const struct world *world, raft_id from, raft_id to)
{
    return world->cut[from][to] > 0;
}

static bool is_rough(const struct world *world)
{
    return !world->is_calm || world->is_rough;
}

static int64_t way(struct world *world)
{
    const struct profile *p = &world->profile;
    int64_t delay = p->delay + random_between(&world->random, 0, p->jitter);

    if (is_rough(world) && random_chance(&world->random, p->tail_ppm)) {
        delay += random_between(&world->random, 0, p->tail);
    }
    return delay;
}

/* `message` is in the arena. */
void network_send(struct world *world, struct node *from, const struct raft_message *message)
{
    const struct profile *p = &world->profile;
    struct event event = {
        .kind = EVENT_MESSAGE, .node = message->to, .peer = message->from, .message = message};

    checks_sent(world, from, message);
    if (message->to == RAFT_NOBODY || message->to > world->node_count ||
        network_is_cut(world, message->from, message->to)) {
        return;
    }
    if (is_rough(world) && random_chance(&world->random, p->loss_ppm)) {
        return;
    }
    event.at = world->now + way(world);
    event.number = message->type;
    queue_push(world, event);
    if (is_rough(world) && random_chance(&world->random, p->duplicate_ppm)) {
        event.at = world->now + way(world) + random_between(&world->random, 0, p->tail);
        queue_push(world, event);
    }
}

static void change(struct world *world, const struct partition *partition, int by)
{
    for (raft_id i = 1; i <= world->node_count; i++) {
        for (raft_id j = 1; j <= world->node_count; j++) {
            if (partition->cut[i] >> j & 1) {
                world->cut[i][j] = (uint8_t)(world->cut[i][j] + by);
            }
        }
    }
}

/* Each end learns some time later that the connection is up or down. */
static void tell_connection(struct world *world, raft_id node, raft_id peer, bool is_up)
{
    queue_push(world, (struct event){.kind = EVENT_CONNECTION,
                                     .at = world->now + way(world),
                                     .node = node,
                                     .peer = peer,
                                     .number = is_up});
}

static void tell_both(struct world *world, const struct partition *partition, bool is_up)
{
    for (raft_id i = 1; i <= world->node_count; i++) {
        for (raft_id j = 1; j <= world->node_count; j++) {
            if (i != j && ((partition->cut[i] >> j | partition->cut[j] >> i) & 1)) {
                tell_connection(world, i, j, is_up);
            }
        }
    }
}

void network_cut(struct world *world, const struct partition *partition, int64_t heal_at)
{
    change(world, partition, 1);
    if (random_chance(&world->random, 300000)) {
        tell_both(world, partition, false);
    }
    queue_push(world, (struct event){.kind = EVENT_HEAL, .at = heal_at, .partition = partition});
}

void network_heal(struct world *world, const struct partition *partition)
{
    change(world, partition, -1);
    tell_both(world, partition, true);
}

void network_connect(struct world *world, struct node *node)
{
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != node->id && world->nodes[id].is_up && !network_is_cut(world, id, node->id) &&
            !network_is_cut(world, node->id, id)) {
            tell_connection(world, id, node->id, true);
            tell_connection(world, node->id, id, true);
        }
    }
}
