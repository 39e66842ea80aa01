/* One lock out of many: what the lease core asks of a store, asked of N independent servers, and
 * one answer made of theirs, as a pure function.
 *
 *   lease_command ──▶ majority_begin ──▶ an order for each server
 *   its answer ─────▶ majority_answer ─▶ more orders, and at some point the answer for the core
 *
 * The lock counts when more than half of the servers grant it. Two majorities share a server, which
 * gives it to one at a time: so there is one leader, and the servers that are left may be lost.
 * Validity is the core's: it counts from the moment at which it asked, before any server was.
 *
 * Epochs. Each server makes its own, above all that it has made. The leadership's is the greatest
 * of those granted, and it counts only when more than half of the servers have it, or a greater
 * one, on record (MAJORITY_RAISE): the next majority has one of them in it, and ends above.
 *
 * No I/O, no clock, no allocation. The caller sends the orders and tells the answer of each, once;
 * LEASE_NO_ANSWER if there is none. What comes late is told all the same.
 */
#ifndef LEASE_MAJORITY_H
#define LEASE_MAJORITY_H

#include "lease/lease.h"

enum { MAJORITY_MAX = 9 };

enum majority_order_type {
    MAJORITY_TAKE,    /* as LEASE_TAKE: above .epoch, and at least .least */
    MAJORITY_LOOK,    /* as LEASE_LOOK */
    MAJORITY_RENEW,   /* as LEASE_RENEW: granted in .epoch */
    MAJORITY_RAISE,   /* if it is still ours, in .epoch: the epoch becomes .least */
    MAJORITY_RELEASE, /* as LEASE_RELEASE: granted in .epoch; nobody waits for the answer */
    /* The same of what never was a leadership: nobody is to be woken by it. Those who contend have
     * met just now, and would meet again; and whoever resigned lets others go first. */
    MAJORITY_RETURN,
};

struct majority_order {
    enum majority_order_type type;
    int server;
    uint32_t round; /* comes back with the answer */
    uint64_t epoch;
    uint64_t least;
};

/* What one server says. */
struct majority_reply {
    enum lease_outcome outcome;
    uint64_t epoch;
    span left;
    uint64_t holder; /* HELD: any number that stands for whoever holds it there */
};

/* What became of a server in this round. */
enum majority_part { PART_NONE, PART_ASKED, PART_GRANTED, PART_RAISING, PART_REFUSED, PART_SILENT };

struct majority_server {
    bool holds;     /* granted to us, and not given back */
    uint64_t epoch; /* in which */
    uint64_t above; /* a grant must be above this: what was given back */
    enum majority_part part;
    struct majority_reply reply; /* PART_REFUSED */
};

/* The state; the caller's memory, its fields are this file's. */
struct majority {
    int count;
    struct majority_server servers[MAJORITY_MAX];
    uint32_t round;
    enum lease_command_type type;
    uint32_t request;
    uint64_t epoch; /* of the leadership; 0: none yet */
    bool is_decided;
    bool is_wanted; /* a grant that comes late is kept, and not given back */
};

struct majority_update {
    struct majority_order orders[2 * MAJORITY_MAX];
    int order_count;
    bool is_answered; /* the core's request has its answer: .outcome … */
    uint32_t request;
    enum lease_outcome outcome;
    uint64_t epoch;
    span left;
    int like; /* HELD: a server whose holder is the one; else -1 */
};

void majority_init(struct majority *majority, int count);
/* The core's command. What was under way has no answer any more. RELEASE has none. */
void majority_begin(struct majority *majority, const struct lease_command *command,
                    struct majority_update *ret);
void majority_answer(struct majority *majority, const struct majority_order *order,
                     const struct majority_reply *reply, struct majority_update *ret);
/* How many of them make a majority. */
int majority_needed(const struct majority *majority);

#endif
