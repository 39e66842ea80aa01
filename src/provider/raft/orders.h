/* Gathers the orders that arrive in one turn of the loop, and in the next ones if more come in each
 * of them, and proposes them together: they cost the leader and each follower one write, not one
 * each.
 *
 * One thread; inside of this folder only.
 */
#ifndef PROVIDER_RAFT_ORDERS_H
#define PROVIDER_RAFT_ORDERS_H

#include "base/buffer.h"
#include "raft/raft.h"
#include "sessions/order.h"

#include <uv.h>

enum { ORDERS_MAX = 1024, ORDERS_BYTES_MAX = 1024 * 1024 };

struct node;

struct gathered_order {
    raft_id asker;
    uint64_t request; /* of the asker */
    size_t bytes;
};

/* The order was not appended to the log, and never will be. Called outside of any step. */
typedef void (*order_refused_cb)(struct node *node, raft_id asker, uint64_t request);

/* The latest urgent order of another member. */
struct urgent_order {
    raft_id asker;
    uint32_t sum;
    instant came;
};

struct orders {
    struct node *node;
    order_refused_cb on_refused;
    uv_idle_t idle; /* active while orders wait */
    struct gathered_order items[ORDERS_MAX];
    size_t count;
    size_t counted;      /* before the latest turn */
    instant since;       /* the first of them came */
    struct buffer bytes; /* of all of them, one behind the other */
    struct urgent_order urgent;
};

void orders_init(struct orders *orders, struct node *node, order_refused_cb on_refused);
/* Drops what waits. `closed` comes when the memory may be freed. */
void orders_close(struct orders *orders, uv_close_cb closed);
/* For the node's own orders, `asker` is its own id. Copies. BATON_ENOMEM, or BATON_EBUSY: as much
 * as may wait does. */
int orders_add(struct orders *orders, raft_id asker, uint64_t request, const void *data,
               size_t bytes);
/* Whether a process gives up what it holds: others wait for this order, so it goes by both
 * connections to the leader. */
bool orders_is_urgent(enum session_order_type type);
/* Whether this is the copy that came by the other connection. To carry it out twice would do no
 * harm, but would cost a write. */
bool orders_is_copy(struct orders *orders, raft_id asker, const void *data, size_t bytes);
/* Proposes what waits now. Not within a step. */
void orders_flush(struct orders *orders);

#endif
