/* Dates of the Gregorian calendar as numbers of days, and a time zone as the rest of this folder
 * sees it. Pure.
 */
#ifndef CRON_CALENDAR_H
#define CRON_CALENDAR_H

#include <stdint.h>

enum { CALENDAR_DAY_S = 86400 };

struct calendar_date {
    int64_t year;
    unsigned month; /* 1 to 12 */
    unsigned day;   /* 1 to 31 */
};

/* Day 0 is 1970-01-01. */
int64_t calendar_day(const struct calendar_date *date);
struct calendar_date calendar_date(int64_t day);
/* 0: Sunday. */
unsigned calendar_weekday(int64_t day);

/* An instant as "2026-11-25T12:00:00Z"; years beyond 9999 are not shown right. Returns `ret`. */
enum { CALENDAR_TEXT_BYTES = 64 };
const char *calendar_text(char ret[static CALENDAR_TEXT_BYTES], int64_t at_s);

/* Rounds down, as 1969 needs. `by` is positive. */
int64_t calendar_divide(int64_t number, int64_t by);

/* How far local clocks are ahead of UTC, in seconds, at an instant (seconds since 1970 in UTC). */
struct calendar_zone {
    int32_t (*offset)(const void *userdata, int64_t at_s);
    const void *userdata;
};

#endif
