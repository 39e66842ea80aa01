#include "base/clock.h"
#include "cmocka_all.h"

static void arithmetic_saturates_at_never(void **state)
{
    assert_true(instant_add(INSTANT_NEVER, SPAN_S(-5)).ns == INT64_MAX);
    assert_true(instant_add((instant){INT64_MAX - 1}, SPAN_S(1)).ns == INT64_MAX);
    assert_true(instant_since(INSTANT_NEVER, (instant){-1}).ns == INT64_MAX);
    assert_true(instant_since(INSTANT_PAST, (instant){1}).ns == INT64_MIN);
}

static void the_clock_never_goes_back(void **state)
{
    instant last = clock_now();
    for (int i = 0; i < 1000; i++) {
        instant now = clock_now();
        assert_false(instant_before(now, last));
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_saturates_at_never),
        cmocka_unit_test(the_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
