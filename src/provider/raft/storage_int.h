/* Shared by storage.c (writing), storage_files.c (the files before SQLite opens them) and
 * storage_load.c (reading). */
#ifndef PROVIDER_RAFT_STORAGE_INT_H
#define PROVIDER_RAFT_STORAGE_INT_H

#include "provider/raft/storage.h"

#include <sqlite3.h>

enum {
    STORAGE_APPLICATION_ID = 0x42415431, /* "BAT1" */
    STORAGE_VERSION = 3,
    STORAGE_PATH_MAX = 4096,
    STORAGE_UNSYNCED_MAX = 8,     /* writes in a row that wait for no sync */
    STORAGE_LOG_PAGES_MAX = 1000, /* then SQLite's log is moved at once, and a write waits for it */
};

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_HARD,
    STATEMENT_SNAPSHOT,
    STATEMENT_KEEP_AFTER,
    STATEMENT_DROP_ALL,
    STATEMENT_PUT_BACK,
    STATEMENT_FORGET_KEPT,
    STATEMENT_DROP_FROM,
    STATEMENT_ENTRY,
    STATEMENT_COUNT
};

struct storage {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int lock_fd;
    bool failed;
    int log_pages;   /* of SQLite's log, since its last beginning */
    int unsynced;    /* writes of storage_remember() since the last one that was synced */
    int64_t made_ns; /* the file's creation time; 0: the file system has none */
    char path[STORAGE_PATH_MAX];
};

uint32_t storage_sum_hard(const struct raft_hard_state *hard);
uint32_t storage_sum_entry(raft_index index, const struct raft_entry *entry);
uint32_t storage_sum_snapshot(raft_index index, raft_term term, const void *configuration,
                              size_t configuration_bytes, const void *data, size_t bytes);
/* Fills in the error of SQLite's last failure, with the path. */
int storage_error(const struct storage *storage, const char *doing, struct baton_error *reterr);

/* Before SQLite opens the files: makes them private and looks at what cannot be seen later. */
int storage_prepare_files(struct storage *storage, struct baton_error *reterr);

int storage_load(struct storage *storage, const struct storage_identity *identity,
                 struct storage_loaded *ret, struct baton_error *reterr);

#endif
