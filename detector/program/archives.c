#include "detector/program/archives.h"

#include "base/error.h"
#include "web/exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct archives {
    struct store *store;
    struct supply *supply;
    struct model *only; /* the archive of the file; NULL: none */
};

bool archives_folder(char *ret, size_t ret_bytes)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"CACHE_DIRECTORY", ""},
                  {"XDG_CACHE_HOME", "/baton-detector"},
                  {"HOME", "/.cache/baton-detector"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0] == '/') {
            int length = snprintf(ret, ret_bytes, "%s%s", value, places[i].below);
            return length > 0 && (size_t)length < ret_bytes;
        }
    }
    return false;
}

static int open_store(struct archives *archives, const struct archives_config *config,
                      struct baton_error *reterr)
{
    char folder[PATH_MAX];
    int code;

    if (config->folder) {
        (void)snprintf(folder, sizeof(folder), "%s", config->folder);
    } else if (!archives_folder(folder, sizeof(folder))) {
        return error_set(reterr, BATON_EINVAL,
                         "no folder to keep models in: neither CACHE_DIRECTORY nor XDG_CACHE_HOME "
                         "nor HOME is set; --model-cache DIR names one");
    }
    code = store_open(&archives->store, folder, config->cache_bytes_max, reterr);
    if (code) {
        error_wrap(reterr, "--model-cache");
    }
    return code;
}

static int open_file(struct archives *archives, const char *path, struct baton_error *reterr)
{
    const struct archive_rules rules = archive_rules_default();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code;

    if (fd < 0) {
        return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    code = store_add(archives->store, fd, &rules, &archives->only, reterr);
    (void)close(fd);
    return code ? error_wrap(reterr, "%s", path) : 0;
}

static int open_supply(struct archives *archives, const struct archives_config *config,
                       struct baton_error *reterr)
{
    struct supply_config supply = {.loop = config->loop,
                                   .logger = config->logger,
                                   .store = archives->store,
                                   .archive = archive_rules_default(),
                                   .fetch = fetch_rules_default(),
                                   .recheck_ms = config->recheck_ms,
                                   .only = archives->only};

    supply.archive.archive_bytes_max = config->archive_bytes_max;
    supply.fetch.ca_file = config->ca_file;
    supply.fetch.hosts = config->hosts;
    supply.fetch.leads_inside = config->leads_inside;
    return supply_new(&archives->supply, &supply, reterr);
}

int archives_new(struct archives **ret, const struct archives_config *config,
                 struct baton_error *reterr)
{
    struct archives *archives = calloc(1, sizeof(*archives));
    int code;

    if (!archives) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = open_store(archives, config, reterr);
    if (!code && config->file) {
        code = open_file(archives, config->file, reterr);
    }
    code = code ? code : open_supply(archives, config, reterr);
    if (code) {
        archives_free(archives);
        return code;
    }
    *ret = archives;
    return 0;
}

struct supply *archives_supply(struct archives *archives)
{
    return archives->supply;
}

void archives_set(struct archives *archives, uint64_t cache_bytes_max, int recheck_ms)
{
    store_set_max(archives->store, cache_bytes_max);
    supply_set_recheck(archives->supply, recheck_ms);
}

void archives_close(struct archives *archives)
{
    if (archives) {
        supply_close(archives->supply);
        archives->supply = NULL;
    }
}

void archives_free(struct archives *archives)
{
    if (archives) {
        model_release(archives->only);
        store_close(archives->store);
        free(archives);
    }
}

void archives_measure(const struct archives *archives, struct buffer *body)
{
    struct supply_counters supply = {0};

    if (archives->supply) {
        supply = supply_counters(archives->supply);
    }

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
