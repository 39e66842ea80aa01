/* A node's log, with a chain of hashes over its entries. */
#include "sim/journal.h"

#include "sim/arena.h"
#include "sim/verdict.h"

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
        dropped = journal->count; /* a snapshot that goes back; a check reports it */
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

void journal_write(struct world *world, struct node *node, struct journal *journal,
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
