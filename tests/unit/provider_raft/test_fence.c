/* When a silent host is fenced, and by whom: the rule by itself, in a small world of milliseconds
 * whose members crash, sleep and lose messages, and planted bugs that the same world must show. */
#include "cmocka_all.h"
#include "provider/raft/fence.h"
#include "provider/raft/fence_mutants.h"

#include <string.h>

enum { AFTER_MS = 400, TIMEOUT_MS = 2000, RUN_MS = 30000, WORLDS = 40, MEMBERS = 5, MESSAGES = 64 };

/* ---- The world ------------------------------------------------------------------------------- */

enum kind { ASK, ANSWER, RELEASE };

struct message {
    int at; /* arrives; 0: none */
    enum kind kind;
    raft_id from, to;
    uint64_t incarnation, round;
    enum fence_refusal refusal;
    span hold;
};

/* Members 1 to MEMBERS, each on a host of its own. Member 1 leads, until its host falls silent. */
struct world {
    struct fence fences[MEMBERS + 1];
    uint64_t incarnations[MEMBERS + 1];
    span granted_max[MEMBERS + 1]; /* as its data directory has it */
    int frozen[MEMBERS + 1];       /* until then it does nothing */
    int next_look[MEMBERS + 1];
    int command_ends[MEMBERS + 1]; /* 0: none runs */
    int command_code;
    struct message messages[MESSAGES];
    unsigned seed;
    int now;
    bool is_silent; /* the host of member 1 */
    int loss;       /* of a hundred messages */
    int commands, most_at_once, proofs, false_proofs;
};

static int choose(struct world *world, int limit)
{
    world->seed = world->seed * 1103515245 + 12345;
    return (int)(world->seed / 65536 % (unsigned)limit);
}

static instant at_ms(int ms)
{
    return (instant){(int64_t)ms * 1000000};
}

static void start(struct world *world, raft_id id)
{
    const struct fence_settings settings = {
        .after = SPAN_MS(AFTER_MS), .timeout = SPAN_MS(TIMEOUT_MS), .has_command = true};
    struct fence_member members[MEMBERS];

    for (raft_id i = 1; i <= MEMBERS; i++) {
        members[i - 1] = (struct fence_member){.id = i, .host = i, .weight = 1, .may_lead = true};
    }
    fence_fini(&world->fences[id]);
    fence_init(&world->fences[id], &settings, id, world->granted_max[id], at_ms(world->now));
    assert_int_equal(
        fence_set_members(&world->fences[id], members, MEMBERS, false, at_ms(world->now)), 0);
    fence_find(&world->fences[id], 1)->worth = FENCE_LEADER;
    world->incarnations[id]++;
    world->next_look[id] = world->now;
    world->command_ends[id] = 0; /* it ends with its process */
}

static void begin(struct world *world, unsigned seed)
{
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->now = 1000;
    for (raft_id id = 1; id <= MEMBERS; id++) {
        start(world, id);
    }
}

static void end(struct world *world)
{
    for (raft_id id = 1; id <= MEMBERS; id++) {
        fence_fini(&world->fences[id]);
    }
}

static bool is_mute(const struct world *world, raft_id id)
{
    return id == 1 && world->is_silent;
}

static void post(struct world *world, struct message message)
{
    if (is_mute(world, message.from) || is_mute(world, message.to) ||
        choose(world, 100) < world->loss) {
        return;
    }
    message.incarnation = world->incarnations[message.from];
    message.at = world->now + 1 + choose(world, 30);
    for (size_t i = 0; i < MESSAGES; i++) {
        if (world->messages[i].at == 0) {
            world->messages[i] = message;
            return;
        }
    }
}

static void post_to_all(struct world *world, raft_id from, enum kind kind)
{
    const struct fence *fence = &world->fences[from];

    for (raft_id to = 1; to <= MEMBERS; to++) {
        if (to != from) {
            post(world, (struct message){.kind = kind,
                                         .from = from,
                                         .to = to,
                                         .round = fence->round,
                                         .hold = fence_hold(fence)});
        }
    }
}

static int running(const struct world *world)
{
    int count = 0;

    for (raft_id id = 1; id <= MEMBERS; id++) {
        count += world->command_ends[id] > world->now;
    }
    return count;
}

static void run_command(struct world *world, raft_id id)
{
    world->commands++;
    world->command_ends[id] = world->now + 1 + choose(world, TIMEOUT_MS);
    if (running(world) > world->most_at_once) {
        world->most_at_once = running(world);
    }
}

static void look(struct world *world, raft_id id)
{
    struct fence *fence = &world->fences[id];
    const struct fence_situation situation = {
        .may_run = true, .leader = 1, .heir = 2, .incarnation = world->incarnations[id]};

    switch (fence_look(fence, &situation, at_ms(world->now))) {
    case FENCE_ASK:
        post_to_all(world, id, ASK);
        break;
    case FENCE_RUN:
        run_command(world, id);
        break;
    case FENCE_RELEASE:
        post_to_all(world, id, RELEASE);
        break;
    case FENCE_NONE:
        break;
    }
}

static void receive(struct world *world, const struct message *message)
{
    struct fence *fence = &world->fences[message->to];
    static const raft_id dead[] = {1};
    const struct fence_ask ask = {.from = message->from,
                                  .incarnation = message->incarnation,
                                  .round = message->round,
                                  .ids = dead,
                                  .count = 1,
                                  .hold = message->hold};
    enum fence_refusal refusal;

    if (is_mute(world, message->to)) {
        return;
    }
    fence_heard(fence, message->from, at_ms(world->now));
    if (message->kind == ANSWER) {
        if (message->incarnation == world->incarnations[message->from]) {
            fence_take_reply(fence, message->from, message->round, message->refusal);
        }
        look(world, message->to);
    } else if (message->kind == RELEASE) {
        fence_take_release(fence, message->from, message->incarnation, message->round);
    } else {
        refusal = fence_take_ask(fence, &ask, at_ms(world->now));
        if (refusal == FENCE_GRANTED) {
            world->granted_max[message->to] = ask.hold;
        }
        post(world, (struct message){.kind = ANSWER,
                                     .from = message->to,
                                     .to = message->from,
                                     .round = message->round,
                                     .refusal = refusal});
    }
}

static void end_command(struct world *world, raft_id id)
{
    world->command_ends[id] = 0;
    if (fence_take_exit(&world->fences[id], world->command_code, true, at_ms(world->now))) {
        world->proofs++;
        world->false_proofs += world->command_code != 0;
        for (raft_id i = 1; i <= MEMBERS; i++) { /* the next vote carries the proof */
            fence_find(&world->fences[i], 1)->worth = FENCE_NOTHING;
        }
    }
    post_to_all(world, id, RELEASE);
}

static void pass_one_ms(struct world *world)
{
    world->now++;
    for (size_t i = 0; i < MESSAGES; i++) {
        if (world->messages[i].at > 0 && world->messages[i].at <= world->now &&
            world->frozen[world->messages[i].to] <= world->now) {
            struct message message = world->messages[i];
            world->messages[i].at = 0;
            receive(world, &message);
        }
    }
    for (raft_id id = 1; id <= MEMBERS; id++) {
        if (world->command_ends[id] > 0 && world->command_ends[id] <= world->now) {
            end_command(world, id);
        }
        if (!is_mute(world, id) && world->frozen[id] <= world->now &&
            world->next_look[id] <= world->now) {
            look(world, id);
            world->next_look[id] = world->now + AFTER_MS / FENCE_LOOKS;
        }
    }
}

/* Signs of life between all that are neither mute nor frozen. */
static void exchange_life(struct world *world)
{
    for (raft_id a = 1; a <= MEMBERS; a++) {
        for (raft_id b = 1; b <= MEMBERS; b++) {
            if (a != b && !is_mute(world, a) && !is_mute(world, b) &&
                world->frozen[a] <= world->now && world->frozen[b] <= world->now) {
                fence_heard(&world->fences[b], a, at_ms(world->now));
            }
        }
    }
}

static void pass(struct world *world, int ms)
{
    for (int until = world->now + ms; world->now < until;) {
        if (world->now % 50 == 0) {
            exchange_life(world);
        }
        pass_one_ms(world);
    }
}

/* Voters start again, messages get lost, a host is silent now and then, the command fails at times.
 * Returns the most commands that ran at once. */
static int play_at_random(void)
{
    int most = 0;

    for (unsigned seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        begin(&world, seed);
        world.loss = choose(&world, 2) ? 0 : 25;
        while (world.now < RUN_MS) {
            raft_id id = 2 + (raft_id)choose(&world, MEMBERS - 1);
            world.is_silent = choose(&world, 4) > 0;
            world.command_code = choose(&world, 3) > 0;
            if (choose(&world, 4) == 0) {
                start(&world, 3);
                start(&world, 4);
                start(&world, 5);
            } else if (choose(&world, 4) == 0) {
                start(&world, id);
            } else if (choose(&world, 3) == 0) {
                world.frozen[id] = world.now + choose(&world, 2 * AFTER_MS);
            }
            for (raft_id i = 1; i <= MEMBERS; i++) {
                fence_find(&world.fences[i], 1)->worth = FENCE_LEADER;
            }
            pass(&world, 200 + choose(&world, 1500));
        }
        most = world.most_at_once > most ? world.most_at_once : most;
        end(&world);
    }
    return most;
}

/* ---- The rule -------------------------------------------------------------------------------- */

static void a_silent_host_is_fenced_by_the_heir_after_the_time(void **state)
{
    struct world world;
    begin(&world, 1);
    pass(&world, 1000);
    world.is_silent = true;
    pass(&world, AFTER_MS - 60);
    assert_int_equal(world.commands, 0);
    pass(&world, 300);
    assert_int_equal(world.commands, 1);
    assert_int_equal(world.fences[2].state, FENCE_RUNNING);
    pass(&world, TIMEOUT_MS);
    assert_int_equal(world.proofs, 1);
    end(&world);
}

static void a_host_that_answers_is_not_fenced(void **state)
{
    struct world world;
    begin(&world, 1);
    pass(&world, 10 * AFTER_MS);
    assert_int_equal(world.commands, 0);
    end(&world);
}

static void a_host_whose_death_would_free_nothing_is_not_fenced(void **state)
{
    struct world world;
    begin(&world, 1);
    for (raft_id id = 1; id <= MEMBERS; id++) {
        fence_find(&world.fences[id], 1)->worth = FENCE_NOTHING;
    }
    world.is_silent = true;
    pass(&world, 10 * AFTER_MS);
    assert_int_equal(world.commands, 0);
    end(&world);
}

/* All others are frozen: the heir is alone. */
static int commands_without_quorum(void)
{
    struct world world;

    begin(&world, 1);
    world.is_silent = true;
    for (raft_id id = 3; id <= MEMBERS; id++) {
        world.frozen[id] = RUN_MS;
    }
    pass(&world, 10 * AFTER_MS);
    end(&world);
    return world.commands;
}

static void without_a_quorum_nothing_is_run(void **state)
{
    assert_int_equal(commands_without_quorum(), 0);
    fence_mutant = FENCE_MUTANT_WITHOUT_QUORUM;
    assert_int_not_equal(commands_without_quorum(), 0);
    fence_mutant = FENCE_MUTANT_NONE;
}

static int false_proofs(void)
{
    struct world world;

    begin(&world, 1);
    world.is_silent = true;
    world.command_code = 1;
    pass(&world, 5 * TIMEOUT_MS);
    assert_int_not_equal(world.commands, 0);
    end(&world);
    return world.false_proofs;
}

static void only_the_exit_code_0_is_a_proof(void **state)
{
    assert_int_equal(false_proofs(), 0);
    fence_mutant = FENCE_MUTANT_BELIEVES_ANY;
    assert_int_not_equal(false_proofs(), 0);
    fence_mutant = FENCE_MUTANT_NONE;
}

static void a_command_that_was_killed_at_its_limit_proves_nothing(void **state)
{
    struct world world;
    begin(&world, 1);
    assert_false(fence_take_exit(&world.fences[2], 0, false, at_ms(world.now)));
    end(&world);
}

static void a_command_that_fails_is_tried_again_ever_later(void **state)
{
    struct world world;
    int first;
    begin(&world, 1);
    world.is_silent = true;
    world.command_code = 1;
    pass(&world, 20000);
    first = world.commands;
    assert_in_range(first, 2, 20);
    pass(&world, 20000);
    assert_in_range(world.commands - first, 1, (uintmax_t)first - 1);
    end(&world);
}

static void two_commands_never_run_at_once(void **state)
{
    static const enum fence_mutant planted[] = {FENCE_MUTANT_GRANTS_TWICE,
                                                FENCE_MUTANT_FORGETS_GRANTS};
    assert_int_equal(play_at_random(), 1);
    for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
        fence_mutant = planted[i];
        assert_in_range(play_at_random(), 2, MEMBERS);
    }
    fence_mutant = FENCE_MUTANT_NONE;
}

/* It answers while the grants are on their way. */
static enum fence_action action_after_an_answer(void)
{
    struct world world;
    const struct fence_situation situation = {.may_run = true, .heir = 2, .incarnation = 1};
    enum fence_action action;

    begin(&world, 1);
    for (int i = 0; i < FENCE_LOOKS; i++) {
        world.now += AFTER_MS / FENCE_LOOKS;
        action = fence_look(&world.fences[2], &situation, at_ms(world.now));
    }
    assert_int_equal(action, FENCE_ASK);
    for (raft_id id = 3; id <= MEMBERS; id++) {
        fence_take_reply(&world.fences[2], id, world.fences[2].round, FENCE_GRANTED);
    }
    fence_heard(&world.fences[2], 1, at_ms(world.now));
    action = fence_look(&world.fences[2], &situation, at_ms(world.now));
    end(&world);
    return action;
}

static void a_host_that_answers_meanwhile_is_not_fenced(void **state)
{
    assert_int_equal(action_after_an_answer(), FENCE_RELEASE);
    fence_mutant = FENCE_MUTANT_ANSWER_IGNORED;
    assert_int_equal(action_after_an_answer(), FENCE_RUN);
    fence_mutant = FENCE_MUTANT_NONE;
}

/* The heir was stopped itself: it goes on, and has heard nothing. */
static enum fence_action action_after_a_sleep(void)
{
    struct world world;
    const struct fence_situation situation = {
        .may_run = true, .leader = 1, .heir = 2, .incarnation = 1};
    enum fence_action action;

    begin(&world, 1);
    (void)fence_look(&world.fences[2], &situation, at_ms(world.now));
    action = fence_look(&world.fences[2], &situation, at_ms(world.now + 10 * AFTER_MS));
    end(&world);
    return action;
}

static void silence_while_this_process_was_stopped_does_not_count(void **state)
{
    assert_int_equal(action_after_a_sleep(), FENCE_NONE);
    fence_mutant = FENCE_MUTANT_COUNTS_ASLEEP;
    assert_int_equal(action_after_a_sleep(), FENCE_ASK);
    fence_mutant = FENCE_MUTANT_NONE;
}

static void a_host_is_silent_only_if_all_its_members_are(void **state)
{
    struct world world;
    struct fence *fence = &world.fences[3];
    static const raft_id dead[] = {1};
    const struct fence_ask ask = {
        .from = 2, .incarnation = 1, .round = 1, .ids = dead, .count = 1, .hold = SPAN_S(1)};
    begin(&world, 1);
    fence_find(fence, 5)->host = 1;
    world.now += 2 * AFTER_MS;
    fence_heard(fence, 5, at_ms(world.now));
    assert_int_equal(fence_take_ask(fence, &ask, at_ms(world.now)), FENCE_ANSWERS);
    assert_int_equal(fence_take_ask(fence, &ask, at_ms(world.now + AFTER_MS)), FENCE_GRANTED);
    end(&world);
}

static void a_late_release_ends_no_later_grant(void **state)
{
    struct world world;
    struct fence *fence = &world.fences[3];
    static const raft_id dead[] = {1};
    struct fence_ask ask = {
        .from = 2, .incarnation = 1, .round = 2, .ids = dead, .count = 1, .hold = SPAN_S(1)};
    begin(&world, 1);
    world.now += AFTER_MS;
    assert_int_equal(fence_take_ask(fence, &ask, at_ms(world.now)), FENCE_GRANTED);
    fence_take_release(fence, 2, 1, 1);
    ask.from = 4;
    assert_int_equal(fence_take_ask(fence, &ask, at_ms(world.now)), FENCE_TAKEN);
    fence_take_release(fence, 2, 1, 2);
    assert_int_equal(fence_take_ask(fence, &ask, at_ms(world.now)), FENCE_GRANTED);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_host_is_fenced_by_the_heir_after_the_time),
        cmocka_unit_test(a_host_that_answers_is_not_fenced),
        cmocka_unit_test(a_host_whose_death_would_free_nothing_is_not_fenced),
        cmocka_unit_test(without_a_quorum_nothing_is_run),
        cmocka_unit_test(only_the_exit_code_0_is_a_proof),
        cmocka_unit_test(a_command_that_was_killed_at_its_limit_proves_nothing),
        cmocka_unit_test(a_command_that_fails_is_tried_again_ever_later),
        cmocka_unit_test(two_commands_never_run_at_once),
        cmocka_unit_test(a_host_that_answers_meanwhile_is_not_fenced),
        cmocka_unit_test(silence_while_this_process_was_stopped_does_not_count),
        cmocka_unit_test(a_host_is_silent_only_if_all_its_members_are),
        cmocka_unit_test(a_late_release_ends_no_later_grant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
