#include "base/value.h"

#include "cmocka_all.h"

#include <string.h>

static void a_duration_needs_its_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {{"0", 0},
                {"250us", 250000},
                {"15ms", 15000000},
                {"1.5s", 1500000000},
                {"2m", 120000000000},
                {"1h", 3600000000000}};
    static const char *const bad[] = {"",    "5",    "ms",  "-5s",  "1..5s",    "5 s",
                                      "inf", "0x1s", "5ss", "1e9s", "9999999d", ".s"};
    struct baton_error error;
    span length;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(value_duration(good[i].text, &length, &error), 0);
        assert_int_equal(length.ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(value_duration(bad[i], &length, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, bad[i]));
    }
}

static void a_range_is_two_durations_in_order(void **state)
{
    struct baton_error error;
    span min;
    span max;
    assert_int_equal(value_range("150ms-0.3s", &min, &max, &error), 0);
    assert_int_equal(min.ns, SPAN_MS(150).ns);
    assert_int_equal(max.ns, SPAN_MS(300).ns);
    assert_int_equal(value_range("5ms", &min, &max, &error), 0);
    assert_int_equal(max.ns, SPAN_MS(5).ns);
    assert_int_equal(value_range("3s-1s", &min, &max, &error), BATON_EINVAL);
    assert_int_equal(value_range("1s-", &min, &max, &error), BATON_EINVAL);
    assert_int_equal(value_range("-1s", &min, &max, &error), BATON_EINVAL);
}

static void a_number_is_whole_and_within_its_bounds(void **state)
{
    int64_t number;
    struct baton_error error;
    assert_int_equal(value_number("-3", -5, 5, &number, &error), 0);
    assert_int_equal(number, -3);
    static const char *const bad[] = {"",   "6",  "-6",  "1.0",
                                      " 1", "1 ", "0x1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(value_number(bad[i], -5, 5, &number, &error), BATON_EINVAL);
    }
}

static void a_choice_is_one_of_the_words_and_no_part_of_one(void **state)
{
    struct baton_error error;
    assert_int_equal(value_choice("lan", "default|lan|wan", &error), 1);
    assert_int_equal(value_choice("wan", "default|lan|wan", &error), 2);
    assert_int_equal(value_choice("la", "default|lan|wan", &error), BATON_EINVAL);
    assert_int_equal(value_choice("", "default|lan|wan", &error), BATON_EINVAL);
    assert_int_equal(value_choice("lan|wan", "default|lan|wan", &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "default|lan|wan"));
}

static void an_address_has_a_host_and_a_port(void **state)
{
    struct baton_error error;
    char host[64];
    int port;
    assert_int_equal(value_address("[::1]:80", false, host, sizeof(host), &port, &error), 0);
    assert_string_equal(host, "::1");
    assert_int_equal(port, 80);
    static const char *const bad[] = {"", "a", ":80", "a:", "a:0", "a:65536", "a:b", "::1:80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(value_address(bad[i], false, host, sizeof(host), &port, &error),
                         BATON_EINVAL);
    }
}

static void what_is_wrong_with_an_address_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"http://a:80", "without http://"},
        {"http://[::1]:80", "without http://"},
        {"::1:80", "write an IPv6 address as [ADDR]:PORT"},
    };
    struct baton_error error;
    char host[64];
    int port;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(value_address(cases[i][0], false, host, sizeof(host), &port, &error),
                         BATON_EINVAL);
        assert_non_null(strstr(error.message, cases[i][1]));
    }
}

static void a_length_of_time_is_printed_with_three_digits(void **state)
{
    char text[VALUE_TEXT_MAX];
    assert_string_equal(value_format_span(SPAN_US(412), text), "0.412 ms");
    assert_string_equal(value_format_span(SPAN_MS(150), text), "150 ms");
    assert_string_equal(value_format_span(SPAN_MS(4982), text), "4.98 s");
    assert_string_equal(value_format_span(SPAN_NS(0), text), "0 ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_needs_its_unit),
        cmocka_unit_test(a_range_is_two_durations_in_order),
        cmocka_unit_test(a_number_is_whole_and_within_its_bounds),
        cmocka_unit_test(a_choice_is_one_of_the_words_and_no_part_of_one),
        cmocka_unit_test(an_address_has_a_host_and_a_port),
        cmocka_unit_test(what_is_wrong_with_an_address_is_named),
        cmocka_unit_test(a_length_of_time_is_printed_with_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
