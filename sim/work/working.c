#include "sim/work/working.h"

#include "base/invariant.h"
#include "sim/work/checks.h"
#include "sim/work/copies.h"
#include "sim/work/elections.h"
#include "sim/work/lookup.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdio.h>

void working_start(struct yard *yard, struct yard_process *process)
{
    struct yard_working *working = &process->working;
    struct work_worker_options options = {.slots = working->slots,
                                          .report_interval = process->options.report_interval};

    (void)snprintf(options.name, sizeof(options.name), "%d", process->number);
    (void)snprintf(options.labels, sizeof(options.labels), "%s",
                   working->has_label ? "other special" : "other");
    working->core = work_worker_new(&options);
    INVARIANT(working->core != NULL);
    working->session = 0;
    working->session_end = working->tick_at = INT64_MAX;
    working->is_leaving = false;
    election_contend(yard, election_of(process->number));
}

void working_drop(struct yard_process *process)
{
    work_worker_free(process->working.core);
    process->working.core = NULL;
    process->working.session = 0;
}

static void rearm(struct yard *yard, struct yard_process *process)
{
    struct yard_working *working = &process->working;
    int64_t at = drift_true(&process->clock, work_worker_deadline(working->core));

    if (at < working->tick_at) {
        working->tick_at = at > yard->now ? at : yard->now;
        yard_push_process(yard, process, YARD_WORKER_TICK, working->tick_at);
    }
}

static void publish(struct yard *yard, const struct yard_process *process)
{
    struct yard_letter *letter = yard_letter_new(yard, yard->buffer.data, yard->buffer.bytes);

    yard_say_message(yard, process->number, YARD_NOBODY, &letter->message);
    for (size_t i = 0; i < yard->profile.candidates; i++) {
        if (yard->processes[i].is_up) {
            yard_deliver(yard, process, &yard->processes[i], YARD_TO_LEADERS, letter);
        }
    }
    yard_letter_unref(letter);
}

static bool is_done(const struct yard_working *working)
{
    return working->is_leaving && work_worker_running(working->core) == 0 &&
           work_worker_results(working->core) == 0;
}

static void drive(struct yard *yard, struct yard_process *process)
{
    struct yard_working *working = &process->working;
    struct work_order order;

    while (work_worker_next_order(working->core, &order)) {
        if (order.type == WORK_START) {
            copies_start(yard, process, &order);
        } else {
            copies_halt(yard, process, &order);
        }
    }
    buffer_clear(&yard->buffer);
    while (work_worker_next_message(working->core, &yard->buffer)) {
        publish(yard, process);
        buffer_clear(&yard->buffer);
    }
    if (is_done(working)) {
        working->is_leaving = false;
        yard_push_process(yard, process, YARD_QUIT, yard->now);
    }
    rearm(yard, process);
}

static void set_session(struct yard *yard, struct yard_process *process, uint64_t session)
{
    yard_push_process(yard, process, YARD_RUNS_ON, yard->now + yard->profile.halt_time + 1)
        ->number = yard->copy_number;
    process->working.session = session;
    process->working.session_end = INT64_MAX;
    yard_say(yard, process->number, "has session %llu", (unsigned long long)session);
    work_worker_session(process->working.core, session, yard_local(yard, process));
    drive(yard, process);
    if (session == 0) {
        election_contend(yard, election_of(process->number));
    }
}

void working_look_at_clock(struct yard *yard, struct yard_process *process)
{
    if (process->working.core && process->working.session != 0 &&
        yard->now >= process->working.session_end) {
        set_session(yard, process, 0);
    }
}

void working_give_up(struct yard *yard, struct yard_process *process, uint64_t session)
{
    if (session == process->working.session && process->working.session_end != INT64_MAX) {
        set_session(yard, process, 0);
    }
}

void working_session_end(struct yard *yard, struct yard_process *process, uint64_t session)
{
    const struct yard_election *election = &yard->elections[election_of(process->number)];

    if (election->until == INT64_MAX || election->epoch != session) {
        return; /* it was renewed */
    }
    if (!YARD_MUTANT(COPIES_OUTLIVE_LEASE)) {
        copies_kill(yard, process);
    }
    if (yard->now >= process->stopped_until) {
        working_look_at_clock(yard, process);
    }
}

void working_elected(struct yard *yard, struct yard_process *process, uint64_t epoch)
{
    const struct yard_election *election = &yard->elections[election_of(process->number)];

    if (process->working.core && process->working.session != epoch &&
        election->until == INT64_MAX &&
        election_is_held_by(yard, election_of(process->number), process, epoch)) {
        set_session(yard, process, epoch);
    }
}

void working_leave(struct yard *yard, struct yard_process *process)
{
    if (process->working.core && !process->working.is_leaving) {
        yard_say(yard, process->number, "is about to leave");
        process->working.is_leaving = true;
        yard_push_process(yard, process, YARD_QUIT,
                          yard->now + random_between(&yard->random, 0, 2 * yard->profile.lease.ns));
        work_worker_leave(process->working.core, yard_local(yard, process));
        drive(yard, process);
    }
}

static void report_progress(struct yard *yard, struct yard_process *process)
{
    const struct yard_copy *copy = copy_of_process(yard, process);

    if (copy && random_chance(&yard->random, 100000)) {
        (void)work_worker_progress(process->working.core, copy->item->id,
                                   (int)random_below(&yard->random, 1001), NULL);
    }
}

static void hear(struct yard *yard, struct yard_process *process,
                 const struct work_message *message)
{
    struct work_worker *core = process->working.core;
    size_t results = work_worker_results(core);

    work_worker_hear(core, message, yard_local(yard, process));
    if (message->type == WORK_ACK && work_worker_results(core) < results) {
        yard_check_forgotten(yard, process, message);
    }
}

void working_happen(struct yard *yard, struct yard_process *process, const struct yard_event *event)
{
    struct yard_working *working = &process->working;
    instant now = yard_local(yard, process);
    struct work_result result;

    if (event->kind == YARD_TO_WORKER) {
        hear(yard, process, &event->letter->message);
    } else if (event->kind == YARD_WORKER_TICK) {
        working->tick_at = INT64_MAX;
        report_progress(yard, process);
        work_worker_tick(working->core, now);
    } else if (copies_happen(yard, event, &result)) {
        work_worker_ended(working->core, &result, now);
    } else {
        return;
    }
    drive(yard, process);
}
