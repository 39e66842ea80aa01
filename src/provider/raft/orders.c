#include "provider/raft/orders.h"

#include "base/crc32c.h"
#include "provider/raft/node.h"

#include <string.h>

enum {
    COPY_MS = 100, /* an order that is repeated comes later */
    GATHER_MS = 1, /* from the first order on */
};

/* What changes sessions may be a grant to any node, which waits for it. */
static raft_id asker_of(const struct node *node, const struct gathered_order *order,
                        const uint8_t *data)
{
    if (order->bytes > 0 && data[0] == SESSION_ORDER_TAG) {
        return RAFT_EVERYBODY;
    }
    return order->asker == node->id ? RAFT_NOBODY : order->asker;
}

/* If one is refused, so are those behind it: what was asked first is carried out first. More orders
 * may come meanwhile, from the callbacks of the step. */
static void propose(struct orders *orders)
{
    struct node *node = orders->node;
    struct raft_proposal proposals[ORDERS_MAX];
    struct gathered_order items[ORDERS_MAX];
    struct buffer bytes = orders->bytes;
    const uint8_t *at = bytes.data;
    size_t count = orders->count, taken = 0;
    struct raft_input input = {
        .type = RAFT_IN_PROPOSE,
        .propose = {.items = proposals, .count = count, .ret_taken = &taken},
    };

    for (size_t i = 0; i < count; i++) {
        items[i] = orders->items[i];
        proposals[i] = (struct raft_proposal){
            .data = at, .bytes = items[i].bytes, .asker = asker_of(node, &items[i], at)};
        at += items[i].bytes;
    }
    orders->count = orders->counted = 0;
    buffer_init(&orders->bytes, ORDERS_BYTES_MAX);
    (void)node_step(node, &input);
    buffer_fini(&bytes);
    for (size_t i = taken; i < count; i++) {
        orders->on_refused(node, items[i].asker, items[i].request);
    }
}

void orders_flush(struct orders *orders)
{
    (void)uv_idle_stop(&orders->idle);
    if (orders->count > 0) {
        propose(orders);
    }
}

/* What a client sends at once, or another node passes on, is read in several turns. */
static bool may_be_followed(struct orders *orders)
{
    bool is_growing = orders->count > orders->counted;

    orders->counted = orders->count;
    return is_growing && orders->count < ORDERS_MAX / 2 &&
           orders->bytes.bytes < ORDERS_BYTES_MAX / 2 &&
           instant_since(clock_now(), orders->since).ns < SPAN_MS(GATHER_MS).ns;
}

static void on_idle(uv_idle_t *idle)
{
    if (!may_be_followed(idle->data)) {
        orders_flush(idle->data);
    }
}

void orders_init(struct orders *orders, struct node *node, order_refused_cb on_refused)
{
    *orders = (struct orders){.node = node, .on_refused = on_refused};
    buffer_init(&orders->bytes, ORDERS_BYTES_MAX);
    (void)uv_idle_init(node->loop, &orders->idle);
    orders->idle.data = orders;
}

void orders_close(struct orders *orders, uv_close_cb closed)
{
    orders->count = 0;
    buffer_fini(&orders->bytes);
    uv_close((uv_handle_t *)&orders->idle, closed);
}

int orders_add(struct orders *orders, raft_id asker, uint64_t request, const void *data,
               size_t bytes)
{
    if (orders->count == ORDERS_MAX || orders->bytes.bytes + bytes > ORDERS_BYTES_MAX) {
        return BATON_EBUSY;
    }
    buffer_put(&orders->bytes, data, bytes);
    if (orders->bytes.failed) {
        orders->bytes.failed = false; /* what it holds is whole */
        return BATON_ENOMEM;
    }
    if (orders->count == 0) {
        orders->since = clock_now();
    }
    orders->items[orders->count++] =
        (struct gathered_order){.asker = asker, .request = request, .bytes = bytes};
    (void)uv_idle_start(&orders->idle, on_idle);
    return BATON_OK;
}

bool orders_is_urgent(enum session_order_type type)
{
    return type == SESSION_END || type == SESSION_RESIGN;
}

bool orders_is_copy(struct orders *orders, raft_id asker, const void *data, size_t bytes)
{
    const struct urgent_order before = orders->urgent;

    orders->urgent = (struct urgent_order){asker, crc32c(0, data, bytes), clock_now()};
    return before.asker == asker && before.sum == orders->urgent.sum &&
           instant_since(orders->urgent.came, before.came).ns < SPAN_MS(COPY_MS).ns;
}
