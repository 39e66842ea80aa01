/* The run of one seed: a phase with faults; then one without, in which every job ends, every
 * service runs in one place, and nothing moves any more. */
#include "sim/work/play.h"

#include "sim/work/clients.h"
#include "sim/work/copies.h"
#include "sim/work/elections.h"
#include "sim/work/faults.h"
#include "sim/work/goals.h"
#include "sim/work/leading.h"
#include "sim/work/process.h"
#include "sim/work/profile.h"
#include "sim/work/store.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdlib.h>
#include <string.h>

_Thread_local enum work_mutant work_mutant = WORK_MUTANT_NONE;
_Thread_local enum yard_mutant yard_mutant = YARD_MUTANT_NONE;

enum { CALM_EVENTS_MAX = 60000, LOOK_EVERY = 8, QUIET_REPORTS = 6 };

/* The run under way in this thread; a broken invariant of a core is reported there. */
static _Thread_local struct yard *running;

void __real_invariant_failed(const char *text, const char *file, int line)
    __attribute__((noreturn));
void __wrap_invariant_failed(const char *text, const char *file, int line)
    __attribute__((noreturn));

void __wrap_invariant_failed(const char *text, const char *file, int line)
{
    if (!running) {
        __real_invariant_failed(text, file, line);
    }
    running->is_broken = true;
    yard_violated(running, "invariant", "%s (%s:%d)", text, file, line);
}

static void begin(struct yard *yard, const struct options *options)
{
    yard->options = *options;
    yard->random = (struct random){options->seed * 0x2545f4914f6cdd1du + 1};
    yard->late = (struct random){options->seed * 0xd1342543de82ef95u + 20};
    yard->result = (struct result){0};
    yard->now = yard->spun_at = 0;
    yard->spins = 0;
    yard->queued = 0;
    yard->ranks = yard->copy_number = 0;
    yard->is_calm = yard->has_lost = yard->is_forgetting = yard->has_deleted = false;
    yard->is_broken = false;
    yard->process_count = 0;
    yard->event = (struct yard_event){.at = 0};
    yard->rebuilt = NULL;
    memset(yard->copies, 0, sizeof(yard->copies));
    buffer_init(&yard->buffer, WORK_MESSAGE_MAX);
    story_begin(&yard->story, &yard->options);
    elections_begin(yard);
    store_begin(yard);
}

static void end(struct yard *yard)
{
    for (size_t i = 0; i < yard->process_count && !yard->is_broken; i++) {
        yard_drop(&yard->processes[i]);
    }
    if (!yard->is_broken) { /* what a core has in the midst of a step is not freed */
        work_leader_free(yard->rebuilt);
    }
    yard_event_fini(&yard->event);
    yard_drain(yard);
    clients_end(yard);
    store_end(yard);
    buffer_fini(&yard->buffer);
}

/* The candidates come first, the workers last. */
static void add_process(struct yard *yard, size_t number)
{
    const struct yard_profile *p = &yard->profile;
    struct yard_process *process = &yard->processes[number];
    bool is_worker = number >= p->candidates - p->both;

    *process = (struct yard_process){
        .number = (int)number,
        .is_candidate = number < p->candidates,
        .is_worker = is_worker,
        .clock = {.local_base = random_between(&yard->random, SPAN_S(1000).ns, SPAN_S(9000).ns),
                  .ppm = yard_draw_rate(yard)},
        .working = {.slots = p->slots + (uint32_t)random_below(&yard->random, 3),
                    .has_label = number + 1 == p->candidates - p->both + p->workers ||
                                 random_chance(&yard->random, 300000)},
    };
    process->wall_offset_ms = YARD_UNIX_MS - process->clock.local_base / 1000000;
    if (p->walls_differ) {
        process->wall_offset_ms += random_between(&yard->random, -20000, 20000);
    }
    yard_start(yard, process);
}

static void populate(struct yard *yard)
{
    const struct yard_profile *p = &yard->profile;

    yard_draw(yard);
    yard_say(
        yard, YARD_NOBODY,
        "a yard of %s: %zu candidates, %zu workers, %zu are both, lease %.3f ms, reports every "
        "%.3f ms",
        p->name, p->candidates, p->workers, p->both, (double)p->lease.ns / 1e6,
        (double)p->options.report_interval.ns / 1e6);
    yard->process_count = p->candidates + p->workers - p->both;
    for (size_t i = 0; i < yard->process_count; i++) {
        yard->processes[i] = (struct yard_process){.number = (int)i};
    }
    for (size_t i = 0; i < yard->process_count; i++) {
        add_process(yard, i);
    }
    clients_begin(yard);
    yard_push(yard, YARD_FAULT, p->fault_every);
}

static void happen(struct yard *yard, struct yard_event *event)
{
    switch (event->kind) {
    case YARD_FAULT:
        if (!yard->is_calm) {
            yard_fault_next(yard);
        }
        break;
    case YARD_CLIENT:
        if (!yard->is_calm) {
            clients_act(yard);
        }
        break;
    case YARD_REQUEST:
    case YARD_EXPIRE:
        store_happen(yard, event);
        break;
    case YARD_GRANT:
    case YARD_RELEASE:
    case YARD_LEASE_END:
        elections_happen(yard, event);
        break;
    default:
        yard_process_happen(yard, event);
        break;
    }
}

static void go_on(struct yard *yard)
{
    struct yard_event *event = &yard->event;

    yard_event_fini(event);
    if (!yard_pop(yard, event)) {
        yard_violated(yard, "stuck", "nothing is to come any more");
    }
    yard->now = event->at;
    yard->result.events++;
    story_mix(&yard->story, (uint64_t)event->at);
    story_mix(&yard->story, (uint64_t)event->kind << 32 ^ (uint64_t)(unsigned)event->process);
    happen(yard, event);
}

/* ---- Without faults -------------------------------------------------------------------------- */

/* Leases, silences and waits for the rest of what an item may need: its attempts, one after
 * another, each of them behind others. */
static int64_t calm_bound(const struct yard *yard)
{
    const struct yard_profile *p = &yard->profile;
    const struct work_leader_options *o = &p->options;
    int64_t attempt = 4 * p->job_time + p->halt_time + 6 * o->report_interval.ns + 10 * p->timeout +
                      40 * (p->delay + p->jitter);

    return 20 * p->lease.ns + 4 * (p->denial + p->down_time + p->tail + p->lag) +
           10 * o->silence.ns + 4 * (o->collect.ns + o->worker_lease.ns + o->rebalance_every.ns) +
           (int64_t)(3 * yard->item_count + 3) * attempt;
}

/* Until all goals are reached. */
static void play_to_goals(struct yard *yard)
{
    int64_t last = yard->now + calm_bound(yard);
    const char *missing = "the goals were not looked at";

    for (int i = 0; i % LOOK_EVERY != 0 || (missing = yard_goal_missing(yard)); i++) {
        if (yard->now > last) {
            yard_violated(yard, "liveness", "%s, %lld ms after the last fault", missing,
                          (long long)(calm_bound(yard) / 1000000));
        }
        if (i == CALM_EVENTS_MAX) {
            yard_violated(yard, "storm", "%d events without faults; %s", i, missing);
        }
        go_on(yard);
    }
}

/* Some reports, and what they lead to. */
static void play_a_while(struct yard *yard)
{
    int64_t reports = QUIET_REPORTS * yard->profile.options.report_interval.ns;
    int64_t until = yard->now + reports + 2 * yard->profile.options.rebalance_every.ns +
                    yard->profile.lag; /* a notice from the time of faults may come yet */

    yard_say(yard, YARD_NOBODY, "all goals are reached");
    yard_push(yard, YARD_FAULT, until); /* does nothing in this phase */
    while (yard->now < until) {
        go_on(yard);
    }
    play_to_goals(yard);
}

/* Nothing begins any more. */
static void play_quietly(struct yard *yard)
{
    uint64_t copies = yard->copy_number;

    play_a_while(yard);
    if (yard->copy_number != copies) {
        yard_violated(yard, "restless", "%llu copies have begun after all was in its place",
                      (unsigned long long)(yard->copy_number - copies));
    }
}

static void calm(struct yard *yard)
{
    yard_say(yard, YARD_NOBODY, "all faults stop");
    yard->is_calm = true;
    yard_faults_stop(yard);
    play_to_goals(yard);
    play_a_while(yard);
    play_quietly(yard);
    yard_check_rebuilt(yard);
}

static void play(struct yard *yard)
{
    populate(yard);
    for (uint32_t i = 0; i < yard->profile.events; i++) {
        go_on(yard);
    }
    calm(yard);
}

/* ---- As a game ------------------------------------------------------------------------------- */

static void *game_new(void)
{
    return calloc(1, sizeof(struct yard));
}

static void game_free(void *world)
{
    free(world);
}

static void game_play(void *world, const struct options *options, struct result *ret)
{
    struct yard *yard = world;

    begin(yard, options);
    running = yard;
    if (setjmp(yard->violated) == 0) {
        play(yard);
    }
    running = NULL;
    end(yard);
    yard->result.hash = yard->story.hash;
    yard->result.virtual_ns = yard->now;
    *ret = yard->result;
}

static const char *game_theme(const void *world)
{
    return ((const struct yard *)world)->profile.name;
}

static void game_print_tail(const void *world)
{
    story_print_tail(&((const struct yard *)world)->story);
}

/* Mutants of the core first, then those of the model. */
static void game_set_mutant(int number)
{
    bool is_core = number < WORK_MUTANT_COUNT;

    work_mutant = is_core ? (enum work_mutant)number : WORK_MUTANT_NONE;
    yard_mutant = is_core ? YARD_MUTANT_NONE : (enum yard_mutant)(number - WORK_MUTANT_COUNT + 1);
}

static const struct game_mutant mutants[] = {
#define CORE_ROW(mutant, text)  {WORK_MUTANT_##mutant, #mutant, text},
#define MODEL_ROW(mutant, text) {WORK_MUTANT_COUNT - 1 + YARD_MUTANT_##mutant, #mutant, text},
    WORK_PLAYED_MUTANTS(CORE_ROW) YARD_MUTANTS(MODEL_ROW)
#undef CORE_ROW
#undef MODEL_ROW
};

static const struct game_clue clues[] = {
    {"NEWER_CLAIM_STALE", 284},
    {"FINAL_REVIVED", 8309},
    {"REBUILDS_IN_HASTE", 11535},
    {"SILENT_HAD_NOTHING", 187997},
    {"TWO_COPIES", 48129},
    {"SENT_AGAIN", 102},
    {"LOSS_IGNORED", 1128},
    {"STOP_SENT_ONCE", 248},
    {"FORGOTTEN_FIRST", 445},
    {"FLOOR_FORGOTTEN", 960},
    {"SHARED_FORGOTTEN", 336},
    {"HEARD_NOT_PASSED_ON", 823},
    {"REVISION_TWICE", 103796},
    {"REST_DELETED_UNREAD", 84721},
    {"KNOWN_COPY_IGNORED", 389884},
    {"EARLIER_RESULT_COUNTS", 70842},
    {NULL, 0},
};

const struct game work_game = {
    .flag = " --work",
    .nodes_max = YARD_WORKERS_MAX,
    .new_world = game_new,
    .free_world = game_free,
    .play = game_play,
    .theme = game_theme,
    .print_tail = game_print_tail,
    .count_names = {[YARD_COUNT_COPIES] = {"copies", "copies of items"},
                    [YARD_COUNT_ENDED] = {"ended", "items ended"},
                    [YARD_COUNT_CRASHES] = {"crashes", "crashes"},
                    [YARD_COUNT_LEADERS] = {"leaders", "leaders"}},
    .mutants = mutants,
    .mutant_count = sizeof(mutants) / sizeof(mutants[0]),
    .clues = clues,
    .set_mutant = game_set_mutant,
};
