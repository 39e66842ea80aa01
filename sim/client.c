/* Requests of users: entries, reads, hand-overs, changes of members, compaction. */
#include "sim/client.h"

#include "sim/checks.h"
#include "sim/clock.h"
#include "sim/node.h"
#include "sim/profile.h"
#include "sim/queue.h"
#include "sim/trace.h"

#include <string.h>

enum { PROPOSALS_MAX = 2000, ENTRY_BYTES_MAX = 48, PROPOSALS_AT_ONCE = 4 };

/* The node that leads or believes that it does; sometimes any node. */
static struct node *choose(struct world *world)
{
    struct node *best = NULL;

    if (random_chance(&world->random, 100000)) {
        best = &world->nodes[1 + random_below(&world->random, world->node_count)];
    } else {
        for (raft_id id = 1; id <= world->node_count; id++) {
            struct node *node = &world->nodes[id];
            if (node->is_up && node->role == RAFT_LEADER &&
                (!best || node->role_term > best->role_term)) {
                best = node;
            }
        }
    }
    return best && best->is_up && world->now >= best->paused_until ? best : NULL;
}

/* Several at once, now and then. */
static void propose(struct world *world, struct node *node)
{
    unsigned char data[PROPOSALS_AT_ONCE][ENTRY_BYTES_MAX] = {0};
    struct raft_proposal items[PROPOSALS_AT_ONCE];
    struct raft_input input = {.type = RAFT_IN_PROPOSE, .propose = {.items = items, .count = 1}};

    if (random_chance(&world->random, 200000)) {
        input.propose.count += random_below(&world->random, PROPOSALS_AT_ONCE);
    }
    for (size_t i = 0; i < input.propose.count; i++) {
        uint64_t number = ++world->proposals;
        memcpy(data[i], &number, sizeof(number));
        items[i] = (struct raft_proposal){
            .data = data[i],
            .bytes =
                sizeof(number) + random_below(&world->random, ENTRY_BYTES_MAX - sizeof(number)),
            .asker = number % 3 == 0 ? RAFT_EVERYBODY : RAFT_NOBODY,
        };
    }
    if (world->proposals <= PROPOSALS_MAX || world->is_calm) {
        node_step(world, node, &input);
    }
}

static void ask_to_read(struct world *world)
{
    struct node *node = &world->nodes[1 + random_below(&world->random, world->node_count)];
    struct raft_input input = {.type = RAFT_IN_READ};

    if (node->is_up && world->now >= node->paused_until) {
        input.read.context = ++world->checks.reads_asked;
        input.read.by_lease = random_chance(&world->random, 500000);
        checks_read_asked(world, input.read.context);
        node_step(world, node, &input);
    }
}

void client_next(struct world *world)
{
    struct node *node = choose(world);

    if (world->is_silent) {
        return;
    }
    if (random_chance(&world->random, 200000)) {
        ask_to_read(world);
    } else if (node) {
        propose(world, node);
    }
    queue_push(world, (struct event){.kind = EVENT_CLIENT,
                                     .at = world->now + 1 +
                                           random_between(&world->random, 0,
                                                          2 * world->profile.client_every)});
}

void client_transfer(struct world *world, struct node *leader)
{
    struct raft_input input = {.type = RAFT_IN_TRANSFER};
    int64_t wait = random_between(&world->random, 0, world->profile.settings.lease.ns);

    if (random_chance(&world->random, 500000)) {
        input.transfer.to = 1 + random_below(&world->random, world->node_count);
    }
    input.transfer.deadline = instant_add(clock_local(leader, world->now), SPAN_NS(wait));
    input.transfer.or_stay = random_chance(&world->random, 500000);
    trace_say(world, leader->id, "is to hand over to n%llu", (unsigned long long)input.transfer.to);
    node_step(world, leader, &input);
}

/* Adds, drops or changes some members of the configuration in force. Some wanted members never
 * reply (ids above node_count), but these are never forced, since that may stop the group. */
void client_reconfigure(struct world *world, struct node *leader)
{
    const struct raft_configuration *now = raft_get_configuration(leader->raft);
    struct raft_member members[SIM_NODES_MAX];
    struct raft_configuration wanted = {.members = members};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};
    bool is_forced = random_chance(&world->random, 500000);
    uint32_t change_ppm = random_chance(&world->random, 500000) ? 200000 : 600000;
    raft_id last =
        is_forced || world->node_count >= SIM_STRANGER ? world->node_count : SIM_STRANGER - 1;
    size_t electable = 0;

    for (raft_id id = 1; id <= last; id++) {
        const struct raft_member *member = raft_configuration_find(now, id);
        if (member) {
            members[wanted.count] = *member;
            members[wanted.count].old_weight = 0;
        }
        if (random_chance(&world->random, change_ppm)) {
            if (member && random_chance(&world->random, 500000)) {
                continue;
            }
            profile_random_member(world, id, &members[wanted.count]);
        } else if (!member) {
            continue;
        }
        electable += members[wanted.count].kind == RAFT_VOTER && members[wanted.count].weight > 0;
        wanted.count++;
    }
    input.is_forced = is_forced;
    if (electable > 0) {
        trace_say(world, leader->id, "is asked for %zu members", wanted.count);
        node_step(world, leader, &input);
    }
}

void client_compact(struct world *world, struct node *node)
{
    unsigned char data[SIM_SNAPSHOT_MAX];
    struct raft_input input = {.type = RAFT_IN_COMPACT};
    struct raft_status status;
    uint64_t chain;
    size_t bytes = sizeof(chain) + random_below(&world->random, sizeof(data) - sizeof(chain));

    raft_get_status(node->raft, &status);
    if (status.applied_index < status.first_index) {
        return;
    }
    input.compact.index =
        status.first_index +
        random_below(&world->random, status.applied_index - status.first_index + 1);
    chain = checks_committed_chain(world, input.compact.index);
    memcpy(data, &chain, sizeof(chain));
    for (size_t i = sizeof(chain); i < bytes; i++) {
        data[i] = (unsigned char)(chain + i);
    }
    input.compact.data = data;
    input.compact.bytes = bytes;
    node_step(world, node, &input);
}
