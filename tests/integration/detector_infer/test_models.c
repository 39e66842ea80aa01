#include "cmocka_all.h"

#include "integration/detector_infer/models_stand.h"
#include "integration/detector_infer/stand.h"

#include <stdlib.h>
#include <string.h>

static bool is_second_running(const void *userdata)
{
    return described(userdata, "a;1", "running_id") == 2 &&
           ((const struct stand *)userdata)->of_model[2] >= 30;
}

static bool is_third_running(const void *userdata)
{
    return described(userdata, "a;1", "running_id") == 3;
}

/* ---- The tests ------------------------------------------------------------------------------ */

static void subscriptions_of_one_archive_share_a_child(void **state)
{
    struct stand *stand = stand_new();
    char *log;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_int_equal(described(stand, "a;1", "pid"), described(stand, "a;2", "pid"));
    assert_int_equal(described(stand, "a;1", "subscriptions"), 2);
    show_clip(stand);
    gallery_run_until(&stand->gallery, has_ended, stand);
    stand->wanted = stand->frames * COLOURS * 2;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->detections, stand->wanted);
    log = gallery_log(&stand->gallery);
    assert_non_null(strstr(log, "model-open"));
    assert_null(strstr(strstr(log, "model-open") + 1, "model-open"));
    free(log);
    stand_free(stand);
}

static void models_are_exchanged_without_losing_a_frame(void **state)
{
    struct stand *stand = stand_new();

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    stand->is_rewound = true;
    show_clip(stand);
    stand->wanted = 10;
    gallery_run_until(&stand->gallery, has_detections, stand);
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, "a;1", 2);
    gallery_run_until(&stand->gallery, is_second_running, stand);
    check_rest_of_clip(stand);
    assert_true(stand->of_model[1] >= 10);
    assert_int_equal(stand->held, 1);
    stand_free(stand);
}

static void what_is_bad_is_told_and_the_old_one_goes_on(void **state)
{
    static const int64_t bad[] = {3, 4, 5};
    static const char *const said[] = {"pipeline.json", "colours.onnx", "not allowed"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stand *stand = stand_new();
        char *error;

        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
        gallery_run_until(&stand->gallery, all_run, stand);
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, "a;1", bad[i]);
        gallery_run_until(&stand->gallery, was_refused, stand);
        error = described_text(stand, "a;1", "last_error");
        assert_non_null(strstr(error, said[i]));
        assert_non_null(strstr(error, "; model 1 ("));
        /* OpenCV tells of no input that it declares; then the output does not fit. */
        assert_true((strstr(error, "onnx.checker") || strstr(error, "known are")) == (bad[i] == 4));
        free(error);
        assert_int_equal(described(stand, "a;1", "running_id"), 1);
        show_clip(stand);
        stand->wanted = 30;
        gallery_run_until(&stand->gallery, has_detections, stand);
        assert_int_equal(stand->of_model[1], stand->detections);
        stand_free(stand);
    }
}

static void what_was_refused_is_asked_for_again(void **state)
{
    struct stand *stand = stand_new_with(RETRY_MS);

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 3);
    gallery_run_until(&stand->gallery, has_failed, stand);
    assert_int_equal(stand->held, 0);
    stand->is_mended = true;
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_true(stand->asked_count >= 2);
    assert_string_equal(stand->asked[1].url, STAND_FIRST_URL);
    stand_free(stand);
}

/* Or it would run, and see nothing. */
static void a_pipeline_that_another_was_given_is_asked_for_again(void **state)
{
    struct stand *stand = stand_new_with(RETRY_MS);

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 6);
    gallery_run_until(&stand->gallery, has_failed, stand);
    stand->is_mended = true;
    gallery_run_until(&stand->gallery, all_run, stand);
    stand_free(stand);
}

static void until_the_wanted_model_runs_each_fresh_url_is_asked(void **state)
{
    struct stand *stand = stand_new();
    size_t count;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    list_again(stand, "https://models/archive?signature=2", 1);
    assert_int_equal(stand->asked_count, 1); /* what runs is not asked for again, but looked at */
    assert_int_equal(stand->look_count, 1);
    list_again(stand, "https://models/other?signature=2", 3);
    gallery_run_until(&stand->gallery, was_refused, stand);
    stand->is_mended = true;
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_CROP, "a;1", 3);
    assert_int_equal(stand->asked_count, 2);
    list_again(stand, "https://models/other?signature=3", 3);
    assert_int_equal(stand->asked_count, 3);
    assert_int_equal(stand->look_count, 1);
    gallery_run_until(&stand->gallery, is_third_running, stand);
    /* The same number at another place. */
    list_again(stand, "https://models/moved?signature=4", 3);
    count = stand->asked_count;
    assert_string_equal(stand->asked[count - 1].url, "https://models/moved?signature=4");
    stand_free(stand);
}

static void a_fresh_url_takes_the_place_of_the_one_under_way(void **state)
{
    struct stand *stand = stand_new();

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    list_again(stand, "https://models/archive?signature=2", 1);
    assert_int_equal(stand->asked_count, 2);
    assert_int_equal(stand->held, 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_true(!stand->asked[0].is_answered && stand->asked[1].is_answered);
    stand_free(stand);
}

static bool is_newest(const void *userdata)
{
    return !was_refused(userdata) && all_run(userdata);
}

static void what_is_from_before_runs_and_the_newest_is_asked_for_again(void **state)
{
    struct stand *stand = stand_new_with(RETRY_MS);
    char *log;

    (void)state;
    stand->is_offline = true;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    log = described_text(stand, "a;1", "last_error");
    assert_non_null(strstr(log, "the server is silent; model 1 ("));
    free(log);
    stand->is_offline = false;
    gallery_run_until(&stand->gallery, is_newest, stand);
    assert_true(stand->asked_count >= 2);
    log = gallery_log(&stand->gallery); /* nothing was exchanged, as nothing is another */
    assert_non_null(strstr(log, "model-running"));
    assert_null(strstr(strstr(log, "model-running") + 1, "model-running"));
    free(log);
    stand_free(stand);
}

static void what_another_camera_shows_are_other_objects(void **state)
{
    static const unsigned moved_at[] = {0, 20};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct stand *stand = stand_new();

        stand->is_tracked = true;
        stand->moved_at = moved_at[i];
        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
        gallery_run_until(&stand->gallery, all_run, stand);
        show_clip(stand);
        gallery_run_until(&stand->gallery, has_ended, stand);
        stand->wanted = (i + 1) * COLOURS; /* once before it, and once after */
        assert_int_equal(stand->detections, stand->wanted);
        assert_int_equal(described(stand, "a;1", "restarts"), 0);
        stand_free(stand);
    }
}

static void what_is_removed_is_gone(void **state)
{
    struct stand *stand = stand_new();
    unsigned before;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 2);
    gallery_run_until(&stand->gallery, all_run, stand);
    show_clip(stand);
    stand->wanted = 10;
    gallery_run_until(&stand->gallery, has_detections, stand);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    before = stand->of_model[1];
    stand->wanted = stand->detections + 30;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->of_model[1], before);
    assert_int_equal(stand->held, 1);
    /* And at once after it was asked for. */
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    assert_int_equal(stand->held, 1);
    stand_free(stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscriptions_of_one_archive_share_a_child),
        cmocka_unit_test(models_are_exchanged_without_losing_a_frame),
        cmocka_unit_test(what_is_bad_is_told_and_the_old_one_goes_on),
        cmocka_unit_test(what_was_refused_is_asked_for_again),
        cmocka_unit_test(a_pipeline_that_another_was_given_is_asked_for_again),
        cmocka_unit_test(until_the_wanted_model_runs_each_fresh_url_is_asked),
        cmocka_unit_test(a_fresh_url_takes_the_place_of_the_one_under_way),
        cmocka_unit_test(what_is_from_before_runs_and_the_newest_is_asked_for_again),
        cmocka_unit_test(what_another_camera_shows_are_other_objects),
        cmocka_unit_test(what_is_removed_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
