#include "cmocka_all.h"
#include "detector/reconcile.h"

#include <stdio.h>
#include <string.h>

static struct subscription sub(const char *identifier)
{
    return (struct subscription){.identifier = (char *)(uintptr_t)identifier,
                                 .rtsp_url = (char *)(uintptr_t) "rtsp://h/1",
                                 .model_url = (char *)(uintptr_t) "http://m/1",
                                 .model_name = (char *)(uintptr_t) "M",
                                 .model_id = 1};
}

/* "a b c" → subscriptions of those names. */
static size_t list_of(const char *names, char storage[16][8], struct subscription *list)
{
    size_t count = 0;
    int used;
    while (sscanf(names, "%7s%n", storage[count], &used) == 1) {
        list[count] = sub(storage[count]);
        count++;
        names += used;
    }
    return count;
}

static void lists_become_the_least_steps(void **state)
{
    static const struct {
        const char *current, *wanted, *steps; /* - removed, + added, = kept */
    } cases[] = {
        {"", "", ""},
        {"", "a b", "+a +b "},
        {"a b", "", "-a -b "},
        {"a b", "a b", "=a =b "},
        {"a b", "b a", "=b =a "},
        {"a b c", "c d a", "-b =c +d =a "},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char names[2][16][8];
        struct subscription current[16];
        struct subscription wanted[16];
        struct step steps[32];
        char told[256] = "";
        size_t m = list_of(cases[i].current, names[0], current);
        size_t n = list_of(cases[i].wanted, names[1], wanted);
        size_t count = reconcile(current, m, wanted, n, steps);
        for (size_t s = 0; s < count; s++) {
            (void)snprintf(told + strlen(told), sizeof(told) - strlen(told), "%c%s ",
                           "-u=+"[steps[s].type],
                           steps[s].type == STEP_REMOVE ? current[steps[s].current].identifier
                                                        : wanted[steps[s].wanted].identifier);
        }
        assert_string_equal(told, cases[i].steps);
    }
}

static void a_change_is_told_by_what_changed(void **state)
{
    struct subscription from = sub("d;c");
    struct subscription to = sub("d;c");
    struct step step;
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
    assert_int_equal(subscription_changes(&from, &to), CHANGE_SNAPSHOT);
    to = from;
    to.model_url = (char *)(uintptr_t) "http://m/1?token=fresh";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL_URL);
    to.crop = (struct crop){.given = 1u << CROP_X1};
    assert_int_equal(subscription_changes(&from, &to), CHANGE_MODEL_URL | CHANGE_CROP);
    assert_int_equal(reconcile(&from, 1, &to, 1, &step), 1);
    assert_int_equal(step.type, STEP_UPDATE);
    assert_int_equal(step.changes, CHANGE_MODEL_URL | CHANGE_CROP);
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
    assert_int_equal(subscription_changes(&from, &to), CHANGE_SNAPSHOT);
    to.rtsp_url = (char *)(uintptr_t) "rtsp://h/1";
    assert_int_equal(subscription_changes(&from, &to), CHANGE_CAMERA | CHANGE_SNAPSHOT);
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
        cmocka_unit_test(lists_become_the_least_steps),
        cmocka_unit_test(a_change_is_told_by_what_changed),
        cmocka_unit_test(snapshots_alone_are_the_camera),
        cmocka_unit_test(a_coordinate_that_is_not_given_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
