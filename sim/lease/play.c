/* The run of one seed: a phase with faults; then a phase without, in which a process must lead
 * within a bounded time and stay; then a crash or a resignation, after which the next must lead as
 * soon as the rules say. */
#include "sim/lease/play.h"

#include "sim/lease/checks.h"
#include "sim/lease/contender.h"
#include "sim/lease/faults.h"
#include "sim/lease/leading.h"
#include "sim/lease/profile.h"
#include "sim/lease/server.h"
#include "sim/lease/trace.h"
#include "sim/lease/wire.h"

#include <stdlib.h>

_Thread_local enum lease_mutant lease_mutant = LEASE_MUTANT_NONE;
_Thread_local enum contest_mutant contest_mutant = CONTEST_MUTANT_NONE;

enum { MS = 1000000, CALM_EVENTS_MAX = 200000 };

struct contest *contest_new(void)
{
    return calloc(1, sizeof(struct contest));
}

void contest_free(struct contest *contest)
{
    free(contest);
}

static void begin(struct contest *contest, const struct options *options)
{
    contest->options = *options;
    contest->random = (struct random){options->seed * 0x2545f4914f6cdd1du + 1};
    contest->result = (struct result){0};
    contest->now = 0;
    contest->queued = 0;
    contest->order = contest->ids = contest->connections = contest->histories = 0;
    contest->is_calm = false;
    contest->highest_epoch = contest->losses = 0;
    story_begin(&contest->story, &contest->options);
}

static void populate(struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;

    contest_draw(contest);
    contest_say(
        contest, NULL,
        "a contest of %s: %zu contenders, lease %.3f to %.3f ms, max-lease %.3f ms%s, %u ppm, "
        "answers in up to %.3f ms",
        p->name, p->contenders, (double)p->settings.lease.ns / 1e6, (double)p->most.lease.ns / 1e6,
        (double)p->max_lease.ns / 1e6, p->max_leases_differ ? " or less" : "",
        p->settings.clock_drift_ppm, (double)(2 * (p->delay + p->jitter)) / 1e6);
    server_begin(contest);
    for (size_t i = 0; i < p->contenders; i++) {
        struct contender *who = &contest->contenders[i];
        *who = (struct contender){.number = (unsigned)i + 1};
        who->clock = (struct drift_clock){
            .local_base = random_between(&contest->random, 0, SPAN_S(100000).ns),
            .ppm = contest_draw_rate(contest)};
        contender_start(contest, who);
    }
    contest_push(contest, CONTEST_FAULT, p->fault_every);
}

static void go_on(struct contest *contest)
{
    struct contest_event event;

    if (!contest_pop(contest, &event)) {
        contest_violated(contest, "no-leader", "nothing is to come any more");
    }
    contest->now = event.at;
    contest->result.events++;
    story_mix(&contest->story, (uint64_t)event.at);
    story_mix(&contest->story, (uint64_t)event.kind << 32 ^ event.id);
    switch (event.kind) {
    case CONTEST_FAULT:
        if (!contest->is_calm) {
            contest_fault_next(contest);
        }
        break;
    case CONTEST_CONNECT:
    case CONTEST_REQUEST:
    case CONTEST_GUARDIAN:
    case CONTEST_SERVER_UP:
    case CONTEST_EXPIRE:
        server_happen(contest, &event);
        break;
    default:
        contender_happen(contest, event.who, &event);
        break;
    }
    contest_check_leaders(contest);
}

/* ---- Without faults -------------------------------------------------------------------------- */

static int64_t round_trip(const struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;
    return 2 * (p->delay + p->jitter) + 3 * p->lateness;
}

/* The time by the slowest allowed clock, of a server with the fastest. */
static int64_t stretched(const struct contest *contest, int64_t time)
{
    return time + time / 1000000 * 4 * contest->profile.drift_ppm;
}

/* Two lifetimes (the lock of a dead process, then a server that waits), the last request before,
 * and everything that may still be in flight. */
static int64_t calm_bound(const struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;
    const struct lease_settings *s = &p->most;

    return stretched(contest, 4 * p->max_lease.ns + 3 * s->answer_timeout.ns +
                                  3 * s->check_interval.ns + 2 * s->renew_interval.ns +
                                  4 * s->spread_max.ns) +
           2 * p->reconnect + p->down_time + 4 * p->tail + 10 * round_trip(contest) +
           3000 * (int64_t)MS;
}

static void play_until(struct contest *contest, int64_t end)
{
    contest_push(contest, CONTEST_FAULT, end); /* does nothing in this phase */
    for (int i = 0; contest->now < end; i++) {
        if (i == CALM_EVENTS_MAX) {
            contest_violated(contest, "storm", "%d events in %.3f ms of calm", i,
                             (double)(end - contest->now) / 1e6);
        }
        go_on(contest);
    }
}

static void somebody_leads_within(struct contest *contest, int64_t bound, const char *check)
{
    int64_t begun = contest->now;

    contest_push(contest, CONTEST_FAULT, begun + bound);
    for (int i = 0; !contest_leader(contest); i++) {
        if (contest->now >= begun + bound || i == CALM_EVENTS_MAX) {
            contest_violated(contest, check, "nobody leads for %.3f ms",
                             (double)(contest->now - begun) / 1e6);
        }
        go_on(contest);
    }
}

/* Without faults the leader does not change. */
static void leader_stays(struct contest *contest)
{
    const struct contender *leader = contest_leader(contest);
    uint64_t epoch = leader->update.epoch;

    play_until(contest, contest->now + 3 * contest->profile.most.lease.ns);
    if (!contender_leads(contest, leader) || leader->update.epoch != epoch) {
        contest_violated(contest, "unsteady", "c%u in epoch %llu does not stay leader",
                         leader->number, (unsigned long long)epoch);
    }
}

/* The server comes back empty while the leader has much of its lease left: the leader leads on. */
static void lose_data(struct contest *contest, const struct contender *leader)
{
    struct contest_profile *p = &contest->profile;
    uint64_t epoch = leader->update.epoch;
    int64_t left = instant_since(leader->update.end, drift_local(&leader->clock, contest->now)).ns;

    p->down_time = 0;
    if (left < stretched(contest, 4 * round_trip(contest) + 200 * (int64_t)MS)) {
        return;
    }
    server_fail(contest, SERVER_HAS_NOTHING);
    play_until(contest, contest->now + 3 * p->most.lease.ns);
    if (!contender_leads(contest, leader) || leader->update.epoch != epoch) {
        contest_violated(contest, "deposed", "c%u led in epoch %llu when the server lost its data",
                         leader->number, (unsigned long long)epoch);
    }
}

static void drill(struct contest *contest)
{
    const struct lease_settings *s = &contest->profile.most;
    struct contender *leader = contest_leader(contest);
    int64_t spread = s->spread_each.ns * (int64_t)contest->profile.contenders;
    int64_t handover = 4 * round_trip(contest) +
                       (spread < s->spread_max.ns ? spread : s->spread_max.ns) + 2 * (int64_t)MS;
    struct lease_input resign = {.type = LEASE_IN_RESIGN};

    if (contest->profile.contenders < 2) {
        return;
    }
    if (leader->history != contest->server.history) {
        handover += contest->profile.max_lease
                        .ns; /* the history changed under the leader, so its renewals end no wait */
    }
    contest->profile.down_time = 100 * s->lease.ns; /* no process starts again meanwhile */
    switch (random_below(&contest->random, 4)) {
    case 0:
        contender_crash(contest, leader, false);
        somebody_leads_within(contest, stretched(contest, s->lease.ns) + handover, "slow-takeover");
        break;
    case 1:
        contender_crash(contest, leader, true);
        somebody_leads_within(contest, stretched(contest, handover), "slow-handover");
        break;
    case 2:
        lose_data(contest, leader);
        break;
    default:
        contender_step(contest, leader, &resign);
        somebody_leads_within(contest, stretched(contest, handover), "slow-handover");
        break;
    }
}

/* All messages in flight have arrived, lost ones are given up, and a process that resigned may ask
 * again. A leader may lose its lease by a lost message, if replies may take as long. */
static int64_t settling(const struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;

    return stretched(contest, 2 * p->tail + p->down_time + p->most.check_interval.ns +
                                  p->most.answer_timeout.ns + 600 * (int64_t)MS);
}

/* A message that waits behind a cut delays all later ones on the same connection. */
static int64_t held_up(const struct contest *contest)
{
    int64_t last = contest->now;

    for (size_t i = 0; i < contest->profile.contenders; i++) {
        const struct contender *who = &contest->contenders[i];
        last = who->last_in > last ? who->last_in : last;
        last = who->last_out > last ? who->last_out : last;
    }
    return last - contest->now;
}

static void calm(struct contest *contest)
{
    int64_t begin = contest->now + held_up(contest);
    int64_t end = begin + calm_bound(contest);

    contest_say(contest, NULL, "all faults stop");
    contest->is_calm = true;
    contest_faults_stop(contest);
    play_until(contest, begin + settling(contest));
    if (contest->now < end) {
        somebody_leads_within(contest, end - contest->now, "no-leader");
    }
    leader_stays(contest);
    drill(contest);
}

static void play(struct contest *contest)
{
    populate(contest);
    for (uint32_t i = 0; i < contest->profile.events; i++) {
        go_on(contest);
    }
    calm(contest);
}

void contest_run(struct contest *contest, const struct options *options, struct result *ret)
{
    begin(contest, options);
    if (setjmp(contest->violated) == 0) {
        play(contest);
    }
    contest->result.counts[CONTEST_COUNT_LOSSES] = contest->losses;
    contest->result.hash = contest->story.hash;
    contest->result.virtual_ns = contest->now;
    *ret = contest->result;
}

/* ---- As a game ------------------------------------------------------------------------------- */

static void *game_new(void)
{
    return contest_new();
}

static void game_free(void *world)
{
    contest_free(world);
}

static void game_play(void *world, const struct options *options, struct result *ret)
{
    contest_run(world, options, ret);
}

static const char *game_theme(const void *world)
{
    return ((const struct contest *)world)->profile.name;
}

static void game_print_tail(const void *world)
{
    story_print_tail(&((const struct contest *)world)->story);
}

/* Mutants of the core first, then those of the model. */
static void game_set_mutant(int number)
{
    bool is_core = number < LEASE_MUTANT_COUNT;

    lease_mutant = is_core ? (enum lease_mutant)number : LEASE_MUTANT_NONE;
    contest_mutant =
        is_core ? CONTEST_MUTANT_NONE : (enum contest_mutant)(number - LEASE_MUTANT_COUNT + 1);
}

static const struct game_mutant mutants[] = {
#define CORE_ROW(mutant, text)  {LEASE_MUTANT_##mutant, #mutant, text},
#define MODEL_ROW(mutant, text) {LEASE_MUTANT_COUNT - 1 + CONTEST_MUTANT_##mutant, #mutant, text},
    CONTEST_ALL_MUTANTS(CORE_ROW, MODEL_ROW)
#undef CORE_ROW
#undef MODEL_ROW
};

static const struct game_clue clues[] = {
    {"ENDLESS_IS_OVER", 424},
    {"RELEASE_ANY_EPOCH", 651},
    {"RECORD_HAS_NO_LONGEST", 7599},
    {"PEER_FOLLOWED_AT_ONCE", 5241},
    {"RESTORED_AFTER_ANOTHER", 1139},
    {"UPTIME_AT_ITS_WORD", 998},
    {"EPOCH_NOT_KEPT", 4991},
    {"PROCESS_FOR_HISTORY", 1039},
    {NULL, 0},
};

const struct game lease_game = {
    .flag = " --lease",
    .nodes_max = CONTENDERS_MAX,
    .new_world = game_new,
    .free_world = game_free,
    .play = game_play,
    .theme = game_theme,
    .print_tail = game_print_tail,
    .count_names = {[CONTEST_COUNT_ACQUIRED] = {"leaderships", "leaderships"},
                    [CONTEST_COUNT_SERVED] = {"served", "commands served"},
                    [CONTEST_COUNT_CRASHES] = {"crashes", "crashes"},
                    [CONTEST_COUNT_LOSSES] = {"losses", "leaderships lost"}},
    .mutants = mutants,
    .mutant_count = sizeof(mutants) / sizeof(mutants[0]),
    .clues = clues,
    .set_mutant = game_set_mutant,
};
