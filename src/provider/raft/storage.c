/* Opens the data directory, and writes to it. */
#include "base/crc32c.h"
#include "base/secret.h"
#include "provider/raft/storage_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite's log has these bytes from the start on, and is moved into the file before it is longer,
 * if there is a quiet moment. Each page of it has a header of 24 bytes. */
enum { LOG_ROOM = 1024 * 1024, LOG_PAGE = 4096, LOG_PAGES_DUE = LOG_ROOM / (LOG_PAGE + 24) / 2 };

#define ENTRY_COLUMNS                                                                              \
    " (idx INTEGER PRIMARY KEY, term INTEGER NOT NULL, kind INTEGER NOT NULL,"                     \
    " data BLOB NOT NULL, sum INTEGER NOT NULL);"

static const char schema[] =
    "CREATE TABLE identity (id INTEGER PRIMARY KEY CHECK (id = 1), cluster TEXT NOT NULL,"
    " node TEXT NOT NULL, member INTEGER NOT NULL, birth INTEGER NOT NULL,"
    " founders INTEGER NOT NULL, made_ns INTEGER NOT NULL, incarnation INTEGER NOT NULL,"
    " of_group INTEGER NOT NULL DEFAULT 0, refused TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE peer (id INTEGER PRIMARY KEY, birth INTEGER NOT NULL,"
    " incarnation INTEGER NOT NULL, term INTEGER NOT NULL, idx INTEGER NOT NULL);"
    "CREATE TABLE hard (id INTEGER PRIMARY KEY CHECK (id = 1), term INTEGER NOT NULL,"
    " vote INTEGER NOT NULL, promised_ns INTEGER NOT NULL, pledged_term INTEGER NOT NULL,"
    " pledged_to INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE snapshot (id INTEGER PRIMARY KEY CHECK (id = 1), idx INTEGER NOT NULL,"
    " term INTEGER NOT NULL, configuration BLOB NOT NULL, data BLOB NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE entry" ENTRY_COLUMNS;

/* In memory, and empty between two writes: see drop_through(). */
static const char kept[] = "PRAGMA temp_store=MEMORY; CREATE TEMP TABLE kept" ENTRY_COLUMNS;

static const char *const statement_texts[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_HARD] = "INSERT OR REPLACE INTO hard VALUES (1, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_SNAPSHOT] = "INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?, ?)",
    [STATEMENT_KEEP_AFTER] = "INSERT INTO kept SELECT * FROM entry WHERE idx > ?",
    [STATEMENT_DROP_ALL] = "DELETE FROM entry",
    [STATEMENT_PUT_BACK] = "INSERT INTO entry SELECT * FROM kept",
    [STATEMENT_FORGET_KEPT] = "DELETE FROM kept",
    [STATEMENT_DROP_FROM] = "DELETE FROM entry WHERE idx >= ?",
    [STATEMENT_ENTRY] = "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
};

/* ---- Sums ------------------------------------------------------------------------------------ */

static uint32_t sum_numbers(uint32_t sum, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t raw[8];
        for (int j = 0; j < 8; j++) {
            raw[j] = (uint8_t)(numbers[i] >> (8 * j));
        }
        sum = crc32c(sum, raw, sizeof(raw));
    }
    return sum;
}

uint32_t storage_sum_hard(const struct raft_hard_state *hard)
{
    uint64_t numbers[] = {hard->term, hard->vote, (uint64_t)hard->promised_max.ns,
                          hard->pledged_term, hard->pledged_to};
    return sum_numbers(0, numbers, 5);
}

uint32_t storage_sum_entry(raft_index index, const struct raft_entry *entry)
{
    uint64_t numbers[] = {index, entry->term, (uint64_t)entry->kind, entry->bytes};
    return crc32c(sum_numbers(0, numbers, 4), entry->data, entry->bytes);
}

uint32_t storage_sum_snapshot(raft_index index, raft_term term, const void *configuration,
                              size_t configuration_bytes, const void *data, size_t bytes)
{
    uint64_t numbers[] = {index, term, configuration_bytes, bytes};
    uint32_t sum = crc32c(sum_numbers(0, numbers, 4), configuration, configuration_bytes);
    return crc32c(sum, data, bytes);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* Of the file or its log; 0: none. SQLite's own sqlite3_system_errno() has it no longer here. */
static int last_errno(const struct storage *storage)
{
    sqlite3_file *log = NULL;
    int number = 0;

    (void)sqlite3_file_control(storage->db, NULL, SQLITE_FCNTL_LAST_ERRNO, &number);
    if (number == 0 &&
        sqlite3_file_control(storage->db, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
        log->pMethods) {
        (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    }
    return number;
}

int storage_error(const struct storage *storage, const char *doing, struct baton_error *reterr)
{
    int code = sqlite3_errcode(storage->db) & 0xff;
    int system;

    switch (code) {
    case SQLITE_FULL:
        return error_set(reterr, BATON_EFULL, "%s: %s: no space left", storage->path, doing);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(reterr, BATON_ECORRUPT, "%s: %s: %s; " STORAGE_WAY_OUT, storage->path,
                         doing, sqlite3_errmsg(storage->db));
    case SQLITE_NOMEM:
        return error_set(reterr, BATON_ENOMEM, "%s: %s: out of memory", storage->path, doing);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(reterr, BATON_EBUSY, "%s: %s: another program has it open", storage->path,
                         doing);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        system = sqlite3_system_errno(storage->db);
        if (system == ENOENT) { /* of a second try, without O_CREAT, where the first had no room */
            return error_set(reterr, BATON_EFULL,
                             "%s: %s: no file can be made beside it; has the disk room and inodes?",
                             storage->path, doing);
        }
        code = system == EMFILE || system == ENFILE || system == ENOMEM || system == EIO
                   ? BATON_EIO
                   : BATON_EAUTH;
        return error_set(reterr, code, "%s: %s: %s%s%s", storage->path, doing,
                         sqlite3_errmsg(storage->db), system ? ": " : "",
                         system ? strerror(system) : "");
    default:
        system = last_errno(storage);
        return error_set(reterr, BATON_EIO, "%s: %s: %s%s%s", storage->path, doing,
                         sqlite3_errmsg(storage->db), system ? ": " : "",
                         system ? strerror(system) : "");
    }
}

static int execute(struct storage *storage, const char *sql, const char *doing,
                   struct baton_error *reterr)
{
    if (sqlite3_exec(storage->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return storage_error(storage, doing, reterr);
    }
    return BATON_OK;
}

static int pragma_number(struct storage *storage, const char *sql, int64_t *ret,
                         struct baton_error *reterr)
{
    sqlite3_stmt *statement;
    int r = BATON_OK;

    if (sqlite3_prepare_v2(storage->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return storage_error(storage, "reading its header", reterr);
    }
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *ret = sqlite3_column_int64(statement, 0);
    } else {
        r = storage_error(storage, "reading its header", reterr);
    }
    (void)sqlite3_finalize(statement);
    return r;
}

/* ---- The directory --------------------------------------------------------------------------- */

/* Refuses a directory that other users may write to: they could replace our state. */
static int check_directory(const char *directory, struct baton_error *reterr)
{
    struct stat about;

    if (stat(directory, &about) != 0) {
        return error_set(reterr, error_from_errno(errno), "data directory %s: %s", directory,
                         strerror(errno));
    }
    if (!secret_has_own_path(directory)) {
        return error_set(reterr, BATON_EAUTH,
                         "data directory %s: a symbolic link of another user; give its own path",
                         directory);
    }
    if (about.st_mode & (S_IWGRP | S_IWOTH)) {
        return error_set(reterr, BATON_EAUTH,
                         "data directory %s: others may write in it (mode %04o); chmod 700 it, or "
                         "give a directory within it",
                         directory, (unsigned)about.st_mode & 07777u);
    }
    return BATON_OK;
}

static int lock_directory(struct storage *storage, const char *directory,
                          struct baton_error *reterr)
{
    char path[STORAGE_PATH_MAX];
    char text[32] = "";
    int r;

    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        return error_set(reterr, error_from_errno(errno), "data directory %s: %s", directory,
                         strerror(errno));
    }
    r = check_directory(directory, reterr);
    if (r != BATON_OK) {
        return r;
    }
    if (snprintf(path, sizeof(path), "%s/lock", directory) >= (int)sizeof(path) ||
        snprintf(storage->path, sizeof(storage->path), "%s/raft.db", directory) >=
            (int)sizeof(storage->path)) {
        return error_set(reterr, BATON_ETOOBIG, "data directory: its path is too long");
    }
    storage->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (storage->lock_fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    if (flock(storage->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t length = pread(storage->lock_fd, text, sizeof(text) - 1, 0);
        text[length > 0 ? strcspn(text, "\n") : 0] = '\0';
        return error_set(reterr, BATON_EBUSY,
                         "data directory %s: process %s has it; each node needs one of its own",
                         directory, text[0] ? text : "(unknown)");
    }
    (void)snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* Never truncated to 0: ext4 would then flush the file when the process ends, and a process
     * that waits for that end would wait for the disk. */
    if (pwrite(storage->lock_fd, text, strlen(text), 0) < 0 ||
        ftruncate(storage->lock_fd, (off_t)strlen(text)) != 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    return BATON_OK;
}

static int prepare(struct storage *storage, struct baton_error *reterr)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(storage->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &storage->statements[i], NULL) != SQLITE_OK) {
            return storage_error(storage, "preparing", reterr);
        }
    }
    return BATON_OK;
}

static bool write_birth(struct storage *storage, const struct raft_configuration *first);

/* Makes the database in one transaction: after a kill the next start finds nothing, rather than
 * half.
 */
static int create(struct storage *storage, const struct storage_identity *identity,
                  const struct raft_configuration *first, struct baton_error *reterr)
{
    char header[128];
    const struct storage_birth *born = &identity->born;
    char *insert = sqlite3_mprintf(
        "INSERT INTO identity (id, cluster, node, member, birth, founders, made_ns, incarnation)"
        " VALUES (1, %Q, %Q, %lld, %lld, %lld, %lld, %lld)",
        identity->cluster, identity->node, (sqlite3_int64)born->id, (sqlite3_int64)born->birth,
        (sqlite3_int64)born->founders, (sqlite3_int64)storage->made_ns,
        (sqlite3_int64)born->incarnation - 1);
    int r = insert ? BATON_OK : BATON_ENOMEM;

    (void)snprintf(header, sizeof(header), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                   STORAGE_APPLICATION_ID, STORAGE_VERSION);
    if (r == BATON_OK) {
        r = execute(storage, "BEGIN IMMEDIATE", "creating it", reterr);
    }
    if (r == BATON_OK) {
        r = execute(storage, schema, "creating it", reterr);
    }
    if (r == BATON_OK) {
        r = execute(storage, header, "creating it", reterr);
    }
    if (r == BATON_OK) {
        r = execute(storage, insert, "creating it", reterr);
    }
    if (r == BATON_OK) {
        r = prepare(storage, reterr);
    }
    if (r == BATON_OK && !write_birth(storage, first)) {
        r = storage_error(storage, "creating it", reterr);
    }
    sqlite3_free(insert);
    return r;
}

/* Checks whether the file is ours, empty, or foreign. */
static int check_header(struct storage *storage, bool *ret_is_new, struct baton_error *reterr)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t pages = 0;
    int r = pragma_number(storage, "PRAGMA application_id", &application, reterr);

    if (r == BATON_OK) {
        r = pragma_number(storage, "PRAGMA user_version", &version, reterr);
    }
    if (r == BATON_OK) {
        r = pragma_number(storage, "SELECT count(*) FROM sqlite_schema", &pages, reterr);
    }
    if (r != BATON_OK) {
        return r;
    }
    *ret_is_new = application == 0 && pages == 0;
    if (*ret_is_new) {
        return BATON_OK;
    }
    if (application != STORAGE_APPLICATION_ID) {
        return error_set(reterr, BATON_ECORRUPT, "%s: a SQLite file, but not one of Baton's",
                         storage->path);
    }
    if (version != STORAGE_VERSION) {
        return error_set(reterr, BATON_ENOTSUP, "%s: its format is %lld, this program knows %d",
                         storage->path, (long long)version, STORAGE_VERSION);
    }
    return BATON_OK;
}

static int check_integrity(struct storage *storage, struct baton_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int r = BATON_OK;

    if (sqlite3_prepare_v2(storage->db, "PRAGMA quick_check(1)", -1, &statement, NULL) !=
            SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        r = storage_error(storage, "checking it", reterr);
    } else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0) {
        r = error_set(reterr, BATON_ECORRUPT, "%s: damaged: %s; " STORAGE_WAY_OUT, storage->path,
                      (const char *)sqlite3_column_text(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    return r;
}

/* Writes the blocks of SQLite's log at the start; a clean end removes the log. A write to blocks
 * that a file does not have yet, or that were never written, costs the file system writes to its
 * journal, and an entry waits for them. Zeros are no valid page of the log. This is only for speed:
 * a full disk may still have room for votes. */
static int make_room(struct storage *storage, struct baton_error *reterr)
{
    static char zeros[16 * LOG_PAGE];
    sqlite3_file *log = NULL;
    sqlite3_int64 at = 0;

    if (sqlite3_file_control(storage->db, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK ||
        !log->pMethods || log->pMethods->xFileSize(log, &at) != SQLITE_OK || at >= LOG_ROOM) {
        return BATON_OK;
    }
    while (at < LOG_ROOM && log->pMethods->xWrite(log, zeros, sizeof(zeros), at) == SQLITE_OK) {
        at += (sqlite3_int64)sizeof(zeros);
    }
    return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) == SQLITE_OK
               ? BATON_OK
               : error_set(reterr, BATON_EIO, "%s-wal: fsync failed", storage->path);
}

/* Takes the place of SQLite's own hook, which moves the log and ignores a failure. */
static int on_log(void *userdata, sqlite3 *db, const char *name, int pages)
{
    struct storage *storage = userdata;
    (void)db;
    (void)name;

    storage->log_pages = pages;
    return SQLITE_OK;
}

static int open_database(struct storage *storage, const struct storage_identity *identity,
                         const struct raft_configuration *first, struct baton_error *reterr)
{
    static const char pragmas[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                  "PRAGMA cell_size_check=ON; PRAGMA secure_delete=FAST;"
                                  "PRAGMA cache_size=-256;";
    bool is_new = false;
    int r = storage_prepare_files(storage, reterr);

    if (r != BATON_OK) {
        return r;
    }
    if (sqlite3_open_v2(storage->path, &storage->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        return storage->db ? storage_error(storage, "opening it", reterr) : BATON_ENOMEM;
    }
    /* before the first read: then SQLite shares no memory with other processes through a file */
    r = execute(storage, "PRAGMA locking_mode=EXCLUSIVE", "opening it", reterr);
    if (r == BATON_OK) {
        r = check_header(storage, &is_new, reterr);
    }
    if (r == BATON_OK) {
        r = execute(storage, pragmas, "opening it", reterr);
    }
    if (r == BATON_OK) {
        r = execute(storage, kept, "opening it", reterr);
    }
    if (r == BATON_OK && is_new) {
        r = create(storage, identity, first, reterr);
    } else if (r == BATON_OK) {
        r = check_integrity(storage, reterr);
    }
    if (r == BATON_OK) {
        (void)sqlite3_wal_hook(storage->db, on_log, storage);
        r = make_room(storage, reterr);
    }
    return r == BATON_OK && !is_new ? prepare(storage, reterr) : r;
}

int storage_open(struct storage **ret, const struct storage_identity *identity,
                 const struct raft_configuration *first, struct storage_loaded *ret_loaded,
                 struct baton_error *reterr)
{
    struct storage *storage = calloc(1, sizeof(*storage));
    int r;

    if (!storage) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the storage");
    }
    storage->lock_fd = -1;
    r = lock_directory(storage, identity->directory, reterr);
    if (r == BATON_OK) {
        r = open_database(storage, identity, first, reterr);
    }
    if (r == BATON_OK) {
        r = storage_load(storage, identity, ret_loaded, reterr);
    }
    if (r != BATON_OK) {
        storage_close(storage);
        return r;
    }
    *ret = storage;
    return BATON_OK;
}

void storage_close(struct storage *storage)
{
    if (!storage) {
        return;
    }
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(storage->statements[i]);
    }
    if (storage->failed) { /* nothing more is written, not even a checkpoint of what was stored */
        (void)sqlite3_db_config(storage->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    (void)sqlite3_close(storage->db);
    if (storage->lock_fd >= 0) {
        (void)close(storage->lock_fd);
    }
    free(storage);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool run(struct storage *storage, enum statement which)
{
    sqlite3_stmt *statement = storage->statements[which];
    bool done = sqlite3_step(statement) == SQLITE_DONE;

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return done;
}

static void bind(struct storage *storage, enum statement which, int place, uint64_t value)
{
    (void)sqlite3_bind_int64(storage->statements[which], place, (sqlite3_int64)value);
}

static void bind_bytes(struct storage *storage, enum statement which, int place, const void *data,
                       size_t bytes)
{
    (void)sqlite3_bind_blob64(storage->statements[which], place, bytes > 0 ? data : "", bytes,
                              SQLITE_STATIC);
}

static bool write_hard(struct storage *storage, const struct raft_hard_state *hard)
{
    bind(storage, STATEMENT_HARD, 1, hard->term);
    bind(storage, STATEMENT_HARD, 2, hard->vote);
    bind(storage, STATEMENT_HARD, 3, (uint64_t)hard->promised_max.ns);
    bind(storage, STATEMENT_HARD, 4, hard->pledged_term);
    bind(storage, STATEMENT_HARD, 5, hard->pledged_to);
    bind(storage, STATEMENT_HARD, 6, storage_sum_hard(hard));
    return run(storage, STATEMENT_HARD);
}

/* The few entries behind the snapshot are put back: SQLite empties a table by whole pages, and
 * deletes a range of rows one by one. With 16 MiB of entries that is 10 ms and not 100 ms, in which
 * this node answers nobody. */
static bool drop_through(struct storage *storage, raft_index index)
{
    bind(storage, STATEMENT_KEEP_AFTER, 1, index);
    return run(storage, STATEMENT_KEEP_AFTER) && run(storage, STATEMENT_DROP_ALL) &&
           run(storage, STATEMENT_PUT_BACK) && run(storage, STATEMENT_FORGET_KEPT);
}

static bool write_snapshot(struct storage *storage, const struct raft_snapshot *snapshot)
{
    void *configuration = NULL;
    size_t bytes = 0;
    bool done;

    if (raft_configuration_encode(&snapshot->configuration, &configuration, &bytes) != BATON_OK) {
        return false;
    }
    bind(storage, STATEMENT_SNAPSHOT, 1, snapshot->index);
    bind(storage, STATEMENT_SNAPSHOT, 2, snapshot->term);
    bind_bytes(storage, STATEMENT_SNAPSHOT, 3, configuration, bytes);
    bind_bytes(storage, STATEMENT_SNAPSHOT, 4, snapshot->data, snapshot->bytes);
    bind(storage, STATEMENT_SNAPSHOT, 5,
         storage_sum_snapshot(snapshot->index, snapshot->term, configuration, bytes, snapshot->data,
                              snapshot->bytes));
    done = run(storage, STATEMENT_SNAPSHOT);
    free(configuration);
    return done && drop_through(storage, snapshot->index);
}

static bool write_birth(struct storage *storage, const struct raft_configuration *first)
{
    const struct raft_hard_state none = {0};
    const struct raft_snapshot empty = {.configuration = *first};

    return write_hard(storage, &none) && write_snapshot(storage, &empty) &&
           run(storage, STATEMENT_COMMIT);
}

static bool write_entry(struct storage *storage, raft_index index, const struct raft_entry *entry)
{
    bind(storage, STATEMENT_ENTRY, 1, index);
    bind(storage, STATEMENT_ENTRY, 2, entry->term);
    bind(storage, STATEMENT_ENTRY, 3, (uint64_t)entry->kind);
    bind_bytes(storage, STATEMENT_ENTRY, 4, entry->data, entry->bytes);
    bind(storage, STATEMENT_ENTRY, 5, storage_sum_entry(index, entry));
    return run(storage, STATEMENT_ENTRY);
}

static bool write_all(struct storage *storage, const struct raft_write *write)
{
    if (!run(storage, STATEMENT_BEGIN) || (write->hard && !write_hard(storage, write->hard))) {
        return false;
    }
    if (write->truncates) {
        bind(storage, STATEMENT_DROP_FROM, 1, write->truncate_from);
        if (!run(storage, STATEMENT_DROP_FROM)) {
            return false;
        }
    }
    if (write->snapshot && !write_snapshot(storage, write->snapshot)) {
        return false;
    }
    for (size_t i = 0; i < write->entry_count; i++) {
        if (!write_entry(storage, write->first_index + i, &write->entries[i])) {
            return false;
        }
    }
    return run(storage, STATEMENT_COMMIT);
}

int storage_write(struct storage *storage, const struct raft_write *write,
                  struct baton_error *reterr)
{
    int r;

    if (storage->failed) {
        return error_set(reterr, BATON_EIO,
                         "%s: an earlier write failed; nothing more is written until a restart",
                         storage->path);
    }
    if (write_all(storage, write)) {
        storage->unsynced = 0;
        return storage->log_pages < STORAGE_LOG_PAGES_MAX ? BATON_OK
                                                          : storage_checkpoint(storage, reterr);
    }
    storage->failed = true;
    r = storage_error(storage, "writing", reterr);
    (void)run(storage, STATEMENT_ROLLBACK);
    return r;
}

static int write_text(struct storage *storage, char *sql, const char *doing,
                      struct baton_error *reterr)
{
    int r = BATON_OK;

    if (!sql) {
        return error_set(reterr, BATON_ENOMEM, "%s: out of memory", storage->path);
    }
    if (!storage->failed) { /* otherwise reported already by the write that failed */
        r = execute(storage, sql, doing, reterr);
        storage->failed = r != BATON_OK;
    }
    sqlite3_free(sql);
    return r;
}

bool storage_is_log_due(const struct storage *storage)
{
    return storage->log_pages >= LOG_PAGES_DUE;
}

/* The first write behind a checkpoint begins the log anew, which costs a second fsync: it is made
 * here, where nobody waits for it. */
int storage_checkpoint(struct storage *storage, struct baton_error *reterr)
{
    if (storage->failed || storage->log_pages <= 1) {
        return BATON_OK; /* reported already by the write that failed; nothing to move */
    }
    if (sqlite3_wal_checkpoint_v2(storage->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) !=
        SQLITE_OK) {
        storage->failed = true;
        return storage_error(storage, "checkpoint", reterr);
    }
    return write_text(storage, sqlite3_mprintf("PRAGMA user_version = %d", STORAGE_VERSION),
                      "checkpoint", reterr);
}

/* ---- Identity -------------------------------------------------------------------------------- */

int storage_set_group(struct storage *storage, uint64_t group, struct baton_error *reterr)
{
    return write_text(storage,
                      sqlite3_mprintf("UPDATE identity SET of_group = %lld", (sqlite3_int64)group),
                      "storing its group", reterr);
}

int storage_cast_out(struct storage *storage, const char *text, struct baton_error *reterr)
{
    return write_text(storage, sqlite3_mprintf("UPDATE identity SET refused = %Q", text),
                      "storing that it was refused", reterr);
}

int storage_remember(struct storage *storage, const struct storage_peer *peer,
                     struct baton_error *reterr)
{
    bool had_failed = storage->failed;
    bool is_synced = storage->unsynced == STORAGE_UNSYNCED_MAX;
    int r = write_text(
        storage,
        sqlite3_mprintf("PRAGMA synchronous=%s;"
                        "INSERT OR REPLACE INTO peer VALUES (%lld, %lld, %lld, %lld, %lld);"
                        "PRAGMA synchronous=FULL;",
                        is_synced ? "FULL" : "NORMAL", (sqlite3_int64)peer->id,
                        (sqlite3_int64)peer->birth, (sqlite3_int64)peer->incarnation,
                        (sqlite3_int64)peer->term, (sqlite3_int64)peer->index),
        "remembering a peer", reterr);

    storage->unsynced = is_synced ? 0 : storage->unsynced + 1;
    if (r == BATON_EFULL && !had_failed) { /* nothing was written, and nothing depends on it */
        storage->failed =
            execute(storage, "PRAGMA synchronous=FULL", "setting its safety", NULL) != BATON_OK;
    }
    return storage->failed && r == BATON_EFULL ? BATON_EIO : r;
}
