/* What an entry of the log asks of the sessions, and its bytes. */
#ifndef SESSIONS_ORDER_H
#define SESSIONS_ORDER_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    SESSION_ORDER_TAG = 'S', /* the first byte of an entry that holds one */
    SESSION_ORDER_VERSION = 2,
    SESSION_SECRET_BYTES = 32,
    SESSION_NAME_MAX = 64, /* bytes of a name with its NUL */
    SESSION_METADATA_MAX = 4096,
    SESSION_LIFETIME_MAX_S = 86400,
};

enum session_order_type {
    SESSION_OPEN = 1, /* name, lifetime, secret, incarnation, metadata; its index is the session */
    SESSION_END,      /* session, end; epoch: its attachment, unless its process is proved dead */
    SESSION_ENTER,    /* session, name, priority, eligible: joins the line, or changes there */
    SESSION_WITHDRAW, /* session, name, epoch: leaves the line; epoch 0 unless it holds */
    SESSION_RESIGN,   /* session, name, epoch, to: gives it up, and goes to the end of the line */
    SESSION_PASS,     /* name, to: asks the holder to resign in favour of the session `to` */
    SESSION_ELIGIBLE, /* session, name, eligible; a holder is asked to resign */
    SESSION_DESCRIBE, /* session, metadata */
    SESSION_RESUME,   /* session, secret: the asking node has the session's process now */
};

/* Why a session ends. */
enum session_end {
    SESSION_END_LEFT = 1,  /* it asked for that, and had stopped acting */
    SESSION_END_CERTIFIED, /* its process is proved dead */
    SESSION_END_EXPIRED,   /* the leader of the log has not heard of it for its lifetime */
};

struct session_order {
    enum session_order_type type;
    uint64_t node; /* the asking node, and its number for the order; 0: none waits */
    uint64_t request;
    uint64_t session;
    uint64_t epoch;
    uint64_t to;          /* RESIGN: 0, or a session that cannot lead any more: the next in line */
    uint64_t incarnation; /* of the node, if the process is the node's own; else 0 */
    int32_t priority;
    bool is_eligible;
    enum session_end end;
    span lifetime; /* above 0 */
    uint8_t secret[SESSION_SECRET_BYTES];
    char name[SESSION_NAME_MAX]; /* of the election; OPEN: of the process */
    const void *metadata;        /* NULL: none; borrowed, not NUL-terminated */
    size_t metadata_bytes;
};

/* Whether the metadata, if there are any, fit and are without a NUL. */
bool session_order_has_text(const struct session_order *order);

/* The buffer fails if it is too small; nothing else does. */
void session_order_encode(struct buffer *buffer, const struct session_order *order);
/* BATON_ECORRUPT; BATON_ENOTSUP: of a later version. `metadata` points into `data`. */
int session_order_decode(struct session_order *ret, const void *data, size_t bytes);

#endif
