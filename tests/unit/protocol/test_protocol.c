#include "cmocka_all.h"
#include "protocol/protocol.h"
#include "unit/protocol/examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct command *command, struct baton_error *error)
{
    return command_parse(text, strlen(text), sizeof(struct subscription), command, error);
}

static void every_command_of_the_specification_is_read(void **state)
{
    int commands = 0;

    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        struct command command = {0};
        struct baton_error error = {0};
        if (examples[i].is_from_worker) {
            continue;
        }
        if (parse(examples[i].text, &command, &error) != 0) {
            fail_msg("%s: %s", examples[i].section, error.message);
        }
        assert_int_not_equal(command.type, COMMAND_UNKNOWN);
        assert_int_equal(command.rejection_count, 0);
        command_fini(&command);
        commands++;
    }
    assert_int_equal(commands, 15);
}

static const struct example *example_of(const char *section)
{
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        if (strcmp(examples[i].section, section) == 0) {
            return &examples[i];
        }
    }
    fail_msg("no example %s", section);
    return NULL;
}

static void a_list_is_read_field_by_field(void **state)
{
    struct command command = {0};
    const struct subscription *first;

    assert_int_equal(parse(example_of("§7.1")->text, &command, NULL), 0);
    assert_int_equal(command.type, COMMAND_SET_SUBSCRIPTION_LIST);
    assert_int_equal(command.subscription_count, 2);
    first = command.subscriptions[0];
    assert_string_equal(first->identifier, "display-001;cam-001");
    assert_string_equal(first->rtsp_url, "rtsp://user:pass@host:port/stream1");
    assert_string_equal(first->snapshot_url, "http://go2rtc/snapshot/1");
    assert_int_equal(first->snapshot_interval_ms, 5000);
    assert_string_equal(first->model_url, "http://storage/models/us-lpr.mpta?token=fresh-token");
    assert_string_equal(first->model_name, "US-LPR-and-Vehicle-ID");
    assert_int_equal(first->model_id, 102);
    assert_int_equal(first->crop.given, 0xf);
    assert_int_equal(first->crop.at[CROP_X1], 100);
    assert_int_equal(first->crop.at[CROP_Y2], 400);
    command_fini(&command);

    assert_int_equal(parse(example_of("§9.2")->text, &command, NULL), 0);
    assert_null(command.subscriptions[0]->snapshot_url);
    assert_int_equal(command.subscriptions[0]->crop.given, 0);
    command_fini(&command);
}

#define SESSION(fields) "{\"type\":\"setSessionId\",\"payload\":{" fields "}}"
#define STAGE(fields)   "{\"type\":\"setProgressionStage\",\"payload\":{" fields "}}"
#define RESULT(fields)  "{\"type\":\"patchSessionResult\",\"payload\":{" fields "}}"

static void session_stage_and_result_are_read(void **state)
{
    struct command command = {0};

    assert_int_equal(parse(example_of("§7.4")->text, &command, NULL), 0);
    assert_string_equal(command.display, "display-001");
    assert_true(command.session.is_set);
    assert_int_equal(command.session.id, 12345);
    command_fini(&command);
    assert_int_equal(parse(example_of("§7.5")->text, &command, NULL), 0);
    assert_int_equal(command.stage, STAGE_CAR_FUELING);
    command_fini(&command);
    assert_int_equal(parse(example_of("§7.3")->text, &command, NULL), 0);
    assert_true(command.is_success);
    assert_string_equal(command.text, "Session updated successfully.");
    command_fini(&command);
}

static void a_patch_result_may_say_what_it_likes(void **state)
{
    struct command command = {0};
    char text[4 * PROTOCOL_TEXT_MAX];
    char said[2 * PROTOCOL_TEXT_MAX] = "";

    assert_int_equal(
        parse(RESULT("\"sessionId\":1,\"success\":false,\"message\":\"\""), &command, NULL), 0);
    assert_string_equal(command.text, "");
    command_fini(&command);
    assert_int_equal(parse(RESULT("\"sessionId\":1,\"success\":false,"
                                  "\"message\":\"no\\nsuch\\u001b[1msession\\u007f\\u009b1m\""),
                           &command, NULL),
                     0);
    assert_string_equal(command.text, "no such [1msession   1m");
    command_fini(&command);
    for (int i = 0; i < PROTOCOL_TEXT_MAX; i += 2) { /* behind the x the cut is within one */
        said[i] = '\xc3';
        said[i + 1] = '\xa9';
    }
    (void)snprintf(text, sizeof(text),
                   RESULT("\"sessionId\":1,\"success\":true,\"message\":\"x%s\""), said);
    assert_int_equal(parse(text, &command, NULL), 0);
    assert_int_equal(strlen(command.text), PROTOCOL_TEXT_MAX - 1);
    assert_memory_equal(command.text + 1, said, PROTOCOL_TEXT_MAX - 2);
    command_fini(&command);
}

static void null_clears_session_and_stage(void **state)
{
    struct command command = {0};

    assert_int_equal(parse("{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d\","
                           "\"sessionId\":null}}",
                           &command, NULL),
                     0);
    assert_false(command.session.is_set);
    command_fini(&command);
    assert_int_equal(parse("{\"type\":\"setProgressionStage\",\"payload\":{\"displayIdentifier\":"
                           "\"d\",\"progressionStage\":null}}",
                           &command, NULL),
                     0);
    assert_int_equal(command.stage, STAGE_NONE);
    command_fini(&command);
}

static const struct {
    const char *text;
    const char *says; /* in the error */
} bad_messages[] = {
    {"", "line 1"},
    {"{", "line 1"},
    {"[]", "must be an object"},
    {"{\"type\":\"requestState\"} x", "not valid JSON"},
    {"{\"type\":\"requestState\",\"type\":\"setSessionId\"}", "not valid JSON"},
    {"{\"type\":\"a\\u0000b\"}", "not valid JSON"},
    {"{\"type\":\"\xff\"}", "not valid JSON"},
    {"{\"type\":NaN}", "not valid JSON"},
    {"{}", "type is missing: must be a string"},
    {"{\"type\":7}", "type is an integer: must be a string"},
    {"{\"type\":null}", "type is null"},
    {"{\"type\":\"\"}", "type is 0 bytes long"},
    {"{\"type\":\"a\\nb\"}", "control characters"},
    {"{\"type\":\"a\\u009bb\"}", "control characters"},
    {"{\"type\":\"setSubscriptionList\"}", "subscriptions is missing: must be an array"},
    {"{\"type\":\"setSubscriptionList\",\"subscriptions\":null}", "subscriptions is null"},
    {"{\"type\":\"setSubscriptionList\",\"subscriptions\":{}}", "must be an array"},
    {"{\"type\":\"setSubscriptionList\",\"payload\":{\"subscriptions\":[]}}", "missing"},
    {"{\"type\":\"setSessionId\"}", "payload is missing: must be an object"},
    {"{\"type\":\"setSessionId\",\"payload\":[]}", "payload is an array"},
    {SESSION("\"sessionId\":1"), "payload.displayIdentifier is missing"},
    {SESSION("\"displayIdentifier\":\"d\""), "payload.sessionId is missing"},
    {SESSION("\"displayIdentifier\":\"d\",\"sessionId\":\"1\""), "payload.sessionId is a string"},
    {SESSION("\"displayIdentifier\":\"d\",\"sessionId\":1.5"), "payload.sessionId is a fraction"},
    {SESSION("\"displayIdentifier\":\"d\",\"sessionId\":-1"), "payload.sessionId is -1: must be 0"},
    {SESSION("\"displayIdentifier\":\"d\",\"sessionId\":9007199254740993"),
     "sessionId is 90071992"},
    {SESSION("\"displayIdentifier\":\"d\",\"sessionId\":99999999999999999999"), "not valid JSON"},
    {SESSION("\"displayIdentifier\":\"d;c\",\"sessionId\":1"), "without a semicolon"},
    {SESSION("\"displayIdentifier\":\"\",\"sessionId\":1"), "0 bytes long"},
    {STAGE("\"displayIdentifier\":\"d\""), "payload.progressionStage is missing"},
    {STAGE("\"displayIdentifier\":\"d\",\"progressionStage\":\"car_wash\""),
     "\"car_wash\": must be welcome, car_fueling"},
    {STAGE("\"displayIdentifier\":\"d\",\"progressionStage\":3"), "is an integer"},
    {RESULT("\"success\":true"), "payload.sessionId is missing"},
    {RESULT("\"sessionId\":1"), "payload.success is missing"},
    {RESULT("\"sessionId\":1,\"success\":\"yes\""), "payload.success is a string"},
    {RESULT("\"sessionId\":1,\"success\":true,\"message\":5"), "payload.message is an integer"},
};

static void a_bad_message_is_refused_with_the_path_of_its_fault(void **state)
{
    for (size_t i = 0; i < sizeof(bad_messages) / sizeof(bad_messages[0]); i++) {
        struct command command = {.type = COMMAND_UNKNOWN, .name = "untouched"};
        struct baton_error error = {0};
        int rc = parse(bad_messages[i].text, &command, &error);
        if (rc != BATON_EPROTO || strstr(error.message, bad_messages[i].says) == NULL) {
            fail_msg("%s: %d \"%s\", not \"%s\"", bad_messages[i].text, rc, error.message,
                     bad_messages[i].says);
        }
        assert_string_equal(command.name, "untouched");
    }
}

#define GOOD                                                                                       \
    "\"rtspUrl\":\"rtsp://h/1\",\"modelUrl\":\"http://m/1\",\"modelName\":\"M\",\"modelId\":1"

/* One element of a list each; %s of it is "" for the good ones. */
static const struct {
    const char *text;
    const char *says; /* NULL: accepted */
} elements[] = {
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD "}", NULL},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"colour\":[{}],\"cropX1\":null}", NULL},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropX1\":5}", NULL},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"snapshotUrl\":\"https://s/\"}", NULL},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"\",\"snapshotUrl\":\"http://s/\","
     "\"modelUrl\":\"http://m\",\"modelName\":\"M\",\"modelId\":1}",
     NULL},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"\"}", "subscriptions[1].rtspUrl is empty"},
    {"7", "subscriptions[1] is an integer: must be an object"},
    {"{" GOOD "}", "subscriptions[1].subscriptionIdentifier is missing"},
    {"{\"subscriptionIdentifier\":\"d\"," GOOD "}", "\"d\": must be \"displayIdentifier;camera"},
    {"{\"subscriptionIdentifier\":\";c\"," GOOD "}", "must be \"displayIdentifier;camera"},
    {"{\"subscriptionIdentifier\":\"d;\"," GOOD "}", "must be \"displayIdentifier;camera"},
    {"{\"subscriptionIdentifier\":\"d;c;e\"," GOOD "}", "must be \"displayIdentifier;camera"},
    {"{\"subscriptionIdentifier\":\"ok;1\"," GOOD "}", "stands in the list already"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"file:///etc/passwd\"}", "rtspUrl must beg"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://\"}", "a host must follow rtsp://"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp:///x\"}", "a host must follow"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://h/a b\"}", "without spaces"},
    {"{\"subscriptionIdentifier\":\"d;c\"}", "subscriptions[1].rtspUrl is missing"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"snapshotUrl\":\"ftp://s\"}",
     "snapshotUrl mus"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"snapshotInterval\":0}", "snapshotInterval is"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"snapshotInterval\":\"5\"}", "is a string"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropX1\":-1}", "cropX1 is -1"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropY2\":70000}", "cropY2 is 70000"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropX1\":1.5}", "cropX1 is a fraction"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropX1\":9,\"cropX2\":9}",
     "cropX2 is 9: must"},
    {"{\"subscriptionIdentifier\":\"d;c\"," GOOD ",\"cropY1\":9,\"cropY2\":3}",
     "cropY2 is 3: must"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://h\",\"modelUrl\":\"http://m\","
     "\"modelName\":\"M\"}",
     "modelId is missing"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://h\",\"modelUrl\":\"http://m\","
     "\"modelId\":1}",
     "modelName is missing"},
    {"{\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://h\",\"modelUrl\":\"file:///m\","
     "\"modelName\":\"M\",\"modelId\":1}",
     "modelUrl must begin"},
};

static void a_bad_subscription_is_told_apart_and_the_others_are_read(void **state)
{
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        struct command command = {0};
        char text[1024];
        (void)snprintf(text, sizeof(text),
                       "{\"type\":\"setSubscriptionList\",\"subscriptions\":["
                       "{\"subscriptionIdentifier\":\"ok;1\"," GOOD "},%s,"
                       "{\"subscriptionIdentifier\":\"ok;2\"," GOOD "}]}",
                       elements[i].text);
        assert_int_equal(parse(text, &command, NULL), 0);
        if (elements[i].says == NULL) {
            assert_int_equal(command.subscription_count, 3);
        } else {
            assert_int_equal(command.subscription_count, 2);
            assert_int_equal(command.rejection_count, 1);
            if (strstr(command.rejections[0].error.message, elements[i].says) == NULL) {
                fail_msg("%s: %s", elements[i].text, command.rejections[0].error.message);
            }
        }
        assert_string_equal(command.subscriptions[command.subscription_count - 1]->identifier,
                            "ok;2");
        command_fini(&command);
    }
}

static void a_name_is_one_that_a_path_can_tell(void **state)
{
    static const char *const good[] = {"a;b",     "a;x/y",   "a/b;c",      "a;x/.hidden", "a;..x",
                                       "a;x..",   "a;.../y", "a;/b",       "a/;b",        "a;b c",
                                       "a;p+q&r", "a;100%",  "a;\xc3\xa9", "a;b/image"};
    static const char *const bad[] = {"",         "a",          ";",    "a;",        ";b",
                                      "a;b;c",    "a;x//y",     "/a;b", "a;x/",      "a;.",
                                      "a;..",     "..;a",       ".;a",  "a;./x",     "a;x/.",
                                      "a;x/../y", "a;x\\..\\y", "a;\n", "a;\xc2\x9b"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (!identifier_is_valid(good[i])) {
            fail_msg("refused: %s", good[i]);
        }
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (identifier_is_valid(bad[i])) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

static void no_error_repeats_a_url(void **state)
{
    struct command command = {0};
    struct baton_error error = {0};

    assert_int_equal(parse("{\"type\":\"setSubscriptionList\",\"subscriptions\":[{"
                           "\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"http://u:canary@h\"},"
                           "{\"subscriptionIdentifier\":\"d;e\",\"rtspUrl\":"
                           "\"rtsp://u:canary@h/a b\"}]}",
                           &command, NULL),
                     0);
    assert_int_equal(command.rejection_count, 2);
    assert_null(strstr(command.rejections[0].error.message, "canary"));
    assert_null(strstr(command.rejections[1].error.message, "canary"));
    command_fini(&command);
    assert_int_equal(parse("{\"rtspUrl\":\"rtsp://u:canary\" x}", &command, &error), BATON_EPROTO);
    assert_null(strstr(error.message, "canary"));
}

static void unknown_types_and_fields_are_no_error(void **state)
{
    struct command command = {0};

    assert_int_equal(parse("{\"type\":\"danceNow\",\"payload\":3}", &command, NULL), 0);
    assert_int_equal(command.type, COMMAND_UNKNOWN);
    assert_string_equal(command.name, "danceNow");
    command_fini(&command);
    assert_int_equal(parse("{\"later\":[],\"type\":\"requestState\"}", &command, NULL), 0);
    assert_int_equal(command.type, COMMAND_REQUEST_STATE);
    command_fini(&command);
}

static void depth_size_and_length_are_bounded(void **state)
{
    struct command command = {0};
    struct baton_error error = {0};
    char *deep = malloc(100001);
    char *large = calloc(1, PROTOCOL_MESSAGE_MAX + 2);

    memset(deep, '[', 100000);
    deep[100000] = '\0';
    assert_int_equal(parse(deep, &command, &error), BATON_EPROTO);
    assert_non_null(strstr(error.message, "nested more than 16"));
    /* Brackets in a string are no depth. */
    assert_int_equal(
        parse("{\"type\":\"requestState\",\"x\":\"[[[[[[[[[[[[[[[[[[[[\\\"[[\"}", &command, NULL),
        0);
    command_fini(&command);
    memset(large, ' ', PROTOCOL_MESSAGE_MAX + 1);
    assert_int_equal(parse(large, &command, &error), BATON_ETOOBIG);
    free(deep);
    free(large);
}

static void a_list_longer_than_the_bound_is_refused_whole(void **state)
{
    struct command command = {0};
    struct baton_error error = {0};
    char *text = malloc(64 + 3 * PROTOCOL_SUBSCRIPTIONS_MAX + 3);
    char *at = text;

    at += sprintf(at, "{\"type\":\"setSubscriptionList\",\"subscriptions\":[0");
    for (int i = 0; i < PROTOCOL_SUBSCRIPTIONS_MAX; i++) {
        at += sprintf(at, ",0");
    }
    (void)sprintf(at, "]}");
    assert_int_equal(parse(text, &command, &error), BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "1025 subscriptions: at most 1024"));
    free(text);
}

static void a_display_is_a_whole_prefix(void **state)
{
    assert_true(identifier_has_display("display-001;cam-001", "display-001"));
    assert_false(identifier_has_display("display-0011;cam-001", "display-001"));
    assert_false(identifier_has_display("display-00;cam-001", "display-001"));
    assert_false(identifier_has_display("display-001", "display-001"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_of_the_specification_is_read),
        cmocka_unit_test(a_list_is_read_field_by_field),
        cmocka_unit_test(session_stage_and_result_are_read),
        cmocka_unit_test(a_patch_result_may_say_what_it_likes),
        cmocka_unit_test(null_clears_session_and_stage),
        cmocka_unit_test(a_bad_message_is_refused_with_the_path_of_its_fault),
        cmocka_unit_test(a_bad_subscription_is_told_apart_and_the_others_are_read),
        cmocka_unit_test(a_name_is_one_that_a_path_can_tell),
        cmocka_unit_test(no_error_repeats_a_url),
        cmocka_unit_test(unknown_types_and_fields_are_no_error),
        cmocka_unit_test(depth_size_and_length_are_bounded),
        cmocka_unit_test(a_list_longer_than_the_bound_is_refused_whole),
        cmocka_unit_test(a_display_is_a_whole_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
