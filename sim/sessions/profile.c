/* Swarm testing: each seed draws the kind of its assembly. Most seeds concentrate on a few kinds of
 * faults, since a rare bug needs several of one kind in a row. */
#include "sim/sessions/profile.h"

static const struct theme {
    const char *name;
    uint32_t weight[ASSEMBLY_FAULT_COUNT];
    bool drifts;
    bool straggles; /* many messages are very late */
    bool fences;
} themes[] = {
    {"everything",
     {[ASSEMBLY_FAULT_CRASH] = 3,
      [ASSEMBLY_FAULT_PAUSE] = 1,
      [ASSEMBLY_FAULT_PAUSE_HOLDER] = 2,
      [ASSEMBLY_FAULT_LEAVE] = 1,
      [ASSEMBLY_FAULT_RESIGN] = 2,
      [ASSEMBLY_FAULT_WANT] = 2,
      [ASSEMBLY_FAULT_PASS] = 1,
      [ASSEMBLY_FAULT_CORDON] = 1,
      [ASSEMBLY_FAULT_AGENT_CRASH] = 2,
      [ASSEMBLY_FAULT_AGENT_LAG] = 1,
      [ASSEMBLY_FAULT_AGENT_INSTALL] = 1,
      [ASSEMBLY_FAULT_CUT] = 1,
      [ASSEMBLY_FAULT_CUT_LEADER] = 2,
      [ASSEMBLY_FAULT_PASS_LOG] = 1,
      [ASSEMBLY_FAULT_CLOCK_RATE] = 1},
     true,
     false,
     true},
    {"deaths",
     {[ASSEMBLY_FAULT_CRASH] = 6,
      [ASSEMBLY_FAULT_PAUSE_HOLDER] = 4,
      [ASSEMBLY_FAULT_PAUSE] = 1,
      [ASSEMBLY_FAULT_CUT_LEADER] = 1},
     true,
     false,
     true},
    {"leaders of the log",
     {[ASSEMBLY_FAULT_CUT_LEADER] = 4,
      [ASSEMBLY_FAULT_PASS_LOG] = 4,
      [ASSEMBLY_FAULT_AGENT_LAG] = 3,
      [ASSEMBLY_FAULT_AGENT_CRASH] = 2,
      [ASSEMBLY_FAULT_PAUSE_HOLDER] = 3},
     true,
     false,
     true},
    {"hand-overs",
     {[ASSEMBLY_FAULT_RESIGN] = 6,
      [ASSEMBLY_FAULT_WANT] = 6,
      [ASSEMBLY_FAULT_PASS] = 3,
      [ASSEMBLY_FAULT_CORDON] = 3,
      [ASSEMBLY_FAULT_AGENT_LAG] = 2,
      [ASSEMBLY_FAULT_CRASH] = 1},
     false,
     false,
     false},
    {"agents",
     {[ASSEMBLY_FAULT_AGENT_CRASH] = 6,
      [ASSEMBLY_FAULT_AGENT_INSTALL] = 4,
      [ASSEMBLY_FAULT_AGENT_LAG] = 4,
      [ASSEMBLY_FAULT_RESIGN] = 4,
      [ASSEMBLY_FAULT_CORDON] = 1,
      [ASSEMBLY_FAULT_CRASH] = 2},
     false,
     false,
     false},
    {"stragglers",
     {[ASSEMBLY_FAULT_PAUSE_HOLDER] = 12,
      [ASSEMBLY_FAULT_PASS_LOG] = 6,
      [ASSEMBLY_FAULT_AGENT_LAG] = 6,
      [ASSEMBLY_FAULT_WANT] = 1,
      [ASSEMBLY_FAULT_RESIGN] = 1},
     false,
     true,
     false},
    {"clocks",
     {[ASSEMBLY_FAULT_CUT] = 4,
      [ASSEMBLY_FAULT_CUT_LEADER] = 1,
      [ASSEMBLY_FAULT_PAUSE_HOLDER] = 3,
      [ASSEMBLY_FAULT_CLOCK_RATE] = 3},
     true,
     false,
     false},
};

enum { MS = 1000000 };

static span part(span whole, int64_t ppm)
{
    return SPAN_NS(whole.ns / 1000 * ppm / 1000);
}

static void draw_settings(struct assembly *assembly, const struct theme *theme)
{
    static const int64_t leases_ms[] = {200, 1000, 3000, 10000, 30000};
    struct random *random = &assembly->random;
    struct assembly_profile *p = &assembly->profile;
    struct lease_settings *s = &p->settings;

    lease_settings_default(s);
    s->lease = SPAN_MS(leases_ms[random_below(random, 5)]);
    p->least_lease = random_chance(random, 500000) ? s->lease : part(s->lease, 300000);
    p->renew_percent = theme->straggles ? 45 : random_between(random, 15, 40);
    s->check_interval = part(s->lease, random_between(random, 50000, 500000));
    s->answer_timeout = part(p->least_lease, random_between(random, 150000, 900000));
    s->spread_each = s->spread_max = SPAN_NS(0);
    s->clock_drift_ppm = (uint32_t)(theme->drifts ? random_between(random, 1000, 90000) : 1000);
    p->log_lease = part(s->lease, random_between(random, 20000, 2000000));
}

static void draw_ways(struct assembly *assembly, const struct theme *theme)
{
    struct random *random = &assembly->random;
    struct assembly_profile *p = &assembly->profile;
    int64_t round = p->settings.answer_timeout.ns / 20;

    p->delay = round / 1000 * random_between(random, 5, 1000);
    p->jitter = round / 1000 * random_between(random, 1, 1000);
    p->tail = p->settings.lease.ns / 100 * random_between(random, 1, 250);
    p->tail_ppm = (uint32_t)random_between(random, 0, theme->straggles ? 400000 : 50000);
    p->late_renewal_ppm = theme->straggles ? 500000 : 0;
    p->repeat_ppm = random_chance(random, 500000) ? 0 : 100000;
    p->loss_ppm = random_chance(random, 330000) ? 0 : (uint32_t)random_between(random, 0, 100000);
    p->nag_every = p->settings.lease.ns / 100 * random_between(random, 3, 30);
    p->down_time = p->settings.lease.ns / 100 * random_between(random, 1, 200);
    p->own_ppm = random_chance(random, 500000) ? 0 : 300000;
    p->certificate_ppm = random_chance(random, 300000) ? 0 : 700000;
}

static void draw_faults(struct assembly *assembly, const struct theme *theme)
{
    struct assembly_profile *p = &assembly->profile;

    for (int i = 0; i < ASSEMBLY_FAULT_COUNT; i++) {
        p->fault_weight[i] = random_chance(&assembly->random, 200000) ? 0 : theme->weight[i];
        p->fault_weight_sum += p->fault_weight[i];
    }
    if (p->fault_weight_sum == 0) {
        p->fault_weight[ASSEMBLY_FAULT_CRASH] = p->fault_weight_sum = 1;
    }
    p->fault_every = p->settings.lease.ns / 100 * random_between(&assembly->random, 2, 60);
    if (theme->fences && random_chance(&assembly->aside, 500000)) {
        p->fence_every = p->settings.lease.ns / 100 * random_between(&assembly->aside, 20, 300);
    }
}

span assembly_draw_lease(struct assembly *assembly)
{
    const struct assembly_profile *p = &assembly->profile;

    return random_chance(&assembly->random, 500000) ? p->settings.lease : p->least_lease;
}

int64_t assembly_draw_rate(struct assembly *assembly)
{
    int64_t bound = assembly->profile.drift_ppm;

    return random_chance(&assembly->random, 500000) ? bound : -bound;
}

void assembly_draw(struct assembly *assembly)
{
    struct assembly_profile *p = &assembly->profile;
    const struct theme *theme =
        &themes[random_below(&assembly->random, sizeof(themes) / sizeof(themes[0]))];

    *p = (struct assembly_profile){.name = theme->name};
    draw_settings(assembly, theme);
    draw_ways(assembly, theme);
    draw_faults(assembly, theme);
    p->drift_ppm = p->settings.clock_drift_ppm;
    if (assembly->options.breaks_drift) {
        p->drift_ppm = 2 * p->settings.clock_drift_ppm + 300000;
    }
    p->agents = (size_t)random_between(&assembly->random, 1, AGENTS_MAX);
    p->agents = assembly->options.nodes ? assembly->options.nodes : p->agents;
    p->processes = (size_t)random_between(&assembly->random, 1, PROCESSES_MAX);
    p->events = (uint32_t)random_between(&assembly->random, 300, 3000);
    p->events = assembly->options.events ? assembly->options.events : p->events;
}
