#include "detector/model/folder.h"

#include "base/error.h"
#include "detector/model/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char draft_prefix[] = ".draft-";

static int failed(struct baton_error *reterr, const char *what, const char *name)
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

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
        return is_folder ? sync_folder(entry->fts_accpath) : 0;
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
        return failed(reterr, "read folder", name);
    }
    while (rc == 0 && (entry = fts_read(fts)) != NULL) {
        bool is_gone = entry->fts_info == FTS_NS && entry->fts_level > 0;
        errno = entry->fts_errno;
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
            (entry->fts_info == FTS_NS && !is_gone)) {
            rc = failed(reterr, "read folder", name);
        } else if (entry->fts_info != FTS_D && !is_gone && visit_entry(entry, visit, bytes) != 0) {
            rc = failed(reterr, visit == VISIT_SYNC ? "sync folder" : "remove", entry->fts_name);
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

int folder_lock(int parent_fd, struct baton_error *reterr)
{
    int fd = folder_open(parent_fd, "."); /* a lock is of the open file, so it needs its own */
    int rc = fd;

    while (fd >= 0 && (rc = flock(fd, LOCK_EX)) != 0 && errno == EINTR) {
    }
    if (rc < 0) {
        rc = failed(reterr, "lock", "the folder");
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    return fd;
}

static int make_draft(struct draft *draft, struct baton_error *reterr)
{
    char path[PATH_MAX], name[DRAFT_NAME_BYTES];

    (void)snprintf(name, sizeof(name), "%sXXXXXX", draft_prefix);
    path_of(path, draft->parent_fd, name);
    if (mkdtemp(path) == NULL) {
        return failed(reterr, "make folder", name);
    }
    (void)snprintf(draft->name, sizeof(draft->name), "%s",
                   path + strlen(path) - (sizeof(name) - 1));
    return 0;
}

/* Under the parent's lock, or a sweeper could find the draft before it is locked. */
int draft_new(struct draft *ret, int parent_fd, struct baton_error *reterr)
{
    struct draft draft = {.parent_fd = parent_fd, .fd = -1};
    int lock = folder_lock(parent_fd, reterr);
    int rc = lock < 0 ? lock : make_draft(&draft, reterr);

    if (rc == 0) {
        draft.fd = folder_open(parent_fd, draft.name);
        if (draft.fd < 0 || flock(draft.fd, LOCK_EX | LOCK_NB) != 0) {
            rc = failed(reterr, "lock folder", draft.name);
            draft_drop(&draft);
        }
    }
    if (lock >= 0) {
        close(lock);
    }
    if (rc == 0) {
        *ret = draft;
    }
    return rc;
}

int draft_of(struct draft *ret, int parent_fd, const char *name, int fd, struct baton_error *reterr)
{
    struct draft draft = {.parent_fd = parent_fd, .fd = fd};
    int rc = make_draft(&draft, reterr);

    /* In place of the empty one. */
    if (rc == 0 && renameat(parent_fd, name, parent_fd, draft.name) != 0) {
        rc = failed(reterr, "rename folder", name);
        (void)unlinkat(parent_fd, draft.name, AT_REMOVEDIR);
    }
    if (rc == 0) {
        *ret = draft;
    }
    return rc;
}

int draft_file(const struct draft *draft, const char *name, struct baton_error *reterr)
{
    char path[NAME_BYTES_MAX + 1];
    int fd;

    (void)snprintf(path, sizeof(path), "%s", name);
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(draft->fd, path, 0700) != 0 && errno != EEXIST) {
            return failed(reterr, "make folder", path);
        }
        *slash = '/';
    }
    fd = openat(draft->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : failed(reterr, "make file", path);
}

/* Under the parent's lock: no one sees the name while the draft's own lock is still there. */
static int name_and_unlock(struct draft *draft, const char *name, struct baton_error *reterr)
{
    int lock = folder_lock(draft->parent_fd, reterr);
    int rc = 0;

    if (lock < 0) {
        return lock;
    }
    if (renameat2(draft->parent_fd, draft->name, draft->parent_fd, name, RENAME_NOREPLACE) != 0) {
        rc = failed(reterr, "name folder", name);
    } else {
        close(draft->fd);
        draft->fd = -1;
    }
    close(lock);
    return rc;
}

int draft_take(struct draft *draft, const char *name, struct baton_error *reterr)
{
    int rc = walk(draft->parent_fd, draft->name, VISIT_SYNC, NULL, reterr);

    rc = rc ? rc : name_and_unlock(draft, name, reterr);
    if (rc == 0 && fsync(draft->parent_fd) != 0) {
        rc = failed(reterr, "sync the folder of", name);
        (void)folder_remove(draft->parent_fd, name, NULL);
    }
    return rc;
}

void draft_drop(struct draft *draft)
{
    if (draft->fd >= 0) {
        (void)folder_remove(draft->parent_fd, draft->name, NULL);
        close(draft->fd);
        draft->fd = -1;
    }
}

static int sweep_one(int parent_fd, const char *name, struct baton_error *reterr)
{
    int fd = folder_open(parent_fd, name);
    int rc = 0;

    if (fd < 0) {
        return 0; /* not our folder, or it is gone */
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        rc = folder_remove(parent_fd, name, reterr);
        rc = rc == 0 ? 1 : rc == BATON_ENOENT ? 0 : rc; /* 0: its writer has just named it */
    }
    close(fd);
    return rc;
}

int drafts_sweep(int parent_fd, struct baton_error *reterr)
{
    const struct dirent *entry;
    int lock = folder_lock(parent_fd, reterr);
    DIR *folder = lock >= 0 ? fdopendir(lock) : NULL; /* the lock goes with it */
    int count = 0, rc = lock < 0 ? lock : 0;

    if (lock >= 0 && folder == NULL) {
        rc = failed(reterr, "read", "the folder");
        close(lock);
    }
    while (folder != NULL && rc >= 0 && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, draft_prefix, strlen(draft_prefix)) == 0) {
            rc = sweep_one(parent_fd, entry->d_name, reterr);
            count += rc > 0;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return rc < 0 ? rc : count;
}
