#include "detector/program/archives.h"

#include "base/error.h"
#include "detector/exposition.h"
#include "detector/model/supply.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct archives {
    struct logger *logger;
    struct store *store;
    struct supply *supply;
};

struct ticket {
    struct archives *archives;
    void *asker;
    int64_t model_id;
    struct order *order; /* NULL: it was answered */
    struct model *model; /* NULL: none (yet) */
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

/* The folders above; the last one is made by who uses it. */
static int make_parents(const char *folder, struct baton_error *reterr)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path)) {
        return error_set(reterr, BATON_EINVAL, "%s: is too long", folder);
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            return error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
        }
        *slash = '/';
    }
    return 0;
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
    code = make_parents(folder, reterr);
    code = code ? code : store_open(&archives->store, folder, config->cache_bytes_max, reterr);
    if (code) {
        error_wrap(reterr, "--model-cache");
    }
    return code;
}

int archives_new(struct archives **ret, const struct archives_config *config,
                 struct baton_error *reterr)
{
    struct supply_config supply = {
        .loop = config->loop, .archive = archive_rules_default(), .fetch = fetch_rules_default()};
    struct archives *archives = calloc(1, sizeof(*archives));
    int code;

    if (!archives) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    archives->logger = config->logger;
    code = open_store(archives, config, reterr);
    if (!code) {
        supply.store = archives->store;
        supply.archive.archive_bytes_max = config->archive_bytes_max;
        supply.fetch.bytes_max = config->archive_bytes_max;
        supply.fetch.ca_file = config->ca_file;
        supply.fetch.hosts = config->hosts;
        code = supply_new(&archives->supply, &supply, reterr);
    }
    if (code) {
        archives_free(archives);
        return code;
    }
    *ret = archives;
    return 0;
}

void archives_close(struct archives *archives)
{
    if (archives) {
        supply_close(archives->supply, NULL, NULL);
        archives->supply = NULL;
    }
}

void archives_free(struct archives *archives)
{
    if (archives) {
        store_close(archives->store);
        free(archives);
    }
}

/* ---- Questions ------------------------------------------------------------------------------ */

static void on_end(void *userdata, struct model *model, const struct baton_error *error)
{
    struct ticket *ticket = userdata;

    ticket->order = NULL;
    ticket->model = model;
    if (!model) {
        models_arrived(ticket->asker, NULL, NULL, error); /* drops the ticket */
        return;
    }
    if (error) {
        log_warning(ticket->archives->logger, "model-from-before",
                    LOG_I64("model-id", ticket->model_id), LOG_STR("error", error->message));
    }
    models_arrived(ticket->asker, model->path, &model->pipeline, error);
}

static int want(void *userdata, void **ret, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr)
{
    struct archives *archives = userdata;
    struct ticket *ticket = calloc(1, sizeof(*ticket));
    int code;

    if (!ticket) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *ticket = (struct ticket){.archives = archives, .asker = asker, .model_id = model_id};
    code = supply_order(&ticket->order, archives->supply, model_id, url, on_end, ticket, reterr);
    if (code) {
        free(ticket);
        return code;
    }
    *ret = ticket;
    return 0;
}

static void drop(void *userdata, void *opaque)
{
    struct ticket *ticket = opaque;

    (void)userdata;
    if (ticket->order) {
        supply_cancel(ticket->order);
    }
    model_release(ticket->model);
    free(ticket);
}

struct models_source archives_source(struct archives *archives)
{
    return (struct models_source){.want = want, .drop = drop, .userdata = archives};
}

/* ---- Figures -------------------------------------------------------------------------------- */

void archives_measure(const struct archives *archives, struct buffer *body)
{
    struct supply_counters supply = {0};
    struct store_counters store;

    if (archives->supply) {
        supply = supply_counters(archives->supply);
    }
    store_counters(archives->store, &store);
    exposition_single(body, "archives_fetched_total", "counter", "Archives that came whole.",
                      (double)supply.fetched);
    exposition_single(body, "archives_unchanged_total", "counter",
                      "Archives that were not sent, because the one in the cache is still right.",
                      (double)supply.unchanged);
    exposition_single(body, "archives_fetch_failures_total", "counter",
                      "Archives that could not be fetched.", (double)supply.fetch_fails);
    exposition_single(body, "archives_unpacked_total", "counter",
                      "Archives that were new and good.", (double)store.unpacked);
    exposition_single(body, "archives_known_total", "counter",
                      "Archives that were fetched and in the cache already, by their digest.",
                      (double)store.known);
    exposition_single(body, "archives_refused_total", "counter",
                      "Archives that came and are none, or found no room.", (double)supply.refused);
    exposition_single(body, "archives_from_before_total", "counter",
                      "Times that the archive from before was used, as no new one was to be had.",
                      (double)supply.from_before);
}
