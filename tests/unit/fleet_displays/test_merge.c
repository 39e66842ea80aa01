#include "cmocka_all.h"
#include "fleet/displays/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *json(const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &why);

    if (value == NULL) {
        fail_msg("%s: %s", text, why.text);
    }
    return value;
}

static void expect_equal(const json_t *found, const char *text)
{
    json_t *expected = json(text);

    if (!json_equal(found, expected)) {
        fail_msg("%s, not %s", json_dumps(found, JSON_COMPACT), text);
    }
    json_decref(expected);
}

/* The fields that nobody set are null. */
static void expect_data(const json_t *data, const char *text)
{
    json_t *expected = json("{\"progressionStage\":null,\"qrCode\":null,\"adsPlayback\":null,"
                            "\"currentCar\":null,\"fuelPump\":null,\"weatherData\":null,"
                            "\"sessionId\":null}");
    json_t *set = json(text);
    char *all;

    assert_int_equal(json_object_update(expected, set), 0);
    all = json_dumps(expected, JSON_COMPACT);
    expect_equal(data, all);
    free(all);
    json_decref(set);
    json_decref(expected);
}

static json_t *merged(const char *data, const char *patch)
{
    json_t *before = data != NULL ? json(data) : NULL;
    json_t *change = json(patch), *before_copy = json_deep_copy(before), *merged;
    struct baton_error error;

    if (display_merge(&merged, before, change, &error) != BATON_OK) {
        fail_msg("%s: %s", patch, error.message);
    }
    assert_true(before == NULL || json_equal(before, before_copy));
    json_decref(before);
    json_decref(before_copy);
    json_decref(change);
    return merged;
}

static void expect_refused(const char *data, const char *patch, int code, const char *reason)
{
    json_t *before = data != NULL ? json(data) : NULL;
    json_t *change = json(patch), *ret = NULL;
    struct baton_error error;

    assert_int_equal(display_merge(&ret, before, change, &error), code);
    assert_null(ret);
    if (strstr(error.message, reason) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", error.message, reason);
    }
    json_decref(before);
    json_decref(change);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static void the_patch_of_the_specification_is_merged(void **state)
{
    json_t *data = merged(NULL, "{\"currentCar\":{\"carModel\":\"Civic\",\"carBrand\":\"Honda\","
                                "\"licensePlateText\":\"ABCD1234\"}}");

    expect_data(data, "{\"currentCar\":{\"carModel\":\"Civic\",\"carBrand\":\"Honda\","
                      "\"licensePlateText\":\"ABCD1234\"}}");
    json_decref(data);
}

static void nested_objects_are_merged(void **state)
{
    json_t *data = merged("{\"currentCar\":{\"carModel\":\"Civic\",\"carYear\":2020},"
                          "\"fuelPump\":{\"nozzle\":{\"a\":1,\"b\":2}}}",
                          "{\"currentCar\":{\"carYear\":2023},"
                          "\"fuelPump\":{\"nozzle\":{\"b\":3,\"c\":{}}}}");

    expect_data(data, "{\"currentCar\":{\"carModel\":\"Civic\",\"carYear\":2023},"
                      "\"fuelPump\":{\"nozzle\":{\"a\":1,\"b\":3,\"c\":{}}}}");
    json_decref(data);
}

static void arrays_and_values_are_replaced(void **state)
{
    json_t *data =
        merged("{\"fuelPump\":{\"grades\":[1,2,3],\"nozzle\":{\"a\":1}},\"qrCode\":\"x\"}",
               "{\"fuelPump\":{\"grades\":[4],\"nozzle\":7},\"qrCode\":\"y\"}");

    expect_data(data, "{\"fuelPump\":{\"grades\":[4],\"nozzle\":7},\"qrCode\":\"y\"}");
    json_decref(data);
}

static void null_sets_null(void **state)
{
    json_t *data = merged("{\"progressionStage\":\"welcome\",\"sessionId\":5,\"qrCode\":\"x\","
                          "\"currentCar\":{\"carModel\":\"Civic\",\"bodyType\":\"Sedan\"},"
                          "\"weatherData\":{\"now\":{\"t\":1}},\"adsPlayback\":"
                          "{\"playlistSlotOrder\":1,\"adsId\":2,\"adsUrl\":\"u\"}}",
                          "{\"progressionStage\":null,\"sessionId\":null,\"qrCode\":null,"
                          "\"currentCar\":{\"carModel\":null},\"weatherData\":{\"now\":null},"
                          "\"adsPlayback\":null}");

    expect_data(data, "{\"currentCar\":{\"carModel\":null,\"bodyType\":\"Sedan\"},"
                      "\"weatherData\":{\"now\":null}}");
    json_decref(data);
}

static void an_empty_patch_changes_nothing(void **state)
{
    json_t *data = merged("{\"sessionId\":5}", "{}");

    expect_data(data, "{\"sessionId\":5}");
    json_decref(data);
}

static void the_fields_of_a_new_adsplayback_are_completed(void **state)
{
    json_t *data = merged(NULL, "{\"adsPlayback\":{\"playlistSlotOrder\":3}}");

    expect_data(data, "{\"adsPlayback\":{\"playlistSlotOrder\":3,\"adsId\":null,\"adsUrl\":null}}");
    json_decref(data);
}

static void a_merge_shares_nothing_with_its_patch(void **state)
{
    json_t *patch = json("{\"fuelPump\":{\"a\":{}}}"), *data;

    assert_int_equal(display_merge(&data, NULL, patch, NULL), BATON_OK);
    (void)json_object_set_new(json_object_get(json_object_get(patch, "fuelPump"), "a"), "b",
                              json_true());
    expect_data(data, "{\"fuelPump\":{\"a\":{}}}");
    json_decref(patch);
    json_decref(data);
}

static void fields_of_a_newer_version_in_the_data_stay(void **state)
{
    json_t *data = merged("{\"loyalty\":{\"points\":3}}", "{\"qrCode\":\"x\"}");

    expect_data(data, "{\"loyalty\":{\"points\":3},\"qrCode\":\"x\"}");
    json_decref(data);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void a_wrong_patch_is_refused_with_its_path_and_what_is_allowed(void **state)
{
    static const struct {
        const char *patch, *reason;
    } cases[] = {
        {"[]", "the patch is an array: must be an object"},
        {"{\"colour\":1}",
         "colour is no field that a display has: it has progressionStage, qrCode"},
        {"{\"currentCar\":{\"colour\":\"red\"}}",
         "currentCar.colour is no field that a display has: it has carModel, carBrand"},
        {"{\"progressionStage\":\"parked\"}",
         "progressionStage is \"parked\": must be welcome, car_fueling"},
        {"{\"progressionStage\":1}", "progressionStage is an integer: must be welcome"},
        {"{\"qrCode\":1}", "qrCode is an integer: must be a string or null"},
        {"{\"sessionId\":\"5\"}", "sessionId is a string: must be an integer"},
        {"{\"sessionId\":-1}", "sessionId is -1: must be an integer of 0 to 2^53, or null"},
        {"{\"sessionId\":9007199254740993}", "sessionId is 9007199254740993: must be"},
        {"{\"sessionId\":1.5}", "sessionId is a fraction: must be an integer"},
        {"{\"currentCar\":[]}", "currentCar is an array: must be an object or null"},
        {"{\"currentCar\":{\"carYear\":\"2023\"}}",
         "currentCar.carYear is a string: must be a number or null"},
        {"{\"currentCar\":{\"carModel\":{}}}",
         "currentCar.carModel is an object: must be a string"},
        {"{\"adsPlayback\":{\"playlistSlotOrder\":null}}",
         "adsPlayback.playlistSlotOrder is null: must be a number"},
        {"{\"adsPlayback\":{\"adsId\":5}}", "adsPlayback.playlistSlotOrder is missing"},
        {"{\"fuelPump\":7}", "fuelPump is an integer: must be an object or null"},
        {"{\"weatherData\":\"rain\"}", "weatherData is a string: must be an object or null"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_refused(NULL, cases[i].patch, BATON_EINVAL, cases[i].reason);
    }
}

/* A patch of so many levels, itself included. */
static char *nested(int levels)
{
    json_t *value = json_object();
    char *text;

    for (int i = 1; i < levels; i++) {
        value = json_pack("{s:o}", i + 1 < levels ? "a" : "fuelPump", value);
    }
    text = json_dumps(value, 0);
    assert_non_null(text);
    json_decref(value);
    return text;
}

static void a_patch_that_is_too_deep_is_refused(void **state)
{
    char *deep = nested(DISPLAY_DEPTH_MAX), *too_deep = nested(DISPLAY_DEPTH_MAX + 1);

    json_decref(merged(NULL, deep));
    expect_refused(NULL, too_deep, BATON_ETOOBIG, "fuelPump is nested too deep: a display's data");
    expect_refused(NULL, "{\"fuelPump\":{\"a\":[[[[[[[]]]]]]]}}", BATON_ETOOBIG,
                   "at most 8 levels");
    free(deep);
    free(too_deep);
}

static void data_that_grows_too_large_is_refused(void **state)
{
    char *text = calloc(1, DISPLAY_BYTES_MAX), *patch = calloc(1, DISPLAY_BYTES_MAX);

    assert_true(text != NULL && patch != NULL);
    memset(text, 'x', DISPLAY_BYTES_MAX / 2);
    (void)snprintf(patch, DISPLAY_BYTES_MAX, "{\"fuelPump\":{\"a\":\"%s\"}}", text);
    json_decref(merged(NULL, patch));
    (void)snprintf(text, DISPLAY_BYTES_MAX, "%s", patch);
    memcpy(strchr(patch, 'a'), "b", 1); /* beside it, not in its place */
    expect_refused(text, patch, BATON_ETOOBIG, "must be at most 65536");
    free(text);
    free(patch);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void session_and_stage_are_read_from_data(void **state)
{
    json_t *data = json("{\"sessionId\":12345,\"progressionStage\":\"car_fueling\"}");
    json_t *foreign = json("{\"sessionId\":\"5\",\"progressionStage\":\"parked\"}");

    assert_true(display_session_of(data).is_set);
    assert_int_equal(display_session_of(data).id, 12345);
    assert_int_equal(display_stage_of(data), STAGE_CAR_FUELING);
    assert_false(display_session_of(foreign).is_set);
    assert_int_equal(display_stage_of(foreign), STAGE_NONE);
    assert_false(display_session_of(NULL).is_set);
    assert_int_equal(display_stage_of(NULL), STAGE_NONE);
    json_decref(data);
    json_decref(foreign);
}

static void the_current_car_takes_from_a_detection_what_is_new_and_right(void **state)
{
    json_t *data = json("{\"currentCar\":{\"carModel\":\"Civic\",\"carYear\":2020}}");
    json_t *seen = json("{\"carModel\":\"Civic\",\"carBrand\":\"Honda\",\"carYear\":2023,"
                        "\"bodyType\":null,\"licensePlateText\":7,\"licensePlateConfidence\":0.9}");
    json_t *patch = display_car_patch(data, seen), *same;

    expect_equal(patch, "{\"currentCar\":{\"carBrand\":\"Honda\",\"carYear\":2023}}");
    assert_int_equal(display_merge(&same, data, patch, NULL), BATON_OK);
    assert_null(display_car_patch(same, seen));
    json_decref(same);
    json_decref(patch);
    patch = display_car_patch(NULL, seen);
    assert_int_equal(json_object_size(json_object_get(patch, "currentCar")), 3);
    json_decref(patch);
    json_decref(seen);
    json_decref(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_patch_of_the_specification_is_merged),
        cmocka_unit_test(nested_objects_are_merged),
        cmocka_unit_test(arrays_and_values_are_replaced),
        cmocka_unit_test(null_sets_null),
        cmocka_unit_test(an_empty_patch_changes_nothing),
        cmocka_unit_test(the_fields_of_a_new_adsplayback_are_completed),
        cmocka_unit_test(a_merge_shares_nothing_with_its_patch),
        cmocka_unit_test(fields_of_a_newer_version_in_the_data_stay),
        cmocka_unit_test(a_wrong_patch_is_refused_with_its_path_and_what_is_allowed),
        cmocka_unit_test(a_patch_that_is_too_deep_is_refused),
        cmocka_unit_test(data_that_grows_too_large_is_refused),
        cmocka_unit_test(session_and_stage_are_read_from_data),
        cmocka_unit_test(the_current_car_takes_from_a_detection_what_is_new_and_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
