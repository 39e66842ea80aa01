/* Dates and days are each other's inverse, and agree with the C library. */
#include "cmocka_all.h"
#include "cron/calendar.h"

#include <time.h>

static void days_and_dates_agree_with_the_c_library(void **state)
{
    (void)state;
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
    (void)state;
    assert_int_equal(calendar_divide(-1, 10), -1);
    assert_int_equal(calendar_divide(-10, 10), -1);
    assert_int_equal(calendar_divide(9, 10), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_agree_with_the_c_library),
        cmocka_unit_test(division_rounds_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
