/* One lock over several independent servers: sends each command of the lease core to N servers and
 * makes one reply of theirs, as a pure function.
 *
 *   lease_command ────▶ majority_begin ──▶ an order for each server
 *   a server's reply ─▶ majority_answer ─▶ more orders, and at some point the reply for the core
 *
 * The lock counts when more than half of the servers grant it. Two majorities share a server, and a
 * server gives the lock to one process at a time, so there is one leader. The other servers may be
 * lost. The core counts the lease from the moment of its own command, before any server was asked.
 *
 * Epochs. Each server makes its own, above all earlier ones of that server. The leadership's epoch
 * is the greatest that was granted. It counts only when more than half of the servers have recorded
 * it, or a greater one (MAJORITY_RAISE): the next majority includes one of them, and ends above.
 *
 * It has no I/O, no clock, no allocation. The caller sends the orders and passes on the reply to
 * each, once, late ones too; LEASE_NO_ANSWER if there is none.
 */
#ifndef LEASE_MAJORITY_H
#define LEASE_MAJORITY_H

#include "lease/lease.h"

enum { MAJORITY_MAX = 9 };

enum majority_order_type {
    MAJORITY_TAKE,    /* as LEASE_TAKE: above .epoch, and at least .least */
    MAJORITY_LOOK,    /* as LEASE_LOOK */
    MAJORITY_RENEW,   /* as LEASE_RENEW: granted in .epoch */
    MAJORITY_RAISE,   /* if the lock is still ours, in .epoch: its epoch becomes .least */
    MAJORITY_RELEASE, /* as LEASE_RELEASE: granted in .epoch; no reply is expected */
    /* Releases a lock that never became a leadership, without a notice to others: contenders that
     * have just collided would collide again, and a process that resigned lets others ask first. */
    MAJORITY_RETURN,
};

struct majority_order {
    enum majority_order_type type;
    int server;
    uint32_t round; /* comes back with the reply */
    uint64_t epoch;
    uint64_t least;
};

/* The reply of one server. */
struct majority_reply {
    enum lease_outcome outcome;
    uint64_t epoch;
    span left;
    uint64_t holder; /* HELD: any number that stands for the holder there */
};

/* The part of a server in this round. */
enum majority_part { PART_NONE, PART_ASKED, PART_GRANTED, PART_RAISING, PART_REFUSED, PART_SILENT };

struct majority_server {
    bool holds;     /* its lock is ours */
    uint64_t epoch; /* of that lock */
    uint64_t above; /* a grant must be above this epoch, which was given back */
    enum majority_part part;
    struct majority_reply reply; /* PART_REFUSED */
};

/* The state: the caller owns the memory, and only majority.c uses the fields. */
struct majority {
    int count;
    struct majority_server servers[MAJORITY_MAX];
    uint32_t round;
    enum lease_command_type type;
    uint32_t request;
    uint64_t epoch; /* of the leadership; 0: none yet */
    bool is_decided;
    bool is_wanted; /* a late grant is kept, not given back */
};

struct majority_update {
    struct majority_order orders[2 * MAJORITY_MAX];
    int order_count;
    bool is_answered; /* the core's command has its reply: .outcome … */
    uint32_t request;
    enum lease_outcome outcome;
    uint64_t epoch;
    span left;
    int like; /* HELD: a server that names the holder; else -1 */
};

void majority_init(struct majority *majority, int count);
/* Begins the core's command; an earlier one gets no reply any more. RELEASE gets none either. */
void majority_begin(struct majority *majority, const struct lease_command *command,
                    struct majority_update *ret);
void majority_answer(struct majority *majority, const struct majority_order *order,
                     const struct majority_reply *reply, struct majority_update *ret);
/* How many servers make a majority. */
int majority_needed(const struct majority *majority);

#endif
