/* The rules of placement, one by one. */
#include "base/error.h"
#include "cmocka_all.h"
#include "work/placement.h"

#include <stdio.h>
#include <string.h>

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static int calls_until_failure; /* of calloc(); 0: it does not fail */

void *__wrap_calloc(size_t count, size_t bytes)
{
    return calls_until_failure > 0 && --calls_until_failure == 0 ? NULL
                                                                 : __real_calloc(count, bytes);
}

enum { NODES_MAX = 8, ITEMS_MAX = 64 };

struct story {
    struct placement_node nodes[NODES_MAX];
    struct placement_item items[ITEMS_MAX];
    struct placement_problem problem;
    struct placement_answer answer;
};

static int begin(void **state)
{
    static struct story story;

    story = (struct story){.problem = {.nodes = story.nodes,
                                       .items = story.items,
                                       .strategy = PLACEMENT_LEAST_LOADED,
                                       .hysteresis_permille = 1000}};
    *state = &story;
    return 0;
}

static int end(void **state)
{
    placement_answer_fini(&((struct story *)*state)->answer);
    return 0;
}

/* Healthy, with 10 slots, 1000 MiB and no GPU. */
static struct placement_node *add_node(struct story *story)
{
    struct placement_node *node = &story->nodes[story->problem.node_count++];

    *node = (struct placement_node){.slots = 10, .memory_mib = 1000, .is_healthy = true};
    return node;
}

static struct placement_item *add_item(struct story *story, int32_t node)
{
    struct placement_item *item = &story->items[story->problem.item_count++];

    *item = (struct placement_item){.weight = 1, .node = node};
    return item;
}

static void add_items(struct story *story, size_t count, int32_t node)
{
    for (size_t i = 0; i < count; i++) {
        (void)add_item(story, node);
    }
}

static void solve(struct story *story)
{
    placement_answer_fini(&story->answer);
    assert_int_equal(placement_solve(&story->problem, &story->answer), 0);
}

static int32_t node_of(const struct story *story, size_t item)
{
    return story->answer.places[item].node;
}

static void assert_refused(const struct story *story, size_t item, enum placement_reason reason)
{
    assert_int_equal(node_of(story, item), PLACEMENT_NOWHERE);
    assert_string_equal(placement_reason_text(story->answer.places[item].reason),
                        placement_reason_text(reason));
}

static size_t count_on(const struct story *story, int32_t node)
{
    size_t count = 0;

    for (size_t i = 0; i < story->problem.item_count; i++) {
        count += node_of(story, i) == node;
    }
    return count;
}

static void without_memory_the_answer_is_unchanged(void **state)
{
    struct story *story = *state;
    const struct placement_answer before = {.moved = 7};
    int failures = 0;

    (void)add_node(story);
    add_items(story, 3, PLACEMENT_NOWHERE);
    for (int nth = 1;; nth++) {
        struct placement_answer answer = before;
        calls_until_failure = nth;
        int code = placement_solve(&story->problem, &answer);
        bool has_failed = calls_until_failure == 0;
        calls_until_failure = 0;
        if (!has_failed) {
            assert_int_equal(code, BATON_OK);
            placement_answer_fini(&answer);
            break;
        }
        assert_int_equal(code, BATON_ENOMEM);
        assert_memory_equal(&answer, &before, sizeof(before));
        failures++;
    }
    assert_int_equal(failures, 2);
}

static void names_and_strategies_belong_together(void **state)
{
    enum placement_strategy strategy = PLACEMENT_PRIORITY;

    for (int i = PLACEMENT_ROUND_ROBIN; i <= PLACEMENT_PRIORITY; i++) {
        assert_true(placement_strategy_parse(placement_strategy_name((enum placement_strategy)i),
                                             &strategy));
        assert_int_equal(strategy, i);
    }
    assert_false(placement_strategy_parse("least", &strategy));
    assert_int_equal(strategy, PLACEMENT_PRIORITY);
}

/* ---- Which node ------------------------------------------------------------------------------ */

static void round_robin_goes_by_the_order_of_the_nodes(void **state)
{
    struct story *story = *state;

    story->problem.strategy = PLACEMENT_ROUND_ROBIN;
    for (int i = 0; i < 3; i++) {
        add_node(story)->slots = i == 0 ? 4 : 100;
    }
    add_items(story, 7, PLACEMENT_NOWHERE);
    solve(story);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(node_of(story, i), i % 3);
    }
}

static void least_loaded_counts_weight_for_each_slot(void **state)
{
    struct story *story = *state;

    add_node(story)->slots = 5;
    add_node(story)->slots = 20;
    add_items(story, 10, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 0), 2);
    assert_int_equal(count_on(story, 1), 8);
}

static void least_loaded_counts_the_load_of_others(void **state)
{
    struct story *story = *state;

    add_node(story)->cpu_permille = 500;
    (void)add_node(story);
    add_items(story, 7, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 0), 1);
    assert_int_equal(count_on(story, 1), 6);
}

static void capability_leaves_gpus_to_those_that_need_them(void **state)
{
    struct story *story = *state;

    story->problem.strategy = PLACEMENT_CAPABILITY;
    add_node(story)->gpus = 2;
    add_node(story)->labels = "zone=a ssd arm";
    add_node(story)->labels = "zone=a";
    add_items(story, 12, PLACEMENT_NOWHERE);
    add_item(story, PLACEMENT_NOWHERE)->gpus = 1;
    solve(story);
    assert_int_equal(count_on(story, 2), 10);
    assert_int_equal(count_on(story, 1), 2);
    assert_int_equal(node_of(story, 12), 0);
}

/* ---- Why an item has none -------------------------------------------------------------------- */

static void without_nodes_nothing_is_placed(void **state)
{
    struct story *story = *state;

    (void)add_item(story, PLACEMENT_NOWHERE);
    solve(story);
    assert_refused(story, 0, PLACEMENT_NO_NODES);
    add_node(story)->is_healthy = false;
    add_node(story)->is_cordoned = true;
    add_node(story)->is_draining = true;
    solve(story);
    assert_refused(story, 0, PLACEMENT_NO_NODES);
}

static void every_label_is_needed(void **state)
{
    struct story *story = *state;

    add_node(story)->labels = "gpu";
    add_node(story)->labels = "  zone=a   gpux ";
    add_item(story, PLACEMENT_NOWHERE)->needs = "zone=a gpu";
    add_item(story, PLACEMENT_NOWHERE)->needs = "zone=a";
    solve(story);
    assert_refused(story, 0, PLACEMENT_NO_CAPABLE_NODE);
    assert_int_equal(node_of(story, 1), 1);
    story->nodes[0].labels = "a gpu zone=a";
    solve(story);
    assert_int_equal(node_of(story, 0), 0);
}

static void memory_and_gpus_must_be_there(void **state)
{
    struct story *story = *state;

    add_node(story)->gpus = 1;
    add_item(story, PLACEMENT_NOWHERE)->memory_mib = 1001;
    add_item(story, PLACEMENT_NOWHERE)->gpus = 2;
    add_item(story, PLACEMENT_NOWHERE)->gpus = 1;
    add_item(story, PLACEMENT_NOWHERE)->gpus = 1;
    story->problem.overfills = true;
    solve(story);
    assert_refused(story, 0, PLACEMENT_NO_CAPABLE_NODE);
    assert_refused(story, 1, PLACEMENT_NO_CAPABLE_NODE);
    assert_int_equal(node_of(story, 2), 0);
    assert_refused(story, 3, PLACEMENT_NO_ROOM);
}

static void a_full_node_takes_nothing_more(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    add_items(story, 11, PLACEMENT_NOWHERE);
    add_item(story, PLACEMENT_NOWHERE)->weight = 11;
    solve(story);
    assert_int_equal(count_on(story, 0), 10);
    assert_refused(story, 10, PLACEMENT_NO_ROOM);
    assert_refused(story, 11, PLACEMENT_ITEM_TOO_LARGE);
}

static void a_full_node_takes_more_where_that_is_allowed(void **state)
{
    struct story *story = *state;

    story->problem.overfills = true;
    (void)add_node(story);
    (void)add_node(story);
    add_items(story, 22, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 0), 11);
    assert_int_equal(count_on(story, 1), 11);
    assert_int_equal(story->answer.places[0].reason, PLACEMENT_OVERFILLS);
}

/* ---- Nodes that go --------------------------------------------------------------------------- */

static void the_items_of_a_dead_node_move_and_no_others(void **state)
{
    struct story *story = *state;

    for (int i = 0; i < 3; i++) {
        (void)add_node(story);
        add_items(story, 4, i);
    }
    story->items[4].is_pinned = true;
    story->nodes[1].is_healthy = false;
    solve(story);
    assert_int_equal(story->answer.moved, 4);
    assert_int_equal(count_on(story, 0), 6);
    assert_int_equal(count_on(story, 2), 6);
}

static void an_item_whose_node_lost_a_label_moves(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    add_node(story)->labels = "gpu";
    add_item(story, 0)->needs = "gpu";
    solve(story);
    assert_int_equal(node_of(story, 0), 1);
    story->nodes[1].labels = NULL;
    solve(story);
    assert_refused(story, 0, PLACEMENT_NO_CAPABLE_NODE);
    assert_int_equal(story->answer.stopped, 1);
}

static void a_draining_node_gives_away_what_can_move(void **state)
{
    struct story *story = *state;

    add_node(story)->is_draining = true;
    add_node(story)->slots = 2;
    add_items(story, 4, 0);
    story->items[0].is_pinned = true;
    solve(story);
    assert_int_equal(count_on(story, 0),
                     2); /* the pinned one, and one for which there is no room */
    assert_int_equal(node_of(story, 0), 0);
    assert_int_equal(count_on(story, 1), 2);
}

static void a_cordoned_node_keeps_what_it_has(void **state)
{
    struct story *story = *state;

    add_node(story)->is_cordoned = true;
    (void)add_node(story);
    add_items(story, 4, 0);
    add_items(story, 4, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(story->answer.moved, 0);
    assert_int_equal(count_on(story, 0), 4);
    assert_int_equal(count_on(story, 1), 4);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void add_group(struct story *story, size_t count, int32_t node)
{
    for (size_t i = 0; i < count; i++) {
        add_item(story, node)->together = "g";
    }
}

static void a_group_goes_to_one_node(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    (void)add_node(story);
    add_node(story)->labels = "a b";
    add_group(story, 4, PLACEMENT_NOWHERE);
    story->items[1].needs = "a";
    story->items[2].needs = "b";
    solve(story);
    assert_int_equal(count_on(story, 2), 4);
}

static void most_of_a_group_pulls_the_rest(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    (void)add_node(story);
    add_items(story, 5, 1);
    add_group(story, 1, 0);
    add_group(story, 2, 1);
    add_group(story, 2, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 1), 10);
    assert_int_equal(story->answer.moved, 1);
    assert_int_equal(story->answer.started, 2);
}

static void a_group_goes_where_all_of_it_has_room(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    (void)add_node(story);
    add_items(story, 8, 0);
    add_group(story, 2, 0);
    add_group(story, 1, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 1), 3);
    story->nodes[1].slots = 2;
    solve(story);
    assert_int_equal(count_on(story, 0), 10);
    assert_refused(story, 10, PLACEMENT_NO_ROOM);
}

static void a_group_may_be_too_large(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    (void)add_node(story);
    add_group(story, 11, PLACEMENT_NOWHERE);
    solve(story);
    for (size_t i = 0; i < 11; i++) {
        assert_refused(story, i, PLACEMENT_GROUP_TOO_LARGE);
    }
}

static void a_pinned_item_holds_its_group(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    (void)add_node(story);
    add_group(story, 1, 0);
    story->items[0].is_pinned = true;
    add_group(story, 3, 1);
    solve(story);
    assert_int_equal(count_on(story, 0), 4);
    story->nodes[0].is_cordoned = true;
    add_group(story, 1, PLACEMENT_NOWHERE);
    solve(story);
    assert_int_equal(count_on(story, 0), 1);
    assert_int_equal(count_on(story, 1), 3); /* they run, and stay */
    assert_refused(story, 4, PLACEMENT_GROUP_HELD);
}

/* ---- Balance --------------------------------------------------------------------------------- */

static void a_new_node_gets_its_share_and_no_more(void **state)
{
    struct story *story = *state;

    story->problem.hysteresis_permille = 0;
    for (int i = 0; i < 4; i++) {
        (void)add_node(story);
    }
    for (int i = 0; i < 3; i++) {
        add_items(story, 8, i);
    }
    solve(story);
    assert_int_equal(story->answer.moved, 6);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(count_on(story, i), 6);
    }
}

static void an_imbalance_below_the_hysteresis_moves_nothing(void **state)
{
    struct story *story = *state;

    story->problem.hysteresis_permille = 200;
    (void)add_node(story);
    (void)add_node(story);
    add_items(story, 6, 0);
    add_items(story, 4, 1);
    solve(story);
    assert_int_equal(story->answer.moved, 0);
    add_items(story, 1, 0);
    story->items[10].is_pinned = true;
    solve(story);
    assert_int_equal(story->answer.moved, 1);
    assert_int_equal(count_on(story, 0), 6);
}

static void a_move_that_only_swaps_the_loads_is_not_made(void **state)
{
    struct story *story = *state;

    story->problem.hysteresis_permille = 0;
    (void)add_node(story);
    (void)add_node(story);
    add_item(story, 0)->weight = 8;
    add_item(story, 1)->weight = 1;
    solve(story);
    assert_int_equal(story->answer.moved, 0);
}

static void a_node_that_became_too_small_gives_to_one_with_room(void **state)
{
    struct story *story = *state;

    add_node(story)->slots = 6;
    add_node(story)->slots = 4;
    for (uint32_t i = 0; i < 4; i++) {
        add_item(story, 0)->weight = 1 + i;
    }
    solve(story);
    assert_int_equal(story->answer.moved, 1);
    assert_int_equal(node_of(story, 3), 1);
}

static void a_node_that_is_too_small_keeps_what_has_no_other_place(void **state)
{
    struct story *story = *state;

    add_node(story)->memory_mib = 10;
    add_item(story, 0)->memory_mib = 6;
    add_item(story, 0)->memory_mib = 6;
    solve(story);
    assert_int_equal(count_on(story, 0), 2);
    (void)add_node(story);
    solve(story);
    assert_int_equal(count_on(story, 1), 1);
}

/* ---- Room that others make ------------------------------------------------------------------- */

static void an_item_that_may_go_elsewhere_makes_room(void **state)
{
    struct story *story = *state;

    add_node(story)->labels = "camera";
    add_node(story)->slots = 3;
    add_items(story, 10, 0);
    add_item(story, PLACEMENT_NOWHERE)->needs = "camera";
    solve(story);
    assert_int_equal(node_of(story, 10), 0);
    assert_int_equal(story->answer.moved, 1);
    assert_int_equal(story->answer.placed, 11);
}

static void nothing_moves_where_moving_makes_no_room(void **state)
{
    struct story *story = *state;

    add_node(story)->labels = "camera";
    add_node(story)->slots = 3;
    add_items(story, 10, 0);
    add_item(story, PLACEMENT_NOWHERE)->needs = "camera";
    story->items[10].weight = 4;
    solve(story);
    assert_refused(story, 10, PLACEMENT_NO_ROOM);
    assert_int_equal(story->answer.moved, 0);
}

/* ---- Priority -------------------------------------------------------------------------------- */

static void a_higher_priority_displaces_the_lowest(void **state)
{
    struct story *story = *state;

    story->problem.strategy = PLACEMENT_PRIORITY;
    (void)add_node(story);
    (void)add_node(story);
    add_items(story, 10, 0);
    add_items(story, 10, 1);
    for (size_t i = 0; i < 20; i++) {
        story->items[i].priority = i == 13 ? -1 : 2;
    }
    add_item(story, PLACEMENT_NOWHERE)->priority = 1;
    solve(story);
    assert_int_equal(node_of(story, 20), 1);
    assert_refused(story, 13, PLACEMENT_DISPLACED);
    assert_int_equal(story->answer.stopped, 1);
    assert_int_equal(story->answer.moved, 0);
}

static void only_the_strategy_priority_displaces(void **state)
{
    struct story *story = *state;

    (void)add_node(story);
    add_items(story, 10, 0);
    add_item(story, PLACEMENT_NOWHERE)->priority = 1;
    solve(story);
    assert_refused(story, 10, PLACEMENT_NO_ROOM);
}

static void equals_and_pinned_items_are_not_displaced(void **state)
{
    struct story *story = *state;

    story->problem.strategy = PLACEMENT_PRIORITY;
    (void)add_node(story);
    add_items(story, 10, 0);
    story->items[0].is_pinned = true;
    for (size_t i = 1; i < 10; i++) {
        story->items[i].priority = 1;
    }
    add_item(story, PLACEMENT_NOWHERE)->priority = 1;
    solve(story);
    assert_refused(story, 10, PLACEMENT_NO_ROOM);
}

static void no_more_are_displaced_than_needed(void **state)
{
    struct story *story = *state;

    story->problem.strategy = PLACEMENT_PRIORITY;
    (void)add_node(story);
    for (uint32_t i = 0; i < 4; i++) { /* weights 1, 2, 3, 4 */
        add_item(story, 0)->weight = 1 + i;
        story->items[i].priority = (int32_t)i;
    }
    add_item(story, PLACEMENT_NOWHERE)->priority = 9;
    story->items[4].weight = 3;
    solve(story);
    assert_int_equal(node_of(story, 4), 0);
    assert_int_equal(node_of(story, 3), 0);
    assert_int_equal(node_of(story, 2), 0);
    assert_int_equal(story->answer.stopped, 2);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        STORY(without_memory_the_answer_is_unchanged),
        STORY(names_and_strategies_belong_together),
        STORY(round_robin_goes_by_the_order_of_the_nodes),
        STORY(least_loaded_counts_weight_for_each_slot),
        STORY(least_loaded_counts_the_load_of_others),
        STORY(capability_leaves_gpus_to_those_that_need_them),
        STORY(without_nodes_nothing_is_placed),
        STORY(every_label_is_needed),
        STORY(memory_and_gpus_must_be_there),
        STORY(a_full_node_takes_nothing_more),
        STORY(a_full_node_takes_more_where_that_is_allowed),
        STORY(the_items_of_a_dead_node_move_and_no_others),
        STORY(an_item_whose_node_lost_a_label_moves),
        STORY(a_draining_node_gives_away_what_can_move),
        STORY(a_cordoned_node_keeps_what_it_has),
        STORY(a_group_goes_to_one_node),
        STORY(most_of_a_group_pulls_the_rest),
        STORY(a_group_goes_where_all_of_it_has_room),
        STORY(a_group_may_be_too_large),
        STORY(a_pinned_item_holds_its_group),
        STORY(a_new_node_gets_its_share_and_no_more),
        STORY(an_imbalance_below_the_hysteresis_moves_nothing),
        STORY(a_move_that_only_swaps_the_loads_is_not_made),
        STORY(a_node_that_became_too_small_gives_to_one_with_room),
        STORY(a_node_that_is_too_small_keeps_what_has_no_other_place),
        STORY(an_item_that_may_go_elsewhere_makes_room),
        STORY(nothing_moves_where_moving_makes_no_room),
        STORY(a_higher_priority_displaces_the_lowest),
        STORY(only_the_strategy_priority_displaces),
        STORY(equals_and_pinned_items_are_not_displaced),
        STORY(no_more_are_displaced_than_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
