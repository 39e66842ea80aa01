#include "cron/fires.h"

#include <stdio.h>
#include <string.h>

/* ---- What runs ------------------------------------------------------------------------------- */

static bool is_to_run_again(const struct cron_run *run)
{
    return run->epoch == 0;
}

static struct cron_run *find_again(struct cron_record *record)
{
    for (size_t i = 0; i < record->running_count; i++) {
        if (is_to_run_again(&record->running[i])) {
            return &record->running[i];
        }
    }
    return NULL;
}

static bool has_live(const struct cron_record *record)
{
    for (size_t i = 0; i < record->running_count; i++) {
        if (!is_to_run_again(&record->running[i])) {
            return true;
        }
    }
    return false;
}

/* When the command started that lives; of several, any. */
static int64_t live_since_ms(const struct cron_record *record)
{
    int64_t since_ms = INT64_MIN;

    for (size_t i = 0; i < record->running_count; i++) {
        if (!is_to_run_again(&record->running[i])) {
            since_ms = record->running[i].start_ms;
        }
    }
    return since_ms;
}

static void drop(struct cron_record *record, size_t index)
{
    record->running_count--;
    memmove(&record->running[index], &record->running[index + 1],
            (record->running_count - index) * sizeof(record->running[0]));
}

/* Of a fire, if it is the latest one. */
static void set_state(struct cron_record *record, int64_t fire_s, enum cron_state state)
{
    if (record->fire_s == fire_s) {
        record->state = state;
    }
}

static bool runs_again(const struct cron_line *line)
{
    return line && line->interrupted == CRON_INTERRUPTED_RUN_AGAIN;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

void cron_begin(struct cron_record *record, int64_t now_s)
{
    record->is_removed = false;
    record->since_s = now_s;
}

bool cron_note_end(struct cron_record *record, const struct cron_line *line,
                   const struct cron_end *end)
{
    size_t index = 0;

    while (index < record->running_count && (record->running[index].fire_s != end->run.fire_s ||
                                             record->running[index].attempt != end->run.attempt)) {
        index++;
    }
    if (index == record->running_count) {
        return false;
    }
    record->last = *end;
    set_state(record, end->run.fire_s, end->state);
    if (end->state == CRON_INTERRUPTED && runs_again(line)) {
        record->running[index].epoch = 0;
        return true;
    }
    record->interrupted += end->state == CRON_INTERRUPTED;
    record->runs += end->state != CRON_INTERRUPTED;
    record->failures += end->state == CRON_FAILED;
    drop(record, index);
    return true;
}

bool cron_take_over(struct cron_record *record, const struct cron_line *line, int64_t now_ms,
                    bool (*is_live)(const void *userdata, const struct cron_run *run),
                    const void *userdata)
{
    bool has_changed = false;

    for (size_t i = record->running_count; i > 0; i--) {
        const struct cron_run *run = &record->running[i - 1];
        struct cron_end end = {
            .run = *run, .state = CRON_INTERRUPTED, .exit_code = -1, .end_ms = now_ms};
        if (is_to_run_again(run) && !runs_again(line)) {
            record->interrupted++;
            drop(record, i - 1);
            has_changed = true;
        } else if (!is_to_run_again(run) && !is_live(userdata, run)) {
            has_changed = cron_note_end(record, line, &end);
        }
    }
    return has_changed;
}

/* ---- Decisions ------------------------------------------------------------------------------- */

static int64_t decided_until(const struct cron_record *record)
{
    return record->fire_s > record->since_s ? record->fire_s : record->since_s;
}

static bool is_busy(const struct cron_record *record, const struct cron_line *line)
{
    return line->overlap == CRON_OVERLAP_ALLOW ? record->running_count == CRON_RUNNING_MAX
                                               : has_live(record);
}

/* Whether the next fire waits for the end of a command: by the line's option; or because it was due
 * before that command started, which runs an interrupted fire again. */
static bool waits(const struct cron_record *record, const struct cron_line *line,
                  const struct calendar_zone *zone)
{
    int64_t due_s;

    if (line->overlap == CRON_OVERLAP_ALLOW || !has_live(record)) {
        return false;
    }
    due_s = cron_next(&line->schedule, zone, decided_until(record)) + line->delay_s;
    return line->overlap == CRON_OVERLAP_WAIT || due_s * 1000 <= live_since_ms(record);
}

/* The clock was set back, by more than what is waited for. */
static bool begins_anew(struct cron_record *record, const struct cron_line *line, int64_t now_s)
{
    int64_t limit_s = line->schedule.is_interval ? CRON_SET_BACK_INTERVAL_S : CRON_SET_BACK_FIXED_S;

    if (decided_until(record) - now_s <= limit_s) {
        return false;
    }
    record->since_s = now_s;
    record->fire_s = 0;
    return true;
}

static uint64_t count_fires(const struct cron_line *line, const struct calendar_zone *zone,
                            int64_t after_s, int64_t last_s)
{
    uint64_t count = 0;

    while (after_s < last_s && count < CRON_COUNTED_MAX) {
        after_s = cron_next(&line->schedule, zone, after_s);
        count++;
    }
    return count;
}

/* A fire that waited for the end of an earlier one is late for that reason alone. */
static bool is_missed(const struct cron_record *record, const struct cron_line *line,
                      const struct cron_leader *leader, int64_t fire_s, int64_t now_s)
{
    int64_t due_s = fire_s + line->delay_s, ready_s = due_s;

    if (line->overlap != CRON_OVERLAP_ALLOW && record->last.end_ms / 1000 > ready_s) {
        ready_s = record->last.end_ms / 1000;
    }
    return due_s < leader->led_since_s || now_s - ready_s > CRON_LATE_S;
}

static void claim(struct cron_run *run, const struct cron_leader *leader, int64_t now_ms)
{
    run->attempt++;
    run->epoch = leader->epoch;
    run->start_ms = now_ms;
    (void)snprintf(run->node, sizeof(run->node), "%s", leader->node);
}

static enum cron_verdict run_again(struct cron_record *record, struct cron_run *run,
                                   const struct cron_leader *leader, int64_t now_ms,
                                   struct cron_run *ret_run)
{
    claim(run, leader, now_ms);
    set_state(record, run->fire_s, CRON_RUNNING);
    *ret_run = *run;
    return CRON_RUN;
}

static enum cron_verdict run_new(struct cron_record *record, int64_t fire_s,
                                 const struct cron_leader *leader, int64_t now_ms,
                                 struct cron_run *ret_run)
{
    struct cron_run *run = &record->running[record->running_count++];

    *run = (struct cron_run){.fire_s = fire_s};
    claim(run, leader, now_ms);
    record->fire_s = fire_s;
    record->state = CRON_RUNNING;
    *ret_run = *run;
    return CRON_RUN;
}

enum cron_verdict cron_decide(struct cron_record *record, const struct cron_line *line,
                              const struct calendar_zone *zone, const struct cron_leader *leader,
                              int64_t now_ms, struct cron_run *ret_run)
{
    int64_t now_s = calendar_divide(now_ms, 1000), fire_s;
    struct cron_run *again = find_again(record);
    bool busy = is_busy(record, line), missed;
    uint64_t count;

    if (again && (!busy || line->overlap == CRON_OVERLAP_ALLOW)) {
        return run_again(record, again, leader, now_ms, ret_run);
    }
    if (begins_anew(record, line, now_s)) {
        return CRON_NOTED;
    }
    fire_s = cron_latest(&line->schedule, zone, decided_until(record), now_s - line->delay_s);
    missed = fire_s < INT64_MAX && is_missed(record, line, leader, fire_s, now_s);
    if (fire_s == INT64_MAX || waits(record, line, zone)) {
        return CRON_NOTHING;
    }
    count = count_fires(line, zone, decided_until(record), fire_s);
    if (missed && line->missed == CRON_MISSED_SKIP) {
        record->missed += count;
        record->fire_s = fire_s;
        record->state = CRON_MISSED;
        return CRON_NOTED;
    }
    if (busy) {
        record->skipped += count;
        record->fire_s = fire_s;
        record->state = CRON_SKIPPED;
        return CRON_NOTED;
    }
    record->missed += count - 1;
    return run_new(record, fire_s, leader, now_ms, ret_run);
}

int64_t cron_following(const struct cron_record *record, const struct cron_line *line,
                       const struct calendar_zone *zone)
{
    return cron_next(&line->schedule, zone, decided_until(record));
}

int64_t cron_due(const struct cron_record *record, const struct cron_line *line,
                 const struct calendar_zone *zone)
{
    int64_t next_s;

    if (waits(record, line, zone)) {
        return INT64_MAX; /* the end comes first */
    }
    next_s = cron_following(record, line, zone);
    return next_s == INT64_MAX ? next_s : next_s + line->delay_s;
}
