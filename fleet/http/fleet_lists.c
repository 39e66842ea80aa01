/* Lists of the fleet as a whole: assignments, what has no place, detections, processes. */
#include "fleet/http/handlers.h"
#include "fleet/http/workers.h"

#include "member/members.h"

#include <stdlib.h>
#include <string.h>

enum { DETECTIONS_MAX = 1000, DETECTIONS_INITIAL = 100 };

static json_t *assigned_json(const struct fleet_assigned *assigned)
{
    return json_pack("{s:s, s:I, s:o, s:o}", "worker", assigned->worker, "epoch",
                     (json_int_t)assigned->epoch, "subscriptions",
                     worker_texts(assigned->subscriptions, assigned->count), "leaving",
                     worker_texts(assigned->leaving, assigned->leaving_count));
}

void assignments_list(struct call *call)
{
    const struct fleet_state *state = call->http->parts.state;
    const struct fleet_assigned *assigned = NULL, *last = NULL;
    char after[ROUTE_ID_MAX];
    struct items page;
    int64_t limit;

    if (!call_parameter(call, "after", after, sizeof(after)) ||
        !call_number(call, "limit", 1, LIST_MAX, LIST_MAX, &limit)) {
        return;
    }
    items_init(&page, HTTP_ANSWER_MAX);
    while ((assigned = fleet_state_next_assigned(state, assigned)) != NULL && limit > 0) {
        if (strcmp(assigned->worker, after) > 0) {
            items_add(&page, assigned_json(assigned));
            last = assigned;
            limit--;
        }
    }
    items_end(&page);
    items_text(&page, "next", assigned != NULL && last != NULL ? last->worker : NULL);
    items_close(&page);
    call_items(call, &page, NULL);
}

void unplaced_list(struct call *call)
{
    uint64_t revision = 0;
    const json_t *unplaced = fleet_state_unplaced(call->http->parts.state, &revision);
    const json_t *list = json_object_get(unplaced, "unplaced");
    json_t *items = json_array();
    size_t count = json_array_size(list);

    for (size_t i = 0; i < count && i < LIST_MAX; i++) {
        (void)json_array_append(items, json_array_get(list, i));
    }
    call_json(call, 200,
              json_pack("{s:o, s:I}", "items", items, "count",
                        (json_int_t)fleet_state_unplaced_count(call->http->parts.state)),
              revision);
}

void detections_get(struct call *call)
{
    char display[ROUTE_ID_MAX], camera[ROUTE_ID_MAX];
    json_t *items;
    int64_t limit;

    if (!call_parameter(call, "display", display, sizeof(display)) ||
        !call_parameter(call, "camera", camera, sizeof(camera)) ||
        !call_number(call, "limit", 1, DETECTIONS_MAX, DETECTIONS_INITIAL, &limit)) {
        return;
    }
    items = detections_list(call->http->parts.detections, *display != '\0' ? display : NULL,
                            *camera != '\0' ? camera : NULL, (size_t)limit);
    call_json(call, 200, json_pack("{s:o}", "items", items), 0);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static size_t count_owned(const struct fleet_http *http, const char *process)
{
    const struct fleet_worker *worker = NULL;
    size_t count = 0;

    while ((worker = fleet_state_next_worker(http->parts.state, worker)) != NULL) {
        const struct worker_live *live = worker_table_find(http->parts.table, worker->id);
        count += live != NULL && live->is_online && strcmp(live->process, process) == 0;
    }
    return count;
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct call *call = userdata;
    json_t *items;

    if (code != BATON_OK || call->http->is_closing) { /* then the state may be gone */
        call_fail_write(call, code != BATON_OK ? code : BATON_ECANCELED, NULL, false);
        return;
    }
    items = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(
            items, json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:I}", "id", members[i].id, "name",
                             members[i].name, "role", baton_role_name(members[i].role), "alive",
                             (int)members[i].is_alive, "self", (int)members[i].is_self, "cordoned",
                             (int)members[i].is_cordoned, "workers",
                             (json_int_t)count_owned(call->http, members[i].name)));
    }
    call_json(call, 200, json_pack("{s:o}", "items", items), 0);
}

/* The other processes are as the provider knows them. */
void processes_list(struct call *call)
{
    struct baton_error error;
    int code = members_list(master_election(call->http->parts.master), on_members, call, &error);

    if (code != BATON_OK) {
        call_fail(call, &error);
    }
}
