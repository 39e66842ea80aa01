/* Dates and days are each other's inverse, and agree with the C library. */
#include "cmocka_all.h"
#include "cron/calendar.h"

#include <time.h>

static void days_and_dates_agree_with_the_c_library(void **state)
{
    for (int64_t day = -200000; day < 200000; day++) {
        time_t at = (time_t)(day * CALENDAR_DAY_S);
        struct calendar_date date = calendar_date(day);
        struct tm tm;
        assert_non_null(gmtime_r(&at, &tm));
        assert_int_equal(date.year, tm.tm_year + 1900);
        assert_int_equal(date.month, tm.tm_mon + 1);
        assert_int_equal(date.day, tm.tm_mday);
        assert_int_equal(calendar_weekday(day), tm.tm_wday);
        assert_int_equal(calendar_day(&date), day);
    }
}

static void division_rounds_down(void **state)
{
    assert_int_equal(calendar_divide(-1, 10), -1);
    assert_int_equal(calendar_divide(-10, 10), -1);
    assert_int_equal(calendar_divide(9, 10), 0);
}

static void an_instant_is_shown_in_utc(void **state)
{
    char text[CALENDAR_TEXT_BYTES];
    assert_string_equal(calendar_text(text, 1795608001), "2026-11-25T12:00:01Z");
    assert_string_equal(calendar_text(text, -1), "1969-12-31T23:59:59Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_agree_with_the_c_library),
        cmocka_unit_test(division_rounds_down),
        cmocka_unit_test(an_instant_is_shown_in_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
