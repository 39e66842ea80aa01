/* What readers of the lease see of an update. */
#include "cmocka_all.h"
#include "provider/raft/node.h"

static struct node node;
static struct node_election election;

static int set_up(void **state)
{
    election = (struct node_election){.cell = lease_cell_new()};
    assert_non_null(election.cell);
    node = (struct node){.election = &election};
    return 0;
}

static int tear_down(void **state)
{
    lease_cell_free(election.cell);
    return 0;
}

/* As when the group was asked to hand over before the first lease came. */
static void a_leadership_that_begins_and_ends_in_one_step_has_its_epoch_all_the_same(void **state)
{
    const struct raft_event events[] = {{.type = RAFT_EV_ROLE, .term = 7},
                                        {.type = RAFT_EV_ACQUIRED, .term = 7},
                                        {.type = RAFT_EV_LOST, .term = 7}};
    const struct raft_update update = {.lease = {.epoch = 7}, .events = events, .event_count = 3};

    node_publish(&node, &update);
    assert_false(lease_cell_is_leader(election.cell, NULL));
    assert_int_equal(lease_cell_epoch(election.cell), 7);
}

static void a_leadership_lasts_until_the_lease_s_end(void **state)
{
    const struct raft_event events[] = {{.type = RAFT_EV_ACQUIRED, .term = 3}};
    struct raft_update update = {.lease = {.held = true, .epoch = 3, .end = INSTANT_NEVER},
                                 .events = events,
                                 .event_count = 1};
    uint64_t epoch = 0;

    node_publish(&node, &update);
    assert_true(lease_cell_is_leader(election.cell, &epoch));
    assert_int_equal(epoch, 3);
    update = (struct raft_update){.lease = {.epoch = 3}};
    node_publish(&node, &update);
    assert_false(lease_cell_is_leader(election.cell, NULL));
    assert_int_equal(lease_cell_epoch(election.cell), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_leadership_that_begins_and_ends_in_one_step_has_its_epoch_all_the_same, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_leadership_lasts_until_the_lease_s_end, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
