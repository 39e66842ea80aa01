/* Schedules are read whole or refused, and fire when they say. Whole years: test_brute.c. */
#include "cmocka_all.h"
#include "cron/schedule.h"

#include <string.h>

/* 2026-11-25 12:00:00 UTC, a Wednesday. */
#define NOON INT64_C(1795608000)

static const struct calendar_zone utc;

static int64_t next(const char *text, int64_t after_s)
{
    struct cron_schedule schedule;
    const char *rest;

    assert_int_equal(cron_schedule_parse(&schedule, text, &rest, NULL), 0);
    assert_string_equal(rest, "");
    return cron_next(&schedule, &utc, after_s);
}

static void expect_refused(const char *text, const char *why)
{
    struct cron_schedule schedule;
    struct baton_error error = {0};
    const char *rest;

    assert_int_equal(cron_schedule_parse(&schedule, text, &rest, &error), BATON_EINVAL);
    if (!strstr(error.message, why)) {
        fail_msg("%s: '%s' does not say '%s'", text, error.message, why);
    }
}

static void fields_are_numbers_names_ranges_steps_and_lists(void **state)
{
    assert_int_equal(next("5 12 * * *", NOON), NOON + 300);
    assert_int_equal(next("0-10/4,59 12 * * *", NOON), NOON + 240);
    assert_int_equal(next("0-10/4,59 12 * * *", NOON + 480), NOON + 59 * 60);
    assert_int_equal(next("0 0 * DEC *", NOON), NOON + 5 * 86400 + 12 * 3600);
    assert_int_equal(next("0 0 * * Fri", NOON), NOON + 86400 + 12 * 3600);
    assert_int_equal(next("0 0 * * sat-sun", NOON), NOON + 2 * 86400 + 12 * 3600);
    assert_int_equal(next("0 0 * * 7", NOON), NOON + 3 * 86400 + 12 * 3600);
    assert_int_equal(next("0 0 * * 0", NOON), NOON + 3 * 86400 + 12 * 3600);
}

static void a_restricted_day_or_a_restricted_weekday_is_enough(void **state)
{
    assert_int_equal(next("0 0 27 * thu", NOON), NOON + 12 * 3600);
    assert_int_equal(next("0 0 27 * thu", NOON + 86400), NOON + 86400 + 12 * 3600);
    assert_int_equal(next("0 0 */13 * thu", NOON), next("0 0 14 1 *", NOON) - 0); /* Thursday */
}

static void a_sixth_field_puts_seconds_in_front(void **state)
{
    assert_int_equal(next("*/5 * * * * *", NOON), NOON + 5);
    assert_int_equal(next("30 0 12 * * mon-fri", NOON), NOON + 30);
    assert_int_equal(next("30 0 12 * * mon-fri", NOON + 30), NOON + 86400 + 30);
}

static void what_follows_is_the_command(void **state)
{
    struct cron_schedule schedule;
    const char *rest;
    assert_int_equal(cron_schedule_parse(&schedule, "* *\t * * *  /bin/a  b", &rest, NULL), 0);
    assert_string_equal(rest, "/bin/a  b");
    assert_int_equal(cron_schedule_parse(&schedule, "* * * * * * 5 5", &rest, NULL), 0);
    assert_string_equal(rest, "5 5");
    assert_int_equal(cron_schedule_parse(&schedule, "* * * * * monitor", &rest, NULL), 0);
    assert_string_equal(rest, "monitor");
    assert_int_equal(cron_schedule_parse(&schedule, "@daily backup", &rest, NULL), 0);
    assert_string_equal(rest, "backup");
    assert_int_equal(cron_schedule_parse(&schedule, "@every 90s * *", &rest, NULL), 0);
    assert_string_equal(rest, "* *");
}

static void nicknames_are_schedules(void **state)
{
    assert_int_equal(next("@hourly", NOON), NOON + 3600);
    assert_int_equal(next("@daily", NOON), NOON + 12 * 3600);
    assert_int_equal(next("@midnight", NOON), NOON + 12 * 3600);
    assert_int_equal(next("@weekly", NOON), NOON + 3 * 86400 + 12 * 3600);
    assert_int_equal(next("@monthly", NOON), NOON + 5 * 86400 + 12 * 3600);
    assert_int_equal(next("@yearly", NOON), NOON + 36 * 86400 + 12 * 3600);
    assert_int_equal(next("@annually", NOON), next("@yearly", NOON));
}

static void every_fires_at_multiples_of_its_period(void **state)
{
    assert_int_equal(next("@every 10s", NOON), NOON + 10);
    assert_int_equal(next("@every 10s", NOON + 3), NOON + 10);
    assert_int_equal(next("@every 1h", NOON - 1), NOON);
}

static void mistakes_are_named(void **state)
{
    expect_refused("60 * * * *", "minute '60': must be from 0 to 59");
    expect_refused("* 24 * * *", "hour '24': must be from 0 to 23");
    expect_refused("* * 0 * *", "day of the month '0'");
    expect_refused("* * * 13 *", "month '13'");
    expect_refused("* * * * 8", "day of the week '8'");
    expect_refused("* * * * funday", "day of the week 'funday'");
    expect_refused("5-1 * * * *", "begins with the smaller number");
    expect_refused("5/15 * * * *", "a step needs a range");
    expect_refused("*/0 * * * *", "the step must be");
    expect_refused("*/90 * * * *", "the step must be");
    expect_refused("*/99999999999999999999 * * * *", "the step must be");
    expect_refused("1, * * * *", "minute '1,'");
    expect_refused("1-", "minute '1-': the range has no end");
    expect_refused("* * *", "the month is missing");
    expect_refused("L * * * *", "minute 'L'");
    expect_refused("@reboot", "'@reboot': there are");
    expect_refused("@every", "@every");
    expect_refused("@every 1500ms", "must be whole seconds");
    expect_refused("@every 0", "1s at least");
}

static void a_date_that_never_comes_is_refused(void **state)
{
    expect_refused("0 0 31 4,6 *", "never fires");
    expect_refused("0 0 30 feb *", "never fires");
    assert_int_not_equal(next("0 0 29 feb */6", NOON), INT64_MAX); /* a weekend */
}

static void the_latest_fire_is_found_at_once_however_many_there_were(void **state)
{
    struct cron_schedule schedule;
    const char *rest;
    assert_int_equal(cron_schedule_parse(&schedule, "* * * * * *", &rest, NULL), 0);
    assert_int_equal(cron_latest(&schedule, &utc, 0, NOON), NOON);
    assert_int_equal(cron_latest(&schedule, &utc, NOON, NOON), INT64_MAX);
    assert_int_equal(cron_schedule_parse(&schedule, "0 12 1 1 *", &rest, NULL), 0);
    assert_int_equal(cron_latest(&schedule, &utc, 0, NOON), next("0 12 1 1 *", NOON - 340 * 86400));
    assert_int_equal(cron_latest(&schedule, &utc, NOON - 86400, NOON), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_numbers_names_ranges_steps_and_lists),
        cmocka_unit_test(a_restricted_day_or_a_restricted_weekday_is_enough),
        cmocka_unit_test(a_sixth_field_puts_seconds_in_front),
        cmocka_unit_test(what_follows_is_the_command),
        cmocka_unit_test(nicknames_are_schedules),
        cmocka_unit_test(every_fires_at_multiples_of_its_period),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_date_that_never_comes_is_refused),
        cmocka_unit_test(the_latest_fire_is_found_at_once_however_many_there_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
