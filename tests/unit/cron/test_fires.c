/* No fire is lost and none runs twice, whoever leads and whatever the clock does: by the record
 * alone, at times that the tests make up. */
#include "cmocka_all.h"
#include "cron/fires.h"

#include <stdio.h>
#include <string.h>

/* 2026-11-25 12:00:00 UTC */
#define NOON INT64_C(1795608000)

static const struct calendar_zone utc;

struct scene {
    struct cron_line line;
    struct cron_record record;
    struct cron_leader leader;
    struct cron_run run; /* the one that was claimed last */
};

static struct scene scene_of(const char *when)
{
    struct scene scene = {.leader = {.node = "a", .epoch = 7, .led_since_s = NOON - 1000}};
    const char *rest;

    assert_int_equal(cron_schedule_parse(&scene.line.schedule, when, &rest, NULL), 0);
    cron_begin(&scene.record, NOON);
    return scene;
}

static enum cron_verdict decide(struct scene *scene, int64_t now_s)
{
    return cron_decide(&scene->record, &scene->line, &utc, &scene->leader, now_s * 1000,
                       &scene->run);
}

static void expect_run(struct scene *scene, int64_t now_s, int64_t fire_s)
{
    assert_int_equal(decide(scene, now_s), CRON_RUN);
    assert_int_equal(scene->run.fire_s, fire_s);
}

static void expect_nothing(struct scene *scene, int64_t now_s)
{
    assert_int_equal(decide(scene, now_s), CRON_NOTHING);
}

static void end(struct scene *scene, enum cron_state state, int64_t now_s)
{
    const struct cron_end ended = {
        .run = scene->run, .state = state, .exit_code = 0, .end_ms = now_s * 1000};
    assert_true(cron_note_end(&scene->record, &scene->line, &ended));
}

static bool is_live(const void *userdata, const struct cron_run *run)
{
    const struct cron_run *live = userdata;
    return live && live->fire_s == run->fire_s && live->attempt == run->attempt;
}

/* Another process leads from then on. */
static void fail_over(struct scene *scene, int64_t now_s)
{
    scene->leader = (struct cron_leader){"b", scene->leader.epoch + 1, now_s};
    (void)cron_take_over(&scene->record, &scene->line, now_s * 1000, is_live, NULL);
}

/* ---- One leader ------------------------------------------------------------------------------ */

static void each_instant_fires_once(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    expect_nothing(&scene, NOON);
    assert_int_equal(cron_due(&scene.record, &scene.line, &utc), NOON + 600);
    expect_nothing(&scene, NOON + 599);
    expect_run(&scene, NOON + 600, NOON + 600);
    assert_int_equal(scene.record.state, CRON_RUNNING);
    assert_int_equal(scene.run.attempt, 1);
    assert_string_equal(scene.run.node, "a");
    assert_int_equal(scene.run.epoch, 7);
    expect_nothing(&scene, NOON + 600);
    end(&scene, CRON_DONE, NOON + 601);
    expect_nothing(&scene, NOON + 601);
    expect_run(&scene, NOON + 1203, NOON + 1200);
    end(&scene, CRON_FAILED, NOON + 1204);
    assert_int_equal(scene.record.state, CRON_FAILED);
    assert_int_equal(scene.record.runs, 2);
    assert_int_equal(scene.record.failures, 1);
    assert_int_equal(scene.record.missed, 0);
}

static void a_line_that_is_new_does_not_fire_for_what_was_before_it(void **state)
{
    struct scene scene = scene_of("0 12 * * *");
    expect_nothing(&scene, NOON);
    assert_int_equal(cron_following(&scene.record, &scene.line, &utc), NOON + 86400);
}

static void with_jitter_it_starts_later_and_is_the_same_fire(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    scene.line.delay_s = 7;
    assert_int_equal(cron_due(&scene.record, &scene.line, &utc), NOON + 607);
    expect_nothing(&scene, NOON + 606);
    expect_run(&scene, NOON + 607, NOON + 600);
}

/* ---- Overlap --------------------------------------------------------------------------------- */

static void while_its_command_runs_a_fire_is_skipped(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    expect_run(&scene, NOON + 600, NOON + 600);
    assert_int_equal(decide(&scene, NOON + 1200), CRON_NOTED);
    assert_int_equal(scene.record.state, CRON_SKIPPED);
    assert_int_equal(scene.record.skipped, 1);
    end(&scene, CRON_DONE, NOON + 1300);
    assert_int_equal(scene.record.state, CRON_SKIPPED); /* of the later fire */
    assert_int_equal(scene.record.last.state, CRON_DONE);
    expect_nothing(&scene, NOON + 1300);
    expect_run(&scene, NOON + 1800, NOON + 1800);
}

static void or_it_waits_and_the_latest_of_them_runs_once(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    scene.line.overlap = CRON_OVERLAP_WAIT;
    scene.line.missed = CRON_MISSED_SKIP; /* it was not missed: it waited */
    expect_run(&scene, NOON + 600, NOON + 600);
    expect_nothing(&scene, NOON + 1900);
    assert_int_equal(cron_due(&scene.record, &scene.line, &utc), INT64_MAX);
    end(&scene, CRON_DONE, NOON + 1990);
    expect_run(&scene, NOON + 1990, NOON + 1800);
    assert_int_equal(scene.record.missed, 1);
}

static void or_it_runs_beside_the_others(void **state)
{
    struct scene scene = scene_of("* * * * *");
    scene.line.overlap = CRON_OVERLAP_ALLOW;
    for (int i = 1; i <= CRON_RUNNING_MAX; i++) {
        expect_run(&scene, NOON + 60 * i, NOON + 60 * i);
    }
    assert_int_equal(decide(&scene, NOON + 60 * (CRON_RUNNING_MAX + 1)), CRON_NOTED);
    assert_int_equal(scene.record.state, CRON_SKIPPED);
}

/* ---- Failover -------------------------------------------------------------------------------- */

static void what_was_due_while_nobody_led_runs_once(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    fail_over(&scene, NOON + 3000);
    expect_run(&scene, NOON + 3000, NOON + 3000 - 0);
    assert_int_equal(scene.record.missed, 4);
    end(&scene, CRON_DONE, NOON + 3001);
    expect_nothing(&scene, NOON + 3002);
}

static void or_not_at_all(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    scene.line.missed = CRON_MISSED_SKIP;
    fail_over(&scene, NOON + 3001);
    assert_int_equal(decide(&scene, NOON + 3001), CRON_NOTED);
    assert_int_equal(scene.record.state, CRON_MISSED);
    assert_int_equal(scene.record.missed, 5);
    expect_nothing(&scene, NOON + 3001);
    expect_run(&scene, NOON + 3600, NOON + 3600);
}

static void what_was_claimed_and_has_no_end_runs_again(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    fail_over(&scene, NOON + 43210);
    assert_int_equal(scene.record.last.state, CRON_INTERRUPTED);
    assert_int_equal(scene.record.state, CRON_INTERRUPTED);
    expect_run(&scene, NOON + 43210, NOON + 43200);
    assert_int_equal(scene.run.attempt, 2);
    assert_string_equal(scene.run.node, "b");
    end(&scene, CRON_DONE, NOON + 43220);
    assert_int_equal(scene.record.runs, 1);
    expect_nothing(&scene, NOON + 43220);
}

static void or_does_not(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    scene.line.interrupted = CRON_INTERRUPTED_SKIP;
    expect_run(&scene, NOON + 43200, NOON + 43200);
    fail_over(&scene, NOON + 43210);
    assert_int_equal(scene.record.state, CRON_INTERRUPTED);
    assert_int_equal(scene.record.running_count, 0);
    assert_int_equal(scene.record.interrupted, 1);
    expect_nothing(&scene, NOON + 43210);
}

static void what_ended_never_runs_again(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    end(&scene, CRON_DONE, NOON + 43201);
    fail_over(&scene, NOON + 43210);
    expect_nothing(&scene, NOON + 43210);
    assert_int_equal(scene.record.state, CRON_DONE);
}

static void an_interrupted_fire_is_run_before_a_missed_one(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    scene.line.overlap = CRON_OVERLAP_WAIT;
    expect_run(&scene, NOON + 600, NOON + 600);
    fail_over(&scene, NOON + 1900);
    expect_run(&scene, NOON + 1900, NOON + 600);
    expect_nothing(&scene, NOON + 1900);
    end(&scene, CRON_DONE, NOON + 1901);
    expect_run(&scene, NOON + 1901, NOON + 1800);
}

/* Else a fire of which no command was running when it was due would be lost. */
static void a_missed_fire_waits_for_the_one_that_runs_again_and_is_not_skipped(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    expect_run(&scene, NOON + 600, NOON + 600);
    fail_over(&scene, NOON + 1300);
    expect_run(&scene, NOON + 1300, NOON + 600);
    expect_nothing(&scene, NOON + 1300);
    assert_int_equal(cron_due(&scene.record, &scene.line, &utc), INT64_MAX);
    end(&scene, CRON_DONE, NOON + 1400);
    expect_run(&scene, NOON + 1400, NOON + 1200);
    assert_int_equal(decide(&scene, NOON + 1800), CRON_NOTED);
    assert_int_equal(scene.record.state, CRON_SKIPPED);
}

static void an_interruption_between_two_leaders_is_remembered(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    fail_over(&scene, NOON + 43210); /* and this one dies before it has claimed anything */
    fail_over(&scene, NOON + 43220);
    expect_run(&scene, NOON + 43220, NOON + 43200);
    assert_int_equal(scene.run.attempt, 2);
}

static void all_that_ran_side_by_side_run_again(void **state)
{
    struct scene scene = scene_of("* * * * *");
    scene.line.overlap = CRON_OVERLAP_ALLOW;
    expect_run(&scene, NOON + 60, NOON + 60);
    expect_run(&scene, NOON + 120, NOON + 120);
    fail_over(&scene, NOON + 130);
    expect_run(&scene, NOON + 130, NOON + 60);
    expect_run(&scene, NOON + 130, NOON + 120);
    expect_nothing(&scene, NOON + 130);
}

static void what_runs_in_this_process_goes_on(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    assert_false(cron_take_over(&scene.record, &scene.line, 0, is_live, &scene.run));
    assert_int_equal(scene.record.running_count, 1);
    end(&scene, CRON_DONE, NOON + 43201);
    assert_int_equal(scene.record.running_count, 0);
}

static void an_end_that_another_attempt_had_is_not_this_ones(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    struct cron_end late = {.state = CRON_DONE};
    expect_run(&scene, NOON + 43200, NOON + 43200);
    late.run = scene.run;
    fail_over(&scene, NOON + 43210);
    expect_run(&scene, NOON + 43210, NOON + 43200);
    assert_false(cron_note_end(&scene.record, &scene.line, &late));
    assert_int_equal(scene.record.running_count, 1);
}

static void a_line_that_is_gone_runs_nothing_again(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    assert_true(cron_take_over(&scene.record, NULL, 0, is_live, NULL));
    assert_int_equal(scene.record.running_count, 0);
}

/* ---- The clock ------------------------------------------------------------------------------- */

static void what_a_clock_set_forward_leaves_out_is_missed(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    expect_run(&scene, NOON + 600, NOON + 600);
    end(&scene, CRON_DONE, NOON + 601);
    scene.line.missed = CRON_MISSED_SKIP;
    assert_int_equal(decide(&scene, NOON + 7500), CRON_NOTED);
    assert_int_equal(scene.record.missed, 11);
    expect_run(&scene, NOON + 7800, NOON + 7800);
}

static void a_clock_set_back_a_little_fires_nothing_again(void **state)
{
    struct scene scene = scene_of("* * * * *");
    expect_run(&scene, NOON + 60, NOON + 60);
    end(&scene, CRON_DONE, NOON + 61);
    expect_nothing(&scene, NOON + 10);
    expect_nothing(&scene, NOON + 60);
    expect_run(&scene, NOON + 120, NOON + 120);
}

static void an_interval_line_goes_on_when_it_was_set_back_further(void **state)
{
    struct scene scene = scene_of("* * * * *");
    expect_run(&scene, NOON + 3600, NOON + 3600);
    end(&scene, CRON_DONE, NOON + 3601);
    assert_int_equal(decide(&scene, NOON), CRON_NOTED); /* by an hour: it begins anew */
    expect_nothing(&scene, NOON + 59);
    expect_run(&scene, NOON + 60, NOON + 60);
}

static void a_fixed_time_line_waits_for_three_hours(void **state)
{
    struct scene scene = scene_of("0 0 * * *");
    expect_run(&scene, NOON + 43200, NOON + 43200);
    end(&scene, CRON_DONE, NOON + 43201);
    expect_nothing(&scene, NOON + 43200 - 3 * 3600);
    expect_nothing(&scene, NOON + 43200);
    assert_int_equal(decide(&scene, NOON), CRON_NOTED); /* by twelve hours: it begins anew */
    expect_run(&scene, NOON + 43200, NOON + 43200);
}

static void a_leader_that_stood_still_comes_late_and_a_little_late_is_not_missed(void **state)
{
    struct scene scene = scene_of("*/10 * * * *");
    scene.line.missed = CRON_MISSED_SKIP;
    expect_run(&scene, NOON + 600 + CRON_LATE_S, NOON + 600);
    end(&scene, CRON_DONE, NOON + 700);
    assert_int_equal(decide(&scene, NOON + 1201 + CRON_LATE_S), CRON_NOTED);
    assert_int_equal(scene.record.state, CRON_MISSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_instant_fires_once),
        cmocka_unit_test(a_line_that_is_new_does_not_fire_for_what_was_before_it),
        cmocka_unit_test(with_jitter_it_starts_later_and_is_the_same_fire),
        cmocka_unit_test(while_its_command_runs_a_fire_is_skipped),
        cmocka_unit_test(or_it_waits_and_the_latest_of_them_runs_once),
        cmocka_unit_test(or_it_runs_beside_the_others),
        cmocka_unit_test(what_was_due_while_nobody_led_runs_once),
        cmocka_unit_test(or_not_at_all),
        cmocka_unit_test(what_was_claimed_and_has_no_end_runs_again),
        cmocka_unit_test(or_does_not),
        cmocka_unit_test(what_ended_never_runs_again),
        cmocka_unit_test(an_interrupted_fire_is_run_before_a_missed_one),
        cmocka_unit_test(a_missed_fire_waits_for_the_one_that_runs_again_and_is_not_skipped),
        cmocka_unit_test(an_interruption_between_two_leaders_is_remembered),
        cmocka_unit_test(all_that_ran_side_by_side_run_again),
        cmocka_unit_test(what_runs_in_this_process_goes_on),
        cmocka_unit_test(an_end_that_another_attempt_had_is_not_this_ones),
        cmocka_unit_test(a_line_that_is_gone_runs_nothing_again),
        cmocka_unit_test(what_a_clock_set_forward_leaves_out_is_missed),
        cmocka_unit_test(a_clock_set_back_a_little_fires_nothing_again),
        cmocka_unit_test(an_interval_line_goes_on_when_it_was_set_back_further),
        cmocka_unit_test(a_fixed_time_line_waits_for_three_hours),
        cmocka_unit_test(a_leader_that_stood_still_comes_late_and_a_little_late_is_not_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
