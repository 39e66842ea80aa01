/* The mark of a worker that may be sent its list, on a state that the test plays. */
#include "base/error.h"
#include "cmocka_all.h"
#include "fleet/workers/claim.h"

#include <string.h>

static struct {
    struct claim claim;
    struct fleet_assigned assigned; /* in the cache */
    unsigned puts, settled;
    bool is_online; /* as it is written */
    uint64_t revision;
    provider_put_cb done; /* NULL: none is under way */
    void *userdata;
} world;

const struct fleet_assigned *__wrap_fleet_state_assigned(const struct fleet_state *state,
                                                         const char *worker);
int __wrap_fleet_state_put_json(struct fleet_state *state, const char *key, const json_t *json,
                                uint64_t revision, provider_put_cb done, void *userdata,
                                struct baton_error *reterr);

const struct fleet_assigned *__wrap_fleet_state_assigned(const struct fleet_state *state,
                                                         const char *worker)
{
    assert_string_equal(worker, "w1");
    return &world.assigned;
}

int __wrap_fleet_state_put_json(struct fleet_state *state, const char *key, const json_t *json,
                                uint64_t revision, provider_put_cb done, void *userdata,
                                struct baton_error *reterr)
{
    assert_string_equal(key, "assigned/w1");
    assert_null(world.done);
    world.puts++;
    world.is_online = json_is_true(json_object_get(json, "online"));
    assert_int_equal(json_array_size(json_object_get(json, "subscriptions")), world.assigned.count);
    world.revision = revision;
    world.done = done;
    world.userdata = userdata;
    return BATON_OK;
}

static void answer(int code)
{
    provider_put_cb done = world.done;

    world.done = NULL;
    done(world.userdata, code, 0, &(struct baton_error){.code = code});
}

/* As an owner does. */
static void on_settled(struct claim *claim)
{
    world.settled++;
    claim_step(claim);
}

static void want(enum claim_mark mark)
{
    claim_set(&world.claim, mark);
    claim_step(&world.claim);
}

static int set_up(void **state)
{
    static const char *const subscriptions[] = {"d;c"};

    memset(&world, 0, sizeof(world));
    world.assigned = (struct fleet_assigned){
        .worker = "w1", .epoch = 1, .revision = 5, .subscriptions = subscriptions, .count = 1};
    world.claim.worker = "w1";
    world.claim.on_settled = on_settled;
    return 0;
}

static void a_mark_counts_once_it_is_stored(void **state)
{
    want(CLAIM_ONLINE);
    assert_int_equal(world.revision, 5);
    assert_true(world.is_online);
    assert_false(claim_is_online(&world.claim));
    answer(BATON_OK);
    assert_true(claim_is_online(&world.claim));
    assert_int_equal(world.settled, 1);
    want(CLAIM_OFFLINE);
    assert_false(claim_is_online(&world.claim));
    assert_false(world.is_online);
    answer(BATON_OK);
    assert_int_equal(world.puts, 2);
}

static void after_a_conflict_it_is_written_into_what_was_read(void **state)
{
    want(CLAIM_ONLINE);
    world.assigned.revision = 6;
    world.assigned.count = 0;
    answer(BATON_ECONFLICT);
    assert_int_equal(world.revision, 6);
    answer(BATON_OK);
    assert_true(claim_is_online(&world.claim));
}

/* A provider that has no room refuses at once; each owner would ask it all the time. */
static void a_write_that_fails_is_not_tried_again_at_once(void **state)
{
    want(CLAIM_ONLINE);
    answer(BATON_EUNAVAILABLE);
    assert_int_equal(world.puts, 1);
    assert_false(claim_is_online(&world.claim));
    claim_step(&world.claim);
    assert_int_equal(world.puts, 2);
    answer(BATON_OK);
    assert_true(claim_is_online(&world.claim));
}

static void a_write_from_before_the_mark_was_wanted_does_not_count(void **state)
{
    want(CLAIM_ONLINE);
    want(CLAIM_OFFLINE);
    want(CLAIM_ONLINE);
    assert_int_equal(world.puts, 1);
    answer(BATON_OK);
    assert_false(claim_is_online(&world.claim));
    assert_int_equal(world.puts, 2);
    answer(BATON_OK);
    assert_true(claim_is_online(&world.claim));
}

static void of_another_owner_nothing_more_is_written(void **state)
{
    want(CLAIM_OFFLINE);
    want(CLAIM_NONE);
    answer(BATON_ECONFLICT);
    assert_int_equal(world.puts, 1);
}

static void a_write_goes_on_without_a_claim_that_has_ended(void **state)
{
    want(CLAIM_ONLINE);
    claim_fini(&world.claim);
    answer(BATON_OK);
    assert_int_equal(world.settled, 0);
    assert_false(claim_is_online(&world.claim));
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_mark_counts_once_it_is_stored),
        TEST(after_a_conflict_it_is_written_into_what_was_read),
        TEST(a_write_that_fails_is_not_tried_again_at_once),
        TEST(a_write_from_before_the_mark_was_wanted_does_not_count),
        TEST(of_another_owner_nothing_more_is_written),
        TEST(a_write_goes_on_without_a_claim_that_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
