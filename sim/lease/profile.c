/* Swarm testing: each seed draws the kind of its contest. Most seeds concentrate on a few kinds of
 * faults, since a rare bug needs several of one kind in a row. */
#include "sim/lease/profile.h"

static const struct theme {
    const char *name;
    uint32_t weight[CONTEST_FAULT_COUNT];
    bool drifts;
    uint32_t dirt; /* how many messages are lost or late: 0 to 4 */
} themes[] = {
    {"everything",
     {[CONTEST_FAULT_CRASH] = 2,
      [CONTEST_FAULT_CRASH_LEADER] = 3,
      [CONTEST_FAULT_PAUSE] = 1,
      [CONTEST_FAULT_PAUSE_LEADER] = 3,
      [CONTEST_FAULT_CUT] = 2,
      [CONTEST_FAULT_CUT_LEADER] = 3,
      [CONTEST_FAULT_DISCONNECT] = 2,
      [CONTEST_FAULT_RESIGN] = 2,
      [CONTEST_FAULT_LEAVE] = 1,
      [CONTEST_FAULT_CORDON] = 2,
      [CONTEST_FAULT_STALL] = 2,
      [CONTEST_FAULT_RESTART] = 1,
      [CONTEST_FAULT_FORGET] = 1,
      [CONTEST_FAULT_OLD_COPY] = 1,
      [CONTEST_FAULT_FAILOVER] = 1,
      [CONTEST_FAULT_REPLICA] = 1,
      [CONTEST_FAULT_FOREIGN] = 1,
      [CONTEST_FAULT_CLOCK_RATE] = 1,
      [CONTEST_FAULT_CLOCK_BACK] = 1},
     true,
     1},
    {"crashes",
     {[CONTEST_FAULT_CRASH_LEADER] = 6, [CONTEST_FAULT_CRASH] = 2, [CONTEST_FAULT_CUT] = 1},
     false,
     1},
    {"cuts",
     {[CONTEST_FAULT_CUT_LEADER] = 8,
      [CONTEST_FAULT_CUT] = 2,
      [CONTEST_FAULT_DISCONNECT] = 2,
      [CONTEST_FAULT_STALL] = 1},
     true,
     1},
    {"stopped",
     {[CONTEST_FAULT_PAUSE_LEADER] = 8, [CONTEST_FAULT_PAUSE] = 4, [CONTEST_FAULT_CUT_LEADER] = 1},
     true,
     1},
    {"hand-overs",
     {[CONTEST_FAULT_RESIGN] = 10,
      [CONTEST_FAULT_LEAVE] = 2,
      [CONTEST_FAULT_CORDON] = 3,
      [CONTEST_FAULT_DISCONNECT] = 2,
      [CONTEST_FAULT_PAUSE_LEADER] = 1,
      [CONTEST_FAULT_CRASH_LEADER] = 1,
      [CONTEST_FAULT_CLOCK_BACK] = 3},
     false,
     1},
    {"restarts",
     {[CONTEST_FAULT_RESTART] = 3,
      [CONTEST_FAULT_FORGET] = 6,
      [CONTEST_FAULT_CUT_LEADER] = 5,
      [CONTEST_FAULT_CRASH] = 2,
      [CONTEST_FAULT_PAUSE_LEADER] = 1},
     true,
     1},
    {"failovers",
     {[CONTEST_FAULT_FAILOVER] = 5,
      [CONTEST_FAULT_REPLICA] = 1,
      [CONTEST_FAULT_OLD_COPY] = 3,
      [CONTEST_FAULT_RESIGN] = 5,
      [CONTEST_FAULT_CUT_LEADER] = 5,
      [CONTEST_FAULT_PAUSE_LEADER] = 2},
     true,
     1},
    {"clocks",
     {[CONTEST_FAULT_CUT_LEADER] = 8,
      [CONTEST_FAULT_CLOCK_RATE] = 4,
      [CONTEST_FAULT_CLOCK_BACK] = 2},
     true,
     0},
    {"visitors",
     {[CONTEST_FAULT_FOREIGN] = 8,
      [CONTEST_FAULT_CRASH_LEADER] = 2,
      [CONTEST_FAULT_RESIGN] = 2,
      [CONTEST_FAULT_RESTART] = 1},
     false,
     1},
    {"lossy",
     {[CONTEST_FAULT_CUT] = 2, [CONTEST_FAULT_CRASH_LEADER] = 2, [CONTEST_FAULT_RESIGN] = 3},
     false,
     4},
    {"quiet", {[CONTEST_FAULT_RESIGN] = 3, [CONTEST_FAULT_CRASH] = 1}, false, 0},
};

enum { MS = 1000000 };

static int64_t up_to(struct contest *contest, int64_t most)
{
    return random_between(&contest->random, 0, most);
}

/* 0 in one case of three, else random up to `most`. */
static uint32_t at_times(struct contest *contest, uint32_t most)
{
    return random_chance(&contest->random, 330000) ? 0 : (uint32_t)up_to(contest, most);
}

static span part(span whole, int64_t ppm)
{
    return SPAN_NS(whole.ns / 1000 * ppm / 1000);
}

static void draw_settings(struct contest *contest, const struct theme *theme)
{
    static const int64_t leases_ms[] = {40, 200, 1000, 1500, 3000, 10000, 30000};
    struct lease_settings *s = &contest->profile.settings;
    struct random *random = &contest->random;

    lease_settings_default(s);
    s->lease = SPAN_MS(leases_ms[random_below(random, 7)]);
    s->renew_interval = part(s->lease, random_between(random, 150000, 400000));
    s->check_interval = part(s->lease, random_between(random, 50000, 1000000));
    s->answer_timeout = part(s->lease, random_between(random, 150000, 1200000));
    s->spread_each = SPAN_US(random_between(random, 0, 5000));
    s->spread_max = part(s->lease, random_between(random, 0, 100000));
    s->clock_drift_ppm =
        (uint32_t)(theme->drifts ? 1000 + up_to(contest, 90000) : up_to(contest, 20000));
    if (lease_settings_check(s, NULL) != BATON_OK) {
        s->renew_interval = part(s->lease, 300000);
    }
}

/* The upper bounds, where each life has settings of its own. */
static void draw_mixture(struct contest *contest)
{
    struct contest_profile *p = &contest->profile;
    int64_t factor = 1 + up_to(contest, 11);

    p->is_mixed = random_chance(&contest->random, 600000);
    p->most = p->settings;
    if (p->is_mixed) {
        p->most.lease.ns *= factor;
        p->most.check_interval.ns *= factor;
        p->most.answer_timeout.ns *= 2;
        p->most.clock_drift_ppm += 20000;
    }
    p->pace = random_chance(&contest->random, 500000) ? p->most.lease : p->settings.lease;
    p->most.renew_interval = p->most.lease;
    p->max_lease = p->most.lease;
    if (random_chance(&contest->random, 300000)) {
        p->max_lease.ns *= 2;
    }
    p->max_leases_differ = p->is_mixed && random_chance(&contest->random, 300000);
}

static span between(struct contest *contest, span least, span most)
{
    return SPAN_NS(random_between(&contest->random, least.ns, most.ns));
}

void contest_draw_life(struct contest *contest, struct contender *who)
{
    const struct contest_profile *p = &contest->profile;
    const struct lease_settings *least = &p->settings;
    const struct lease_settings *most = &p->most;
    struct lease_settings *s = &who->settings;

    *s = *least;
    who->max_lease = p->max_lease;
    if (!p->is_mixed) {
        return;
    }
    s->lease = random_chance(&contest->random, 400000) ? least->lease
               : random_chance(&contest->random, 500000)
                   ? most->lease
                   : between(contest, least->lease, most->lease);
    s->lease.ns -= s->lease.ns % MS;
    s->check_interval = between(contest, least->check_interval, most->check_interval);
    s->answer_timeout = between(contest, least->answer_timeout, most->answer_timeout);
    s->clock_drift_ppm += (uint32_t)up_to(contest, 20000);
    s->renew_interval = part(s->lease, random_between(&contest->random, 150000, 400000));
    if (lease_settings_check(s, NULL) != BATON_OK) {
        s->renew_interval = part(s->lease, 300000);
    }
    if (p->max_leases_differ) {
        who->max_lease = random_chance(&contest->random, 700000)
                             ? s->lease
                             : between(contest, s->lease, p->max_lease);
    }
}

static void draw_ways(struct contest *contest, const struct theme *theme)
{
    struct contest_profile *p = &contest->profile;
    int64_t round = p->settings.answer_timeout.ns / 20;
    uint32_t dirt = theme->dirt;

    if (random_chance(&contest->random, 500000) && round > MS) {
        round = MS; /* one machine, or one rack */
    }
    p->delay = round / 1000 * random_between(&contest->random, 5, 1000);
    p->jitter = round / 1000 * random_between(&contest->random, 1, 2000);
    p->tail = p->settings.lease.ns / 100 * random_between(&contest->random, 1, 250);
    p->tail_ppm = dirt * at_times(contest, 50000);
    p->loss_ppm = dirt * at_times(contest, 50000);
    p->notice_loss_ppm = at_times(contest, 300000);
    p->lateness = random_chance(&contest->random, 400000) ? 0 : round;
    p->hangs_up = random_chance(&contest->random, 600000);
    p->reconnect = 40 * (int64_t)MS + up_to(contest, p->settings.lease.ns / 2);
    p->reconnect = p->reconnect < 2000 * (int64_t)MS ? p->reconnect : 2000 * (int64_t)MS;
}

static void draw_faults(struct contest *contest, const struct theme *theme)
{
    struct contest_profile *p = &contest->profile;
    int64_t lease = p->pace.ns;

    p->fault_weight_sum = 0;
    for (int i = 0; i < CONTEST_FAULT_COUNT; i++) {
        if (i == CONTEST_FAULT_CLOCK_BACK && p->visitor_interval) {
            continue; /* an expired lock would look like a deleted one */
        }
        if (i == CONTEST_FAULT_FORGET && p->max_leases_differ) {
            continue; /* only the record has the leader's max-lease */
        }
        p->fault_weight[i] = random_chance(&contest->random, 200000) ? 0 : theme->weight[i];
        p->fault_weight_sum += p->fault_weight[i];
    }
    if (p->fault_weight_sum == 0) {
        p->fault_weight[CONTEST_FAULT_CRASH_LEADER] = p->fault_weight_sum = 1;
    }
    p->fault_every = lease / 100 * random_between(&contest->random, 5, 200);
    p->down_time = lease / 100 * random_between(&contest->random, 10, 300);
    p->guardian_ppm = random_chance(&contest->random, 300000) ? 0 : 700000;
}

int64_t contest_draw_rate(struct contest *contest)
{
    int64_t bound = contest->profile.drift_ppm;

    if (contest->profile.drifts_widely) {
        return random_chance(&contest->random, 500000) ? bound : -bound;
    }
    return random_between(&contest->random, -bound, bound);
}

void contest_draw(struct contest *contest)
{
    struct contest_profile *p = &contest->profile;
    const struct theme *theme =
        &themes[random_below(&contest->random, sizeof(themes) / sizeof(themes[0]))];

    *p = (struct contest_profile){.name = theme->name};
    draw_settings(contest, theme);
    draw_mixture(contest);
    draw_ways(contest, theme);
    p->visitor_interval = random_chance(&contest->random, 500000) ? 0 : p->settings.lease.ns / 3;
    draw_faults(contest, theme);
    p->drift_ppm = random_chance(&contest->random, 250000) ? 0 : p->settings.clock_drift_ppm;
    p->drifts_widely = random_chance(&contest->random, 700000);
    if (contest->options.breaks_drift) {
        p->drift_ppm = 2 * p->settings.clock_drift_ppm + 300000;
        p->drifts_widely = true;
    }
    p->skew = p->settings.lease.ns / 1000 * random_between(&contest->random, 0, 125);
    p->contenders = (size_t)random_between(&contest->random, 1, CONTENDERS_MAX);
    if (p->contenders == 1 || random_chance(&contest->random, 500000)) {
        p->contenders = (size_t)random_between(&contest->random, 1, 3);
    }
    p->contenders = contest->options.nodes ? contest->options.nodes : p->contenders;
    p->events = (uint32_t)random_between(&contest->random, 200, 1000);
    p->events = contest->options.events ? contest->options.events : p->events;
}
