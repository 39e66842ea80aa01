#include "cmocka_all.h"
#include "detector/program/rates.h"

static instant at_s(int seconds)
{
    return instant_add((instant){1000}, SPAN_S(seconds));
}

static void look(struct rates **rates, const char *identifier, uint64_t frames, int seconds)
{
    const struct camera_stats stats = {
        .received = frames * 2, .decoded = frames, .dropped = frames / 2, .shown = frames / 4};

    rates_count(rates, identifier, &stats, at_s(seconds));
}

static double decoded(const struct rates *rates, const char *identifier)
{
    double figures[RATE_COUNT];

    rates_of(rates, identifier, figures);
    return figures[RATE_DECODED];
}

static void forget(struct rates **rates)
{
    rates_sweep(rates);
    rates_sweep(rates);
    assert_null(*rates);
}

static void a_rate_is_the_growth_over_the_last_window(void **state)
{
    struct rates *rates = NULL;
    double figures[RATE_COUNT];

    (void)state;
    look(&rates, "a;1", 1000, 0);
    assert_true(decoded(rates, "a;1") == 0);
    look(&rates, "a;1", 1016, 1); /* of the first window, as far as it is known */
    assert_true(decoded(rates, "a;1") == 16);
    look(&rates, "a;1", 1200, 5);
    rates_of(rates, "a;1", figures);
    assert_true(figures[RATE_RECEIVED] == 80 && figures[RATE_DECODED] == 40);
    assert_true(figures[RATE_DROPPED] == 20 && figures[RATE_SHOWN] == 10);
    look(&rates, "a;1", 1200, 9); /* not yet over */
    assert_true(decoded(rates, "a;1") == 40);
    look(&rates, "a;1", 1200, 10); /* a camera that stands still shows so */
    assert_true(decoded(rates, "a;1") == 0);
    forget(&rates);
}

static void a_counter_that_went_back_begins_anew(void **state)
{
    struct rates *rates = NULL;

    (void)state;
    look(&rates, "a;1", 1000, 0);
    look(&rates, "a;1", 1100, 5);
    look(&rates, "a;1", 4, 6);
    assert_true(decoded(rates, "a;1") == 0);
    look(&rates, "a;1", 24, 8);
    assert_true(decoded(rates, "a;1") == 10);
    forget(&rates);
}

static void who_is_not_looked_at_any_more_is_forgotten(void **state)
{
    struct rates *rates = NULL;

    (void)state;
    for (int second = 0; second <= 5; second += 5) {
        look(&rates, "a;1", (uint64_t)second * 10, second);
        look(&rates, "b;1", (uint64_t)second * 20, second);
        rates_sweep(&rates);
    }
    look(&rates, "a;1", 60, 6);
    rates_sweep(&rates);
    assert_true(decoded(rates, "a;1") == 10);
    assert_true(decoded(rates, "b;1") == 0);
    look(&rates, "a;1", 60, 6); /* twice in one moment */
    forget(&rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_is_the_growth_over_the_last_window),
        cmocka_unit_test(a_counter_that_went_back_begins_anew),
        cmocka_unit_test(who_is_not_looked_at_any_more_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
