#include "cmocka_all.h"

#include "detector/infer/latency.h"

static void percentiles_are_a_little_above_what_they_are(void **state)
{
    struct latency latency = {0};

    (void)state;
    assert_float_equal(latency_ms(&latency, 50), 0, 0);
    for (int ms = 1; ms <= 1000; ms++) {
        latency_add(&latency, SPAN_MS(ms));
    }
    assert_in_range((int)latency_ms(&latency, 50), 500, 546);
    assert_in_range((int)latency_ms(&latency, 99), 990, 1080);
    assert_in_range((int)latency_ms(&latency, 100), 1000, 1091);
    assert_in_range((int)(latency_ms(&latency, 0) * 1000), 1000, 1091);
}

static void the_shortest_and_the_longest_have_a_place(void **state)
{
    struct latency latency = {0};

    (void)state;
    latency_add(&latency, SPAN_NS(-5));
    latency_add(&latency, SPAN_NS(0));
    assert_float_equal(latency_ms(&latency, 99), 0.001, 1e-9);
    latency_add(&latency, (span){INT64_MAX});
    assert_true(latency_ms(&latency, 100) > 3600.0 * 1000);
}

static void what_is_long_ago_fades(void **state)
{
    struct latency latency = {0};

    (void)state;
    for (int i = 0; i < LATENCY_COUNTS_MAX; i++) {
        latency_add(&latency, SPAN_S(1));
    }
    for (int i = 0; i < 4 * LATENCY_COUNTS_MAX; i++) {
        latency_add(&latency, SPAN_MS(1));
        assert_true(latency.total <= LATENCY_COUNTS_MAX);
    }
    assert_in_range((int)(latency_ms(&latency, 99) * 1000), 1000, 1091);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_a_little_above_what_they_are),
        cmocka_unit_test(the_shortest_and_the_longest_have_a_place),
        cmocka_unit_test(what_is_long_ago_fades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
