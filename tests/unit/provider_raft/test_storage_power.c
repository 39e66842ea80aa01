/* The data directory when the power fails, the process is killed or a sync fails, at any call.
 *
 * A VFS of SQLite stands between the storage and the files. It remembers of each file
 *
 *   content   what the disk has for certain
 *   changes   what was written since the last sync: in memory, and in part on the disk
 *
 * If the power fails, each sector of a change is on the disk or is not. If a sync fails, the kernel
 * drops the changes and says so once: the disk has none of them, though a read finds them until
 * the power fails. What was acknowledged must come back each time, and no directory is refused.
 */
#include "cmocka_all.h"
#include "lib/chance.h"
#include "provider/raft/storage.h"
#include "provider/raft/storage_int.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef STORIES
#define STORIES OF_CHANCE(60)
#endif

enum { LIVES = 8, STEPS = 40, STEPS_MANY = 600, SECTOR = 512, NEVER = 1000000 };
enum which { DATABASE, LOG, FILES };

struct change {
    size_t at, bytes;
    uint8_t *data; /* NULL: the file ends at `at` */
};

struct disk_file {
    uint8_t *content;
    size_t bytes;
    struct change *changes;
    size_t count;
    bool is_stale; /* memory has what the disk has lost */
};

static struct disk {
    struct disk_file files[FILES];
    sqlite3_vfs *real;
    uint64_t random;
    int calls_left; /* of writes and syncs, until the power fails */
    int syncs_left; /* until one fails */
    bool moves_log; /* else SQLite's log grows until a write moves it */
} disk;

struct file { /* SQLite's, with the real one behind it */
    sqlite3_file base;
    struct disk_file *of; /* NULL: another file */
    sqlite3_file real[];
};

static char directory[64];
static struct raft_member member = {.id = 7, .weight = 1, .name = "a"};
static struct raft_configuration first = {.members = &member, .count = 1};
static struct storage_identity identity = {
    .directory = directory,
    .cluster = "c",
    .node = "a",
    .born = {.id = 7, .birth = 2, .founders = 5, .incarnation = 1000}};

static unsigned draw(unsigned below)
{
    disk.random = disk.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(disk.random >> 33) % below;
}

/* ---- The disk -------------------------------------------------------------------------------- */

static void put(struct disk_file *file, size_t at, const uint8_t *data, size_t bytes)
{
    if (file->bytes < at + bytes) {
        file->content = realloc(file->content, at + bytes);
        assert_non_null(file->content);
        memset(file->content + file->bytes, 0, at + bytes - file->bytes);
        file->bytes = at + bytes;
    }
    memcpy(file->content + at, data, bytes);
}

static void change(struct disk_file *file, size_t at, const void *data, size_t bytes)
{
    struct change *changes = realloc(file->changes, (file->count + 1) * sizeof(*changes));

    assert_non_null(changes);
    file->changes = changes;
    changes[file->count] = (struct change){.at = at, .bytes = bytes};
    if (data) {
        changes[file->count].data = malloc(bytes);
        assert_non_null(changes[file->count].data);
        memcpy(changes[file->count].data, data, bytes);
    }
    file->count++;
}

static void cut(struct disk_file *file, size_t bytes)
{
    file->bytes = bytes < file->bytes ? bytes : file->bytes;
}

static void drop_changes(struct disk_file *file)
{
    while (file->count > 0) {
        free(file->changes[--file->count].data);
    }
}

static void keep_changes(struct disk_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct change *one = &file->changes[i];
        if (one->data) {
            put(file, one->at, one->data, one->bytes);
        } else {
            cut(file, one->at);
        }
    }
    drop_changes(file);
}

/* Of each sector the change is on the disk or is not, in any order. */
static void keep_some(struct disk_file *file)
{
    unsigned of_ten = draw(11);

    for (size_t i = 0; i < file->count; i++) {
        const struct change *one = &file->changes[i];
        size_t end = one->at + one->bytes;
        if (!one->data && draw(10) < of_ten) {
            cut(file, one->at);
        }
        for (size_t at = one->at; at < end;) {
            size_t next = (at / SECTOR + 1) * SECTOR < end ? (at / SECTOR + 1) * SECTOR : end;
            if (draw(10) < of_ten) {
                put(file, at, one->data + (at - one->at), next - at);
            }
            at = next;
        }
    }
    drop_changes(file);
}

static void path_of(enum which which, char ret[80])
{
    (void)snprintf(ret, 80, "%s/%s", directory, which == DATABASE ? "raft.db" : "raft.db-wal");
}

/* In place: a data directory knows when its file was made. */
static void write_content(enum which which)
{
    const struct disk_file *file = &disk.files[which];
    char path[80];
    int fd;

    path_of(which, path);
    fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->content, file->bytes), file->bytes);
    (void)close(fd);
}

static void lose_power(void)
{
    for (enum which which = DATABASE; which < FILES; which++) {
        keep_some(&disk.files[which]);
        write_content(which);
        disk.files[which].is_stale = false;
    }
}

/* The kernel drops from memory what it takes for written, and later reads are of the disk. */
int __wrap_posix_fadvise(int fd, off_t offset, off_t bytes, int advice);
int __wrap_posix_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
    struct stat about, one;

    assert_true(offset == 0 && bytes == 0 && advice == POSIX_FADV_DONTNEED);
    assert_int_equal(fstat(fd, &about), 0);
    for (enum which which = DATABASE; which < FILES; which++) {
        struct disk_file *file = &disk.files[which];
        char path[80];
        path_of(which, path);
        if (file->is_stale && stat(path, &one) == 0 && one.st_ino == about.st_ino) {
            keep_changes(file); /* they are written meanwhile, or from memory later */
            write_content(which);
            file->is_stale = false;
        }
    }
    return 0;
}

/* ---- SQLite's view of it --------------------------------------------------------------------- */

static struct file *of(sqlite3_file *base)
{
    return (struct file *)base;
}

static bool has_power(void)
{
    return disk.calls_left > 0 && --disk.calls_left > 0;
}

static int on_write(sqlite3_file *base, const void *data, int bytes, sqlite3_int64 at)
{
    struct file *file = of(base);

    if (!has_power()) {
        return SQLITE_IOERR_WRITE;
    }
    if (file->of) {
        change(file->of, (size_t)at, data, (size_t)bytes);
    }
    return file->real->pMethods->xWrite(file->real, data, bytes, at);
}

static int on_sync(sqlite3_file *base, int flags)
{
    struct file *file = of(base);

    if (!has_power()) {
        return SQLITE_IOERR_FSYNC;
    }
    if (!file->of) {
        return SQLITE_OK;
    }
    if (disk.syncs_left > 0 && --disk.syncs_left == 0) {
        file->of->is_stale = true;
        drop_changes(file->of);
        return SQLITE_IOERR_FSYNC;
    }
    keep_changes(file->of);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 bytes)
{
    struct file *file = of(base);

    if (!has_power()) {
        return SQLITE_IOERR_TRUNCATE;
    }
    if (file->of) {
        change(file->of, (size_t)bytes, NULL, 0);
    }
    return file->real->pMethods->xTruncate(file->real, bytes);
}

static int on_close(sqlite3_file *base)
{
    return of(base)->real->pMethods->xClose(of(base)->real);
}

static int on_read(sqlite3_file *base, void *ret, int bytes, sqlite3_int64 at)
{
    return of(base)->real->pMethods->xRead(of(base)->real, ret, bytes, at);
}

static int on_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    return of(base)->real->pMethods->xFileSize(of(base)->real, ret);
}

static int on_lock(sqlite3_file *base, int level)
{
    return of(base)->real->pMethods->xLock(of(base)->real, level);
}

static int on_unlock(sqlite3_file *base, int level)
{
    return of(base)->real->pMethods->xUnlock(of(base)->real, level);
}

static int on_check_lock(sqlite3_file *base, int *ret)
{
    return of(base)->real->pMethods->xCheckReservedLock(of(base)->real, ret);
}

static int on_control(sqlite3_file *base, int what, void *argument)
{
    return of(base)->real->pMethods->xFileControl(of(base)->real, what, argument);
}

static int on_sector(sqlite3_file *base)
{
    return of(base)->real->pMethods->xSectorSize(of(base)->real);
}

static int on_traits(sqlite3_file *base)
{
    return of(base)->real->pMethods->xDeviceCharacteristics(of(base)->real);
}

static const sqlite3_io_methods methods = {
    .iVersion = 1, /* without memory that processes share */
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector,
    .xDeviceCharacteristics = on_traits,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret)
{
    struct file *file = of(base);
    int r = disk.real->xOpen(disk.real, name, file->real, flags, ret);

    file->base.pMethods = r == SQLITE_OK ? &methods : NULL;
    file->of = flags & SQLITE_OPEN_MAIN_DB ? &disk.files[DATABASE]
               : flags & SQLITE_OPEN_WAL   ? &disk.files[LOG]
                                           : NULL;
    return r;
}

static int on_delete(sqlite3_vfs *vfs, const char *name, int is_synced)
{
    size_t length = strlen(name);

    if (!has_power()) {
        return SQLITE_IOERR_DELETE;
    }
    if (length > 4 && strcmp(name + length - 4, "-wal") == 0) {
        drop_changes(&disk.files[LOG]);
        disk.files[LOG].bytes = 0;
    }
    return disk.real->xDelete(disk.real, name, is_synced);
}

/* ---- Lives ----------------------------------------------------------------------------------- */

static uint64_t acknowledged; /* the last term that was stored, and the entry of that index */

static size_t bytes_of(uint64_t index)
{
    return (size_t)(index * 7919 % 97) * (index % 5 == 0 ? 500 : 3);
}

static void check(const struct storage_loaded *loaded)
{
    assert_true(loaded->hard.term >= acknowledged);
    assert_int_equal(loaded->hard.vote, loaded->hard.term % 3);
    assert_int_equal(loaded->snapshot.index + loaded->entry_count, loaded->hard.term);
    for (size_t i = 0; i < loaded->entry_count; i++) {
        raft_index index = loaded->snapshot.index + i + 1;
        assert_int_equal(loaded->entries[i].term, index);
        assert_int_equal(loaded->entries[i].bytes, bytes_of(index));
    }
}

static bool write_term(struct storage *storage, uint64_t term)
{
    static const uint8_t data[97 * 500];
    struct raft_hard_state hard = {.term = term, .vote = term % 3};
    struct raft_entry entry = {
        .term = term, .kind = RAFT_ENTRY_DATA, .data = data, .bytes = bytes_of(term)};
    struct raft_write write = {
        .hard = &hard, .first_index = term, .entries = &entry, .entry_count = 1};

    if (storage_write(storage, &write, NULL) != BATON_OK) {
        return false;
    }
    acknowledged = term;
    return true;
}

static bool compact(struct storage *storage)
{
    struct raft_snapshot snapshot = {.index = acknowledged > 5 ? acknowledged - 5 : 1,
                                     .term = acknowledged > 5 ? acknowledged - 5 : 1,
                                     .configuration = first,
                                     .data = "state",
                                     .bytes = 5};
    struct raft_write write = {.snapshot = &snapshot};

    return storage_write(storage, &write, NULL) == BATON_OK;
}

static bool step(struct storage *storage, uint64_t *term)
{
    struct storage_peer peer = {.id = draw(9), .birth = 1, .term = *term};

    switch (draw(10)) {
    case 0:
        return !disk.moves_log || storage_checkpoint(storage, NULL) == BATON_OK;
    case 1:
    case 2:
        return storage_remember(storage, &peer, NULL) == BATON_OK;
    case 3:
        return acknowledged < 2 || acknowledged != *term || compact(storage);
    default:
        return write_term(storage, ++*term);
    }
}

/* Begins with whatever the life before has left. */
static void live(void)
{
    struct storage *storage = NULL;
    struct storage_loaded loaded;
    struct baton_error error = {0};
    uint64_t term;
    bool goes_on;
    int r;

    disk.calls_left = draw(2) ? 1 + (int)draw(400) : NEVER;
    disk.syncs_left = draw(3) ? 0 : 1 + (int)draw(draw(2) ? 40 : 700);
    disk.moves_log = draw(2);
    r = storage_open(&storage, &identity, &first, &loaded, &error);
    if (r == BATON_OK) {
        check(&loaded);
        term = loaded.hard.term;
        goes_on = true;
        for (unsigned steps = draw(draw(4) ? STEPS : STEPS_MANY); goes_on && steps > 0; steps--) {
            goes_on = step(storage, &term);
        }
        storage->failed |= draw(2); /* is killed: nothing more is written */
        storage_loaded_fini(&loaded);
        storage_close(storage);
    } else if (r != BATON_EIO) {
        fail_msg("%s", error.message);
    }
    if (disk.calls_left == 0 || draw(2)) {
        lose_power();
    }
}

static int make_directory(void **state)
{
    strcpy(directory, "/tmp/baton-storage-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const names[] = {"lock", "raft.db", "raft.db-wal", "raft.db-journal"};
    char path[80];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    for (enum which which = DATABASE; which < FILES; which++) {
        drop_changes(&disk.files[which]);
        free(disk.files[which].changes);
        free(disk.files[which].content);
        disk.files[which] = (struct disk_file){0};
    }
    return rmdir(directory);
}

static void begin(void)
{
    acknowledged = 0;
    disk.calls_left = NEVER;
    disk.syncs_left = 0;
}

static void what_was_acknowledged_comes_back_wherever_the_power_fails(void **state)
{
    for (unsigned seed = 1; seed <= STORIES; seed++) {
        disk.random = seed;
        begin();
        for (int lives = 0; lives < LIVES; lives++) {
            live();
        }
        assert_int_equal(remove_directory(state), 0);
        assert_int_equal(make_directory(state), 0);
    }
}

/* What is remembered of a peer waits for no sync; the next one is of moving the log. */
static void no_write_is_acknowledged_behind_a_sync_that_failed(void **state)
{
    struct storage *storage = NULL;
    struct storage_loaded loaded;
    struct storage_peer peer = {.id = 9, .birth = 1};

    begin();
    assert_int_equal(storage_open(&storage, &identity, &first, &loaded, NULL), BATON_OK);
    storage_loaded_fini(&loaded);
    while (storage->log_pages < STORAGE_LOG_PAGES_MAX - 10) {
        assert_true(write_term(storage, acknowledged + 1));
    }
    disk.syncs_left = 1;
    while (storage->log_pages < STORAGE_LOG_PAGES_MAX) {
        peer.term++;
        (void)storage_remember(storage, &peer, NULL);
    }
    (void)write_term(storage, acknowledged + 1);
    storage->failed = true;
    storage_close(storage);
    lose_power();
    assert_int_equal(storage_open(&storage, &identity, &first, &loaded, NULL), BATON_OK);
    check(&loaded);
    storage_loaded_fini(&loaded);
    storage_close(storage);
}

static int set_up(void **state)
{
    static sqlite3_vfs vfs;

    if (disk.real) {
        return make_directory(state);
    }
    disk.real = sqlite3_vfs_find(NULL);
    vfs = *disk.real;
    vfs.zName = "power";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = on_open;
    vfs.xDelete = on_delete;
    return sqlite3_vfs_register(&vfs, 1) == SQLITE_OK ? make_directory(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_acknowledged_comes_back_wherever_the_power_fails,
                                        set_up, remove_directory),
        cmocka_unit_test_setup_teardown(no_write_is_acknowledged_behind_a_sync_that_failed, set_up,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
