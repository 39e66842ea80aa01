/* Plans, one rule at a time. */
#include "cmocka_all.h"
#include "fleet/plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 8, SUBSCRIPTIONS_MAX = 8 };

static struct plan_worker workers[WORKERS_MAX];
static struct plan_subscription subscriptions[SUBSCRIPTIONS_MAX];
static struct plan_problem problem;
static struct plan_answer answer;

#define LIST(...)                                                                                  \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

/* Online and in sync. */
static struct plan_worker *add_worker(const char *id)
{
    struct plan_worker *worker = &workers[problem.worker_count++];

    *worker = (struct plan_worker){
        .id = id, .subscriptions_max = 4, .is_online = true, .is_in_sync = true};
    return worker;
}

static void assign(struct plan_worker *worker, const char *const *ids, size_t count)
{
    worker->assigned = ids;
    worker->assigned_count = count;
}

static void leave(struct plan_worker *worker, const char *const *ids, size_t count)
{
    worker->leaving = ids;
    worker->leaving_count = count;
}

static struct plan_subscription *add(const char *id, const char *camera)
{
    struct plan_subscription *subscription = &subscriptions[problem.subscription_count++];

    *subscription = (struct plan_subscription){.id = id, .camera = camera};
    return subscription;
}

static int set_up(void **state)
{
    problem =
        (struct plan_problem){.workers = workers,
                              .subscriptions = subscriptions,
                              .options = {.subscriptions_max = 4, .hysteresis_permille = 200}};
    return 0;
}

static int tear_down(void **state)
{
    plan_answer_fini(&answer);
    return 0;
}

static void solve(void)
{
    plan_answer_fini(&answer);
    assert_int_equal(plan_solve(&problem, &answer), 0);
}

static bool lists(const char *const *ids, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ids[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has(size_t worker, const char *id)
{
    return lists(answer.lists[worker].subscriptions, answer.lists[worker].count, id);
}

static bool lets_go(size_t worker, const char *id)
{
    return lists(answer.lists[worker].leaving, answer.lists[worker].leaving_count, id);
}

static void a_subscription_goes_to_the_worker_with_the_least_load(void **state)
{
    add_worker("a")->other_permille = 500;
    add_worker("b");
    add("s", NULL);
    solve();
    assert_true(has(1, "s"));
    assert_true(answer.lists[1].gives);
    assert_false(answer.lists[0].is_changed);
    assert_int_equal(answer.unplaced_count, 0);
}

/* The first of two equal workers has other models, the second one this. */
static void make_two_with_models(void)
{
    static const char *const of_a[] = {"s"}, *const of_b[] = {"t"};

    assign(add_worker("a"), of_a, 1);
    assign(add_worker("b"), of_b, 1);
    add("s", "rtsp://1")->model = "1";
    add("t", "rtsp://2")->model = "2";
    add("u", "rtsp://3")->model = "2";
}

static void of_two_workers_with_equal_load_the_one_with_the_model_is_taken(void **state)
{
    make_two_with_models();
    solve();
    assert_true(has(1, "u"));
}

static void a_worker_with_more_load_is_not_taken_for_its_model(void **state)
{
    make_two_with_models();
    workers[1].other_permille = 1;
    solve();
    assert_true(has(0, "u"));
}

static void a_worker_without_room_is_not_taken_for_its_model(void **state)
{
    make_two_with_models();
    workers[1].subscriptions_max = 1;
    workers[0].other_permille = 2000;
    solve();
    assert_true(has(0, "u"));
}

static void a_worker_that_lacks_a_label_is_not_taken_for_its_model(void **state)
{
    make_two_with_models();
    subscriptions[2].needs = "gpu";
    workers[0].labels = "gpu";
    solve();
    assert_true(has(0, "u"));
}

static void subscriptions_of_a_camera_are_at_one_worker(void **state)
{
    add_worker("a");
    add_worker("b");
    add("s", "rtsp://1");
    add("t", "rtsp://1");
    add("u", "rtsp://1");
    solve();
    assert_int_equal(answer.lists[0].count + answer.lists[1].count, 3);
    assert_true(answer.lists[0].count == 0 || answer.lists[1].count == 0);
}

static void a_camera_that_no_worker_has_room_for_is_divided(void **state)
{
    add_worker("a");
    add_worker("b");
    for (int i = 0; i < 6; i++) {
        add((const char *[]){"1", "2", "3", "4", "5", "6"}[i], "rtsp://1");
    }
    solve();
    assert_int_equal(answer.lists[0].count, 3);
    assert_int_equal(answer.lists[1].count, 3);
}

static void a_worker_that_drains_lets_go_before_another_one_gets_it(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    a->is_draining = true;
    add_worker("b");
    add("s", NULL);
    solve();
    assert_true(lets_go(0, "s"));
    assert_false(has(1, "s"));
    assert_int_equal(answer.unplaced_count, 1);
    assert_null(answer.unplaced[0].reason);
    assert_int_equal(answer.unplaced[0].leaves, 0);
    assert_int_equal(answer.unplaced[0].target, 1);
    assert_int_equal(answer.moved, 1);
}

static void a_worker_that_is_deleted_lets_all_go_and_takes_nothing_back(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    a->is_deleted = true;
    add("s", NULL);
    solve(); /* nobody has room for it */
    assert_true(lets_go(0, "s"));
    assert_non_null(answer.unplaced[0].reason);
    assign(a, NULL, 0);
    leave(a, LIST("s"));
    a->is_in_sync = false;
    solve();
    assert_false(has(0, "s"));
    add_worker("b");
    solve();
    assert_false(has(1, "s"));
    assert_int_equal(answer.unplaced[0].target, 1);
    a->is_in_sync = true;
    solve();
    assert_true(has(1, "s"));
}

static void what_was_let_go_is_given(void **state)
{
    struct plan_worker *a = add_worker("a");

    leave(a, LIST("s"));
    a->is_draining = true;
    add_worker("b");
    add("s", NULL)->headed = "b";
    a->is_in_sync = false;
    solve();
    assert_true(lets_go(0, "s"));
    assert_false(answer.lists[0].is_changed || answer.lists[1].is_changed);
    a->is_in_sync = true;
    solve();
    assert_false(lets_go(0, "s"));
    assert_true(has(1, "s"));
}

static void what_leaves_comes_back_if_its_new_worker_dies(void **state)
{
    struct plan_worker *a = add_worker("a");

    leave(a, LIST("s"));
    a->is_draining = true;
    a->is_in_sync = false;
    add_worker("b")->is_online = false;
    add("s", NULL)->headed = "b";
    solve();
    assert_true(has(0, "s"));
    assert_false(lets_go(0, "s"));
}

static void what_an_offline_worker_had_is_given_at_once(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    leave(a, LIST("t"));
    a->is_online = a->is_in_sync = false;
    add_worker("b");
    add("s", NULL);
    add("t", NULL);
    solve();
    assert_true(has(1, "s") && has(1, "t"));
    assert_true(answer.lists[0].is_changed && !answer.lists[0].gives);
    assert_int_equal(answer.lists[0].count + answer.lists[0].leaving_count, 0);
}

static void an_offline_worker_keeps_what_no_other_one_has_room_for(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    a->is_online = false;
    add("s", NULL);
    solve();
    assert_false(answer.lists[0].is_changed);
    assert_true(has(0, "s"));
    assert_int_equal(answer.unplaced_count, 1);
    assert_string_equal(answer.unplaced[0].reason, "no healthy node takes new items");
}

static void what_does_not_exist_any_more_leaves_first(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    solve();
    assert_true(lets_go(0, "s"));
    assert_int_equal(answer.unplaced_count, 0);
}

static void a_paused_one_leaves_and_says_so(void **state)
{
    struct plan_worker *a = add_worker("a");

    assign(a, LIST("s"));
    add("s", NULL)->withheld = "paused";
    solve();
    assert_true(lets_go(0, "s"));
    assert_string_equal(answer.unplaced[0].reason, "paused");
}

static void of_two_workers_that_have_it_one_lets_it_go(void **state)
{
    assign(add_worker("a"), LIST("s"));
    assign(add_worker("b"), LIST("s"));
    add("s", NULL);
    solve();
    assert_true(has(0, "s"));
    assert_true(lets_go(1, "s"));
}

static void what_a_person_moves_takes_its_camera_along(void **state)
{
    assign(add_worker("a"), LIST("s", "t"));
    add_worker("b");
    add("s", "rtsp://1")->wanted = "b";
    add("t", "rtsp://1");
    solve();
    assert_true(lets_go(0, "s") && lets_go(0, "t"));
    assert_int_equal(answer.unplaced[1].target, 1);
}

static void a_move_to_a_worker_that_may_not_have_it_has_no_effect(void **state)
{
    assign(add_worker("a"), LIST("s"));
    add_worker("b")->is_cordoned = true;
    add("s", NULL)->wanted = "b";
    solve();
    assert_false(answer.lists[0].is_changed);
    subscriptions[0].wanted = "nobody";
    solve();
    assert_false(answer.lists[0].is_changed);
}

static void a_move_gets_the_room_that_a_later_one_leaves(void **state)
{
    static const char *const all[] = {"a", "b", "c", "d", "e", "f", "g"};
    enum { MOVES = sizeof(all) / sizeof(all[0]) - 1 };

    for (int i = 0; i <= MOVES; i++) {
        add_worker(all[i])->subscriptions_max = 1;
    }
    for (int i = 0; i < MOVES; i++) {
        assign(&workers[i], &all[i], 1);
        add(all[i], NULL)->wanted = all[i + 1];
    }
    solve();
    for (int i = 0; i < MOVES; i++) {
        assert_true(lets_go((size_t)i, all[i]));
        assert_int_equal(answer.unplaced[i].target, i + 1);
    }
}

/* The last one counts, and the others do not take it away again. */
static void of_two_moves_of_a_camera_one_counts(void **state)
{
    assign(add_worker("a"), LIST("s", "t"));
    add_worker("b");
    add_worker("c");
    add("s", "rtsp://1")->wanted = "b";
    add("t", "rtsp://1")->wanted = "c";
    solve();
    assert_int_equal(answer.unplaced_count, 2);
    assert_int_equal(answer.unplaced[0].target, 2);
    assert_int_equal(answer.unplaced[1].target, 2);
}

static void nothing_moves_for_balance_unless_that_is_asked_for(void **state)
{
    assign(add_worker("a"), LIST("s", "t", "u", "v"));
    add_worker("b");
    for (int i = 0; i < 4; i++) {
        add((const char *[]){"s", "t", "u", "v"}[i], NULL);
    }
    solve();
    assert_int_equal(answer.moved, 0);
    problem.options.balances = true;
    solve();
    assert_int_equal(answer.moved, 2);
}

/* Two that cost 90 percent: moving one helps, moving both would only swap the workers. */
static void heavy_subscriptions_do_not_all_leave_a_worker(void **state)
{
    struct plan_worker *a = add_worker("a");

    a->subscriptions_max = 40;
    a->other_permille = 850;
    a->is_settled = true;
    assign(a, LIST("s", "t"));
    add_worker("b")->subscriptions_max = 40;
    add("s", NULL);
    add("t", NULL);
    problem.options.balances = true;
    solve();
    assert_int_equal(answer.moved, 1);
    a->is_settled = false;
    solve();
    assert_int_equal(answer.moved, 0);
}

static void a_higher_priority_displaces_a_lower_one(void **state)
{
    struct plan_worker *a = add_worker("a");

    a->subscriptions_max = 1;
    assign(a, LIST("s"));
    add("s", NULL);
    add("t", NULL)->priority = 1;
    solve();
    assert_true(has(0, "t"));
    assert_true(lets_go(0, "s"));
    assert_string_equal(answer.unplaced[0].reason, "items of a higher priority took its place");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_subscription_goes_to_the_worker_with_the_least_load),
        TEST(of_two_workers_with_equal_load_the_one_with_the_model_is_taken),
        TEST(a_worker_with_more_load_is_not_taken_for_its_model),
        TEST(a_worker_without_room_is_not_taken_for_its_model),
        TEST(a_worker_that_lacks_a_label_is_not_taken_for_its_model),
        TEST(subscriptions_of_a_camera_are_at_one_worker),
        TEST(a_camera_that_no_worker_has_room_for_is_divided),
        TEST(a_worker_that_drains_lets_go_before_another_one_gets_it),
        TEST(a_worker_that_is_deleted_lets_all_go_and_takes_nothing_back),
        TEST(what_was_let_go_is_given),
        TEST(what_leaves_comes_back_if_its_new_worker_dies),
        TEST(what_an_offline_worker_had_is_given_at_once),
        TEST(an_offline_worker_keeps_what_no_other_one_has_room_for),
        TEST(what_does_not_exist_any_more_leaves_first),
        TEST(a_paused_one_leaves_and_says_so),
        TEST(of_two_workers_that_have_it_one_lets_it_go),
        TEST(what_a_person_moves_takes_its_camera_along),
        TEST(a_move_to_a_worker_that_may_not_have_it_has_no_effect),
        TEST(a_move_gets_the_room_that_a_later_one_leaves),
        TEST(of_two_moves_of_a_camera_one_counts),
        TEST(nothing_moves_for_balance_unless_that_is_asked_for),
        TEST(heavy_subscriptions_do_not_all_leave_a_worker),
        TEST(a_higher_priority_displaces_a_lower_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
