#include "detector/program/program.h"

#include "base/error.h"
#include "options/uv_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    THREADS = 40, /* of libuv: SUPPLY_QUESTIONS_MAX and some for pictures */
    HEAPS = 2,    /* glibc would make up to eight a core, each as large as its fullest moment */
};

/* False: there is no default folder. */
static bool find_folder(char ret[PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"CACHE_DIRECTORY", ""},
                  {"XDG_CACHE_HOME", "/baton-detector"},
                  {"HOME", "/.cache/baton-detector"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0] == '/') {
            return snprintf(ret, PATH_MAX, "%s%s", value, places[i].below) < PATH_MAX;
        }
    }
    return false;
}

static int open_store(struct parts *parts, const struct program_settings *settings,
                      struct baton_error *reterr)
{
    char folder[PATH_MAX];
    int code;

    if (!settings->folder && !find_folder(folder)) {
        return error_set(reterr, BATON_EINVAL,
                         "no folder to keep models in: neither CACHE_DIRECTORY nor XDG_CACHE_HOME "
                         "nor HOME is set; --model-cache DIR names one");
    }
    code = store_open(&parts->store, settings->folder ? settings->folder : folder,
                      settings->cache_bytes_max, reterr);
    return code ? error_wrap(reterr, "--model-cache") : 0;
}

/* A pipe is refused, and not waited for. */
static int open_file(struct parts *parts, const struct program_settings *settings,
                     struct baton_error *reterr)
{
    const char *path = settings->file;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    int code;

    if (fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    code = fstat(fd, &status) == 0 && S_ISREG(status.st_mode)
               ? store_add(parts->store, fd, NULL, &parts->only, reterr)
               : error_set(reterr, BATON_EPROTO, "an archive is a file, and this is none");
    (void)close(fd);
    return code ? error_wrap(reterr, "%s", path) : 0;
}

int parts_open(struct parts *parts, struct program_settings *settings, struct logger *logger,
               struct baton_error *reterr)
{
    int code;

    settings->pool.loop = settings->supply.loop = settings->models.loop = &parts->loop;
    settings->pool.logger = settings->supply.logger = settings->models.logger = logger;
    (void)mallopt(M_ARENA_MAX, HEAPS);
    code = uv_threads_start(&parts->loop, THREADS, reterr);
    code = code ? code : camera_pool_new(&parts->pool, &settings->pool, reterr);
    code = code ? code : open_store(parts, settings, reterr);
    if (!code && settings->file) {
        code = open_file(parts, settings, reterr);
    }
    if (code) {
        return code;
    }
    settings->supply.store = parts->store;
    settings->supply.only = parts->only;
    code = supply_new(&parts->supply, &settings->supply, reterr);
    settings->models.supply = parts->supply;
    parts->models.config = settings->models;
    return code;
}

void parts_close(struct parts *parts)
{
    models_close(&parts->models);
    supply_close(parts->supply);
    parts->supply = NULL;
    if (parts->pool) {
        camera_pool_close(parts->pool);
    }
}

void parts_free(struct parts *parts)
{
    camera_pool_free(parts->pool);
    model_release(parts->only);
    store_close(parts->store);
    (void)uv_run(&parts->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&parts->loop);
}
