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

/* Returns how long SQLite's log is. */
static off_t prepare_log(const struct storage *storage)
{
    char path[STORAGE_PATH_MAX + 8];
    struct stat about = {.st_size = 0};
    int fd;

    (void)snprintf(path, sizeof(path), "%s-wal", storage->path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fstat(fd, &about);
        drop_from_memory(fd);
        (void)close(fd);
    }
    return about.st_size;
}

/* SQLite makes the file readable for all users, and its log gets the file's mode; it drops a log
 * beside an empty file, although the file is never empty once there is a log. The file's creation
 * time is what no copy or restore can reproduce. */
int storage_prepare_files(struct storage *storage, struct baton_error *reterr)
{
    int fd = open(storage->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct statx about = {0};

    if (fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", storage->path, strerror(errno));
    }
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_SIZE, &about) == 0 &&
        about.stx_mask & STATX_BTIME) {
        storage->made_ns = about.stx_btime.tv_sec * 1000000000 + about.stx_btime.tv_nsec;
    }
    drop_from_memory(fd);
    (void)close(fd);
    if (prepare_log(storage) > 0 && about.stx_mask & STATX_SIZE && about.stx_size == 0) {
        return error_set(reterr, BATON_ECORRUPT,
                         "%s: is empty, and its log %s-wal is not; " STORAGE_WAY_OUT, storage->path,
                         storage->path);
    }
    return BATON_OK;
}
