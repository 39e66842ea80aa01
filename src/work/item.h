/* An item of work: what was submitted. It never changes; the ledger has what becomes of it.
 *
 * A submission is one key of the provider's state with any number of items, as JSON (docs/work.md):
 *
 *   {"unique":true,"items":[{"body":"…","priority":5,"needs":["gpu"]}, …]}
 *
 * An item without an id gets "SUBMISSION.N", N from 0. Reading is strict: types, ranges, sizes,
 * duplicate names; unknown members are ignored, as a later version may have more. Pure.
 *
 * Members of an item, all of them optional but the id: "id", "kind" ("job", "service"), "unique",
 * "priority", "weight", "retries", "gpus", "memory_mib", "needs" (labels), "together",
 * "backoff_ms", "timeout_ms", "keys", "body" or "body_base64".
 */
#ifndef WORK_ITEM_H
#define WORK_ITEM_H

#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>

enum {
    WORK_ID_MAX = 128,                /* bytes of an item's id, with the NUL */
    WORK_NEEDS_MAX = 512,             /* bytes of all labels that an item needs, or a worker has */
    WORK_KEYS_MAX = 256,              /* keys that one item maps */
    WORK_BODY_MAX = 65536,            /* bytes of a body */
    WORK_SUBMISSION_MAX = 512 * 1024, /* bytes of a submission; its name: WORK_ID_MAX - 8 */
    WORK_SUBMITTED_MAX = 1000,        /* items of one submission */
    WORK_KEY_MAX = 256,               /* bytes of one of them, with the NUL */
    WORK_WEIGHT_MAX = 1000000,
    WORK_RETRIES_MAX = 1000,
    WORK_GPUS_MAX = 1000,
    WORK_MEMORY_MAX_MIB = 1 << 30,
    WORK_BACKOFF_MS = 1000, /* of an item that says nothing of it */
};

#define WORK_SPAN_MAX_MS ((int64_t)366 * 24 * 60 * 60 * 1000)

enum work_kind {
    WORK_JOB,     /* ends by itself; then its result is kept */
    WORK_SERVICE, /* is to run always, in one place at a time; started anew when it ends */
};

struct work_item {
    char *id; /* letters, digits, "-_.:/{};@+=,": as the text of a key */
    enum work_kind kind;
    bool is_unique;   /* a unique submission made its id, so no earlier item had it */
    int32_t priority; /* higher ones first */
    uint32_t weight;  /* slots that it takes on its worker; at least 1 */
    uint32_t retries; /* further attempts of a job after one that failed */
    uint32_t gpus;    /* that it needs, */
    uint64_t memory_mib;
    char *needs;    /* labels that its worker must have, separated by blanks; "": none */
    char *together; /* items of the same key run on one worker; NULL: anywhere */
    span backoff;   /* before the first retry; doubles with each further one */
    span timeout;   /* of one attempt; 0: none */
    char **keys;    /* that it maps (a soft body's name, a camera's); ended by NULL; or NULL */
    uint8_t *body;  /* for the program that runs it; opaque */
    size_t body_bytes;
    unsigned references;
};

/* Items are shared by references, within one thread. */
struct work_item *work_item_ref(struct work_item *item);
void work_item_unref(struct work_item *item); /* NULL allowed */

/* One item. `id`: what it gets if it has none; NULL: it must have one. BATON_EINVAL names the
 * member and its value; BATON_ENOMEM. */
int work_item_read(struct work_item **ret, const json_t *object, const char *id,
                   struct baton_error *reterr);
/* A new reference; NULL when out of memory. */
json_t *work_item_json(const struct work_item *item);
/* Whether both are the same in all their members. */
bool work_item_equal(const struct work_item *a, const struct work_item *b);

/* All items of a submission, in their order, as references for the caller and an array to free.
 * `name` is that of the key. BATON_EINVAL: nothing of it is taken; BATON_ETOOBIG, BATON_ENOMEM. */
int work_submission_read(struct work_item ***ret, size_t *ret_count, const char *name,
                         const void *data, size_t bytes, struct baton_error *reterr);

/* Whether it is an id: 1 to WORK_ID_MAX - 1 bytes of the characters above, no "//", no leading or
 * trailing "/". */
bool work_id_is_valid(const char *id);

/* ---- Parts of items that messages have as well ----------------------------------------------- */

/* Labels as an array of texts, each of the characters of an id; separated by blanks in `ret`.
 * Absent: none. BATON_EPROTO with the path of what is wrong. */
int work_labels_read(const json_t *object, const char *path, const char *key,
                     char ret[static WORK_NEEDS_MAX], struct baton_error *reterr);
/* NULL when out of memory. */
json_t *work_labels_json(const char *labels);

/* Mapped keys: 1 to WORK_KEY_MAX - 1 bytes each, without control characters. Absent: NULL.
 * BATON_EPROTO, BATON_ENOMEM. */
int work_keys_read(const json_t *object, const char *path, const char *key, char ***ret,
                   struct baton_error *reterr);
json_t *work_keys_json(char *const *keys); /* NULL when out of memory */
bool work_keys_equal(char *const *a, char *const *b);
/* BATON_EINVAL: what no reader takes; BATON_ENOMEM. */
int work_keys_copy(char ***ret, const char *const *keys);
void work_keys_free(char **keys); /* NULL allowed */

#endif
