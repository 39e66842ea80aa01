/* The list of subscriptions of one worker, made from the state: what is assigned, with the cameras
 * and models as they are now. Texts are borrowed from the state for the moment. */
#include "fleet/workers/owners_int.h"

#include "base/error.h"
#include "fleet/displays/merge.h"
#include "fleet/objects/url.h"

#include <stdlib.h>
#include <string.h>

struct list {
    struct subscription *items;
    struct subscription **wanted;       /* of these, for the worker */
    const struct fleet_object **models; /* beside the items */
    size_t count;
    uint64_t revision;
};

static void list_fini(struct list *list)
{
    free(list->items);
    free(list->wanted);
    free(list->models);
}

/* Adds nothing if a part of it is not there: the master takes it away soon. */
static void add(const struct fleet_state *state, const char *id, struct list *list)
{
    const struct fleet_object *wanted = fleet_state_object(state, FLEET_SUBSCRIPTION, id, NULL);
    const struct fleet_object *camera, *model;
    char number[24];

    if (wanted == NULL) {
        return;
    }
    (void)snprintf(number, sizeof(number), "%lld", (long long)wanted->subscription.model);
    camera = fleet_state_object(state, FLEET_CAMERA, wanted->subscription.camera, NULL);
    model = fleet_state_object(state, FLEET_MODEL, number, NULL);
    if (camera == NULL || model == NULL) {
        return;
    }
    list->models[list->count] = model;
    list->items[list->count++] = (struct subscription){
        .identifier = wanted->id,
        .rtsp_url = camera->camera.rtsp_url != NULL ? camera->camera.rtsp_url : (char *)"",
        .snapshot_url = camera->camera.snapshot_url,
        .snapshot_interval_ms = camera->camera.snapshot_interval_ms,
        .model_name = model->model.name,
        .model_id = model->model.number,
        .crop = wanted->subscription.crop};
}

bool owned_is_left(const struct owned *owned)
{
    const struct fleet_worker *worker =
        fleet_state_worker_key(owned->owners->config.state, owned->worker);

    return worker == NULL || !fleet_url_is_same(worker->url, link_url(owned->link));
}

/* Of a worker that is left it is empty: nobody would tell it later that others have its part. */
static bool list_make(const struct owned *owned, struct list *ret)
{
    const struct fleet_state *state = owned->owners->config.state;
    const struct fleet_assigned *assigned =
        owned_is_left(owned) ? NULL : fleet_state_assigned(state, owned->worker);
    size_t count = assigned != NULL ? assigned->count : 0;
    size_t most = count < PROTOCOL_SUBSCRIPTIONS_MAX ? count : PROTOCOL_SUBSCRIPTIONS_MAX;

    *ret = (struct list){.items = calloc(most + 1, sizeof(*ret->items)),
                         .wanted = calloc(most + 1, sizeof(struct subscription *)),
                         .models = calloc(most + 1, sizeof(struct fleet_object *)),
                         .revision = assigned != NULL ? assigned->revision : 0};
    if (ret->items == NULL || ret->wanted == NULL || ret->models == NULL) {
        list_fini(ret);
        return false;
    }
    for (size_t i = 0; i < most; i++) {
        add(state, assigned->subscriptions[i], ret);
    }
    return true;
}

/* The master counts a worker as gone of which it has heard nothing for long. */
static bool has_lost_mark(const struct owned *owned)
{
    const struct fleet_state *state = owned->owners->config.state;
    const struct fleet_assigned *assigned = fleet_state_assigned(state, owned->worker);

    return assigned == NULL || !assigned->is_online;
}

void owned_refresh(struct owned *owned)
{
    bool is_left = owned_is_left(owned);
    uint64_t before = link_revision(owned->link);
    struct list list;
    int code;

    /* An empty list needs no mark: nobody else can have a part of it. */
    if ((!is_left && !claim_is_online(&owned->claim)) || !list_make(owned, &list)) {
        return; /* it stays dirty, and the claim or the timer comes */
    }
    code = link_set_list(owned->link, list.items, list.count, list.revision, owned->has_other);
    list_fini(&list);
    owned->is_dirty = owned->has_other = code != BATON_OK;
    if (link_is_in_sync(owned->link) && link_revision(owned->link) != before) {
        owned_synced(owned);
    }
    if (!is_left && has_lost_mark(owned)) {
        claim_set(&owned->claim, CLAIM_ONLINE);
        owned_queue(owned);
    }
}

/* One without a URL is left out: the list is not confirmed then, and is sent again. How many are
 * wanted. */
static size_t put_urls(struct owned *owned, struct list *list)
{
    const struct owners_callbacks *callbacks = &owned->owners->config.callbacks;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct subscription *item = &list->items[i];

        item->model_url = callbacks->model_url(callbacks->userdata, list->models[i]);
        if (item->model_url != NULL) {
            list->wanted[kept++] = item;
        } else {
            owned_tell(owned, "model-url-missing",
                       json_pack("{s:s}", "subscription", item->identifier));
        }
    }
    return kept;
}

char *owned_list(void *userdata)
{
    struct owned *owned = userdata;
    struct command command = {.type = COMMAND_SET_SUBSCRIPTION_LIST, .epoch = owned->epoch};
    struct list list;
    char *text;

    if (!list_make(owned, &list)) {
        return NULL;
    }
    command.subscriptions = list.wanted;
    command.subscription_count = put_urls(owned, &list);
    text = format_command(&command);
    for (size_t i = 0; i < list.count; i++) {
        free(list.items[i].model_url);
    }
    list_fini(&list);
    return text;
}

void owned_display(void *userdata, const char *display, struct session_id *ret_session,
                   enum stage *ret_stage)
{
    const struct owned *owned = userdata;
    const json_t *data = fleet_state_data(owned->owners->config.state, display, NULL);

    *ret_session = display_session_of(data);
    *ret_stage = display_stage_of(data);
}
