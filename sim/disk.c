/* A node's disk, as a database with one fsync a commit gives it: each write is stored as a whole or
 * not at all, in order, some time after it was asked for.
 *
 *   asked (disk_write) ──time──▶ stored (disk_done) ──▶ RAFT_IN_WRITTEN, held messages leave
 *   crash: of the writes under way a few of the first may be stored; the rest is lost, a torn last
 *          one with it, as the checksum of the journal sees to
 *   error: the write is stored or not, nobody can say; the process is told, and from then on a disk
 *          that claims success stores nothing more for it
 */
#include "sim/world.h"

#include <string.h>

uint64_t chain_of(uint64_t before, raft_term term, enum raft_entry_kind kind, const void *data,
                  size_t bytes)
{
    uint64_t hash = before ^ term * 0x9e3779b97f4a7c15u ^ ((uint64_t)kind << 60);
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        hash = (hash ^ word) * 0xbf58476d1ce4e5b9u;
        hash ^= hash >> 31;
    }
    hash = (hash ^ bytes) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}

bool journal_at(const struct journal *journal, raft_index index, raft_term *term, uint64_t *chain)
{
    if (index == journal->base) {
        *term = journal->base_term;
        *chain = journal->base_chain;
        return true;
    }
    if (index < journal->base || index > journal->base + journal->count) {
        return false;
    }
    *term = journal->records[index - journal->base - 1].term;
    *chain = journal->records[index - journal->base - 1].chain;
    return true;
}

static raft_index last_of(const struct journal *journal)
{
    return journal->base + journal->count;
}

static void rebase(struct journal *journal, const struct raft_snapshot *snapshot, uint64_t chain)
{
    size_t dropped = journal->count;

    if (snapshot->index < journal->base) {
        dropped = journal->count; /* a snapshot that goes back: the checks speak of it */
    } else if (snapshot->index - journal->base < journal->count) {
        dropped = (size_t)(snapshot->index - journal->base);
    }
    journal->count -= dropped;
    if (journal->count > 0 && dropped > 0) {
        memmove(journal->records, journal->records + dropped,
                journal->count * sizeof(*journal->records));
    }
    journal->base = snapshot->index;
    journal->base_term = snapshot->term;
    journal->base_chain = chain;
}

static void append(struct journal *journal, const struct raft_entry *entry)
{
    uint64_t before =
        journal->count > 0 ? journal->records[journal->count - 1].chain : journal->base_chain;
    struct record *record;

    journal->records = grow_array(journal->records, &journal->capacity, journal->count + 1,
                                  sizeof(*journal->records));
    record = &journal->records[journal->count++];
    *record = (struct record){
        .term = entry->term, .kind = entry->kind, .data = entry->data, .bytes = entry->bytes};
    record->chain = chain_of(before, entry->term, entry->kind, entry->data, entry->bytes);
}

static void journal_write(struct world *world, struct node *node, struct journal *journal,
                          const struct pending_write *pending)
{
    const struct raft_write *write = &pending->write;

    if (write->snapshot) {
        rebase(journal, write->snapshot, pending->base_chain);
    }
    if (write->truncates && write->truncate_from <= last_of(journal)) {
        if (write->truncate_from <= journal->base) {
            violated(world, "lost-snapshot", "node %llu truncates from %llu, its snapshot has %llu",
                     (unsigned long long)node->id, (unsigned long long)write->truncate_from,
                     (unsigned long long)journal->base);
        }
        journal->count = (size_t)(write->truncate_from - journal->base - 1);
    }
    if (write->entry_count > 0 && write->first_index != last_of(journal) + 1) {
        violated(world, "gap-in-log", "node %llu writes entry %llu after entry %llu",
                 (unsigned long long)node->id, (unsigned long long)write->first_index,
                 (unsigned long long)last_of(journal));
    }
    for (size_t i = 0; i < write->entry_count; i++) {
        append(journal, &write->entries[i]);
    }
}

void configuration_to_arena(struct world *world, struct raft_configuration *ret,
                            const struct raft_configuration *from)
{
    *ret = *from;
    ret->members = arena_copy(&world->arena, from->members, from->count * sizeof(*from->members));
}

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
    struct raft_input input = {.type = RAFT_IN_STORAGE_FAILED};

    trace_say(world, node->id, "write %llu failed", (unsigned long long)pending->write.id);
    node->disk_fails_next = false;
    node->disk_failed = true;
    if (random_chance(&world->random, 500000)) {
        store(world, node, pending);
    }
    node->held = NULL; /* what stands on it never leaves */
    node->held_end = &node->held;
    node_step(world, node, &input);
}

void disk_done(struct world *world, struct node *node)
{
    struct pending_write *pending;
    struct raft_input input = {.type = RAFT_IN_WRITTEN};

    if (!node->writes) {
        return;
    }
    pending = take_oldest(node);
    if (node->disk_fails_next && !node->disk_failed) {
        fail(world, node, pending);
        return;
    }
    if (!node->disk_failed) {
        store(world, node, pending);
    }
    trace_say(world, node->id, "stored write %llu", (unsigned long long)pending->write.id);
    node->stored_write = pending->write.id;
    send_held(world, node);
    input.write_id = pending->write.id;
    node_step(world, node, &input);
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
