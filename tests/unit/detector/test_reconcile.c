#include "cmocka_all.h"
#include "detector/reconcile.h"

static struct subscription sub(const char *identifier)
{
    return (struct subscription){.identifier = (char *)(uintptr_t)identifier,
                                 .rtsp_url = (char *)(uintptr_t) "rtsp://h/1",
                                 .model_url = (char *)(uintptr_t) "http://m/1",
                                 .model_name = (char *)(uintptr_t) "M",
                                 .model_id = 1};
}

static void a_change_is_told_by_what_changed(void **state)
{
    struct subscription from = sub("d;c");
    struct subscription to = sub("d;c");
    (void)state;

    to.rtsp_url = (char *)(uintptr_t) "rtsp://h/2";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_CAMERA);
    to = from;
    to.model_id = 2;
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL);
    to = from;
    to.model_name = (char *)(uintptr_t) "N";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL);
    to = from;
    to.snapshot_url = (char *)(uintptr_t) "http://s";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_SNAPSHOT);
    to = from;
    to.snapshot_interval_ms = 5;
    assert_int_equal(subscription_changes(&from, &to), CHANGE_INTERVAL);
    to = from;
    to.model_url = (char *)(uintptr_t) "http://m/1?token=fresh";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL_URL);
    to.crop = (struct crop){.given = 1u << CROP_X1};
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL_URL | CHANGE_CROP);
}

static void snapshots_alone_are_the_camera(void **state)
{
    struct subscription from = sub("d;c");
    struct subscription to;
    (void)state;

    from.rtsp_url = (char *)(uintptr_t) "";
    from.snapshot_url = (char *)(uintptr_t) "http://h/1";
    to = from;
    to.snapshot_url = (char *)(uintptr_t) "http://h/2";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_CAMERA | CHANGE_SNAPSHOT);
    to.snapshot_url = from.snapshot_url;
    to.snapshot_interval_ms = 5;
    assert_int_equal(subscription_changes(&from, &to), CHANGE_INTERVAL);
    to.rtsp_url = (char *)(uintptr_t) "rtsp://h/1";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_CAMERA | CHANGE_INTERVAL);
}

static void a_coordinate_that_is_not_given_does_not_count(void **state)
{
    struct crop a = {.given = 1u << CROP_X1, .at = {7, 1, 2, 3}};
    struct crop b = {.given = 1u << CROP_X1, .at = {7, 9, 9, 9}};
    (void)state;

    assert_true(crop_equal(&a, &b));
    b.at[CROP_X1] = 8;
    assert_false(crop_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_told_by_what_changed),
        cmocka_unit_test(snapshots_alone_are_the_camera),
        cmocka_unit_test(a_coordinate_that_is_not_given_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
