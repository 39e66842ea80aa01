/* The replicated state: small values by key. A pure function of the log.
 *
 * A log entry holds one order: set or delete a key, if it is at a given revision. Every node
 * carries out the same orders in the same sequence, so all have the same keys. A key's revision is
 * the index of the entry that changed it last. The leader measures lifetimes: when one is over, it
 * orders the deletion of exactly that revision, so that the state depends on no node's clock.
 */
#ifndef PROVIDER_RAFT_KEYS_H
#define PROVIDER_RAFT_KEYS_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

struct keys; /* opaque; one thread */

enum {
    KEYS_FORMAT = 1, /* of a snapshot */
    KEYS_NAME_MAX = 512,
    KEYS_VALUE_MAX = 128 * 1024,
    KEYS_ORDER_MAX = KEYS_VALUE_MAX + KEYS_NAME_MAX + 64,
    KEYS_ALL_MAX = 64 * 1024 * 1024, /* bytes of all keys and values; beyond it: BATON_EFULL */
};

struct keys_order {
    uint64_t node; /* the asking node, and its number for the order; 0: none waits */
    uint64_t request;
    uint64_t revision; /* UINT64_MAX: any; 0: only if the key is absent */
    span lifetime;     /* 0: none */
    const char *name;  /* name_bytes bytes, without a NUL */
    size_t name_bytes;
    const void *data; /* NULL: deletes the key */
    size_t bytes;
};

/* Encodes an order as an entry's bytes, and decodes it. Decoding: BATON_ECORRUPT; pointers point
 * into `data`. */
void keys_encode(struct buffer *buffer, const struct keys_order *order);
int keys_decode(struct keys_order *ret, const void *data, size_t bytes);

struct keys_value {
    const char *name; /* NUL-terminated */
    const void *data; /* NULL: deleted */
    size_t bytes;
    uint64_t revision;
    span lifetime;   /* 0: none */
    instant expires; /* by the clock of the caller of keys_carry_out or keys_restore */
};

/* NULL when out of memory. */
struct keys *keys_new(void);
void keys_free(struct keys *keys); /* NULL allowed */

/* Carries out an order; `index` is its entry's. Returns 0 (*ret_changed: the key's new value),
 * BATON_ECONFLICT (*ret_changed.revision: the key's actual revision), BATON_EFULL, or BATON_ENOMEM:
 * then this node's state differs from the group's, and the node must stop. */
int keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index, instant now,
                   struct keys_value *ret_changed);

/* NULL: no such key. Borrowed until the next change. */
const struct keys_value *keys_find(const struct keys *keys, const char *name);
/* Iterates in the order of the names' bytes; prev NULL: the first. */
const struct keys_value *keys_next(const struct keys *keys, const char *prefix,
                                   const struct keys_value *prev);
/* The key whose lifetime ends first; NULL: none. */
const struct keys_value *keys_first_to_expire(struct keys *keys);

/* Encodes the whole state, and restores it: all of it or, on failure, nothing. Lifetimes start
 * anew. BATON_ENOTSUP (a format above KEYS_FORMAT), BATON_ECORRUPT, BATON_ENOMEM. */
void keys_snapshot(const struct keys *keys, struct buffer *buffer);
int keys_restore(struct keys *keys, const void *data, size_t bytes, instant now);

#endif
