/* What runs is looked after where it came from. */
#include "cmocka_all.h"

#include "integration/detector_infer/models_stand.h"
#include "integration/detector_infer/stand.h"

#include <stdlib.h>
#include <string.h>

/* Runs until so many looks were begun since now. */
static bool has_looked(const void *userdata)
{
    const struct stand *stand = userdata;

    return stand->look_count >= stand->wanted;
}

static void run_looks(struct stand *stand, unsigned more)
{
    unsigned detections = stand->wanted;

    stand->wanted = (unsigned)stand->look_count + more;
    gallery_run_until(&stand->gallery, has_looked, stand);
    stand->wanted = detections;
}

static unsigned logged(struct stand *stand, const char *event)
{
    char *log = gallery_log(&stand->gallery);
    unsigned count = 0;

    for (const char *at = log; (at = strstr(at, event)) != NULL; at++) {
        count++;
    }
    free(log);
    return count;
}

static struct stand *stand_that_looks(void)
{
    struct stand *stand = stand_new_with(0, RETRY_MS);

    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    return stand;
}

static void what_runs_is_looked_after_and_stays_as_it_is(void **state)
{
    struct stand *stand = stand_that_looks();
    json_int_t pid = described(stand, "a;1", "pid");

    (void)state;
    for (int i = 0; i < 8; i++) {
        run_looks(stand, 1);
        assert_int_equal(stand->look_count % 2, 0); /* both at once, so by one question */
        assert_true(all_run(stand));                /* also while it is asked for */
    }
    assert_int_equal(described(stand, "a;1", "pid"), pid);
    assert_int_equal(logged(stand, "model-running"), 2);
    assert_true(stand->held <= 4);
    stand_free(stand);
}

static void a_look_that_fails_is_one_line_and_nothing_else(void **state)
{
    struct stand *stand = stand_that_looks();

    (void)state;
    stand->look_end = LOOK_FAILED;
    run_looks(stand, 6);
    assert_true(all_run(stand) && !was_refused(stand));
    assert_int_equal(logged(stand, "model-recheck-failed"), 1);
    assert_int_equal(logged(stand, "model-refused"), 0);
    stand->look_end = LOOK_SAME;
    run_looks(stand, 4);
    stand->look_end = LOOK_FAILED;
    run_looks(stand, 6);
    assert_int_equal(logged(stand, "model-recheck-failed"), 2);
    stand_free(stand);
}

static bool is_rejected(const void *userdata)
{
    return ((const struct stand *)userdata)->is_rejected && was_refused(userdata);
}

static void what_a_look_brought_is_rejected_if_it_cannot_run(void **state)
{
    struct stand *stand = stand_that_looks();
    char *error;

    (void)state;
    stand->look_end = LOOK_NEWER;
    stand->newer = "colours.onnx";
    gallery_run_until(&stand->gallery, is_rejected, stand);
    assert_int_equal(stand->accepted, 2); /* as they began */
    stand->look_end = LOOK_SAME;
    run_looks(stand, 6);
    assert_true(all_run(stand));
    error = described_text(stand, "a;1", "last_error");
    assert_non_null(strstr(error, "; model 1 ("));
    free(error);
    show_clip(stand);
    stand->wanted = 30;
    gallery_run_until(&stand->gallery, has_detections, stand);
    stand_free(stand);
}

static bool is_exchanged(const void *userdata)
{
    const struct stand *stand = userdata;

    return all_run(stand) && described(stand, "a;1", "pid") != (json_int_t)stand->old_pid;
}

static void what_a_look_brought_takes_over_without_losing_a_frame(void **state)
{
    struct stand *stand = stand_new_with(0, RETRY_MS);

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    stand->old_pid = (int)described(stand, "a;1", "pid");
    stand->is_rewound = true;
    show_clip(stand);
    stand->wanted = 10;
    gallery_run_until(&stand->gallery, has_detections, stand);
    stand->newer = "rectangles.onnx";
    stand->look_end = LOOK_NEWER;
    gallery_run_until(&stand->gallery, is_exchanged, stand);
    assert_true(stand->accepted >= 2);
    check_rest_of_clip(stand);
    assert_int_equal(described(stand, "a;1", "dropped"), 0);
    stand_free(stand);
}

static void whose_server_gives_no_etag_is_not_looked_after(void **state)
{
    struct stand *stand = stand_new_with(0, RETRY_MS);

    (void)state;
    stand->is_blind = true;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    run_looks(stand, 1);
    assert_int_equal(logged(stand, "model-recheck-failed"), 0);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 2); /* meanwhile time passes */
    gallery_run_until(&stand->gallery, all_run, stand);
    run_looks(stand, 1);
    assert_int_equal(stand->look_count, 2); /* one each */
    assert_true(all_run(stand) && !was_refused(stand));
    stand_free(stand);
}

static void a_look_ends_with_its_subscription(void **state)
{
    struct stand *stand = stand_that_looks();

    (void)state;
    list_again(stand, "https://models/archive?signature=2", 1);
    assert_int_equal(stand->held, 3);
    list_again(stand, "https://models/archive?signature=3", 1); /* in place of the other */
    assert_int_equal(stand->held, 3);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    assert_int_equal(stand->held, 1);
    stand->identifiers[0] = "a;2";
    stand->identifiers[1] = NULL;
    list_again(stand, "https://models/archive?signature=4", 2); /* another model, in its place */
    stand_free(stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_is_looked_after_and_stays_as_it_is),
        cmocka_unit_test(a_look_that_fails_is_one_line_and_nothing_else),
        cmocka_unit_test(what_a_look_brought_is_rejected_if_it_cannot_run),
        cmocka_unit_test(what_a_look_brought_takes_over_without_losing_a_frame),
        cmocka_unit_test(whose_server_gives_no_etag_is_not_looked_after),
        cmocka_unit_test(a_look_ends_with_its_subscription),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
