#include "fleet/state/state_int.h"

#include "base/error.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 200 };

struct told {
    struct told *next;
    struct fleet_state_event event;
    struct fleet_object *before; /* a reference; NULL: none */
    char *reason;
    char id[];
};

struct listing {
    struct fleet_state *state; /* NULL: it was closed */
    uint64_t load;             /* counters.loads, with this one */
};

/* ---- Names ----------------------------------------------------------------------------------- */

int fleet_name_check(const char *name, struct baton_error *reterr)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.:";
    size_t bytes = strspn(name, allowed);

    return bytes > 0 && bytes <= FLEET_NAME_MAX && name[bytes] == '\0'
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL,
                           "fleet \"%.60s\": a name has 1 to %d of: letters, digits, \"-_.:\"",
                           name, FLEET_NAME_MAX);
}

const char *state_key(const struct fleet_state *state, const char *key,
                      char ret[static STATE_KEY_MAX])
{
    (void)snprintf(ret, STATE_KEY_MAX, "%s/%s", state->name, key);
    return ret;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static void told_free(struct told *told)
{
    fleet_object_unref(told->before);
    free(told->reason);
    free(told);
}

static struct told *take_told(struct fleet_state *state)
{
    struct told *told = state->first_told;

    if (told) {
        state->first_told = told->next;
        state->last_told = told->next ? state->last_told : &state->first_told;
    }
    return told;
}

/* To all observers, each event after the one before: a change that an observer causes waits. */
static void tell_all(struct fleet_state *state)
{
    struct told *told;

    if (state->is_telling) {
        return;
    }
    state->is_telling = true;
    while ((told = take_told(state))) {
        for (struct fleet_observer *observer = state->observers, *next;
             observer && !state->is_closed; observer = next) {
            next = observer->next;
            observer->on_change(observer, &told->event);
        }
        told_free(told);
    }
    state->is_telling = false;
}

/* Takes the reference `before`. Without memory nobody is told, but the cache is right. */
static void queue(struct fleet_state *state, enum fleet_change change, enum section section,
                  const char *id, struct fleet_object *before, const char *reason)
{
    size_t bytes = strlen(id) + 1;
    struct told *told = calloc(1, sizeof(*told) + bytes);

    if (!told) {
        fleet_object_unref(before);
        return;
    }
    memcpy(told->id, id, bytes);
    told->before = before;
    told->reason = reason ? strdup(reason) : NULL;
    told->event = (struct fleet_state_event){
        .change = change,
        .kind = section <= SECTION_SUBSCRIPTION ? (enum fleet_kind)section : FLEET_KINDS,
        .id = told->id,
        .before = before,
        .reason = told->reason};
    *state->last_told = told;
    state->last_told = &told->next;
}

static enum fleet_change change_of(enum section section)
{
    switch (section) {
    case SECTION_DATA:
        return FLEET_CHANGED_DATA;
    case SECTION_WORKER:
        return FLEET_CHANGED_WORKER;
    case SECTION_ASSIGNED:
        return FLEET_CHANGED_ASSIGNED;
    case SECTION_MOVE:
        return FLEET_CHANGED_MOVE;
    case SECTION_OWNERS:
        return FLEET_CHANGED_OWNERS;
    case SECTION_UNPLACED:
        return FLEET_CHANGED_UNPLACED;
    default:
        return FLEET_CHANGED_OBJECT;
    }
}

/* ---- News ------------------------------------------------------------------------------------ */

static void load_later(struct fleet_state *state);

void state_take_news(struct fleet_state *state, const struct cache_news *news)
{
    struct cache_change change;
    enum section section = SECTION_MODEL;
    const char *id = "";

    if (cache_take(&state->cache, news, &change) != BATON_OK) {
        load_later(state); /* out of memory: the list has it again */
        return;
    }
    state->counters.changes += change.is_changed;
    state->counters.foreign += change.is_foreign;
    (void)value_key(news->key, &section, &id); /* a foreign key is told as it is */
    if (change.is_changed && state->is_ready) {
        queue(state, change.is_mark ? FLEET_CHANGED_MARK : change_of(section), section, id,
              change.before, NULL);
    } else {
        fleet_object_unref(change.before);
    }
    if (change.is_foreign) {
        queue(state, FLEET_FOREIGN, SECTIONS, news->key, NULL, news->reason);
    }
    tell_all(state);
}

void state_take(struct fleet_state *state, const struct provider_value *value,
                enum cache_source source, uint64_t asked)
{
    struct baton_error error = {0};
    size_t prefix = strlen(state->name) + 1;
    struct cache_news news = {
        .source = source, .key = value->key + prefix, .revision = value->revision, .asked = asked};
    int code;

    if (value->data) {
        code = value_read(&news.value, news.key, value->data, value->bytes, &error);
        if (code == BATON_ENOMEM) {
            load_later(state);
            return;
        }
        news.reason = code == BATON_OK ? NULL : error.message;
    }
    state_take_news(state, &news);
}

static void on_value(void *userdata, const struct provider_value *value)
{
    struct fleet_state *state = userdata;

    if (!state->is_closed) {
        state_take(state, value, CACHE_FEED, 0);
    }
}

/* ---- Loading --------------------------------------------------------------------------------- */

static void load(uv_timer_t *timer);

static void load_in(struct fleet_state *state, uint64_t ms)
{
    if (!state->is_closed) {
        (void)uv_timer_start(&state->timer, load, ms, 0);
    }
}

/* What is under way does not count: it may lack what is missing. */
static void load_later(struct fleet_state *state)
{
    state->load_due = state->counters.loads + 1;
    load_in(state, RETRY_MS);
}

static void loaded(struct fleet_state *state, uint64_t load)
{
    bool is_first = !state->is_ready;

    cache_loaded(&state->cache);
    state->is_ready = true;
    if (load >= state->load_due) {
        state->loaded = load;
    } else if (!uv_is_active((uv_handle_t *)&state->timer)) {
        load_in(state, 0);
    }
    if (is_first && state->on_ready) {
        state->on_ready(state->userdata);
    }
}

static void on_listed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct listing *listing = userdata;
    struct fleet_state *state = listing->state;
    uint64_t load = listing->load;
    size_t prefix;

    free(listing);
    if (!state) {
        return;
    }
    prefix = strlen(state->name) + 1;
    state->listing = NULL;
    if (code != BATON_OK) {
        load_in(state, RETRY_MS);
        return;
    }
    for (size_t i = 0; i < count && !state->is_closed; i++) {
        if (values[i].revision > cache_revision(&state->cache, values[i].key + prefix)) {
            state_take(state, &values[i], CACHE_LIST, 0);
        }
    }
    if (!state->is_closed) {
        loaded(state, load);
    }
}

/* The feed first: what it reports while the list is under way is not lost. */
static void load(uv_timer_t *timer)
{
    struct fleet_state *state = timer->data;
    struct listing *listing;
    char prefix[STATE_KEY_MAX];

    (void)state_key(state, "", prefix);
    if (!state->feed &&
        feed_watch(&state->feed, state->member, prefix, on_value, state, NULL) != BATON_OK) {
        load_in(state, RETRY_MS);
        return;
    }
    if (state->is_closed || state->listing) {
        return;
    }
    listing = calloc(1, sizeof(*listing));
    if (!listing) {
        load_in(state, RETRY_MS);
        return;
    }
    *listing = (struct listing){state, ++state->counters.loads};
    state->listing = listing;
    state->cache.is_loading = true;
    if (store_list(state->member, prefix, on_listed, listing, NULL) != BATON_OK) {
        on_listed(listing, BATON_EUNAVAILABLE, NULL, 0);
    }
}

uint64_t fleet_state_load_again(struct fleet_state *state)
{
    state->load_due = state->counters.loads + 1;
    if (!state->listing) {
        load_in(state, 0);
    }
    return state->load_due;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int fleet_state_open(struct fleet_state **ret, struct member *member, const char *name,
                     void (*on_ready)(void *userdata), void *userdata, struct baton_error *reterr)
{
    struct fleet_state *state;
    int code = fleet_name_check(name, reterr);

    code = code ? code : member_need(member, PROVIDER_STATE, "state", reterr);
    if (code != BATON_OK) {
        return code;
    }
    state = calloc(1, sizeof(*state));
    if (!state) {
        return error_set(reterr, BATON_ENOMEM, "fleet \"%s\": out of memory", name);
    }
    state->member = member;
    state->on_ready = on_ready;
    state->userdata = userdata;
    state->last_told = &state->first_told;
    memcpy(state->name, name, strlen(name) + 1);
    cache_init(&state->cache);
    (void)uv_timer_init(member_loop(member), &state->timer);
    state->timer.data = state;
    (void)uv_timer_start(&state->timer, load, 0, 0);
    *ret = state;
    return BATON_OK;
}

void fleet_state_observe(struct fleet_state *state, struct fleet_observer *observer)
{
    struct fleet_observer **last = &state->observers;

    while (*last) {
        last = &(*last)->next;
    }
    observer->next = NULL;
    *last = observer;
}

void fleet_state_ignore(struct fleet_state *state, const struct fleet_observer *observer)
{
    struct fleet_observer **at = &state->observers;

    while (*at && *at != observer) {
        at = &(*at)->next;
    }
    *at = *at ? observer->next : NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct fleet_state *state = handle->data;
    struct told *told;

    while ((told = take_told(state))) {
        told_free(told);
    }
    cache_fini(&state->cache);
    free(state);
}

void fleet_state_close(struct fleet_state *state)
{
    if (!state || state->is_closed) {
        return;
    }
    state->is_closed = true;
    if (state->listing) {
        state->listing->state = NULL;
        state->listing = NULL;
    }
    feed_stop(state->feed);
    writes_cancel(state);
    uv_close((uv_handle_t *)&state->timer, on_closed);
}
