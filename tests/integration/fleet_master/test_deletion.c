/* The master of a fleet and workers that are deleted: they let go first. */
#include "yard.h"

#include <string.h>

static bool is_at(const char *subscription, const char *worker)
{
    return strcmp(yard_worker_of(subscription), worker) == 0;
}

/* Its subscription is w1's or w2's, and that worker is deleted as the API does it. */
static const char *delete_the_one_with_d1(bool *ret_is_first)
{
    yard_open(0, NULL);
    yard_worker("w1", "");
    yard_worker("w2", "");
    AWAIT(yard_owner("w2", 0)[0]);
    yard_hear("w1", true);
    yard_hear("w2", true);
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    *ret_is_first = is_at("d1;c1", "w1");
    yard_settle();
    yard_confirm_always(false);
    yard_worker(*ret_is_first ? "w1" : "w2", ",\"deleted\":true");
    return *ret_is_first ? "w1" : "w2";
}

static void a_worker_that_is_deleted_lets_go_before_another_one_gets_it(void **state)
{
    bool is_first;
    const char *worker = delete_the_one_with_d1(&is_first);

    AWAIT(yard_is_leaving(worker, "d1;c1"));
    assert_null(fleet_state_worker(yard_state(), worker));
    yard_settle();
    assert_string_equal(yard_worker_of("d1;c1"), "");
    assert_non_null(fleet_state_worker_key(yard_state(), worker));
    yard_confirm(worker);
    AWAIT(is_at("d1;c1", is_first ? "w2" : "w1"));
    AWAIT(!fleet_state_worker_key(yard_state(), worker));
    AWAIT(!fleet_state_assigned(yard_state(), worker));
}

static void the_next_master_ends_what_a_deletion_began(void **state)
{
    bool is_first;
    const char *worker = delete_the_one_with_d1(&is_first);

    AWAIT(yard_is_leaving(worker, "d1;c1"));
    yard_open(1, NULL);
    AWAIT(yard_owner(worker, 1)[0]);
    yard_close(0);
    AWAIT(yard_leader() == 1);
    yard_settle();
    assert_string_equal(yard_worker_of("d1;c1"), "");
    yard_confirm(worker);
    AWAIT(is_at("d1;c1", is_first ? "w2" : "w1"));
    AWAIT(!fleet_state_worker_key(yard_state(), worker));
}

static void a_deleted_worker_that_does_not_let_go_is_gone_after_a_while(void **state)
{
    bool is_first;
    const char *worker = delete_the_one_with_d1(&is_first);

    AWAIT(yard_is_leaving(worker, "d1;c1"));
    yard_worker(is_first ? "w2" : "w1", ",\"cordoned\":true"); /* or both would run it */
    yard_pass(MASTER_LEAVES_WITHIN);
    AWAIT(!fleet_state_worker_key(yard_state(), worker));
    assert_true(yard_has_event("worker-not-in-sync"));
}

static void a_deleted_worker_that_is_away_is_gone(void **state)
{
    bool is_first;
    const char *worker = delete_the_one_with_d1(&is_first);

    AWAIT(yard_is_leaving(worker, "d1;c1"));
    yard_hear(worker, false);
    AWAIT(is_at("d1;c1", is_first ? "w2" : "w1"));
    AWAIT(!fleet_state_worker_key(yard_state(), worker));
}

static void a_worker_that_is_added_again_before_it_has_let_go_stays(void **state)
{
    bool is_first;
    const char *worker = delete_the_one_with_d1(&is_first);

    AWAIT(yard_is_leaving(worker, "d1;c1"));
    yard_worker(worker, "");
    yard_settle();
    yard_confirm_always(true);
    AWAIT(yard_worker_of("d1;c1")[0]);
    yard_settle();
    assert_non_null(fleet_state_worker(yard_state(), worker));
    assert_false(yard_is_leaving(worker, "d1;c1"));
}

int main(int count, char **arguments)
{
#define YARD_TEST(name) cmocka_unit_test_setup_teardown(name, yard_set_up, yard_tear_down)
    const struct CMUnitTest tests[] = {
        YARD_TEST(a_worker_that_is_deleted_lets_go_before_another_one_gets_it),
        YARD_TEST(the_next_master_ends_what_a_deletion_began),
        YARD_TEST(a_deleted_worker_that_is_away_is_gone),
        YARD_TEST(a_worker_that_is_added_again_before_it_has_let_go_stays),
    };
    /* The leases of a server would end when the clock is put forward. */
    const struct CMUnitTest tests_of_time[] = {
        YARD_TEST(a_deleted_worker_that_does_not_let_go_is_gone_after_a_while),
    };
    int failed;

    if (count != 2 || !yard_choose(arguments[1])) {
        return 64;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (strcmp(arguments[1], "memory") == 0) {
        failed += cmocka_run_group_tests(tests_of_time, NULL, NULL);
    }
    yard_end();
    return failed;
}
