#include "cmocka_all.h"
#include "detector/reconcile.h"

#define SUB(stream, snapshot, model, name, id, interval_ms, ...)                                   \
    {                                                                                              \
        .identifier = (char *)"d;c", .rtsp_url = (char *)(stream),                                 \
        .snapshot_url = (char *)(snapshot), .model_url = (char *)(model),                          \
        .model_name = (char *)(name), .model_id = (id), .snapshot_interval_ms = (interval_ms),     \
        .crop = {                                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static void a_change_is_told_by_what_changed(void **state)
{
    enum { X1 = 1u << CROP_X1 };
    const struct subscription stream = SUB("rtsp://h", NULL, "http://m", "M", 1, 0, 0);
    /* Snapshots alone are the camera. */
    const struct subscription stills = SUB("", "http://s", "http://m", "M", 1, 0, X1, {7, 1, 2, 3});
    const struct {
        const struct subscription *from;
        struct subscription to;
        unsigned changes;
    } cases[] = {
        {&stream, SUB("rtsp://i", NULL, "http://m", "M", 1, 0, 0), CHANGE_CAMERA},
        {&stream, SUB("rtsp://h", NULL, "http://m", "M", 2, 0, 0), CHANGE_MODEL},
        {&stream, SUB("rtsp://h", NULL, "http://m", "N", 1, 0, 0), CHANGE_MODEL},
        {&stream, SUB("rtsp://h", "http://s", "http://m", "M", 1, 0, 0), CHANGE_SNAPSHOT},
        {&stream, SUB("rtsp://h", NULL, "http://m", "M", 1, 5, 0), CHANGE_INTERVAL},
        {&stream, SUB("rtsp://h", NULL, "http://m?token=fresh", "M", 1, 0, 0), CHANGE_MODEL_URL},
        {&stream, SUB("rtsp://h", NULL, "http://n", "M", 1, 0, X1), CHANGE_MODEL_URL | CHANGE_CROP},
        {&stream, SUB("rtsp://h", NULL, "http://m", "M", 1, 0, 0, {7}), 0},
        {&stills, SUB("", "http://t", "http://m", "M", 1, 0, X1, {7}),
         CHANGE_CAMERA | CHANGE_SNAPSHOT},
        {&stills, SUB("", "http://s", "http://m", "M", 1, 5, X1, {7}), CHANGE_INTERVAL},
        {&stills, SUB("rtsp://h", "http://s", "http://m", "M", 1, 5, X1, {7}),
         CHANGE_CAMERA | CHANGE_INTERVAL},
        {&stills, SUB("", "http://s", "http://m", "M", 1, 0, X1, {8, 1, 2, 3}), CHANGE_CROP},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(subscription_changes(cases[i].from, &cases[i].to), cases[i].changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_told_by_what_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
