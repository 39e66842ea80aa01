#include "cmocka_all.h"
#include "protocol/protocol.h"
#include "unit/protocol/examples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *example_text(const char *section)
{
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        if (strcmp(examples[i].section, section) == 0 && examples[i].is_from_worker) {
            return examples[i].text;
        }
    }
    fail_msg("no example %s", section);
    return NULL;
}

static void assert_text(char *text, const char *expected)
{
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void a_state_report_is_the_specifications_byte_for_byte(void **state)
{
    struct usage usage = {75.5, 40.2, 60.0, 25.1};
    struct usage first = {70.2, 38.1, 55.0, 20.0};
    struct subscription *subscription = &(struct subscription){
        .identifier = (char *)"display-001;cam-001",
        .model_name = (char *)"General Object Detection",
        .model_id = 101,
        .crop = {.given = 0xf, .at = {100, 200, 300, 400}},
        .is_online = true,
    };

    assert_text(format_state_report(&usage, &subscription, 1), example_text("§6.1"));
    assert_text(format_state_report(&first, NULL, 0), example_text("§9.1"));
}

static void a_connection_without_crop_names_none(void **state)
{
    struct usage usage = {72.5, 39.0, 57.0, 21.0};
    struct subscription *subscription =
        &(struct subscription){.identifier = (char *)"display-001;entry-cam-01",
                               .model_name = (char *)"Vehicle Identification",
                               .model_id = 201,
                               .is_online = true};

    assert_text(format_state_report(&usage, &subscription, 1), example_text("§9.3"));
}

static void percentages_are_rounded_and_bounded(void **state)
{
    struct usage usage = {33.3333, 250, -4, NAN};

    assert_text(format_state_report(&usage, NULL, 0),
                "{\"type\":\"stateReport\",\"cpuUsage\":33.3,\"memoryUsage\":100.0,"
                "\"gpuUsage\":0.0,\"gpuMemoryUsage\":0.0,\"cameraConnections\":[]}");
}

static struct detection detection_of(const char *attributes)
{
    return (struct detection){.identifier = strdup("display-001;cam-001"),
                              .model_name = strdup("US-LPR-and-Vehicle-ID"),
                              .model_id = 101,
                              .at_unix_ms = 1752496496789,
                              .attributes = json_loads(attributes, 0, NULL)};
}

static void a_detection_is_the_specifications_byte_for_byte(void **state)
{
    struct detection detection = detection_of(
        "{\"carModel\":\"Civic\",\"carBrand\":\"Honda\",\"carYear\":2023,\"bodyType\":\"Sedan\","
        "\"licensePlateText\":\"ABCD1234\",\"licensePlateConfidence\":0.95}");

    assert_int_equal(detection_check(&detection, NULL), 0);
    assert_text(format_image_detection(&detection), example_text("§6.2"));
    detection_fini(&detection);
}

static void a_detection_carries_its_session(void **state)
{
    struct detection detection = {
        .identifier = strdup("display-001;entry-cam-01"),
        .model_name = strdup("Vehicle Identification"),
        .model_id = 201,
        .session = {true, 12345},
        .at_unix_ms = 1752573600000,
        .attributes = json_loads("{\"carBrand\":\"Honda\",\"carModel\":\"CR-V\",\"bodyType\":"
                                 "\"SUV\",\"licensePlateText\":\"GEMINI-AI\","
                                 "\"licensePlateConfidence\":0.98}",
                                 0, NULL),
    };

    assert_text(format_image_detection(&detection), example_text("§9.6"));
    detection_fini(&detection);
}

static void a_patch_is_the_specifications_and_holds_only_what_a_session_knows(void **state)
{
    struct detection detection =
        detection_of("{\"licensePlateText\":\"ABCD1234\",\"carBrand\":\"Honda\",\"score\":1,"
                     "\"carModel\":\"Civic\",\"licensePlateConfidence\":0.95}");
    struct detection other = detection_of("{\"people\":4}");
    json_t *patch = patch_of_detection(&detection);

    assert_text(format_patch_session(12345, patch), example_text("§6.3"));
    assert_null(patch_of_detection(&other));
    json_decref(patch);
    detection_fini(&detection);
    detection_fini(&other);
}

static void a_patch_holds_nothing_of_another_type(void **state)
{
    struct detection detection = {.attributes =
                                      json_pack("{s:s, s:i, s:i, s:n, s:s, s:b}", "carBrand",
                                                "Honda", "carModel", 5, "carYear", 2023, "bodyType",
                                                "licensePlateText", "AB1", "licensePlateType", 1)};
    json_t *patch = patch_of_detection(&detection);
    char *text = json_dumps(patch, JSON_COMPACT);

    assert_string_equal(text, "{\"currentCar\":{\"carBrand\":\"Honda\",\"carYear\":2023,"
                              "\"bodyType\":null,\"licensePlateText\":\"AB1\"}}");
    free(text);
    json_decref(patch);
    assert_int_equal(json_object_set_new(detection.attributes, "carYear", json_string("2023")), 0);
    patch = patch_of_detection(&detection);
    assert_null(json_object_get(json_object_get(patch, "currentCar"), "carYear"));
    json_decref(patch);
    json_decref(detection.attributes);
}

static void a_detection_must_be_flat(void **state)
{
    struct detection nested = detection_of("{\"box\":[1,2]}");
    struct baton_error error = {0};

    assert_int_equal(detection_check(&nested, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "detection.box is an array: a detection is flat"));
    detection_fini(&nested);
}

static void timestamps_are_utc_with_milliseconds(void **state)
{
    static const struct {
        int64_t at;
        const char *text;
    } cases[] = {{0, "1970-01-01T00:00:00.000Z"},
                 {-1, "1969-12-31T23:59:59.999Z"},
                 {1709210096007, "2024-02-29T12:34:56.007Z"}};
    char text[PROTOCOL_TIMESTAMP_BYTES];

    format_timestamp(INT64_MAX, text); /* no year that a struct tm can tell is too much */

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        format_timestamp(cases[i].at, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void every_message_of_a_worker_is_read_again(void **state)
{
    int messages = 0;

    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        json_t *message = NULL;
        struct baton_error error = {0};
        const char *text = examples[i].text;
        int rc = worker_message_parse(text, strlen(text), &message, &error);
        if (!examples[i].is_from_worker) {
            assert_int_equal(rc, BATON_EPROTO);
            continue;
        }
        if (rc != 0) {
            fail_msg("%s: %s", examples[i].section, error.message);
        }
        json_decref(message);
        messages++;
    }
    assert_int_equal(messages, EXAMPLE_COUNT - 15);
}

static void a_workers_bad_message_is_refused_with_its_path(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"{\"type\":\"stateReport\"}", "cpuUsage is missing: must be a number"},
        {"{\"type\":\"stateReport\",\"cpuUsage\":-1}", "cpuUsage is -1: must be 0 to 1e+06"},
        {"{\"type\":\"stateReport\",\"cpuUsage\":1,\"memoryUsage\":1,\"gpuUsage\":\"0\"}",
         "gpuUsage is a string: must be a number"},
        {"{\"type\":\"stateReport\",\"cpuUsage\":1,\"memoryUsage\":1,\"gpuUsage\":0,"
         "\"gpuMemoryUsage\":0,\"cameraConnections\":[{\"subscriptionIdentifier\":\"d;c\","
         "\"modelId\":1,\"modelName\":\"M\",\"online\":1}]}",
         "cameraConnections[0].online is an integer: must be a boolean"},
        {"{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"d;c\",\"timestamp\":\"t\","
         "\"data\":{\"modelId\":1,\"modelName\":\"M\",\"detection\":{\"a\":{}}}}",
         "data.detection.a is an object"},
        {"{\"type\":\"patchSession\",\"data\":{}}", "sessionId is missing"},
        {"{\"type\":\"other\"}", "a worker sends stateReport"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *message = NULL;
        struct baton_error error = {0};
        assert_true(worker_message_parse(cases[i].text, strlen(cases[i].text), &message, &error) <
                    0);
        if (strstr(error.message, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].text, error.message);
        }
    }
}

static void a_report_is_read_without_a_gpu_and_in_other_units(void **state)
{
    static const char text[] = "{\"type\":\"stateReport\",\"cpuUsage\":312.5,\"memoryUsage\":7,"
                               "\"gpuUsage\":null,\"cameraConnections\":[]}";
    json_t *message = NULL;
    struct usage usage;

    assert_int_equal(worker_message_parse(text, sizeof(text) - 1, &message, NULL), 0);
    usage = usage_of_report(message);
    assert_true(usage.cpu == 100 && usage.memory == 7 && usage.gpu == 0 && usage.gpu_memory == 0);
    json_decref(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_report_is_the_specifications_byte_for_byte),
        cmocka_unit_test(a_connection_without_crop_names_none),
        cmocka_unit_test(percentages_are_rounded_and_bounded),
        cmocka_unit_test(a_detection_is_the_specifications_byte_for_byte),
        cmocka_unit_test(a_detection_carries_its_session),
        cmocka_unit_test(a_patch_is_the_specifications_and_holds_only_what_a_session_knows),
        cmocka_unit_test(a_patch_holds_nothing_of_another_type),
        cmocka_unit_test(a_detection_must_be_flat),
        cmocka_unit_test(timestamps_are_utc_with_milliseconds),
        cmocka_unit_test(every_message_of_a_worker_is_read_again),
        cmocka_unit_test(a_workers_bad_message_is_refused_with_its_path),
        cmocka_unit_test(a_report_is_read_without_a_gpu_and_in_other_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
