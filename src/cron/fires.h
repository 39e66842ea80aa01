/* Which fires of a line run: decided from its record and the time. Pure.
 *
 *   cron_take_over ─▶ cron_decide ─▶ the record is written: claimed ─▶ the command runs
 *                          ▲                                              │
 *                          └──────────────── cron_note_end ◀──────────────┘
 *
 * Each fire is claimed by a compare-and-set of the record before its command starts, and an instant
 * that is decided is never decided again. So after a failover none is lost, and none runs twice:
 *
 *   was due, nobody claimed it      it is missed: the latest of several runs once, or none
 *   was claimed, and has not ended  its command was killed with its leader: it is interrupted, and
 *                                   runs again, or not
 *   has ended                       never again
 *
 * The clock is that of the wall. If it was set forward, what it left out is missed. If it was set
 * back, instants that are decided do not fire again: a fixed-time line waits for its next one for
 * up to three hours, an interval line for up to a minute; after longer ones they begin anew. So the
 * clocks of two leaders may differ by up to a minute.
 */
#ifndef CRON_FIRES_H
#define CRON_FIRES_H

#include "cron/crontab.h"
#include "cron/record.h"

enum {
    CRON_LATE_S = 60, /* a fire to which the leader comes later than this is missed */
    CRON_SET_BACK_INTERVAL_S = 60,
    CRON_SET_BACK_FIXED_S = 3 * 3600,
    CRON_COUNTED_MAX = 1000, /* so many fires of a line that were missed at once are counted */
};

/* Who decides. */
struct cron_leader {
    const char *node;
    uint64_t epoch;
    int64_t led_since_s; /* fires due before it are missed */
};

enum cron_verdict {
    CRON_NOTHING, /* the record is as it was */
    CRON_NOTED,   /* the record has changed; nothing runs */
    CRON_RUN,     /* the record has changed: it claims *ret_run, which runs once it is written */
};

/* The record of a line that is new, or has come back. */
void cron_begin(struct cron_record *record, int64_t now_s);

/* Sorts out the fires that were claimed and have no end: those that are not live are interrupted,
 * and remain in `running`, with epoch 0, only if the line runs them again. `is_live` says whether a
 * fire's command runs in this process. `line` NULL: it is gone. True: the record has changed. */
bool cron_take_over(struct cron_record *record, const struct cron_line *line, int64_t now_ms,
                    bool (*is_live)(const void *userdata, const struct cron_run *run),
                    const void *userdata);

/* Decides one fire. Call it again until there is nothing. `now_ms`: of the wall clock. */
enum cron_verdict cron_decide(struct cron_record *record, const struct cron_line *line,
                              const struct calendar_zone *zone, const struct cron_leader *leader,
                              int64_t now_ms, struct cron_run *ret_run);

/* A fire that runs has ended. An interrupted one may run again, as in cron_take_over(). False: it
 * does not run, by the record. */
bool cron_note_end(struct cron_record *record, const struct cron_line *line,
                   const struct cron_end *end);

/* When to decide again if nothing ends before: the next fire, with its delay. INT64_MAX: never. */
int64_t cron_due(const struct cron_record *record, const struct cron_line *line,
                 const struct calendar_zone *zone);

/* The scheduled instant of the next fire. INT64_MAX: none. */
int64_t cron_following(const struct cron_record *record, const struct cron_line *line,
                       const struct calendar_zone *zone);

#endif
