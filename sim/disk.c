/* A node's disk. It behaves like a database with one fsync a commit: each write is stored as a
 * whole or not at all, in order, some time after the request.
 *
 *   requested (disk_write) ──time──▶ stored (disk_done) ──▶ RAFT_IN_WRITTEN, held messages leave
 *   crash: the first few of the writes under way may be stored; the rest is lost
 *   error: the write may or may not be stored; the process gets the error, and from then on the
 * disk reports success but stores nothing more for it
 */
#include "sim/disk.h"

#include "sim/arena.h"
#include "sim/checks.h"
#include "sim/checks_votes.h"
#include "sim/journal.h"
#include "sim/network.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/verdict.h"

#include <string.h>

static void copy_entries(struct world *world, struct raft_write *write)
{
    struct raft_entry *entries =
        arena_copy(&world->arena, write->entries, write->entry_count * sizeof(*entries));

    for (size_t i = 0; i < write->entry_count; i++) {
        entries[i].data = arena_copy(&world->arena, entries[i].data, entries[i].bytes);
    }
    write->entries = entries;
}

static uint64_t chain_at_base(struct world *world, struct node *node,
                              const struct raft_snapshot *snapshot)
{
    raft_term term;
    uint64_t chain;

    if (snapshot->index > world->checks.committed_count) {
        violated(world, "snapshot-of-uncommitted", "node %llu stores a snapshot of entry %llu",
                 (unsigned long long)node->id, (unsigned long long)snapshot->index);
    }
    if (journal_at(&node->memory, snapshot->index, &term, &chain) && term == snapshot->term) {
        return chain;
    }
    return checks_committed_chain(world, snapshot->index);
}

static struct pending_write *copy_write(struct world *world, struct node *node,
                                        const struct raft_write *write)
{
    struct pending_write *pending = arena_take(&world->arena, sizeof(*pending));

    *pending = (struct pending_write){.write = *write};
    if (write->hard) {
        pending->write.hard = arena_copy(&world->arena, write->hard, sizeof(*write->hard));
        node->asked = *write->hard;
    }
    if (write->snapshot) {
        struct raft_snapshot *snapshot =
            arena_copy(&world->arena, write->snapshot, sizeof(*write->snapshot));
        configuration_to_arena(world, &snapshot->configuration, &write->snapshot->configuration);
        snapshot->data = arena_copy(&world->arena, snapshot->data, snapshot->bytes);
        pending->write.snapshot = snapshot;
        pending->base_chain = chain_at_base(world, node, snapshot);
    }
    copy_entries(world, &pending->write);
    return pending;
}

void disk_write(struct world *world, struct node *node, const struct raft_write *write)
{
    struct pending_write *pending = copy_write(world, node, write);
    int64_t takes =
        world->profile.disk_delay + random_between(&world->random, 0, world->profile.disk_jitter);

    journal_write(world, node, &node->memory, pending);
    if (pending->write.snapshot) {
        node->base_members = pending->write.snapshot->configuration;
    }
    checks_written(world, node, &pending->write);
    *node->writes_end = pending;
    node->writes_end = &pending->next;
    if (world->now < node->disk_slow_until) {
        takes = takes * 20 + world->profile.settings.lease.ns / 4;
    }
    if (node->disk_free_at < world->now) {
        node->disk_free_at = world->now;
    }
    node->disk_free_at += takes;
    queue_push(world, (struct event){.kind = EVENT_DISK,
                                     .at = node->disk_free_at,
                                     .node = node->id,
                                     .life = node->incarnation});
}

static void store(struct world *world, struct node *node, const struct pending_write *pending)
{
    const struct raft_write *write = &pending->write;

    if (write->hard) {
        checks_stored(world, node, write->hard);
        node->hard = *write->hard;
    }
    if (write->snapshot) {
        node->snapshot = (struct stored_snapshot){.index = write->snapshot->index,
                                                  .term = write->snapshot->term,
                                                  .configuration = write->snapshot->configuration,
                                                  .data = write->snapshot->data,
                                                  .bytes = write->snapshot->bytes};
    }
    journal_write(world, node, &node->disk, pending);
}

static struct pending_write *take_oldest(struct node *node)
{
    struct pending_write *pending = node->writes;

    node->writes = pending->next;
    if (!node->writes) {
        node->writes_end = &node->writes;
    }
    return pending;
}

static void send_held(struct world *world, struct node *node)
{
    while (node->held && node->held->after_write <= node->stored_write) {
        const struct raft_message *message = node->held->message;
        node->held = node->held->next;
        if (!node->held) {
            node->held_end = &node->held;
        }
        network_send(world, node, message);
    }
}

static void fail(struct world *world, struct node *node, const struct pending_write *pending)
{
    trace_say(world, node->id, "write %llu failed", (unsigned long long)pending->write.id);
    node->disk_fails_next = false;
    node->disk_failed = true;
    if (random_chance(&world->random, 500000)) {
        store(world, node, pending);
    }
    node->held = NULL; /* the messages that wait for it never leave */
    node->held_end = &node->held;
}

bool disk_done(struct world *world, struct node *node, struct raft_input *ret)
{
    const struct pending_write *pending;

    if (!node->writes) {
        return false;
    }
    pending = take_oldest(node);
    if (node->disk_fails_next && !node->disk_failed) {
        fail(world, node, pending);
        *ret = (struct raft_input){.type = RAFT_IN_STORAGE_FAILED};
        return true;
    }
    if (!node->disk_failed) {
        store(world, node, pending);
    }
    trace_say(world, node->id, "stored write %llu", (unsigned long long)pending->write.id);
    node->stored_write = pending->write.id;
    send_held(world, node);
    *ret = (struct raft_input){.type = RAFT_IN_WRITTEN, .write_id = pending->write.id};
    return true;
}

void disk_crash(struct world *world, struct node *node)
{
    bool lucky = !node->disk_failed;

    while (node->writes) {
        struct pending_write *pending = take_oldest(node);
        lucky = lucky && random_chance(&world->random, world->profile.luck_ppm);
        if (lucky) {
            store(world, node, pending);
        }
    }
    node->held = NULL;
    node->held_end = &node->held;
    node->disk_failed = node->disk_fails_next = false;
}
