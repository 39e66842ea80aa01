/* What people declare of a fleet: models, cameras, displays and subscriptions. Pure.
 *
 *   model         {"id":101,"name":"US-LPR","url":"s3://models/us-lpr.mpta"}
 *   camera {"id":"cam-1","rtspUrl":"rtsp://…","snapshotUrl":"http://…","snapshotInterval":5000}
 *   display       {"id":"display-1","name":"Pump 4"}
 *   subscription  {"id":"display-1;cam-1","display":"display-1","camera":"cam-1","model":101,
 *                  "cropX1":0,…,"priority":0,"needs":"gpu zone=a","paused":false}
 *
 * The same fields stand in the API, in the file (file.h) and in the shared state. Reading is
 * strict: types, ranges, identifiers, schemes, unknown fields. Every message of an error begins
 * with the field's name and ": ", and never quotes a URL, because URLs hold credentials.
 */
#ifndef FLEET_OBJECTS_OBJECT_H
#define FLEET_OBJECTS_OBJECT_H

#include "protocol/protocol.h"

enum {
    FLEET_ID_MAX = PROTOCOL_IDENTIFIER_MAX, /* bytes of any id, without the NUL */
    FLEET_FIELDS_MAX = 16,                  /* fields of one kind */
    FLEET_PRIORITY_MAX = 1000000,           /* and its negative is the least */
    FLEET_LABELS_MAX = 512,                 /* bytes of labels, with the NUL */
};

/* X(symbol, name, plural): in this order they refer to each other. */
#define FLEET_KIND_LIST(X)                                                                         \
    X(FLEET_MODEL, "model", "models")                                                              \
    X(FLEET_CAMERA, "camera", "cameras")                                                           \
    X(FLEET_DISPLAY, "display", "displays")                                                        \
    X(FLEET_SUBSCRIPTION, "subscription", "subscriptions")

enum fleet_kind {
#define FLEET_KIND_ENUM(symbol, name, plural) symbol,
    FLEET_KIND_LIST(FLEET_KIND_ENUM)
#undef FLEET_KIND_ENUM
        FLEET_KINDS
};

const char *fleet_kind_name(enum fleet_kind kind); /* "model" */
const char *
fleet_kind_plural(enum fleet_kind kind); /* "models", as in /api/models and in the file */

/* ---- Fields ---------------------------------------------------------------------------------- */

enum fleet_field_type { FLEET_TEXT, FLEET_URL, FLEET_INTEGER, FLEET_BOOLEAN };

struct fleet_field {
    const char *name; /* NULL: the end of the table */
    enum fleet_field_type type;
    bool is_required;    /* a subscription may have an id, or a display and a camera */
    int64_t low, high;   /* of an integer; of a text: bytes */
    const char *summary; /* a phrase for people */
};

/* All fields of a kind, in the order in which they are printed; static. */
const struct fleet_field *fleet_fields(enum fleet_kind kind);
const struct fleet_field *fleet_field_find(enum fleet_kind kind, const char *name); /* or NULL */
/* The field that a mistyped name ("rtsp_url") was meant to be; NULL: it is like none. */
const struct fleet_field *fleet_field_meant(enum fleet_kind kind, const char *typed);

/* Whether `word` may be what was meant by `typed` (a letter in three may differ; capitals, "_" and
 * "-" count nothing), and is nearer than the best so far, which *distance then is. */
#define FLEET_DISTANCE_NONE SIZE_MAX
bool fleet_is_nearer(const char *typed, const char *word, size_t *distance);

/* ---- Objects --------------------------------------------------------------------------------- */

/* Immutable and counted, within one thread. URLs may hold credentials: never log, never show. */
struct fleet_object {
    enum fleet_kind kind;
    unsigned references;
    char *id; /* model: its number as text; subscription: "display;camera" */
    union {
        struct {
            int64_t number;
            char *name;
            char *url; /* http://, https:// or s3://BUCKET/KEY */
        } model;
        struct {
            char *rtsp_url, *snapshot_url; /* NULL: none; one of them is there */
            int64_t snapshot_interval_ms;  /* 0: not given */
        } camera;
        struct {
            char *name; /* NULL: none */
        } display;
        struct {
            char *display, *camera; /* ids */
            int64_t model;
            struct crop crop;
            int32_t priority;
            char *needs; /* labels that the worker must have, separated by blanks; NULL: none */
            bool is_paused;
        } subscription;
    };
};

/* Reads an object as people write it. `id`: of the path in the API, with which the JSON must agree
 * if it has one; NULL: the JSON has it. *ret has one reference. BATON_EINVAL: "FIELD: what is
 * wrong, and what is allowed"; a URL that was masked by fleet_object_json() is refused too.
 * BATON_ENOMEM.
 */
int fleet_object_read(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                      const json_t *json, struct baton_error *reterr);
/* The same of the shared state, where unknown fields are passed over: a newer version may have
 * written them. */
int fleet_object_read_stored(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                             const json_t *json, struct baton_error *reterr);
/* Reads what a JSON merge patch (RFC 7396) makes of an object: null takes a field away. Errors as
 * fleet_object_read(). */
int fleet_object_patch(struct fleet_object **ret, const struct fleet_object *object,
                       const json_t *patch, struct baton_error *reterr);

struct fleet_object *fleet_object_ref(struct fleet_object *object);
void fleet_object_unref(struct fleet_object *object); /* NULL allowed */
bool fleet_object_equal(const struct fleet_object *a, const struct fleet_object *b);

/* As JSON: `is_masked` for people and the API, else whole, for the state. NULL: out of memory. */
json_t *fleet_object_json(const struct fleet_object *object, bool is_masked);

/* Whether `id` may be that of a display or of a camera: 1 byte or more, no ";", no control
 * character, and unambiguous in the path of a URL as protocol.h's identifiers are. */
bool fleet_part_is_valid(const char *id);
/* Whether these are labels: words of the characters of a worker's labels, one blank between two. */
bool fleet_labels_are_valid(const char *labels);

#endif
