/* A display's data, its session and its stage. */
#include "fleet/http/handlers.h"
#include "fleet/http/inside.h"

#include "base/json_read.h"

#include <string.h>

/* Whether the path's display is there. False: refused. */
static bool has_display(struct call *call)
{
    if (fleet_state_object(call->http->parts.state, FLEET_DISPLAY, call->id, NULL) != NULL) {
        return true;
    }
    call_refuse(call, 404, NULL, "there is no display \"%s\"", call->id);
    return false;
}

void display_data_get(struct call *call)
{
    uint64_t revision = 0;
    const json_t *data;

    if (has_display(call)) {
        data = fleet_state_data(call->http->parts.state, call->id, &revision);
        call_json(call, 200, data != NULL ? json_deep_copy(data) : json_object(),
                  data != NULL ? revision : 0);
    }
}

static void on_done(void *userdata, int code, const struct baton_error *error)
{
    struct call *call = userdata;

    if (code != BATON_OK) {
        call_fail_write(call, code, error, false);
    } else {
        call_nothing(call);
    }
}

static void fail_unless(struct call *call, int code, const struct baton_error *error)
{
    if (code != BATON_OK) {
        call_fail(call, error);
    }
}

/* The whole body is the patch: a deep merge, in which null sets null. */
void display_data_patch(struct call *call)
{
    struct baton_error error;

    if (call_body(call) && has_display(call)) {
        fail_unless(
            call,
            displays_patch(call->http->parts.displays, call->id, call->body, on_done, call, &error),
            &error);
    }
}

/* The only member of the body. NULL: refused. */
static const json_t *only_member(struct call *call, const char *name)
{
    const json_t *value = json_object_get(call->body, name);

    if (value == NULL || json_object_size(call->body) != 1) {
        call_refuse(call, 422, name, "%s: must be given, and nothing else", name);
        return NULL;
    }
    return value;
}

void display_session_put(struct call *call)
{
    const json_t *value;
    struct session_id session;
    struct baton_error error;

    if (!call_body(call) || !has_display(call) ||
        (value = only_member(call, "sessionId")) == NULL) {
        return;
    }
    session = (struct session_id){json_is_integer(value), json_integer_value(value)};
    if (!json_is_null(value) &&
        (!session.is_set || session.id < 0 || session.id > PROTOCOL_INTEGER_MAX)) {
        call_refuse(call, 422, "sessionId", "sessionId: must be an integer of 0 to 2^53, or null");
        return;
    }
    fail_unless(
        call,
        displays_set_session(call->http->parts.displays, call->id, session, on_done, call, &error),
        &error);
}

/* STAGE_COUNT: there is no such stage. */
static enum stage stage_of(const json_t *value)
{
    const char *text = json_string_value(value);
    int stage = STAGE_NONE + 1;

    if (json_is_null(value)) {
        return STAGE_NONE;
    }
    while (stage < STAGE_COUNT &&
           (text == NULL || strcmp(stage_name((enum stage)stage), text) != 0)) {
        stage++;
    }
    return (enum stage)stage;
}

void display_stage_put(struct call *call)
{
    const json_t *value;
    struct baton_error error;
    enum stage stage;

    if (!call_body(call) || !has_display(call) ||
        (value = only_member(call, "progressionStage")) == NULL) {
        return;
    }
    stage = stage_of(value);
    if (stage == STAGE_COUNT) {
        call_refuse(call, 422, "progressionStage",
                    "progressionStage: must be welcome, car_fueling, car_waitpayment, "
                    "car_postpayment or null");
        return;
    }
    fail_unless(
        call,
        displays_set_stage(call->http->parts.displays, call->id, stage, on_done, call, &error),
        &error);
}
