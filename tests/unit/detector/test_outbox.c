/* What waits for a backend, and another bound for it while it waits. */
#include "cmocka_all.h"
#include "detector/outbox.h"

#include <string.h>

static struct outbox outbox;

static int tear_down(void **state)
{
    (void)state;
    outbox_fini(&outbox);
    return 0;
}

/* "abc": three detections, of a, b and c. */
static void put(const char *names)
{
    for (; *names != '\0'; names++) {
        struct detection detection = {.identifier = strndup(names, 1)};
        (void)outbox_put(&outbox, &detection);
        assert_null(detection.identifier);
    }
}

static void hand_over(const char *names)
{
    for (; *names != '\0'; names++) {
        const struct detection *next = outbox_next(&outbox);
        assert_non_null(next);
        assert_int_equal(next->identifier[0], *names);
        outbox_hand_over(&outbox, false);
    }
}

static size_t set_max(size_t waiting_max)
{
    size_t dropped = 99;

    assert_int_equal(outbox_set_max(&outbox, waiting_max, &dropped), 0);
    return dropped;
}

static void a_lower_bound_drops_the_oldest_that_wait(void **state)
{
    (void)state;
    assert_int_equal(outbox_init(&outbox, 4), 0);
    put("abcdef"); /* a and b are gone already */
    hand_over("c");
    assert_int_equal(set_max(2), 1);
    assert_int_equal(outbox.handed, 1);
    put("g");
    hand_over("fg");
    assert_null(outbox_next(&outbox));
    /* What was handed over waits again, within the new bound. */
    assert_int_equal(outbox_recall(&outbox), 1);
    hand_over("fg");
}

static void a_higher_bound_keeps_all_and_their_order(void **state)
{
    (void)state;
    assert_int_equal(outbox_init(&outbox, 2), 0);
    put("abc");
    hand_over("b");
    put("de"); /* c is gone */
    assert_int_equal(set_max(4), 0);
    put("fg");
    hand_over("defg");
    assert_null(outbox_next(&outbox));
    assert_int_equal(outbox_recall(&outbox), 1);
    hand_over("defg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_lower_bound_drops_the_oldest_that_wait, tear_down),
        cmocka_unit_test_teardown(a_higher_bound_keeps_all_and_their_order, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
