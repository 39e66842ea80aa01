/* Which orders are proposed together; an urgent order comes by both connections, and is taken once.
 */
#include "cmocka_all.h"
#include "provider/raft/node.h"
#include "provider/raft/orders.h"

#include <stdlib.h>

enum { PROPOSED_MAX = 64 };

/* How many orders each proposal has had. */
static size_t proposed[PROPOSED_MAX], proposals;
static raft_id askers[ORDERS_MAX]; /* of the last proposal */

int __wrap_node_step(struct node *node, const struct raft_input *input);

int __wrap_node_step(struct node *node, const struct raft_input *input)
{
    assert_int_equal(input->type, RAFT_IN_PROPOSE);
    assert_true(proposals < PROPOSED_MAX);
    for (size_t i = 0; i < input->propose.count; i++) {
        askers[i] = input->propose.items[i].asker;
    }
    proposed[proposals++] = input->propose.count;
    *input->propose.ret_taken = input->propose.count;
    return BATON_OK;
}

struct fixture {
    uv_loop_t loop;
    struct node *node;
    struct orders *orders;
};

static void on_refused(struct node *node, raft_id asker, uint64_t request)
{
    fail_msg("order %llu was refused", (unsigned long long)request);
}

static int begin(void **state)
{
    static struct fixture fixture;

    assert_int_equal(uv_loop_init(&fixture.loop), 0);
    fixture.node = calloc(1, sizeof(*fixture.node));
    fixture.orders = calloc(1, sizeof(*fixture.orders));
    assert_non_null(fixture.node);
    assert_non_null(fixture.orders);
    fixture.node->loop = &fixture.loop;
    fixture.node->id = 1;
    proposals = 0;
    orders_init(fixture.orders, fixture.node, on_refused);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    orders_close(fixture->orders, NULL);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture->orders);
    free(fixture->node);
    return 0;
}

static void add(struct fixture *fixture)
{
    assert_int_equal(orders_add(fixture->orders, 1, 1, "order", 5), BATON_OK);
}

static void turn(struct fixture *fixture)
{
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
}

/* The moment for which orders wait is not over, however slow this machine is. */
static void add_and_turn(struct fixture *fixture)
{
    add(fixture);
    fixture->orders->since = INSTANT_NEVER;
    turn(fixture);
}

static void orders_that_come_turn_by_turn_are_proposed_together(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 3; i++) {
        add_and_turn(fixture);
    }
    assert_int_equal(proposals, 0);
    turn(fixture);
    assert_int_equal(proposals, 1);
    assert_int_equal(proposed[0], 3);
}

static void the_first_order_waits_for_others_for_a_moment_only(void **state)
{
    struct fixture *fixture = *state;

    add(fixture);
    turn(fixture);
    add(fixture);
    fixture->orders->since = instant_add(clock_now(), SPAN_MS(-1));
    turn(fixture);
    assert_int_equal(proposals, 1);
    assert_int_equal(proposed[0], 2);
}

static void half_of_what_may_wait_waits_for_nothing(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < ORDERS_MAX / 2; i++) {
        add(fixture);
    }
    turn(fixture);
    assert_int_equal(proposals, 1);
    assert_int_equal(proposed[0], ORDERS_MAX / 2);
}

static void what_is_flushed_is_proposed_once(void **state)
{
    struct fixture *fixture = *state;

    add_and_turn(fixture);
    orders_flush(fixture->orders);
    turn(fixture);
    assert_int_equal(proposals, 1);
    add_and_turn(fixture);
    add_and_turn(fixture);
    turn(fixture);
    assert_int_equal(proposals, 2);
    assert_int_equal(proposed[1], 2);
}

/* The core sends the commit at once to the member that it is given. */
static void the_follower_that_asks_waits_for_the_commit(void **state)
{
    static const uint8_t grant[] = {SESSION_ORDER_TAG};
    struct fixture *fixture = *state;
    struct orders *orders = fixture->orders;

    assert_int_equal(orders_add(orders, 2, 1, "order", 5), BATON_OK);
    assert_int_equal(orders_add(orders, fixture->node->id, 2, "order", 5), BATON_OK);
    assert_int_equal(orders_add(orders, 3, 3, grant, sizeof(grant)), BATON_OK);
    orders_flush(orders);
    assert_int_equal(proposed[0], 3);
    assert_int_equal(askers[0], 2);
    assert_int_equal(askers[1], RAFT_NOBODY);
    assert_int_equal(askers[2], RAFT_EVERYBODY);
}

static void the_copy_of_an_order_is_recognised(void **state)
{
    struct orders *orders = calloc(1, sizeof(*orders));

    assert_non_null(orders);
    assert_false(orders_is_copy(orders, 7, "end 1", 5));
    assert_true(orders_is_copy(orders, 7, "end 1", 5));
    assert_false(orders_is_copy(orders, 7, "end 2", 5));
    assert_false(orders_is_copy(orders, 8, "end 2", 5));
    free(orders);
}

/* The end of a session is ordered again and again until it is carried out. */
static void an_order_that_is_repeated_later_is_no_copy(void **state)
{
    struct orders *orders = calloc(1, sizeof(*orders));

    assert_non_null(orders);
    assert_false(orders_is_copy(orders, 7, "end 1", 5));
    orders->urgent.came = instant_add(orders->urgent.came, SPAN_MS(-500));
    assert_false(orders_is_copy(orders, 7, "end 1", 5));
    free(orders);
}

static void only_what_gives_up_is_urgent(void **state)
{
    assert_true(orders_is_urgent(SESSION_END));
    assert_true(orders_is_urgent(SESSION_RESIGN));
    assert_false(orders_is_urgent(SESSION_OPEN)); /* twice, it would open two */
    assert_false(orders_is_urgent(SESSION_ENTER));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(orders_that_come_turn_by_turn_are_proposed_together, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_first_order_waits_for_others_for_a_moment_only, begin,
                                        end),
        cmocka_unit_test_setup_teardown(half_of_what_may_wait_waits_for_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_is_flushed_is_proposed_once, begin, end),
        cmocka_unit_test_setup_teardown(the_follower_that_asks_waits_for_the_commit, begin, end),
        cmocka_unit_test(the_copy_of_an_order_is_recognised),
        cmocka_unit_test(an_order_that_is_repeated_later_is_no_copy),
        cmocka_unit_test(only_what_gives_up_is_urgent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
