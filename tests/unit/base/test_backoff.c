#include "cmocka_all.h"

#include "base/backoff.h"

static void pauses_double_up_to_the_cap_and_spread_over_the_upper_half(void **state)
{
    const span min = SPAN_MS(1000), max = SPAN_MS(60000);
    const int64_t whole_ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};

    for (unsigned i = 0; i < sizeof(whole_ms) / sizeof(whole_ms[0]); i++) {
        assert_true(backoff_after(i + 1, min, max, 0).ns == SPAN_MS(whole_ms[i]).ns);
        assert_in_range(backoff_after(i + 1, min, max, UINT32_MAX).ns, SPAN_MS(whole_ms[i]).ns / 2,
                        SPAN_MS(whole_ms[i]).ns / 2 + 1000);
    }
    assert_true(backoff_after(4000000000u, min, max, 0).ns == max.ns);
    assert_true(backoff_after(1, SPAN_MS(5000), SPAN_MS(100), 0).ns == SPAN_MS(100).ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_the_cap_and_spread_over_the_upper_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
