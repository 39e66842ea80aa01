/* Reading of the cache. */
#include "fleet/state/state_int.h"

#include "base/error.h"
#include "fleet/objects/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_MAX = 24 };

bool fleet_state_is_ready(const struct fleet_state *state)
{
    return state->is_ready;
}

bool fleet_state_has_loaded(const struct fleet_state *state, uint64_t number)
{
    return state->loaded >= number;
}

struct member *fleet_state_member(const struct fleet_state *state)
{
    return state->member;
}

const char *fleet_state_name(const struct fleet_state *state)
{
    return state->name;
}

const struct fleet_state_counters *fleet_state_counters(const struct fleet_state *state)
{
    return &state->counters;
}

/* ---- By id ----------------------------------------------------------------------------------- */

static const struct value *find(const struct fleet_state *state, enum section section,
                                const char *id, uint64_t *ret_revision)
{
    const struct cached *cached = cache_find(&state->cache, section, id);

    if (cached && ret_revision) {
        *ret_revision = cached->revision;
    }
    return cached ? cached->value : NULL;
}

const struct fleet_object *fleet_state_object(const struct fleet_state *state, enum fleet_kind kind,
                                              const char *id, uint64_t *ret_revision)
{
    const struct value *value = find(state, (enum section)kind, id, ret_revision);

    return value ? value->object : NULL;
}

const struct fleet_worker *fleet_state_worker_key(const struct fleet_state *state, const char *id)
{
    const struct value *value = find(state, SECTION_WORKER, id, NULL);

    return value ? &value->worker : NULL;
}

const struct fleet_worker *fleet_state_worker(const struct fleet_state *state, const char *id)
{
    const struct fleet_worker *worker = fleet_state_worker_key(state, id);

    return worker && !worker->is_deleted ? worker : NULL;
}

const struct fleet_assigned *fleet_state_assigned(const struct fleet_state *state,
                                                  const char *worker)
{
    const struct value *value = find(state, SECTION_ASSIGNED, worker, NULL);

    return value ? &value->assigned : NULL;
}

const struct fleet_move *fleet_state_move(const struct fleet_state *state, const char *subscription)
{
    const struct value *value = find(state, SECTION_MOVE, subscription, NULL);

    return value ? &value->move : NULL;
}

static const json_t *find_json(const struct fleet_state *state, enum section section,
                               const char *id, uint64_t *ret_revision)
{
    const struct value *value = find(state, section, id, ret_revision);

    return value ? value->json : NULL;
}

const json_t *fleet_state_data(const struct fleet_state *state, const char *display,
                               uint64_t *ret_revision)
{
    return find_json(state, SECTION_DATA, display, ret_revision);
}

const json_t *fleet_state_owners(const struct fleet_state *state, uint64_t *ret_revision)
{
    return find_json(state, SECTION_OWNERS, "", ret_revision);
}

const json_t *fleet_state_unplaced(const struct fleet_state *state, uint64_t *ret_revision)
{
    return find_json(state, SECTION_UNPLACED, "", ret_revision);
}

size_t fleet_state_unplaced_count(const struct fleet_state *state)
{
    json_int_t count =
        json_integer_value(json_object_get(fleet_state_unplaced(state, NULL), "count"));

    return count > 0 ? (size_t)count : 0; /* another program may have written the value */
}

/* ---- In order -------------------------------------------------------------------------------- */

size_t fleet_state_count(const struct fleet_state *state, enum fleet_kind kind)
{
    return state->cache.orders[kind].count;
}

size_t fleet_state_worker_count(const struct fleet_state *state)
{
    const struct order *order = &state->cache.orders[SECTION_WORKER];
    size_t count = 0;

    for (size_t i = 0; i < order->count; i++) {
        count += !order->of[i]->value->worker.is_deleted;
    }
    return count;
}

const struct fleet_worker *fleet_state_worker_at(const struct fleet_state *state, const char *url)
{
    const struct order *order = &state->cache.orders[SECTION_WORKER];
    const struct fleet_worker *first = NULL;

    for (size_t i = 0; i < order->count; i++) {
        const struct fleet_worker *worker = &order->of[i]->value->worker;
        if (!worker->is_deleted && (!first || worker->revision < first->revision) &&
            fleet_url_is_same(worker->url, url)) {
            first = worker;
        }
    }
    return first;
}

/* The one behind `id`; id NULL: the first. */
static const struct cached *next(const struct fleet_state *state, enum section section,
                                 const char *id)
{
    const struct order *order = &state->cache.orders[section];
    char key[VALUE_KEY_MAX];
    size_t at = 0;

    if (id) {
        at = cache_position(order, value_key_of(key, section, id));
        at += at < order->count && strcmp(order->of[at]->key, key) == 0;
    }
    return at < order->count ? order->of[at] : NULL;
}

const struct fleet_object *fleet_state_next(const struct fleet_state *state, enum fleet_kind kind,
                                            const struct fleet_object *cursor)
{
    const struct cached *cached = next(state, (enum section)kind, cursor ? cursor->id : NULL);

    return cached ? cached->value->object : NULL;
}

const struct fleet_worker *fleet_state_next_worker_key(const struct fleet_state *state,
                                                       const struct fleet_worker *cursor)
{
    const struct cached *cached = next(state, SECTION_WORKER, cursor ? cursor->id : NULL);

    return cached ? &cached->value->worker : NULL;
}

const struct fleet_worker *fleet_state_next_worker(const struct fleet_state *state,
                                                   const struct fleet_worker *cursor)
{
    do {
        cursor = fleet_state_next_worker_key(state, cursor);
    } while (cursor && cursor->is_deleted);
    return cursor;
}

const struct fleet_assigned *fleet_state_next_assigned(const struct fleet_state *state,
                                                       const struct fleet_assigned *cursor)
{
    const struct cached *cached = next(state, SECTION_ASSIGNED, cursor ? cursor->worker : NULL);

    return cached ? &cached->value->assigned : NULL;
}

const struct fleet_move *fleet_state_next_move(const struct fleet_state *state,
                                               const struct fleet_move *cursor)
{
    const struct cached *cached = next(state, SECTION_MOVE, cursor ? cursor->subscription : NULL);

    return cached ? &cached->value->move : NULL;
}

const char *fleet_state_next_data(const struct fleet_state *state, const char *display)
{
    const struct cached *cached = next(state, SECTION_DATA, display[0] ? display : NULL);

    return cached ? cached->id : NULL;
}

const struct fleet_foreign *fleet_state_next_foreign(const struct fleet_state *state,
                                                     const struct fleet_foreign *cursor)
{
    const struct order *order = &state->cache.orders[ORDER_FOREIGN];
    size_t at = 0;

    if (cursor) {
        at = cache_position(order, cursor->key);
        at += at < order->count && strcmp(order->of[at]->key, cursor->key) == 0;
    }
    return at < order->count ? &order->of[at]->foreign : NULL;
}

/* ---- By what is used ------------------------------------------------------------------------- */

void fleet_state_each_of(const struct fleet_state *state, enum fleet_kind kind, const char *id,
                         fleet_each_cb each, void *userdata)
{
    if (kind == FLEET_SUBSCRIPTION) {
        return; /* workers name those */
    }
    for (const struct use *use = cache_uses(&state->cache, (enum section)kind, id); use;
         use = use->next) {
        each(userdata, ((const struct cached *)use->by)->value->object);
    }
}

bool fleet_state_is_used(const struct fleet_state *state, enum fleet_kind kind, const char *id,
                         const char **ret_by)
{
    const struct use *use =
        kind == FLEET_SUBSCRIPTION ? NULL : cache_uses(&state->cache, (enum section)kind, id);

    if (use && ret_by) {
        *ret_by = ((const struct cached *)use->by)->id;
    }
    return use != NULL;
}

const char *fleet_state_worker_of(const struct fleet_state *state, const char *subscription)
{
    const struct use *use = cache_uses(&state->cache, SECTION_SUBSCRIPTION, subscription);

    return use ? ((const struct cached *)use->by)->id : NULL;
}

static int check_reference(const struct fleet_state *state, enum fleet_kind kind, const char *id,
                           struct baton_error *reterr)
{
    return fleet_state_object(state, kind, id, NULL)
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "%s: there is no %s \"%.60s\": write it first",
                           fleet_kind_name(kind), fleet_kind_name(kind), id);
}

int fleet_state_check_references(const struct fleet_state *state, const struct fleet_object *object,
                                 struct baton_error *reterr)
{
    char number[NUMBER_MAX];
    int code;

    if (object->kind != FLEET_SUBSCRIPTION) {
        return BATON_OK;
    }
    (void)snprintf(number, sizeof(number), "%" PRId64, object->subscription.model);
    code = check_reference(state, FLEET_DISPLAY, object->subscription.display, reterr);
    code = code ? code : check_reference(state, FLEET_CAMERA, object->subscription.camera, reterr);
    return code ? code : check_reference(state, FLEET_MODEL, number, reterr);
}
