/* Models, cameras, displays and subscriptions: what people declare. */
#include "fleet/http/handlers.h"
#include "fleet/http/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_ROOM = 80 };

static enum fleet_kind kind_of(const struct call *call)
{
    return (enum fleet_kind)call->route->detail;
}

static void refuse_absent(struct call *call)
{
    call_refuse(call, 404, NULL, "there is no %s \"%s\"", fleet_kind_name(kind_of(call)), call->id);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool is_online(const json_t *report, const char *subscription)
{
    json_t *camera;
    size_t index;

    json_array_foreach(json_object_get(report, "cameraConnections"), index, camera)
    {
        const char *id = json_string_value(json_object_get(camera, "subscriptionIdentifier"));
        if (id != NULL && strcmp(id, subscription) == 0) {
            return json_is_true(json_object_get(camera, "online"));
        }
    }
    return false;
}

/* Its worker, and whether that reports that its frames arrive. */
static void add_live(const struct fleet_http *http, const char *subscription, json_t *json)
{
    const char *worker = fleet_state_worker_of(http->parts.state, subscription);
    const struct worker_live *live =
        worker != NULL ? worker_table_find(http->parts.table, worker) : NULL;

    (void)json_object_set_new(json, "worker", worker != NULL ? json_string(worker) : json_null());
    (void)json_object_set_new(
        json, "online",
        live != NULL ? json_boolean(live->is_online && is_online(live->report, subscription))
                     : json_null());
}

static void add_data(const struct fleet_http *http, const char *display, json_t *json)
{
    static const char *const keys[] = {"sessionId", "progressionStage"};
    const json_t *data = fleet_state_data(http->parts.state, display, NULL);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(data, keys[i]);
        (void)json_object_set_new(json, keys[i], value != NULL ? json_incref(value) : json_null());
    }
}

/* The first object behind that id. A page usually ends with one that is still there; only if it was
 * deleted since, its place is looked for. */
static const struct fleet_object *first_after(const struct fleet_state *state, enum fleet_kind kind,
                                              const char *after)
{
    const struct fleet_object *object =
        *after != '\0' ? fleet_state_object(state, kind, after, NULL) : NULL;

    object = fleet_state_next(state, kind, object);
    while (object != NULL && strcmp(object->id, after) <= 0) {
        object = fleet_state_next(state, kind, object);
    }
    return object;
}

static json_t *item_of(const struct fleet_http *http, const struct fleet_object *object,
                       bool is_live)
{
    json_t *json = fleet_object_json(object, true);

    if (json != NULL && is_live && object->kind == FLEET_SUBSCRIPTION) {
        add_live(http, object->id, json);
    } else if (json != NULL && is_live && object->kind == FLEET_DISPLAY) {
        add_data(http, object->id, json);
    }
    return json;
}

static void put_page(struct items *page, const struct fleet_http *http, enum fleet_kind kind,
                     const char *after, int64_t limit, bool is_live)
{
    const struct fleet_state *state = http->parts.state;
    const struct fleet_object *object = first_after(state, kind, after), *last = NULL;

    for (; object != NULL && limit > 0; limit--, object = fleet_state_next(state, kind, object)) {
        items_add(page, item_of(http, object, is_live));
        last = object;
    }
    items_end(page);
    items_number(page, "count", fleet_state_count(state, kind));
    items_number(page, "revision", http->changes[kind]);
    items_text(page, "next", object != NULL && last != NULL ? last->id : NULL);
    items_close(page);
}

void objects_list(struct call *call)
{
    const struct fleet_http *http = call->http;
    enum fleet_kind kind = kind_of(call);
    char after[ROUTE_ID_MAX], tag[TAG_ROOM];
    struct items page;
    int64_t limit;
    bool is_live;

    if (!call_parameter(call, "after", after, sizeof(after)) ||
        !call_number(call, "limit", 1, LIST_MAX, LIST_MAX, &limit) ||
        !call_flag(call, "live", &is_live)) {
        return;
    }
    (void)snprintf(tag, sizeof(tag), "\"%08" PRIx32 "-%" PRIu64 "\"", http->run,
                   http->changes[kind]);
    if (!is_live && call_has_tag(call, tag)) {
        call_unchanged(call, tag);
        return;
    }
    items_init(&page, HTTP_ANSWER_MAX);
    put_page(&page, http, kind, after, limit, is_live);
    call_items(call, &page, is_live ? NULL : tag);
}

/* ---- One object ------------------------------------------------------------------------------ */

void objects_get(struct call *call)
{
    uint64_t revision;
    const struct fleet_object *object =
        fleet_state_object(call->http->parts.state, kind_of(call), call->id, &revision);

    if (object == NULL) {
        refuse_absent(call);
    } else {
        call_json(call, 200, fleet_object_json(object, true), revision);
    }
}

/* A write that is under way. */
struct object_write {
    struct fleet_object *object; /* NULL: a deletion */
    bool has_condition, is_new;
};

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct call *call = userdata;
    struct object_write *write = call->data;
    struct fleet_object *object = write->object;

    if (code != BATON_OK) {
        call_fail_write(call, code, error, write->has_condition);
    } else if (object == NULL) {
        call_nothing(call);
    } else {
        call_json(call, write->is_new ? 201 : 200, fleet_object_json(object, true), revision);
    }
    fleet_object_unref(object);
}

/* Takes the object's reference. */
static void write_object(struct call *call, struct fleet_object *object,
                         const struct condition *condition, bool is_new)
{
    struct fleet_state *state = call->http->parts.state;
    struct object_write *write = calloc(1, sizeof(*write));
    struct baton_error error = {0};
    int code;

    call->data = write;
    if (write == NULL) {
        fleet_object_unref(object);
        call_refuse(call, 503, NULL, "out of memory");
        return;
    }
    *write = (struct object_write){object, condition->is_given, is_new};
    code = object != NULL
               ? fleet_state_put(state, object, condition->revision, on_written, call, &error)
               : fleet_state_delete(state, kind_of(call), call->id, condition->revision, on_written,
                                    call, &error);
    if (code != BATON_OK) {
        call_fail(call, &error);
        fleet_object_unref(object);
    }
}

/* Whether what a subscription names is there. Takes the reference if it is not. */
static bool check_references(struct call *call, struct fleet_object *object)
{
    struct baton_error error;

    if (fleet_state_check_references(call->http->parts.state, object, &error) == BATON_OK) {
        return true;
    }
    error.code = BATON_ECONFLICT;
    call_fail(call, &error);
    fleet_object_unref(object);
    return false;
}

void objects_put(struct call *call)
{
    enum fleet_kind kind = kind_of(call);
    struct fleet_object *object;
    struct condition condition;
    struct baton_error error;
    uint64_t revision = 0;
    bool is_new = fleet_state_object(call->http->parts.state, kind, call->id, &revision) == NULL;

    if (!call_body(call) || !call_condition(call, is_new ? 0 : revision, &condition)) {
        return;
    }
    if (fleet_object_read(&object, kind, call->id, call->body, &error) != BATON_OK) {
        call_fail(call, &error);
    } else if (check_references(call, object)) {
        write_object(call, object, &condition, is_new);
    }
}

/* Without a condition, too, the patch is of the object that it was merged into. */
void objects_patch(struct call *call)
{
    const struct fleet_object *before;
    struct fleet_object *object;
    struct condition condition;
    struct baton_error error;
    uint64_t revision = 0;

    if (!call_body(call)) {
        return;
    }
    before = fleet_state_object(call->http->parts.state, kind_of(call), call->id, &revision);
    if (before == NULL) {
        refuse_absent(call);
        return;
    }
    if (!call_condition(call, revision, &condition)) {
        return;
    }
    condition.revision = condition.is_given ? condition.revision : revision;
    if (fleet_object_patch(&object, before, call->body, &error) != BATON_OK) {
        call_fail(call, &error);
    } else if (check_references(call, object)) {
        write_object(call, object, &condition, false);
    }
}

void objects_delete(struct call *call)
{
    const struct fleet_state *state = call->http->parts.state;
    enum fleet_kind kind = kind_of(call);
    struct condition condition;
    uint64_t revision = 0;
    const char *by;

    if (fleet_state_object(state, kind, call->id, &revision) == NULL) {
        refuse_absent(call);
    } else if (fleet_state_is_used(state, kind, call->id, &by)) {
        call_refuse(call, 409, NULL,
                    "the %s \"%s\" is used by the subscription \"%s\"; delete that first",
                    fleet_kind_name(kind), call->id, by);
    } else if (call_condition(call, revision, &condition)) {
        write_object(call, NULL, &condition, false);
    }
}
