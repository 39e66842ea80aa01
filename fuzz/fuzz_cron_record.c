/* A record of a crontab's line, as anybody who may write the state could have left it: it is
 * refused, or decided on, and what is written from it is read again. */
#include "cron/fires.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { DECISIONS = 64 };

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_live(const void *userdata, const struct cron_run *run)
{
    (void)userdata;
    return run->attempt % 2 == 0;
}

static void decide(struct cron_record *record, const struct cron_line *line)
{
    static const struct calendar_zone utc;
    const struct cron_leader leader = {.node = "a", .epoch = 9, .led_since_s = 1795608000};
    struct cron_run run;
    int count = 0;

    (void)cron_take_over(record, line, 1795608000000, is_live, NULL);
    while (count < DECISIONS && cron_decide(record, line, &utc, &leader, 1795608600000, &run)) {
        check(record->running_count <= CRON_RUNNING_MAX);
        count++;
    }
    check(count < DECISIONS); /* it comes to an end */
    (void)cron_due(record, line, &utc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct cron_text text = {"* * * * *", "", "x"};
    struct cron_line line = {0};
    struct cron_record record, again;
    const char *rest;
    char *written;

    if (bytes == 0 || cron_record_read(&record, data + 1, bytes - 1, NULL) != BATON_OK) {
        return 0;
    }
    written = cron_record_write(&record, &text);
    check(written && cron_record_read(&again, written, strlen(written), NULL) == BATON_OK);
    free(written);
    check(cron_schedule_parse(&line.schedule, "*/10 * * * *", &rest, NULL) == BATON_OK);
    line.overlap = (enum cron_overlap)(data[0] % 3);
    line.missed = (enum cron_missed)(data[0] / 4 % 2);
    line.interrupted = (enum cron_interrupted)(data[0] / 8 % 2);
    decide(&record, &line);
    return 0;
}
