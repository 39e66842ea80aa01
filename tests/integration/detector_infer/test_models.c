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
    stand_free(stand);
}

static void what_is_bad_is_told_and_the_old_one_goes_on(void **state)
{
    static const int64_t bad[] = {3, 4, 5};
    static const char *const said[] = {"zip", "colours.onnx", "not among those"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stand *stand = stand_new();
        char *error;

        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", bad[i]);
        gallery_run_until(&stand->gallery, was_refused, stand);
        error = described_text(stand, "a;1", "last_error");
        assert_non_null(strstr(error, "nothing is detected here until one opens"));
        free(error);
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, "a;1",
                  1); /* a good one mends it */
        gallery_run_until(&stand->gallery, all_run, stand);
        assert_false(was_refused(stand));
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

static void what_another_camera_shows_are_other_objects(void **state)
{
    static const unsigned moved_at[] = {0, 20};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct stand *stand = stand_new();

        stand->moved_at = moved_at[i];
        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", MODEL_TRACKED);
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
    /* And at once after it was asked for. */
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    stand_free(stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscriptions_of_one_archive_share_a_child),
        cmocka_unit_test(models_are_exchanged_without_losing_a_frame),
        cmocka_unit_test(what_is_bad_is_told_and_the_old_one_goes_on),
        cmocka_unit_test(what_another_camera_shows_are_other_objects),
        cmocka_unit_test(what_is_removed_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
