/* The load that a worker's subscriptions do not cause. */
#include "cmocka_all.h"
#include "fleet/plan/load.h"

static const instant begin = {1000000000};

static instant at(int seconds)
{
    return instant_add(begin, SPAN_S(seconds));
}

static void what_the_share_of_its_room_explains_is_no_other_load(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = 50}, 10, 20, begin);
    assert_int_equal(load.other_permille, 0);
}

static void the_first_report_counts_at_once(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = 10, .gpu = 80}, 10, 20, begin);
    assert_int_equal(load.other_permille, 300);
}

static void memory_counts_once_it_is_scarce(void **state)
{
    struct load enough = {0}, scarce = {0};

    load_hear(&enough, &(struct load_report){.memory = 89, .gpu_memory = 90}, 0, 20, begin);
    load_hear(&scarce, &(struct load_report){.memory = 10, .gpu_memory = 97}, 0, 20, begin);
    assert_int_equal(enough.other_permille, 0);
    assert_int_equal(scarce.other_permille, 970);
}

static void one_high_report_changes_little(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = 0}, 0, 20, begin);
    load_hear(&load, &(struct load_report){.cpu = 100}, 0, 20, at(10));
    assert_true(load.other_permille <= 1000 / LOAD_AVERAGED);
    for (int i = 0; i < 60; i++) {
        load_hear(&load, &(struct load_report){.cpu = 100}, 0, 20, at(12 + 2 * i));
    }
    assert_true(load.other_permille > 950);
}

static void reports_right_after_a_change_do_not_count(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = 0}, 0, 20, begin);
    load_hear(&load, &(struct load_report){.cpu = 100}, 1, 20, at(10));
    load_hear(&load, &(struct load_report){.cpu = 100}, 1, 20, at(12));
    assert_int_equal(load.other_permille, 0);
}

static void a_worker_that_reports_too_often_is_not_heard_more(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = 0}, 0, 20, begin);
    for (int i = 0; i < 100; i++) {
        load_hear(&load, &(struct load_report){.cpu = 100}, 0, 20, at(10));
    }
    assert_true(load.other_permille <= 1000 / LOAD_AVERAGED);
}

static void a_worker_is_settled_some_time_after_its_list_has_changed(void **state)
{
    struct load load = {0};

    assert_false(load_is_settled(&load, 0, begin));
    load_hear(&load, &(struct load_report){.cpu = 50}, 3, 20, begin);
    assert_false(load_is_settled(&load, 3, at(29)));
    assert_true(load_is_settled(&load, 3, at(30)));
    assert_false(load_is_settled(&load, 4, at(30))); /* its reports are of another list */
    load_hear(&load, &(struct load_report){.cpu = 50}, 4, 20, at(31));
    assert_false(load_is_settled(&load, 4, at(60)));
    assert_true(load_is_settled(&load, 4, at(61)));
}

static void nonsense_is_bounded(void **state)
{
    struct load load = {0};

    load_hear(&load, &(struct load_report){.cpu = -5, .gpu = 1e300}, 0, 0, begin);
    assert_int_equal(load.other_permille, 0); /* no room at all: the share is all */
    load = (struct load){0};
    load_hear(&load, &(struct load_report){.cpu = 1e300}, 0, 20, begin);
    assert_int_equal(load.other_permille, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_share_of_its_room_explains_is_no_other_load),
        cmocka_unit_test(the_first_report_counts_at_once),
        cmocka_unit_test(memory_counts_once_it_is_scarce),
        cmocka_unit_test(one_high_report_changes_little),
        cmocka_unit_test(reports_right_after_a_change_do_not_count),
        cmocka_unit_test(a_worker_that_reports_too_often_is_not_heard_more),
        cmocka_unit_test(a_worker_is_settled_some_time_after_its_list_has_changed),
        cmocka_unit_test(nonsense_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
