#include "cmocka_all.h"
#include "detector/camera/rate.h"

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

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(count(&rate, rows[i].count, rows[i].seconds) == rows[i].rate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_is_the_growth_over_the_last_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
