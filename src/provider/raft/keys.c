/* Stores keys in one array sorted by name: small, and already in order for listing. */
#include "provider/raft/keys.h"

#include <stdlib.h>
#include <string.h>

struct keys {
    struct keys_value **all;
    size_t count;
    size_t capacity;
    size_t bytes;
    size_t mortal;                            /* keys with a lifetime */
    const struct keys_value *first_to_expire; /* NULL: not known, or there is none */
};

enum { ORDER_VERSION = 1, HAS_DATA = 1 };

/* ---- Orders as bytes ------------------------------------------------------------------------- */

void keys_encode(struct buffer *buffer, const struct keys_order *order)
{
    buffer_put_u8(buffer, ORDER_VERSION);
    buffer_put_u8(buffer, order->data ? HAS_DATA : 0);
    buffer_put_u16(buffer, (uint16_t)order->name_bytes);
    buffer_put_u64(buffer, order->node);
    buffer_put_u64(buffer, order->request);
    buffer_put_u64(buffer, order->revision);
    buffer_put_u64(buffer, (uint64_t)order->lifetime.ns);
    buffer_put(buffer, order->name, order->name_bytes);
    if (order->data) {
        buffer_put(buffer, order->data, order->bytes);
    }
}

int keys_decode(struct keys_order *ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    uint8_t version = reader_u8(&reader);
    uint8_t flags = reader_u8(&reader);
    struct keys_order order = {.name_bytes = reader_u16(&reader)};

    order.node = reader_u64(&reader);
    order.request = reader_u64(&reader);
    order.revision = reader_u64(&reader);
    order.lifetime = SPAN_NS(reader_u64(&reader));
    order.name = (const char *)reader_take(&reader, order.name_bytes);
    order.bytes = reader.bytes;
    order.data = reader_take(&reader, reader.bytes);
    if (reader.failed || version != ORDER_VERSION || flags > HAS_DATA || order.lifetime.ns < 0 ||
        order.name_bytes > KEYS_NAME_MAX || order.bytes > KEYS_VALUE_MAX ||
        (order.name_bytes > 0 && memchr(order.name, '\0', order.name_bytes)) ||
        (flags == 0 && order.bytes > 0)) {
        return BATON_ECORRUPT;
    }
    order.data = flags == 0 ? NULL : order.bytes > 0 ? order.data : "";
    *ret = order;
    return BATON_OK;
}

/* ---- The keys -------------------------------------------------------------------------------- */

struct keys *keys_new(void)
{
    return calloc(1, sizeof(struct keys));
}

static void clear(struct keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->all[i]);
    }
    free(keys->all);
    *keys = (struct keys){0};
}

void keys_free(struct keys *keys)
{
    if (keys) {
        clear(keys);
        free(keys);
    }
}

static int compare(const char *name, size_t bytes, const struct keys_value *value)
{
    size_t there = strlen(value->name);
    int order = memcmp(name, value->name, bytes < there ? bytes : there);
    return order != 0 ? order : (bytes > there) - (bytes < there);
}

/* The index at which the name is, or would be inserted. */
static size_t place_of(const struct keys *keys, const char *name, size_t bytes, bool *ret_found)
{
    size_t low = 0;
    size_t high = keys->count;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(name, bytes, keys->all[middle]);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Allocates one block: the struct, the name, the data and a NUL. */
static struct keys_value *value_new(const struct keys_order *order, uint64_t revision, instant now)
{
    struct keys_value *value = malloc(sizeof(*value) + order->name_bytes + order->bytes + 2);
    char *space;

    if (!value) {
        return NULL;
    }
    space = (char *)(value + 1);
    memcpy(space, order->name, order->name_bytes);
    space[order->name_bytes] = '\0';
    *value = (struct keys_value){
        .name = space,
        .data = space + order->name_bytes + 1,
        .bytes = order->bytes,
        .revision = revision,
        .lifetime = order->lifetime,
        .expires = order->lifetime.ns > 0 ? instant_add(now, order->lifetime) : INSTANT_NEVER,
    };
    memcpy(space + order->name_bytes + 1, order->data, order->bytes);
    space[order->name_bytes + 1 + order->bytes] = '\0';
    return value;
}

static size_t weight_of(const struct keys_value *value)
{
    return sizeof(*value) + strlen(value->name) + value->bytes;
}

static void count_in(struct keys *keys, const struct keys_value *value)
{
    const struct keys_value *first = keys->first_to_expire;

    keys->bytes += weight_of(value);
    if (value->lifetime.ns > 0) {
        keys->mortal++;
        if (keys->mortal == 1 || (first && instant_before(value->expires, first->expires))) {
            keys->first_to_expire = value;
        }
    }
}

static void count_out(struct keys *keys, const struct keys_value *value)
{
    keys->bytes -= weight_of(value);
    keys->mortal -= value->lifetime.ns > 0;
    if (keys->first_to_expire == value) {
        keys->first_to_expire = NULL;
    }
}

static int make_room(struct keys *keys)
{
    size_t wanted = keys->capacity ? keys->capacity * 2 : 16;
    struct keys_value **grown;

    if (keys->count < keys->capacity) {
        return BATON_OK;
    }
    grown = realloc(keys->all, wanted * sizeof(void *));
    if (!grown) {
        return BATON_ENOMEM;
    }
    keys->all = grown;
    keys->capacity = wanted;
    return BATON_OK;
}

static int set(struct keys *keys, size_t at, bool found, const struct keys_order *order,
               uint64_t revision, instant now)
{
    struct keys_value *value;

    if (make_room(keys) != BATON_OK || !(value = value_new(order, revision, now))) {
        return BATON_ENOMEM;
    }
    if (found) {
        count_out(keys, keys->all[at]);
        free(keys->all[at]);
    } else {
        memmove(&keys->all[at + 1], &keys->all[at], (keys->count - at) * sizeof(void *));
        keys->count++;
    }
    keys->all[at] = value;
    count_in(keys, value);
    return BATON_OK;
}

static void take_out(struct keys *keys, size_t at)
{
    count_out(keys, keys->all[at]);
    free(keys->all[at]);
    keys->count--;
    memmove(&keys->all[at], &keys->all[at + 1], (keys->count - at) * sizeof(void *));
}

int keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index, instant now,
                   struct keys_value *ret_changed)
{
    bool found;
    size_t at = place_of(keys, order->name, order->name_bytes, &found);
    uint64_t revision = found ? keys->all[at]->revision : 0;
    int code;

    *ret_changed = (struct keys_value){.revision = revision};
    if (order->revision != UINT64_MAX && order->revision != revision) {
        return BATON_ECONFLICT;
    }
    if (!order->data) {
        if (found) {
            take_out(keys, at);
            ret_changed->revision = index;
        }
        return BATON_OK;
    }
    if (keys->bytes + order->name_bytes + order->bytes > KEYS_ALL_MAX) {
        return BATON_EFULL;
    }
    code = set(keys, at, found, order, index, now);
    if (code == BATON_OK) {
        *ret_changed = *keys->all[at];
    }
    return code;
}

/* ---- Reading --------------------------------------------------------------------------------- */

const struct keys_value *keys_find(const struct keys *keys, const char *name)
{
    bool found;
    size_t at = place_of(keys, name, strlen(name), &found);
    return found ? keys->all[at] : NULL;
}

const struct keys_value *keys_next(const struct keys *keys, const char *prefix,
                                   const struct keys_value *prev)
{
    const char *from = prev ? prev->name : prefix;
    bool found;
    size_t at = place_of(keys, from, strlen(from), &found);

    at += found && prev;
    if (at >= keys->count || strncmp(keys->all[at]->name, prefix, strlen(prefix)) != 0) {
        return NULL;
    }
    return keys->all[at];
}

/* Asked after every change, so it is looked for only when the latest answer has gone. */
const struct keys_value *keys_first_to_expire(struct keys *keys)
{
    const struct keys_value *first = keys->first_to_expire;

    if (first || keys->mortal == 0) {
        return first;
    }
    for (size_t i = 0; i < keys->count; i++) {
        const struct keys_value *value = keys->all[i];
        if (value->lifetime.ns > 0 && (!first || instant_before(value->expires, first->expires))) {
            first = value;
        }
    }
    keys->first_to_expire = first;
    return first;
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

void keys_snapshot(const struct keys *keys, struct buffer *buffer)
{
    buffer_put_u8(buffer, KEYS_FORMAT);
    buffer_put_u32(buffer, (uint32_t)keys->count);
    for (size_t i = 0; i < keys->count; i++) {
        const struct keys_value *value = keys->all[i];
        size_t name_bytes = strlen(value->name);
        buffer_put_u64(buffer, value->revision);
        buffer_put_u64(buffer, (uint64_t)value->lifetime.ns);
        buffer_put_u16(buffer, (uint16_t)name_bytes);
        buffer_put_u32(buffer, (uint32_t)value->bytes);
        buffer_put(buffer, value->name, name_bytes);
        buffer_put(buffer, value->data, value->bytes);
    }
}

static int restore_one(struct keys *keys, struct reader *reader, instant now)
{
    uint64_t revision = reader_u64(reader);
    struct keys_order order = {.lifetime = SPAN_NS(reader_u64(reader))};
    bool found = false;
    size_t at;

    order.name_bytes = reader_u16(reader);
    order.bytes = reader_u32(reader);
    order.name = (const char *)reader_take(reader, order.name_bytes);
    order.data = reader_take(reader, order.bytes);
    if (reader->failed || order.name_bytes > KEYS_NAME_MAX || order.bytes > KEYS_VALUE_MAX ||
        order.lifetime.ns < 0 ||
        (order.name_bytes > 0 && memchr(order.name, '\0', order.name_bytes))) {
        return BATON_ECORRUPT;
    }
    order.name = order.name_bytes > 0 ? order.name : "";
    order.data = order.bytes > 0 ? order.data : "";
    at = place_of(keys, order.name, order.name_bytes, &found);
    return found ? BATON_ECORRUPT : set(keys, at, false, &order, revision, now);
}

int keys_restore(struct keys *keys, const void *data, size_t bytes, instant now)
{
    struct reader reader = reader_of(data, bytes);
    struct keys fresh = {0};
    uint8_t version = bytes > 0 ? reader_u8(&reader) : KEYS_FORMAT;
    uint32_t count = bytes > 0 ? reader_u32(&reader) : 0; /* no bytes: the state of a new group */
    int code = version > KEYS_FORMAT                      ? BATON_ENOTSUP
               : version == KEYS_FORMAT && !reader.failed ? BATON_OK
                                                          : BATON_ECORRUPT;

    for (uint32_t i = 0; code == BATON_OK && i < count; i++) {
        code = restore_one(&fresh, &reader, now);
    }
    if (code == BATON_OK && reader.bytes > 0) {
        code = BATON_ECORRUPT;
    }
    if (code != BATON_OK) {
        clear(&fresh);
        return code;
    }
    clear(keys);
    *keys = fresh;
    return BATON_OK;
}
