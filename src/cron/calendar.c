#include "cron/calendar.h"

#include <inttypes.h>
#include <stdio.h>

/* The calendar repeats every 400 years. A year here begins in March, so that the leap day is its
 * last day. */
enum { ERA_DAYS = 146097, ERA_YEARS = 400, YEAR_DAYS = 365, EPOCH_DAYS = 719468 };

int64_t calendar_divide(int64_t number, int64_t by)
{
    int64_t quotient = number / by;

    return number % by < 0 ? quotient - 1 : quotient;
}

int64_t calendar_day(const struct calendar_date *date)
{
    unsigned months = (date->month + 9) % 12; /* since March */
    int64_t year = date->month <= 2 ? date->year - 1 : date->year;
    int64_t era = calendar_divide(year, ERA_YEARS);
    int64_t of_era = year - era * ERA_YEARS;
    int64_t of_year = (153 * (int64_t)months + 2) / 5 + date->day - 1;

    return era * ERA_DAYS + of_era * YEAR_DAYS + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS;
}

struct calendar_date calendar_date(int64_t day)
{
    int64_t era = calendar_divide(day + EPOCH_DAYS, ERA_DAYS);
    int64_t of_era = day + EPOCH_DAYS - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / YEAR_DAYS;
    int64_t of_year = of_era - (YEAR_DAYS * year + year / 4 - year / 100);
    int64_t months = (5 * of_year + 2) / 153;
    struct calendar_date date = {.day = (unsigned)(of_year - (153 * months + 2) / 5 + 1),
                                 .month = (unsigned)(months < 10 ? months + 3 : months - 9)};

    date.year = year + era * ERA_YEARS + (date.month <= 2 ? 1 : 0);
    return date;
}

unsigned calendar_weekday(int64_t day)
{
    return (unsigned)(day + 4 - 7 * calendar_divide(day + 4, 7)); /* day 0 was a Thursday */
}

const char *calendar_text(char ret[static CALENDAR_TEXT_BYTES], int64_t at_s)
{
    int64_t day = calendar_divide(at_s, CALENDAR_DAY_S);
    struct calendar_date date = calendar_date(day);
    int second = (int)(at_s - day * CALENDAR_DAY_S);

    (void)snprintf(ret, CALENDAR_TEXT_BYTES, "%04" PRId64 "-%02u-%02uT%02d:%02d:%02dZ", date.year,
                   date.month, date.day, second / 3600, second / 60 % 60, second % 60);
    return ret;
}
