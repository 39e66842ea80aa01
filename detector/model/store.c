#include "detector/model/store.h"

#include "base/error.h"
#include "detector/model/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_TRIES = 1000 }; /* each is lost only to another one that has its file by then */

struct store {
    char *path; /* of models/ */
    int models_fd, origins_fd;
    atomic_uint_fast64_t bytes_max;
    atomic_uint_fast64_t unpacked, known; /* archives of store_add() */
};

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
            return folder_failed(reterr, "model cache: make folder", path);
        }
        *slash = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return folder_failed(reterr, "model cache: make folder", path);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : folder_failed(reterr, "model cache: open folder", path);
}

/* Unless another process adds a model just now, which clears up, too. */
static void sweep_draft(const struct store *store)
{
    int fd = folder_open(store->models_fd, ".");

    if (fd >= 0) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            (void)folder_remove(store->models_fd, DRAFT, NULL);
        }
        close(fd);
    }
}

int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr)
{
    struct store *store = calloc(1, sizeof(*store));
    int rc;

    if (store == NULL || asprintf(&store->path, "%s/models", folder) < 0) {
        free(store);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    store->models_fd = make_folder(folder, "models", reterr);
    store->origins_fd =
        store->models_fd < 0 ? store->models_fd : make_folder(folder, "origins", reterr);
    atomic_init(&store->bytes_max, bytes_max);
    if (store->origins_fd < 0) {
        rc = store->origins_fd;
        store_close(store);
        return rc;
    }
    sweep_draft(store);
    *ret = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->models_fd >= 0) {
        close(store->models_fd);
    }
    if (store->origins_fd >= 0) {
        close(store->origins_fd);
    }
    free(store->path);
    free(store);
}

int store_file(const struct store *store, struct baton_error *reterr)
{
    /* Every user of the name removes it: another one's file in its place is open there. */
    static const char name[] = ".fetch";
    int fd = -1;

    for (int tries = 0; tries < FILE_TRIES && fd < 0; tries++) {
        (void)unlinkat(store->models_fd, name, 0); /* also that of a process that was killed */
        fd = openat(store->models_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        return folder_failed(reterr, "model cache: make", "a file to fetch into");
    }
    (void)unlinkat(store->models_fd, name, 0);
    return fd;
}

/* ---- Holding -------------------------------------------------------------------------------- */

int model_pipeline(struct pipeline *ret, const struct model *model, struct baton_error *reterr)
{
    return pipeline_parse(ret, (const char *)model->text.data, model->text.bytes, reterr);
}

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
        buffer_fini(&model->text);
        free(model->path);
        free(model);
    }
}

/* Locks a folder by a descriptor of its own. Returns it, or a code. */
static int lock(int folder_fd, const char *name, int kind, const atomic_bool *is_canceled,
                struct baton_error *reterr)
{
    int fd = folder_open(folder_fd, name);
    int rc = fd < 0 ? folder_failed(reterr, "model cache: open folder", name)
                    : folder_lock(fd, kind, is_canceled, reterr);

    if (rc != 0 && fd >= 0) {
        close(fd);
    }
    return rc ? rc : fd;
}

/* Another process may have removed it while the lock was waited for. */
static bool is_named(const struct store *store, const char *digest, int fd)
{
    struct stat held, named;

    return fstat(fd, &held) == 0 &&
           fstatat(store->models_fd, digest, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static int hold(const struct store *store, const char *digest, int *ret, struct baton_error *reterr)
{
    static const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int fd = lock(store->models_fd, digest, LOCK_SH, NULL, reterr);
    int rc = fd < 0 ? fd : 0;

    if (rc == BATON_ENOENT || (rc == 0 && !is_named(store, digest, fd))) {
        rc = error_set(reterr, BATON_ENOENT, "model %s is not in the cache", digest);
    } else if (rc == 0 && futimens(fd, times) != 0) {
        rc = folder_failed(reterr, "model cache: hold", digest);
    }
    if (rc == 0) {
        *ret = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static int check_whole(struct model *model, const struct store *store, struct baton_error *reterr)
{
    struct pipeline pipeline = {0};
    int rc = archive_text(&model->text, store->models_fd, model->digest, reterr);

    rc = rc ? rc : model_pipeline(&pipeline, model, reterr);
    rc = rc ? rc : archive_check(model->fd, &pipeline);
    pipeline_fini(&pipeline);
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
    buffer_init(&model->text, ARCHIVE_TEXT_MAX);
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

static bool is_earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* All models of the folder. */
struct survey {
    uint64_t bytes;            /* a model whose size cannot be read counts as 0 */
    char oldest[DIGEST_BYTES]; /* the one that was used longest ago and that no process holds */
    struct timespec used;      /* its last use */
};

/* Adds a model. Sets its time of last use to now if a process holds it. The caller has the folder's
 * lock: the lock that is tried here must not look like a holder to others. */
static void survey_one(struct survey *survey, const struct store *store, const char *digest)
{
    static const struct timespec now[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int fd = folder_open(store->models_fd, digest);
    struct stat status;
    uint64_t bytes = 0;

    if (fd < 0) {
        return;
    }
    (void)folder_bytes(store->models_fd, digest, &bytes, NULL);
    survey->bytes += bytes;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)futimens(fd, now);
    } else if (fstat(fd, &status) == 0 &&
               (survey->oldest[0] == '\0' || is_earlier(&status.st_mtim, &survey->used))) {
        (void)snprintf(survey->oldest, DIGEST_BYTES, "%.64s", digest);
        survey->used = status.st_mtim;
    }
    close(fd);
}

/* Calls for each digest's name in the folder. */
static int for_each(const struct store *store, int folder_fd,
                    void (*call)(struct survey *survey, const struct store *store,
                                 const char *digest),
                    struct survey *survey, struct baton_error *reterr)
{
    int fd = folder_open(folder_fd, ".");
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int rc = folder != NULL ? 0 : folder_failed(reterr, "model cache: read", "the folder");

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

/* Removes a model unless a process holds it; then it returns 0. A damaged model is removed even if
 * it is held, because its holder needs another copy as well. If this process is killed meanwhile,
 * the next one finishes the removal. The caller has the folder's lock. */
static int evict_one(const struct store *store, const char *digest, bool is_damaged,
                     struct baton_error *reterr)
{
    int fd = folder_open(store->models_fd, digest);
    int rc = 0;

    if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || is_damaged)) {
        (void)folder_remove(store->models_fd, DRAFT, NULL);
        rc = renameat(store->models_fd, digest, store->models_fd, DRAFT) == 0
                 ? folder_remove(store->models_fd, DRAFT, reterr)
                 : folder_failed(reterr, "model cache: remove", digest);
        rc = rc ? rc : 1;
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* Removes an origin that cannot be read, or whose model is gone. */
static void sweep_origin(struct survey *survey, const struct store *store, const char *name)
{
    struct origin origin;
    int rc = store_origin(store, name, &origin, NULL);

    (void)survey;
    if (rc == BATON_ENOENT ||
        (rc == 0 && faccessat(store->models_fd, origin.digest, F_OK, AT_SYMLINK_NOFOLLOW) != 0)) {
        (void)unlinkat(store->origins_fd, name, 0);
    }
}

/* Returns 1 if the models are within the bound now, 0 if the held ones alone are too large. */
static int make_room_locked(const struct store *store, struct baton_error *reterr)
{
    for (;;) {
        struct survey survey = {0};
        int rc = for_each(store, store->models_fd, survey_one, &survey, reterr);

        if (rc == 0 && survey.bytes <= atomic_load(&store->bytes_max)) {
            return 1;
        }
        rc = rc || survey.oldest[0] == '\0' ? rc : evict_one(store, survey.oldest, false, reterr);
        if (rc <= 0) {
            return rc;
        }
    }
}

static int add_locked(struct store *store, int archive_fd, const char *digest,
                      const struct archive_rules *rules, struct model **ret,
                      struct baton_error *reterr)
{
    int rc = store_find(store, digest, ret, reterr);

    if (rc == 0) {
        atomic_fetch_add(&store->known, 1);
    }
    if (rc == BATON_ECORRUPT) { /* its files were changed */
        rc = evict_one(store, digest, true, reterr);
        rc = rc < 0 ? rc : BATON_ENOENT;
    }
    if (rc != BATON_ENOENT) {
        return rc;
    }
    rc = archive_unpack(archive_fd, store->models_fd, digest, rules, reterr);
    if (rc == 0) {
        atomic_fetch_add(&store->unpacked, 1);
        rc = store_find(store, digest, ret, reterr);
    }
    return rc;
}

static int make_room(struct store *store, struct model **model, struct baton_error *reterr)
{
    int rc = make_room_locked(store, reterr);

    if (rc != 1) {
        model_release(*model);
        (void)make_room_locked(store, NULL); /* no process holds it now */
        return rc < 0 ? rc
                      : error_set(reterr, BATON_EFULL,
                                  "model cache: the models in use leave no room for another one "
                                  "within %llu bytes: allow more",
                                  (unsigned long long)atomic_load(&store->bytes_max));
    }
    return 0;
}

int store_add(struct store *store, int archive_fd, const struct archive_rules *rules,
              struct model **ret, struct baton_error *reterr)
{
    char digest[DIGEST_BYTES];
    struct model *model = NULL;
    int lock_fd, rc = digest_file(archive_fd, digest);

    if (rc != 0) {
        return error_set(reterr, rc,
                         rc == BATON_ENOMEM ? "out of memory"
                                            : "model cache: an archive cannot be read");
    }
    lock_fd = lock(store->models_fd, ".", LOCK_EX, rules->is_canceled, reterr);
    if (lock_fd < 0) {
        return lock_fd;
    }
    (void)folder_remove(store->models_fd, DRAFT, NULL); /* of a process that was killed */
    rc = add_locked(store, archive_fd, digest, rules, &model, reterr);
    rc = rc ? rc : make_room(store, &model, reterr);
    (void)for_each(store, store->origins_fd, sweep_origin, NULL, NULL);
    close(lock_fd);
    if (rc == 0) {
        *ret = model;
    }
    return rc;
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

int store_origin(const struct store *store, const char *key, struct origin *ret,
                 struct baton_error *reterr)
{
    const char *digest = "", *etag = "";
    int fd = openat(store->origins_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    json_t *json;
    int rc = 0;

    if (fd < 0 && errno != ENOENT && errno != ELOOP) { /* it says nothing of the origin */
        return error_set(reterr, error_from_errno(errno), "model cache: %s: %s", key,
                         strerror(errno));
    }
    json = fd >= 0 ? json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (fd >= 0) {
        close(fd);
    }
    if (json_unpack(json, "{s:s, s:s}", "digest", &digest, "etag", &etag) != 0 ||
        !is_digest(digest) || strlen(etag) >= ETAG_BYTES) {
        rc = error_set(reterr, BATON_ENOENT, "model cache: nothing is known of %s", key);
    } else {
        (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
        (void)snprintf(ret->etag, sizeof(ret->etag), "%s", etag);
    }
    json_decref(json);
    return rc;
}

/* Writes a new file and renames it, under the folder's lock, so that what a killed writer has left
 * is overwritten. The origin is a hint: its loss costs one fetch. */
static int write_origin(const struct store *store, const char *key, const json_t *json,
                        struct baton_error *reterr)
{
    static const char draft[] = ".new";
    int lock_fd = lock(store->origins_fd, ".", LOCK_EX, NULL, reterr);
    int fd, rc = 0;

    if (lock_fd < 0) {
        return lock_fd;
    }
    fd = openat(store->origins_fd, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0 || json_dumpfd(json, fd, JSON_COMPACT) != 0 || fsync(fd) != 0 ||
        renameat(store->origins_fd, draft, store->origins_fd, key) != 0) {
        rc = folder_failed(reterr, "model cache: write origin", key);
    }
    if (fd >= 0) {
        close(fd);
    }
    close(lock_fd);
    return rc;
}

int store_origin_set(struct store *store, const char *key, const struct origin *origin,
                     struct baton_error *reterr)
{
    json_t *json = json_pack("{s:s, s:s}", "digest", origin->digest, "etag", origin->etag);
    int rc = json == NULL ? error_set(reterr, BATON_ENOMEM, "out of memory")
             : !is_digest(key)
                 ? error_set(reterr, BATON_EINVAL, "model cache: the key of an origin is no digest")
                 : write_origin(store, key, json, reterr);

    json_decref(json);
    return rc;
}
