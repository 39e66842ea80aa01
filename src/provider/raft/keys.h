/* The state that the group replicates: small values by key. A pure function of the log.
 *
 * An entry of the log is one order: set or delete a key, if it is at a revision. Every node applies
 * the same orders in the same sequence, so that all have the same keys. A revision is the index of
 * the entry that made it. The leader counts lifetimes: when one is over it orders the deletion of
 * that revision, so that the state depends on no node's clock.
 */
#ifndef PROVIDER_RAFT_KEYS_H
#define PROVIDER_RAFT_KEYS_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

struct keys; /* opaque; one thread */

enum {
    KEYS_FORMAT = 1, /* of a snapshot, the only one so far */
    KEYS_NAME_MAX = 512,
    KEYS_VALUE_MAX = 128 * 1024,
    KEYS_ORDER_MAX = KEYS_VALUE_MAX + KEYS_NAME_MAX + 64,
    KEYS_ALL_MAX = 64 * 1024 * 1024, /* of all keys and values; more is refused with BATON_EFULL */
};

struct keys_order {
    uint64_t node; /* the asking node, and its number for the order; 0: none waits */
    uint64_t request;
    uint64_t revision; /* UINT64_MAX: whatever there is; 0: only if there is none */
    span lifetime;     /* 0: none */
    const char *name;  /* name_bytes of it, no NUL */
    size_t name_bytes;
    const void *data; /* NULL: delete */
    size_t bytes;
};

/* As the bytes of an entry, and back. Decoding: BATON_ECORRUPT; pointers are into `data`. */
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

/* `index` is the entry's. Returns 0 (*ret_changed: what the key is now), BATON_ECONFLICT
 * (*ret_changed.revision is where the key is), BATON_EFULL, or BATON_ENOMEM: then this node's state
 * is no longer the group's, and it must stop. */
int keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index, instant now,
                   struct keys_value *ret_changed);

/* NULL: no such key. Borrowed until the next change. */
const struct keys_value *keys_find(const struct keys *keys, const char *name);
/* One after the other, in the order of the bytes; prev NULL: the first. */
const struct keys_value *keys_next(const struct keys *keys, const char *prefix,
                                   const struct keys_value *prev);
/* The lifetime that ends first; NULL: none. */
const struct keys_value *keys_first_to_expire(const struct keys *keys);

/* The whole state, and back; restoring replaces all or, on failure, nothing. Lifetimes begin anew.
 * BATON_ENOTSUP (a format above KEYS_FORMAT), BATON_ECORRUPT, BATON_ENOMEM. */
void keys_snapshot(const struct keys *keys, struct buffer *buffer);
int keys_restore(struct keys *keys, const void *data, size_t bytes, instant now);

#endif
