/* The files of a data directory before SQLite opens them. */
#include "provider/raft/storage_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a read finds is then what the disk has. After a failed fsync the kernel takes the pages for
 * written: the next start would find the write in memory, go on behind it, and lose all of that
 * with the power. */
static void drop_from_memory(int fd)
{
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* ---- SQLite's log ----------------------------------------------------------------------------
 *
 *   0   magic, version, page size, number, salt (8 bytes), sum (8 bytes) of what is before it
 *   32  frames: page number, size of the file if the frame ends a write or else 0, salt, sum of all
 *       up to here without salts and sums; the page
 *
 * SQLite ends the log at the first frame whose salt or sum does not fit, as it must behind a write
 * that the power has interrupted. */

enum { HEAD = 32, FRAME = 24, PAGE = 4096 };
/* Writes that may be in memory alone at one time: those that wait for no sync, the one that does,
 * and those of starts that were killed. More of them behind a gap were on the disk once. */
enum { BEHIND_MAX = 4 * STORAGE_UNSYNCED_MAX };

struct sums {
    uint32_t a, b;
    bool is_big_endian;
};

static uint32_t word_of(const uint8_t *data, bool is_big_endian)
{
    return is_big_endian ? (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 |
                               (uint32_t)data[2] << 8 | data[3]
                         : (uint32_t)data[3] << 24 | (uint32_t)data[2] << 16 |
                               (uint32_t)data[1] << 8 | data[0];
}

static void add(struct sums *sums, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        sums->a += word_of(data + i, sums->is_big_endian) + sums->b;
        sums->b += word_of(data + i + 4, sums->is_big_endian) + sums->a;
    }
}

static bool fits(const struct sums *sums, const uint8_t *stored)
{
    return sums->a == word_of(stored, true) && sums->b == word_of(stored + 4, true);
}

/* Whether writes are lost in the middle of the log, which were synced before those behind them. */
static bool has_gap(int fd)
{
    uint8_t head[HEAD], frame[FRAME + PAGE];
    struct sums sums = {0};
    bool is_whole, fits_all;
    unsigned behind = 0;

    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head)) {
        return false;
    }
    sums.is_big_endian = head[3] & 1;
    add(&sums, head, HEAD - 8);
    is_whole = fits_all = word_of(head, true) >> 1 == 0x377f0682 >> 1 && fits(&sums, head + 24);
    if (is_whole && word_of(head + 8, true) != PAGE) {
        return false;
    }
    for (off_t at = HEAD; pread(fd, frame, sizeof(frame), at) == (ssize_t)sizeof(frame);
         at += (off_t)sizeof(frame)) {
        bool is_of_log = !is_whole || memcmp(frame + 8, head + 16, 8) == 0;
        add(&sums, frame, 8);
        add(&sums, frame + FRAME, PAGE);
        fits_all = fits_all && is_of_log && fits(&sums, frame + 16);
        behind += !fits_all && is_of_log && word_of(frame + 4, true) != 0;
    }
    return behind > (is_whole ? BEHIND_MAX : 0); /* the head is synced before any frame */
}

/* Returns the log's length, or -1: it is damaged. */
static off_t prepare_log(const char *path)
{
    struct stat about = {.st_size = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fstat(fd, &about);
        drop_from_memory(fd);
        about.st_size = has_gap(fd) ? -1 : about.st_size;
        (void)close(fd);
    }
    return about.st_size;
}

/* ---- The files ------------------------------------------------------------------------------- */

bool storage_is_there(const char *directory)
{
    char path[STORAGE_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/raft.db", directory);
    return access(path, F_OK) == 0;
}

/* SQLite makes the file readable for all users, and its log gets the file's mode; it drops a log
 * beside an empty file, although the file is never empty once there is a log. The file's creation
 * time is what no copy or restore can reproduce. */
int storage_prepare_files(struct storage *storage, struct baton_error *reterr)
{
    int fd = open(storage->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char log[STORAGE_PATH_MAX + 8];
    struct statx about = {0};
    off_t log_bytes;

    if (fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", storage->path, strerror(errno));
    }
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_SIZE, &about) == 0 &&
        about.stx_mask & STATX_BTIME) {
        storage->made_ns = about.stx_btime.tv_sec * 1000000000 + about.stx_btime.tv_nsec;
    }
    drop_from_memory(fd);
    (void)close(fd);
    (void)snprintf(log, sizeof(log), "%s-wal", storage->path);
    log_bytes = prepare_log(log);
    if (log_bytes < 0) {
        return error_set(reterr, BATON_ECORRUPT,
                         "%s: is damaged in the middle: votes and entries that were stored are "
                         "lost; " STORAGE_WAY_OUT,
                         log);
    }
    if (log_bytes > 0 && about.stx_mask & STATX_SIZE && about.stx_size == 0) {
        return error_set(reterr, BATON_ECORRUPT,
                         "%s: is empty, and its log %s is not; " STORAGE_WAY_OUT, storage->path,
                         log);
    }
    return BATON_OK;
}
