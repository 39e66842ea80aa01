#include "cmocka_all.h"

#include "detector/camera/pace.h"

/* How many of `count` frames at `fps` are shown when `cap` a second are wanted. */
static int shown(int count, int fps, int cap, int jitter_ms)
{
    struct pace pace = {0};
    int number = 0;

    for (int i = 0; i < count; i++) {
        int64_t jitter = i % 2 == 0 ? jitter_ms : -jitter_ms;
        instant at = {1000000000000 + (int64_t)i * 1000000000 / fps + jitter * 1000000};
        number += pace_is_due(&pace, at, SPAN_NS(cap > 0 ? 1000000000 / cap : 0));
    }
    return number;
}

/* Also if the cap does not divide the rate, and if frames jitter. */
static void the_cap_is_met(void **state)
{
    static const struct {
        int fps, cap, jitter_ms, least, most;
    } rows[] = {
        {15, 0, 0, 1500, 1500},  {15, 10, 0, 990, 1010},  {15, 5, 0, 495, 505},
        {15, 15, 0, 1495, 1500}, {15, 30, 0, 1500, 1500}, {15, 5, 10, 490, 510},
        {15, 15, 3, 1480, 1500},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_in_range(shown(1500, rows[i].fps, rows[i].cap, rows[i].jitter_ms), rows[i].least,
                        rows[i].most);
    }
}

static void a_pause_is_not_made_up_for(void **state)
{
    struct pace pace = {0};
    instant at = {1000000000000};

    assert_true(pace_is_due(&pace, at, SPAN_MS(100)));
    at = instant_add(at, SPAN_S(60));
    assert_true(pace_is_due(&pace, at, SPAN_MS(100)));
    assert_false(pace_is_due(&pace, instant_add(at, SPAN_MS(10)), SPAN_MS(100)));
    assert_false(pace_is_due(&pace, instant_add(at, SPAN_MS(80)), SPAN_MS(100)));
    assert_true(pace_is_due(&pace, instant_add(at, SPAN_MS(100)), SPAN_MS(100)));
}

/* Each restart is over after a second; tries before that fail. Returns the longest pause, in ms. */
static int64_t longest_pause(int restarts, span online, uint32_t random)
{
    int64_t longest = 0;
    unsigned failures = 0;

    for (int i = 0; i < restarts; i++) {
        span away = {0};
        failures = failures_after(failures, online);
        while (away.ns < SPAN_MS(1000).ns) {
            span pause = backoff_after(failures, SPAN_MS(1000), SPAN_MS(60000), random);
            longest = pause.ns > longest ? pause.ns : longest;
            away.ns += pause.ns;
            failures = away.ns < SPAN_MS(1000).ns ? failures_after(failures, SPAN_MS(0)) : failures;
        }
    }
    return longest / 1000000;
}

static void a_camera_that_restarts_again_and_again_is_tried_again_soon(void **state)
{
    const uint32_t randoms[] = {0, UINT32_MAX / 2, UINT32_MAX};

    for (unsigned i = 0; i < sizeof(randoms) / sizeof(randoms[0]); i++) {
        assert_in_range(longest_pause(6, SPAN_MS(2000), randoms[i]), 500, 2000);
        assert_in_range(longest_pause(6, SPAN_MS(800), randoms[i]), 500, 4000);
        assert_in_range(longest_pause(1000, SPAN_MS(1), randoms[i]), 500, 4000);
    }
    assert_int_equal(failures_after(100, SPAN_MS(1)), 3);
}

static void a_refused_password_is_tried_a_few_times_far_apart(void **state)
{
    const span max = SPAN_S(60);

    assert_true(refusal_pause_after(1, max, 0).ns == SPAN_S(60).ns);
    assert_true(refusal_pause_after(2, max, 0).ns == SPAN_S(1800).ns);
    assert_in_range(refusal_pause_after(9, max, UINT32_MAX).ns, SPAN_S(900).ns, SPAN_S(901).ns);
}

static void half_of_the_time_is_not_for_starts(void **state)
{
    const instant began = {1000000000000};
    const int64_t took_us[] = {0, 5000, 20000, 9000000};
    const int64_t rest_us[] = {1000, 5000, 20000, 100000};

    for (unsigned i = 0; i < sizeof(took_us) / sizeof(took_us[0]); i++) {
        instant ended = instant_add(began, SPAN_US(took_us[i]));
        assert_true(start_after(began, ended).ns == instant_add(ended, SPAN_US(rest_us[i])).ns);
    }
}

static double count(struct rate *rate, uint64_t count, int seconds)
{
    return rate_count(rate, count, instant_add((instant){1000}, SPAN_S(seconds)));
}

static void a_rate_is_the_growth_over_the_last_window(void **state)
{
    static const struct {
        uint64_t count;
        int seconds;
        double rate;
    } rows[] = {
        {1000, 0, 0},  /* it begins */
        {1016, 1, 16}, /* of the first window, as far as it is known */
        {1016, 1, 16}, /* the same moment */
        {1200, 5, 40}, /* a whole window */
        {1200, 9, 40}, /* not yet over */
        {1200, 10, 0}, /* a camera that stands still shows so */
        {1300, 30, 5}, /* nobody has looked for long */
    };
    struct rate rate = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(count(&rate, rows[i].count, rows[i].seconds) == rows[i].rate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_is_met),
        cmocka_unit_test(a_pause_is_not_made_up_for),
        cmocka_unit_test(a_camera_that_restarts_again_and_again_is_tried_again_soon),
        cmocka_unit_test(a_refused_password_is_tried_a_few_times_far_apart),
        cmocka_unit_test(half_of_the_time_is_not_for_starts),
        cmocka_unit_test(a_rate_is_the_growth_over_the_last_window),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_pace", tests, NULL, NULL);
}
