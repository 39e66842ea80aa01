/* The run of one seed: a phase with faults; then one without, in which every election that a
 * process wants gets a holder that acts, and every session of a dead process ends. */
#include "sim/sessions/play.h"

#include "sim/sessions/acting.h"
#include "sim/sessions/checks.h"
#include "sim/sessions/faults.h"
#include "sim/sessions/fences.h"
#include "sim/sessions/log.h"
#include "sim/sessions/process.h"
#include "sim/sessions/profile.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

#include <stdlib.h>
#include <string.h>

_Thread_local enum session_mutant session_mutant = SESSION_MUTANT_NONE;
_Thread_local enum assembly_mutant assembly_mutant = ASSEMBLY_MUTANT_NONE;

enum { MS = 1000000, CALM_EVENTS_MAX = 400000 };

static void begin(struct assembly *assembly, const struct options *options)
{
    assembly->options = *options;
    assembly->random = (struct random){options->seed * 0x2545f4914f6cdd1du + 1};
    assembly->aside = (struct random){options->seed * 0x9fb21c651e98df25u + 7};
    assembly->result = (struct result){0};
    assembly->now = 0;
    assembly->queued = 0;
    assembly->ranks = assembly->length = assembly->term = 0;
    assembly->is_calm = false;
    assembly->fence = (struct assembly_fence){0};
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        assembly->highest[i] = 0;
    }
    memset(assembly->has_expired, 0, sizeof(assembly->has_expired));
    story_begin(&assembly->story, &assembly->options);
}

static void populate(struct assembly *assembly)
{
    const struct assembly_profile *p = &assembly->profile;

    assembly_draw(assembly);
    assembly_say(assembly, -1, -1,
                 "an assembly of %s: %zu agents, %zu processes, lease %.3f ms, of the log %.3f ms, "
                 "%u ppm",
                 p->name, p->agents, p->processes, (double)p->settings.lease.ns / 1e6,
                 (double)p->log_lease.ns / 1e6, p->settings.clock_drift_ppm);
    for (size_t i = 0; i < p->agents; i++) {
        assembly->agents[i] = (struct assembly_agent){
            .assembly = assembly,
            .number = (int)i,
            .lease_end = INSTANT_PAST,
            .clock = {.local_base = random_between(&assembly->random, 0, SPAN_S(100000).ns),
                      .ppm = assembly_draw_rate(assembly)}};
    }
    log_begin(assembly);
    for (size_t i = 0; i < p->processes; i++) {
        assembly->processes[i] = (struct assembly_process){
            .number = (int)i, .host = (int)random_below(&assembly->random, p->agents)};
        process_start(assembly, &assembly->processes[i]);
    }
    assembly_push(assembly, ASSEMBLY_FAULT, p->fault_every);
    assembly_fences_begin(assembly);
}

static void go_on(struct assembly *assembly)
{
    struct assembly_event event;

    if (!assembly_pop(assembly, &event)) {
        assembly_violated(assembly, "stuck", "nothing is to come any more");
    }
    assembly->now = event.at;
    assembly->result.events++;
    story_mix(&assembly->story, (uint64_t)event.at);
    story_mix(&assembly->story, (uint64_t)event.kind << 32 ^ (uint64_t)(unsigned)event.process);
    if (event.kind == ASSEMBLY_FAULT) {
        if (!assembly->is_calm) {
            assembly_fault_next(assembly);
        }
    } else if (event.kind == ASSEMBLY_FENCE || event.kind == ASSEMBLY_OFF) {
        assembly_fences_happen(assembly, &event);
    } else if (event.process >= 0 && event.agent < 0) {
        process_happen(assembly, &assembly->processes[event.process], &event);
    } else {
        log_happen(assembly, &event);
    }
    assembly_check_acting(assembly);
}

/* ---- Without faults -------------------------------------------------------------------------- */

static bool is_wanted(const struct assembly *assembly, int election)
{
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        if (assembly->processes[i].is_wanted[election]) {
            return true;
        }
    }
    return false;
}

static bool is_led(const struct assembly *assembly, int election)
{
    uint64_t session;

    for (size_t i = 0; i < assembly->profile.processes; i++) {
        if (process_acts(assembly, &assembly->processes[i], election, &session) != 0) {
            return true;
        }
    }
    return false;
}

static size_t orphans(const struct assembly *assembly)
{
    size_t count = 0;

    for (const struct session *at = sessions_next(assembly->truth, NULL); at;
         at = sessions_next(assembly->truth, at)) {
        const struct assembly_process *process = &assembly->processes[assembly_number_of(at->name)];
        count += !process->client || session_client_lease(process->client).session != at->id;
    }
    return count;
}

/* Lifetimes by the slowest clock, of a session and of those opened in vain; the log's lease; what
 * may still be in flight; some rounds of asking again. */
static int64_t calm_bound(const struct assembly *assembly)
{
    const struct assembly_profile *p = &assembly->profile;
    const struct lease_settings *s = &p->settings;
    int64_t time = 5 * s->lease.ns + 4 * p->log_lease.ns + 4 * s->answer_timeout.ns +
                   4 * s->check_interval.ns + 4 * p->down_time + 10 * p->nag_every + 6 * p->tail +
                   40 * (p->delay + p->jitter) + 6000 * (int64_t)MS;

    return time + time / 1000000 * 4 * p->drift_ppm;
}

static void play_until(struct assembly *assembly, int64_t end)
{
    assembly_push(assembly, ASSEMBLY_FAULT, end); /* does nothing in this phase */
    for (int i = 0; assembly->now < end; i++) {
        if (i == CALM_EVENTS_MAX) {
            assembly_violated(assembly, "storm", "%d events in calm", i);
        }
        go_on(assembly);
    }
}

static void calm(struct assembly *assembly)
{
    assembly_say(assembly, -1, -1, "all faults stop");
    assembly->is_calm = true;
    assembly_faults_stop(assembly);
    play_until(assembly, assembly->now + calm_bound(assembly));
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        if (is_wanted(assembly, i) && !is_led(assembly, i)) {
            assembly_violated(assembly, "no-leader", "no process leads %s", assembly_name(i));
        }
    }
    if (orphans(assembly) > 0) {
        assembly_violated(assembly, "orphan", "%zu sessions of no living process have not ended",
                          orphans(assembly));
    }
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        if (assembly->agents[i].applied == assembly->length) {
            assembly_check_same(assembly, &assembly->agents[i]);
        }
    }
}

static void play(struct assembly *assembly)
{
    populate(assembly);
    for (uint32_t i = 0; i < assembly->profile.events; i++) {
        go_on(assembly);
    }
    calm(assembly);
}

/* ---- As a game ------------------------------------------------------------------------------- */

static void *game_new(void)
{
    return calloc(1, sizeof(struct assembly));
}

static void game_free(void *world)
{
    free(world);
}

static void game_play(void *world, const struct options *options, struct result *ret)
{
    struct assembly *assembly = world;

    begin(assembly, options);
    if (setjmp(assembly->violated) == 0) {
        play(assembly);
    }
    log_end(assembly);
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        process_drop(&assembly->processes[i]);
    }
    assembly->result.hash = assembly->story.hash;
    assembly->result.virtual_ns = assembly->now;
    *ret = assembly->result;
}

static const char *game_theme(const void *world)
{
    return ((const struct assembly *)world)->profile.name;
}

static void game_print_tail(const void *world)
{
    story_print_tail(&((const struct assembly *)world)->story);
}

/* Mutants of the core first, then those of the model. */
static void game_set_mutant(int number)
{
    bool is_core = number < SESSION_MUTANT_COUNT;

    session_mutant = is_core ? (enum session_mutant)number : SESSION_MUTANT_NONE;
    assembly_mutant =
        is_core ? ASSEMBLY_MUTANT_NONE : (enum assembly_mutant)(number - SESSION_MUTANT_COUNT + 1);
}

static const struct game_mutant mutants[] = {
#define CORE_ROW(mutant, text) {SESSION_MUTANT_##mutant, #mutant, text},
#define MODEL_ROW(mutant, text)                                                                    \
    {SESSION_MUTANT_COUNT - 1 + ASSEMBLY_MUTANT_##mutant, #mutant, text},
    SESSION_MUTANTS(CORE_ROW) ASSEMBLY_MUTANTS(MODEL_ROW)
#undef CORE_ROW
#undef MODEL_ROW
};

static const struct game_clue clues[] = {
    {"CORDON_NOT_RESTORED", 244},  {"GIVEN_UP_FORGOTTEN", 6692},
    {"KEPT_BEYOND_SESSION", 4647}, {"LATE_WITHDRAWAL_NOT_HEARD", 8486},
    {"LATE_RESUMPTION_ENDS", 582}, {NULL, 0},
};

const struct game sessions_game = {
    .flag = " --sessions",
    .nodes_max = AGENTS_MAX,
    .new_world = game_new,
    .free_world = game_free,
    .play = game_play,
    .theme = game_theme,
    .print_tail = game_print_tail,
    .count_names = {[ASSEMBLY_COUNT_GRANTS] = {"leaderships", "leaderships"},
                    [ASSEMBLY_COUNT_ENTRIES] = {"entries", "entries of the log"},
                    [ASSEMBLY_COUNT_CRASHES] = {"crashes", "crashes"},
                    [ASSEMBLY_COUNT_TERMS] = {"terms", "leaders of the log"}},
    .mutants = mutants,
    .mutant_count = sizeof(mutants) / sizeof(mutants[0]),
    .clues = clues,
    .set_mutant = game_set_mutant,
};
