/* Messages written, and the worker's read again for the other end of the wire. */
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "protocol/protocol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Enough digits to distinguish 0.95 from its neighbours, but not to show how a double stores it. */
#define FORMAT_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

#define PROTOCOL_NAME(symbol, name) [symbol] = (name),
static const char *const command_names[] = {PROTOCOL_COMMANDS(PROTOCOL_NAME)};
#undef PROTOCOL_NAME

static const char *const crop_keys[] = {
    [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

/* The attributes of a car in the display's persistent data. */
static const struct {
    const char *key;
    bool is_number; /* else a text */
} car_fields[] = {{"carModel", false}, {"carBrand", false},         {"carYear", true},
                  {"bodyType", false}, {"licensePlateText", false}, {"licensePlateType", false}};

/* A process of several threads may count more than 100 %. */
#define USAGE_MAX 1e6

static const struct {
    const char *key;
    bool is_required;
} usage_fields[] = {
    {"cpuUsage", true}, {"memoryUsage", true}, {"gpuUsage", false}, {"gpuMemoryUsage", false}};

/* Dumps and releases `message`; NULL stays NULL. */
static char *dump_and_release(json_t *message)
{
    char *text = message != NULL ? json_text(message, FORMAT_FLAGS) : NULL;
    json_decref(message);
    return text;
}

static json_t *percent(double value)
{
    double bounded = value > 0 ? (value < 100 ? value : 100) : 0; /* NaN becomes 0 */
    return json_real(round(bounded * 10) / 10);
}

/* Takes the object and the value, and adds the field. NULL: one of them is NULL, as memory was
 * short; json_pack() would leave out what is optional. */
static json_t *with(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Takes the object, and adds the coordinates that were given. NULL stays NULL. */
static json_t *with_crop(json_t *object, const struct crop *crop)
{
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        if ((crop->given & 1u << edge) != 0) {
            object = with(object, crop_keys[edge], json_integer(crop->at[edge]));
        }
    }
    return object;
}

/* In a report. */
static json_t *connection_json(const struct subscription *subscription)
{
    return with_crop(json_pack("{s:s, s:I, s:s, s:b}", "subscriptionIdentifier",
                               subscription->identifier, "modelId",
                               (json_int_t)subscription->model_id, "modelName",
                               subscription->model_name, "online", (int)subscription->is_online),
                     &subscription->crop);
}

/* In a list. */
static json_t *subscription_json(const struct subscription *subscription)
{
    json_t *object = json_pack("{s:s, s:s}", "subscriptionIdentifier", subscription->identifier,
                               "rtspUrl", subscription->rtsp_url);

    if (subscription->snapshot_url != NULL) {
        object = with(object, "snapshotUrl", json_string(subscription->snapshot_url));
    }
    if (subscription->snapshot_interval_ms != 0) {
        object = with(object, "snapshotInterval", json_integer(subscription->snapshot_interval_ms));
    }
    object = with(object, "modelUrl", json_string(subscription->model_url));
    object = with(object, "modelName", json_string(subscription->model_name));
    object = with(object, "modelId", json_integer(subscription->model_id));
    return with_crop(object, &subscription->crop);
}

/* Takes the list and the value, and adds it; like with(). */
static json_t *with_next(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* ---- A backend's ----------------------------------------------------------------------------- */

static json_t *session_json(const struct session_id *session)
{
    return session->is_set ? json_integer(session->id) : json_null();
}

static json_t *payload_json(const struct command *command)
{
    switch (command->type) {
    case COMMAND_PATCH_SESSION_RESULT:
        return json_pack("{s:o, s:b, s:s}", "sessionId", session_json(&command->session), "success",
                         (int)command->is_success, "message", command->text);
    case COMMAND_SET_SESSION_ID:
        return json_pack("{s:s, s:o}", "displayIdentifier", command->display, "sessionId",
                         session_json(&command->session));
    default:
        return json_pack("{s:s, s:s?}", "displayIdentifier", command->display, "progressionStage",
                         stage_name(command->stage));
    }
}

char *format_command(const struct command *command)
{
    json_t *message = json_pack("{s:s}", "type", command_names[command->type]);

    if (command->type == COMMAND_SET_SUBSCRIPTION_LIST) {
        json_t *list = json_array();
        for (size_t i = 0; i < command->subscription_count; i++) {
            list = with_next(list, subscription_json(command->subscriptions[i]));
        }
        if (command->epoch != 0) {
            message = with(message, "epoch", json_integer((json_int_t)command->epoch));
        }
        message = with(message, "subscriptions", list);
    } else if (command->type != COMMAND_REQUEST_STATE) {
        message = with(message, "payload", payload_json(command));
    }
    return dump_and_release(message);
}

/* ---- A worker's ------------------------------------------------------------------------------ */

char *format_state_report(const struct usage *usage, struct subscription *const *subscriptions,
                          size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        list = with_next(list, connection_json(subscriptions[i]));
    }
    return dump_and_release(json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o}", "type", "stateReport", "cpuUsage", percent(usage->cpu),
        "memoryUsage", percent(usage->memory), "gpuUsage", percent(usage->gpu), "gpuMemoryUsage",
        percent(usage->gpu_memory), "cameraConnections", list));
}

void detection_fini(struct detection *detection)
{
    free(detection->identifier);
    free(detection->model_name);
    json_decref(detection->attributes);
    *detection = (struct detection){0};
}

static int attributes_check(json_t *attributes, const char *path, struct baton_error *reterr)
{
    const char *key;
    json_t *value;

    if (!json_is_object(attributes)) {
        return error_set(reterr, BATON_EINVAL, "%s must be an object", path);
    }
    if (json_object_size(attributes) > PROTOCOL_FIELDS_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s has %zu fields: at most %d", path,
                         json_object_size(attributes), PROTOCOL_FIELDS_MAX);
    }
    json_object_foreach(attributes, key, value)
    {
        if (json_is_object(value) || json_is_array(value)) {
            return error_set(reterr, BATON_EINVAL, "%s.%s is %s: a detection is flat", path, key,
                             json_type_name(json_typeof(value)));
        }
        if (json_is_string(value) && json_string_length(value) > PROTOCOL_TEXT_MAX) {
            return error_set(reterr, BATON_EINVAL, "%s.%s is %zu bytes long: at most %d", path, key,
                             json_string_length(value), PROTOCOL_TEXT_MAX);
        }
    }
    return 0;
}

int detection_check(const struct detection *detection, struct baton_error *reterr)
{
    if (!identifier_is_valid(detection->identifier)) {
        return error_set(reterr, BATON_EINVAL,
                         "detection for \"%s\": must be \"displayIdentifier;cameraIdentifier\"",
                         detection->identifier);
    }
    return attributes_check(detection->attributes, "detection", reterr);
}

void format_timestamp(int64_t at_unix_ms, char *text)
{
    time_t seconds = (time_t)(at_unix_ms / 1000);
    int ms = (int)(at_unix_ms % 1000);
    struct tm utc;
    size_t used;

    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    if (gmtime_r(&seconds, &utc) == NULL) {
        seconds = 0;
        (void)gmtime_r(&seconds, &utc);
    }
    used = strftime(text, PROTOCOL_TIMESTAMP_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text + used, PROTOCOL_TIMESTAMP_BYTES - used, ".%03dZ", ms);
}

char *format_image_detection(const struct detection *detection)
{
    char timestamp[PROTOCOL_TIMESTAMP_BYTES];
    json_t *session = detection->session.is_set ? json_integer(detection->session.id) : NULL;

    if (detection->session.is_set && session == NULL) {
        return NULL;
    }
    format_timestamp(detection->at_unix_ms, timestamp);
    return dump_and_release(
        json_pack("{s:s, s:s, s:s, s:o*, s:{s:O, s:I, s:s}}", "type", "imageDetection",
                  "subscriptionIdentifier", detection->identifier, "timestamp", timestamp,
                  "sessionId", session, "data", "detection", detection->attributes, "modelId",
                  (json_int_t)detection->model_id, "modelName", detection->model_name));
}

json_t *patch_of_detection(const struct detection *detection)
{
    json_t *car = json_object();

    for (size_t i = 0; i < sizeof(car_fields) / sizeof(car_fields[0]); i++) {
        json_t *value = json_object_get(detection->attributes, car_fields[i].key);
        bool is_right = json_is_null(value) ||
                        (car_fields[i].is_number ? json_is_number(value) : json_is_string(value));
        if (is_right && json_object_set(car, car_fields[i].key, value) != 0) {
            json_decref(car);
            return NULL;
        }
    }
    if (json_object_size(car) == 0) {
        json_decref(car);
        return NULL;
    }
    return json_pack("{s:o}", "currentCar", car);
}

char *format_patch_session(int64_t session_id, const json_t *data)
{
    return dump_and_release(json_pack("{s:s, s:I, s:O}", "type", "patchSession", "sessionId",
                                      (json_int_t)session_id, "data", data));
}

static double percent_of(const json_t *report, const char *key)
{
    double value = json_number_value(json_object_get(report, key));

    return value < 100 ? value : 100;
}

struct usage usage_of_report(const json_t *report)
{
    return (struct usage){.cpu = percent_of(report, "cpuUsage"),
                          .memory = percent_of(report, "memoryUsage"),
                          .gpu = percent_of(report, "gpuUsage"),
                          .gpu_memory = percent_of(report, "gpuMemoryUsage")};
}

static int check_connection(const json_t *connection, size_t index, struct baton_error *reterr)
{
    char path[64];
    struct json_fields fields = {connection, path, reterr, 0};
    const char *identifier;
    bool is_given;

    (void)snprintf(path, sizeof(path), "cameraConnections[%zu].", index);
    identifier = json_take_text(&fields, "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX);
    if (identifier != NULL && !identifier_is_valid(identifier)) {
        return error_set(reterr, BATON_EPROTO, "%ssubscriptionIdentifier is \"%s\"", path,
                         identifier);
    }
    (void)json_take_integer(&fields, "modelId", 0, PROTOCOL_INTEGER_MAX, NULL);
    (void)json_take_text(&fields, "modelName", true, PROTOCOL_NAME_MAX);
    (void)json_take_boolean(&fields, "online");
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        (void)json_take_integer(&fields, crop_keys[edge], 0, PROTOCOL_PIXELS_MAX, &is_given);
    }
    return fields.code;
}

static int check_usage(const json_t *message, struct baton_error *reterr)
{
    double value;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(usage_fields) / sizeof(usage_fields[0]); i++) {
        const json_t *found = json_object_get(message, usage_fields[i].key);
        if (usage_fields[i].is_required || (found != NULL && !json_is_null(found))) {
            rc = json_read_number(message, "", usage_fields[i].key, 0, USAGE_MAX, &value, reterr);
        }
    }
    return rc;
}

static void check_state_report(struct json_fields *fields)
{
    json_t *list, *element;
    size_t index;

    fields->code = check_usage(fields->object, fields->reterr);
    list = json_take(fields, "cameraConnections", true, JSON_ARRAY);
    json_array_foreach(list, index, element)
    {
        if (fields->code == 0) {
            fields->code = check_connection(element, index, fields->reterr);
        }
    }
}

static void check_image_detection(struct json_fields *fields)
{
    bool is_given;

    (void)json_take_text(fields, "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX);
    (void)json_take_text(fields, "timestamp", true, 64);
    (void)json_take_integer(fields, "sessionId", 0, PROTOCOL_INTEGER_MAX, &is_given);
    fields->object = json_take(fields, "data", true, JSON_OBJECT);
    fields->path = "data.";
    (void)json_take_integer(fields, "modelId", 0, PROTOCOL_INTEGER_MAX, NULL);
    (void)json_take_text(fields, "modelName", true, PROTOCOL_NAME_MAX);
    if (fields->code == 0) {
        fields->code = attributes_check(json_object_get(fields->object, "detection"),
                                        "data.detection", fields->reterr);
    }
}

static int check_worker_message(const json_t *message, struct baton_error *reterr)
{
    struct json_fields fields = {message, "", reterr, 0};
    const char *type = json_take_text(&fields, "type", true, PROTOCOL_NAME_MAX);

    if (type == NULL) {
        return fields.code;
    }
    if (strcmp(type, "stateReport") == 0) {
        check_state_report(&fields);
    } else if (strcmp(type, "imageDetection") == 0) {
        check_image_detection(&fields);
    } else if (strcmp(type, "patchSession") == 0) {
        (void)json_take_integer(&fields, "sessionId", 0, PROTOCOL_INTEGER_MAX, NULL);
        (void)json_take(&fields, "data", true, JSON_OBJECT);
    } else {
        return error_set(reterr, BATON_EPROTO,
                         "type is \"%s\": a worker sends stateReport, imageDetection, patchSession",
                         type);
    }
    return fields.code;
}

int worker_message_parse(const char *bytes, size_t count, json_t **message,
                         struct baton_error *reterr)
{
    json_t *parsed;
    int rc =
        json_read_object(bytes, count, PROTOCOL_MESSAGE_MAX, PROTOCOL_DEPTH_MAX, &parsed, reterr);

    if (rc != 0) {
        return rc;
    }
    rc = check_worker_message(parsed, reterr);
    if (rc != 0) {
        json_decref(parsed);
        return rc;
    }
    *message = parsed;
    return 0;
}
