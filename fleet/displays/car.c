/* The current car, from detections: of many within a moment, the latest of each attribute. */
#include "fleet/displays/displays_int.h"

void car_forget(struct record *record)
{
    json_decref(record->car);
    record->car = NULL;
}

/* May free the record. */
static void merge_car(struct record *record)
{
    struct displays *displays = record->displays;
    struct change change = {.only_in = record->session, .otherwise = BATON_OK};

    if (record->car != NULL) { /* so the session is the one in which it was seen */
        change.patch = display_car_patch(fleet_state_data(displays->config.state, record->id, NULL),
                                         record->car);
    }
    car_forget(record);
    if (change.patch == NULL) {
        record_settle(record);
    } else if (change_add(record, &change, NULL) == BATON_OK) {
        displays->counters.cars++;
    }
    json_decref(change.patch);
}

/* The data was written by a process that did not know yet that the display was deleted, or one that
 * deleted it died. Not at once: a state that loads has data before displays. */
static void settle(struct record *record)
{
    if (displays_has(record->displays, record->id)) {
        merge_car(record);
    } else {
        car_forget(record);
        record->busy++;
        displays_delete_data(record->displays, record->id);
        record->busy--;
        record_settle(record);
    }
}

static void on_settle(uv_timer_t *timer)
{
    struct displays *displays = timer->data;
    struct record *dirty = displays->dirty, *record;

    displays->dirty = NULL;
    displays_hold(displays);
    while ((record = dirty) != NULL && !displays->is_closed) {
        dirty = record->dirty_next;
        record->is_dirty = false;
        settle(record);
    }
    displays_release(displays);
}

void car_open(struct displays *displays)
{
    uv_loop_t *loop = member_loop(fleet_state_member(displays->config.state));

    (void)uv_timer_init(loop, &displays->settle);
    displays->settle.data = displays;
}

void car_settle(struct record *record)
{
    struct displays *displays = record->displays;

    if (!record->is_dirty) {
        record->is_dirty = true;
        LL_PREPEND2(displays->dirty, record, dirty_next);
        if (!uv_is_active((uv_handle_t *)&displays->settle)) {
            (void)uv_timer_start(&displays->settle, on_settle, DISPLAY_CAR_SETTLE_MS, 0);
        }
    }
}

void displays_detected(struct displays *displays, const char *display, const json_t *attributes)
{
    struct record *record = record_find(displays, display);
    const json_t *data;
    json_t *patch;

    if (record == NULL || !record->session.is_set) {
        return;
    }
    /* Once something waits, an attribute that is as in the data may take back what waits. */
    data = record->car == NULL ? fleet_state_data(displays->config.state, display, NULL) : NULL;
    patch = display_car_patch(data, attributes);
    if (patch == NULL) {
        return;
    }
    if (record->car == NULL) {
        record->car = json_incref(json_object_get(patch, "currentCar"));
    } else {
        (void)json_object_update(record->car, json_object_get(patch, "currentCar"));
    }
    json_decref(patch);
    car_settle(record);
}
