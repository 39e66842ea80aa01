#include "lease/majority.h"

#include <string.h>

void majority_init(struct majority *majority, int count)
{
    *majority = (struct majority){.count = count < MAJORITY_MAX ? count : MAJORITY_MAX};
}

int majority_needed(const struct majority *majority)
{
    return majority->count / 2 + 1;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void order(struct majority *majority, int number, enum majority_order_type type,
                  uint64_t epoch, uint64_t least, struct majority_update *ret)
{
    if (ret->order_count < 2 * MAJORITY_MAX) {
        ret->orders[ret->order_count++] = (struct majority_order){.type = type,
                                                                  .server = number,
                                                                  .round = majority->round,
                                                                  .epoch = epoch,
                                                                  .least = least};
    }
}

/* This epoch never counts as ours again: the release may still be in the network. */
static void give_back(struct majority *majority, int number, enum majority_order_type type,
                      struct majority_update *ret)
{
    struct majority_server *server = &majority->servers[number];

    server->holds = false;
    server->above = server->epoch > server->above ? server->epoch : server->above;
    order(majority, number, type, server->epoch, 0, ret);
}

static void raise_epoch(struct majority *majority, int number, struct majority_update *ret)
{
    struct majority_server *server = &majority->servers[number];

    if (server->part == PART_GRANTED && server->epoch < majority->epoch) {
        server->part = PART_RAISING;
        order(majority, number, MAJORITY_RAISE, server->epoch, majority->epoch, ret);
    }
}

/* ---- Counting -------------------------------------------------------------------------------- */

static int count(const struct majority *majority, enum majority_part part)
{
    int found = 0;

    for (int i = 0; i < majority->count; i++) {
        found += majority->servers[i].part == part;
    }
    return found;
}

/* How long until this server can give its lock. False: unknown. */
static bool wait_of(const struct majority_server *server, span *ret)
{
    bool waits = server->part == PART_REFUSED && server->reply.outcome != LEASE_FREE;

    *ret = waits ? server->reply.left : SPAN_NS(0);
    return server->part != PART_SILENT && server->part != PART_ASKED;
}

/* How long until a majority can give theirs. False: too few have replied. */
static bool wait_of_all(const struct majority *majority, span *ret)
{
    span waits[MAJORITY_MAX] = {{0}};
    int known = 0;

    for (int i = 0; i < majority->count; i++) {
        span wait;
        int at = known;
        if (!wait_of(&majority->servers[i], &wait)) {
            continue;
        }
        for (; at > 0 && waits[at - 1].ns > wait.ns; at--) {
            waits[at] = waits[at - 1];
        }
        waits[at] = wait;
        known++;
    }
    if (known < majority_needed(majority)) {
        return false;
    }
    *ret = waits[majority_needed(majority) - 1];
    return true;
}

static bool is_held(const struct majority_server *server)
{
    return server->part == PART_REFUSED && server->reply.outcome == LEASE_HELD;
}

/* The epoch that a majority of servers has recorded for this holder; 0: none. */
static uint64_t epoch_held(const struct majority *majority, int like)
{
    uint64_t best = 0;

    for (int i = 0; i < majority->count; i++) {
        uint64_t epoch = majority->servers[i].reply.epoch;
        int above = 0;
        for (int j = 0; is_held(&majority->servers[i]) && j < majority->count; j++) {
            const struct majority_server *other = &majority->servers[j];
            above += is_held(other) && other->reply.epoch >= epoch &&
                     other->reply.holder == majority->servers[like].reply.holder;
        }
        if (above >= majority_needed(majority) && epoch > best) {
            best = epoch;
        }
    }
    return best;
}

/* A server whose holder is the same as on a majority of servers; -1: there is none. */
static int holder_of(const struct majority *majority)
{
    for (int i = 0; i < majority->count; i++) {
        int same = 0;
        for (int j = 0; is_held(&majority->servers[i]) && j < majority->count; j++) {
            same += is_held(&majority->servers[j]) &&
                    majority->servers[j].reply.holder == majority->servers[i].reply.holder;
        }
        if (same >= majority_needed(majority)) {
            return i;
        }
    }
    return -1;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static void decide(struct majority *majority, enum lease_outcome outcome,
                   struct majority_update *ret)
{
    majority->is_decided = true;
    ret->is_answered = true;
    ret->request = majority->request;
    ret->outcome = outcome;
    ret->like = -1;
}

/* Whether the servers that may have forgotten a lease prevent a majority. A process that holds only
 * a few of the others does not: it gives them back as soon as it knows, or is dead. */
static bool must_wait(const struct majority *majority)
{
    int others = 0;

    for (int i = 0; i < majority->count; i++) {
        const struct majority_server *server = &majority->servers[i];
        others += server->part != PART_SILENT && server->part != PART_ASKED &&
                  !(server->part == PART_REFUSED && server->reply.outcome == LEASE_NOT_YET);
    }
    return others < majority_needed(majority);
}

/* Makes one reply of the servers' replies. If no process has a majority, the core gets no answer,
 * so it tries again after a random pause that grows. */
static void decide_by_all(struct majority *majority, struct majority_update *ret)
{
    int like = holder_of(majority);
    span left = SPAN_NS(0);
    bool is_known = wait_of_all(majority, &left);

    if (is_known && like >= 0) {
        decide(majority, LEASE_HELD, ret);
        ret->like = like;
        ret->epoch = epoch_held(majority, like);
    } else if (is_known && left.ns > 0 && must_wait(majority)) {
        decide(majority, LEASE_NOT_YET, ret);
    } else if (is_known && left.ns == 0 && majority->type != LEASE_TAKE) {
        decide(majority, LEASE_FREE, ret);
    } else {
        decide(majority, LEASE_NO_ANSWER, ret);
    }
    ret->left = left;
}

static void decide_take(struct majority *majority, struct majority_update *ret)
{
    int granted = count(majority, PART_GRANTED);
    int raising = count(majority, PART_RAISING);
    int needed = majority_needed(majority);

    if (granted + raising >= needed && majority->epoch == 0) {
        for (int i = 0; i < majority->count; i++) {
            const struct majority_server *server = &majority->servers[i];
            if (server->part == PART_GRANTED && server->epoch > majority->epoch) {
                majority->epoch = server->epoch;
            }
        }
    }
    if (majority->epoch > 0) {
        for (int i = 0; i < majority->count; i++) {
            raise_epoch(majority, i, ret);
        }
        granted = count(majority, PART_GRANTED); /* with the epoch recorded */
        raising = count(majority, PART_RAISING);
    }
    if (majority->epoch > 0 && granted >= needed) {
        decide(majority, LEASE_GRANTED, ret);
        ret->epoch = majority->epoch;
    } else if (granted + raising + count(majority, PART_ASKED) < needed) {
        decide_by_all(majority, ret);
        majority->is_wanted = false;
        for (int i = 0; i < majority->count; i++) {
            if (majority->servers[i].holds) {
                give_back(majority, i, MAJORITY_RETURN, ret);
            }
        }
    }
}

static void decide_renewal(struct majority *majority, struct majority_update *ret)
{
    int granted = count(majority, PART_GRANTED);
    int needed = majority_needed(majority);

    if (granted >= needed) {
        decide(majority, LEASE_GRANTED, ret);
        ret->epoch = majority->epoch;
    } else if (granted + count(majority, PART_ASKED) < needed) {
        if (granted + count(majority, PART_SILENT) >= needed) {
            decide(majority, LEASE_NO_ANSWER, ret); /* the lock may still be ours */
        } else {
            decide_by_all(majority, ret);
        }
    }
}

static void decide_if_possible(struct majority *majority, struct majority_update *ret)
{
    if (majority->is_decided) {
        return;
    }
    if (majority->type == LEASE_TAKE) {
        decide_take(majority, ret);
    } else if (majority->type == LEASE_RENEW) {
        decide_renewal(majority, ret);
    } else if (count(majority, PART_ASKED) == 0) {
        decide_by_all(majority, ret);
    }
}

/* ---- Commands and replies -------------------------------------------------------------------- */

static void ask(struct majority *majority, int number, const struct lease_command *command,
                struct majority_update *ret)
{
    struct majority_server *server = &majority->servers[number];
    uint64_t above = command->epoch > server->above ? command->epoch : server->above;

    server->part = PART_ASKED;
    if (command->type == LEASE_LOOK) {
        order(majority, number, MAJORITY_LOOK, 0, 0, ret);
    } else if (command->type == LEASE_RENEW && server->holds) {
        order(majority, number, MAJORITY_RENEW, server->epoch, 0, ret);
    } else if (command->type ==
               LEASE_RENEW) { /* the server was not reachable before, or forgot the lock */
        order(majority, number, MAJORITY_TAKE, server->above, majority->epoch, ret);
    } else {
        order(majority, number, MAJORITY_TAKE, above, 0, ret);
    }
}

/* LEASE_EPOCH_UNKNOWN also goes to servers whose reply to a take has not arrived. */
static void release(struct majority *majority, const struct lease_command *command,
                    struct majority_update *ret)
{
    for (int i = 0; i < majority->count; i++) {
        if (majority->servers[i].holds) {
            give_back(majority, i, MAJORITY_RELEASE, ret);
        } else if (command->epoch == LEASE_EPOCH_UNKNOWN) {
            order(majority, i, MAJORITY_RELEASE, LEASE_EPOCH_UNKNOWN, 0, ret);
        }
    }
    majority->epoch = 0;
    majority->is_wanted = false;
    majority->is_decided = true;
}

void majority_begin(struct majority *majority, const struct lease_command *command,
                    struct majority_update *ret)
{
    *ret = (struct majority_update){.like = -1};
    majority->round++;
    majority->type = command->type;
    majority->request = command->request;
    majority->is_decided = false;
    if (command->type == LEASE_RELEASE) {
        release(majority, command, ret);
        return;
    }
    majority->is_wanted = command->type != LEASE_LOOK;
    majority->epoch = command->type == LEASE_RENEW ? command->epoch : 0;
    for (int i = 0; i < majority->count; i++) {
        ask(majority, i, command, ret);
    }
}

static bool is_grant(const struct majority_order *order, const struct majority_reply *reply)
{
    return reply->outcome == LEASE_GRANTED &&
           (order->type == MAJORITY_TAKE || order->type == MAJORITY_RAISE ||
            order->type == MAJORITY_RENEW);
}

/* A reply of an earlier round: a lock that is no longer wanted is given back. */
static void take_late(struct majority *majority, const struct majority_order *order,
                      const struct majority_reply *reply, struct majority_update *ret)
{
    struct majority_server *server = &majority->servers[order->server];

    if (order->type == MAJORITY_TAKE && is_grant(order, reply) && reply->epoch > server->above &&
        (!server->holds || reply->epoch > server->epoch)) {
        server->holds = true;
        server->epoch = reply->epoch;
        if (!majority->is_wanted) {
            give_back(majority, order->server, MAJORITY_RETURN, ret);
        }
    } else if (order->type == MAJORITY_RAISE && is_grant(order, reply) && server->holds &&
               server->epoch == order->epoch) {
        server->epoch = order->least;
    }
}

static void take(struct majority *majority, const struct majority_order *order,
                 const struct majority_reply *reply)
{
    struct majority_server *server = &majority->servers[order->server];

    server->reply = *reply;
    if (reply->outcome == LEASE_NO_ANSWER) {
        server->part = PART_SILENT;
    } else if (is_grant(order, reply)) {
        server->part = PART_GRANTED;
        server->holds = true;
        server->epoch = order->type == MAJORITY_RAISE   ? order->least
                        : order->type == MAJORITY_RENEW ? order->epoch
                                                        : reply->epoch;
    } else {
        server->part = PART_REFUSED;
        server->holds = server->holds && order->type == MAJORITY_LOOK;
    }
}

void majority_answer(struct majority *majority, const struct majority_order *order,
                     const struct majority_reply *reply, struct majority_update *ret)
{
    *ret = (struct majority_update){.like = -1};
    if (order->type == MAJORITY_RELEASE || order->type == MAJORITY_RETURN || order->server < 0 ||
        order->server >= majority->count) {
        return;
    }
    if (order->round != majority->round || (majority->is_decided && !majority->is_wanted)) {
        take_late(majority, order, reply, ret);
        return;
    }
    take(majority, order, reply);
    if (majority->is_decided && majority->epoch > 0) {
        raise_epoch(majority, order->server, ret); /* one more server records it */
    }
    decide_if_possible(majority, ret);
}
