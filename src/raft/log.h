/* The entries after the snapshot, in memory, each with the write that stores it. */
#ifndef RAFT_LOG_H
#define RAFT_LOG_H

#include "raft/raft.h"

struct raft_log {
    struct raft_entry *entries; /* entries[0] is at snapshot_index + 1; data owned */
    uint64_t *write_ids;        /* the write that stores entries[i]; 0: stored before the start */
    size_t count;
    size_t capacity;
    raft_index snapshot_index;
    raft_term snapshot_term;
};

void log_fini(struct raft_log *log);
raft_index log_last_index(const struct raft_log *log);
raft_term log_last_term(const struct raft_log *log);
/* The term at `index`, the snapshot's own index included; 0 if the log has no such entry. */
raft_term log_term_at(const struct raft_log *log, raft_index index);
const struct raft_entry *log_at(const struct raft_log *log, raft_index index); /* NULL: no entry */
/* Copies the entries and their data; BATON_ENOMEM leaves the log as it was. */
int log_append(struct raft_log *log, const struct raft_entry *entries, size_t count,
               uint64_t write_id);
/* Drops the entry at `from` and all after it. */
void log_truncate(struct raft_log *log, raft_index from);
/* Drops the entries up to `through`: a snapshot of that index and term holds them. */
void log_compact(struct raft_log *log, raft_index through, raft_term term);
/* Drops all entries and begins after this snapshot. */
void log_reset(struct raft_log *log, raft_index snapshot_index, raft_term snapshot_term);
/* The highest index up to which all entries are covered by writes 1 to write_id; all entries up to
 * `from` are known to be. */
raft_index log_stored_through(const struct raft_log *log, raft_index from, uint64_t write_id);
/* How many entries from `first` on fit into bytes_max: at least one, if there is one. */
size_t log_fitting(const struct raft_log *log, raft_index first, size_t bytes_max);

/* A copy that the caller owns; NULL for no bytes; BATON_ENOMEM. */
int data_copy(void **ret, const void *data, size_t bytes);

#endif
