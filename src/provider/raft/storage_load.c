/* Reads the stored state, and checks all of it. */
#include "provider/raft/storage_int.h"

#include <stdlib.h>
#include <string.h>

static int damaged(const struct storage *storage, const char *what, struct baton_error *reterr)
{
    return error_set(reterr, BATON_ECORRUPT,
                     "%s: %s is damaged (its checksum does not fit); " STORAGE_WAY_OUT,
                     storage->path, what);
}

static int query(const struct storage *storage, sqlite3_stmt **ret, const char *sql,
                 struct baton_error *reterr)
{
    if (sqlite3_prepare_v2(storage->db, sql, -1, ret, NULL) != SQLITE_OK) {
        return storage_error(storage, "reading it", reterr);
    }
    return BATON_OK;
}

static int one_row(const struct storage *storage, sqlite3_stmt **ret, const char *sql,
                   struct baton_error *reterr)
{
    int r = query(storage, ret, sql, reterr);

    if (r == BATON_OK && sqlite3_step(*ret) != SQLITE_ROW) {
        (void)sqlite3_finalize(*ret);
        *ret = NULL;
        r = damaged(storage, "the table of its state", reterr);
    }
    return r;
}

static uint64_t number(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static bool sum_fits(sqlite3_stmt *row, int column, uint32_t sum)
{
    return sqlite3_column_int64(row, column) == (sqlite3_int64)sum;
}

static void *copy_bytes(sqlite3_stmt *row, int column, size_t *ret_bytes)
{
    size_t bytes = (size_t)sqlite3_column_bytes(row, column);
    void *copy = malloc(bytes + 1);

    if (copy && bytes > 0) {
        memcpy(copy, sqlite3_column_blob(row, column), bytes);
    }
    *ret_bytes = bytes;
    return copy;
}

static int check_owner(const struct storage *storage, const struct storage_identity *identity,
                       sqlite3_stmt *row, struct baton_error *reterr)
{
    const char *cluster = (const char *)sqlite3_column_text(row, 0);
    const char *node = (const char *)sqlite3_column_text(row, 1);

    if (!cluster || !node) {
        return damaged(storage, "its identity", reterr);
    }
    if (strcmp(cluster, identity->cluster) != 0 || strcmp(node, identity->node) != 0) {
        return error_set(reterr, BATON_EEXIST,
                         "data directory %s belongs to node \"%s\" of cluster \"%s\", not to "
                         "\"%s\" of \"%s\"; give each node a directory of its own, or start this "
                         "one by its own names (--node, and --election or --group)",
                         identity->directory, node, cluster, identity->node, identity->cluster);
    }
    return BATON_OK;
}

/* Refuses a copy of a data directory, which lacks the original's later promises and votes. */
static int check_original(const struct storage *storage, const struct storage_identity *identity,
                          sqlite3_stmt *row, struct baton_error *reterr)
{
    const char *refused = (const char *)sqlite3_column_text(row, 2);
    int64_t made_ns = sqlite3_column_int64(row, 3);

    if (refused && refused[0]) {
        return error_set(reterr, BATON_EUNSAFE, "data directory %s: %s", identity->directory,
                         refused);
    }
    if (made_ns != 0 && storage->made_ns != 0 && made_ns != storage->made_ns) {
        return error_set(reterr, BATON_EUNSAFE,
                         "data directory %s: is a copy, or was restored, and may have forgotten "
                         "votes and promises; remove it if the original is in use, or else run "
                         "`baton leave %s` on another member, empty this "
                         "directory, start with join: yes, and run `baton join %s=HOST:PORT`",
                         identity->directory, identity->node, identity->node);
    }
    return BATON_OK;
}

/* Checks whose directory it is, then counts one more incarnation and stores it before anything
 * else. */
static int load_identity(struct storage *storage, const struct storage_identity *identity,
                         struct storage_loaded *ret, struct baton_error *reterr)
{
    sqlite3_stmt *row;
    int r = one_row(storage, &row,
                    "SELECT cluster, node, refused, made_ns, member, birth, founders, of_group,"
                    " incarnation FROM identity",
                    reterr);

    if (r != BATON_OK) {
        return r;
    }
    r = check_owner(storage, identity, row, reterr);
    if (r == BATON_OK) {
        r = check_original(storage, identity, row, reterr);
    }
    ret->born = (struct storage_birth){.id = number(row, 4),
                                       .birth = number(row, 5),
                                       .founders = number(row, 6),
                                       .incarnation = number(row, 8) + 1};
    ret->group = number(row, 7);
    (void)sqlite3_finalize(row);
    if (r == BATON_OK &&
        sqlite3_exec(storage->db, "UPDATE identity SET incarnation = incarnation + 1", NULL, NULL,
                     NULL) != SQLITE_OK) {
        r = storage_error(storage, "counting this start", reterr);
    }
    return r;
}

static int load_hard(const struct storage *storage, struct raft_hard_state *ret,
                     struct baton_error *reterr)
{
    sqlite3_stmt *row;
    int r =
        one_row(storage, &row,
                "SELECT term, vote, promised_ns, pledged_term, pledged_to, sum FROM hard", reterr);

    if (r != BATON_OK) {
        return r;
    }
    *ret = (struct raft_hard_state){.term = number(row, 0),
                                    .vote = number(row, 1),
                                    .promised_max = {sqlite3_column_int64(row, 2)},
                                    .pledged_term = number(row, 3),
                                    .pledged_to = number(row, 4)};
    if (!sum_fits(row, 5, storage_sum_hard(ret))) {
        r = damaged(storage, "its term and vote", reterr);
    }
    (void)sqlite3_finalize(row);
    return r;
}

static int load_snapshot(const struct storage *storage, struct raft_snapshot *ret,
                         struct baton_error *reterr)
{
    sqlite3_stmt *row;
    size_t bytes;
    int r =
        one_row(storage, &row, "SELECT idx, term, configuration, data, sum FROM snapshot", reterr);

    if (r != BATON_OK) {
        return r;
    }
    *ret = (struct raft_snapshot){.index = number(row, 0), .term = number(row, 1)};
    ret->data = copy_bytes(row, 3, &bytes);
    ret->bytes = bytes;
    if (!ret->data) {
        r = error_set(reterr, BATON_ENOMEM, "out of memory for the snapshot");
    } else if (!sum_fits(row, 4,
                         storage_sum_snapshot(ret->index, ret->term, sqlite3_column_blob(row, 2),
                                              (size_t)sqlite3_column_bytes(row, 2), ret->data,
                                              ret->bytes)) ||
               raft_configuration_decode(&ret->configuration, sqlite3_column_blob(row, 2),
                                         (size_t)sqlite3_column_bytes(row, 2)) != BATON_OK) {
        r = damaged(storage, "its snapshot", reterr);
    }
    (void)sqlite3_finalize(row);
    return r;
}

static int add_entry(const struct storage *storage, struct storage_loaded *loaded,
                     sqlite3_stmt *row, size_t *capacity, struct baton_error *reterr)
{
    raft_index expected = loaded->snapshot.index + loaded->entry_count + 1;
    struct raft_entry entry = {.term = number(row, 1),
                               .kind = (enum raft_entry_kind)number(row, 2)};

    if (loaded->entry_count == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : 64;
        struct raft_entry *grown = realloc(loaded->entries, wanted * sizeof(*grown));
        if (!grown) {
            return error_set(reterr, BATON_ENOMEM, "out of memory for the log");
        }
        loaded->entries = grown;
        *capacity = wanted;
    }
    entry.data = copy_bytes(row, 3, &entry.bytes);
    if (!entry.data) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the log");
    }
    loaded->entries[loaded->entry_count++] = entry;
    if (number(row, 0) != expected || number(row, 2) > RAFT_ENTRY_CONFIGURATION ||
        !sum_fits(row, 4, storage_sum_entry(expected, &entry))) {
        return damaged(storage, "an entry of its log", reterr);
    }
    return BATON_OK;
}

static int load_entries(const struct storage *storage, struct storage_loaded *loaded,
                        struct baton_error *reterr)
{
    sqlite3_stmt *row;
    size_t capacity = 0;
    int step = SQLITE_DONE;
    int r =
        query(storage, &row, "SELECT idx, term, kind, data, sum FROM entry ORDER BY idx", reterr);

    while (r == BATON_OK && (step = sqlite3_step(row)) == SQLITE_ROW) {
        r = add_entry(storage, loaded, row, &capacity, reterr);
    }
    if (r == BATON_OK && step != SQLITE_DONE) {
        r = storage_error(storage, "reading its log", reterr);
    }
    (void)sqlite3_finalize(row);
    return r;
}

static int load_peers(const struct storage *storage, struct storage_loaded *loaded,
                      struct baton_error *reterr)
{
    sqlite3_stmt *row;
    size_t capacity = 0;
    int step = SQLITE_DONE;
    int r = query(storage, &row, "SELECT id, birth, incarnation, term, idx FROM peer", reterr);

    while (r == BATON_OK && (step = sqlite3_step(row)) == SQLITE_ROW) {
        if (loaded->peer_count == capacity) {
            size_t wanted = capacity ? capacity * 2 : 16;
            struct storage_peer *grown = realloc(loaded->peers, wanted * sizeof(*grown));
            if (!grown) {
                r = error_set(reterr, BATON_ENOMEM, "out of memory for the peers");
                break;
            }
            loaded->peers = grown;
            capacity = wanted;
        }
        loaded->peers[loaded->peer_count++] = (struct storage_peer){.id = number(row, 0),
                                                                    .birth = number(row, 1),
                                                                    .incarnation = number(row, 2),
                                                                    .term = number(row, 3),
                                                                    .index = number(row, 4)};
    }
    if (r == BATON_OK && step != SQLITE_DONE) {
        r = storage_error(storage, "reading its peers", reterr);
    }
    (void)sqlite3_finalize(row);
    return r;
}

int storage_load(struct storage *storage, const struct storage_identity *identity,
                 struct storage_loaded *ret, struct baton_error *reterr)
{
    struct storage_loaded loaded = {0};
    int r = load_identity(storage, identity, &loaded, reterr);

    if (r == BATON_OK) {
        r = load_hard(storage, &loaded.hard, reterr);
    }
    if (r == BATON_OK) {
        r = load_snapshot(storage, &loaded.snapshot, reterr);
    }
    if (r == BATON_OK) {
        r = load_entries(storage, &loaded, reterr);
    }
    if (r == BATON_OK) {
        r = load_peers(storage, &loaded, reterr);
    }
    if (r != BATON_OK) {
        storage_loaded_fini(&loaded);
        return r;
    }
    *ret = loaded;
    return BATON_OK;
}

void storage_loaded_fini(struct storage_loaded *loaded)
{
    for (size_t i = 0; i < loaded->entry_count; i++) {
        free((void *)loaded->entries[i].data);
    }
    free(loaded->entries);
    free(loaded->peers);
    free((void *)loaded->snapshot.data);
    raft_configuration_fini(&loaded->snapshot.configuration);
    *loaded = (struct storage_loaded){0};
}
