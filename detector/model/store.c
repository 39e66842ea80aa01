#include "detector/model/store.h"

#include "base/error.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    COPY_BYTES = 1 << 20,
    LOOK_MS = 10,      /* between two tries to get a lock */
    FILE_TRIES = 1000, /* each is lost only to another one that has its file by then */
};

/* A file of either folder that is being written. What a killed process leaves is overwritten. */
static const char draft[] = ".new";
/* A file that will have no name, for a moment. */
static const char nameless[] = ".file";

struct store {
    char *folder;
    int archives_fd, origins_fd;
    atomic_uint_fast64_t bytes_max;
};

static int failed(struct baton_error *reterr, const char *what, const char *name)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "model cache: %s %s: %s", what, name,
                     strerror(errnum));
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* Makes the folder, and those above it with other rights, unless they are there, and opens it.
 * Returns the descriptor, or a code. */
static int make_folder(const char *folder, const char *name, struct baton_error *reterr)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        return error_set(reterr, BATON_EINVAL, "%s: is too long", folder);
    }
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, strcmp(path, folder) == 0 ? 0700 : 0755) != 0 && errno != EEXIST) {
            return failed(reterr, "make folder", path);
        }
        *slash = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return failed(reterr, "make folder", path);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : failed(reterr, "open folder", path);
}

/* Waits for other holders of the lock until `is_canceled` (NULL: never). */
static int wait_for_lock(int fd, const atomic_bool *is_canceled, struct baton_error *reterr)
{
    static const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return failed(reterr, "lock", "the folder");
        }
        if (is_canceled != NULL && atomic_load(is_canceled)) {
            return error_set(reterr, BATON_ECANCELED, "waiting for the folder was given up");
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Opens the folder anew and locks it, until the descriptor is closed. Returns it, or a code. */
static int lock(int folder_fd, const atomic_bool *is_canceled, struct baton_error *reterr)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? failed(reterr, "open", "the folder") : wait_for_lock(fd, is_canceled, reterr);

    if (rc != 0 && fd >= 0) {
        close(fd);
    }
    return rc ? rc : fd;
}

/* Removes what a killed process has left; its draft only if no other one is at work just now. */
static void sweep(const struct store *store)
{
    static const atomic_bool is_canceled = true;
    int lock_fd = lock(store->archives_fd, &is_canceled, NULL);

    (void)unlinkat(store->archives_fd, nameless, 0);
    if (lock_fd >= 0) {
        (void)unlinkat(store->archives_fd, draft, 0);
        close(lock_fd);
    }
}

int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr)
{
    struct store *store = calloc(1, sizeof(*store));
    int rc;

    if (store == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    store->folder = strdup(folder);
    store->archives_fd = store->folder != NULL ? make_folder(folder, "archives", reterr)
                                               : error_set(reterr, BATON_ENOMEM, "out of memory");
    store->origins_fd =
        store->archives_fd < 0 ? store->archives_fd : make_folder(folder, "origins", reterr);
    atomic_init(&store->bytes_max, bytes_max);
    if (store->origins_fd < 0) {
        rc = store->origins_fd;
        store_close(store);
        return rc;
    }
    sweep(store);
    *ret = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->archives_fd >= 0) {
        close(store->archives_fd);
    }
    if (store->origins_fd >= 0) {
        close(store->origins_fd);
    }
    free(store->folder);
    free(store);
}

/* Makes a folder again that was removed meanwhile; its descriptor then leads to the new one. */
static int renew(const struct store *store, int folder_fd, const char *name,
                 struct baton_error *reterr)
{
    struct stat status;
    int fd;

    if (fstat(folder_fd, &status) == 0 && status.st_nlink > 0) { /* else, on NFS, ESTALE */
        return 0;
    }
    fd = make_folder(store->folder, name, reterr);
    if (fd >= 0) {
        (void)dup3(fd, folder_fd, O_CLOEXEC); /* cannot fail: both are open */
        close(fd);
    }
    return fd < 0 ? fd : 0;
}

int store_file(const struct store *store, struct baton_error *reterr)
{
    int rc = renew(store, store->archives_fd, "archives", reterr), fd = -1;

    rc = rc ? rc : renew(store, store->origins_fd, "origins", reterr);
    errno = EEXIST;
    for (int tries = 0; tries < FILE_TRIES && rc == 0 && fd < 0 && errno == EEXIST; tries++) {
        (void)unlinkat(store->archives_fd, nameless, 0); /* also of a process that was killed */
        fd = openat(store->archives_fd, nameless, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (rc == 0 && fd < 0) {
        return failed(reterr, "make", "a file");
    }
    (void)unlinkat(store->archives_fd, nameless, 0);
    return rc ? rc : fd;
}

void store_set_max(struct store *store, uint64_t bytes_max)
{
    atomic_store(&store->bytes_max, bytes_max);
}

/* ---- Holding -------------------------------------------------------------------------------- */

struct model *model_share(struct model *model)
{
    atomic_fetch_add(&model->shares, 1);
    return model;
}

void model_release(struct model *model)
{
    if (model != NULL && atomic_fetch_sub(&model->shares, 1) == 1) {
        if (model->is_none) {
            (void)unlinkat(model->store->archives_fd, model->digest, 0);
        }
        close(model->fd);
        free(model);
    }
}

bool model_forget(struct model *model)
{
    return !atomic_exchange(&model->is_none, true);
}

/* Takes the descriptor, also after an error. */
static int model_new(struct model **ret, const struct store *store, const char *digest, int fd,
                     struct baton_error *reterr)
{
    struct model *model = calloc(1, sizeof(*model));

    if (model == NULL) {
        close(fd);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    model->store = store;
    model->fd = fd;
    atomic_init(&model->shares, 1);
    (void)snprintf(model->digest, sizeof(model->digest), "%s", digest);
    *ret = model;
    return 0;
}

/* Opens an archive that was kept, and marks it as used, until the descriptor is closed. Returns it,
 * or a code. It may be removed meanwhile: then it has no name, and is read all the same. */
static int hold(const struct store *store, const char *digest, struct baton_error *reterr)
{
    int fd = is_digest(digest) ? openat(store->archives_fd, digest,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                               : -1;
    int rc = 0;

    if (fd < 0) {
        return error_set(reterr, BATON_ENOENT, "model %.64s is not in the cache", digest);
    }
    if (flock(fd, LOCK_SH) != 0 || futimens(fd, NULL) != 0) {
        rc = failed(reterr, "hold", digest);
        close(fd);
    }
    return rc ? rc : fd;
}

/* An archive that is damaged is removed. */
static int check(const struct store *store, const char *digest, int fd, struct baton_error *reterr)
{
    char found[DIGEST_BYTES] = "";
    int rc = digest_file(fd, found);

    if (rc == BATON_ENOMEM) {
        return error_set(reterr, rc, "out of memory");
    }
    if (rc == 0 && strcmp(found, digest) == 0) {
        return 0;
    }
    (void)unlinkat(store->archives_fd, digest, 0);
    return error_set(reterr, BATON_ECORRUPT, "model cache: %s is damaged; it is fetched again",
                     digest);
}

int store_find(struct store *store, const char *digest, struct model **ret,
               struct baton_error *reterr)
{
    int fd = hold(store, digest, reterr);
    int rc = fd < 0 ? fd : check(store, digest, fd, reterr);

    if (rc == 0) {
        return model_new(ret, store, digest, fd, reterr);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* ---- Making room ---------------------------------------------------------------------------- */

/* All archives of the folder. */
struct survey {
    uint64_t bytes, bytes_held; /* of all; of those that a process holds */
    char oldest[DIGEST_BYTES];  /* the one that was used longest ago and that no process holds */
    int64_t used_ns;            /* its last use */
};

/* Adds an archive. Sets its time of last use to now if a process holds it. The caller has the
 * folder's lock: the lock that is tried here must not look like a holder to others. */
static void survey_one(struct survey *survey, const struct store *store, const char *digest)
{
    int fd = openat(store->archives_fd, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        int64_t used_ns = status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;

        survey->bytes += (uint64_t)status.st_size;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            (void)futimens(fd, NULL);
            survey->bytes_held += (uint64_t)status.st_size;
        } else if (survey->oldest[0] == '\0' || used_ns < survey->used_ns) {
            (void)snprintf(survey->oldest, DIGEST_BYTES, "%.64s", digest);
            survey->used_ns = used_ns;
        }
    }
    close(fd);
}

/* Calls for each digest's name in the folder. */
static int for_each(const struct store *store, int folder_fd,
                    void (*call)(struct survey *survey, const struct store *store,
                                 const char *digest),
                    struct survey *survey, struct baton_error *reterr)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int rc = folder != NULL ? 0 : failed(reterr, "read", "the folder");

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (is_digest(entry->d_name)) {
            call(survey, store, entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* Removes an origin that cannot be read, or whose archive is gone. */
static void sweep_origin(struct survey *survey, const struct store *store, const char *name)
{
    struct origin origin;
    int rc = store_origin(store, name, &origin);

    (void)survey;
    if (rc == BATON_ENOENT ||
        (rc == 0 && faccessat(store->archives_fd, origin.digest, F_OK, AT_SYMLINK_NOFOLLOW) != 0)) {
        (void)unlinkat(store->origins_fd, name, 0);
    }
}

/* Removes archives until there is room for so many bytes. The caller has the folder's lock. */
static int make_room(const struct store *store, uint64_t bytes, struct baton_error *reterr)
{
    for (;;) {
        struct survey survey = {.bytes = bytes, .bytes_held = bytes};
        uint64_t bytes_max = atomic_load(&store->bytes_max);
        int rc = for_each(store, store->archives_fd, survey_one, &survey, reterr);

        if (rc != 0 || survey.bytes <= bytes_max) {
            return rc;
        }
        if (survey.bytes_held > bytes_max) { /* else there is an oldest one */
            return error_set(reterr, BATON_EFULL,
                             "model cache: the models in use leave no room for another one within "
                             "%llu bytes: allow more",
                             (unsigned long long)bytes_max);
        }
        if (unlinkat(store->archives_fd, survey.oldest, 0) != 0) {
            return failed(reterr, "remove", survey.oldest);
        }
    }
}

/* ---- Writing -------------------------------------------------------------------------------- */

static int open_draft(int folder_fd)
{
    return openat(folder_fd, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Closes the draft. If all of it `is_written`, it gets its name once it is on the disk. */
static int take_draft(int folder_fd, int fd, bool is_written, const char *name,
                      struct baton_error *reterr)
{
    bool is_taken =
        is_written && fsync(fd) == 0 && renameat(folder_fd, draft, folder_fd, name) == 0;
    int rc = is_taken ? 0 : failed(reterr, "write", name);

    if (fd >= 0) {
        close(fd);
    }
    if (!is_taken) {
        (void)unlinkat(folder_fd, draft, 0);
    }
    return rc;
}

static bool copy(int to, int from)
{
    off_t at = 0;
    ssize_t done;

    do {
        done = sendfile(to, from, &at, COPY_BYTES);
    } while (done > 0 || (done < 0 && errno == EINTR));
    return done == 0;
}

/* Keeps an archive, also in place of a damaged one. The caller has the folder's lock. Returns what
 * hold() does, or a code. */
static int keep(const struct store *store, const char *digest, int archive_fd,
                struct baton_error *reterr)
{
    struct stat status = {0};
    int fd, rc;

    (void)fstat(archive_fd, &status);
    rc = make_room(store, (uint64_t)status.st_size, reterr);
    if (rc != 0) {
        return rc;
    }
    fd = open_draft(store->archives_fd);
    rc = take_draft(store->archives_fd, fd, fd >= 0 && copy(fd, archive_fd), digest, reterr);
    return rc ? rc : hold(store, digest, reterr);
}

int store_add(struct store *store, int archive_fd, const atomic_bool *is_canceled,
              struct model **ret, struct baton_error *reterr)
{
    char digest[DIGEST_BYTES];
    int lock_fd, fd, rc = digest_file(archive_fd, digest);

    if (rc != 0) {
        return error_set(reterr, rc,
                         rc == BATON_ENOMEM ? "out of memory"
                                            : "model cache: an archive cannot be read");
    }
    lock_fd = lock(store->archives_fd, is_canceled, reterr);
    if (lock_fd < 0) {
        return lock_fd;
    }
    rc = store_find(store, digest, ret, NULL); /* one beside it would take room twice */
    if (rc != 0) {
        fd = keep(store, digest, archive_fd, reterr);
        rc = fd < 0 ? fd : model_new(ret, store, digest, fd, reterr);
        (void)for_each(store, store->origins_fd, sweep_origin, NULL, NULL);
    }
    close(lock_fd);
    return rc;
}

/* ---- Origins -------------------------------------------------------------------------------- */

int store_origin(const struct store *store, const char *key, struct origin *ret)
{
    const char *digest = "", *etag = "";
    int fd = openat(store->origins_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    json_t *json;
    int rc = 0;

    if (fd < 0 && errno != ENOENT && errno != ELOOP) { /* it says nothing of the origin */
        return error_from_errno(errno);
    }
    json = fd >= 0 ? json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (fd >= 0) {
        close(fd);
    }
    if (json_unpack(json, "{s:s, s:s}", "digest", &digest, "etag", &etag) != 0 ||
        !is_digest(digest) || strlen(etag) >= ETAG_BYTES) {
        rc = BATON_ENOENT;
    } else {
        (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
        (void)snprintf(ret->etag, sizeof(ret->etag), "%s", etag);
    }
    json_decref(json);
    return rc;
}

/* The origin is a hint: its loss costs one fetch. */
int store_origin_set(struct store *store, const char *key, const char *digest, const char *etag)
{
    int lock_fd = lock(store->origins_fd, NULL, NULL);
    json_t *json;
    int fd, rc;

    assert(is_digest(key));
    if (lock_fd < 0) {
        return lock_fd;
    }
    json = json_pack("{s:s, s:s}", "digest", digest, "etag", etag);
    fd = open_draft(store->origins_fd);
    rc = take_draft(store->origins_fd, fd, fd >= 0 && json_dumpfd(json, fd, JSON_COMPACT) == 0, key,
                    NULL);
    json_decref(json);
    close(lock_fd);
    return rc;
}
