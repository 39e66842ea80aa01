#include "protocol/protocol.h"

#include "base/error.h"
#include "base/json_read.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PROTOCOL_NAME(symbol, name) [symbol] = (name),
static const char *const command_names[] = {PROTOCOL_COMMANDS(PROTOCOL_NAME)};
static const char *const stage_names[] = {PROTOCOL_STAGES(PROTOCOL_NAME)};
#undef PROTOCOL_NAME

static const char *const crop_keys[] = {
    [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

const char *stage_name(enum stage stage)
{
    return stage_names[stage];
}

/* Servers and clients walk through paths: "a//b", "a/./b" and "a/x/../b" are all "a/b" to them. */
static bool is_walking(const char *identifier)
{
    const char *part = identifier;

    if (identifier[0] == '/' || strstr(identifier, "//") != NULL ||
        identifier[strlen(identifier) - 1] == '/') {
        return true;
    }
    while (*part != '\0') { /* either side of the semicolon may be used alone */
        size_t bytes = strcspn(part, "/\\;");
        if ((bytes == 1 && part[0] == '.') || (bytes == 2 && part[0] == '.' && part[1] == '.')) {
            return true;
        }
        part += bytes + (part[bytes] != '\0');
    }
    return false;
}

bool identifier_is_valid(const char *identifier)
{
    const char *semicolon = strchr(identifier, ';');

    if (semicolon == NULL || semicolon == identifier || semicolon[1] == '\0' ||
        strchr(semicolon + 1, ';') != NULL) {
        return false;
    }
    return strlen(identifier) <= PROTOCOL_IDENTIFIER_MAX &&
           !text_has_control(identifier, strlen(identifier)) && !is_walking(identifier);
}

bool identifier_has_display(const char *identifier, const char *display)
{
    size_t bytes = strlen(display);
    return strncmp(identifier, display, bytes) == 0 && identifier[bytes] == ';';
}

bool crop_equal(const struct crop *a, const struct crop *b)
{
    if (a->given != b->given) {
        return false;
    }
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        if ((a->given & 1u << edge) != 0 && a->at[edge] != b->at[edge]) {
            return false;
        }
    }
    return true;
}

void subscription_free(struct subscription *subscription)
{
    free(subscription->identifier);
    free(subscription->rtsp_url);
    free(subscription->snapshot_url);
    free(subscription->model_url);
    free(subscription->model_name);
    free(subscription);
}

void command_fini(struct command *command)
{
    for (size_t i = 0; i < command->subscription_count; i++) {
        subscription_free(command->subscriptions[i]);
    }
    free(command->subscriptions);
    free(command->rejections);
    *command = (struct command){0};
}

/* A copy of the field's text; NULL stays NULL. */
static char *copied(struct json_fields *fields, const char *key, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    if (text != NULL && copy == NULL) {
        fields->code = error_set(fields->reterr, BATON_ENOMEM, "out of memory for %s", key);
    }
    return copy;
}

/* A URL of one of the schemes with something behind it. Its value never goes into the message. */
static char *read_url(struct json_fields *fields, const char *key, bool is_required,
                      const char *const schemes[2])
{
    const char *text = json_take_text(fields, key, is_required, PROTOCOL_URL_MAX);

    for (int i = 0; i < 2 && text != NULL; i++) {
        size_t bytes = strlen(schemes[i]);
        if (strncasecmp(text, schemes[i], bytes) != 0) {
            continue;
        }
        if (strchr("/?#", text[bytes]) == NULL && strchr(text, ' ') == NULL) {
            return copied(fields, key, text);
        }
        fields->code =
            error_set(fields->reterr, BATON_EPROTO, "%s%s: a host must follow %s, without spaces",
                      fields->path, key, schemes[i]);
        return NULL;
    }
    if (text != NULL) {
        fields->code = error_set(fields->reterr, BATON_EPROTO, "%s%s must begin with %s or %s",
                                 fields->path, key, schemes[0], schemes[1]);
    }
    return NULL;
}

static void read_crop(struct json_fields *fields, struct crop *crop)
{
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        bool is_given = false;
        crop->at[edge] =
            (int32_t)json_take_integer(fields, crop_keys[edge], 0, PROTOCOL_PIXELS_MAX, &is_given);
        crop->given |= is_given ? 1u << edge : 0;
    }
    for (int low = CROP_X1; low <= CROP_Y1 && fields->code == 0; low++) {
        int high = low + CROP_X2 - CROP_X1;
        unsigned both = 1u << low | 1u << high;
        if ((crop->given & both) == both && crop->at[low] >= crop->at[high]) {
            fields->code = error_set(
                fields->reterr, BATON_EPROTO,
                "%s%s is %d: must be larger than %s, which is %d; leave both out for the whole "
                "frame",
                fields->path, crop_keys[high], crop->at[high], crop_keys[low], crop->at[low]);
        }
    }
}

/* The stream; "" where the snapshots are all there is. */
static char *read_stream(struct json_fields *fields, bool has_snapshots)
{
    static const char *const rtsp[2] = {"rtsp://", "rtsps://"};
    const char *text = json_string_value(json_object_get(fields->object, "rtspUrl"));

    if (fields->code != 0 || text == NULL || text[0] != '\0') {
        return read_url(fields, "rtspUrl", true, rtsp);
    }
    if (!has_snapshots) {
        fields->code = error_set(
            fields->reterr, BATON_EPROTO,
            "%srtspUrl is empty: it may be so only where there is a snapshotUrl", fields->path);
        return NULL;
    }
    return copied(fields, "rtspUrl", "");
}

/* No other one of the list's has it. Also of one that is refused, if it is an identifier. */
static char *read_identifier(struct json_fields *fields, const struct command *command)
{
    const char *identifier =
        json_take_text(fields, "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX);

    if (identifier == NULL) {
        return NULL;
    }
    if (!identifier_is_valid(identifier)) {
        fields->code = error_set(fields->reterr, BATON_EPROTO,
                                 "%ssubscriptionIdentifier is \"%s\": must be "
                                 "\"displayIdentifier;cameraIdentifier\", and between slashes "
                                 "nothing empty, . or ..",
                                 fields->path, identifier);
        return NULL;
    }
    for (size_t i = 0; i < command->subscription_count && fields->code == 0; i++) {
        if (strcmp(command->subscriptions[i]->identifier, identifier) == 0) {
            fields->code = error_set(fields->reterr, BATON_EPROTO,
                                     "%ssubscriptionIdentifier \"%s\" stands in the list "
                                     "already: the first one is used",
                                     fields->path, identifier);
        }
    }
    return copied(fields, "a subscription", identifier);
}

static int read_subscription(const json_t *object, const char *path, const struct command *command,
                             struct subscription *ret, struct baton_error *reterr)
{
    static const char *const web[2] = {"http://", "https://"};
    struct json_fields fields = {object, path, reterr, 0};
    bool is_given;

    if (!json_is_object(object)) {
        return error_set(reterr, BATON_EPROTO, "%.*s is %s: must be an object",
                         (int)strlen(path) - 1, path, json_type_name(json_typeof(object)));
    }
    ret->identifier = read_identifier(&fields, command);
    ret->snapshot_url = read_url(&fields, "snapshotUrl", false, web);
    ret->rtsp_url = read_stream(&fields, ret->snapshot_url != NULL);
    ret->snapshot_interval_ms =
        json_take_integer(&fields, "snapshotInterval", 1, PROTOCOL_INTERVAL_MAX_MS, &is_given);
    ret->model_url = read_url(&fields, "modelUrl", true, web);
    ret->model_id = json_take_integer(&fields, "modelId", 0, PROTOCOL_INTEGER_MAX, NULL);
    ret->model_name =
        copied(&fields, "modelName", json_take_text(&fields, "modelName", true, PROTOCOL_NAME_MAX));
    read_crop(&fields, &ret->crop);
    return fields.code;
}

/* Adds the list's element to the subscriptions or to the rejections; fails only out of memory. */
static int take_subscription(const json_t *object, size_t index, size_t entry_bytes,
                             struct command *command, struct baton_error *reterr)
{
    struct subscription *subscription = calloc(1, entry_bytes);
    struct baton_error why = {0};
    struct rejection *rejection = &command->rejections[command->rejection_count];
    char path[64];
    int rc;

    if (subscription == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a subscription");
    }
    (void)snprintf(path, sizeof(path), "subscriptions[%zu].", index);
    rc = read_subscription(object, path, command, subscription, &why);
    if (rc == 0) {
        command->subscriptions[command->subscription_count++] = subscription;
        return 0;
    }
    rejection->error = why;
    (void)snprintf(rejection->identifier, sizeof(rejection->identifier), "%s",
                   subscription->identifier != NULL ? subscription->identifier : "");
    command->rejection_count++;
    subscription_free(subscription);
    return rc != BATON_ENOMEM ? 0 : error_set(reterr, rc, "%s", why.message);
}

static void read_subscription_list(struct json_fields *fields, size_t entry_bytes,
                                   struct command *command)
{
    json_t *list = json_take(fields, "subscriptions", true, JSON_ARRAY), *element;
    size_t count = json_array_size(list), index;
    bool is_given;

    command->epoch =
        (uint64_t)json_take_integer(fields, "epoch", 1, PROTOCOL_INTEGER_MAX, &is_given);
    if (fields->code == 0 && count > PROTOCOL_SUBSCRIPTIONS_MAX) {
        fields->code =
            error_set(fields->reterr, BATON_ETOOBIG, "%zu subscriptions: at most %d in one list",
                      count, PROTOCOL_SUBSCRIPTIONS_MAX);
    }
    if (fields->code != 0) {
        return;
    }
    command->subscriptions = calloc(count + 1, sizeof(struct subscription *));
    command->rejections = calloc(count + 1, sizeof(*command->rejections));
    if (command->subscriptions == NULL || command->rejections == NULL) {
        fields->code =
            error_set(fields->reterr, BATON_ENOMEM, "out of memory for %zu subscriptions", count);
        return;
    }
    json_array_foreach(list, index, element)
    {
        if (fields->code == 0) {
            fields->code = take_subscription(element, index, entry_bytes, command, fields->reterr);
        }
    }
}

static void read_display(struct json_fields *payload, struct command *command)
{
    const char *display =
        json_take_text(payload, "displayIdentifier", true, PROTOCOL_IDENTIFIER_MAX);

    if (display != NULL && strchr(display, ';') != NULL) {
        payload->code = error_set(payload->reterr, BATON_EPROTO,
                                  "payload.displayIdentifier is \"%s\": must be without a "
                                  "semicolon, without a camera",
                                  display);
    } else if (display != NULL) {
        (void)snprintf(command->display, sizeof(command->display), "%s", display);
    }
}

static bool is_null(const struct json_fields *payload, const char *key)
{
    return json_is_null(json_object_get(payload->object, key));
}

static struct session_id read_session_id(struct json_fields *payload)
{
    int64_t id = json_take_integer(payload, "sessionId", 0, PROTOCOL_INTEGER_MAX, NULL);

    return (struct session_id){.is_set = true, .id = id};
}

static enum stage read_stage(struct json_fields *payload)
{
    const char *name = json_take_text(payload, "progressionStage", true, PROTOCOL_NAME_MAX);

    for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT && name != NULL; stage++) {
        if (strcmp(stage_names[stage], name) == 0) {
            return (enum stage)stage;
        }
    }
    if (name != NULL) {
        payload->code = error_set(payload->reterr, BATON_EPROTO,
                                  "payload.progressionStage is \"%s\": must be welcome, "
                                  "car_fueling, car_waitpayment, car_postpayment or null",
                                  name);
    }
    return STAGE_NONE;
}

/* It is for people, and the backend may send any text: it is cut between two characters, and
 * control characters are replaced. */
static void copy_message(const json_t *message, char text[PROTOCOL_TEXT_MAX + 1])
{
    const char *from = message != NULL ? json_string_value(message) : "";
    size_t bytes = json_string_length(message);

    if (bytes > PROTOCOL_TEXT_MAX) {
        bytes = PROTOCOL_TEXT_MAX;
        while (bytes > 0 && ((unsigned char)from[bytes] & 0xc0) == 0x80) {
            bytes--;
        }
    }
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++) {
        memset(text + i, ' ', text_control(text + i));
    }
}

static void read_payload(struct json_fields *payload, struct command *command)
{
    if (command->type == COMMAND_PATCH_SESSION_RESULT) {
        command->session = read_session_id(payload);
        command->is_success = json_take_boolean(payload, "success");
        copy_message(json_take(payload, "message", false, JSON_STRING), command->text);
        return;
    }
    read_display(payload, command);
    if (command->type == COMMAND_SET_SESSION_ID && !is_null(payload, "sessionId")) {
        command->session = read_session_id(payload);
    } else if (command->type == COMMAND_SET_PROGRESSION_STAGE &&
               !is_null(payload, "progressionStage")) {
        command->stage = read_stage(payload);
    }
}

static enum command_type command_type_of(const char *name)
{
    for (int type = 0; type < COMMAND_UNKNOWN; type++) {
        if (strcmp(command_names[type], name) == 0) {
            return (enum command_type)type;
        }
    }
    return COMMAND_UNKNOWN;
}

static int read_command(const json_t *message, size_t entry_bytes, struct command *command,
                        struct baton_error *reterr)
{
    struct json_fields fields = {message, "", reterr, 0};
    const char *name = json_take_text(&fields, "type", true, PROTOCOL_NAME_MAX);

    if (name == NULL) {
        return fields.code;
    }
    (void)snprintf(command->name, sizeof(command->name), "%s", name);
    command->type = command_type_of(name);
    if (command->type == COMMAND_SET_SUBSCRIPTION_LIST) {
        read_subscription_list(&fields, entry_bytes, command);
    } else if (command->type != COMMAND_UNKNOWN && command->type != COMMAND_REQUEST_STATE) {
        fields.object = json_take(&fields, "payload", true, JSON_OBJECT);
        fields.path = "payload.";
        read_payload(&fields, command);
    }
    return fields.code;
}

int command_parse(const char *bytes, size_t count, size_t entry_bytes, struct command *command,
                  struct baton_error *reterr)
{
    struct command parsed = {0};
    json_t *message;
    int rc =
        json_read_object(bytes, count, PROTOCOL_MESSAGE_MAX, PROTOCOL_DEPTH_MAX, &message, reterr);

    if (rc != 0) {
        return rc;
    }
    rc = read_command(message, entry_bytes, &parsed, reterr);
    json_decref(message);
    if (rc != 0) {
        command_fini(&parsed);
        return rc;
    }
    *command = parsed;
    return 0;
}
