#include "detector/model/store.h"

#include "base/error.h"
#include "detector/model/folder.h"
#include "detector/model/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ADD_TRIES = 8, /* another process may remove what was just added */
    MODELS_MAX = 4096,
    ORIGIN_TEXT_MAX = 1024,
    STALE_S = 3600,
};

struct store {
    char *path; /* of models/ */
    int folder_fd, models_fd, origins_fd;
    atomic_uint_fast64_t bytes_max;
    atomic_uint_fast64_t unpacked, known; /* archives of store_add() */
};

static int failed(struct baton_error *reterr, const char *what, const char *name)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "model cache: %s %s: %s", what, name,
                     strerror(errnum));
}

static int open_folder(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static int make_folder(int parent_fd, const char *name, int *ret, struct baton_error *reterr)
{
    if (mkdirat(parent_fd, name, 0700) != 0 && errno != EEXIST) {
        return failed(reterr, "make folder", name);
    }
    *ret = parent_fd == AT_FDCWD ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                 : open_folder(parent_fd, name);
    return *ret >= 0 ? 0 : failed(reterr, "open folder", name);
}

int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr)
{
    struct store *store = calloc(1, sizeof(*store));
    int rc = 0;

    if (store == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    store->folder_fd = store->models_fd = store->origins_fd = -1;
    atomic_init(&store->bytes_max, bytes_max);
    if (asprintf(&store->path, "%s/models", folder) < 0) {
        store->path = NULL;
        rc = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = rc ? rc : make_folder(AT_FDCWD, folder, &store->folder_fd, reterr);
    rc = rc ? rc : make_folder(store->folder_fd, "models", &store->models_fd, reterr);
    rc = rc ? rc : make_folder(store->folder_fd, "origins", &store->origins_fd, reterr);
    if (rc == 0) {
        rc = drafts_sweep(store->models_fd, reterr);
        rc = rc > 0 ? 0 : rc;
    }
    if (rc != 0) {
        store_close(store);
        return rc;
    }
    *ret = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        int fd = i == 0 ? store->folder_fd : i == 1 ? store->models_fd : store->origins_fd;
        if (fd >= 0) {
            close(fd);
        }
    }
    free(store->path);
    free(store);
}

/* For a file system without O_TMPFILE: makes a file and removes its name at once. */
static int unlinked_file(const struct store *store)
{
    uint64_t number = 0;
    char name[64];
    int fd;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        return -1;
    }
    (void)snprintf(name, sizeof(name), ".fetch-%016llx", (unsigned long long)number);
    fd = openat(store->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)unlinkat(store->folder_fd, name, 0);
    }
    return fd;
}

int store_file(const struct store *store, struct baton_error *reterr)
{
    int fd = openat(store->folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0) {
        return fd;
    }
    fd = errno == EOPNOTSUPP || errno == EISDIR ? unlinked_file(store) : -1;
    return fd >= 0 ? fd : failed(reterr, "make", "a file to fetch into");
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
        if (model->fd >= 0) {
            close(model->fd);
        }
        pipeline_fini(&model->pipeline);
        free(model->path);
        free(model);
    }
}

/* The caller has the folder's lock, so that no process removes the model before it is held. */
static int hold(const struct store *store, const char *digest, int *ret, struct baton_error *reterr)
{
    static const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int lock = folder_lock(store->models_fd, reterr);
    int fd, rc = 0;

    if (lock < 0) {
        return lock;
    }
    fd = open_folder(store->models_fd, digest);
    if (fd < 0 && errno == ENOENT) {
        rc = error_set(reterr, BATON_ENOENT, "model %s is not in the cache", digest);
    } else if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) != 0 || futimens(fd, times) != 0) {
        rc = failed(reterr, "hold", digest);
    }
    close(lock);
    if (rc != 0 && fd >= 0) {
        close(fd);
    }
    if (rc == 0) {
        *ret = fd;
    }
    return rc;
}

static int check_whole(struct model *model, const struct store *store, struct baton_error *reterr)
{
    int rc = archive_pipeline(&model->pipeline, store->models_fd, model->digest, reterr);

    rc = rc ? rc : archive_check(model->fd, &model->pipeline);
    return rc == 0 ? 0
           : rc == BATON_ENOMEM
               ? error_set(reterr, rc, "out of memory")
               : error_set(reterr, BATON_ECORRUPT,
                           "model cache: %s is damaged; it is fetched again", model->digest);
}

int store_find(struct store *store, const char *digest, struct model **ret,
               struct baton_error *reterr)
{
    struct model *model;
    int rc;

    if (!is_digest(digest)) {
        return error_set(reterr, BATON_ENOENT, "model cache: no digest of a model");
    }
    model = calloc(1, sizeof(*model));
    if (model == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    model->fd = -1;
    atomic_init(&model->shares, 1);
    (void)snprintf(model->digest, sizeof(model->digest), "%s", digest);
    rc = hold(store, digest, &model->fd, reterr);
    if (rc == 0 && asprintf(&model->path, "%s/%s", store->path, digest) < 0) {
        model->path = NULL;
        rc = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = rc ? rc : check_whole(model, store, reterr);
    if (rc != 0) {
        model_release(model);
        return rc;
    }
    *ret = model;
    return 0;
}

/* ---- Making room ---------------------------------------------------------------------------- */

struct cached {
    char digest[DIGEST_BYTES];
    struct timespec used;
    uint64_t bytes;
};

static int by_age(const void *a, const void *b)
{
    const struct timespec *left = &((const struct cached *)a)->used;
    const struct timespec *right = &((const struct cached *)b)->used;

    if (left->tv_sec != right->tv_sec) {
        return left->tv_sec < right->tv_sec ? -1 : 1;
    }
    return (left->tv_nsec > right->tv_nsec) - (left->tv_nsec < right->tv_nsec);
}

/* Sets the time of last use of a model that a process holds to now. The caller has the folder's
 * lock: the lock that is tried here must not look like a holder to others. */
static void note_use(const struct store *store, struct cached *cached)
{
    static const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int fd = open_folder(store->models_fd, cached->digest);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)futimens(fd, times);
        (void)clock_gettime(CLOCK_REALTIME, &cached->used);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Lists all models, the one that was used longest ago first. A model whose size cannot be read
 * counts as 0 bytes. */
static int list_cached(const struct store *store, struct cached *ret, size_t *count,
                       struct baton_error *reterr)
{
    int fd = open_folder(store->models_fd, ".");
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    size_t filled = 0;

    if (folder == NULL) {
        int rc = failed(reterr, "read", "the folder");
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    while (filled < MODELS_MAX && (entry = readdir(folder)) != NULL) {
        struct stat status;
        if (is_digest(entry->d_name) &&
            fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            struct cached *cached = &ret[filled++];
            (void)snprintf(cached->digest, sizeof(cached->digest), "%.64s", entry->d_name);
            cached->used = status.st_mtim;
            (void)folder_bytes(store->models_fd, cached->digest, &cached->bytes, NULL);
            note_use(store, cached);
        }
    }
    closedir(folder);
    qsort(ret, filled, sizeof(*ret), by_age);
    *count = filled;
    return 0;
}

/* Removes a model unless a process holds it; then it returns 0. A damaged model is removed even if
 * it is held, because its holder needs another copy as well. If this process is killed meanwhile,
 * the next one finishes the removal. The caller has the folder's lock. */
static int evict_one(const struct store *store, const char *digest, bool is_damaged,
                     struct baton_error *reterr)
{
    struct draft draft;
    int fd = open_folder(store->models_fd, digest);
    int rc;

    if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) != 0 && !is_damaged)) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    rc = draft_of(&draft, store->models_fd, digest, fd, reterr);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    draft_drop(&draft);
    return 1;
}

/* A file that is being written is young; an old one has lost its writer. */
static bool is_stale_draft(int folder_fd, const char *name)
{
    struct timespec now;
    struct stat status;

    return name[0] == '.' && fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           now.tv_sec - status.st_mtim.tv_sec > STALE_S;
}

static bool is_there(const struct store *store, const char *digest)
{
    return is_digest(digest) && faccessat(store->models_fd, digest, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* True for an origin that cannot be read, or whose models are all gone. */
static bool is_astray(const struct store *store, const char *name)
{
    struct origin origin;

    return is_digest(name) &&
           (store_origin(store, name, &origin, NULL) != 0 ||
            (!is_there(store, origin.digest) && !is_there(store, origin.before)));
}

static void sweep_origins(const struct store *store)
{
    int fd = open_folder(store->origins_fd, ".");
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (is_astray(store, entry->d_name) || is_stale_draft(fd, entry->d_name)) {
            (void)unlinkat(store->origins_fd, entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    } else if (fd >= 0) {
        close(fd);
    }
}

/* Returns 1 if the models are within the bound now, 0 if the held ones alone are too large. */
static int make_room_locked(const struct store *store, struct cached *cached,
                            struct baton_error *reterr)
{
    uint64_t bytes_max = atomic_load(&store->bytes_max);
    uint64_t total = 0;
    size_t count = 0;
    int rc = list_cached(store, cached, &count, reterr);

    for (size_t i = 0; i < count; i++) {
        total += cached[i].bytes;
    }
    for (size_t i = 0; rc >= 0 && total > bytes_max && i < count; i++) {
        rc = evict_one(store, cached[i].digest, false, reterr);
        total -= rc > 0 ? cached[i].bytes : 0;
    }
    return rc < 0 ? rc : total <= bytes_max;
}

static int make_room(struct store *store, struct baton_error *reterr)
{
    struct cached *cached = calloc(MODELS_MAX, sizeof(*cached));
    int lock = cached != NULL ? folder_lock(store->models_fd, reterr)
                              : error_set(reterr, BATON_ENOMEM, "out of memory");
    int rc = lock >= 0 ? make_room_locked(store, cached, reterr) : lock;

    if (lock >= 0) {
        sweep_origins(store);
        close(lock);
    }
    free(cached);
    return rc;
}

/* Removes a model whose files were changed, so that it is unpacked again. */
static int remove_damaged(const struct store *store, const char *digest, struct baton_error *reterr)
{
    int lock = folder_lock(store->models_fd, reterr);
    int rc = lock >= 0 ? evict_one(store, digest, true, reterr) : lock;

    if (lock >= 0) {
        close(lock);
    }
    return rc == 0 ? BATON_ECORRUPT : rc > 0 ? BATON_ENOENT : rc;
}

static int add_once(struct store *store, int archive_fd, const char *digest,
                    const struct archive_rules *rules, struct model **ret,
                    struct baton_error *reterr)
{
    int rc = store_find(store, digest, ret, reterr);

    if (rc == BATON_ECORRUPT) {
        rc = remove_damaged(store, digest, reterr);
    }
    if (rc == 0) {
        atomic_fetch_add(&store->known, 1);
    }
    if (rc == BATON_ENOENT) {
        rc = archive_unpack(archive_fd, store->models_fd, digest, rules, reterr);
        if (rc == 0 || rc == BATON_EEXIST) { /* another process added it first */
            atomic_fetch_add(rc == 0 ? &store->unpacked : &store->known, 1);
            rc = store_find(store, digest, ret, reterr);
        }
    }
    return rc;
}

int store_add(struct store *store, int archive_fd, const struct archive_rules *rules,
              struct model **ret, struct baton_error *reterr)
{
    char digest[DIGEST_BYTES];
    struct model *model = NULL;
    int rc = digest_file(archive_fd, digest);

    if (rc != 0) {
        return error_set(reterr, rc,
                         rc == BATON_ENOMEM ? "out of memory"
                                            : "model cache: an archive cannot be read");
    }
    rc = BATON_ENOENT;
    for (int i = 0; rc == BATON_ENOENT && i < ADD_TRIES; i++) {
        rc = add_once(store, archive_fd, digest, rules, &model, reterr);
    }
    if (rc != 0) {
        return rc;
    }
    rc = make_room(store, reterr);
    if (rc != 1) {
        model_release(model);
        (void)make_room(store, NULL); /* no process holds it now */
        return rc < 0 ? rc
                      : error_set(reterr, BATON_EFULL,
                                  "model cache: the models in use leave no room for another one "
                                  "within %llu bytes: allow more",
                                  (unsigned long long)atomic_load(&store->bytes_max));
    }
    *ret = model;
    return 0;
}

void store_set_max(struct store *store, uint64_t bytes_max)
{
    atomic_store(&store->bytes_max, bytes_max);
}

void store_counters(const struct store *store, struct store_counters *ret)
{
    *ret = (struct store_counters){atomic_load(&store->unpacked), atomic_load(&store->known)};
}

/* ---- Origins -------------------------------------------------------------------------------- */

static int bad_origin(const char *key, struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOENT, "model cache: origin %s is damaged", key);
}

int store_origin(const struct store *store, const char *key, struct origin *ret,
                 struct baton_error *reterr)
{
    char text[ORIGIN_TEXT_MAX];
    const char *digest, *etag, *before;
    ssize_t got;
    json_t *json;
    int fd = openat(store->origins_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0;

    if (fd < 0) {
        return errno == ENOENT
                   ? error_set(reterr, BATON_ENOENT, "model cache: nothing is known of %s", key)
                   : failed(reterr, "open origin", key);
    }
    got = read(fd, text, sizeof(text));
    close(fd);
    json = got > 0 ? json_loadb(text, (size_t)got, JSON_REJECT_DUPLICATES, NULL) : NULL;
    digest = json_string_value(json_object_get(json, "digest"));
    etag = json_string_value(json_object_get(json, "etag"));
    before = json_string_value(json_object_get(json, "before"));
    if (digest == NULL || etag == NULL || !is_digest(digest) || strlen(etag) >= ETAG_BYTES) {
        rc = bad_origin(key, reterr);
    } else {
        (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
        (void)snprintf(ret->etag, sizeof(ret->etag), "%s", etag);
        (void)snprintf(ret->before, sizeof(ret->before), "%s",
                       before != NULL && is_digest(before) ? before : "");
    }
    json_decref(json);
    return rc;
}

/* Writes a new file and renames it. The origin is a hint: its loss costs one fetch. */
static int write_origin(const struct store *store, const char *key, const char *text,
                        struct baton_error *reterr)
{
    char draft[DIGEST_BYTES + 32];
    size_t bytes = strlen(text);
    bool is_right;
    int fd;

    if (!is_digest(key)) {
        return error_set(reterr, BATON_EINVAL, "model cache: the key of an origin is no digest");
    }
    (void)snprintf(draft, sizeof(draft), ".%ld-%s", (long)gettid(), key);
    fd = openat(store->origins_fd, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0) {
        return failed(reterr, "write origin", key);
    }
    is_right = write(fd, text, bytes) == (ssize_t)bytes && fsync(fd) == 0;
    is_right = close(fd) == 0 && is_right;
    if (!is_right || renameat(store->origins_fd, draft, store->origins_fd, key) != 0) {
        int rc = failed(reterr, "write origin", key);
        (void)unlinkat(store->origins_fd, draft, 0);
        return rc;
    }
    return 0;
}

int store_origin_set(struct store *store, const char *key, const struct origin *origin,
                     struct baton_error *reterr)
{
    json_t *json = json_pack("{s:s, s:s, s:s*}", "digest", origin->digest, "etag", origin->etag,
                             "before", origin->before[0] != '\0' ? origin->before : NULL);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    int rc = text != NULL ? write_origin(store, key, text, reterr)
                          : error_set(reterr, BATON_ENOMEM, "out of memory");

    free(text);
    json_decref(json);
    return rc;
}
