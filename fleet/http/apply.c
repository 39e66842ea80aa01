/* POST /api/apply: a whole file, YAML or JSON.
 *
 *   body ──a thread reads it──▶ file ──▶ fleet_state_apply ──▶ {"created":…,"changed":…,…}
 *                                 └── dry-run: fleet_state_compare
 *
 * Workers of the file that are not registered are, in the end. Those whose names are to be resolved
 * are not: these belong into the options of the processes.
 *
 * A client that accepts application/x-ndjson gets a line of progress now and then, and the result,
 * or the error, as the last line.
 */
#include "base/json_text.h"
#include "fleet/http/handlers.h"
#include "fleet/http/inside.h"
#include "fleet/workers/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PROGRESS_EACH = 64 /* writes */ };

struct apply {
    uv_work_t work;
    struct call *call;
    struct fleet_http *http;
    char *text;
    size_t bytes, told;
    struct fleet_file file;
    int code; /* of the reading */
    struct baton_error error;
    bool prunes, is_dry, has_lines;
    struct fleet_apply_result result;
    size_t waiting, workers, workers_skipped; /* workers that are being registered, … */
};

static void end(struct apply *apply)
{
    apply->http->is_applying = false;
    fleet_file_fini(&apply->file);
    free(apply->text);
    free(apply);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void put_line(struct call *call, json_t *json)
{
    char *text = json_text(json, JSON_COMPACT);

    if (call->exchange != NULL && text != NULL) {
        web_part(call->exchange, text, strlen(text));
        web_part(call->exchange, "\n", 1);
    }
    free(text);
    json_decref(json);
}

static void finish_lines(struct call *call)
{
    struct web_exchange *exchange = call->exchange;

    call_end(call);
    if (exchange != NULL) {
        web_exchange_set(exchange, NULL);
        web_finish(exchange);
    }
}

static void succeed(struct apply *apply)
{
    const struct fleet_apply_result *result = &apply->result;
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "created", (json_int_t)result->created, "changed",
        (json_int_t)result->changed, "deleted", (json_int_t)result->deleted, "same",
        (json_int_t)result->same, "workers", (json_int_t)apply->workers, "workersSkipped",
        (json_int_t)apply->workers_skipped, "dryRun", (int)apply->is_dry);

    if (apply->has_lines) {
        put_line(apply->call, json);
        finish_lines(apply->call);
    } else {
        call_json(apply->call, 200, json, 0);
    }
    end(apply);
}

static void fail(struct apply *apply, const struct baton_error *error)
{
    if (apply->has_lines) {
        put_line(apply->call, json_pack("{s:s}", "error", error->message));
        finish_lines(apply->call);
    } else {
        call_fail(apply->call, error);
    }
    end(apply);
}

/* ---- Workers --------------------------------------------------------------------------------- */

static void end_one(struct apply *apply)
{
    if (--apply->waiting > 0) {
        return;
    }
    if (apply->code != BATON_OK) {
        fail(apply, &apply->error);
    } else {
        succeed(apply);
    }
}

/* After a conflict another process has registered it. */
static void on_registered(void *userdata, int code, uint64_t revision,
                          const struct baton_error *error)
{
    struct apply *apply = userdata;

    (void)revision;
    if (code == BATON_OK) {
        apply->workers++;
    } else if (code != BATON_ECONFLICT) {
        apply->code = error_set(&apply->error, code, "workers: %s",
                                error != NULL ? error->message : baton_strerror(code));
    }
    end_one(apply);
}

static void register_one(struct apply *apply, const char *url)
{
    char id[DISCOVERY_ID_MAX], key[DISCOVERY_ID_MAX + 16];
    struct fleet_state *state = apply->http->parts.state;
    uint64_t revision;
    json_t *json;

    if (strncmp(url, "ws://", 5) != 0 && strncmp(url, "wss://", 6) != 0) {
        apply->workers_skipped++;
        return;
    }
    json = worker_record(state, url, "registered", id, &revision);
    if (json == NULL) {
        return;
    }
    (void)snprintf(key, sizeof(key), "worker/%s", id);
    apply->waiting++;
    if (apply->is_dry) {
        apply->workers++;
        apply->waiting--;
    } else if (fleet_state_put_json(state, key, json, revision, on_registered, apply,
                                    &apply->error) != BATON_OK) {
        apply->waiting--;
        apply->code = apply->error.code;
    }
    json_decref(json);
}

static void register_workers(struct apply *apply)
{
    apply->waiting = 1;
    for (size_t i = 0; i < apply->file.worker_count && apply->code == BATON_OK; i++) {
        register_one(apply, apply->file.workers[i]);
    }
    end_one(apply);
}

/* ---- The state ------------------------------------------------------------------------------- */

static void on_progress(void *userdata, size_t written, size_t of)
{
    struct apply *apply = userdata;

    if (apply->has_lines && (written >= apply->told + PROGRESS_EACH || written == of)) {
        apply->told = written;
        put_line(apply->call,
                 json_pack("{s:I, s:I}", "written", (json_int_t)written, "of", (json_int_t)of));
    }
}

static void on_applied(void *userdata, int code, const struct fleet_apply_result *result,
                       const struct baton_error *error)
{
    struct apply *apply = userdata;

    if (code == BATON_OK) {
        apply->result = *result;
        register_workers(apply);
    } else {
        fail(apply, error);
    }
}

static void begin(struct apply *apply)
{
    struct fleet_state *state = apply->http->parts.state;
    const char *accept = apply->call->exchange != NULL
                             ? web_header(&call_request(apply->call)->head, "accept")
                             : NULL;
    struct fleet_apply_result result;
    struct baton_error error;
    int code;

    if (apply->is_dry) {
        code = fleet_state_compare(state, &apply->file, apply->prunes, &result, &error);
        on_applied(apply, code, &result, &error);
        return;
    }
    if (accept != NULL && strstr(accept, "application/x-ndjson") != NULL) {
        apply->has_lines = true;
        (void)call_begin(apply->call, "application/x-ndjson");
    }
    code = fleet_state_apply(state, &apply->file, apply->prunes, on_progress, on_applied, apply,
                             &error);
    if (code != BATON_OK) {
        fail(apply, &error);
    }
}

/* ---- The file -------------------------------------------------------------------------------- */

/* On a thread of the pool: ten thousand subscriptions take a while. */
static void read_file(uv_work_t *work)
{
    struct apply *apply = work->data;

    apply->code = fleet_file_read(&apply->file, "body", apply->text, apply->bytes, &apply->error);
}

static void on_read(uv_work_t *work, int status)
{
    struct apply *apply = work->data;

    if (status != 0 || apply->http->is_closing) {
        apply->code = error_set(&apply->error, BATON_ECANCELED, "this process is closing");
    }
    if (apply->code != BATON_OK) {
        fail(apply, &apply->error);
    } else {
        begin(apply);
    }
}

static bool is_file(const char *type)
{
    static const char *const types[] = {"application/json", "application/yaml",
                                        "application/x-yaml", "text/yaml", "text/x-yaml"};
    size_t bytes = type != NULL ? strcspn(type, "; ") : 0;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strlen(types[i]) == bytes && strncasecmp(type, types[i], bytes) == 0) {
            return true;
        }
    }
    return false;
}

static struct apply *apply_new(struct call *call, bool prunes, bool is_dry)
{
    const struct web_request *request = call_request(call);
    struct apply *apply = calloc(1, sizeof(*apply));

    if (apply == NULL || (apply->text = malloc(request->body.bytes + 1)) == NULL) {
        free(apply);
        return NULL;
    }
    if (request->body.bytes > 0) {
        memcpy(apply->text, request->body.data, request->body.bytes);
    }
    apply->bytes = request->body.bytes;
    apply->call = call;
    apply->http = call->http;
    apply->prunes = prunes;
    apply->is_dry = is_dry;
    apply->work.data = apply;
    return apply;
}

void apply_file(struct call *call)
{
    struct fleet_http *http = call->http;
    struct apply *apply;
    bool prunes, is_dry;

    if (!call_flag(call, "prune", &prunes) || !call_flag(call, "dry-run", &is_dry)) {
        return;
    }
    if (!is_file(web_header(&call_request(call)->head, "content-type"))) {
        call_refuse(call, 415, NULL,
                    "the body must be a file of the fleet: content-type: application/yaml or "
                    "application/json");
    } else if (http->is_applying) {
        call_refuse(call, 409, NULL, "another file is being applied at this process");
    } else if ((apply = apply_new(call, prunes, is_dry)) == NULL) {
        call_refuse(call, 503, NULL, "out of memory");
    } else {
        http->is_applying = true;
        (void)uv_queue_work(http->config.loop, &apply->work, read_file, on_read); /* cannot fail */
    }
}
