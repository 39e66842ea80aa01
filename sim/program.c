/* The program beside a process (`baton run`), which may live on after it.
 *
 *   acquired ──▶ the program runs ──lease void or over, by the wrapper──▶ ended
 *                     │ the wrapper dies: it is outlived
 *                     ├── the kernel's signal at its parent's death, at once ──▶ ended
 *                     ├── its guardian, sooner or later, which then certifies ──▶ ended
 *                     ├── the next life of the wrapper, if it finds it ────────▶ ended
 *                     └── the end of the lease, whatever else has died ────────▶ ended
 */
#include "sim/program.h"

#include "sim/acting.h"
#include "sim/proofs.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/verdict.h"

void program_follow(struct world *world, struct node *node)
{
    struct program *program = &node->program;

    if (!node->is_outlived || (!node->lease.held && program->life != node->incarnation)) {
        return;
    }
    if (node_leads(world, node) && program->life < node->incarnation && program_acts(world, node)) {
        violated(world, "two-programs",
                 "node %llu starts its program beside that of incarnation %llu",
                 (unsigned long long)node->id, (unsigned long long)program->life);
    }
    *program = (struct program){.runs = node->lease.held,
                                .life = node->incarnation,
                                .was_endless =
                                    node->lease.end.ns == INSTANT_NEVER.ns ||
                                    (program->was_endless && program->life == node->incarnation),
                                .lease = node->lease};
}

/* The process has died. */
void program_outlive(struct world *world, struct node *node)
{
    bool has_end = node->program.lease.end.ns != INSTANT_NEVER.ns;

    if (!program_outlives(world, node, node->incarnation)) {
        return;
    }
    if (random_chance(&world->random, 300000)) {
        node->program.runs = false;
        return;
    }
    trace_say(world, node->id, "its program acts on");
    if (!has_end || random_chance(&world->random, 500000)) {
        int64_t most = world->profile.settings.lease.ns;
        queue_push(world, (struct event){.kind = EVENT_GUARDIAN,
                                         .at = world->now + random_between(&world->random, 0, most),
                                         .node = node->id,
                                         .number = node->incarnation});
    }
}

/* A starting process does this before it sends anything. It does not find a program that has left
 * the cgroup. But a program under a lease without end is always found: no other node can get a
 * lease then, yet the next life of this node can, and it is not silent. */
void program_look_for(struct world *world, struct node *node)
{
    if (program_acts(world, node) &&
        (node->program.was_endless || random_chance(&world->random, 300000))) {
        trace_say(world, node->id, "ends the program of its earlier life");
        node->program.runs = false;
    }
}

void program_guardian(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];

    if (node->program.life == event->number) {
        node->program.runs = false;
    }
    trace_say(world, node->id, "the guardian of incarnation %llu has ended its program",
              (unsigned long long)event->number);
    proofs_certify(world, node, event->number);
}
