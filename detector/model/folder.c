#include "detector/model/folder.h"

#include "base/error.h"
#include "detector/model/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 10 }; /* between two tries to get a lock */

int folder_failed(struct baton_error *reterr, const char *what, const char *name)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "%s %s: %s", what, name, strerror(errnum));
}

int folder_open(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder's path, for calls that take no descriptor. */
static void path_of(char ret[PATH_MAX], int parent_fd, const char *name)
{
    if (parent_fd == AT_FDCWD) {
        (void)snprintf(ret, PATH_MAX, "%s", name);
    } else {
        (void)snprintf(ret, PATH_MAX, "/proc/self/fd/%d/%s", parent_fd, name);
    }
}

/* ---- Walking -------------------------------------------------------------------------------- */

enum visit { VISIT_REMOVE, VISIT_MEASURE, VISIT_SYNC };

static int sync_one(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? fsync(fd) : -1;

    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static int visit_entry(const FTSENT *entry, enum visit visit, uint64_t *bytes)
{
    bool is_folder = entry->fts_info == FTS_DP;

    switch (visit) {
    case VISIT_REMOVE:
        return unlinkat(AT_FDCWD, entry->fts_accpath, is_folder ? AT_REMOVEDIR : 0) == 0 ||
                       (errno == ENOENT && entry->fts_level > 0)
                   ? 0
                   : -1;
    case VISIT_MEASURE:
        *bytes += entry->fts_info == FTS_F ? (uint64_t)entry->fts_statp->st_size : 0;
        return 0;
    case VISIT_SYNC:
        return sync_one(entry->fts_accpath);
    }
    return 0;
}

/* Visits all that is in the folder, then the folder. Links are not followed. */
static int walk(int parent_fd, const char *name, enum visit visit, uint64_t *bytes,
                struct baton_error *reterr)
{
    char path[PATH_MAX];
    char *const roots[] = {path, NULL};
    FTSENT *entry = NULL;
    FTS *fts;
    int rc = 0;

    path_of(path, parent_fd, name);
    fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (fts == NULL) {
        return folder_failed(reterr, "read folder", name);
    }
    while (rc == 0 && (entry = fts_read(fts)) != NULL) {
        bool is_gone = entry->fts_info == FTS_NS && entry->fts_level > 0;
        errno = entry->fts_errno;
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
            (entry->fts_info == FTS_NS && !is_gone)) {
            rc = folder_failed(reterr, "read folder", name);
        } else if (entry->fts_info != FTS_D && !is_gone && visit_entry(entry, visit, bytes) != 0) {
            rc = folder_failed(reterr, visit == VISIT_SYNC ? "sync" : "remove", entry->fts_name);
        }
    }
    (void)fts_close(fts);
    return rc;
}

int folder_remove(int parent_fd, const char *name, struct baton_error *reterr)
{
    return walk(parent_fd, name, VISIT_REMOVE, NULL, reterr);
}

int folder_bytes(int parent_fd, const char *name, uint64_t *ret, struct baton_error *reterr)
{
    uint64_t bytes = 0;
    int rc = walk(parent_fd, name, VISIT_MEASURE, &bytes, reterr);

    if (rc == 0) {
        *ret = bytes;
    }
    return rc;
}

/* ---- Drafts --------------------------------------------------------------------------------- */

int folder_lock(int fd, int kind, const atomic_bool *is_canceled, struct baton_error *reterr)
{
    static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    while (flock(fd, is_canceled != NULL ? kind | LOCK_NB : kind) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return folder_failed(reterr, "lock", "the folder");
        }
        if (is_canceled != NULL && atomic_load(is_canceled)) {
            return error_set(reterr, BATON_ECANCELED, "waiting for the folder was given up");
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

int draft_new(int parent_fd, struct baton_error *reterr)
{
    int rc = folder_remove(parent_fd, DRAFT, reterr);
    int fd;

    if (rc != 0 && rc != BATON_ENOENT) {
        return rc;
    }
    if (mkdirat(parent_fd, DRAFT, 0700) != 0) {
        return folder_failed(reterr, "make folder", DRAFT);
    }
    fd = folder_open(parent_fd, DRAFT);
    return fd >= 0 ? fd : folder_failed(reterr, "open folder", DRAFT);
}

int draft_take(int parent_fd, const char *name, struct baton_error *reterr)
{
    int rc = walk(parent_fd, DRAFT, VISIT_SYNC, NULL, reterr);

    if (rc == 0 && renameat2(parent_fd, DRAFT, parent_fd, name, RENAME_NOREPLACE) != 0) {
        rc = folder_failed(reterr, "name folder", name);
    }
    if (rc == 0 && fsync(parent_fd) != 0) {
        rc = folder_failed(reterr, "sync the folder of", name);
        (void)folder_remove(parent_fd, name, NULL);
    }
    return rc;
}

int folder_new_file(int folder_fd, const char *name, struct baton_error *reterr)
{
    char path[NAME_BYTES_MAX + 1];
    int fd;

    (void)snprintf(path, sizeof(path), "%s", name);
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(folder_fd, path, 0700) != 0 && errno != EEXIST) {
            return folder_failed(reterr, "make folder", path);
        }
        *slash = '/';
    }
    fd = openat(folder_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : folder_failed(reterr, "make file", path);
}
