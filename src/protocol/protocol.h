/* The messages between a backend and a detector worker, as text and as structs.
 *
 *   backend ── setSubscriptionList, setSessionId, setProgressionStage,
 *              requestState, patchSessionResult ──────────────────────▶ worker
 *   backend ◀── stateReport, imageDetection, patchSession ───────────── worker
 *
 * Every message is one JSON object with a `type`. Reading is strict where a mistake could hide
 * (types, ranges, required fields, duplicate keys, depth, size, UTF-8) and open where the other
 * side may have grown (unknown fields are ignored, an optional field may be null). Field names are
 * the specification's, byte for byte. Nothing here does I/O; messages never name a URL, because
 * URLs carry credentials.
 */
#ifndef DETECTOR_PROTOCOL_H
#define DETECTOR_PROTOCOL_H

#include <baton/error.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_MESSAGE_MAX = 4 << 20,    /* bytes of one message */
    PROTOCOL_DEPTH_MAX = 16,           /* of nested arrays and objects */
    PROTOCOL_SUBSCRIPTIONS_MAX = 1024, /* in one list */
    PROTOCOL_IDENTIFIER_MAX = 256,     /* bytes of a subscriptionIdentifier */
    PROTOCOL_NAME_MAX = 256,           /* bytes of a model's or message's name */
    PROTOCOL_URL_MAX = 4096,           /* bytes of a URL; pre-signed ones are long */
    PROTOCOL_TEXT_MAX = 1024,          /* bytes of a message for a person */
    PROTOCOL_PIXELS_MAX = 65535,       /* largest crop coordinate */
    PROTOCOL_INTERVAL_MAX_MS = 24 * 60 * 60 * 1000,
    PROTOCOL_FIELDS_MAX = 64, /* attributes of one detection */
};

/* The largest integer that every JSON implementation carries exactly. */
#define PROTOCOL_INTEGER_MAX ((int64_t)1 << 53)

/* X(symbol, name on the wire) */
#define PROTOCOL_COMMANDS(X)                                                                       \
    X(COMMAND_SET_SUBSCRIPTION_LIST, "setSubscriptionList")                                        \
    X(COMMAND_SET_SESSION_ID, "setSessionId")                                                      \
    X(COMMAND_SET_PROGRESSION_STAGE, "setProgressionStage")                                        \
    X(COMMAND_REQUEST_STATE, "requestState")                                                       \
    X(COMMAND_PATCH_SESSION_RESULT, "patchSessionResult")

#define PROTOCOL_STAGES(X)                                                                         \
    X(STAGE_NONE, NULL)                                                                            \
    X(STAGE_WELCOME, "welcome")                                                                    \
    X(STAGE_CAR_FUELING, "car_fueling")                                                            \
    X(STAGE_CAR_WAITPAYMENT, "car_waitpayment")                                                    \
    X(STAGE_CAR_POSTPAYMENT, "car_postpayment")

#define PROTOCOL_ENUM(symbol, name) symbol,
enum command_type { PROTOCOL_COMMANDS(PROTOCOL_ENUM) COMMAND_UNKNOWN };
enum stage { PROTOCOL_STAGES(PROTOCOL_ENUM) STAGE_COUNT };
#undef PROTOCOL_ENUM

enum crop_edge { CROP_X1, CROP_Y1, CROP_X2, CROP_Y2, CROP_EDGES };

/* Each coordinate is optional on the wire; one that is not given is the frame's own edge. */
struct crop {
    unsigned given; /* bit 1 << CROP_X1 … */
    int32_t at[CROP_EDGES];
};

struct subscription {
    char *identifier;   /* "displayIdentifier;cameraIdentifier" */
    char *rtsp_url;     /* may hold credentials: never log, never report; "": snapshots alone */
    char *snapshot_url; /* NULL: none. Likewise secret */
    char *model_url;    /* pre-signed, so secret as well */
    char *model_name;
    int64_t model_id;
    int64_t snapshot_interval_ms; /* 0: not given */
    struct crop crop;
    bool is_online; /* in a stateReport */
};

/* A subscription of a list that is not usable; the others of the list are. */
struct rejection {
    char identifier[PROTOCOL_IDENTIFIER_MAX + 1]; /* "" if that was what is wrong */
    struct baton_error error;
};

struct session_id {
    bool is_set; /* false: null on the wire */
    int64_t id;
};

/* A backend's message. Owns everything it points to. */
struct command {
    enum command_type type;
    char name[PROTOCOL_NAME_MAX + 1]; /* the `type` as received */
    /* setSubscriptionList */
    uint64_t epoch; /* of the backend's ownership of the worker; 0: not given. No field of the
                       specification's */
    struct subscription **subscriptions; /* there is room for one of each rejection as well */
    size_t subscription_count;
    struct rejection *rejections;
    size_t rejection_count;
    /* setSessionId, setProgressionStage */
    char display[PROTOCOL_IDENTIFIER_MAX + 1];
    struct session_id session;
    enum stage stage;
    /* patchSessionResult: session.id and */
    bool is_success;
    char text[PROTOCOL_TEXT_MAX + 1];
};

/* Reads one message. BATON_ETOOBIG or BATON_EPROTO with the path of the offending field, and then
 * `command` is untouched. An unknown type is no error: COMMAND_UNKNOWN, with its name. Each
 * subscription is the beginning of `entry_bytes` bytes; those behind it are 0, and the caller's.
 * After success the caller calls command_fini(). */
int command_parse(const char *bytes, size_t count, size_t entry_bytes, struct command *command,
                  struct baton_error *reterr);
void command_fini(struct command *command);

/* The message of a backend, in the order of the specification's fields, as text for free(); NULL
 * when out of memory. Its type is a known one. `rejections` and `name` are not used. */
char *format_command(const struct command *command);

void subscription_free(struct subscription *subscription);

/* Whether `identifier` is of the form "display;camera", both non-empty, one semicolon, no control
 * characters, at most PROTOCOL_IDENTIFIER_MAX bytes; and unambiguous in the path of a URL:
 * none of its parts between slashes is empty, "." or "..". */
bool identifier_is_valid(const char *identifier);

/* Whether `identifier` begins with `display` and a semicolon. */
bool identifier_has_display(const char *identifier, const char *display);

/* "car_fueling" …; NULL for STAGE_NONE. */
const char *stage_name(enum stage stage);

/* Whether the crops are the same, coordinates that were not given left out. */
bool crop_equal(const struct crop *a, const struct crop *b);

struct usage {
    double cpu, memory, gpu, gpu_memory; /* percent, 0 to 100 */
};

/* The messages of the worker, as text for free(); NULL when out of memory. Percentages are rounded
 * to one decimal, detection values to 15 digits. */
char *format_state_report(const struct usage *usage, struct subscription *const *subscriptions,
                          size_t count);

struct detection {
    char *identifier;
    char *model_name;
    int64_t model_id;
    struct session_id session; /* of the display, when it was seen */
    int64_t at_unix_ms;
    json_t *attributes; /* flat object: strings, numbers, booleans, nulls */
};

void detection_fini(struct detection *detection);

/* BATON_EINVAL with the reason when the attributes are not a flat object of bounded size. */
int detection_check(const struct detection *detection, struct baton_error *reterr);

char *format_image_detection(const struct detection *detection);

/* The part of a late detection that belongs in the session: {"currentCar": {…}} with the attributes
 * of the display's persistent data, in the types that it has there, as a new reference; NULL if
 * there are none. */
json_t *patch_of_detection(const struct detection *detection);

char *format_patch_session(int64_t session_id, const json_t *data);

/* For the other end of the wire: checks one message of a worker and hands out its JSON (a new
 * reference) with every required field present and of its type. A worker without a GPU may leave
 * out that GPU's usage, and one that counts in other units than percent is read as well. */
int worker_message_parse(const char *bytes, size_t count, json_t **message,
                         struct baton_error *reterr);

/* The usage in a stateReport; what is not there is 0, and what is above 100 is 100. */
struct usage usage_of_report(const json_t *report);

/* 2025-07-14T12:34:56.789Z; `text` has room for PROTOCOL_TIMESTAMP_BYTES. */
enum { PROTOCOL_TIMESTAMP_BYTES = 32 };
void format_timestamp(int64_t at_unix_ms, char *text);

#endif
