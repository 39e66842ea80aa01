/* Data directories that the group does not recognise: emptied and started again under the same
 * name, or put back from an older copy. The driver's rule: each start sends a greeting first, and a
 * peer that knows another birth of that node, or a later start of it, refuses it for good.
 *
 * The model includes the cases that the rule covers: a peer that knows is up and reached. */
#include "sim/directory.h"

#include "sim/arena.h"
#include "sim/members.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/trace.h"

void directory_copy(struct world *world, struct node *node)
{
    struct directory *copy = arena_take(&world->arena, sizeof(*copy));

    *copy = (struct directory){.incarnation = node->incarnation,
                               .hard = node->hard,
                               .snapshot = node->snapshot,
                               .journal = node->disk};
    copy->journal.records = arena_copy(&world->arena, node->disk.records,
                                       node->disk.count * sizeof(*node->disk.records));
    node->copy = copy;
    trace_say(world, node->id, "its data directory is copied");
}

static bool is_known(const struct world *world, const struct node *node)
{
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (id != node->id && world->nodes[id].is_up && !network_is_cut(world, node->id, id) &&
            !network_is_cut(world, id, node->id)) {
            return true;
        }
    }
    return false;
}

static void put_back(struct node *node, const struct directory *from)
{
    struct record *records = node->disk.records;
    size_t capacity = node->disk.capacity;

    node->incarnation = from->incarnation;
    node->hard = from->hard;
    node->snapshot = from->snapshot;
    node->disk = from->journal;
    node->disk.records = grow_array(records, &capacity, from->journal.count + 1, sizeof(*records));
    node->disk.capacity = capacity;
    for (size_t i = 0; i < from->journal.count; i++) {
        node->disk.records[i] = from->journal.records[i];
    }
}

/* An emptied directory has another birth, and counts its starts from the wall clock. */
static void empty(struct world *world, struct node *node)
{
    struct directory born = {.incarnation = node->incarnation + 1000};

    if (node->id <= world->profile.nodes) {
        born.snapshot.configuration = world->first_members;
    }
    put_back(node, &born);
}

void directory_replace(struct world *world, struct node *node)
{
    bool is_older = node->copy && node->copy->incarnation < node->incarnation &&
                    random_chance(&world->random, 600000);
    bool is_taken = is_older ? SIM_MUTANT(OLDER_COPY_TAKEN) : SIM_MUTANT(BIRTH_NOT_COMPARED);

    if (!is_known(world, node)) {
        return;
    }
    node_crash(world, node);
    if (!members_are_enough(world)) {
        node_start(world, node);
        return;
    }
    if (is_older) {
        put_back(node, node->copy);
    } else {
        empty(world, node);
    }
    trace_say(world, node->id, "starts from %s directory", is_older ? "an older" : "an empty");
    if (is_taken) {
        node_start(world, node);
    } else {
        node->is_refused = true;
    }
}
