/* A schedule: the instants at which a line of a crontab fires. Pure.
 *
 *   0-59/10 * * * *       minute, hour, day of the month, month, day of the week
 *   30 0 12 * * mon-fri   with seconds in front
 *   @daily  @every 90s
 *
 * A field is a star, a number, a range (a-b), a star or range with a step (/n behind it), or
 * several of them with commas; months and days of the week have English names, too, of three
 * letters. Sunday is 0 or 7. If both the day of the month and the day of the week are restricted
 * (begin with no star), a date fits if one of them does, as in every cron; else both have to.
 *
 * Local time. A line whose hour is a star, with a step or not, is an interval line: it fires at
 * each instant whose local time fits. So when clocks are set back, it fires in both of the hours
 * that have one name. All others are fixed-time lines, each of whose local times happens once on
 * its date:
 *
 *   clocks are set back      the local times that come twice fire the first time
 *   clocks are set forward   those that are left out fire together, once, at that moment
 *
 * @every fires at the multiples of its period since 1970-01-01 00:00 UTC.
 */
#ifndef CRON_SCHEDULE_H
#define CRON_SCHEDULE_H

#include "base/error.h"
#include "cron/calendar.h"

#include <stdbool.h>
#include <stdint.h>

struct cron_schedule {
    int64_t every_s;   /* @every; 0: the fields below */
    uint64_t seconds;  /* bit n: second n */
    uint64_t minutes;  /* 0 to 59 */
    uint64_t hours;    /* 0 to 23 */
    uint64_t days;     /* 1 to 31 */
    uint64_t months;   /* 1 to 12 */
    uint64_t weekdays; /* 0 to 6 */
    bool is_any_day;   /* the field begins with a star */
    bool is_any_weekday;
    bool is_interval;
};

/* Reads the schedule at the beginning of `text`; *ret_rest is what follows it, after blanks. The
 * sixth word is a field, and the first one the seconds, if it reads as a day of the week.
 * BATON_EINVAL names the field and its valid form; also if the schedule never fires (31 April). */
int cron_schedule_parse(struct cron_schedule *ret, const char *text, const char **ret_rest,
                        struct baton_error *reterr);

/* The first instant later than `after_s` at which it fires. INT64_MAX: none within 41 years. */
int64_t cron_next(const struct cron_schedule *schedule, const struct calendar_zone *zone,
                  int64_t after_s);

/* The last one that is later than `after_s` and not later than `until_s`. INT64_MAX: none. */
int64_t cron_latest(const struct cron_schedule *schedule, const struct calendar_zone *zone,
                    int64_t after_s, int64_t until_s);

#endif
