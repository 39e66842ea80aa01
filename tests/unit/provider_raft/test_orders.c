/* An urgent order comes by both connections, and is taken once. */
#include "cmocka_all.h"
#include "provider/raft/orders.h"

#include <stdlib.h>

static void the_copy_of_an_order_is_recognised(void **state)
{
    struct orders *orders = calloc(1, sizeof(*orders));
    (void)state;

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
    (void)state;

    assert_non_null(orders);
    assert_false(orders_is_copy(orders, 7, "end 1", 5));
    orders->urgent.came = instant_add(orders->urgent.came, SPAN_MS(-500));
    assert_false(orders_is_copy(orders, 7, "end 1", 5));
    free(orders);
}

static void only_what_gives_up_is_urgent(void **state)
{
    (void)state;
    assert_true(orders_is_urgent(SESSION_END));
    assert_true(orders_is_urgent(SESSION_RESIGN));
    assert_false(orders_is_urgent(SESSION_OPEN)); /* twice, it would open two */
    assert_false(orders_is_urgent(SESSION_ENTER));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_of_an_order_is_recognised),
        cmocka_unit_test(an_order_that_is_repeated_later_is_no_copy),
        cmocka_unit_test(only_what_gives_up_is_urgent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
