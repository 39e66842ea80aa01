/* The worker's own messages: written, and read again for the other end of the wire. */
#include "base/error.h"
#include "base/json_read.h"
#include "protocol/protocol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Enough digits to distinguish 0.95 from its neighbours, but not to show how a double stores it. */
#define FORMAT_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

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
    char *text = message != NULL ? json_dumps(message, FORMAT_FLAGS) : NULL;
    json_decref(message);
    return text;
}

static json_t *percent(double value)
{
    double bounded = value > 0 ? (value < 100 ? value : 100) : 0; /* NaN becomes 0 */
    return json_real(round(bounded * 10) / 10);
}

static json_t *connection_json(const struct subscription *subscription)
{
    const struct crop *crop = &subscription->crop;
    json_t *object =
        json_pack("{s:s, s:I, s:s, s:b}", "subscriptionIdentifier", subscription->identifier,
                  "modelId", (json_int_t)subscription->model_id, "modelName",
                  subscription->model_name, "online", (int)subscription->is_online);

    for (int edge = 0; object != NULL && edge < CROP_EDGES; edge++) {
        if ((crop->given & 1u << edge) != 0 &&
            json_object_set_new(object, crop_keys[edge], json_integer(crop->at[edge])) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

char *format_state_report(const struct usage *usage, const struct subscription *subscriptions,
                          size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(list, connection_json(&subscriptions[i])) != 0) {
            json_decref(list);
            return NULL;
        }
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
    json_t *message;

    format_timestamp(detection->at_unix_ms, timestamp);
    message = json_pack("{s:s, s:s, s:s}", "type", "imageDetection", "subscriptionIdentifier",
                        detection->identifier, "timestamp", timestamp);
    if (message != NULL && detection->session.is_set &&
        json_object_set_new(message, "sessionId", json_integer(detection->session.id)) != 0) {
        json_decref(message);
        return NULL;
    }
    if (message != NULL &&
        json_object_set_new(message, "data",
                            json_pack("{s:O, s:I, s:s}", "detection", detection->attributes,
                                      "modelId", (json_int_t)detection->model_id, "modelName",
                                      detection->model_name)) != 0) {
        json_decref(message);
        return NULL;
    }
    return dump_and_release(message);
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
    const char *text;
    int64_t number;
    bool flag;
    int rc;

    (void)snprintf(path, sizeof(path), "cameraConnections[%zu].", index);
    rc = json_read_text(connection, path, "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX,
                        &text, reterr);
    if (rc == 0 && !identifier_is_valid(text)) {
        rc = error_set(reterr, BATON_EPROTO, "%ssubscriptionIdentifier is \"%s\"", path, text);
    }
    if (rc == 0) {
        rc = json_read_integer(connection, path, "modelId", 0, PROTOCOL_INTEGER_MAX, NULL, &number,
                               reterr);
    }
    if (rc == 0) {
        rc = json_read_text(connection, path, "modelName", true, PROTOCOL_NAME_MAX, &text, reterr);
    }
    if (rc == 0) {
        rc = json_read_boolean(connection, path, "online", &flag, reterr);
    }
    for (int edge = 0; rc == 0 && edge < CROP_EDGES; edge++) {
        rc = json_read_integer(connection, path, crop_keys[edge], 0, PROTOCOL_PIXELS_MAX, &flag,
                               &number, reterr);
    }
    return rc;
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

static int check_state_report(const json_t *message, struct baton_error *reterr)
{
    json_t *list;
    json_t *element;
    size_t index;
    int rc = check_usage(message, reterr);

    if (rc == 0) {
        rc = json_read_field(message, "", "cameraConnections", true, JSON_ARRAY, &list, reterr);
    }
    if (rc != 0) {
        return rc;
    }
    json_array_foreach(list, index, element)
    {
        rc = check_connection(element, index, reterr);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int check_image_detection(const json_t *message, struct baton_error *reterr)
{
    const char *text;
    json_t *data = NULL;
    bool is_given;
    int64_t number;
    int rc = json_read_text(message, "", "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX,
                            &text, reterr);

    if (rc == 0) {
        rc = json_read_text(message, "", "timestamp", true, 64, &text, reterr);
    }
    if (rc == 0) {
        rc = json_read_integer(message, "", "sessionId", 0, PROTOCOL_INTEGER_MAX, &is_given,
                               &number, reterr);
    }
    if (rc == 0) {
        rc = json_read_field(message, "", "data", true, JSON_OBJECT, &data, reterr);
    }
    if (rc == 0) {
        rc = json_read_integer(data, "data.", "modelId", 0, PROTOCOL_INTEGER_MAX, NULL, &number,
                               reterr);
    }
    if (rc == 0) {
        rc = json_read_text(data, "data.", "modelName", true, PROTOCOL_NAME_MAX, &text, reterr);
    }
    return rc == 0 ? attributes_check(json_object_get(data, "detection"), "data.detection", reterr)
                   : rc;
}

static int check_patch_session(const json_t *message, struct baton_error *reterr)
{
    json_t *data;
    int64_t number;
    int rc =
        json_read_integer(message, "", "sessionId", 0, PROTOCOL_INTEGER_MAX, NULL, &number, reterr);

    return rc == 0 ? json_read_field(message, "", "data", true, JSON_OBJECT, &data, reterr) : rc;
}

static int check_worker_message(const json_t *message, struct baton_error *reterr)
{
    const char *type;
    int rc = json_read_text(message, "", "type", true, PROTOCOL_NAME_MAX, &type, reterr);

    if (rc != 0) {
        return rc;
    }
    if (strcmp(type, "stateReport") == 0) {
        return check_state_report(message, reterr);
    }
    if (strcmp(type, "imageDetection") == 0) {
        return check_image_detection(message, reterr);
    }
    if (strcmp(type, "patchSession") == 0) {
        return check_patch_session(message, reterr);
    }
    return error_set(reterr, BATON_EPROTO,
                     "type is \"%s\": a worker sends stateReport, imageDetection, patchSession",
                     type);
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
