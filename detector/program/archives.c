#include "detector/program/archives.h"

#include "base/error.h"
#include "detector/model/supply.h"
#include "web/exposition.h"

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
    struct order *order;    /* NULL: it was answered */
    struct model *model;    /* NULL: none (yet) */
    struct ticket *held;    /* of look(): the ticket whose model runs, until the answer */
    char etag[ETAG_BYTES];  /* of the server's archive when it was last seen; "": none */
    bool is_other;          /* the archive of that ETag is bad, so `model` is another */
    char key[DIGEST_BYTES]; /* of number and address */
    bool is_unproven;       /* the supply must still hear that the model runs */
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

/* Makes the folders above `folder`; the user of `folder` makes that one. */
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
        supply.fetch.leads_inside = config->leads_inside;
        code = supply_new(&archives->supply, &supply, reterr);
    }
    if (code) {
        archives_free(archives);
        return code;
    }
    *ret = archives;
    return 0;
}

void archives_set_cache(struct archives *archives, uint64_t cache_bytes_max)
{
    store_set_max(archives->store, cache_bytes_max);
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

static void take(struct ticket *ticket, const struct supplied *supplied)
{
    ticket->order = NULL;
    ticket->model = supplied->model;
    ticket->is_other = supplied->is_bad;
    ticket->is_unproven = supplied->model && !supplied->error && supplied->is_unproven;
    (void)snprintf(ticket->key, sizeof(ticket->key), "%s", supplied->key);
    (void)snprintf(ticket->etag, sizeof(ticket->etag), "%s", supplied->etag);
}

static void on_end(void *userdata, const struct supplied *supplied)
{
    struct ticket *ticket = userdata;
    struct model *model = supplied->model;

    take(ticket, supplied);
    if (!model) {
        models_arrived(ticket->asker, NULL, NULL, supplied->error); /* drops the ticket */
        return;
    }
    if (supplied->error) {
        log_warning(ticket->archives->logger, "model-from-before",
                    LOG_I64("model-id", ticket->model_id),
                    LOG_STR("error", supplied->error->message));
    }
    models_arrived(ticket->asker, model->path, &model->pipeline, supplied->error);
}

/* Notes the ETag of the server's archive, which is the one that runs, or a bad one. */
static void note_seen(struct ticket *held, const struct ticket *seen)
{
    held->is_other = seen->is_other;
    (void)snprintf(held->etag, sizeof(held->etag), "%s", seen->etag);
}

static void answer_newer(struct ticket *ticket)
{
    struct model *model = ticket->model;

    models_arrived(ticket->asker, model->path, &model->pipeline, NULL);
}

/* The answer may drop the ticket. */
static void on_looked(void *userdata, const struct supplied *supplied)
{
    struct ticket *ticket = userdata;
    struct ticket *held = ticket->held;
    bool was_other = held->is_other;

    take(ticket, supplied);
    ticket->held = NULL;
    if (ticket->model) { /* a newer model; the asker decides whether it can run */
        answer_newer(ticket);
    } else if (supplied->error) {
        if (supplied->is_bad) {
            note_seen(held, ticket);
        }
        models_look_failed(ticket->asker, supplied->is_bad, supplied->error);
    } else if (strcmp(ticket->etag, held->etag) == 0) {
        models_unchanged(ticket->asker);
    } else { /* the model that runs, under another ETag */
        note_seen(held, ticket);
        if (was_other) { /* the server had another archive meanwhile */
            ticket->model = model_share(held->model);
            answer_newer(ticket);
        } else {
            models_unchanged(ticket->asker);
        }
    }
}

static struct ticket *ticket_new(struct archives *archives, void *asker, int64_t model_id,
                                 struct baton_error *reterr)
{
    struct ticket *ticket = calloc(1, sizeof(*ticket));

    if (!ticket) {
        (void)error_set(reterr, BATON_ENOMEM, "out of memory");
        return NULL;
    }
    *ticket = (struct ticket){.archives = archives, .asker = asker, .model_id = model_id};
    return ticket;
}

static int place(void **ret, struct ticket *ticket, const char *url, const struct origin *at_work,
                 struct baton_error *reterr)
{
    int code = supply_order(&ticket->order, ticket->archives->supply, ticket->model_id, url,
                            at_work, at_work ? on_looked : on_end, ticket, reterr);

    if (code) {
        free(ticket);
        return code;
    }
    *ret = ticket;
    return 0;
}

static int want(void *userdata, void **ret, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr)
{
    struct ticket *ticket = ticket_new(userdata, asker, model_id, reterr);

    return ticket ? place(ret, ticket, url, NULL, reterr) : BATON_ENOMEM;
}

static int look(void *userdata, void **ret, const char *url, void *opaque, void *asker,
                struct baton_error *reterr)
{
    struct ticket *held = opaque;
    struct origin at_work = {.etag = ""};
    struct ticket *ticket;

    if (!held->etag[0]) {
        return error_set(reterr, BATON_ENOTSUP, "its server gives no ETag");
    }
    ticket = ticket_new(userdata, asker, held->model_id, reterr);
    if (!ticket) {
        return BATON_ENOMEM;
    }
    ticket->held = held;
    (void)snprintf(at_work.digest, sizeof(at_work.digest), "%s", held->model->digest);
    (void)snprintf(at_work.etag, sizeof(at_work.etag), "%s", held->etag);
    return place(ret, ticket, url, &at_work, reterr);
}

static void tell_runs(void *opaque)
{
    struct ticket *ticket = opaque;

    if (ticket->is_unproven) {
        ticket->is_unproven = false;
        supply_prove(ticket->archives->supply, ticket->key, ticket->model->digest);
    }
}

static void reject(void *held, void *opaque, const struct baton_error *error)
{
    struct ticket *ticket = opaque;

    supply_reject(ticket->archives->supply, ticket->model->digest, error);
    if (held) {
        ticket->is_other = true;
        note_seen(held, ticket);
    }
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
    return (struct models_source){.want = want,
                                  .look = look,
                                  .accept = tell_runs,
                                  .reject = reject,
                                  .drop = drop,
                                  .userdata = archives};
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
    exposition_single(body, "baton_detector_archives_fetched_total", "counter",
                      "Archives that came whole.", (double)supply.fetched);
    exposition_single(body, "baton_detector_archives_unchanged_total", "counter",
                      "Archives that were not sent, because the one in the cache is still right.",
                      (double)supply.unchanged);
    exposition_single(body, "baton_detector_archives_fetch_failures_total", "counter",
                      "Archives that could not be fetched.", (double)supply.fetch_fails);
    exposition_single(body, "baton_detector_archives_unpacked_total", "counter",
                      "Archives that were new and good.", (double)store.unpacked);
    exposition_single(body, "baton_detector_archives_known_total", "counter",
                      "Archives that were fetched and in the cache already, by their digest.",
                      (double)store.known);
    exposition_single(body, "baton_detector_archives_refused_total", "counter",
                      "Archives that came and are none, or found no room.", (double)supply.refused);
    exposition_single(body, "baton_detector_archives_from_before_total", "counter",
                      "Times that the archive from before was used, as no new one was to be had.",
                      (double)supply.from_before);
    exposition_single(body, "baton_detector_archives_rechecks_total", "counter",
                      "Times that a server was asked whether the archive at work is still right.",
                      (double)supply.rechecks);
    exposition_single(body, "baton_detector_archives_recheck_failures_total", "counter",
                      "Of these, those without an answer, or refused: a signature was too old.",
                      (double)supply.recheck_fails);
}
