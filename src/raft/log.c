/* The entries after the snapshot, in memory, each with the write that stores it. */
#include "raft/log.h"

#include "raft/mutants.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 16, SHRINK_AT = 8 };

void log_fini(struct raft_log *log)
{
    log_truncate(log, log->snapshot_index + 1);
    free(log->entries);
    free(log->write_ids);
    log->entries = NULL;
    log->write_ids = NULL;
    log->capacity = 0;
}

raft_index log_last_index(const struct raft_log *log)
{
    return log->snapshot_index + log->count;
}

raft_term log_last_term(const struct raft_log *log)
{
    return log->count > 0 ? log->entries[log->count - 1].term : log->snapshot_term;
}

const struct raft_entry *log_at(const struct raft_log *log, raft_index index)
{
    if (index <= log->snapshot_index || index > log_last_index(log)) {
        return NULL;
    }
    return &log->entries[index - log->snapshot_index - 1];
}

raft_term log_term_at(const struct raft_log *log, raft_index index)
{
    const struct raft_entry *entry = log_at(log, index);
    if (entry) {
        return entry->term;
    }
    return index == log->snapshot_index ? log->snapshot_term : 0;
}

static int reserve(struct raft_log *log, size_t count)
{
    size_t capacity = log->capacity ? log->capacity : CAPACITY_MIN;
    struct raft_entry *entries;
    uint64_t *write_ids;

    if (log->count + count <= log->capacity) {
        return BATON_OK;
    }
    while (capacity < log->count + count) {
        capacity *= 2;
    }
    entries = realloc(log->entries, capacity * sizeof(*entries));
    if (!entries) {
        return BATON_ENOMEM;
    }
    log->entries = entries;
    write_ids = realloc(log->write_ids, capacity * sizeof(*write_ids));
    if (!write_ids) {
        return BATON_ENOMEM; /* entries has only grown, so `capacity` is still right */
    }
    log->write_ids = write_ids;
    log->capacity = capacity;
    return BATON_OK;
}

int data_copy(void **ret, const void *data, size_t bytes)
{
    void *copy = NULL;

    if (bytes > 0) {
        copy = malloc(bytes);
        if (!copy) {
            return BATON_ENOMEM;
        }
        memcpy(copy, data, bytes);
    }
    *ret = copy;
    return BATON_OK;
}

static int copy_entry(struct raft_entry *ret, const struct raft_entry *from)
{
    void *data;

    if (data_copy(&data, from->data, from->bytes) != BATON_OK) {
        return BATON_ENOMEM;
    }
    *ret = *from;
    ret->data = data;
    return BATON_OK;
}

int log_append(struct raft_log *log, const struct raft_entry *entries, size_t count,
               uint64_t write_id)
{
    size_t before = log->count;

    if (reserve(log, count) != BATON_OK) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (copy_entry(&log->entries[log->count], &entries[i]) != BATON_OK) {
            log_truncate(log, log->snapshot_index + before + 1);
            return BATON_ENOMEM;
        }
        log->write_ids[log->count] = write_id;
        log->count++;
    }
    return BATON_OK;
}

void log_truncate(struct raft_log *log, raft_index from)
{
    RAFT_INVARIANT(from > log->snapshot_index);
    while (log_last_index(log) >= from) {
        log->count--;
        free((void *)log->entries[log->count].data);
    }
}

/* A burst of entries needs room only until they are compacted. What does not get smaller does no
 * harm. */
static void shrink(struct raft_log *log)
{
    size_t capacity = log->count > CAPACITY_MIN ? log->count : CAPACITY_MIN;
    void *smaller;

    if (log->capacity / SHRINK_AT < capacity) {
        return;
    }
    if ((smaller = realloc(log->entries, capacity * sizeof(*log->entries)))) {
        log->entries = smaller;
    }
    if ((smaller = realloc(log->write_ids, capacity * sizeof(*log->write_ids)))) {
        log->write_ids = smaller;
    }
    log->capacity = capacity;
}

void log_compact(struct raft_log *log, raft_index through, raft_term term)
{
    size_t dropped = (size_t)(through - log->snapshot_index);

    RAFT_INVARIANT(through >= log->snapshot_index && through <= log_last_index(log));
    for (size_t i = 0; i < dropped; i++) {
        free((void *)log->entries[i].data);
    }
    log->count -= dropped;
    if (log->count > 0) {
        memmove(log->entries, log->entries + dropped, log->count * sizeof(*log->entries));
        memmove(log->write_ids, log->write_ids + dropped, log->count * sizeof(*log->write_ids));
    }
    log->snapshot_index = through;
    log->snapshot_term = term;
    shrink(log);
}

void log_reset(struct raft_log *log, raft_index snapshot_index, raft_term snapshot_term)
{
    log_truncate(log, log->snapshot_index + 1);
    log->snapshot_index = snapshot_index;
    log->snapshot_term = snapshot_term;
}

raft_index log_stored_through(const struct raft_log *log, raft_index from, uint64_t write_id)
{
    raft_index index = from > log->snapshot_index ? from : log->snapshot_index;
    while (index < log_last_index(log) && log->write_ids[index - log->snapshot_index] <= write_id) {
        index++;
    }
    return index;
}

size_t log_fitting(const struct raft_log *log, raft_index first, size_t bytes_max)
{
    size_t count = 0;
    size_t bytes = 0;
    const struct raft_entry *entry;

    while ((entry = log_at(log, first + count)) != NULL) {
        bytes += entry->bytes + 32; /* about the size of an entry's header in a message */
        if (count > 0 && bytes > bytes_max) {
            break;
        }
        count++;
    }
    return count;
}
