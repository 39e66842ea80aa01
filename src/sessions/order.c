#include "sessions/order.h"

#include <string.h>

enum { HAS_METADATA = 1, IS_ELIGIBLE = 2, FLAGS = HAS_METADATA | IS_ELIGIBLE };

static bool takes_metadata(enum session_order_type type)
{
    return type == SESSION_OPEN || type == SESSION_DESCRIBE;
}

void session_order_encode(struct buffer *buffer, const struct session_order *order)
{
    size_t name_bytes = strnlen(order->name, SESSION_NAME_MAX - 1);
    bool has_metadata = takes_metadata(order->type) && order->metadata;

    buffer_put_u8(buffer, SESSION_ORDER_TAG);
    buffer_put_u8(buffer, SESSION_ORDER_VERSION);
    buffer_put_u8(buffer, (uint8_t)order->type);
    buffer_put_u8(buffer, (uint8_t)((has_metadata ? HAS_METADATA : 0) |
                                    (order->is_eligible ? IS_ELIGIBLE : 0)));
    buffer_put_u64(buffer, order->node);
    buffer_put_u64(buffer, order->request);
    buffer_put_u64(buffer, order->session);
    buffer_put_u8(buffer, (uint8_t)name_bytes);
    buffer_put(buffer, order->name, name_bytes);
    switch (order->type) {
    case SESSION_OPEN:
        buffer_put_u64(buffer, (uint64_t)order->lifetime.ns);
        buffer_put_u64(buffer, order->incarnation);
        buffer_put(buffer, order->secret, SESSION_SECRET_BYTES);
        break;
    case SESSION_END:
        buffer_put_u8(buffer, (uint8_t)order->end);
        buffer_put_u64(buffer, order->epoch);
        break;
    case SESSION_RESUME:
        buffer_put(buffer, order->secret, SESSION_SECRET_BYTES);
        break;
    case SESSION_ENTER:
        buffer_put_u32(buffer, (uint32_t)order->priority);
        break;
    case SESSION_RESIGN:
        buffer_put_u64(buffer, order->epoch);
        buffer_put_u64(buffer, order->to);
        break;
    case SESSION_PASS:
        buffer_put_u64(buffer, order->to);
        break;
    case SESSION_WITHDRAW:
        buffer_put_u64(buffer, order->epoch);
        break;
    case SESSION_ELIGIBLE:
    case SESSION_DESCRIBE:
        break;
    }
    if (has_metadata) {
        buffer_put(buffer, order->metadata, order->metadata_bytes);
    }
}

static void take_secret(struct session_order *order, struct reader *reader)
{
    const uint8_t *secret = reader_take(reader, SESSION_SECRET_BYTES);

    if (secret) {
        memcpy(order->secret, secret, SESSION_SECRET_BYTES);
    }
}

static void decode_own_fields(struct session_order *order, struct reader *reader)
{
    switch (order->type) {
    case SESSION_OPEN:
        order->lifetime = SPAN_NS(reader_u64(reader));
        order->incarnation = reader_u64(reader);
        take_secret(order, reader);
        break;
    case SESSION_END:
        order->end = (enum session_end)reader_u8(reader);
        order->epoch = reader_u64(reader);
        break;
    case SESSION_RESUME:
        take_secret(order, reader);
        break;
    case SESSION_ENTER:
        order->priority = (int32_t)reader_u32(reader);
        break;
    case SESSION_RESIGN:
        order->epoch = reader_u64(reader);
        order->to = reader_u64(reader);
        break;
    case SESSION_PASS:
        order->to = reader_u64(reader);
        break;
    case SESSION_WITHDRAW:
        order->epoch = reader_u64(reader);
        break;
    case SESSION_ELIGIBLE:
    case SESSION_DESCRIBE:
        break;
    }
}

static bool is_named(enum session_order_type type)
{
    return type != SESSION_END && type != SESSION_DESCRIBE && type != SESSION_RESUME;
}

static bool is_sound(const struct session_order *order)
{
    bool has_session = order->type != SESSION_OPEN && order->type != SESSION_PASS;

    return (order->name[0] != '\0') == is_named(order->type) &&
           (order->session != 0) == has_session &&
           (order->type != SESSION_OPEN ||
            (order->lifetime.ns > 0 && order->lifetime.ns <= SPAN_S(SESSION_LIFETIME_MAX_S).ns)) &&
           (order->type != SESSION_END ||
            (order->end >= SESSION_END_LEFT && order->end <= SESSION_END_EXPIRED)) &&
           (order->type != SESSION_PASS || order->to != 0);
}

bool session_order_has_text(const struct session_order *order)
{
    return order->metadata_bytes <= SESSION_METADATA_MAX &&
           (order->metadata_bytes == 0 || !memchr(order->metadata, '\0', order->metadata_bytes));
}

int session_order_decode(struct session_order *ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    struct session_order order = {0};
    uint8_t tag = reader_u8(&reader);
    uint8_t version = reader_u8(&reader);
    uint8_t type = reader_u8(&reader);
    uint8_t flags = reader_u8(&reader);
    uint8_t name_bytes;
    const uint8_t *name;

    if (!reader.failed && tag == SESSION_ORDER_TAG && version > SESSION_ORDER_VERSION) {
        return BATON_ENOTSUP;
    }
    order.node = reader_u64(&reader);
    order.request = reader_u64(&reader);
    order.session = reader_u64(&reader);
    name_bytes = reader_u8(&reader);
    name = reader_take(&reader, name_bytes);
    if (reader.failed || tag != SESSION_ORDER_TAG || version != SESSION_ORDER_VERSION ||
        type < SESSION_OPEN || type > SESSION_RESUME || flags > FLAGS ||
        name_bytes >= SESSION_NAME_MAX || (name_bytes > 0 && memchr(name, '\0', name_bytes))) {
        return BATON_ECORRUPT;
    }
    order.type = (enum session_order_type)type;
    order.is_eligible = flags & IS_ELIGIBLE;
    memcpy(order.name, name_bytes > 0 ? (const void *)name : "", name_bytes);
    decode_own_fields(&order, &reader);
    if (reader.failed || !is_sound(&order) || (!(flags & HAS_METADATA) && reader.bytes > 0) ||
        ((flags & HAS_METADATA) && !takes_metadata(order.type))) {
        return BATON_ECORRUPT;
    }
    order.metadata =
        flags & HAS_METADATA ? reader.bytes > 0 ? (const void *)reader.data : "" : NULL;
    order.metadata_bytes = reader.bytes;
    if (!session_order_has_text(&order)) {
        return BATON_ECORRUPT;
    }
    *ret = order;
    return BATON_OK;
}
