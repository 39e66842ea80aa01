/* Swarm testing: each seed draws the kind of its yard. Most seeds concentrate on a few kinds of
 * faults, since a rare bug needs several of one kind in a row. */
#include "sim/work/profile.h"

static const struct theme {
    const char *name;
    uint32_t weight[YARD_FAULT_COUNT];
    bool may_forget;
    bool straggles; /* many messages are very late or lost */
    bool denies;    /* leaders act on for long */
    bool repeats;   /* clients submit again what was there, with something beside it */
    bool hurries;   /* jobs are short, and so is the time for which they are kept */
} themes[] = {
    {.name = "everything",
     .weight = {[YARD_FAULT_CRASH_WORKER] = 3,
                [YARD_FAULT_CRASH_LEADER] = 2,
                [YARD_FAULT_CRASH_ALL] = 1,
                [YARD_FAULT_STOP_WORKER] = 2,
                [YARD_FAULT_STOP_LEADER] = 2,
                [YARD_FAULT_CUT_WORKER] = 2,
                [YARD_FAULT_CUT_LEADER] = 2,
                [YARD_FAULT_DEPOSE] = 2,
                [YARD_FAULT_LEAVE] = 2,
                [YARD_FAULT_STALL] = 1,
                [YARD_FAULT_CLOCK_RATE] = 1,
                [YARD_FAULT_WALL_CLOCK] = 1}},
    {.name = "deaths",
     .weight = {[YARD_FAULT_CRASH_WORKER] = 6,
                [YARD_FAULT_CRASH_LEADER] = 3,
                [YARD_FAULT_CRASH_ALL] = 1,
                [YARD_FAULT_LEAVE] = 2}},
    {.name = "stops",
     .weight = {[YARD_FAULT_STOP_WORKER] = 4,
                [YARD_FAULT_CUT_WORKER] = 4,
                [YARD_FAULT_STOP_LEADER] = 2,
                [YARD_FAULT_CUT_LEADER] = 2,
                [YARD_FAULT_CLOCK_RATE] = 1}},
    {.name = "old leaders",
     .weight = {[YARD_FAULT_DEPOSE] = 8,
                [YARD_FAULT_STOP_LEADER] = 3,
                [YARD_FAULT_CUT_LEADER] = 2,
                [YARD_FAULT_CRASH_WORKER] = 2,
                [YARD_FAULT_STALL] = 2},
     .denies = true},
    {.name = "messages",
     .weight = {[YARD_FAULT_DEPOSE] = 2,
                [YARD_FAULT_CRASH_WORKER] = 2,
                [YARD_FAULT_CUT_WORKER] = 1,
                [YARD_FAULT_LEAVE] = 2},
     .straggles = true},
    {.name = "old leaders and messages",
     .weight = {[YARD_FAULT_DEPOSE] = 8, [YARD_FAULT_CUT_WORKER] = 2, [YARD_FAULT_STALL] = 1},
     .straggles = true,
     .denies = true},
    {.name = "old leaders that forget",
     .weight = {[YARD_FAULT_DEPOSE] = 8, [YARD_FAULT_CUT_LEADER] = 1, [YARD_FAULT_STALL] = 1},
     .denies = true,
     .hurries = true},
    {.name = "the same again",
     .weight = {[YARD_FAULT_CRASH_WORKER] = 3, [YARD_FAULT_LEAVE] = 1, [YARD_FAULT_DEPOSE] = 1},
     .repeats = true,
     .hurries = true},
    {.name = "lost data",
     .weight = {[YARD_FAULT_LOSE_DATA] = 4,
                [YARD_FAULT_CRASH_LEADER] = 3,
                [YARD_FAULT_DEPOSE] = 3,
                [YARD_FAULT_CRASH_WORKER] = 2,
                [YARD_FAULT_CUT_WORKER] = 6,
                [YARD_FAULT_STOP_WORKER] = 2,
                [YARD_FAULT_STOP_LEADER] = 1,
                [YARD_FAULT_STALL] = 1},
     .may_forget = true},
    {.name = "data taken back",
     .weight = {[YARD_FAULT_ROLL_BACK] = 4,
                [YARD_FAULT_CRASH_LEADER] = 2,
                [YARD_FAULT_DEPOSE] = 2,
                [YARD_FAULT_CRASH_WORKER] = 2},
     .may_forget = true},
    {.name = "clients",
     .weight = {[YARD_FAULT_LEAVE] = 3, [YARD_FAULT_CRASH_WORKER] = 1, [YARD_FAULT_DEPOSE] = 1}},
};

static span part(span whole, int64_t ppm)
{
    return SPAN_NS(whole.ns / 1000 * ppm / 1000);
}

enum { REPORT_MAX_PPM = 400000, SILENCE_MAX = 6, OTHERS_MAX_PPM = 2000000 };

static void draw_options(struct yard *yard, struct work_leader_options *o)
{
    struct random *random = &yard->random;
    span lease = yard->profile.lease;

    o->report_interval = part(lease, random_between(random, 100000, REPORT_MAX_PPM));
    o->silence = SPAN_NS(o->report_interval.ns * random_between(random, 3, SILENCE_MAX));
    o->collect = part(lease, random_between(random, 100000, OTHERS_MAX_PPM));
    o->worker_lease = part(lease, 1200000);
    o->strategy = (enum placement_strategy)random_below(random, 4);
    o->overfills = random_chance(random, 200000);
    o->rebalance_every = random_chance(random, 500000)
                             ? SPAN_NS(0)
                             : part(lease, random_between(random, 300000, OTHERS_MAX_PPM));
    o->rebalance_percent = (uint32_t)random_between(random, 10, 50);
    o->keep =
        part(lease, random_chance(random, 500000) ? random_between(random, 1000000, 3000000)
                                                  : random_between(random, 3000000, 20000000));
}

/* The times of the profile are the longest that a process may have, and the time for which results
 * are kept is the shortest. */
static void draw_settings(struct yard *yard)
{
    static const int64_t leases_ms[] = {1000, 3000, 10000, 30000};
    struct yard_profile *p = &yard->profile;
    struct work_leader_options *o = &p->options;

    p->lease = SPAN_MS(leases_ms[random_below(&yard->random, 4)]);
    p->settings_differ = random_chance(&yard->random, 300000);
    draw_options(yard, o);
    if (p->settings_differ) {
        o->report_interval = part(p->lease, REPORT_MAX_PPM);
        o->silence = SPAN_NS(o->report_interval.ns * SILENCE_MAX);
        o->collect = o->rebalance_every = part(p->lease, OTHERS_MAX_PPM);
    }
}

void yard_draw_options(struct yard *yard, struct work_leader_options *ret)
{
    span keep = yard->profile.options.keep;

    *ret = yard->profile.options;
    if (yard->profile.settings_differ) {
        draw_options(yard, ret);
        ret->keep = ret->keep.ns > keep.ns ? ret->keep : keep;
    }
    if (yard->profile.late_ppm > 0) { /* some leaders forget items whose results are kept longer */
        ret->keep = SPAN_NS(keep.ns * random_between(&yard->late, 1, 4));
    }
}

static void draw_ways(struct yard *yard, const struct theme *theme)
{
    struct random *random = &yard->random;
    struct yard_profile *p = &yard->profile;
    int64_t lease = p->lease.ns;

    p->delay = lease / 100000 * random_between(random, 1, 2000);
    p->jitter = lease / 100000 * random_between(random, 1, 2000);
    p->tail = lease / 100 * random_between(random, 1, theme->straggles ? 200 : 50);
    p->tail_ppm = (uint32_t)random_between(random, 0, theme->straggles ? 300000 : 50000);
    p->loss_ppm = theme->straggles                ? (uint32_t)random_between(random, 0, 300000)
                  : random_chance(random, 330000) ? 0
                                                  : (uint32_t)random_between(random, 0, 100000);
    p->twice_ppm = random_chance(random, 500000) ? 0 : 100000;
    p->lag = random_chance(random, 500000) ? 0 : lease / 100 * random_between(random, 1, 400);
    p->timeout = lease / 100 * random_between(random, 10, 60);
    p->denial = lease / 100 * random_between(random, 1, theme->denies ? 400 : 100);
    p->proof_ppm = random_chance(random, 300000) ? 0 : 700000;
    p->down_time = lease / 100 * random_between(random, 1, 200);
    p->halt_time = lease / 100 * random_between(random, 0, 40);
    p->job_time = lease / 100 * random_between(random, 10, 200);
    p->fail_ppm = random_chance(random, 300000) ? 0 : (uint32_t)random_between(random, 0, 500000);
    p->drift_ppm = random_chance(random, 500000) ? 0 : random_between(random, 1000, 50000);
    p->walls_differ = random_chance(random, 500000);
}

static void draw_clients(struct yard *yard, const struct theme *theme)
{
    struct random *random = &yard->random;
    struct yard_profile *p = &yard->profile;

    p->client_every = p->lease.ns / 100 * random_between(random, 2, 50);
    p->again_ppm = theme->repeats ? 400000 : 0;
    p->more_ppm = theme->repeats ? 500000 : 0;
    if (theme->hurries) {
        p->job_time = p->lease.ns / 100 * random_between(random, 5, 30);
        p->options.keep = part(p->lease, random_between(random, 1000000, 1300000));
    }
}

static void draw_size(struct yard *yard)
{
    struct random *random = &yard->random;
    struct yard_profile *p = &yard->profile;
    size_t fewer;

    p->candidates = (size_t)random_between(random, 1, YARD_CANDIDATES_MAX);
    p->workers = (size_t)random_between(random, 1, YARD_WORKERS_MAX);
    p->workers = yard->options.nodes ? yard->options.nodes : p->workers;
    fewer = p->candidates < p->workers ? p->candidates : p->workers;
    p->both = random_below(random, fewer + 1);
    p->services_max = random_below(random, 4);
    p->service_ppm = 300000;
    p->together_ppm = random_chance(random, 700000) ? 300000 : 900000;
    p->buckets =
        random_chance(random, 500000) ? LEDGER_BUCKETS : (unsigned)random_between(random, 1, 3);
    p->job_weight = (uint32_t)random_between(random, 1, 3);
    p->slots = (uint32_t)p->services_max + p->job_weight;
    p->items_max = (size_t)random_between(random, 3, YARD_ITEMS_MAX - YARD_OF_SUBMISSION_MAX);
    p->events = (uint32_t)random_between(random, 400, 1200);
    p->events = yard->options.events ? yard->options.events : p->events;
}

static void draw_faults(struct yard *yard, const struct theme *theme)
{
    struct yard_profile *p = &yard->profile;

    for (int i = 0; i < YARD_FAULT_COUNT; i++) {
        p->fault_weight[i] = random_chance(&yard->random, 200000) ? 0 : theme->weight[i];
        p->fault_weight_sum += p->fault_weight[i];
    }
    if (p->fault_weight_sum == 0) {
        p->fault_weight[YARD_FAULT_CRASH_WORKER] = p->fault_weight_sum = 1;
    }
    p->fault_every = p->lease.ns / 100 * random_between(&yard->random, 5, 100);
    p->may_forget = theme->may_forget;
}

/* In one of eight yards what leaders put may be carried out when it is forgotten, and the ids are
 * used again. By random numbers of its own, so that it changes no other yard. */
static void draw_late(struct yard *yard)
{
    struct yard_profile *p = &yard->profile;

    if (!random_chance(&yard->late, 125000)) {
        return;
    }
    p->late_ppm = (uint32_t)random_between(&yard->late, 10000, 200000);
    p->again_ppm = 400000;
    p->job_time = p->lease.ns / 100 * random_between(&yard->late, 5, 30);
    p->options.keep = part(p->lease, random_between(&yard->late, 1000000, 1300000));
    p->late = p->options.keep.ns * random_between(&yard->late, 1, 5);
}

int64_t yard_draw_rate(struct yard *yard)
{
    int64_t bound = yard->profile.drift_ppm;

    return random_between(&yard->random, -bound, bound);
}

void yard_draw(struct yard *yard)
{
    struct yard_profile *p = &yard->profile;
    const struct theme *theme =
        &themes[random_below(&yard->random, sizeof(themes) / sizeof(themes[0]))];

    *p = (struct yard_profile){.name = theme->name};
    draw_settings(yard);
    draw_ways(yard, theme);
    draw_clients(yard, theme);
    draw_late(yard);
    draw_faults(yard, theme);
    draw_size(yard);
}
