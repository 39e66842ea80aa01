#include "sim/work/process.h"

#include "sim/work/checks.h"
#include "sim/work/copies.h"
#include "sim/work/elections.h"
#include "sim/work/leading.h"
#include "sim/work/profile.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"
#include "sim/work/working.h"

void yard_start(struct yard *yard, struct yard_process *process)
{
    process->life++;
    process->is_up = true;
    process->started_at = yard->now;
    process->stopped_until = process->cut_until = 0;
    yard_draw_options(yard, &process->options);
    process->lag = random_between(&yard->random, 0, yard->profile.lag);
    yard_say(yard, process->number, "starts%s%s", process->is_candidate ? ", a candidate" : "",
             process->is_worker ? ", a worker" : "");
    if (process->is_candidate) {
        leading_start(yard, process);
    }
    if (process->is_worker) {
        working_start(yard, process);
    }
}

void yard_drop(struct yard_process *process)
{
    leading_drop(process);
    working_drop(process);
    process->is_up = false;
}

/* It is down, and starts again, perhaps at once. */
static void go_down(struct yard *yard, struct yard_process *process)
{
    int64_t most =
        random_chance(&yard->random, 300000) ? yard->profile.delay + 1 : yard->profile.down_time;

    copies_forget(yard, process);
    yard_drop(process);
    process->life++;
    yard_push_process(yard, process, YARD_START,
                      yard->now + random_between(&yard->random, 0, most));
}

void yard_crash(struct yard *yard, struct yard_process *process)
{
    if (process->is_up) {
        yard->result.counts[YARD_COUNT_CRASHES]++;
        yard_say(yard, process->number, "CRASHES");
        elections_crash(yard, process);
        go_down(yard, process);
    }
}

void yard_leave(struct yard *yard, struct yard_process *process)
{
    yard_say(yard, process->number, "leaves");
    copies_kill(yard, process);
    for (int i = 0; i < YARD_ELECTIONS; i++) {
        election_release(yard, i, process, yard->elections[i].epoch);
    }
    go_down(yard, process);
}

static void hold_up(struct yard *yard, struct yard_process *process, int64_t *ret_until,
                    int64_t until, bool is_stopped)
{
    if (process->is_up && until > *ret_until) {
        yard_say(yard, process->number, is_stopped ? "is stopped" : "is cut off");
        *ret_until = until;
        elections_unreachable(yard, process, is_stopped);
        yard_push_process(yard, process, YARD_REACHABLE, until);
    }
}

/* One that is stopped already goes on when it was to go on: what waits for it keeps its order. */
void yard_stop(struct yard *yard, struct yard_process *process, int64_t until)
{
    if (yard->now >= process->stopped_until) {
        hold_up(yard, process, &process->stopped_until, until, true);
    }
}

void yard_cut(struct yard *yard, struct yard_process *process, int64_t until)
{
    hold_up(yard, process, &process->cut_until, until, false);
}

static void become_reachable(struct yard *yard, struct yard_process *process)
{
    if (yard->now >= process->stopped_until) {
        working_look_at_clock(yard, process);
    }
    if (yard->now >= process->stopped_until && yard->now >= process->cut_until) {
        elections_reachable(yard, process);
    }
}

void yard_heal(struct yard *yard, struct yard_process *process)
{
    if (!process->is_up) {
        yard_start(yard, process);
        return;
    }
    process->cut_until = 0; /* a stopped one goes on when its time comes */
    if (process->working.core && process->working.is_leaving) {
        yard_leave(yard, process);
    } else {
        become_reachable(yard, process);
    }
}

void yard_set_rate(struct yard *yard, struct yard_process *process, int64_t ppm)
{
    drift_set_rate(&process->clock, yard->now, ppm);
}

/* A stopped process handles what waits in any order, but what a leader hears of one key in the
 * order in which it came. What others do to it or to its copies goes on. */
static bool is_put_off(struct yard *yard, const struct yard_process *process,
                       struct yard_event *event)
{
    int64_t late = random_between(&yard->random, 0, yard->profile.delay);

    if (yard->now >= process->stopped_until) {
        return false;
    }
    switch (event->kind) {
    case YARD_SESSION_END:
    case YARD_COPY_END:
    case YARD_COPY_HALTED:
    case YARD_REACHABLE:
    case YARD_RUNS_ON:
        return false;
    case YARD_NOTICE:
    case YARD_REPLY:
        yard_push_again(yard, event, process->stopped_until);
        return true;
    default:
        yard_push_again(yard, event, process->stopped_until + late);
        return true;
    }
}

static void take(struct yard *yard, struct yard_process *process, struct yard_event *event)
{
    struct work_result unused;

    switch (event->kind) {
    case YARD_SESSION_END:
        working_session_end(yard, process, event->epoch);
        break;
    case YARD_COPY_END:
    case YARD_COPY_HALTED:
        (void)copies_happen(yard, event, &unused);
        break;
    case YARD_JEOPARDY:
        if (process->working.core) {
            working_give_up(yard, process, event->epoch);
        }
        break;
    case YARD_RUNS_ON:
        yard_check_ended(yard, process, event->number);
        break;
    case YARD_REACHABLE:
        become_reachable(yard, process);
        break;
    case YARD_QUIT:
        yard_leave(yard, process);
        break;
    case YARD_ELECTED:
        if (event->election == YARD_POOL) {
            leading_elected(yard, process, event->epoch);
        } else {
            working_elected(yard, process, event->epoch);
        }
        break;
    case YARD_TO_WORKER:
    case YARD_WORKER_TICK:
    case YARD_COPY_TOLD:
        working_look_at_clock(yard, process);
        if (process->working.core) {
            working_happen(yard, process, event);
        }
        break;
    default:
        leading_happen(yard, process, event);
        break;
    }
}

void yard_process_happen(struct yard *yard, struct yard_event *event)
{
    struct yard_process *process = &yard->processes[event->process];

    if (process->life != event->life) {
        return;
    }
    if (event->kind == YARD_START) {
        if (!process->is_up) {
            yard_start(yard, process);
        }
    } else if (process->is_up && !is_put_off(yard, process, event)) {
        take(yard, process, event);
    }
}
