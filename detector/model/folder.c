#include "detector/model/folder.h"

#include "base/error.h"
#include "detector/model/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DEPTH_MAX = 16, DRAFT_TRIES = 64 };

static const char draft_prefix[] = ".draft-";

static int failed(struct baton_error *reterr, const char *what, const char *name)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "%s %s: %s", what, name, strerror(errnum));
}

static int open_folder(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- Walking -------------------------------------------------------------------------------- */

/* The calls for each entry, and for each folder after its entries. */
struct walk {
    int (*file)(struct walk *walk, int parent_fd, const char *name, struct baton_error *reterr);
    int (*folder)(struct walk *walk, int parent_fd, const char *name, struct baton_error *reterr);
    uint64_t bytes;
};

static int walk_at(struct walk *walk, int parent_fd, const char *name, int depth,
                   struct baton_error *reterr);

static int walk_entry(struct walk *walk, int folder_fd, const char *name, int depth,
                      struct baton_error *reterr)
{
    struct stat status;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return 0;
    }
    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : failed(reterr, "look at", name);
    }
    return S_ISDIR(status.st_mode) ? walk_at(walk, folder_fd, name, depth + 1, reterr)
                                   : walk->file(walk, folder_fd, name, reterr);
}

/* Recursion is bounded: only our own folders are walked, and archives have at most NAME_DEPTH_MAX
 * levels. */
static int walk_at(struct walk *walk, int parent_fd, const char *name, int depth,
                   struct baton_error *reterr)
{
    const struct dirent *entry;
    DIR *folder;
    int rc = 0;
    int fd = open_folder(parent_fd, name);

    if (fd < 0 || depth > WALK_DEPTH_MAX) {
        rc = fd < 0 ? failed(reterr, "open folder", name)
                    : error_set(reterr, BATON_ETOOBIG, "folder %s: more than %d deep", name,
                                WALK_DEPTH_MAX);
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    folder = fdopendir(fd);
    if (folder == NULL) {
        rc = failed(reterr, "read folder", name);
        close(fd);
        return rc;
    }
    while (rc == 0 && (entry = readdir(folder)) != NULL) {
        rc = walk_entry(walk, fd, entry->d_name, depth, reterr);
    }
    closedir(folder);
    return rc ? rc : walk->folder(walk, parent_fd, name, reterr);
}

static int remove_file(struct walk *walk, int parent_fd, const char *name,
                       struct baton_error *reterr)
{
    (void)walk;
    return unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT ? 0
                                                                : failed(reterr, "remove", name);
}

static int remove_folder(struct walk *walk, int parent_fd, const char *name,
                         struct baton_error *reterr)
{
    (void)walk;
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT
               ? 0
               : failed(reterr, "remove folder", name);
}

int folder_remove(int parent_fd, const char *name, struct baton_error *reterr)
{
    struct walk walk = {.file = remove_file, .folder = remove_folder};

    return walk_at(&walk, parent_fd, name, 0, reterr);
}

static int add_bytes(struct walk *walk, int parent_fd, const char *name, struct baton_error *reterr)
{
    struct stat status;

    if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return failed(reterr, "look at", name);
    }
    walk->bytes += S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    return 0;
}

static int nothing(struct walk *walk, int parent_fd, const char *name, struct baton_error *reterr)
{
    (void)walk;
    (void)parent_fd;
    (void)name;
    (void)reterr;
    return 0;
}

int folder_bytes(int parent_fd, const char *name, uint64_t *ret, struct baton_error *reterr)
{
    struct walk walk = {.file = add_bytes, .folder = nothing};
    int rc = walk_at(&walk, parent_fd, name, 0, reterr);

    if (rc == 0) {
        *ret = walk.bytes;
    }
    return rc;
}

static int sync_folder(struct walk *walk, int parent_fd, const char *name,
                       struct baton_error *reterr)
{
    int fd = open_folder(parent_fd, name);
    int rc = 0;

    (void)walk;
    if (fd < 0 || fsync(fd) != 0) {
        rc = failed(reterr, "sync folder", name);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* ---- Drafts --------------------------------------------------------------------------------- */

int folder_lock(int parent_fd, struct baton_error *reterr)
{
    int fd = open_folder(parent_fd, "."); /* a lock is of the open file, so it needs its own */
    int rc;

    if (fd < 0) {
        return failed(reterr, "open", "the folder to lock it");
    }
    do {
        rc = flock(fd, LOCK_EX);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        rc = failed(reterr, "lock", "the folder");
        close(fd);
        return rc;
    }
    return fd;
}

static bool name_draft(struct draft *draft)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        return false;
    }
    (void)snprintf(draft->name, sizeof(draft->name), "%sXXXXXX", draft_prefix);
    for (size_t at = strlen(draft_prefix); draft->name[at] != '\0'; at++) {
        draft->name[at] = letters[number % (sizeof(letters) - 1)];
        number /= sizeof(letters) - 1;
    }
    return true;
}

/* mkdtemp() for a folder that is known by its descriptor; with `from`, that folder is renamed. */
static int make_draft(struct draft *draft, const char *from, struct baton_error *reterr)
{
    for (int i = 0; i < DRAFT_TRIES && name_draft(draft); i++) {
        int rc = from == NULL ? mkdirat(draft->parent_fd, draft->name, 0700)
                              : renameat2(draft->parent_fd, from, draft->parent_fd, draft->name,
                                          RENAME_NOREPLACE);
        if (rc == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return failed(reterr, "make folder", draft->name);
}

/* Under the parent's lock, or a sweeper could find the draft before it is locked. */
int draft_new(struct draft *ret, int parent_fd, struct baton_error *reterr)
{
    struct draft draft = {.parent_fd = parent_fd, .fd = -1};
    int lock = folder_lock(parent_fd, reterr);
    int rc = lock < 0 ? lock : make_draft(&draft, NULL, reterr);

    if (rc == 0) {
        draft.fd = open_folder(parent_fd, draft.name);
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
    int rc = make_draft(&draft, name, reterr);

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
    struct walk walk = {.file = nothing, .folder = sync_folder};
    int rc = walk_at(&walk, draft->parent_fd, draft->name, 0, reterr);

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
    int fd = open_folder(parent_fd, name);
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
    int count = 0, rc = 0;
    DIR *folder;

    if (lock < 0) {
        return lock;
    }
    folder = fdopendir(lock); /* the lock goes with it */
    if (folder == NULL) {
        rc = failed(reterr, "read", "the folder");
        close(lock);
        return rc;
    }
    while (rc >= 0 && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, draft_prefix, strlen(draft_prefix)) == 0) {
            rc = sweep_one(parent_fd, entry->d_name, reterr);
            count += rc > 0;
        }
    }
    closedir(folder);
    return rc < 0 ? rc : count;
}
