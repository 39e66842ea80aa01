/* The next instant of a schedule is the one that a person finds who looks at a local clock minute
 * by minute, for months, in zones whose clocks do all that clocks do. */
#include "cmocka_all.h"
#include "cron/schedule.h"
#include "cron/zone.h"

#include <stdio.h>
#include <time.h>

/* X(text, whether it is an interval line, what fits): tm has the local time. The first one, which
 * takes most of the time, is left out where many days are tried. */
#define SCHEDULES(X)                                                                               \
    X("* * * * *", true, true)                                                                     \
    X("*/10 * * * *", true, tm->tm_min % 10 == 0)                                                  \
    X("7 * * * *", true, tm->tm_min == 7)                                                          \
    X("0 */6 * * *", true, tm->tm_min == 0 && tm->tm_hour % 6 == 0)                                \
    X("30 2 * * *", false, tm->tm_min == 30 && tm->tm_hour == 2)                                   \
    X("*/20 1-3 * * *", false, tm->tm_min % 20 == 0 && tm->tm_hour >= 1 && tm->tm_hour <= 3)       \
    X("0 0 * * *", false, tm->tm_min == 0 && tm->tm_hour == 0)                                     \
    X("15 23,0 * * *", false, tm->tm_min == 15 && (tm->tm_hour == 23 || tm->tm_hour == 0))         \
    X("0 3 * * sun", false, tm->tm_min == 0 && tm->tm_hour == 3 && tm->tm_wday == 0)               \
    X("0 2 13 * 5", false,                                                                         \
      tm->tm_min == 0 && tm->tm_hour == 2 && (tm->tm_mday == 13 || tm->tm_wday == 5))              \
    X("59 23 31 12 *", false,                                                                      \
      tm->tm_min == 59 && tm->tm_hour == 23 && tm->tm_mday == 31 && tm->tm_mon == 11)              \
    X("0 12 29 feb *", false,                                                                      \
      tm->tm_min == 0 && tm->tm_hour == 12 && tm->tm_mday == 29 && tm->tm_mon == 1)                \
    X("5 0-23 1 */3 *", false, tm->tm_min == 5 && tm->tm_mday == 1 && tm->tm_mon % 3 == 0)         \
    X("0 * * * mon-fri", true, tm->tm_min == 0 && tm->tm_wday >= 1 && tm->tm_wday <= 5)

#define FITS(text, is_interval, expression) {(text), (is_interval)},
static const struct {
    const char *text;
    bool is_interval;
} schedules[] = {SCHEDULES(FITS)};
#undef FITS

enum { SCHEDULE_COUNT = sizeof(schedules) / sizeof(schedules[0]), SHORT_DAYS = 300 };

static bool fits(size_t index, const struct tm *tm)
{
    size_t at = 0;
#define FITS(text, is_interval, expression)                                                        \
    if (index == at++) {                                                                           \
        return (expression);                                                                       \
    }
    SCHEDULES(FITS)
#undef FITS
    return false;
}

/* The minutes of one schedule, as a person finds them. */
struct watcher {
    size_t index;
    int64_t seen; /* the latest local minute that a clock has shown, since 1970 */
};

static bool fits_minute(size_t index, int64_t minute)
{
    time_t local = (time_t)(minute * 60);
    struct tm tm;

    return fits(index, gmtime_r(&local, &tm));
}

/* Whether it fires in the minute in which local clocks show `shown`. */
static bool watch(struct watcher *watcher, int64_t shown, const struct tm *tm)
{
    bool is_interval = schedules[watcher->index].is_interval;
    bool fires = (is_interval || shown > watcher->seen) && fits(watcher->index, tm);

    for (int64_t left_out = watcher->seen + 1; left_out < shown && !is_interval; left_out++) {
        fires |= fits_minute(watcher->index, left_out);
    }
    watcher->seen = shown > watcher->seen ? shown : watcher->seen;
    return fires;
}

static void compare(const char *name, const char *from, int days)
{
    struct cron_schedule parsed[SCHEDULE_COUNT];
    struct watcher watchers[SCHEDULE_COUNT];
    int64_t next[SCHEDULE_COUNT];
    struct calendar_zone zone = zone_of(name);
    struct calendar_date date = {0};
    size_t first = days > SHORT_DAYS ? 1 : 0;
    const char *rest;

    assert_true(zone_exists(name));
    assert_int_equal(sscanf(from, "%ld-%u-%u", &date.year, &date.month, &date.day), 3);
    int64_t begin = calendar_day(&date) * CALENDAR_DAY_S;
    for (size_t i = first; i < SCHEDULE_COUNT; i++) {
        assert_int_equal(cron_schedule_parse(&parsed[i], schedules[i].text, &rest, NULL), 0);
        assert_int_equal(parsed[i].is_interval, schedules[i].is_interval);
        watchers[i] = (struct watcher){i, (begin + zone.offset(name, begin)) / 60};
        next[i] = cron_next(&parsed[i], &zone, begin);
    }
    for (int64_t at = begin + 60; at < begin + (int64_t)days * CALENDAR_DAY_S; at += 60) {
        int64_t shown = (at + zone.offset(name, at)) / 60;
        time_t local = (time_t)(shown * 60);
        struct tm tm;
        assert_non_null(gmtime_r(&local, &tm));
        for (size_t i = first; i < SCHEDULE_COUNT; i++) {
            bool fires = watch(&watchers[i], shown, &tm);
            if (fires != (next[i] == at)) {
                fail_msg("%s in %s: %s at %lld, next %lld", schedules[i].text, name,
                         fires ? "fires" : "does not fire", (long long)at, (long long)next[i]);
            }
            if (fires) {
                next[i] = cron_next(&parsed[i], &zone, at);
            }
        }
    }
}

#define ZONE(function, name, from, days)                                                           \
    static void function(void **state)                                                             \
    {                                                                                              \
        (void)state;                                                                               \
        compare((name), (from), (days));                                                           \
    }

ZONE(in_berlin_an_hour_is_left_out_and_comes_twice, "Europe/Berlin", "2024-01-01", 1200)
ZONE(in_new_york_too, "America/New_York", "2024-01-01", 800)
ZONE(on_lord_howe_half_an_hour, "Australia/Lord_Howe", "2024-01-01", 800)
ZONE(in_kathmandu_clocks_have_odd_minutes, "Asia/Kathmandu", "2024-01-01", 400)
ZONE(in_utc_nothing_happens, "UTC", "2024-01-01", 100)
ZONE(in_havana_midnight_is_left_out, "America/Havana", "2024-02-01", 300)
ZONE(in_sao_paulo_an_hour_before_midnight_came_twice, "America/Sao_Paulo", "2017-09-01", 200)
ZONE(in_saint_johns_clocks_were_set_at_one_past_midnight, "America/St_Johns", "2009-02-01", 300)
ZONE(on_samoa_a_day_was_left_out, "Pacific/Apia", "2011-09-01", 150)
ZONE(in_cairo_midnight_is_left_out, "Africa/Cairo", "2024-04-01", 240)
ZONE(on_kiritimati_it_is_fourteen_hours_later, "Pacific/Kiritimati", "2024-12-01", 60)
ZONE(in_casablanca_clocks_are_set_four_times_a_year, "Africa/Casablanca", "2024-02-01", 100)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_berlin_an_hour_is_left_out_and_comes_twice),
        cmocka_unit_test(in_new_york_too),
        cmocka_unit_test(on_lord_howe_half_an_hour),
        cmocka_unit_test(in_kathmandu_clocks_have_odd_minutes),
        cmocka_unit_test(in_utc_nothing_happens),
        cmocka_unit_test(in_havana_midnight_is_left_out),
        cmocka_unit_test(in_sao_paulo_an_hour_before_midnight_came_twice),
        cmocka_unit_test(in_saint_johns_clocks_were_set_at_one_past_midnight),
        cmocka_unit_test(on_samoa_a_day_was_left_out),
        cmocka_unit_test(in_cairo_midnight_is_left_out),
        cmocka_unit_test(on_kiritimati_it_is_fourteen_hours_later),
        cmocka_unit_test(in_casablanca_clocks_are_set_four_times_a_year),
    };
    zone_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
