#include "unit/fleet_displays/fake_state.h"

#include "base/error.h"
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISPLAYS_MAX = 8, WAITING_MAX = 16 };

struct shown {
    char id[32];
    bool is_declared;
    struct fleet_object object;
    json_t *data;
    uint64_t revision; /* of the data; 0: none */
};

struct waiting {
    struct shown *shown;
    json_t *data;
    uint64_t revision;
    provider_put_cb done;
    void *userdata;
};

struct fleet_state {
    uv_loop_t loop;
    struct member *member;
    struct fleet_observer *observer;
    struct shown displays[DISPLAYS_MAX];
    struct waiting waiting[WAITING_MAX];
    size_t waiting_count;
    uint64_t revision;
    bool defers;
    unsigned disturbances, writes, others;
    int refusal;
};

static struct fleet_state only;

/* ---- The test's side ------------------------------------------------------------------------- */

static struct shown *shown_of(struct fleet_state *state, const char *id)
{
    struct shown *shown = state->displays;

    while (shown->id[0] != '\0' && strcmp(shown->id, id) != 0) {
        shown++;
        assert_true(shown < state->displays + DISPLAYS_MAX);
    }
    if (shown->id[0] == '\0') {
        (void)snprintf(shown->id, sizeof(shown->id), "%s", id);
    }
    return shown;
}

struct fleet_state *fake_open(void)
{
    const struct provider_config config = {.loop = &only.loop, .url = "memory:fake", .node = "a"};
    struct baton_error error;

    only = (struct fleet_state){0};
    assert_int_equal(uv_loop_init(&only.loop), 0);
    if (member_open(&only.member, &config, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return &only;
}

static void on_closed(void *userdata)
{
    *(bool *)userdata = true;
}

void fake_close(struct fleet_state *state)
{
    bool is_closed = false;

    member_close(state->member, on_closed, &is_closed);
    (void)uv_run(&state->loop, UV_RUN_DEFAULT);
    assert_true(is_closed);
    member_free(state->member);
    assert_int_equal(uv_loop_close(&state->loop), 0);
    for (size_t i = 0; i < DISPLAYS_MAX; i++) {
        json_decref(state->displays[i].data);
    }
}

uv_loop_t *fake_loop(void)
{
    return &only.loop;
}

static void tell(struct fleet_state *state, const struct fleet_state_event *event)
{
    if (state->observer != NULL) {
        state->observer->on_change(state->observer, event);
    }
}

void fake_declare(struct fleet_state *state, const char *display)
{
    struct shown *shown = shown_of(state, display);

    shown->is_declared = true;
    shown->object = (struct fleet_object){.kind = FLEET_DISPLAY, .references = 1, .id = shown->id};
    tell(state, &(struct fleet_state_event){
                    .change = FLEET_CHANGED_OBJECT, .kind = FLEET_DISPLAY, .id = shown->id});
}

void fake_undeclare(struct fleet_state *state, const char *display)
{
    struct shown *shown = shown_of(state, display);

    shown->is_declared = false;
    tell(state, &(struct fleet_state_event){.change = FLEET_CHANGED_OBJECT,
                                            .kind = FLEET_DISPLAY,
                                            .id = shown->id,
                                            .before = &shown->object});
}

static void store(struct fleet_state *state, struct shown *shown, json_t *data)
{
    json_decref(shown->data);
    shown->data = json_incref(data);
    shown->revision = data != NULL ? ++state->revision : 0;
    tell(state, &(struct fleet_state_event){.change = FLEET_CHANGED_DATA, .id = shown->id});
}

void fake_write(struct fleet_state *state, const char *display, const char *data)
{
    json_t *json = data != NULL ? json_loads(data, 0, NULL) : NULL;

    assert_true(data == NULL || json != NULL);
    store(state, shown_of(state, display), json);
    json_decref(json);
}

void fake_defer(struct fleet_state *state)
{
    state->defers = true;
}

void fake_disturb(struct fleet_state *state, unsigned count)
{
    state->disturbances = count;
}

void fake_refuse(struct fleet_state *state, int code)
{
    state->refusal = code;
}

unsigned fake_writes(const struct fleet_state *state)
{
    return state->writes;
}

static void disturb(struct fleet_state *state, struct shown *shown)
{
    json_t *data = shown->data != NULL ? json_copy(shown->data) : json_object();

    state->disturbances--;
    assert_int_equal(json_object_set_new(data, "qrCode", json_sprintf("other %u", ++state->others)),
                     0);
    store(state, shown, data);
    json_decref(data);
}

static void finish(struct fleet_state *state, const struct waiting *write, int code)
{
    struct baton_error error = {0};
    struct shown *shown = write->shown;

    if (code == BATON_OK && state->disturbances > 0) {
        disturb(state, shown);
    }
    if (code == BATON_OK && write->revision != shown->revision) {
        code = BATON_ECONFLICT;
    }
    if (code == BATON_OK) {
        store(state, shown, write->data);
    } else {
        (void)error_set(&error, code, "the test says so");
    }
    json_decref(write->data);
    write->done(write->userdata, code, shown->revision, &error);
}

bool fake_finish(struct fleet_state *state, int code)
{
    struct waiting first = state->waiting[0];

    if (state->waiting_count == 0) {
        return false;
    }
    state->waiting_count--;
    memmove(state->waiting, state->waiting + 1, state->waiting_count * sizeof(first));
    finish(state, &first, code);
    return true;
}

/* ---- The side of displays/ ------------------------------------------------------------------- */

struct member *fleet_state_member(const struct fleet_state *state)
{
    return state->member;
}

void fleet_state_observe(struct fleet_state *state, struct fleet_observer *observer)
{
    state->observer = observer;
}

void fleet_state_ignore(struct fleet_state *state, const struct fleet_observer *observer)
{
    assert_ptr_equal(state->observer, observer);
    state->observer = NULL;
}

const struct fleet_object *fleet_state_object(const struct fleet_state *state, enum fleet_kind kind,
                                              const char *id, uint64_t *ret_revision)
{
    const struct shown *shown = shown_of((struct fleet_state *)state, id);

    if (ret_revision != NULL) {
        *ret_revision = 1;
    }
    return kind == FLEET_DISPLAY && shown->is_declared ? &shown->object : NULL;
}

const json_t *fleet_state_data(const struct fleet_state *state, const char *display,
                               uint64_t *ret_revision)
{
    const struct shown *shown = shown_of((struct fleet_state *)state, display);

    if (ret_revision != NULL && shown->data != NULL) {
        *ret_revision = shown->revision;
    }
    return shown->data;
}

const char *fleet_state_next_data(const struct fleet_state *state, const char *display)
{
    const struct shown *next = NULL;

    for (size_t i = 0; i < DISPLAYS_MAX; i++) {
        const struct shown *shown = &state->displays[i];

        if (shown->data != NULL && strcmp(shown->id, display) > 0 &&
            (next == NULL || strcmp(shown->id, next->id) < 0)) {
            next = shown;
        }
    }
    return next != NULL ? next->id : NULL;
}

int fleet_state_put_json(struct fleet_state *state, const char *key, const json_t *json,
                         uint64_t revision, provider_put_cb done, void *userdata,
                         struct baton_error *reterr)
{
    const int refusal = state->refusal;
    struct waiting write = {.data = json_incref((json_t *)json),
                            .revision = revision,
                            .done = done,
                            .userdata = userdata};

    assert_memory_equal(key, "data/", 5);
    state->writes++;
    state->refusal = BATON_OK;
    if (refusal != BATON_OK) {
        json_decref(write.data);
        return error_set(reterr, refusal, "the test says so");
    }
    write.shown = shown_of(state, key + 5);
    if (state->defers) {
        assert_true(state->waiting_count < WAITING_MAX);
        state->waiting[state->waiting_count++] = write;
    } else {
        finish(state, &write, BATON_OK);
    }
    return BATON_OK;
}
