/* What may stand under a key of the fleet, read strictly. Pure.
 *
 * A key is one without "NAME/": "camera/cam-1", "data/display-1", "owners". Unknown fields are
 * passed over: a newer version may have written them.
 */
#ifndef FLEET_STATE_VALUE_H
#define FLEET_STATE_VALUE_H

#include "fleet/objects/object.h"
#include "fleet/state/entities.h"

/* The kinds of objects, and then: X(symbol, key or what it begins with, whether an id follows). */
#define SECTION_LIST(X)                                                                            \
    X(SECTION_DATA, "data", true)                                                                  \
    X(SECTION_WORKER, "worker", true)                                                              \
    X(SECTION_ASSIGNED, "assigned", true)                                                          \
    X(SECTION_MOVE, "move", true)                                                                  \
    X(SECTION_OWNERS, "owners", false)                                                             \
    X(SECTION_UNPLACED, "unplaced", false)

enum section {
    SECTION_MODEL = FLEET_MODEL,
    SECTION_CAMERA = FLEET_CAMERA,
    SECTION_DISPLAY = FLEET_DISPLAY,
    SECTION_SUBSCRIPTION = FLEET_SUBSCRIPTION,
#define SECTION_ENUM(symbol, name, has_id) symbol,
    SECTION_LIST(SECTION_ENUM)
#undef SECTION_ENUM
        SECTIONS
};

enum {
    VALUE_KEY_MAX = FLEET_ID_MAX + 16, /* bytes of a key, with the NUL */
    VALUE_BYTES_MAX = 1024 * 1024,
    VALUE_DEPTH_MAX = 16,
};

struct value {
    enum section section;
    struct fleet_object *object;    /* of an object; else NULL, and the following */
    json_t *json;                   /* whole */
    struct fleet_worker worker;     /* texts are the JSON's; id: the key's that it was read by */
    struct fleet_assigned assigned; /* likewise; the lists are owned */
    struct fleet_move move;         /* likewise */
};

/* False: no such key. *ret_id points into the key; "" without an id. */
bool value_key(const char *key, enum section *ret, const char **ret_id);
/* "camera/cam-1"; of an id of at most FLEET_ID_MAX bytes, else "", which is no key. Returns `ret`.
 */
const char *value_key_of(char ret[static VALUE_KEY_MAX], enum section section, const char *id);

/* BATON_EPROTO: the value, or the key, is none of ours; the message quotes no secret. BATON_ENOMEM.
 */
int value_read(struct value **ret, const char *key, const void *data, size_t bytes,
               struct baton_error *reterr);
/* Of a key that is no object's; copies the JSON. */
int value_of_json(struct value **ret, const char *key, const json_t *json,
                  struct baton_error *reterr);
struct value *value_of_object(const struct fleet_object *object); /* NULL: out of memory */
/* Whether both are `assigned`, with the same lists by the same master. */
bool value_has_same_lists(const struct value *value, const struct value *other);
void value_free(struct value *value); /* NULL allowed */

#endif
