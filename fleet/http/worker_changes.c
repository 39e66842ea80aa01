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
    bool is_back;                        /* it was deleted, and its key is there still */
    unsigned status;                     /* 204: the answer is nothing, 201: the worker is new */
    char other[FLEET_WORKER_ID_MAX + 1]; /* that has its URL */
};

static void put_worker(struct call *call, const json_t *json, uint64_t revision,
                       provider_put_cb done)
{
    struct baton_error error = {0};
    char key[KEY_ROOM];

    (void)snprintf(key, sizeof(key), "worker/%s", call->id);
    if (fleet_state_put_json(call->http->parts.state, key, json, revision, done, call, &error) !=
        BATON_OK) {
        call_fail(call, &error);
    }
}

/* An earlier worker with this URL: they would be two backends of it. NULL: there is none. */
static const struct fleet_worker *other_at(const struct call *call, const char *url)
{
    const struct fleet_worker *first = fleet_state_worker_at(call->http->parts.state, url);

    return first != NULL && strcmp(first->id, call->id) != 0 ? first : NULL;
}

static void refuse_twice(struct call *call, const char *other)
{
    call_refuse(call, 409, "url",
                "url: the worker \"%s\" has this one; a worker is registered once: use that, or "
                "delete it first",
                other);
}

static void on_taken_back(void *userdata, int code, uint64_t revision,
                          const struct baton_error *error)
{
    struct call *call = userdata;
    const struct worker_write *write = call->data;

    (void)revision;
    if (code != BATON_OK) {
        call_fail_write(call, code, error, false);
    } else {
        refuse_twice(call, write->other);
    }
}

static void register_worker(struct call *call);

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct call *call = userdata;
    struct worker_write *write = call->data;
    const struct fleet_state *state = call->http->parts.state;
    const struct fleet_worker *worker = fleet_state_worker(state, call->id);
    const struct fleet_worker *other =
        worker != NULL && write->status == 201 ? other_at(call, worker->url) : NULL;

    if (code == BATON_ECONFLICT && write->is_back && !fleet_state_worker_key(state, call->id)) {
        free(write); /* the master has deleted the key meanwhile: there is nothing to replace */
        call->data = NULL;
        register_worker(call);
    } else if (code != BATON_OK) {
        call_fail_write(call, code, error, write->has_condition);
    } else if (write->status == 204 || worker == NULL) {
        call_nothing(call);
    } else if (other != NULL) { /* it was registered at the same time */
        (void)snprintf(write->other, sizeof(write->other), "%s", other->id);
        put_worker(call, NULL, revision, on_taken_back);
    } else {
        call_json(call, write->status, worker_json(call->http, worker), revision);
    }
}

/* Takes the JSON's reference; NULL: out of memory. */
static void write_worker(struct call *call, json_t *json, const struct condition *condition,
                         unsigned status)
{
    struct worker_write *write = calloc(1, sizeof(*write));
    const struct fleet_worker *key = fleet_state_worker_key(call->http->parts.state, call->id);
    bool is_back = key != NULL && key->is_deleted && condition->revision == 0;

    call->data = write;
    if (write == NULL || json == NULL) {
        call_refuse(call, 503, NULL, "out of memory");
    } else {
        *write = (struct worker_write){
            .has_condition = condition->is_given, .is_back = is_back, .status = status};
        put_worker(call, json, is_back ? key->revision : condition->revision, on_written);
    }
    json_decref(json);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void register_worker(struct call *call)
{
    const struct fleet_worker *worker, *other;
    struct condition condition;
    struct baton_error error;
    json_t *json;

    worker = fleet_state_worker(call->http->parts.state, call->id);
    if (!call_condition(call, worker != NULL ? worker->revision : 0, &condition)) {
        return;
    }
    json = worker != NULL ? fleet_worker_json(worker) : json_object();
    (void)json_object_set_new(json, "source", json_string("registered"));
    if (worker_fields_take(json, call->body, true, &error) != BATON_OK) {
        json_decref(json);
        call_fail(call, &error);
        return;
    }
    other = other_at(call, json_string_value(json_object_get(json, "url")));
    if (other != NULL) {
        json_decref(json);
        refuse_twice(call, other->id);
    } else {
        write_worker(call, json, &condition, worker != NULL ? 200 : 201);
    }
}

/* Registers it, or replaces what is registered; a cordon that is not given stays. */
void workers_put(struct call *call)
{
    if (!fleet_worker_id_is_valid(call->id)) {
        call_refuse(call, 422, "id",
                    "id: must be 1 to %d of letters, digits, \"-\", \"_\" and \".\"",
                    FLEET_WORKER_ID_MAX);
    } else if (call_body(call)) {
        register_worker(call);
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
        write_worker(call, fleet_worker_deletion(worker), &condition, 204);
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

/* The master carries it out with its next plan, or never: it is a wish for once. */
void workers_move(struct call *call)
{
    const struct fleet_worker *worker = call_body(call) ? worker_of(call) : NULL;
    const struct fleet_object *subscription;
    const char *id = NULL;
    struct baton_error error;
    int code;

    if (worker == NULL) {
        return;
    }
    code = json_read_text(call->body, "", "subscription", true, FLEET_ID_MAX, &id, &error);
    subscription =
        code ? NULL : fleet_state_object(call->http->parts.state, FLEET_SUBSCRIPTION, id, NULL);
    if (code == BATON_OK && subscription == NULL) {
        call_refuse(call, 404, "subscription", "there is no subscription \"%s\"", id);
        return;
    }
    code = code ? code : master_check_move(call->http->parts.master, subscription, worker, &error);
    code = code ? code : ask_master(call, id, &error);
    if (code != BATON_OK) {
        call_fail(call, &error);
    }
}
