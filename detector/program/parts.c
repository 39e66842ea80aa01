#include "detector/program/parts.h"

#include "base/error.h"
#include "web/exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int open_store(struct parts *parts, const struct parts_config *config,
                      struct baton_error *reterr)
{
    char folder[PATH_MAX];
    int code;

    if (!config->folder && !find_folder(folder)) {
        return error_set(reterr, BATON_EINVAL,
                         "no folder to keep models in: neither CACHE_DIRECTORY nor XDG_CACHE_HOME "
                         "nor HOME is set; --model-cache DIR names one");
    }
    code = store_open(&parts->store, config->folder ? config->folder : folder,
                      config->cache_bytes_max, reterr);
    return code ? error_wrap(reterr, "--model-cache") : 0;
}

static int open_file(struct parts *parts, const char *path, struct baton_error *reterr)
{
    const struct archive_rules rules = archive_rules_default();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code;

    if (fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    code = store_add(parts->store, fd, &rules, &parts->only, reterr);
    (void)close(fd);
    return code ? error_wrap(reterr, "%s", path) : 0;
}

int parts_open(struct parts *parts, struct parts_config *config, struct logger *logger,
               struct baton_error *reterr)
{
    int code;

    config->pool.loop = config->supply.loop = config->models.loop = &parts->loop;
    config->pool.logger = config->supply.logger = config->models.logger = logger;
    code = camera_pool_new(&parts->pool, &config->pool, reterr);
    code = code ? code : open_store(parts, config, reterr);
    if (!code && config->file) {
        code = open_file(parts, config->file, reterr);
    }
    if (code) {
        return code;
    }
    config->supply.store = parts->store;
    config->supply.only = parts->only;
    code = supply_new(&parts->supply, &config->supply, reterr);
    if (code) {
        return code;
    }
    config->models.supply = parts->supply;
    parts->models = models_new(&config->models);
    return parts->models ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");
}

void parts_close(struct parts *parts)
{
    if (parts->models) {
        models_close(parts->models);
    }
    supply_close(parts->supply);
    parts->supply = NULL;
    if (parts->pool) {
        camera_pool_close(parts->pool);
    }
}

void parts_free(struct parts *parts)
{
    camera_pool_free(parts->pool);
    models_free(parts->models);
    model_release(parts->only);
    store_close(parts->store);
    (void)uv_run(&parts->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&parts->loop);
}

static void measure_archives(struct supply_counters supply, struct buffer *body)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } rows[] = {
        {"baton_detector_archives_fetched_total", "Archives that came whole.", supply.fetched},
        {"baton_detector_archives_unchanged_total",
         "Archives that were not sent, because the one in the cache is still right.",
         supply.unchanged},
        {"baton_detector_archives_fetch_failures_total", "Archives that could not be fetched.",
         supply.fetch_fails},
        {"baton_detector_archives_refused_total",
         "Archives that came and are none, or found no room.", supply.refused},
        {"baton_detector_archives_from_before_total",
         "Times that the archive from before was used, as no new one was to be had.",
         supply.from_before},
        {"baton_detector_archives_rechecks_total",
         "Times that a server was asked whether the archive at work is still right.",
         supply.rechecks},
        {"baton_detector_archives_recheck_failures_total",
         "Of these, those without an answer, or refused: a signature was too old.",
         supply.recheck_fails},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exposition_single(body, rows[i].name, "counter", rows[i].help, (double)rows[i].value);
    }
}

void parts_measure(const struct parts *parts, struct buffer *body)
{
    models_measure(parts->models, body);
    if (!parts->only && parts->supply) {
        measure_archives(supply_counters(parts->supply), body);
    }
}
