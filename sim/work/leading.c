#include "sim/work/leading.h"

#include "base/invariant.h"
#include "sim/work/checks.h"
#include "sim/work/elections.h"
#include "sim/work/lookup.h"
#include "sim/work/store.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdio.h>

enum { OUTPUTS_MAX = 2000, SPINS_MAX = 200, UNDER_WAY_MAX = 64 };

void leading_start(struct yard *yard, struct yard_process *process)
{
    uint64_t number = process->leading.number;

    process->leading = (struct yard_leading){.number = number, .tick_at = INT64_MAX};
    election_contend(yard, YARD_POOL);
}

void leading_drop(struct yard_process *process)
{
    work_leader_free(process->leading.core);
    process->leading.core = NULL;
}

/* It leads no more, as it knows. */
static void step_down(struct yard *yard, struct yard_process *process)
{
    yard_say(yard, process->number, "leads no more");
    leading_drop(process);
    for (int i = 1; i < YARD_ELECTIONS; i++) {
        process->leading.is_entered[election_worker(i)] = false;
        if (yard->elections[i].is_leaders) {
            struct yard_event *event =
                yard_push_process(yard, process, YARD_RELEASE, yard->now + yard_way(yard));
            event->election = i;
            event->epoch = yard->elections[i].epoch;
        }
    }
    election_contend(yard, YARD_POOL);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

/* A worker is named by its process's number. */
static struct yard_process *worker_of(struct yard *yard, const char *name)
{
    return &yard->processes[name[0] - '0'];
}

static void send(struct yard *yard, const struct yard_process *process,
                 const struct work_output *output)
{
    struct yard_letter *letter = yard_letter_new(yard, output->data, output->bytes);

    yard_say_message(yard, process->number, output->worker ? output->worker[0] - '0' : YARD_NOBODY,
                     &letter->message);
    yard_check_message(yard, process, output->worker, &letter->message);
    for (size_t i = 0; i < yard->process_count; i++) {
        const struct yard_process *worker = &yard->processes[i];
        if (worker->is_worker && worker->is_up &&
            (!output->worker || worker == worker_of(yard, output->worker))) {
            yard_deliver(yard, process, worker, YARD_TO_WORKER, letter);
        }
    }
    yard_letter_unref(letter);
}

static void enter(struct yard *yard, struct yard_process *process, struct yard_process *worker)
{
    process->leading.is_entered[worker->number] = true;
    if (yard->elections[election_of(worker->number)].epoch != 0) {
        election_say_epoch(yard, process, election_of(worker->number));
    }
    election_contend(yard, election_of(worker->number));
}

static void leave(struct yard *yard, struct yard_process *process,
                  const struct yard_process *worker)
{
    const struct yard_election *election = &yard->elections[election_of(worker->number)];

    process->leading.is_entered[worker->number] = false;
    if (election->is_leaders && election->holder == process->number) {
        struct yard_event *event =
            yard_push_process(yard, process, YARD_RELEASE, yard->now + yard_way(yard));
        event->election = election_of(worker->number);
        event->epoch = election->epoch;
    }
}

static void resign(struct yard *yard, struct yard_process *process)
{
    uint64_t epoch = process->leading.epoch;
    bool is_latest = yard->elections[YARD_POOL].epoch == epoch;

    if (is_latest && !yard->has_lost && !yard->has_deleted) {
        yard_violated(yard, "resigned", "p%d resigns without a cause", process->number);
    }
    yard->has_deleted = yard->has_deleted && !is_latest; /* one cause for one leader */
    step_down(yard, process);
    election_release(yard, YARD_POOL, process, epoch);
}

static void ask(struct yard *yard, struct yard_process *process, enum yard_request request,
                struct yard_key *key, uint64_t revision)
{
    process->leading.under_way++;
    store_ask(yard, process, request, key, NULL, revision, SPAN_NS(0));
}

static void put(struct yard *yard, struct yard_process *process, const struct work_output *output)
{
    struct yard_value *value = output->data ? yard_value_new(output->data, output->bytes) : NULL;

    yard_say(yard, process->number, "%s %s at revision %lld", output->data ? "writes" : "deletes",
             output->key, (long long)output->revision);
    process->leading.under_way++;
    store_ask(yard, process, YARD_PUT, yard_key_of(yard, output->key), value, output->revision,
              output->lifetime);
}

static void carry_out(struct yard *yard, struct yard_process *process,
                      const struct work_output *output)
{
    switch (output->type) {
    case WORK_PUT:
        put(yard, process, output);
        break;
    case WORK_READ:
        ask(yard, process, YARD_READ, yard_key_of(yard, output->key), 0);
        break;
    case WORK_SEND:
        send(yard, process, output);
        break;
    case WORK_ENTER:
        enter(yard, process, worker_of(yard, output->worker));
        break;
    case WORK_LEAVE:
        leave(yard, process, worker_of(yard, output->worker));
        break;
    case WORK_RESIGN:
        resign(yard, process);
        break;
    }
}

static void rearm(struct yard *yard, struct yard_process *process)
{
    struct yard_leading *leading = &process->leading;
    int64_t at = drift_true(&process->clock, work_leader_deadline(leading->core));

    if (at < leading->tick_at) {
        leading->tick_at = at > yard->now ? at : yard->now;
        yard_push_process(yard, process, YARD_LEADER_TICK, leading->tick_at)->number =
            leading->number;
    }
}

static void drive(struct yard *yard, struct yard_process *process)
{
    struct yard_leading *leading = &process->leading;
    struct work_output output;
    int count = 0;

    while (leading->core && leading->under_way < UNDER_WAY_MAX &&
           work_leader_next_output(leading->core, yard_local(yard, process),
                                   yard_unix_ms(yard, process), &output)) {
        if (count++ == OUTPUTS_MAX) {
            yard_violated(yard, "storm", "p%d has %d outputs at once", process->number, count);
        }
        carry_out(yard, process, &output);
    }
    if (leading->core && leading->is_loaded) {
        yard_check_placed(yard, process);
        leading->change = ledger_change(work_leader_ledger(leading->core));
        rearm(yard, process);
    }
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void pass_on_heard(struct yard *yard, const struct yard_process *process)
{
    for (size_t i = 0; i < yard->process_count; i++) {
        const struct yard_heard *heard = &process->leading.heard[i];
        span ago = instant_since(yard_local(yard, process), heard->at);
        char name[BATON_NAME_MAX];

        if (heard->session != 0 && ago.ns <= process->options.worker_lease.ns &&
            !YARD_MUTANT(HEARD_NOT_PASSED_ON)) {
            (void)snprintf(name, sizeof(name), "%zu", i);
            work_leader_heard(process->leading.core, name, heard->session, heard->ledger);
        }
    }
}

void leading_elected(struct yard *yard, struct yard_process *process, uint64_t epoch)
{
    struct work_leader_options options = process->options;
    struct yard_leading *leading = &process->leading;

    if (leading->core || !election_is_held_by(yard, YARD_POOL, process, epoch)) {
        return;
    }
    options.epoch = epoch;
    options.random = random_next(&yard->random) & WORK_NUMBER_MAX;
    leading->core = work_leader_new(&options, yard_local(yard, process));
    INVARIANT(leading->core != NULL);
    leading->epoch = epoch;
    leading->number++;
    leading->tick_at = INT64_MAX;
    leading->change = 0;
    leading->under_way = 0;
    leading->has_mark = leading->is_loaded = false;
    leading->is_watching[YARD_WATCH_REQUESTS] = leading->is_watching[YARD_WATCH_SUBMISSIONS] =
        false;
    yard->result.counts[YARD_COUNT_LEADERS]++;
    yard_say(yard, process->number, "LEADS, epoch %llu", (unsigned long long)epoch);
    pass_on_heard(yard, process);
    ask(yard, process, YARD_WATCH, NULL, YARD_WATCH_REQUESTS);
    ask(yard, process, YARD_READ, yard_key_of(yard, "ledger"), 0);
}

static void note_heard(struct yard *yard, struct yard_process *process,
                       const struct work_report *report)
{
    struct yard_heard *heard = &process->leading.heard[report->worker[0] - '0'];

    if (report->session >= heard->session) {
        *heard = (struct yard_heard){report->session, report->ledger, yard_local(yard, process)};
    }
}

static void take_value(struct yard *yard, struct yard_process *process,
                       const struct yard_event *event)
{
    static const uint8_t nothing[1] = {0};
    const struct yard_value *value = event->value;
    bool is_read = event->kind == YARD_REPLY || event->has_reply; /* or of a list */

    yard_say(yard, process->number, "hears that %s is %.*s, revision %llu", event->key->name,
             value ? (int)value->bytes : 6, value ? (const char *)value->data : "absent",
             (unsigned long long)event->revision);
    (is_read ? work_leader_read : work_leader_value)(process->leading.core, event->key->name,
                                                     !value             ? NULL
                                                     : value->bytes > 0 ? value->data
                                                                        : nothing,
                                                     value ? value->bytes : 0, event->revision,
                                                     yard_local(yard, process),
                                                     yard_unix_ms(yard, process));
}

static void loaded(struct yard *yard, struct yard_process *process)
{
    ask(yard, process, YARD_WATCH, NULL, YARD_WATCH_SUBMISSIONS);
    process->leading.is_loaded = true;
    work_leader_loaded(process->leading.core, yard_local(yard, process),
                       yard_unix_ms(yard, process));
}

/* The mark of the ledger comes first, then the rest. */
static void take_read(struct yard *yard, struct yard_process *process,
                      const struct yard_event *event)
{
    bool is_mark = !process->leading.has_mark;

    process->leading.has_mark = true;
    take_value(yard, process, event);
    if (is_mark) {
        ask(yard, process, YARD_LIST, NULL, YARD_LIST_BUCKETS);
    }
}

static void take_list(struct yard *yard, struct yard_process *process, enum yard_listed listed)
{
    if (listed == YARD_LIST_BUCKETS) {
        ask(yard, process, YARD_LIST, NULL, YARD_LIST_SUBMISSIONS);
    } else {
        loaded(yard, process);
    }
}

static void take_reply(struct yard *yard, struct yard_process *process,
                       const struct yard_event *event)
{
    process->leading.under_way--;
    if (event->request == YARD_PUT) {
        yard_say(yard, process->number, "put %s: code %d, revision %llu", event->key->name,
                 event->code, (unsigned long long)event->revision);
        work_leader_stored(process->leading.core, event->key->name, event->code, event->revision,
                           yard_local(yard, process), yard_unix_ms(yard, process));
    } else if (event->code != BATON_OK) { /* the driver asks until it gets a reply */
        ask(yard, process, event->request, event->key, event->revision);
    } else if (event->request == YARD_READ) {
        take_read(yard, process, event);
    } else if (event->request == YARD_LIST) {
        take_list(yard, process, (enum yard_listed)event->revision);
    }
}

static void tick(struct yard *yard, struct yard_process *process)
{
    yard->spins = yard->spun_at == yard->now ? yard->spins + 1 : 0;
    yard->spun_at = yard->now;
    if (yard->spins > SPINS_MAX) {
        yard_violated(yard, "spin", "p%d ticks again and again", process->number);
    }
    process->leading.tick_at = INT64_MAX;
    work_leader_tick(process->leading.core, yard_local(yard, process), yard_unix_ms(yard, process));
}

static void take(struct yard *yard, struct yard_process *process, const struct yard_event *event)
{
    struct work_leader *core = process->leading.core;
    instant now = yard_local(yard, process);
    int64_t unix_ms = yard_unix_ms(yard, process);

    switch (event->kind) {
    case YARD_LEADER_TICK:
        tick(yard, process);
        break;
    case YARD_TO_LEADERS:
        work_leader_hear(core, &event->letter->message, now, unix_ms);
        break;
    case YARD_NOTICE:
        take_value(yard, process, event);
        break;
    case YARD_REPLY:
        take_reply(yard, process, event);
        break;
    default: { /* YARD_EPOCH */
        char name[BATON_NAME_MAX];
        (void)snprintf(name, sizeof(name), "%d", election_worker(event->election));
        work_leader_session(core, name, event->epoch, event->is_ours, now, unix_ms);
        break;
    }
    }
    drive(yard, process);
}

static bool is_for_this_core(const struct yard_leading *leading, const struct yard_event *event)
{
    bool has_number =
        event->kind == YARD_LEADER_TICK || event->kind == YARD_NOTICE || event->kind == YARD_REPLY;

    return leading->core && (!has_number || event->number == leading->number);
}

/* A later notice of the key is on its way, so the provider may leave this one out. */
static bool is_left_out(struct yard *yard, const struct yard_process *process,
                        const struct yard_event *event)
{
    return event->kind == YARD_NOTICE && !event->has_reply &&
           yard->now < event->key->noticed_at[process->number] &&
           random_chance(&yard->random, 300000);
}

void leading_happen(struct yard *yard, struct yard_process *process, struct yard_event *event)
{
    if (event->kind == YARD_TO_LEADERS && event->letter->message.type == WORK_REPORT) {
        note_heard(yard, process, &event->letter->message.report);
    }
    if (event->kind == YARD_DEPOSED) {
        if (process->leading.core && process->leading.epoch == event->epoch) {
            step_down(yard, process);
        }
    } else if (is_for_this_core(&process->leading, event) && !is_left_out(yard, process, event)) {
        take(yard, process, event);
    }
}
