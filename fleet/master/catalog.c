#include "fleet/master/master_int.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CATALOG_REFERENCES = 3 }; /* of each subscription: itself, its camera, its model */

void catalog_fini(struct catalog *catalog)
{
    for (size_t i = 0; i < CATALOG_REFERENCES * catalog->count; i++) {
        fleet_object_unref(catalog->objects[i]);
    }
    free(catalog->objects);
    free(catalog->subscriptions);
    *catalog = (struct catalog){0};
}

static const struct fleet_object *model_of(const struct fleet_state *state,
                                           const struct fleet_object *subscription)
{
    char number[24];

    (void)snprintf(number, sizeof(number), "%" PRId64, subscription->subscription.model);
    return fleet_state_object(state, FLEET_MODEL, number, NULL);
}

/* Takes references, to which the texts belong. */
static void describe(struct catalog *catalog, const struct fleet_state *state,
                     const struct fleet_object *object)
{
    const struct fleet_object *camera =
        fleet_state_object(state, FLEET_CAMERA, object->subscription.camera, NULL);
    const struct fleet_object *model = model_of(state, object);
    size_t at = catalog->count++;
    struct fleet_object **references = &catalog->objects[CATALOG_REFERENCES * at];

    references[0] = fleet_object_ref((struct fleet_object *)object);
    references[1] = camera ? fleet_object_ref((struct fleet_object *)camera) : NULL;
    references[2] = model ? fleet_object_ref((struct fleet_object *)model) : NULL;
    catalog->subscriptions[at] = (struct plan_subscription){
        .id = object->id,
        .camera = !camera                   ? NULL
                  : camera->camera.rtsp_url ? camera->camera.rtsp_url
                                            : camera->camera.snapshot_url,
        .model = model ? model->id : NULL,
        .needs = object->subscription.needs,
        .withheld = object->subscription.is_paused ? "paused"
                    : !camera                      ? "its camera does not exist"
                    : !model                       ? "its model does not exist"
                                                   : NULL,
        .priority = object->subscription.priority};
}

int catalog_make(struct master *master)
{
    const struct fleet_state *state = master->config.state;
    size_t count = fleet_state_count(state, FLEET_SUBSCRIPTION);
    struct catalog catalog = {.is_made = true};

    if (master->catalog.is_made) {
        return BATON_OK;
    }
    catalog.subscriptions = calloc(count + 1, sizeof(*catalog.subscriptions));
    catalog.objects = calloc(CATALOG_REFERENCES * count + 1, sizeof(struct fleet_object *));
    if (!catalog.subscriptions || !catalog.objects) {
        catalog_fini(&catalog);
        return BATON_ENOMEM;
    }
    for (const struct fleet_object *object = NULL;
         (object = fleet_state_next(state, FLEET_SUBSCRIPTION, object)) && catalog.count < count;) {
        describe(&catalog, state, object);
    }
    catalog_fini(&master->catalog);
    master->catalog = catalog;
    return BATON_OK;
}

static int compare(const void *id, const void *subscription)
{
    return strcmp(id, ((const struct plan_subscription *)subscription)->id);
}

struct plan_subscription *catalog_find(const struct catalog *catalog, const char *id)
{
    return catalog->count == 0 ? NULL
                               : bsearch(id, catalog->subscriptions, catalog->count,
                                         sizeof(*catalog->subscriptions), compare);
}
