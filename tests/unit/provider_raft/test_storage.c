/* The data directory: an open reads all that was stored, and refuses damage by name. */
#include "base/crc32c.h"
#include "cmocka_all.h"
#include "provider/raft/storage.h"
#include "provider/raft/storage_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static struct raft_member member = {.id = 7, .weight = 1, .name = "a"};
static struct raft_configuration first = {.members = &member, .count = 1};
static struct storage_identity identity = {
    .directory = directory,
    .cluster = "c",
    .node = "a",
    .born = {.id = 7, .birth = 0xfedcba9876543210, .founders = 5, .incarnation = 1000}};

static int make_directory(void **state)
{
    strcpy(directory, "/tmp/baton-storage-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const names[] = {"lock", "raft.db", "raft.db-wal", "raft.db-shm"};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

static struct storage *open_ok(struct storage_loaded *loaded)
{
    struct storage *storage = NULL;
    struct baton_error error = {0};
    if (storage_open(&storage, &identity, &first, loaded, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return storage;
}

static int open_fails(struct baton_error *error)
{
    struct storage *storage = NULL;
    struct storage_loaded loaded;
    return storage_open(&storage, &identity, &first, &loaded, error);
}

static void write_three(struct storage *storage)
{
    struct raft_hard_state hard = {.term = 3, .vote = 7, .promised_max = SPAN_MS(75)};
    struct raft_entry entries[3] = {{.term = 1, .kind = RAFT_ENTRY_NOOP},
                                    {.term = 2, .kind = RAFT_ENTRY_DATA, .data = "xy", .bytes = 2},
                                    {.term = 3, .kind = RAFT_ENTRY_DATA, .data = "z", .bytes = 1}};
    struct raft_write write = {
        .hard = &hard, .first_index = 1, .entries = entries, .entry_count = 3};
    assert_int_equal(storage_write(storage, &write, NULL), 0);
}

static void a_new_directory_starts_with_the_first_configuration(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    assert_int_equal(loaded.born.incarnation, 1000);
    assert_int_equal(loaded.group, 0);
    assert_int_equal(loaded.hard.term, 0);
    assert_int_equal(loaded.entry_count, 0);
    assert_int_equal(loaded.snapshot.index, 0);
    assert_int_equal(loaded.snapshot.configuration.count, 1);
    assert_string_equal(loaded.snapshot.configuration.members[0].name, "a");
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void what_was_stored_comes_back(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    storage_loaded_fini(&loaded);
    write_three(storage);
    storage_close(storage);

    identity.born
        .birth++; /* drawn anew for each start, and of no use to a directory that is there */
    storage = open_ok(&loaded);
    identity.born.birth--;
    assert_true(loaded.born.birth == identity.born.birth && loaded.born.id == 7);
    assert_int_equal(loaded.born.incarnation, 1001);
    assert_int_equal(loaded.hard.term, 3);
    assert_int_equal(loaded.hard.vote, 7);
    assert_int_equal(loaded.hard.promised_max.ns, SPAN_MS(75).ns);
    assert_int_equal(loaded.entry_count, 3);
    assert_int_equal(loaded.entries[1].term, 2);
    assert_memory_equal(loaded.entries[1].data, "xy", 2);
    assert_int_equal(loaded.entries[0].kind, RAFT_ENTRY_NOOP);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void what_is_known_of_the_group_and_its_members_comes_back(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct storage_peer peer = {
        .id = UINT64_MAX - 1, .birth = 2, .incarnation = 3, .term = 4, .index = 5};

    storage_loaded_fini(&loaded);
    assert_int_equal(storage_set_group(storage, UINT64_MAX - 5, NULL), 0);
    assert_int_equal(storage_remember(storage, &peer, NULL), 0);
    peer.term = 9;
    assert_int_equal(storage_remember(storage, &peer, NULL), 0);
    storage_close(storage);
    storage = open_ok(&loaded);
    assert_true(loaded.group == UINT64_MAX - 5);
    assert_int_equal(loaded.peer_count, 1);
    assert_memory_equal(&loaded.peers[0], &peer, sizeof(peer));
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void a_directory_that_the_group_refused_stays_refused(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;

    storage_loaded_fini(&loaded);
    assert_int_equal(storage_cast_out(storage, "it's another one; the way out", NULL), 0);
    storage_close(storage);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_fails(&error), BATON_EUNSAFE);
        assert_non_null(strstr(error.message, "it's another one; the way out"));
        assert_non_null(strstr(error.message, directory));
    }
}

static void a_copy_of_a_directory_is_refused_and_the_original_goes_on(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;
    char command[512];

    storage_loaded_fini(&loaded);
    storage_close(storage);
    snprintf(command, sizeof(command), "cd '%s' && mv raft.db original && cp -a original raft.db",
             directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(open_fails(&error), BATON_EUNSAFE);
    assert_non_null(strstr(error.message, "is a copy"));
    assert_non_null(strstr(error.message, "baton leave a"));
    snprintf(command, sizeof(command), "cd '%s' && mv original raft.db", directory);
    assert_int_equal(system(command), 0);
    storage = open_ok(&loaded);
    assert_int_equal(loaded.born.incarnation, 1001);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static off_t log_bytes(void)
{
    char path[128];
    struct stat about;

    snprintf(path, sizeof(path), "%s/raft.db-wal", directory);
    return stat(path, &about) == 0 ? about.st_size : 0;
}

/* Also after a checkpoint and a restart: somebody waits for that vote. */
static void a_vote_makes_no_file_longer(void **state)
{
    struct raft_hard_state hard = {.term = 9, .vote = 7};
    struct raft_write vote = {.hard = &hard};
    struct storage_loaded loaded;
    off_t room;

    for (int start = 0; start < 3; start++) {
        struct storage *storage = open_ok(&loaded);

        storage_loaded_fini(&loaded);
        room = log_bytes();
        assert_true(room > 0);
        for (int i = 0; i < 20; i++) {
            hard.term++;
            assert_int_equal(storage_write(storage, &vote, NULL), 0);
        }
        assert_int_equal(storage_checkpoint(storage, NULL), 0);
        assert_int_equal(storage_write(storage, &vote, NULL), 0);
        assert_int_equal(log_bytes(), room);
        storage_close(storage);
    }
}

static void write_number(struct storage *storage, uint64_t number)
{
    struct raft_hard_state hard = {.term = number, .vote = 7};
    struct raft_entry entry = {.term = number, .kind = RAFT_ENTRY_DATA, .data = "w", .bytes = 1};
    struct raft_write write = {
        .hard = &hard, .first_index = number, .entries = &entry, .entry_count = 1};

    assert_int_equal(storage_write(storage, &write, NULL), 0);
}

static void the_log_stays_as_long_as_it_was_while_it_is_moved_when_due(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    const off_t room = log_bytes();
    int moves = 0;
    uint64_t number = 0;

    storage_loaded_fini(&loaded);
    while (moves < 3) {
        for (int i = 0; i < 20; i++) { /* the writes until there is a quiet moment */
            write_number(storage, ++number);
            assert_int_equal(log_bytes(), room);
        }
        if (storage_is_log_due(storage)) {
            assert_int_equal(storage_checkpoint(storage, NULL), 0);
            assert_false(storage_is_log_due(storage));
            moves++;
        }
        assert_true(number < 1000);
    }
    storage_close(storage);
    storage = open_ok(&loaded);
    assert_int_equal(loaded.entry_count, number);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

enum { LOG_HEADER_BYTES = 32 };

static ssize_t (*real_pwrite)(int fd, const void *data, size_t bytes, off_t at);
static int log_headers;

static ssize_t counting_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    log_headers += at == 0 && bytes == LOG_HEADER_BYTES;
    return real_pwrite(fd, data, bytes, at);
}

/* With each header of its log SQLite makes a second fsync. */
static void no_write_begins_the_log_anew(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);

    storage_loaded_fini(&loaded);
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))(void (*)(void))vfs->xGetSystemCall(
        vfs, "pwrite64");
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)counting_pwrite),
                     SQLITE_OK);
    for (uint64_t number = 1; number < 10; number++) {
        log_headers = 0;
        write_number(storage, number);
        assert_int_equal(log_headers, 0);
        assert_int_equal(storage_checkpoint(storage, NULL), 0);
        assert_int_equal(log_headers, 1);
    }
    (void)vfs->xSetSystemCall(vfs, "pwrite64", NULL);
    storage_close(storage);
}

static void truncation_and_snapshots_take_the_entries_along(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct raft_entry entry = {.term = 4, .kind = RAFT_ENTRY_DATA, .data = "n", .bytes = 1};
    struct raft_snapshot snapshot = {
        .index = 1, .term = 1, .configuration = first, .data = "state", .bytes = 5};
    struct raft_write cut = {.truncates = true,
                             .truncate_from = 3,
                             .first_index = 3,
                             .entries = &entry,
                             .entry_count = 1};
    struct raft_write compact = {.snapshot = &snapshot};
    storage_loaded_fini(&loaded);
    write_three(storage);
    assert_int_equal(storage_write(storage, &cut, NULL), 0);
    assert_int_equal(storage_write(storage, &compact, NULL), 0);
    assert_int_equal(storage_checkpoint(storage, NULL), 0);
    storage_close(storage);

    storage = open_ok(&loaded);
    assert_int_equal(loaded.snapshot.index, 1);
    assert_memory_equal(loaded.snapshot.data, "state", 5);
    assert_int_equal(loaded.entry_count, 2);
    assert_int_equal(loaded.entries[1].term, 4);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void a_second_process_is_refused_and_told_whose_it_is(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;
    char pid[32];
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    assert_int_equal(open_fails(&error), BATON_EBUSY);
    assert_non_null(strstr(error.message, pid));
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void a_directory_of_another_node_or_cluster_is_refused(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;
    storage_loaded_fini(&loaded);
    storage_close(storage);
    identity.node = "b";
    assert_int_equal(open_fails(&error), BATON_EEXIST);
    assert_non_null(strstr(error.message, "\"a\""));
    identity.node = "a";
    identity.cluster = "d";
    assert_int_equal(open_fails(&error), BATON_EEXIST);
    identity.cluster = "c";
}

static void change_row(const char *sql)
{
    sqlite3 *db;
    char path[128];
    snprintf(path, sizeof(path), "%s/raft.db", directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_value_that_was_changed_behind_our_back_is_found(void **state)
{
    static const char *const changes[][2] = {
        {"UPDATE hard SET term = term + 1", "UPDATE hard SET term = term - 1"},
        {"UPDATE entry SET data = x'7878' WHERE idx = 2",
         "UPDATE entry SET data = x'7879' WHERE idx = 2"},
        {"UPDATE entry SET idx = 9 WHERE idx = 3", "UPDATE entry SET idx = 3 WHERE idx = 9"},
        {"UPDATE snapshot SET term = 1", "UPDATE snapshot SET term = 0"},
    };
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;
    storage_loaded_fini(&loaded);
    write_three(storage);
    storage_close(storage);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        change_row(changes[i][0]);
        assert_int_equal(open_fails(&error), BATON_ECORRUPT);
        assert_non_null(strstr(error.message, directory));
        assert_non_null(strstr(error.message, "let it join anew"));
        change_row(changes[i][1]);
    }
    storage = open_ok(&loaded);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void a_foreign_file_is_refused(void **state)
{
    char path[128];
    struct baton_error error;
    FILE *file;
    snprintf(path, sizeof(path), "%s/raft.db", directory);
    file = fopen(path, "w");
    fputs("this is a letter to a friend, long enough to be taken for something else entirely, "
          "and certainly longer than a header of a hundred bytes would be",
          file);
    fclose(file);
    assert_int_equal(open_fails(&error), BATON_ECORRUPT);
    unlink(path);
    change_row("CREATE TABLE recipes (name TEXT)");
    assert_int_equal(open_fails(&error), BATON_ECORRUPT);
    assert_non_null(strstr(error.message, "not one of Baton's"));
}

static void a_file_cut_in_the_middle_is_refused(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    char path[128];
    struct baton_error error;
    int r;
    storage_loaded_fini(&loaded);
    write_three(storage);
    storage_close(storage);
    snprintf(path, sizeof(path), "%s/raft.db", directory);
    assert_int_equal(truncate(path, 3 * 4096), 0); /* further back there may be nothing but room */
    r = open_fails(&error);
    assert_int_equal(r, BATON_ECORRUPT);
    assert_non_null(strstr(error.message, "do not restore it"));
}

static void a_file_that_was_emptied_beside_its_log_is_refused(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct baton_error error;
    char path[128];
    storage_loaded_fini(&loaded);
    write_three(storage);
    storage->failed = true; /* it is killed: the log stays */
    storage_close(storage);
    snprintf(path, sizeof(path), "%s/raft.db", directory);
    assert_int_equal(truncate(path, 0), 0);
    for (int starts = 0; starts < 2; starts++) {
        assert_int_equal(open_fails(&error), BATON_ECORRUPT);
        assert_non_null(strstr(error.message, "do not restore it"));
    }
}

/* A block becomes zeros, one byte another one. */
static void damage(const char *path, off_t at, size_t bytes)
{
    char data[65536] = {0};
    int fd = open(path, O_RDWR);

    assert_true(fd >= 0);
    if (bytes == 1) {
        assert_int_equal(pread(fd, data, 1, at), 1);
        data[0] = (char)~data[0];
    }
    assert_int_equal(pwrite(fd, data, bytes, at), bytes);
    close(fd);
}

static void write_votes(struct storage *storage)
{
    for (uint64_t term = 1; term <= 100; term++) {
        struct raft_hard_state hard = {.term = term, .vote = 7};
        struct raft_write write = {.hard = &hard};
        assert_int_equal(storage_write(storage, &write, NULL), 0);
    }
    storage->failed = true; /* it is killed: the log stays */
    storage_close(storage);
}

/* SQLite itself would go back to the votes before the damage. */
static void a_log_that_is_damaged_in_the_middle_is_refused(void **state)
{
    static const struct {
        off_t at;
        size_t bytes;
    } damages[] = {{0, 32},
                   {3, 1},
                   {20, 1},
                   {32, 4096},
                   {32 + 20 * 4120 + 9, 1},
                   {16384, 4096},
                   {32 + 50 * 4120 + 100, 65536}};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct storage_loaded loaded;
        struct baton_error error;
        char path[128];
        write_votes(open_ok(&loaded));
        storage_loaded_fini(&loaded);
        snprintf(path, sizeof(path), "%s/raft.db-wal", directory);
        damage(path, damages[i].at, damages[i].bytes);
        assert_int_equal(open_fails(&error), BATON_ECORRUPT);
        assert_non_null(strstr(error.message, "raft.db-wal: is damaged in the middle"));
        assert_int_equal(remove_directory(state), 0);
        assert_int_equal(make_directory(state), 0);
    }
}

static void of_a_log_that_ends_in_a_torn_write_the_rest_counts(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    char path[128];
    off_t end;
    storage_loaded_fini(&loaded);
    write_votes(storage);
    snprintf(path, sizeof(path), "%s/raft.db-wal", directory);
    end = 32 + 4120 * 100; /* of these votes alone: each changes one page */
    damage(path, end, 4096);
    storage = open_ok(&loaded);
    assert_in_range(loaded.hard.term, 80, 99);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void a_full_disk_is_said_and_nothing_is_written_after_it(void **state)
{
    pid_t child = fork();
    int status;
    if (child == 0) { /* the limit is the process's own */
        struct storage_loaded loaded;
        struct storage *storage = open_ok(&loaded);
        struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};
        struct raft_hard_state hard = {.term = 9};
        struct raft_write write = {.hard = &hard};
        struct baton_error error = {0};
        int r;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        r = storage_write(storage, &write, &error);
        if ((r != BATON_EFULL && r != BATON_EIO) || !strstr(error.message, directory)) {
            _exit(1);
        }
        limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
        if (storage_write(storage, &write, &error) != BATON_EIO ||
            !strstr(error.message, "until a restart")) {
            _exit(2);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    assert_int_equal(loaded.hard.term, 0);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static ssize_t refused_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    errno = EROFS;
    return -1;
}

static void a_write_that_fails_says_why_in_words(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct raft_hard_state hard = {.term = 9};
    struct raft_write write = {.hard = &hard};
    struct baton_error error = {0};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    storage_loaded_fini(&loaded);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)refused_pwrite),
                     SQLITE_OK);
    assert_int_equal(storage_write(storage, &write, &error), BATON_EIO);
    (void)vfs->xSetSystemCall(vfs, "pwrite64", NULL);
    assert_non_null(strstr(error.message, "Read-only file system"));
    storage_close(storage);
}

/* SQLite asks once more, without O_CREAT, and keeps the reason of that. */
static const char *no_room_for;

static int open_without_room(const char *path, int flags, int mode)
{
    size_t bytes = strlen(path), end = strlen(no_room_for);

    if ((flags & O_CREAT) && bytes > end && strcmp(path + bytes - end, no_room_for) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return open(path, flags, mode);
}

static void a_disk_without_room_for_one_more_file_is_full(void **state)
{
    static const char *const files[] = {"/raft.db-journal", "/raft.db-wal"};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct baton_error error = {0};
        no_room_for = files[i];
        assert_int_equal(vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_without_room),
                         SQLITE_OK);
        assert_int_equal(open_fails(&error), BATON_EFULL);
        (void)vfs->xSetSystemCall(vfs, "open", NULL);
        assert_non_null(strstr(error.message, directory));
        assert_non_null(strstr(error.message, "inodes"));
    }
}

static void a_peer_that_finds_no_room_to_be_remembered_costs_no_vote(void **state)
{
    struct storage_loaded loaded;
    struct storage *storage = open_ok(&loaded);
    struct storage_peer peer = {.birth = 2, .incarnation = 3};
    struct raft_hard_state hard = {.term = 9};
    struct raft_write write = {.hard = &hard};
    struct baton_error error = {0};
    int r = BATON_OK;

    storage_loaded_fini(&loaded);
    assert_int_equal(sqlite3_exec(storage->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL),
                     SQLITE_OK);
    while (r == BATON_OK) { /* it counts as a full disk */
        peer.id++;
        r = storage_remember(storage, &peer, &error);
    }
    assert_int_equal(r, BATON_EFULL);
    assert_non_null(strstr(error.message, directory));
    assert_int_equal(storage_write(storage, &write, &error), BATON_OK);
    assert_int_equal(sqlite3_exec(storage->db, "PRAGMA max_page_count = 9999", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(storage_remember(storage, &peer, &error), BATON_OK);
    storage_close(storage);
}

static void a_process_killed_while_writing_loses_nothing_acknowledged(void **state)
{
    int reports[2];
    uint64_t acknowledged = 0;
    uint64_t next;
    pid_t child;
    struct storage_loaded loaded;
    struct storage *storage;
    assert_int_equal(pipe(reports), 0);
    child = fork();
    if (child == 0) {
        struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = "word", .bytes = 4};
        storage = open_ok(&loaded);
        for (uint64_t i = 1;; i++) {
            struct raft_hard_state hard = {.term = i, .vote = 7};
            struct raft_write step = {
                .hard = &hard, .first_index = i, .entries = &entry, .entry_count = 1};
            entry.term = i;
            if (storage_write(storage, &step, NULL) != 0 ||
                write(reports[1], &i, sizeof(i)) != sizeof(i)) {
                _exit(1);
            }
        }
    }
    close(reports[1]);
    while (acknowledged < 200 && read(reports[0], &next, sizeof(next)) == sizeof(next)) {
        acknowledged = next;
    }
    kill(child, SIGKILL);
    while (read(reports[0], &next, sizeof(next)) == sizeof(next)) {
        acknowledged = next;
    }
    close(reports[0]);
    waitpid(child, NULL, 0);
    storage = open_ok(&loaded);
    assert_true(loaded.hard.term >= acknowledged);
    assert_int_equal(loaded.entry_count, loaded.hard.term);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static int commits_left;

static int before_commit(void *unused)
{
    if (--commits_left == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    return 0;
}

static int on_new_connection(sqlite3 *db, const char **message, const void *routines)
{
    (void)sqlite3_commit_hook(db, before_commit, NULL);
    return SQLITE_OK;
}

/* Whether it lived through the opening. */
static bool opens_with_commits(int commits)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct storage_loaded loaded;
        commits_left = commits;
        (void)sqlite3_auto_extension((void (*)(void))on_new_connection);
        storage_close(open_ok(&loaded));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status);
}

static void a_first_start_that_is_killed_at_any_moment_is_followed_by_another(void **state)
{
    bool has_lived = false;
    for (int commits = 1; !has_lived; commits++) {
        struct storage_loaded loaded;
        has_lived = opens_with_commits(commits);
        struct storage *storage = open_ok(&loaded);
        assert_int_equal(loaded.snapshot.configuration.count, 1);
        storage_loaded_fini(&loaded);
        storage_close(storage);
        assert_true(commits < 20);
        assert_int_equal(remove_directory(state), 0);
        assert_int_equal(make_directory(state), 0);
    }
}

static void nobody_else_may_read_what_is_stored(void **state)
{
    static const char *const names[] = {"lock", "raft.db", "raft.db-wal"};
    struct storage_loaded loaded;
    struct stat about;
    char path[128];
    mode_t before = umask(0);
    struct storage *storage = open_ok(&loaded);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0600);
    }
    (void)umask(before);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static void the_checksum_is_the_one_of_the_standard(void **state)
{
    uint8_t zeros[32] = {0};
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void a_directory_that_others_may_write_in_is_refused(void **state)
{
    static const mode_t open_modes[] = {0770, 0707, 0777, 01777};
    struct storage_loaded loaded;
    struct baton_error error = {0};

    for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
        assert_int_equal(chmod(directory, open_modes[i]), 0);
        assert_int_equal(open_fails(&error), BATON_EAUTH);
        assert_non_null(strstr(error.message, "chmod 700"));
    }
    assert_int_equal(chmod(directory, 0755), 0); /* its files are ours alone */
    storage_close(open_ok(&loaded));
    storage_loaded_fini(&loaded);
}

/* Only root can make one. */
static void a_directory_behind_another_users_link_is_refused(void **state)
{
    char own[sizeof(directory)], link[80];
    struct storage_loaded loaded;
    struct baton_error error = {0};

    if (geteuid() != 0) {
        skip();
    }
    (void)memcpy(own, directory, sizeof(own));
    (void)snprintf(link, sizeof(link), "%s.link", own);
    assert_int_equal(symlink(own, link), 0);
    (void)snprintf(directory, sizeof(directory), "%s", link);
    storage_close(open_ok(&loaded)); /* root's own */
    storage_loaded_fini(&loaded);
    assert_int_equal(lchown(link, 65534, 65534), 0);
    assert_int_equal(open_fails(&error), BATON_EAUTH);
    assert_non_null(strstr(error.message, "symbolic link of another user"));
    (void)unlink(link);
    (void)memcpy(directory, own, sizeof(own));
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(a_new_directory_starts_with_the_first_configuration),
        IN_DIRECTORY(what_was_stored_comes_back),
        IN_DIRECTORY(what_is_known_of_the_group_and_its_members_comes_back),
        IN_DIRECTORY(a_directory_that_the_group_refused_stays_refused),
        IN_DIRECTORY(a_copy_of_a_directory_is_refused_and_the_original_goes_on),
        IN_DIRECTORY(a_vote_makes_no_file_longer),
        IN_DIRECTORY(the_log_stays_as_long_as_it_was_while_it_is_moved_when_due),
        IN_DIRECTORY(no_write_begins_the_log_anew),
        IN_DIRECTORY(truncation_and_snapshots_take_the_entries_along),
        IN_DIRECTORY(a_second_process_is_refused_and_told_whose_it_is),
        IN_DIRECTORY(a_directory_of_another_node_or_cluster_is_refused),
        IN_DIRECTORY(a_value_that_was_changed_behind_our_back_is_found),
        IN_DIRECTORY(a_foreign_file_is_refused),
        IN_DIRECTORY(a_file_cut_in_the_middle_is_refused),
        IN_DIRECTORY(a_file_that_was_emptied_beside_its_log_is_refused),
        IN_DIRECTORY(a_log_that_is_damaged_in_the_middle_is_refused),
        IN_DIRECTORY(of_a_log_that_ends_in_a_torn_write_the_rest_counts),
        IN_DIRECTORY(a_full_disk_is_said_and_nothing_is_written_after_it),
        IN_DIRECTORY(a_write_that_fails_says_why_in_words),
        IN_DIRECTORY(a_disk_without_room_for_one_more_file_is_full),
        IN_DIRECTORY(a_peer_that_finds_no_room_to_be_remembered_costs_no_vote),
        IN_DIRECTORY(a_process_killed_while_writing_loses_nothing_acknowledged),
        IN_DIRECTORY(a_first_start_that_is_killed_at_any_moment_is_followed_by_another),
        IN_DIRECTORY(nobody_else_may_read_what_is_stored),
        IN_DIRECTORY(a_directory_that_others_may_write_in_is_refused),
        IN_DIRECTORY(a_directory_behind_another_users_link_is_refused),
        cmocka_unit_test(the_checksum_is_the_one_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
