/* A majority of servers as one store: by single cases, and in a world of servers that delay, lose,
 * crash and forget, with contenders that go by the lease core. */
#include "cmocka_all.h"
#include "lease/majority.h"
#include "lib/chance.h"

#include <string.h>

/* ---- By single cases ------------------------------------------------------------------------- */

static struct majority majority;
static struct majority_update update;

static void begin(enum lease_command_type type, uint64_t epoch)
{
    struct lease_command command = {.type = type, .request = 7, .epoch = epoch};

    majority_begin(&majority, &command, &update);
}

static void answer(enum majority_order_type type, int server, struct majority_reply reply)
{
    struct majority_order order = {.type = type,
                                   .server = server,
                                   .round = majority.round,
                                   .epoch = majority.servers[server].epoch,
                                   .least = majority.epoch};

    majority_answer(&majority, &order, &reply, &update);
}

#define GRANTED(number) ((struct majority_reply){.outcome = LEASE_GRANTED, .epoch = (number)})
#define SILENT          ((struct majority_reply){.outcome = LEASE_NO_ANSWER})
#define FREE            ((struct majority_reply){.outcome = LEASE_FREE})
#define NOT_YET(ms)     ((struct majority_reply){.outcome = LEASE_NOT_YET, .left = SPAN_MS(ms)})
#define HELD(who, number, ms)                                                                      \
    ((struct majority_reply){                                                                      \
        .outcome = LEASE_HELD, .holder = (who), .epoch = (number), .left = SPAN_MS(ms)})

static int set_up(void **state)
{
    majority_init(&majority, 3);
    return 0;
}

static void two_of_three_are_enough(void **state)
{
    begin(LEASE_TAKE, 4);
    assert_int_equal(update.order_count, 3);
    assert_int_equal(update.orders[1].type, MAJORITY_TAKE);
    assert_int_equal(update.orders[1].epoch, 4);
    answer(MAJORITY_TAKE, 0, GRANTED(9));
    assert_false(update.is_answered);
    answer(MAJORITY_TAKE, 1, GRANTED(9));
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_GRANTED);
    assert_int_equal(update.epoch, 9);
    assert_int_equal(update.request, 7);
    answer(MAJORITY_TAKE, 2, SILENT);
    assert_false(update.is_answered);
    assert_int_equal(update.order_count, 0);
}

static void the_greatest_epoch_is_on_record_before_it_counts(void **state)
{
    begin(LEASE_TAKE, 0);
    answer(MAJORITY_TAKE, 0, GRANTED(5));
    answer(MAJORITY_TAKE, 1, GRANTED(9));
    assert_false(update.is_answered);
    assert_int_equal(update.order_count, 1);
    assert_int_equal(update.orders[0].type, MAJORITY_RAISE);
    assert_int_equal(update.orders[0].server, 0);
    assert_int_equal(update.orders[0].epoch, 5);
    assert_int_equal(update.orders[0].least, 9);
    answer(MAJORITY_RAISE, 0, GRANTED(9));
    assert_true(update.is_answered);
    assert_int_equal(update.epoch, 9);
    begin(LEASE_RENEW, 9);
    assert_int_equal(update.orders[0].epoch, 9);
}

static void one_of_three_is_given_back(void **state)
{
    begin(LEASE_TAKE, 0);
    answer(MAJORITY_TAKE, 0, GRANTED(5));
    answer(MAJORITY_TAKE, 1, HELD(1, 4, 300));
    assert_false(update.is_answered);
    answer(MAJORITY_TAKE, 2, HELD(1, 4, 200));
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_HELD);
    assert_int_equal(update.epoch, 4);
    assert_int_equal(update.left.ns, SPAN_MS(200).ns); /* then two can be had */
    assert_int_equal(update.order_count, 1);
    assert_int_equal(update.orders[0].type, MAJORITY_RETURN);
    assert_int_equal(update.orders[0].epoch, 5);
    begin(LEASE_TAKE, 0);
    assert_int_equal(update.orders[0].epoch, 5); /* above what was given back */
    assert_int_equal(update.orders[1].epoch, 0);
}

static void a_lock_that_is_torn_is_asked_for_again(void **state)
{
    begin(LEASE_TAKE, 0);
    answer(MAJORITY_TAKE, 0, GRANTED(5));
    answer(MAJORITY_TAKE, 1, HELD(1, 4, 300));
    answer(MAJORITY_TAKE, 2, HELD(2, 4, 200));
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_NO_ANSWER);
    begin(LEASE_TAKE, 0);
    answer(MAJORITY_TAKE, 0, GRANTED(6));
    answer(MAJORITY_TAKE, 1, SILENT);
    answer(MAJORITY_TAKE, 2, SILENT);
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_NO_ANSWER);
}

static void a_grant_that_comes_late_is_given_back_or_kept(void **state)
{
    struct majority_order late = {.type = MAJORITY_TAKE, .server = 2};
    struct majority_reply granted = GRANTED(8);

    begin(LEASE_TAKE, 0);
    late.round = majority.round;
    answer(MAJORITY_TAKE, 0, FREE);
    answer(MAJORITY_TAKE, 1, FREE);
    assert_true(update.is_answered);
    majority_answer(&majority, &late, &granted, &update);
    assert_int_equal(update.order_count, 1); /* nobody wants it */
    assert_int_equal(update.orders[0].type, MAJORITY_RETURN);
    assert_int_equal(update.orders[0].epoch, 8);

    begin(LEASE_TAKE, 0);
    late.round = majority.round;
    answer(MAJORITY_TAKE, 0, GRANTED(10));
    answer(MAJORITY_TAKE, 1, GRANTED(10));
    assert_true(update.is_answered);
    begin(LEASE_RENEW, 10);
    granted.epoch = 9;
    majority_answer(&majority, &late, &granted, &update);
    assert_int_equal(update.order_count, 0);
    begin(LEASE_RENEW, 10);
    assert_int_equal(update.orders[2].type, MAJORITY_RENEW);
    assert_int_equal(update.orders[2].epoch, 9);
}

static void a_renewal_takes_the_lock_on_servers_that_were_unreachable_before(void **state)
{
    begin(LEASE_TAKE, 0);
    answer(MAJORITY_TAKE, 0, GRANTED(9));
    answer(MAJORITY_TAKE, 1, GRANTED(9));
    answer(MAJORITY_TAKE, 2, SILENT);
    begin(LEASE_RENEW, 9);
    assert_int_equal(update.orders[0].type, MAJORITY_RENEW);
    assert_int_equal(update.orders[2].type, MAJORITY_TAKE);
    assert_int_equal(update.orders[2].least, 9);
    answer(MAJORITY_RENEW, 0, SILENT);
    answer(MAJORITY_TAKE, 2, GRANTED(9));
    assert_false(update.is_answered);
    answer(MAJORITY_RENEW, 1, GRANTED(9));
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_GRANTED);
}

static void a_renewal_that_fails_is_lost_only_if_that_is_sure(void **state)
{
    begin(LEASE_TAKE, 0);
    for (int i = 0; i < 3; i++) {
        answer(MAJORITY_TAKE, i, GRANTED(9));
    }
    begin(LEASE_RENEW, 9);
    answer(MAJORITY_RENEW, 0, GRANTED(9));
    answer(MAJORITY_RENEW, 1, SILENT);
    answer(MAJORITY_RENEW, 2, FREE);
    assert_int_equal(update.outcome, LEASE_NO_ANSWER); /* the silent one may have it */
    begin(LEASE_RENEW, 9);
    answer(MAJORITY_RENEW, 0, HELD(1, 10, 500));
    answer(MAJORITY_RENEW, 1, HELD(1, 10, 500));
    assert_true(update.is_answered);
    assert_int_equal(update.outcome, LEASE_HELD);
    assert_true(update.like == 0 || update.like == 1);
}

static void a_look_is_answered_by_all(void **state)
{
    begin(LEASE_LOOK, 0);
    answer(MAJORITY_LOOK, 0, FREE);
    answer(MAJORITY_LOOK, 1, HELD(1, 4, 100));
    assert_false(update.is_answered);
    answer(MAJORITY_LOOK, 2, SILENT);
    assert_int_equal(update.outcome, LEASE_NO_ANSWER); /* one is not enough to hold it */
    begin(LEASE_LOOK, 0);
    answer(MAJORITY_LOOK, 0, NOT_YET(300));
    answer(MAJORITY_LOOK, 1, NOT_YET(100));
    answer(MAJORITY_LOOK, 2, FREE);
    assert_int_equal(update.outcome, LEASE_NOT_YET);
    assert_int_equal(update.left.ns, SPAN_MS(100).ns);
    begin(LEASE_LOOK, 0);
    answer(MAJORITY_LOOK, 0, FREE);
    answer(MAJORITY_LOOK, 1, NOT_YET(50));
    answer(MAJORITY_LOOK, 2, FREE);
    assert_int_equal(update.outcome, LEASE_FREE);
    begin(LEASE_LOOK, 0);
    answer(MAJORITY_LOOK, 0, SILENT);
    answer(MAJORITY_LOOK, 1, SILENT);
    answer(MAJORITY_LOOK, 2, FREE);
    assert_int_equal(update.outcome, LEASE_NO_ANSWER);
}

static void giving_up_gives_back_all_and_what_is_still_to_come(void **state)
{
    struct majority_order late = {.type = MAJORITY_TAKE, .server = 2};
    struct majority_reply granted = GRANTED(9);

    begin(LEASE_TAKE, 0);
    late.round = majority.round;
    answer(MAJORITY_TAKE, 0, GRANTED(9));
    answer(MAJORITY_TAKE, 1, GRANTED(9));
    begin(LEASE_RELEASE, 9);
    assert_int_equal(update.order_count, 2);
    assert_int_equal(update.orders[1].type, MAJORITY_RELEASE);
    majority_answer(&majority, &late, &granted, &update);
    assert_int_equal(update.order_count, 1);
    assert_int_equal(update.orders[0].server, 2);
    begin(LEASE_RELEASE, LEASE_EPOCH_UNKNOWN);
    assert_int_equal(update.order_count, 3);
}

/* ---- A world --------------------------------------------------------------------------------- */

enum {
    SERVERS = 3,
    NODES = 3,
    FLIGHTS_MAX = 512,
    LEASE_MS = 1000,
    WORLD_STEPS = 40000,
    CALM_STEPS = 8000
};

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 11) % below;
}

/* One server, as the scripts have it. It forgets when it restarts, and then waits a lease. */
struct server {
    uint64_t holder; /* node number + 1; 0: nobody */
    int64_t ends_ms;
    uint64_t epoch;
    int64_t down_until_ms;
    int64_t gives_from_ms;
    int64_t clock_ahead_ms; /* of what it calls the time, for epochs */
};

struct node {
    struct lease lease;
    struct lease_update update;
    struct majority majority;
    uint32_t request;
    int64_t paused_until_ms;
};

/* An order on its way, then its answer on its way back. */
struct flight {
    bool is_used;
    bool is_back;
    int64_t due_ms;
    int node;
    struct majority_order order;
    struct majority_reply reply;
};

static struct server servers[SERVERS];
static struct node nodes[NODES];
static struct flight flights[FLIGHTS_MAX];
static struct lease_settings settings;
static int64_t now_ms;
static uint64_t highest_epoch;
static int leaderships;
/* Epochs outlive a server that forgets by its clock, or clocks that differ by its memory. */
static bool forgets;

static instant now(void)
{
    return (instant){now_ms * 1000000};
}

static void fly(int node, const struct majority_order *order)
{
    for (int i = 0; i < FLIGHTS_MAX; i++) {
        if (!flights[i].is_used) {
            flights[i] = (struct flight){.is_used = true,
                                         .due_ms = now_ms + 1 + chance(chance(10) ? 5 : 300),
                                         .node = node,
                                         .order = *order};
            return;
        }
    }
    fail_msg("too many on their way");
}

static void step(int number, const struct lease_input *input);

static void act(int number, const struct majority_update *from)
{
    for (int i = 0; i < from->order_count; i++) {
        fly(number, &from->orders[i]);
    }
    if (from->is_answered && from->request == nodes[number].request) {
        struct lease_input input = {.type = LEASE_IN_REPLY,
                                    .reply = {.request = from->request,
                                              .outcome = from->outcome,
                                              .epoch = from->epoch,
                                              .left = from->left}};
        step(number, &input);
    }
}

static void step(int number, const struct lease_input *input)
{
    struct node *node = &nodes[number];
    struct lease_update result;

    lease_step(&node->lease, &settings, input, now(), chance(UINT32_MAX), &node->update);
    result = node->update;
    for (uint32_t i = 0; i < result.event_count; i++) {
        if (result.events[i].type == LEASE_EV_ACQUIRED) {
            assert_true(result.events[i].epoch > highest_epoch); /* epochs only grow */
            highest_epoch = result.events[i].epoch;
            leaderships++;
        }
    }
    for (uint32_t i = 0; i < result.command_count; i++) {
        struct majority_update orders;
        if (result.commands[i].type == LEASE_RELEASE &&
            result.commands[i].epoch == LEASE_EPOCH_UNKNOWN) {
            continue; /* as a driver does that goes on under this id */
        }
        node->request = result.commands[i].request;
        majority_begin(&node->majority, &result.commands[i], &orders);
        act(number, &orders);
    }
}

static uint64_t grant(struct server *server, int node, uint64_t above, uint64_t least)
{
    uint64_t time = (uint64_t)(now_ms + server->clock_ahead_ms);

    server->epoch = server->epoch > above ? server->epoch + 1 : above + 1;
    if (least > 0) {
        server->epoch = server->epoch > least ? server->epoch : least;
    } else {
        server->epoch = server->epoch > time ? server->epoch : time;
    }
    server->holder = (uint64_t)node + 1;
    server->ends_ms = now_ms + LEASE_MS;
    return server->epoch;
}

static struct majority_reply held(const struct server *server)
{
    return (struct majority_reply){.outcome = LEASE_HELD,
                                   .holder = server->holder,
                                   .epoch = server->epoch,
                                   .left = SPAN_MS(server->ends_ms - now_ms)};
}

static struct majority_reply serve(struct server *server, int node,
                                   const struct majority_order *order)
{
    struct majority_reply reply = {.outcome = LEASE_FREE};
    bool is_ours = server->holder == (uint64_t)node + 1;

    if (order->type == MAJORITY_TAKE) {
        if (server->holder && !is_ours) {
            return held(server);
        }
        if (now_ms < server->gives_from_ms) {
            reply.outcome = LEASE_NOT_YET;
            reply.left = SPAN_MS(server->gives_from_ms - now_ms);
            return reply;
        }
        reply.outcome = LEASE_GRANTED;
        if (is_ours && server->epoch > order->epoch && server->epoch >= order->least) {
            server->ends_ms = now_ms + LEASE_MS;
            reply.epoch = server->epoch;
        } else {
            reply.epoch = grant(server, node, order->epoch, order->least);
        }
        return reply;
    }
    if (order->type == MAJORITY_LOOK || !is_ours || server->epoch != order->epoch) {
        return server->holder ? held(server) : reply;
    }
    reply.outcome = LEASE_GRANTED;
    if (order->type == MAJORITY_RENEW) {
        server->ends_ms = now_ms + LEASE_MS;
    } else if (order->type == MAJORITY_RAISE) {
        server->epoch = order->least;
    } else {
        server->holder = 0;
    }
    reply.epoch = server->epoch;
    return reply;
}

/* Down, or lost on one of both ways: no answer, a while later. */
static void arrive(struct flight *flight)
{
    struct server *server = &servers[flight->order.server];
    bool is_lost = chance(30) == 0;

    if (flight->is_back) {
        struct majority_update result;
        struct flight done = *flight;
        flight->is_used = false;
        majority_answer(&nodes[done.node].majority, &done.order, &done.reply, &result);
        act(done.node, &result);
        return;
    }
    if (now_ms < server->down_until_ms || (is_lost && chance(2))) {
        flight->reply = (struct majority_reply){.outcome = LEASE_NO_ANSWER};
    } else {
        flight->reply = serve(server, flight->node, &flight->order);
        if (is_lost) {
            flight->reply = (struct majority_reply){.outcome = LEASE_NO_ANSWER};
        }
    }
    flight->is_back = true;
    flight->due_ms = now_ms + 1 + (is_lost ? 200 : chance(chance(10) ? 5 : 300));
}

static int count_leaders(void)
{
    int leaders = 0;

    for (int i = 0; i < NODES; i++) {
        leaders += nodes[i].update.held && instant_before(now(), nodes[i].update.end);
    }
    return leaders;
}

static void turn(void)
{
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].holder && servers[i].ends_ms <= now_ms) {
            servers[i].holder = 0;
        }
    }
    for (int i = 0; i < FLIGHTS_MAX; i++) {
        if (flights[i].is_used && flights[i].due_ms <= now_ms &&
            (!flights[i].is_back || nodes[flights[i].node].paused_until_ms <= now_ms)) {
            arrive(&flights[i]);
        }
    }
    for (int i = 0; i < NODES; i++) {
        struct lease_input tick = {.type = LEASE_IN_TICK};
        if (nodes[i].paused_until_ms <= now_ms &&
            !instant_before(now(), nodes[i].update.deadline)) {
            step(i, &tick);
        }
    }
    assert_true(count_leaders() <= 1);
}

/* One server at a time restarts, with its data or without; nodes stop, and resign. */
static void trouble(void)
{
    int which = (int)chance(SERVERS);
    struct lease_input resign = {.type = LEASE_IN_RESIGN};

    if (chance(3000) == 0) {
        servers[which].down_until_ms = now_ms + chance(1500);
        if (forgets && chance(2)) {
            servers[which].holder = 0;
            servers[which].epoch = 0;
            servers[which].gives_from_ms = servers[which].down_until_ms + LEASE_MS;
        }
    }
    if (chance(2000) == 0) {
        nodes[chance(NODES)].paused_until_ms = now_ms + chance(2500);
    }
    if (chance(1500) == 0) {
        int node = (int)chance(NODES);
        if (nodes[node].update.held && nodes[node].paused_until_ms <= now_ms) {
            step(node, &resign);
        }
    }
}

static void run_world(uint64_t number)
{
    struct lease_input up = {.type = LEASE_IN_UP};

    seed = number * 2654435761u + 1;
    memset(servers, 0, sizeof(servers));
    memset(nodes, 0, sizeof(nodes));
    memset(flights, 0, sizeof(flights));
    now_ms = 1000000;
    forgets = number % 2 == 0;
    highest_epoch = 0;
    lease_settings_default(&settings);
    settings.lease = SPAN_MS(LEASE_MS);
    settings.renew_interval = SPAN_MS(LEASE_MS / 3);
    settings.check_interval = SPAN_MS(300);
    settings.answer_timeout = SPAN_MS(250);
    settings.spread_max = SPAN_MS(100);
    for (int i = 0; i < SERVERS; i++) {
        servers[i].clock_ahead_ms = forgets ? 0 : (int64_t)chance(100000) - 50000;
    }
    for (int i = 0; i < NODES; i++) {
        majority_init(&nodes[i].majority, SERVERS);
        lease_init(&nodes[i].lease, true, 0);
        step(i, &up);
    }
    for (int i = 0; i < WORLD_STEPS; i++) {
        now_ms++;
        trouble();
        turn();
    }
    for (int i = 0; i < CALM_STEPS; i++) {
        now_ms++;
        turn();
    }
    assert_int_equal(count_leaders(), 1); /* no trouble, no excuse */
}

enum { WORLDS = OF_CHANCE(100) };

static void no_instant_has_two_leaders_and_epochs_only_grow(void **state)
{
    leaderships = 0;
    for (uint64_t number = 1; number <= WORLDS; number++) {
        run_world(number);
    }
    assert_true(leaderships > 10 * WORLDS); /* it was worth looking */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        CASE(two_of_three_are_enough),
        CASE(the_greatest_epoch_is_on_record_before_it_counts),
        CASE(one_of_three_is_given_back),
        CASE(a_lock_that_is_torn_is_asked_for_again),
        CASE(a_grant_that_comes_late_is_given_back_or_kept),
        CASE(a_renewal_takes_the_lock_on_servers_that_were_unreachable_before),
        CASE(a_renewal_that_fails_is_lost_only_if_that_is_sure),
        CASE(a_look_is_answered_by_all),
        CASE(giving_up_gives_back_all_and_what_is_still_to_come),
        CASE(no_instant_has_two_leaders_and_epochs_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
