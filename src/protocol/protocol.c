#include "protocol/protocol.h"

#include "base/error.h"
#include "base/json_read.h"

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
    for (const char *c = identifier; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return strlen(identifier) <= PROTOCOL_IDENTIFIER_MAX && !is_walking(identifier);
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

void subscription_fini(struct subscription *subscription)
{
    free(subscription->identifier);
    free(subscription->rtsp_url);
    free(subscription->snapshot_url);
    free(subscription->model_url);
    free(subscription->model_name);
    *subscription = (struct subscription){0};
}

void command_fini(struct command *command)
{
    for (size_t i = 0; i < command->subscription_count; i++) {
        subscription_fini(&command->subscriptions[i]);
    }
    free(command->subscriptions);
    free(command->rejections);
    *command = (struct command){0};
}

/* A URL of one of the schemes with something behind it. Its value never goes into the message. */
static int read_url(const json_t *object, const char *path, const char *key, bool is_required,
                    const char *const schemes[2], char **url, struct baton_error *reterr)
{
    const char *text;
    int rc = json_read_text(object, path, key, is_required, PROTOCOL_URL_MAX, &text, reterr);

    if (rc != 0 || text == NULL) {
        return rc;
    }
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(schemes[i]);
        if (strncasecmp(text, schemes[i], bytes) != 0) {
            continue;
        }
        if (strchr("/?#", text[bytes]) != NULL || strchr(text, ' ') != NULL) {
            return error_set(reterr, BATON_EPROTO, "%s%s: a host must follow %s, without spaces",
                             path, key, schemes[i]);
        }
        *url = strdup(text);
        return *url != NULL ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory for %s", key);
    }
    return error_set(reterr, BATON_EPROTO, "%s%s must begin with %s or %s", path, key, schemes[0],
                     schemes[1]);
}

static int read_crop(const json_t *object, const char *path, struct crop *crop,
                     struct baton_error *reterr)
{
    for (int edge = 0; edge < CROP_EDGES; edge++) {
        bool is_given = false;
        int64_t value = 0;
        int rc = json_read_integer(object, path, crop_keys[edge], 0, PROTOCOL_PIXELS_MAX, &is_given,
                                   &value, reterr);
        if (rc != 0) {
            return rc;
        }
        if (is_given) {
            crop->given |= 1u << edge;
            crop->at[edge] = (int32_t)value;
        }
    }
    for (int low = CROP_X1; low <= CROP_Y1; low++) {
        int high = low + CROP_X2 - CROP_X1;
        unsigned both = 1u << low | 1u << high;
        if ((crop->given & both) == both && crop->at[low] >= crop->at[high]) {
            return error_set(reterr, BATON_EPROTO,
                             "%s%s is %d: must be larger than %s, which is %d; leave both out for "
                             "the whole frame",
                             path, crop_keys[high], crop->at[high], crop_keys[low], crop->at[low]);
        }
    }
    return 0;
}

static int read_model(const json_t *object, const char *path, struct subscription *subscription,
                      struct baton_error *reterr)
{
    static const char *const web[2] = {"http://", "https://"};
    const char *name;
    int rc = read_url(object, path, "modelUrl", true, web, &subscription->model_url, reterr);

    if (rc == 0) {
        rc = json_read_integer(object, path, "modelId", 0, PROTOCOL_INTEGER_MAX, NULL,
                               &subscription->model_id, reterr);
    }
    if (rc == 0) {
        rc = json_read_text(object, path, "modelName", true, PROTOCOL_NAME_MAX, &name, reterr);
    }
    if (rc == 0) {
        subscription->model_name = strdup(name);
        rc = subscription->model_name != NULL
                 ? 0
                 : error_set(reterr, BATON_ENOMEM, "out of memory for modelName");
    }
    return rc;
}

/* The stream; "" where the snapshots are all there is. */
static int read_stream(const json_t *object, const char *path, struct subscription *subscription,
                       struct baton_error *reterr)
{
    static const char *const rtsp[2] = {"rtsp://", "rtsps://"};
    const char *text = json_string_value(json_object_get(object, "rtspUrl"));

    if (text == NULL || text[0] != '\0') {
        return read_url(object, path, "rtspUrl", true, rtsp, &subscription->rtsp_url, reterr);
    }
    if (subscription->snapshot_url == NULL) {
        return error_set(reterr, BATON_EPROTO,
                         "%srtspUrl is empty: it may be so only where there is a snapshotUrl",
                         path);
    }
    subscription->rtsp_url = strdup("");
    return subscription->rtsp_url != NULL
               ? 0
               : error_set(reterr, BATON_ENOMEM, "out of memory for rtspUrl");
}

static int read_camera(const json_t *object, const char *path, struct subscription *subscription,
                       struct baton_error *reterr)
{
    static const char *const web[2] = {"http://", "https://"};
    bool is_given = false;
    int rc = read_url(object, path, "snapshotUrl", false, web, &subscription->snapshot_url, reterr);

    if (rc == 0) {
        rc = read_stream(object, path, subscription, reterr);
    }
    if (rc == 0) {
        rc = json_read_integer(object, path, "snapshotInterval", 1, PROTOCOL_INTERVAL_MAX_MS,
                               &is_given, &subscription->snapshot_interval_ms, reterr);
    }
    return rc;
}

static int read_identifier(const json_t *object, const char *path,
                           struct subscription *subscription, struct baton_error *reterr)
{
    const char *identifier;
    int rc = json_read_text(object, path, "subscriptionIdentifier", true, PROTOCOL_IDENTIFIER_MAX,
                            &identifier, reterr);

    if (rc != 0) {
        return rc;
    }
    if (!identifier_is_valid(identifier)) {
        return error_set(reterr, BATON_EPROTO,
                         "%ssubscriptionIdentifier is \"%s\": must be "
                         "\"displayIdentifier;cameraIdentifier\", and between slashes nothing "
                         "empty, . or ..",
                         path, identifier);
    }
    subscription->identifier = strdup(identifier);
    if (subscription->identifier == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a subscription");
    }
    return 0;
}

static int check_unique(const struct command *command, const char *path, const char *identifier,
                        struct baton_error *reterr)
{
    for (size_t i = 0; i < command->subscription_count; i++) {
        if (strcmp(command->subscriptions[i].identifier, identifier) == 0) {
            return error_set(reterr, BATON_EPROTO,
                             "%ssubscriptionIdentifier \"%s\" stands in the list already: the "
                             "first one is used",
                             path, identifier);
        }
    }
    return 0;
}

static int read_subscription(const json_t *object, const char *path, const struct command *command,
                             struct subscription *subscription, struct baton_error *reterr)
{
    int rc;

    if (!json_is_object(object)) {
        return error_set(reterr, BATON_EPROTO, "%.*s is %s: must be an object",
                         (int)strlen(path) - 1, path, json_type_name(json_typeof(object)));
    }
    rc = read_identifier(object, path, subscription, reterr);
    if (rc == 0) {
        rc = check_unique(command, path, subscription->identifier, reterr);
    }
    if (rc == 0) {
        rc = read_camera(object, path, subscription, reterr);
    }
    if (rc == 0) {
        rc = read_model(object, path, subscription, reterr);
    }
    return rc == 0 ? read_crop(object, path, &subscription->crop, reterr) : rc;
}

/* Adds the list's element to the subscriptions or to the rejections; fails only out of memory. */
static int take_subscription(const json_t *object, size_t index, struct command *command,
                             struct baton_error *reterr)
{
    struct subscription subscription = {0};
    struct baton_error why = {0};
    struct rejection *rejection = &command->rejections[command->rejection_count];
    char path[64];
    int rc;

    (void)snprintf(path, sizeof(path), "subscriptions[%zu].", index);
    rc = read_subscription(object, path, command, &subscription, &why);
    if (rc == 0) {
        command->subscriptions[command->subscription_count++] = subscription;
        return 0;
    }
    rejection->index = index;
    rejection->error = why;
    (void)snprintf(rejection->identifier, sizeof(rejection->identifier), "%s",
                   subscription.identifier != NULL ? subscription.identifier : "");
    command->rejection_count++;
    subscription_fini(&subscription);
    return rc != BATON_ENOMEM ? 0 : error_set(reterr, rc, "%s", why.message);
}

static int read_subscription_list(const json_t *message, struct command *command,
                                  struct baton_error *reterr)
{
    json_t *list;
    json_t *element;
    size_t index;
    size_t count;
    bool is_given = false;
    int64_t epoch = 0;
    int rc = json_read_field(message, "", "subscriptions", true, JSON_ARRAY, &list, reterr);

    if (rc == 0) {
        rc = json_read_integer(message, "", "epoch", 1, PROTOCOL_INTEGER_MAX, &is_given, &epoch,
                               reterr);
    }
    if (rc != 0) {
        return rc;
    }
    command->epoch = (uint64_t)epoch;
    count = json_array_size(list);
    if (count > PROTOCOL_SUBSCRIPTIONS_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "%zu subscriptions: at most %d in one list", count,
                         PROTOCOL_SUBSCRIPTIONS_MAX);
    }
    command->subscriptions = calloc(count + 1, sizeof(*command->subscriptions));
    command->rejections = calloc(count + 1, sizeof(*command->rejections));
    if (command->subscriptions == NULL || command->rejections == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for %zu subscriptions", count);
    }
    json_array_foreach(list, index, element)
    {
        rc = take_subscription(element, index, command, reterr);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int read_display(const json_t *payload, struct command *command, struct baton_error *reterr)
{
    const char *display;
    int rc = json_read_text(payload, "payload.", "displayIdentifier", true, PROTOCOL_IDENTIFIER_MAX,
                            &display, reterr);

    if (rc != 0) {
        return rc;
    }
    if (strchr(display, ';') != NULL) {
        return error_set(reterr, BATON_EPROTO,
                         "payload.displayIdentifier is \"%s\": must be without a semicolon, "
                         "without a camera",
                         display);
    }
    (void)snprintf(command->display, sizeof(command->display), "%s", display);
    return 0;
}

static int read_session_id(const json_t *payload, struct command *command,
                           struct baton_error *reterr)
{
    int rc = read_display(payload, command, reterr);

    if (rc != 0) {
        return rc;
    }
    if (json_is_null(json_object_get(payload, "sessionId"))) {
        return 0;
    }
    rc = json_read_integer(payload, "payload.", "sessionId", 0, PROTOCOL_INTEGER_MAX, NULL,
                           &command->session.id, reterr);
    command->session.is_set = rc == 0;
    return rc;
}

static int read_progression_stage(const json_t *payload, struct command *command,
                                  struct baton_error *reterr)
{
    const char *name;
    int rc = read_display(payload, command, reterr);

    if (rc != 0) {
        return rc;
    }
    if (json_is_null(json_object_get(payload, "progressionStage"))) {
        return 0;
    }
    rc = json_read_text(payload, "payload.", "progressionStage", true, PROTOCOL_NAME_MAX, &name,
                        reterr);
    if (rc != 0) {
        return rc;
    }
    for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
        if (strcmp(stage_names[stage], name) == 0) {
            command->stage = (enum stage)stage;
            return 0;
        }
    }
    return error_set(reterr, BATON_EPROTO,
                     "payload.progressionStage is \"%s\": must be welcome, car_fueling, "
                     "car_waitpayment, car_postpayment or null",
                     name);
}

/* It is for people, and the backend may send any text: it is cut between two characters, and
 * control characters are replaced. */
static void copy_message(const json_t *message, char text[PROTOCOL_TEXT_MAX + 1])
{
    const char *from = json_string_value(message);
    size_t bytes = json_string_length(message);

    if (bytes > PROTOCOL_TEXT_MAX) {
        bytes = PROTOCOL_TEXT_MAX;
        while (bytes > 0 && ((unsigned char)from[bytes] & 0xc0) == 0x80) {
            bytes--;
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? ' ' : from[i];
    }
    text[bytes] = '\0';
}

static int read_patch_result(const json_t *payload, struct command *command,
                             struct baton_error *reterr)
{
    json_t *message = NULL;
    int rc = json_read_integer(payload, "payload.", "sessionId", 0, PROTOCOL_INTEGER_MAX, NULL,
                               &command->session.id, reterr);

    command->session.is_set = rc == 0;
    if (rc == 0) {
        rc = json_read_boolean(payload, "payload.", "success", &command->is_success, reterr);
    }
    if (rc == 0) {
        rc = json_read_field(payload, "payload.", "message", false, JSON_STRING, &message, reterr);
    }
    if (rc == 0 && message != NULL) {
        copy_message(message, command->text);
    }
    return rc;
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

static int read_command(const json_t *message, struct command *command, struct baton_error *reterr)
{
    const char *name;
    json_t *payload = NULL;
    int rc = json_read_text(message, "", "type", true, PROTOCOL_NAME_MAX, &name, reterr);

    if (rc != 0) {
        return rc;
    }
    (void)snprintf(command->name, sizeof(command->name), "%s", name);
    command->type = command_type_of(name);
    if (command->type == COMMAND_UNKNOWN || command->type == COMMAND_REQUEST_STATE) {
        return 0;
    }
    if (command->type == COMMAND_SET_SUBSCRIPTION_LIST) {
        return read_subscription_list(message, command, reterr);
    }
    rc = json_read_field(message, "", "payload", true, JSON_OBJECT, &payload, reterr);
    if (rc != 0) {
        return rc;
    }
    if (command->type == COMMAND_SET_SESSION_ID) {
        return read_session_id(payload, command, reterr);
    }
    if (command->type == COMMAND_SET_PROGRESSION_STAGE) {
        return read_progression_stage(payload, command, reterr);
    }
    return read_patch_result(payload, command, reterr);
}

int command_parse(const char *bytes, size_t count, struct command *command,
                  struct baton_error *reterr)
{
    struct command parsed = {0};
    json_t *message;
    int rc =
        json_read_object(bytes, count, PROTOCOL_MESSAGE_MAX, PROTOCOL_DEPTH_MAX, &message, reterr);

    if (rc != 0) {
        return rc;
    }
    rc = read_command(message, &parsed, reterr);
    json_decref(message);
    if (rc != 0) {
        command_fini(&parsed);
        return rc;
    }
    *command = parsed;
    return 0;
}
