/* Swarm testing: each seed draws the kind of its world. Most seeds concentrate on a few kinds of
 * faults: a rare bug needs several faults of one kind in a row, which are seldom in a world that
 * has all kinds. */
#include "sim/profile.h"

#include "sim/arena.h"

#include <stdio.h>

static const struct theme {
    const char *name;
    uint32_t weight[SIM_FAULT_COUNT];
    uint32_t certificate_ppm;
    bool drifts;   /* clocks run at the bound, and the bound is wide */
    uint32_t dirt; /* how often the network loses, repeats, delays: 0 to 4 */
    size_t nodes;  /* 0: drawn */
    bool is_quiet; /* few entries, few heartbeats, quick elections: only promises matter */
    bool settings_differ;
    bool has_programs; /* every node has a program */
} themes[] = {
    {"everything",
     {[SIM_FAULT_CRASH] = 3,
      [SIM_FAULT_CRASH_LEADER] = 3,
      [SIM_FAULT_PAUSE] = 2,
      [SIM_FAULT_PAUSE_LEADER] = 3,
      [SIM_FAULT_PARTITION] = 3,
      [SIM_FAULT_ISOLATE_LEADER] = 3,
      [SIM_FAULT_RESET] = 2,
      [SIM_FAULT_OLD_CERTIFICATE] = 2,
      [SIM_FAULT_REPLAY] = 1,
      [SIM_FAULT_SLOW_DISK] = 2,
      [SIM_FAULT_BAD_DISK] = 1,
      [SIM_FAULT_CLOCK_RATE] = 1,
      [SIM_FAULT_CORDON] = 1,
      [SIM_FAULT_TRANSFER] = 2,
      [SIM_FAULT_RECONFIGURE] = 3,
      [SIM_FAULT_COMPACT] = 3},
     500000,
     true,
     1,
     0,
     false,
     false,
     false},
    {"restarts",
     {[SIM_FAULT_CRASH] = 10,
      [SIM_FAULT_CRASH_LEADER] = 4,
      [SIM_FAULT_ISOLATE_LEADER] = 4,
      [SIM_FAULT_PAUSE_LEADER] = 2,
      [SIM_FAULT_SLOW_DISK] = 3,
      [SIM_FAULT_COMPACT] = 2},
     200000,
     false,
     1,
     0,
     false,
     false,
     false},
    {"certificates",
     {[SIM_FAULT_CRASH_LEADER] = 8,
      [SIM_FAULT_CRASH] = 2,
      [SIM_FAULT_OLD_CERTIFICATE] = 6,
      [SIM_FAULT_REPLAY] = 4,
      [SIM_FAULT_RESET] = 3,
      [SIM_FAULT_PAUSE_LEADER] = 2,
      [SIM_FAULT_TRANSFER] = 2},
     900000,
     false,
     1,
     0,
     false,
     false,
     false},
    {"partitions",
     {[SIM_FAULT_PARTITION] = 6,
      [SIM_FAULT_ISOLATE_LEADER] = 6,
      [SIM_FAULT_PAUSE_LEADER] = 2,
      [SIM_FAULT_CRASH] = 1},
     0,
     true,
     1,
     0,
     false,
     false,
     false},
    {"clocks",
     {[SIM_FAULT_ISOLATE_LEADER] = 8,
      [SIM_FAULT_PARTITION] = 2,
      [SIM_FAULT_CLOCK_RATE] = 4,
      [SIM_FAULT_PAUSE_LEADER] = 1},
     0,
     true,
     0,
     0,
     false,
     false,
     false},
    {"members",
     {[SIM_FAULT_RECONFIGURE] = 12,
      [SIM_FAULT_PARTITION] = 3,
      [SIM_FAULT_ISOLATE_LEADER] = 4,
      [SIM_FAULT_CRASH_LEADER] = 1,
      [SIM_FAULT_COMPACT] = 2,
      [SIM_FAULT_TRANSFER] = 1},
     300000,
     false,
     1,
     0,
     false,
     false,
     false},
    {"disks",
     {[SIM_FAULT_BAD_DISK] = 6,
      [SIM_FAULT_SLOW_DISK] = 4,
      [SIM_FAULT_CRASH] = 5,
      [SIM_FAULT_CRASH_LEADER] = 3,
      [SIM_FAULT_ISOLATE_LEADER] = 2,
      [SIM_FAULT_COMPACT] = 3},
     500000,
     false,
     1,
     0,
     false,
     false,
     false},
    {"hand-overs",
     {[SIM_FAULT_TRANSFER] = 10,
      [SIM_FAULT_CORDON] = 3,
      [SIM_FAULT_ISOLATE_LEADER] = 2,
      [SIM_FAULT_PARTITION] = 2,
      [SIM_FAULT_PAUSE_LEADER] = 2,
      [SIM_FAULT_RESET] = 1},
     0,
     false,
     1,
     0,
     false,
     false,
     false},
    {"forgetful",
     {[SIM_FAULT_CRASH] = 6,
      [SIM_FAULT_DIVIDE] = 8,
      [SIM_FAULT_PARTITION] = 4,
      [SIM_FAULT_ISOLATE_LEADER] = 2},
     0,
     false,
     1,
     0,
     true,
     false,
     false},
    {"series",
     {[SIM_FAULT_CRASH_SERIES] = 10,
      [SIM_FAULT_SLOW_DISK] = 3,
      [SIM_FAULT_PARTITION] = 3,
      [SIM_FAULT_CORDON] = 3},
     950000,
     false,
     4,
     3,
     true,
     false,
     false},
    {"storms",
     {[SIM_FAULT_CRASH_LEADER] = 8, [SIM_FAULT_TRANSFER] = 4, [SIM_FAULT_PARTITION] = 2},
     800000,
     false,
     4,
     0,
     true,
     false,
     false},
    {"logs",
     {[SIM_FAULT_PARTITION] = 6,
      [SIM_FAULT_ISOLATE_LEADER] = 5,
      [SIM_FAULT_CRASH_LEADER] = 3,
      [SIM_FAULT_CRASH] = 3,
      [SIM_FAULT_COMPACT] = 1},
     300000,
     false,
     1,
     0,
     false,
     false,
     false},
    {"settings",
     {[SIM_FAULT_CRASH] = 4,
      [SIM_FAULT_CRASH_LEADER] = 2,
      [SIM_FAULT_DIVIDE] = 8,
      [SIM_FAULT_ISOLATE_LEADER] = 3,
      [SIM_FAULT_PARTITION] = 2,
      [SIM_FAULT_PAUSE_LEADER] = 2},
     300000,
     false,
     1,
     0,
     false,
     true,
     false},
    {"programs",
     {[SIM_FAULT_CRASH] = 2,
      [SIM_FAULT_CRASH_LEADER] = 10,
      [SIM_FAULT_DIVIDE] = 3,
      [SIM_FAULT_ISOLATE_LEADER] = 2,
      [SIM_FAULT_PAUSE_LEADER] = 2,
      [SIM_FAULT_OLD_CERTIFICATE] = 2,
      [SIM_FAULT_REPLAY] = 2,
      [SIM_FAULT_RESET] = 2,
      [SIM_FAULT_RECONFIGURE] = 1},
     500000,
     false,
     1,
     0,
     false,
     true,
     true},
    {"directories",
     {[SIM_FAULT_CRASH] = 4,
      [SIM_FAULT_CRASH_LEADER] = 2,
      [SIM_FAULT_COPY_DIRECTORY] = 6,
      [SIM_FAULT_REPLACE_DIRECTORY] = 3,
      [SIM_FAULT_DIVIDE] = 2,
      [SIM_FAULT_ISOLATE_LEADER] = 2,
      [SIM_FAULT_RECONFIGURE] = 2,
      [SIM_FAULT_COMPACT] = 1},
     300000,
     false,
     1,
     0,
     false,
     false,
     false},
};

static uint32_t up_to(struct world *world, uint32_t most)
{
    return (uint32_t)random_below(&world->random, (uint64_t)most + 1);
}

/* 0 in one case of three, else random up to `most`. */
static uint32_t at_times(struct world *world, uint32_t most)
{
    return random_chance(&world->random, 330000) ? 0 : up_to(world, most);
}

static span part(span whole, int64_t ppm)
{
    return SPAN_NS(whole.ns / 1000 * ppm / 1000);
}

static void draw_settings(struct world *world, const struct theme *theme)
{
    static const char *presets[] = {"default", "lan", "wan", "fast", "fast"};
    struct raft_settings *s = &world->profile.settings;
    struct random *random = &world->random;

    (void)raft_settings_preset(s, presets[random_below(random, 5)], NULL);
    if (random_chance(random, 700000)) {
        s->lease = part(s->heartbeat_timeout, random_between(random, 500000, 1000000));
        s->heartbeat_interval = part(s->lease, random_between(random, 150000, 380000));
        s->election_timeout_min = part(s->lease, random_between(random, 10000, 600000));
        s->election_timeout_max =
            part(s->election_timeout_min, random_between(random, 1000000, 2000000));
    }
    if (theme->is_quiet) {
        s->heartbeat_interval = part(s->lease, random_between(random, 300000, 450000));
        s->election_timeout_min = part(s->lease, random_between(random, 10000, 100000));
        s->election_timeout_max = part(s->election_timeout_min, 1500000);
    }
    world->profile.settings_differ = theme->settings_differ || random_chance(random, 150000);
    if (world->profile.settings_differ && !theme->is_quiet) { /* short for the shortest lease */
        s->heartbeat_interval = part(s->lease, random_between(random, 40000, 130000));
    }
    s->clock_drift_ppm = theme->drifts ? 1000 + up_to(world, 90000) : up_to(world, 20000);
    s->preferred_stable = part(s->lease, random_between(random, 500000, 6000000));
    s->message_bytes_max = 128 + up_to(world, 4000);
    s->inflight_max = 1 + up_to(world, 16);
    s->log_bytes_max = s->message_bytes_max + up_to(world, 16000);
    if (raft_settings_check(s, NULL) != BATON_OK) {
        (void)raft_settings_preset(s, "fast", NULL);
    }
}

/* Leases of 0.4 to 3 times the usual one, with the other settings drawn too. Where heartbeats are
 * rare the lease is not below the usual one: one lost heartbeat would end every leadership. */
void profile_settings(struct world *world, struct raft_settings *ret)
{
    const struct raft_settings *usual = &world->profile.settings;
    struct random *random = &world->random;
    bool is_rare = 5 * usual->heartbeat_interval.ns > usual->lease.ns;
    struct raft_settings s = *usual;

    *ret = *usual;
    if (!world->profile.settings_differ || random_chance(random, 300000)) {
        return;
    }
    s.lease = part(usual->lease, random_between(random, is_rare ? 1000000 : 400000, 3000000));
    s.heartbeat_timeout = part(s.lease, random_between(random, 1000000, 1500000));
    s.heartbeat_interval = part(usual->heartbeat_interval, random_between(random, 500000, 1000000));
    s.clock_drift_ppm += up_to(world, usual->clock_drift_ppm);
    if (raft_settings_check(&s, NULL) == BATON_OK) {
        *ret = s;
    }
}

static void draw_network(struct world *world, const struct theme *theme)
{
    struct profile *p = &world->profile;
    int64_t interval = p->settings.heartbeat_interval.ns;
    int64_t round = p->settings.election_timeout_min.ns / 4;
    uint32_t dirt = theme->dirt;
    bool is_slow =
        random_chance(&world->random, 150000); /* votes take longer than a round of usual length */
    int64_t spread;

    if (interval > round && !is_slow) {
        interval = round;
    }
    p->delay = interval / 1000 * random_between(&world->random, 1, 100);
    p->jitter = interval / 1000 * random_between(&world->random, 1, 200);
    p->tail = p->settings.lease.ns / 100 * random_between(&world->random, 1, 250);
    p->tail_ppm = dirt * at_times(world, 50000);
    p->loss_ppm = dirt * at_times(world, 80000);
    p->duplicate_ppm = dirt * at_times(world, 80000);
    p->lateness = random_chance(&world->random, 600000) ? 0 : interval / 4;
    p->disk_delay = interval / 1000 * random_between(&world->random, 1, 80);
    p->disk_jitter = interval / 1000 * random_between(&world->random, 1, 200);
    spread = p->delay + p->jitter + p->disk_delay + p->disk_jitter;
    if (is_slow) {
        int64_t least = p->settings.lease.ns / 200; /* otherwise a run has only pre-votes */
        int64_t part_of_spread = spread / random_between(&world->random, 2, 12);
        p->settings.election_timeout_min.ns = part_of_spread > least ? part_of_spread : least;
        p->settings.election_timeout_max = part(p->settings.election_timeout_min, 1500000);
    } else if (p->settings.election_timeout_max.ns < p->settings.election_timeout_min.ns + spread) {
        /* less would split many votes */
        p->settings.election_timeout_max.ns = p->settings.election_timeout_min.ns + spread;
    }
}

static void draw_faults(struct world *world, const struct theme *theme)
{
    struct profile *p = &world->profile;
    int64_t lease = p->settings.lease.ns;

    p->fault_weight_sum = 0;
    for (int i = 0; i < SIM_FAULT_COUNT; i++) {
        uint32_t weight = theme->weight[i];
        p->fault_weight[i] = weight * (random_chance(&world->random, 200000) ? 0 : 1);
        p->fault_weight_sum += p->fault_weight[i];
    }
    if (p->fault_weight_sum == 0) {
        p->fault_weight[SIM_FAULT_CRASH] = p->fault_weight_sum = 1;
    }
    p->fault_every = lease / 100 * random_between(&world->random, 20, 200);
    p->client_every =
        lease / 100 * random_between(&world->random, 4, 40) * (theme->is_quiet ? 20 : 1);
    p->down_time = lease / 100 * random_between(&world->random, 10, 400);
    if (theme->is_quiet) { /* a promise must hold until the next heartbeat */
        p->fault_every = lease / 100 * random_between(&world->random, 3, 40);
        p->down_time = lease / 100 * random_between(&world->random, 1, 30);
    }
    p->luck_ppm = theme->weight[SIM_FAULT_CRASH_SERIES] > 0 ? 100000 : 400000;
    p->certificate_ppm = theme->certificate_ppm;
    p->programs_ppm = theme->has_programs                     ? 1000000
                      : random_chance(&world->random, 200000) ? 400000
                                                              : 0;
    p->certificate_late_ppm = at_times(world, 300000);
    p->certificate_again_ppm = at_times(world, 400000);
}

static void draw_clocks(struct world *world)
{
    struct profile *p = &world->profile;
    uint64_t kind = random_below(&world->random, 4);

    p->drift = kind == 0 ? SIM_DRIFT_NONE : kind == 1 ? SIM_DRIFT_RANDOM : SIM_DRIFT_EXTREME;
    p->drift_ppm = p->settings.clock_drift_ppm;
    if (world->options.breaks_drift) {
        p->drift = SIM_DRIFT_EXTREME;
        p->drift_ppm = 2 * p->drift_ppm + 300000;
    }
}

/* In a few worlds guardians kill for hangs, and then leaders are stopped more often; in a few
 * silent hosts are fenced. */
static void draw_aside(struct world *world)
{
    struct profile *p = &world->profile;

    if (random_below(&world->aside, 12) == 0) {
        p->hang = part(p->settings.lease, random_between(&world->aside, 50000, 400000));
        p->fault_weight[SIM_FAULT_PAUSE_LEADER] += 8;
        p->fault_weight_sum += 8;
    }
    if (random_below(&world->aside, 8) == 0) {
        p->fence_after = part(p->settings.lease, random_between(&world->aside, 30000, 250000));
        if (p->fence_after.ns < 8 * (p->delay + p->jitter)) {
            p->fence_after.ns = 8 * (p->delay + p->jitter);
        }
        p->fence_timeout = part(p->settings.lease, random_between(&world->aside, 50000, 1000000));
        p->host_nodes = random_chance(&world->aside, 200000) ? 2 : 1;
        p->certificate_ppm = 0;
        p->fault_weight[SIM_FAULT_ISOLATE_LEADER] += 6;
        p->fault_weight[SIM_FAULT_CRASH_LEADER] += 4;
        p->fault_weight[SIM_FAULT_CRASH] += 8;
        p->fault_weight_sum += 18;
    }
}

void profile_draw(struct world *world)
{
    struct profile *p = &world->profile;
    size_t count = sizeof(themes) / sizeof(themes[0]);
    const struct theme *theme = &themes[random_below(&world->random, count)];

    *p = (struct profile){.name = theme->name};
    draw_settings(world, theme);
    draw_network(world, theme);
    draw_faults(world, theme);
    draw_clocks(world);
    draw_aside(world);
    p->nodes = (size_t)random_between(&world->random, 2, 7);
    if (p->nodes == 2 || random_chance(&world->random, 400000)) {
        p->nodes = (size_t)random_between(&world->random, 2, 3);
    }
    p->nodes = theme->nodes ? theme->nodes : p->nodes;
    p->nodes = p->fence_after.ns > 0 && p->nodes < 3 ? 3 : p->nodes;
    p->nodes = world->options.nodes ? world->options.nodes : p->nodes;
    p->spares = p->fault_weight[SIM_FAULT_RECONFIGURE] > 0 && p->nodes < SIM_NODES_MAX
                    ? random_below(&world->random, SIM_NODES_MAX - p->nodes) % 3
                    : 0;
    p->events = (uint32_t)random_between(&world->random, 300, 1400);
    p->events = world->options.events ? world->options.events : p->events;
}

void profile_random_member(struct world *world, raft_id id, struct raft_member *ret)
{
    uint64_t kind = random_below(&world->random, 10);

    *ret = (struct raft_member){.id = id, .weight = 1};
    (void)snprintf(ret->name, sizeof(ret->name), "n%llu", (unsigned long long)id);
    if (kind == 0) {
        ret->kind = RAFT_LEARNER;
        ret->weight = 0;
    } else if (kind == 1) {
        ret->kind = RAFT_WITNESS;
    }
    if (ret->kind != RAFT_LEARNER && random_chance(&world->random, 300000)) {
        ret->weight = up_to(world, 4);
    }
    if (random_chance(&world->random, 200000)) {
        ret->priority = (int32_t)up_to(world, 3);
    }
}

/* The first configuration: equal voters in half of the worlds, else mixed; a member may always
 * lead. */
void profile_members(struct world *world, struct raft_configuration *ret)
{
    size_t count = world->profile.nodes;
    bool is_plain = random_chance(&world->random, 500000);

    ret->members = arena_take(&world->arena, count * sizeof(*ret->members));
    ret->count = count;
    ret->is_joint = false;
    for (size_t i = 0; i < count; i++) {
        profile_random_member(world, i + 1, &ret->members[i]);
        if (is_plain || i == 0) {
            ret->members[i].kind = RAFT_VOTER;
            ret->members[i].weight = i == 0 && !is_plain ? 1 + up_to(world, 3) : 1;
        }
    }
}
