/* What is known of workers: as they are registered, and as they report. */
#include "fleet/http/workers.h"

#include "fleet/http/handlers.h"
#include "fleet/objects/url.h"

#include <stdlib.h>
#include <string.h>

static json_t *text_or_null(const char *text)
{
    return text != NULL && *text != '\0' ? json_string(text) : json_null();
}

static json_t *usage_json(const struct worker_live *live)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "cpu", live->usage.cpu, "memory", live->usage.memory,
                     "gpu", live->usage.gpu, "gpuMemory", live->usage.gpu_memory);
}

static void add_live(json_t *json, const struct worker_live *live)
{
    int64_t since_ms = live != NULL ? instant_since(clock_now(), live->since).ns / 1000000 : 0;

    (void)json_object_set_new(json, "online", json_boolean(live != NULL && live->is_online));
    (void)json_object_set_new(json, "inSync", json_boolean(live != NULL && live->is_in_sync));
    (void)json_object_set_new(json, "owner", text_or_null(live != NULL ? live->process : NULL));
    (void)json_object_set_new(json, "usage", live != NULL ? usage_json(live) : json_null());
    (void)json_object_set_new(json, "sinceMs", live != NULL ? json_integer(since_ms) : json_null());
    (void)json_object_set_new(json, "detections",
                              json_integer(live != NULL ? (json_int_t)live->detections : 0));
    (void)json_object_set_new(json, "reconnects",
                              json_integer(live != NULL ? (json_int_t)live->reconnects : 0));
}

json_t *worker_json(const struct fleet_http *http, const struct fleet_worker *worker)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(http->parts.state, worker->id);
    char *url = fleet_url_masked(worker->url, FLEET_URL_WORKER);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:b, s:b, s:I, s:I}", "id", worker->id, "url",
        url != NULL ? url : FLEET_MASK, "source", worker->source, "labels",
        text_or_null(worker->labels), "maxSubscriptions", (json_int_t)worker->subscriptions_max,
        "cordoned", (int)worker->is_cordoned, "draining", (int)worker->is_draining, "subscriptions",
        (json_int_t)(assigned != NULL ? assigned->count : 0), "leaving",
        (json_int_t)(assigned != NULL ? assigned->leaving_count : 0));

    free(url);
    if (json != NULL) {
        add_live(json, worker_table_find(http->parts.table, worker->id));
    }
    return json;
}

/* At most LIST_MAX of the workers behind `after`; they are few enough for a walk. */
void workers_list(struct call *call)
{
    const struct fleet_http *http = call->http;
    const struct fleet_worker *worker = NULL, *last = NULL;
    char after[ROUTE_ID_MAX];
    struct items page;
    int64_t limit;

    if (!call_parameter(call, "after", after, sizeof(after)) ||
        !call_number(call, "limit", 1, LIST_MAX, LIST_MAX, &limit)) {
        return;
    }
    items_init(&page, HTTP_ANSWER_MAX);
    while ((worker = fleet_state_next_worker(http->parts.state, worker)) != NULL && limit > 0) {
        if (strcmp(worker->id, after) > 0) {
            items_add(&page, worker_json(http, worker));
            last = worker;
            limit--;
        }
    }
    items_end(&page);
    items_number(&page, "count", fleet_state_worker_count(http->parts.state));
    items_text(&page, "next", worker != NULL && last != NULL ? last->id : NULL);
    items_close(&page);
    call_items(call, &page, NULL);
}

json_t *worker_texts(const char *const *texts, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

const struct fleet_worker *worker_of(struct call *call)
{
    const struct fleet_worker *worker = fleet_state_worker(call->http->parts.state, call->id);

    if (worker == NULL) {
        call_refuse(call, 404, NULL, "there is no worker \"%s\"", call->id);
    }
    return worker;
}

static json_t *in_full(const struct fleet_http *http, const struct fleet_worker *worker)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(http->parts.state, worker->id);
    const struct worker_live *live = worker_table_find(http->parts.table, worker->id);
    json_t *cameras = live != NULL ? json_object_get(live->report, "cameraConnections") : NULL;
    json_t *json = worker_json(http, worker);

    if (json != NULL) {
        (void)json_object_set_new(json, "assigned",
                                  assigned != NULL
                                      ? worker_texts(assigned->subscriptions, assigned->count)
                                      : json_array());
        (void)json_object_set_new(json, "leavingIds",
                                  assigned != NULL
                                      ? worker_texts(assigned->leaving, assigned->leaving_count)
                                      : json_array());
        (void)json_object_set_new(json, "cameras",
                                  cameras != NULL ? json_incref(cameras) : json_array());
    }
    return json;
}

void workers_get(struct call *call)
{
    const struct fleet_worker *worker = worker_of(call);

    if (worker != NULL) {
        call_live(call, in_full(call->http, worker), worker->revision);
    }
}
