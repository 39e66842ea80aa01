/* The run of one seed.
 *
 * First a phase with faults. Then a phase without: a leader must be elected and commit a new entry
 * within a bounded time. Some runs go on with rounds of a lossy network and then of a working one
 * without requests: every entry must arrive at every member within a bounded time. Then some
 * members die for good, and the quorum that is left must go on working. */
#include "sim/play.h"

#include "guardian/mutants.h"
#include "provider/raft/fence_mutants.h"
#include "sim/acting.h"
#include "sim/arena.h"
#include "sim/checks.h"
#include "sim/client.h"
#include "sim/clock.h"
#include "sim/faults.h"
#include "sim/fences.h"
#include "sim/journal.h"
#include "sim/members.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/profile.h"
#include "sim/program.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/verdict.h"
#include "sim/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local enum raft_mutant raft_mutant = RAFT_MUTANT_NONE;
_Thread_local enum sim_mutant sim_mutant = SIM_MUTANT_NONE;

/* The run under way in this thread; a broken invariant of the core is reported there. */
static _Thread_local struct world *running;

enum { CALM_EVENTS_MAX = 60000 };

void raft_invariant_failed(const char *text, const char *file, int line)
{
    violated(running, "invariant", "%s (%s:%d)", text, file, line);
}

struct world *world_new(void)
{
    return calloc(1, sizeof(struct world));
}

void world_free(struct world *world)
{
    if (!world) {
        return;
    }
    arena_free(&world->arena);
    free(world->queue.heap);
    free(world->checks.entries);
    free(world->checks.votes);
    free(world->checks.leaders);
    free(world->checks.committed);
    for (size_t i = 0; i <= SIM_NODES_MAX; i++) {
        free(world->nodes[i].disk.records);
        free(world->nodes[i].memory.records);
        fences_end(&world->nodes[i]);
    }
    free(world);
}

static void reset_node(struct node *node)
{
    struct record *disk = node->disk.records;
    struct record *memory = node->memory.records;
    size_t disk_capacity = node->disk.capacity;
    size_t memory_capacity = node->memory.capacity;

    fences_end(node);
    *node = (struct node){.disk = {.records = disk, .capacity = disk_capacity},
                          .memory = {.records = memory, .capacity = memory_capacity}};
}

static void begin(struct world *world, const struct options *options)
{
    world->options = *options;
    world->random = (struct random){options->seed * 0x2545f4914f6cdd1du + 1};
    world->aside = (struct random){options->seed * 0x9fb21c651e98df25u + 7};
    world->result = (struct result){0};
    world->now = 0;
    world->is_calm = world->is_done = world->is_rough = world->is_silent = false;
    world->series = 0;
    world->proposals = 0;
    world->old_proof_count = 0;
    world->queue.count = 0;
    world->queue.order = 0;
    memset(world->cut, 0, sizeof(world->cut));
    arena_empty(&world->arena);
    for (size_t i = 0; i <= SIM_NODES_MAX; i++) {
        reset_node(&world->nodes[i]);
    }
    story_begin(&world->story, &world->options);
    checks_begin(world);
}

/* Members know the first configuration; nodes that may join later know no member. */
static void populate(struct world *world)
{
    struct raft_configuration members;

    profile_draw(world);
    profile_members(world, &members);
    world->node_count = world->profile.nodes + world->profile.spares;
    world->first_members = members;
    members_begin(world, &members);
    trace_say(world, RAFT_NOBODY, "a world of %s: %zu members, %zu spares, lease %.3f ms, %u ppm",
              world->profile.name, world->profile.nodes, world->profile.spares,
              (double)world->profile.settings.lease.ns / 1e6,
              world->profile.settings.clock_drift_ppm);
    for (raft_id id = 1; id <= world->node_count; id++) {
        struct node *node = &world->nodes[id];
        node->id = id;
        node->eligible = true;
        node->is_outlived = random_chance(&world->random, world->profile.programs_ppm);
        clock_start(world, node);
        if (id <= world->profile.nodes) {
            node->snapshot.configuration = members;
        }
    }
    for (raft_id id = 1; id <= world->node_count; id++) {
        node_start(world, &world->nodes[id]);
    }
    queue_push(world, (struct event){.kind = EVENT_FAULT, .at = world->profile.fault_every});
    queue_push(world, (struct event){.kind = EVENT_CLIENT, .at = world->profile.client_every});
}

static void happen(struct world *world, const struct event *event)
{
    switch (event->kind) {
    case EVENT_FAULT:
        if (!world->is_calm && event->node != RAFT_NOBODY) {
            faults_follow(world, event->node);
        } else if (!world->is_calm) {
            faults_next(world);
        }
        break;
    case EVENT_CLIENT:
        client_next(world);
        break;
    case EVENT_HEAL:
        if (!world->is_calm) {
            network_heal(world, event->partition);
        }
        break;
    case EVENT_LOOK:
        watch_look(world, event);
        break;
    case EVENT_KILLED:
        faults_killed(world, event);
        break;
    case EVENT_FENCE_OFF:
        faults_switched_off(world, event);
        break;
    case EVENT_GUARDIAN:
        program_guardian(world, event);
        break;
    case EVENT_RESTART:
        if (!world->nodes[event->node].is_up && !world->nodes[event->node].is_refused) {
            node_start(world, &world->nodes[event->node]);
        }
        break;
    default:
        node_event(world, event);
        break;
    }
}

static bool go_on(struct world *world)
{
    struct event event;

    if (!queue_pop(world, &event)) {
        return false;
    }
    world->now = event.at;
    world->result.events++;
    happen(world, &event);
    return true;
}

/* A node leads under a lease and has committed an entry since the faults stopped. */
static bool is_well(struct world *world)
{
    const struct node *leader = world_leader(world);
    return leader && leader->seen_commit > world->calm_floor &&
           world->checks.committed_count > world->calm_floor;
}

static int64_t patience(const struct world *world)
{
    const struct raft_settings *s = &world->profile.settings;
    int64_t longest = world->profile.settings_differ ? 5 : 1; /* profile_settings */
    return 12 * longest * s->heartbeat_timeout.ns + 60 * s->election_timeout_max.ns;
}

static bool is_anybody_refused(const struct world *world)
{
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (world->nodes[id].is_refused) {
            return true;
        }
    }
    return false;
}

/* Whether there was a quorum to judge. */
static bool calm(struct world *world)
{
    int64_t bound = patience(world);
    int64_t end = world->now + bound;

    trace_say(world, RAFT_NOBODY, "all faults stop");
    world->is_calm = true;
    world->profile.client_every = world->profile.settings.lease.ns / 10;
    queue_push(world, (struct event){.kind = EVENT_CLIENT, .at = world->now});
    faults_stop(world);
    if (is_anybody_refused(world) && !members_are_enough(world)) {
        return false;
    }
    world->calm_floor = world->checks.committed_count;
    for (int i = 0; i < CALM_EVENTS_MAX && !is_well(world); i++) {
        if (!go_on(world) || world->now > end) {
            violated(world, "liveness", "no leader committed anything for %.3f ms after calm came",
                     (double)(world->now - end + bound) / 1e6);
        }
    }
    if (!is_well(world)) {
        violated(world, "liveness", "no progress within %d events", CALM_EVENTS_MAX);
    }
    return true;
}

static bool votes_in(const struct raft_configuration *configuration, raft_id id)
{
    const struct raft_member *member = raft_configuration_find(configuration, id);
    return member && member->weight + member->old_weight > 0;
}

/* Whether a removed voter does not know yet that it was removed. It learns that from a leader that
 * it asks for votes, unless the entries that it lacks are compacted away or its term is higher. */
static bool is_unaware(const struct world *world, const struct node *leader)
{
    static const struct raft_configuration nothing;
    const struct raft_configuration *members = raft_get_configuration(leader->raft);

    for (raft_id id = 1; id <= world->node_count; id++) {
        const struct node *node = &world->nodes[id];
        const struct raft_configuration *own =
            node->is_up ? raft_get_configuration(node->raft) : &nothing;
        const struct raft_member *self = raft_configuration_find(own, id);
        if (self && votes_in(own, leader->id) && !raft_configuration_find(members, id) &&
            self->weight + self->old_weight > 0 && node->status.term <= leader->status.term &&
            node->status.commit_index + 1 >= leader->status.first_index) {
            return true;
        }
    }
    return false;
}

/* What has not arrived yet in a group without requests; NULL: everything has. */
static const char *is_missing(const struct world *world, const struct node *leader)
{
    const struct raft_configuration *members;

    if (!leader) {
        return "nobody leads";
    }
    if (leader->status.commit_index < leader->status.last_index) {
        return "an entry is not committed";
    }
    if (leader->status.is_changing) {
        return "a change of members has not ended";
    }
    members = raft_get_configuration(leader->raft);
    for (size_t i = 0; i < members->count; i++) {
        const struct node *member = &world->nodes[members->members[i].id];
        if (member->is_up && member->applied < leader->status.commit_index) {
            return "a member has not applied all";
        }
    }
    if (is_unaware(world, leader)) {
        return "a removed member does not know that it is one";
    }
    return NULL;
}

/* Proposes a few entries while the network loses, repeats and delays messages; then none, while the
 * network works. */
static void play_round(struct world *world)
{
    int64_t interval = world->profile.settings.heartbeat_interval.ns;
    int64_t rough_end = world->now + random_between(&world->random, 1, 3 * interval);
    const char *missing;

    world->is_silent = false;
    world->is_rough = true;
    world->profile.client_every = interval / 8;
    world->profile.tail = 2 * interval;
    world->profile.tail_ppm = world->profile.loss_ppm = world->profile.duplicate_ppm = 150000;
    queue_push(world, (struct event){.kind = EVENT_CLIENT, .at = world->now});
    while (world->now < rough_end && go_on(world)) {
    }
    trace_say(world, RAFT_NOBODY, "nothing more is asked for, and nothing is lost");
    world->is_silent = true;
    world->is_rough = false;
    rough_end = world->now + patience(world);
    while ((missing = is_missing(world, world_leader(world)))) {
        if (!go_on(world) || world->now > rough_end) {
            violated(world, "stuck", "%s %.3f ms after the last fault", missing,
                     (double)patience(world) / 1e6);
        }
    }
}

/* Whether the nodes that are up, without this one, are a quorum in which a node may lead. */
static bool is_healthy_without(const struct world *world, const struct raft_configuration *members,
                               raft_id without)
{
    uint64_t all = 0, has = 0;
    bool may_lead = false;

    for (size_t i = 0; i < members->count; i++) {
        const struct raft_member *member = &members->members[i];
        bool is_up = world->nodes[member->id].is_up && member->id != without;
        all += member->weight;
        has += is_up ? member->weight : 0;
        may_lead |= is_up && member->weight > 0 && member->kind == RAFT_VOTER;
    }
    return 2 * has > all && may_lead;
}

/* Some members die for good, perhaps the leader; the quorum that is left must elect one and commit.
 */
static void play_with_fewer(struct world *world)
{
    struct raft_configuration members;
    const struct node *leader = world_leader(world);
    int64_t end = world->now + patience(world);

    configuration_to_arena(world, &members, raft_get_configuration(leader->raft));
    for (size_t i = 0; i < members.count; i++) {
        raft_id id = members.members[i].id;
        if (world->nodes[id].is_up && random_chance(&world->random, 600000) &&
            is_healthy_without(world, &members, id)) {
            node_crash(world, &world->nodes[id]);
        }
    }
    world->calm_floor = world->checks.committed_count;
    world->is_silent = false;
    queue_push(world, (struct event){.kind = EVENT_CLIENT, .at = world->now});
    while (!is_well(world)) {
        if (!go_on(world) || world->now > end) {
            violated(world, "liveness", "a quorum is left, and commits nothing for %.3f ms",
                     (double)patience(world) / 1e6);
        }
    }
}

static void play(struct world *world)
{
    populate(world);
    for (uint32_t i = 0; i < world->profile.events; i++) {
        if (!go_on(world)) {
            break;
        }
    }
    if (!calm(world)) {
        return;
    }
    for (uint64_t left = random_below(&world->random, 4); left > 0 && left < 3; left--) {
        play_round(world);
        if (left == 1) {
            play_with_fewer(world);
        }
    }
}

void world_run(struct world *world, const struct options *options, struct result *ret)
{
    begin(world, options);
    running = world;
    if (setjmp(world->violated) == 0) {
        play(world);
    }
    for (raft_id id = 1; id <= SIM_NODES_MAX; id++) {
        raft_free(world->nodes[id].raft);
        world->nodes[id].raft = NULL;
    }
    world->result.hash = world->story.hash;
    world->result.virtual_ns = world->now;
    *ret = world->result;
}

/* ---- As a game ------------------------------------------------------------------------------- */

static void *game_new(void)
{
    return world_new();
}

static void game_free(void *world)
{
    world_free(world);
}

static void game_play(void *world, const struct options *options, struct result *ret)
{
    world_run(world, options, ret);
}

static const char *game_theme(const void *world)
{
    return ((const struct world *)world)->profile.name;
}

static void game_print_tail(const void *world)
{
    story_print_tail(&((const struct world *)world)->story);
}

static void game_set_mutant(int number)
{
    bool is_in_core = number < RAFT_MUTANT_COUNT;

    raft_mutant = is_in_core ? (enum raft_mutant)number : RAFT_MUTANT_NONE;
    sim_mutant = is_in_core ? SIM_MUTANT_NONE : (enum sim_mutant)number;
    hang_mutant = SIM_MUTANT(HANG_CERTIFIED_UNPROVEN) ? HANG_MUTANT_CERTIFIES_UNPROVEN
                  : SIM_MUTANT(HANG_COUNTED_ASLEEP)   ? HANG_MUTANT_COUNTS_ASLEEP
                                                      : HANG_MUTANT_NONE;
    fence_mutant = SIM_MUTANT(FENCE_ANY_EXIT)        ? FENCE_MUTANT_BELIEVES_ANY
                   : SIM_MUTANT(FENCE_UNGRANTED)     ? FENCE_MUTANT_WITHOUT_QUORUM
                   : SIM_MUTANT(FENCE_GRANTED_TWICE) ? FENCE_MUTANT_GRANTS_TWICE
                   : SIM_MUTANT(FENCE_FORGOTTEN)     ? FENCE_MUTANT_FORGETS_GRANTS
                                                     : FENCE_MUTANT_NONE;
}

static const struct game_mutant mutants[] = {
#define MUTANT_ROW(mutant, text) {RAFT_MUTANT_##mutant, #mutant, text},
    RAFT_MUTANTS(MUTANT_ROW)
#undef MUTANT_ROW
#define MUTANT_ROW(mutant, text) {SIM_MUTANT_##mutant, #mutant, text},
        SIM_MUTANTS(MUTANT_ROW)
#undef MUTANT_ROW
};

static const struct game_clue clues[] = {
    {"PLEDGE_RUN_TWICE", 1162},
    {"PROMISE_OF_EARLIER_LIFE", 4799},
    {"VOTE_UNGATED", 75},
    {"LEADER_VOTES_UNDER_LEASE", 75},
    {"RESIGNATION_ANY_TERM", 36},
    {"JOINT_LEFT_EARLY", 355},
    {"SILENCE_OF_TODAY", 3555},
    {"PROOF_OF_LATER_LIFE", 556},
    {"OWN_LEASE_FORGOTTEN", 986},
    {"MEMBERS_KEPT_AT_TRUNCATION", 1396},
    {"SNAPSHOT_WITHOUT_MEMBERS", 311},
    {"OLDER_COPY_TAKEN", 11944},
    {"HANG_CERTIFIED_UNPROVEN", 1032},
    {"FENCE_ANY_EXIT", 49},
    {"FENCE_FORGOTTEN", 7687},
    {NULL, 0},
};

const struct game raft_game = {
    .flag = "",
    .nodes_max = SIM_NODES_MAX,
    .new_world = game_new,
    .free_world = game_free,
    .play = game_play,
    .theme = game_theme,
    .print_tail = game_print_tail,
    .count_names = {[COUNT_ACQUIRED] = {"leaderships", "leaderships"},
                    [COUNT_COMMITTED] = {"committed", "entries committed"},
                    [COUNT_PROOFS] = {"proofs", "proofs"},
                    [COUNT_CRASHES] = {"crashes", "crashes"}},
    .mutants = mutants,
    .mutant_count = sizeof(mutants) / sizeof(mutants[0]),
    .clues = clues,
    .set_mutant = game_set_mutant,
};
