/* The rules for the members.
 *
 *   members-differ     the members in force are not the last ones in the log, or the members of a
 *                      snapshot are not those that were committed at its index
 *   unfit-leader       a witness, a learner or a cordoned node acquires leadership
 */
#include "sim/members.h"

#include "sim/arena.h"
#include "sim/journal.h"
#include "sim/verdict.h"

#include <string.h>

static bool are_equal(const struct raft_configuration *a, const struct raft_configuration *b)
{
    if (a->count != b->count || a->is_joint != b->is_joint) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct raft_member *x = &a->members[i];
        const struct raft_member *y = &b->members[i];
        if (x->id != y->id || x->kind != y->kind || x->weight != y->weight ||
            x->old_weight != y->old_weight || x->is_leaving != y->is_leaving) {
            return false;
        }
    }
    return true;
}

static void add(struct world *world, const struct raft_configuration *members, raft_index index)
{
    struct committed_members *added = arena_take(&world->arena, sizeof(*added));

    *added = (struct committed_members){.before = world->checks.members, .index = index};
    configuration_to_arena(world, &added->members, members);
    world->checks.members = added;
}

void members_begin(struct world *world, const struct raft_configuration *first)
{
    world->checks.members = NULL;
    add(world, first, 0);
}

static const struct record *record_at(const struct journal *journal, raft_index index)
{
    bool is_there = index > journal->base && index <= journal->base + journal->count;
    return is_there ? &journal->records[index - journal->base - 1] : NULL;
}

void members_committed(struct world *world, const struct node *node, raft_index index)
{
    const struct record *record = record_at(&node->memory, index);
    struct raft_configuration members;

    if (record && record->kind == RAFT_ENTRY_CONFIGURATION &&
        raft_configuration_decode(&members, record->data, record->bytes) == BATON_OK) {
        add(world, &members, index);
        raft_configuration_fini(&members);
    }
}

static void check_last(struct world *world, const struct node *node)
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    raft_index at = node->memory.base + node->memory.count;
    struct raft_configuration last;
    bool are_same;

    while (at > node->memory.base &&
           record_at(&node->memory, at)->kind != RAFT_ENTRY_CONFIGURATION) {
        at--;
    }
    if (at == node->memory.base) {
        are_same = are_equal(now, &node->base_members);
    } else {
        const struct record *record = record_at(&node->memory, at);
        if (raft_configuration_decode(&last, record->data, record->bytes) != BATON_OK) {
            return; /* out of memory */
        }
        are_same = are_equal(now, &last);
        raft_configuration_fini(&last);
    }
    if (!are_same) {
        violated(world, "members-differ",
                 "node %llu goes by other members than those of entry %llu",
                 (unsigned long long)node->id, (unsigned long long)at);
    }
}

static void check_snapshot(struct world *world, const struct node *node,
                           const struct raft_snapshot *snapshot)
{
    const struct committed_members *committed = world->checks.members;

    while (committed->index > snapshot->index) {
        committed = committed->before;
    }
    if (snapshot->configuration.count == 0) {
        return; /* a node that joined by the log alone does not know the first members */
    }
    if (!are_equal(&snapshot->configuration, &committed->members)) {
        violated(world, "members-differ",
                 "node %llu stores a snapshot of entry %llu with other members than those of %llu",
                 (unsigned long long)node->id, (unsigned long long)snapshot->index,
                 (unsigned long long)committed->index);
    }
}

void members_stepped(struct world *world, const struct node *node, const struct raft_update *update)
{
    const struct raft_write *write = update->write;
    bool changes;

    if (!write) {
        return;
    }
    changes = write->truncates || write->snapshot;
    for (size_t i = 0; i < write->entry_count; i++) {
        changes |= write->entries[i].kind == RAFT_ENTRY_CONFIGURATION;
    }
    if (changes) {
        check_last(world, node);
    }
    if (write->snapshot) {
        check_snapshot(world, node, write->snapshot);
    }
}

/* While a change is under way, a node that may not lead after it may still have to finish it. */
void members_acquired(struct world *world, const struct node *node)
{
    const struct raft_member *member =
        raft_configuration_find(raft_get_configuration(node->raft), node->id);
    bool is_voter = member && member->kind == RAFT_VOTER && member->weight + member->old_weight > 0;

    if (!node->eligible || (!is_voter && !node->status.is_changing)) {
        violated(world, "unfit-leader", "node %llu leads, which is %s",
                 (unsigned long long)node->id, node->eligible ? "no voter" : "cordoned");
    }
}

static bool is_quorum_up(const struct world *world, const struct raft_configuration *c)
{
    uint64_t all = 0, has = 0, all_old = 0, has_old = 0;
    bool may_lead = false;

    for (size_t i = 0; i < c->count; i++) {
        const struct raft_member *member = &c->members[i];
        uint64_t is_up = member->id <= world->node_count && world->nodes[member->id].is_up;
        all += member->weight;
        has += member->weight * is_up;
        all_old += member->old_weight;
        has_old += member->old_weight * is_up;
        may_lead |=
            is_up && !member->is_leaving && member->kind == RAFT_VOTER && member->weight > 0;
    }
    return may_lead && 2 * has > all && (!c->is_joint || 2 * has_old > all_old);
}

bool members_are_enough(const struct world *world)
{
    bool is_any = false;

    if (!is_quorum_up(world, &world->checks.members->members)) {
        return false; /* the nodes that are up may not know the last change */
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        const struct node *node = &world->nodes[id];
        const struct raft_configuration *c =
            node->is_up ? raft_get_configuration(node->raft) : NULL;
        if (!c || !raft_configuration_find(c, id)) {
            continue;
        }
        is_any = true;
        if (!is_quorum_up(world, c)) {
            return false;
        }
    }
    return is_any;
}
