#include "detector/program/own_folder.h"

#include "base/error.h"
#include "detector/model/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 8, LEFT_MAX = 4096 };

static const char prefix[] = "baton-model-";
static const char random_part[] = "XXXXXX";
static const char lock_name[] = "lock";

static const char *parent(void)
{
    const char *variable = getenv("TMPDIR");

    return variable && variable[0] ? variable : "/tmp";
}

/* ---- Folders of ended processes ---------------------------------------------------------- */

/* True for a folder that own_folder_new() made for this user. */
static bool is_one(int parent_fd, const char *name)
{
    struct stat status;

    return strncmp(name, prefix, strlen(prefix)) == 0 &&
           strlen(name) == strlen(prefix) + strlen(random_part) &&
           fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           (status.st_mode & 07777) == 0700 && status.st_uid == geteuid();
}

/* Without a lock it has only just been made, or its maker died there: it is empty, or not ours. */
static void remove_left(int parent_fd, const char *name)
{
    char path[NAME_MAX + sizeof(lock_name) + 1];
    int lock;

    (void)snprintf(path, sizeof(path), "%s/%s", name, lock_name);
    lock = openat(parent_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0) {
        (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
        return;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        (void)folder_remove(parent_fd, name, NULL);
    }
    (void)close(lock);
}

/* A folder that cannot be removed stays and does no harm. */
static void sweep(void)
{
    DIR *folder = opendir(parent());
    const struct dirent *entry;

    for (int i = 0; folder && i < LEFT_MAX && (entry = readdir(folder)) != NULL;) {
        if (is_one(dirfd(folder), entry->d_name)) {
            remove_left(dirfd(folder), entry->d_name);
            i++;
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

/* ---- The folder of this process ------------------------------------------------------------- */

/* False: a process that sweeps took the lock first, or errno has the error. */
static bool take(struct own_folder *folder)
{
    struct stat status = {0};

    errno = 0;
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    folder->lock_fd =
        folder->fd >= 0 ? openat(folder->fd, lock_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                        : -1;
    if (folder->lock_fd >= 0 && flock(folder->lock_fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(folder->lock_fd, &status) == 0 && status.st_nlink > 0) {
        return true;
    }
    if (folder->lock_fd >= 0) {
        (void)close(folder->lock_fd);
    }
    if (folder->fd >= 0) {
        (void)close(folder->fd);
    }
    return false;
}

int own_folder_new(struct own_folder *ret, struct baton_error *reterr)
{
    int errnum = 0;

    sweep();
    for (int i = 0; i < TRIES; i++) {
        int bytes =
            snprintf(ret->path, sizeof(ret->path), "%s/%s%s", parent(), prefix, random_part);
        if (bytes >= (int)sizeof(ret->path) || !mkdtemp(ret->path)) {
            errnum = errno;
            break;
        }
        if (take(ret)) {
            return 0;
        }
        errnum = errno;
        (void)rmdir(ret->path);
    }
    return error_set(reterr, error_from_errno(errnum), "%s: %s", ret->path, strerror(errnum));
}

void own_folder_remove(struct own_folder *folder)
{
    int parent_fd = open(parent(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent_fd >= 0) {
        (void)folder_remove(parent_fd, strrchr(folder->path, '/') + 1, NULL);
        (void)close(parent_fd);
    }
    (void)close(folder->lock_fd);
    (void)close(folder->fd);
}
