/* The backend's messages, written. */
#include "protocol/protocol.h"

#include <string.h>

#define PROTOCOL_NAME(symbol, name) [symbol] = (name),
static const char *const command_names[] = {PROTOCOL_COMMANDS(PROTOCOL_NAME)};
#undef PROTOCOL_NAME

static const char *const crop_keys[] = {
    [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

/* A failure of any step leaves the object without a field: one that is needed. */
struct draft {
    json_t *object;
    bool has_failed;
};

static void put(struct draft *draft, const char *key, json_t *value)
{
    draft->has_failed |= json_object_set_new(draft->object, key, value) != 0;
}

static json_t *finish(struct draft *draft)
{
    if (draft->has_failed) {
        json_decref(draft->object);
        return NULL;
    }
    return draft->object;
}

static json_t *subscription_json(const struct subscription *subscription)
{
    struct draft draft = {.object = json_object()};

    put(&draft, "subscriptionIdentifier", json_string(subscription->identifier));
    put(&draft, "rtspUrl", json_string(subscription->rtsp_url));
    if (subscription->snapshot_url != NULL) {
        put(&draft, "snapshotUrl", json_string(subscription->snapshot_url));
    }
    if (subscription->snapshot_interval_ms != 0) {
        put(&draft, "snapshotInterval", json_integer(subscription->snapshot_interval_ms));
    }
    put(&draft, "modelUrl", json_string(subscription->model_url));
    put(&draft, "modelName", json_string(subscription->model_name));
    put(&draft, "modelId", json_integer(subscription->model_id));
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        if ((subscription->crop.given & 1u << edge) != 0) {
            put(&draft, crop_keys[edge], json_integer(subscription->crop.at[edge]));
        }
    }
    return finish(&draft);
}

static json_t *list_json(const struct command *command)
{
    json_t *list = json_array();

    for (size_t i = 0; i < command->subscription_count; i++) {
        if (json_array_append_new(list, subscription_json(&command->subscriptions[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *session_json(const struct session_id *session)
{
    return session->is_set ? json_integer(session->id) : json_null();
}

static json_t *payload_json(const struct command *command)
{
    struct draft draft = {.object = json_object()};

    if (command->type == COMMAND_PATCH_SESSION_RESULT) {
        put(&draft, "sessionId", session_json(&command->session));
        put(&draft, "success", json_boolean(command->is_success));
        put(&draft, "message", json_string(command->text));
        return finish(&draft);
    }
    put(&draft, "displayIdentifier", json_string(command->display));
    if (command->type == COMMAND_SET_SESSION_ID) {
        put(&draft, "sessionId", session_json(&command->session));
    } else {
        const char *name = stage_name(command->stage);
        put(&draft, "progressionStage", name != NULL ? json_string(name) : json_null());
    }
    return finish(&draft);
}

char *format_command(const struct command *command)
{
    struct draft draft = {.object = json_object()};
    json_t *message;
    char *text;

    put(&draft, "type", json_string(command_names[command->type]));
    if (command->type == COMMAND_SET_SUBSCRIPTION_LIST) {
        if (command->epoch != 0) {
            put(&draft, "epoch", json_integer((json_int_t)command->epoch));
        }
        put(&draft, "subscriptions", list_json(command));
    } else if (command->type != COMMAND_REQUEST_STATE) {
        put(&draft, "payload", payload_json(command));
    }
    message = finish(&draft);
    text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    return text;
}
