/* What people change of workers: they register and delete them, cordon and drain them, and move
 * subscriptions to them. */
#include "fleet/http/handlers.h"
#include "fleet/http/worker_fields.h"
#include "fleet/http/workers.h"

#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ROOM = 600 };

/* ---- Writes ---------------------------------------------------------------------------------- */

struct worker_write {
    bool has_condition;
    unsigned status; /* 204: the answer is nothing, else the worker */
};

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct call *call = userdata;
    const struct worker_write *write = call->data;
    const struct fleet_worker *worker = fleet_state_worker(call->http->parts.state, call->id);

    if (code != BATON_OK) {
        call_fail_write(call, code, error, write->has_condition);
    } else if (write->status == 204 || worker == NULL) {
        call_nothing(call);
    } else {
        call_json(call, write->status, worker_json(call->http, worker), revision);
    }
}

/* Takes the JSON's reference; NULL deletes. */
static void write_worker(struct call *call, json_t *json, const struct condition *condition,
                         unsigned status)
{
    struct worker_write *write = calloc(1, sizeof(*write));
    struct baton_error error = {0};
    char key[KEY_ROOM];
    int code;

    call->data = write;
    if (write == NULL) {
        json_decref(json);
        call_refuse(call, 503, NULL, "out of memory");
        return;
    }
    *write = (struct worker_write){condition->is_given, status};
    (void)snprintf(key, sizeof(key), "worker/%s", call->id);
    code = fleet_state_put_json(call->http->parts.state, key, json, condition->revision, on_written,
                                call, &error);
    json_decref(json);
    if (code != BATON_OK) {
        call_fail(call, &error);
    }
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Whether no other worker has the URL: they would be two backends of it. False: refused. */
static bool is_free(struct call *call, const json_t *json)
{
    const char *url = json_string_value(json_object_get(json, "url"));
    const struct fleet_worker *other = fleet_state_worker_at(call->http->parts.state, url);

    if (other == NULL || strcmp(other->id, call->id) == 0) {
        return true;
    }
    call_refuse(call, 409, "url",
                "url: the worker \"%s\" has this one; a worker is registered once: use that, or "
                "delete it first",
                other->id);
    return false;
}

/* Registers it, or replaces what is registered; a cordon that is not given stays. */
void workers_put(struct call *call)
{
    const struct fleet_worker *worker;
    struct condition condition;
    struct baton_error error;
    json_t *json;

    if (!fleet_worker_id_is_valid(call->id)) {
        call_refuse(call, 422, "id",
                    "id: must be 1 to %d of letters, digits, \"-\", \"_\" and \".\"",
                    FLEET_WORKER_ID_MAX);
        return;
    }
    if (!call_body(call)) {
        return;
    }
    worker = fleet_state_worker(call->http->parts.state, call->id);
    if (!call_condition(call, worker != NULL ? worker->revision : 0, &condition)) {
        return;
    }
    json = worker != NULL ? fleet_worker_json(worker) : json_object();
    (void)json_object_set_new(json, "source", json_string("registered"));
    if (worker_fields_take(json, call->body, true, &error) != BATON_OK) {
        json_decref(json);
        call_fail(call, &error);
    } else if (!is_free(call, json)) {
        json_decref(json);
    } else {
        write_worker(call, json, &condition, worker != NULL ? 200 : 201);
    }
}

void workers_patch(struct call *call)
{
    const struct fleet_worker *worker;
    struct condition condition;
    struct baton_error error;
    json_t *json;

    if (!call_body(call) || (worker = worker_of(call)) == NULL ||
        !call_condition(call, worker->revision, &condition)) {
        return;
    }
    condition.revision = condition.is_given ? condition.revision : worker->revision;
    json = fleet_worker_json(worker);
    if (worker_fields_take(json, call->body, false, &error) != BATON_OK) {
        json_decref(json);
        call_fail(call, &error);
        return;
    }
    write_worker(call, json, &condition, 200);
}

void workers_set(struct call *call)
{
    enum worker_action action = (enum worker_action)call->route->detail;
    bool is_cordon = action == ACTION_CORDON || action == ACTION_UNCORDON;
    const struct fleet_worker *worker = worker_of(call);
    struct condition condition;
    json_t *json;

    if (worker == NULL) {
        return;
    }
    condition = (struct condition){false, worker->revision};
    json = fleet_worker_json(worker);
    (void)json_object_set_new(json, is_cordon ? "cordoned" : "draining",
                              json_boolean(action == ACTION_CORDON || action == ACTION_DRAIN));
    write_worker(call, json, &condition, 200);
}

void workers_delete(struct call *call)
{
    const struct fleet_worker *worker = worker_of(call);
    struct condition condition;

    if (worker == NULL) {
        return;
    }
    if (fleet_worker_is_discovered(worker)) {
        call_refuse(call, 409, NULL,
                    "the worker \"%s\" is from --worker (%s) and would come back; take it out "
                    "there, or cordon and drain it",
                    worker->id, worker->source);
    } else if (call_condition(call, worker->revision, &condition)) {
        write_worker(call, NULL, &condition, 204);
    }
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static void on_asked(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct call *call = userdata;

    (void)revision;
    if (code != BATON_OK) {
        call_fail_write(call, code, error, false);
    } else {
        call_json(call, 202, json_pack("{s:s}", "to", call->id), 0);
    }
}

static int ask_master(struct call *call, const char *subscription, struct baton_error *reterr)
{
    char key[KEY_ROOM];
    json_t *json = json_pack("{s:s}", "to", call->id);
    int code;

    (void)snprintf(key, sizeof(key), "move/%s", subscription);
    code = fleet_state_put_json(call->http->parts.state, key, json, PROVIDER_ANY_REVISION, on_asked,
                                call, reterr);
    json_decref(json);
    return code;
}

/* The master carries it out with its next plan. */
void workers_move(struct call *call)
{
    const char *subscription = NULL;
    struct baton_error error;
    int code;

    if (!call_body(call) || worker_of(call) == NULL) {
        return;
    }
    code =
        json_read_text(call->body, "", "subscription", true, FLEET_ID_MAX, &subscription, &error);
    if (code == BATON_OK && fleet_state_object(call->http->parts.state, FLEET_SUBSCRIPTION,
                                               subscription, NULL) == NULL) {
        call_refuse(call, 404, "subscription", "there is no subscription \"%s\"", subscription);
        return;
    }
    code = code ? code : ask_master(call, subscription, &error);
    if (code != BATON_OK) {
        call_fail(call, &error);
    }
}
