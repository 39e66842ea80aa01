/* Sessions, stages and patches on a state that the test moves. */
#include "cmocka_all.h"
#include "fleet/displays/displays.h"
#include "unit/fleet_displays/fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fleet_state *fleet;
static struct displays *displays;
static char events[512];

/* How a change ended; `code` is 1 before. */
struct end {
    int code, count;
    struct baton_error error;
};

static void on_end(void *userdata, int code, const struct baton_error *error)
{
    struct end *end = userdata;

    end->code = code;
    end->count++;
    end->error = *error;
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    char *text = json_dumps(fields, JSON_COMPACT);
    size_t used = strlen(events);

    (void)snprintf(events + used, sizeof(events) - used, "%s %s\n", name, text);
    free(text);
    json_decref(fields);
}

static void open_displays(void)
{
    const struct displays_config config = {.state = fleet, .on_event = on_event};

    assert_int_equal(displays_open(&displays, &config, NULL), BATON_OK);
}

static int set_up(void **state)
{
    events[0] = '\0';
    fleet = fake_open();
    fake_declare(fleet, "d1");
    fake_declare(fleet, "d2");
    open_displays();
    return 0;
}

static int tear_down(void **state)
{
    displays_close(displays);
    fake_close(fleet);
    return 0;
}

static int patch(const char *display, const char *text, struct end *end)
{
    json_t *json = json_loads(text, 0, NULL);
    int code;

    assert_non_null(json);
    *end = (struct end){.code = 1};
    code = displays_patch(displays, display, json, on_end, end, &end->error);
    json_decref(json);
    return code;
}

static int patch_session(int64_t session, const char *text, struct end *end)
{
    json_t *json = json_loads(text, 0, NULL);
    int code;

    assert_non_null(json);
    *end = (struct end){.code = 1};
    code = displays_patch_session(displays, session, json, on_end, end, &end->error);
    json_decref(json);
    return code;
}

static void set_session(const char *display, int64_t session)
{
    struct end end = {.code = 1};

    assert_int_equal(
        displays_set_session(displays, display,
                             (struct session_id){.is_set = session >= 0, .id = session}, on_end,
                             &end, NULL),
        BATON_OK);
    assert_int_equal(end.code, BATON_OK);
}

static void expect_field(const char *display, const char *field, const char *expected)
{
    char *found = json_dumps(json_object_get(fleet_state_data(fleet, display, NULL), field),
                             JSON_COMPACT | JSON_ENCODE_ANY);

    assert_non_null(found);
    assert_string_equal(found, expected);
    free(found);
}

/* ---- Patches --------------------------------------------------------------------------------- */

static void a_patch_is_written_once(void **state)
{
    struct end end;

    assert_int_equal(patch("d1", "{\"qrCode\":\"x\"}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_OK);
    assert_int_equal(end.count, 1);
    assert_int_equal(fake_writes(fleet), 1);
    expect_field("d1", "qrCode", "\"x\"");
    expect_field("d1", "sessionId", "null");
}

static void a_patch_that_changes_nothing_is_not_written(void **state)
{
    struct end end;

    assert_int_equal(patch("d1", "{\"qrCode\":\"x\"}", &end), BATON_OK);
    assert_int_equal(patch("d1", "{\"qrCode\":\"x\"}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_OK);
    assert_int_equal(fake_writes(fleet), 1);
}

static void patches_that_come_during_a_write_are_written_together(void **state)
{
    struct end ends[4];

    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"a\"}", &ends[0]), BATON_OK);
    assert_int_equal(patch("d1", "{\"qrCode\":\"b\"}", &ends[1]), BATON_OK);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &ends[2]), BATON_OK);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"b\":2}}", &ends[3]), BATON_OK);
    assert_int_equal(fake_writes(fleet), 1);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[0].code, BATON_OK);
    assert_int_equal(ends[1].code, 1);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[3].code, BATON_OK);
    assert_false(fake_finish(fleet, BATON_OK));
    assert_int_equal(fake_writes(fleet), 2);
    expect_field("d1", "qrCode", "\"b\"");
    expect_field("d1", "fuelPump", "{\"a\":1,\"b\":2}");
}

static void a_write_after_another_processs_is_merged_again(void **state)
{
    struct end end;

    fake_disturb(fleet, 3);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_OK);
    assert_int_equal(fake_writes(fleet), 4);
    expect_field("d1", "qrCode", "\"other 3\"");
    expect_field("d1", "fuelPump", "{\"a\":1}");
    assert_int_equal(displays_counters(displays)->conflicts, 3);
}

static void changes_keep_their_order_after_a_conflict(void **state)
{
    struct end ends[2];

    fake_defer(fleet);
    fake_disturb(fleet, 1);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &ends[0]), BATON_OK);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":2}}", &ends[1]), BATON_OK);
    while (fake_finish(fleet, BATON_OK)) {
    }
    assert_int_equal(displays_counters(displays)->conflicts, 1);
    assert_int_equal(ends[0].code, BATON_OK);
    assert_int_equal(ends[1].code, BATON_OK);
    expect_field("d1", "fuelPump", "{\"a\":2}");
}

static void a_write_is_given_up_after_so_many_others(void **state)
{
    struct end end;

    fake_disturb(fleet, 1000);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_EBUSY);
    assert_non_null(strstr(end.error.message, "others changed it at each of 64 tries"));
    assert_int_equal(fake_writes(fleet), DISPLAY_TRIES_MAX);
    fake_disturb(fleet, 2);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_OK);
}

static void a_write_that_fails_fails_all_of_its_changes_and_no_later_ones(void **state)
{
    struct end ends[3];

    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"a\"}", &ends[0]), BATON_OK);
    assert_true(fake_finish(fleet, BATON_EUNAVAILABLE));
    assert_int_equal(ends[0].code, BATON_EUNAVAILABLE);
    assert_int_equal(patch("d1", "{\"qrCode\":\"b\"}", &ends[1]), BATON_OK);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[1].code, BATON_OK);
    fake_refuse(fleet, BATON_ETOOBIG);
    assert_int_equal(patch("d1", "{\"qrCode\":\"c\"}", &ends[2]), BATON_OK);
    assert_int_equal(ends[2].code, BATON_ETOOBIG);
    expect_field("d1", "qrCode", "\"b\"");
}

static void a_wrong_patch_is_refused_at_once(void **state)
{
    struct end end;

    assert_int_equal(patch("d1", "{\"colour\":1}", &end), BATON_EINVAL);
    assert_int_equal(patch("d9", "{\"qrCode\":\"x\"}", &end), BATON_ENOENT);
    assert_non_null(strstr(end.error.message, "display \"d9\""));
    assert_int_equal(end.count, 0);
    assert_int_equal(fake_writes(fleet), 0);
}

static void what_cannot_be_merged_fails_alone(void **state)
{
    struct end ends[3];

    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"a\"}", &ends[0]), BATON_OK);
    assert_int_equal(patch("d1", "{\"adsPlayback\":{\"adsId\":1}}", &ends[1]), BATON_OK);
    assert_int_equal(patch("d1", "{\"qrCode\":\"c\"}", &ends[2]), BATON_OK);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[1].code, BATON_EINVAL);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[2].code, BATON_OK);
    expect_field("d1", "qrCode", "\"c\"");
}

static void so_many_changes_wait_and_no_more(void **state)
{
    static struct end ends[DISPLAY_WAITING_MAX + 1];

    fake_defer(fleet);
    for (size_t i = 0; i < DISPLAY_WAITING_MAX; i++) {
        assert_int_equal(patch("d1", i % 2 ? "{\"qrCode\":\"a\"}" : "{\"qrCode\":\"b\"}", &ends[i]),
                         BATON_OK);
    }
    assert_int_equal(patch("d1", "{\"qrCode\":\"c\"}", &ends[DISPLAY_WAITING_MAX]), BATON_EBUSY);
    while (fake_finish(fleet, BATON_OK)) {
    }
    for (size_t i = 0; i < DISPLAY_WAITING_MAX; i++) {
        assert_int_equal(ends[i].code, BATON_OK);
        assert_int_equal(ends[i].count, 1);
    }
    assert_int_equal(patch("d1", "{\"qrCode\":\"c\"}", &ends[0]), BATON_OK);
    assert_true(fake_finish(fleet, BATON_OK));
}

static struct end again;

static void on_end_patch_again(void *userdata, int code, const struct baton_error *error)
{
    on_end(userdata, code, error);
    assert_int_equal(patch("d1", "{\"qrCode\":\"again\"}", &again), BATON_OK);
}

static void a_change_may_be_asked_for_when_another_ends(void **state)
{
    json_t *first = json_pack("{s:s}", "qrCode", "first");
    struct end ends[2] = {{.code = 1}, {.code = 1}};

    fake_defer(fleet);
    assert_int_equal(displays_patch(displays, "d1", first, on_end_patch_again, &ends[0], NULL),
                     BATON_OK);
    assert_int_equal(patch("d1", "{\"fuelPump\":{}}", &ends[1]), BATON_OK);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[0].code, BATON_OK);
    assert_int_equal(again.code, 1);
    while (fake_finish(fleet, BATON_OK)) {
    }
    assert_int_equal(ends[1].code, BATON_OK);
    assert_int_equal(again.code, BATON_OK);
    assert_int_equal(ends[1].count, 1);
    expect_field("d1", "qrCode", "\"again\"");
    expect_field("d1", "fuelPump", "{}");
    json_decref(first);
}

static void a_change_may_be_asked_for_when_another_is_refused(void **state)
{
    json_t *wrong = json_pack("{s:{s:i}}", "adsPlayback", "adsId", 1);
    struct end ends[3] = {{.code = 1}, {.code = 1}, {.code = 1}};

    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"a\":1}}", &ends[0]), BATON_OK);
    assert_int_equal(patch("d1", "{\"fuelPump\":{\"b\":1}}", &ends[1]), BATON_OK);
    assert_int_equal(displays_patch(displays, "d1", wrong, on_end_patch_again, &ends[2], NULL),
                     BATON_OK);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_int_equal(ends[2].code, BATON_EINVAL);
    assert_true(fake_finish(fleet, BATON_OK));
    assert_false(fake_finish(fleet, BATON_OK));
    assert_int_equal(again.code, BATON_OK);
    expect_field("d1", "fuelPump", "{\"a\":1,\"b\":1}");
    expect_field("d1", "qrCode", "\"again\"");
    json_decref(wrong);
}

/* ---- Sessions and stages --------------------------------------------------------------------- */

static void a_patch_goes_to_the_display_that_has_the_session(void **state)
{
    struct end end;

    set_session("d1", 12345);
    assert_string_equal(displays_of_session(displays, 12345), "d1");
    assert_int_equal(patch_session(12345, "{\"qrCode\":\"x\"}", &end), BATON_OK);
    assert_int_equal(end.code, BATON_OK);
    assert_string_equal(displays_result_text(end.code, &end.error),
                        "Session updated successfully.");
    expect_field("d1", "qrCode", "\"x\"");
    assert_int_equal(patch_session(7, "{\"qrCode\":\"x\"}", &end), BATON_ENOENT);
    assert_string_equal(displays_result_text(BATON_ENOENT, &end.error),
                        "session 7: no display has it");
}

static void a_patch_of_a_session_that_ends_meanwhile_fails(void **state)
{
    struct end end;

    set_session("d1", 5);
    fake_defer(fleet);
    assert_int_equal(patch_session(5, "{\"qrCode\":\"x\"}", &end), BATON_OK);
    fake_write(fleet, "d1", "{\"sessionId\":6}");
    assert_true(fake_finish(fleet, BATON_OK)); /* a conflict */
    assert_int_equal(end.code, BATON_ENOENT);
    assert_string_equal(end.error.message, "session 5 has ended");
    assert_false(fake_finish(fleet, BATON_OK));
    assert_null(displays_of_session(displays, 5));
    assert_string_equal(displays_of_session(displays, 6), "d1");
}

static void a_session_that_another_display_has_moves(void **state)
{
    set_session("d1", 5);
    events[0] = '\0';
    set_session("d2", 5);
    expect_field("d1", "sessionId", "null");
    expect_field("d2", "sessionId", "5");
    assert_string_equal(displays_of_session(displays, 5), "d2");
    assert_string_equal(events,
                        "session-changed {\"display\":\"d1\",\"sessionId\":null,\"before\":5}\n"
                        "session-changed {\"display\":\"d2\",\"sessionId\":5,\"before\":null}\n");
}

static void a_session_that_is_set_again_stays(void **state)
{
    set_session("d1", 5);
    set_session("d1", 5);
    assert_int_equal(fake_writes(fleet), 1);
    assert_string_equal(displays_of_session(displays, 5), "d1");
}

static void a_move_that_fails_changes_nothing_more(void **state)
{
    struct end end = {.code = 1};

    set_session("d1", 5);
    fake_defer(fleet);
    assert_int_equal(displays_set_session(displays, "d2",
                                          (struct session_id){.is_set = true, .id = 5}, on_end,
                                          &end, NULL),
                     BATON_OK);
    assert_true(fake_finish(fleet, BATON_EUNAVAILABLE));
    assert_int_equal(end.code, BATON_EUNAVAILABLE);
    assert_int_equal(end.count, 1);
    assert_false(fake_finish(fleet, BATON_OK));
    assert_string_equal(displays_of_session(displays, 5), "d1");
}

static void a_session_that_two_displays_got_is_of_the_first_until_it_is_set_again(void **state)
{
    fake_write(fleet, "d2", "{\"sessionId\":5}");
    fake_write(fleet, "d1", "{\"sessionId\":5}");
    assert_string_equal(displays_of_session(displays, 5), "d1");
    set_session("d2", 5);
    assert_string_equal(displays_of_session(displays, 5), "d2");
    expect_field("d1", "sessionId", "null");
}

static void sessions_end_and_stages_change(void **state)
{
    struct end end = {.code = 1};

    set_session("d1", 5);
    assert_int_equal(displays_set_stage(displays, "d1", STAGE_CAR_FUELING, on_end, &end, NULL),
                     BATON_OK);
    assert_int_equal(end.code, BATON_OK);
    expect_field("d1", "progressionStage", "\"car_fueling\"");
    set_session("d1", -1);
    assert_null(displays_of_session(displays, 5));
    assert_int_equal(displays_set_stage(displays, "d1", STAGE_NONE, on_end, &end, NULL), BATON_OK);
    assert_string_equal(
        events,
        "session-changed {\"display\":\"d1\",\"sessionId\":5,\"before\":null}\n"
        "stage-changed {\"display\":\"d1\",\"progressionStage\":\"car_fueling\",\"before\":null}\n"
        "session-changed {\"display\":\"d1\",\"sessionId\":null,\"before\":5}\n"
        "stage-changed "
        "{\"display\":\"d1\",\"progressionStage\":null,\"before\":\"car_fueling\"}\n");
}

static void what_is_there_at_the_beginning_is_no_event(void **state)
{
    fake_write(fleet, "d1", "{\"sessionId\":5,\"progressionStage\":\"welcome\"}");
    displays_close(displays);
    events[0] = '\0';
    open_displays();
    assert_string_equal(displays_of_session(displays, 5), "d1");
    fake_write(fleet, "d1", "{\"sessionId\":5,\"progressionStage\":\"welcome\",\"qrCode\":\"x\"}");
    assert_string_equal(events, "");
}

static void the_data_of_a_display_goes_with_it(void **state)
{
    struct end end;

    set_session("d1", 5);
    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"x\"}", &end), BATON_OK);
    fake_undeclare(fleet, "d1");
    assert_true(fake_finish(fleet, BATON_ECONFLICT)); /* the patch, after a foreign write */
    assert_int_equal(end.code, BATON_ENOENT);
    assert_true(fake_finish(fleet, BATON_OK)); /* the deletion */
    assert_null(fleet_state_data(fleet, "d1", NULL));
    assert_null(displays_of_session(displays, 5));
}

/* ---- The current car ------------------------------------------------------------------------- */

static void detect(const char *display, const char *text)
{
    json_t *attributes = json_loads(text, 0, NULL);

    assert_non_null(attributes);
    displays_detected(displays, display, attributes);
    json_decref(attributes);
}

static void settle(void)
{
    const uint64_t cars = displays_counters(displays)->cars;

    while (displays_counters(displays)->cars == cars && uv_run(fake_loop(), UV_RUN_ONCE) != 0) {
    }
}

static void detections_of_a_session_are_merged_into_its_car_together(void **state)
{
    set_session("d1", 5);
    detect("d1", "{\"carModel\":\"Civic\",\"carBrand\":\"Honda\",\"confidence\":0.5}");
    detect("d1", "{\"carModel\":\"Accord\",\"carYear\":2023}");
    settle();
    expect_field("d1", "currentCar",
                 "{\"carModel\":\"Accord\",\"carBrand\":\"Honda\",\"carYear\":2023}");
    assert_int_equal(fake_writes(fleet), 2);
}

static void what_is_in_the_data_is_not_written_again(void **state)
{
    fake_write(fleet, "d1", "{\"sessionId\":5,\"currentCar\":{\"carModel\":\"Civic\"}}");
    fake_write(fleet, "d2", "{\"sessionId\":7}");
    detect("d1", "{\"carModel\":\"Civic\",\"carBrand\":null}");
    detect("d2", "{\"carModel\":\"Civic\"}"); /* comes with the same timer */
    settle();
    assert_int_equal(fake_writes(fleet), 1);
}

static void what_waits_is_taken_back_by_a_later_detection(void **state)
{
    set_session("d1", 5);
    detect("d1", "{\"carModel\":\"Civic\"}");
    settle();
    detect("d1", "{\"carModel\":\"Accord\",\"carYear\":2023}");
    detect("d1", "{\"carModel\":\"Civic\"}");
    settle();
    expect_field("d1", "currentCar", "{\"carModel\":\"Civic\",\"carYear\":2023}");
}

static void without_a_session_there_is_no_car(void **state)
{
    fake_write(fleet, "d1", "{\"qrCode\":\"x\"}");
    fake_write(fleet, "d2", "{\"sessionId\":7}");
    detect("d1", "{\"carModel\":\"Civic\"}");
    detect("d2", "{\"carModel\":\"Civic\"}"); /* comes with the same timer */
    settle();
    assert_int_equal(fake_writes(fleet), 1);
    assert_null(json_object_get(fleet_state_data(fleet, "d1", NULL), "currentCar"));
}

static void a_car_does_not_go_over_into_another_session(void **state)
{
    set_session("d1", 5);
    set_session("d2", 7);
    detect("d1", "{\"carModel\":\"Civic\"}");
    set_session("d1", 6);
    detect("d2", "{\"carModel\":\"Accord\"}"); /* comes with the same timer */
    settle();
    expect_field("d1", "currentCar", "null");
    expect_field("d2", "currentCar", "{\"carModel\":\"Accord\"}");
}

/* ---- The end --------------------------------------------------------------------------------- */

static void begin_three(struct end ends[3])
{
    set_session("d2", 5);
    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"a\"}", &ends[0]), BATON_OK);
    assert_int_equal(patch("d1", "{\"qrCode\":\"b\"}", &ends[1]), BATON_OK);
    ends[2] = (struct end){.code = 1};
    assert_int_equal(displays_set_session(displays, "d1",
                                          (struct session_id){.is_set = true, .id = 5}, on_end,
                                          &ends[2], NULL),
                     BATON_OK);
}

static void what_waits_at_the_end_is_cancelled(void **state)
{
    struct end ends[3];

    begin_three(ends);
    displays_close(displays);
    assert_int_equal(ends[1].code, BATON_ECANCELED);
    while (fake_finish(fleet, BATON_ECANCELED)) { /* as fleet_state_close() does */
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ends[i].code, BATON_ECANCELED);
        assert_int_equal(ends[i].count, 1);
    }
    open_displays();
}

static void what_is_being_written_at_the_end_ends_with_its_write(void **state)
{
    struct end ends[3];

    begin_three(ends);
    displays_close(displays);
    while (fake_finish(fleet, BATON_OK)) {
    }
    assert_int_equal(ends[0].code, BATON_OK);
    assert_int_equal(ends[1].code, BATON_ECANCELED);
    assert_int_equal(ends[2].code, BATON_ECANCELED); /* it had left d2, and is not at d1 */
    expect_field("d1", "qrCode", "\"a\"");
    expect_field("d2", "sessionId", "null");
    open_displays();
}

static void a_conflict_after_the_end_is_the_end(void **state)
{
    struct end end;

    fake_defer(fleet);
    assert_int_equal(patch("d1", "{\"qrCode\":\"a\"}", &end), BATON_OK);
    displays_close(displays);
    assert_true(fake_finish(fleet, BATON_ECONFLICT));
    assert_int_equal(end.code, BATON_ECANCELED);
    assert_false(fake_finish(fleet, BATON_OK));
    open_displays();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_patch_is_written_once),
        TEST(a_patch_that_changes_nothing_is_not_written),
        TEST(patches_that_come_during_a_write_are_written_together),
        TEST(a_write_after_another_processs_is_merged_again),
        TEST(changes_keep_their_order_after_a_conflict),
        TEST(a_write_is_given_up_after_so_many_others),
        TEST(a_write_that_fails_fails_all_of_its_changes_and_no_later_ones),
        TEST(a_wrong_patch_is_refused_at_once),
        TEST(what_cannot_be_merged_fails_alone),
        TEST(so_many_changes_wait_and_no_more),
        TEST(a_change_may_be_asked_for_when_another_ends),
        TEST(a_change_may_be_asked_for_when_another_is_refused),
        TEST(a_patch_goes_to_the_display_that_has_the_session),
        TEST(a_patch_of_a_session_that_ends_meanwhile_fails),
        TEST(a_session_that_another_display_has_moves),
        TEST(a_session_that_is_set_again_stays),
        TEST(a_move_that_fails_changes_nothing_more),
        TEST(a_session_that_two_displays_got_is_of_the_first_until_it_is_set_again),
        TEST(sessions_end_and_stages_change),
        TEST(what_is_there_at_the_beginning_is_no_event),
        TEST(the_data_of_a_display_goes_with_it),
        TEST(detections_of_a_session_are_merged_into_its_car_together),
        TEST(what_is_in_the_data_is_not_written_again),
        TEST(what_waits_is_taken_back_by_a_later_detection),
        TEST(without_a_session_there_is_no_car),
        TEST(a_car_does_not_go_over_into_another_session),
        TEST(what_waits_at_the_end_is_cancelled),
        TEST(what_is_being_written_at_the_end_ends_with_its_write),
        TEST(a_conflict_after_the_end_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
