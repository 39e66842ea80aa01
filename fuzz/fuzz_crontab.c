/* A crontab from a file: read whole or refused; what was read fires at times that fit. */
#include "cron/crontab.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FIRES = 3, LINES = 8 };

static bool has_zone(const char *name)
{
    return strlen(name) < 20;
}

/* Clocks are set forward by two hours on every fifth day at noon, and back on the day after. */
static int32_t offset(const void *userdata, int64_t at_s)
{
    (void)userdata;
    return calendar_divide(at_s - CALENDAR_DAY_S / 2, CALENDAR_DAY_S) % 5 == 0 ? 7200 : 0;
}

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void fire(const struct cron_schedule *schedule)
{
    static const struct calendar_zone zone = {.offset = offset}, utc;
    int64_t at_s = 1795608000;

    for (int i = 0; i < FIRES; i++) {
        int64_t next_s = cron_next(schedule, &zone, at_s);
        check(next_s > at_s && cron_latest(schedule, &zone, at_s, next_s) == next_s);
        check(cron_latest(schedule, &zone, at_s, next_s - 1) == INT64_MAX);
        at_s = next_s;
    }
    at_s = cron_next(schedule, &utc, 1795608000);
    check(schedule->every_s > 0 ||
          ((schedule->hours >> (at_s / 3600 % 24) & 1) &&
           (schedule->minutes >> (at_s / 60 % 60) & 1) && (schedule->seconds >> (at_s % 60) & 1)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct crontab *crontab = NULL;
    struct baton_error error = {0};
    int code = crontab_parse(&crontab, (const char *)data, bytes, "file", has_zone, &error);

    check(code == BATON_OK || (code == error.code && error.message[0]));
    for (size_t i = 0; !code && i < crontab->count; i++) {
        const struct cron_line *line = &crontab->lines[i];
        check(crontab_find(crontab, line->id) == line && line->command[0] && line->when[0]);
        check(line->delay_s >= 0 && line->delay_s <= CRON_JITTER_MAX_S);
        if (i < LINES) {
            fire(&line->schedule);
        }
    }
    crontab_free(crontab);
    return 0;
}
