/* Presets and parameters of the seed, and the inequalities that keep a lease safe. */
#include "cmocka_all.h"
#include "raft/raft.h"

#include <string.h>

static struct raft_settings preset(const char *name)
{
    struct raft_settings settings;
    assert_int_equal(raft_settings_preset(&settings, name, NULL), 0);
    return settings;
}

static void the_presets_are_those_of_the_seed(void **state)
{
    static const struct {
        const char *name;
        int64_t timeout_ms, min_ms, max_ms;
    } rows[] = {
        {"default", 5000, 150, 300},
        {"lan", 2000, 100, 200},
        {"wan", 10000, 500, 1000},
        {"fast", 75, 75, 150},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raft_settings settings = preset(rows[i].name);
        assert_int_equal(settings.heartbeat_timeout.ns, SPAN_MS(rows[i].timeout_ms).ns);
        assert_int_equal(settings.election_timeout_min.ns, SPAN_MS(rows[i].min_ms).ns);
        assert_int_equal(settings.election_timeout_max.ns, SPAN_MS(rows[i].max_ms).ns);
        assert_int_equal(raft_settings_check(&settings, NULL), 0);
    }
    assert_int_equal(preset("fast").heartbeat_interval.ns, SPAN_MS(15).ns);
}

static void an_unknown_preset_is_named_and_so_are_the_known(void **state)
{
    struct raft_settings settings;
    struct baton_error error;
    assert_int_equal(raft_settings_preset(&settings, "slow", &error), BATON_ENOENT);
    assert_non_null(strstr(error.message, "\"slow\""));
    assert_non_null(strstr(error.message, "wan"));
}

static void a_lease_longer_than_the_promise_is_unsafe(void **state)
{
    struct raft_settings settings = preset("default");
    struct baton_error error;
    settings.lease = SPAN_MS(6000);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EUNSAFE);
    assert_non_null(strstr(error.message, "lease <= heartbeat timeout"));
    assert_non_null(strstr(error.message, "6000"));
}

static void a_clock_that_may_stand_still_is_unsafe(void **state)
{
    struct raft_settings settings = preset("default");
    struct baton_error error;
    settings.clock_drift_ppm = 1000000;
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EUNSAFE);
    assert_non_null(strstr(error.message, "1000000"));
}

static void settings_that_cannot_work_say_which(void **state)
{
    struct raft_settings settings = preset("default");
    struct baton_error error;
    settings.heartbeat_interval = SPAN_MS(2500);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "heartbeat interval 2500 ms: at most 2450"));

    settings = preset("default");
    settings.election_timeout_max = SPAN_MS(149);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.election_timeout_max = SPAN_MS(187); /* 187.5 is the least */
    assert_int_equal(raft_settings_check_spread(&settings, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message,
                           "election timeout 150-187 ms: the maximum must be at least 187.5 ms"));
    settings.election_timeout_max = SPAN_MS(188);
    assert_int_equal(raft_settings_check_spread(&settings, &error), BATON_OK);
    settings.election_timeout_max = SPAN_S(3601);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.heartbeat_interval = SPAN_MS(0);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.lease = SPAN_MS(0);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.election_timeout_min = SPAN_MS(0);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.heartbeat_timeout = settings.lease = SPAN_S(3601);
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.message_bytes_max = 0;
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.inflight_max = 0;
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
    settings = preset("default");
    settings.log_bytes_max = 1;
    assert_int_equal(raft_settings_check(&settings, &error), BATON_EINVAL);
}

static void the_lease_is_shortened_by_the_drift_factor(void **state)
{
    struct raft_settings settings = preset("default");
    settings.clock_drift_ppm = 250000; /* rho = 1/4: (3/4) / (5/4) = 3/5 */
    assert_int_equal(raft_settings_shorten(&settings, SPAN_MS(5000)).ns, SPAN_MS(3000).ns);
    settings.clock_drift_ppm = 0;
    assert_int_equal(raft_settings_shorten(&settings, SPAN_MS(5000)).ns, SPAN_MS(5000).ns);
    assert_int_equal(raft_settings_shorten(&settings, SPAN_MS(-1)).ns, 0);
    settings.clock_drift_ppm = 999999;
    assert_true(raft_settings_shorten(&settings, SPAN_S(3600)).ns < SPAN_S(1).ns);
}

static void the_bounds_follow_from_the_settings(void **state)
{
    struct raft_settings settings = preset("fast");
    struct raft_bounds bounds = raft_settings_bounds(&settings);
    assert_int_equal(bounds.hang.ns, SPAN_MS(150).ns);
    assert_int_equal(bounds.restart_silence.ns, SPAN_MS(75).ns);
    assert_int_equal(bounds.round.ns, SPAN_MS(150).ns);
    assert_true(bounds.lease.ns < SPAN_MS(75).ns && bounds.lease.ns > SPAN_MS(73).ns);
}

static void everything_has_a_name(void **state)
{
    assert_string_equal(raft_role_name(RAFT_LEADER), "leader");
    assert_string_equal(raft_role_name((enum raft_role)99), "unknown");
    assert_string_equal(raft_message_name(RAFT_MSG_TIMEOUT_NOW), "timeout-now");
    assert_string_equal(raft_message_name((enum raft_message_type)0), "unknown");
    assert_string_equal(raft_loss_name(RAFT_LOSS_REMOVED), "removed");
    assert_string_equal(raft_proof_name(RAFT_PROOF_VOTE), "vote");
    assert_string_equal(raft_proof_name((enum raft_proof_kind)77), "unknown");
    assert_string_equal(raft_loss_name((enum raft_loss)77), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_presets_are_those_of_the_seed),
        cmocka_unit_test(an_unknown_preset_is_named_and_so_are_the_known),
        cmocka_unit_test(a_lease_longer_than_the_promise_is_unsafe),
        cmocka_unit_test(a_clock_that_may_stand_still_is_unsafe),
        cmocka_unit_test(settings_that_cannot_work_say_which),
        cmocka_unit_test(the_lease_is_shortened_by_the_drift_factor),
        cmocka_unit_test(the_bounds_follow_from_the_settings),
        cmocka_unit_test(everything_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
