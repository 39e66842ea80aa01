/* The backend's messages, written: the specification's own, in both directions, and ours. */
#include "cmocka_all.h"
#include "protocol/protocol.h"
#include "unit/protocol/examples.h"

#include <stdlib.h>
#include <string.h>

static void read_command(const char *text, struct command *ret)
{
    struct baton_error error = {0};

    if (command_parse(text, strlen(text), sizeof(struct subscription), ret, &error) != 0) {
        fail_msg("%s: %s", text, error.message);
    }
}

/* §9 shows the fields of a subscription in another order than §7. */
static void assert_same(const char *section, const char *text, const char *expected)
{
    json_t *a = json_loads(text, 0, NULL);
    json_t *b = json_loads(expected, 0, NULL);

    if (!json_equal(a, b) || (section[2] == '7' && strcmp(text, expected) != 0)) {
        fail_msg("%s: %s, not %s", section, text, expected);
    }
    json_decref(a);
    json_decref(b);
}

static void every_command_of_the_specification_is_written_as_it_shows_it(void **state)
{
    int commands = 0;

    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        struct command command = {0};
        char *text;

        if (examples[i].is_from_worker) {
            continue;
        }
        read_command(examples[i].text, &command);
        text = format_command(&command);
        assert_non_null(text);
        assert_same(examples[i].section, text, examples[i].text);
        free(text);
        command_fini(&command);
        commands++;
    }
    assert_int_equal(commands, 15);
}

static void an_epoch_is_read_again_and_without_one_no_field_is_written(void **state)
{
    struct command command = {.type = COMMAND_SET_SUBSCRIPTION_LIST, .epoch = 1764111600000000};
    struct command again = {0};
    char *text = format_command(&command);

    assert_string_equal(text, "{\"type\":\"setSubscriptionList\",\"epoch\":1764111600000000,"
                              "\"subscriptions\":[]}");
    read_command(text, &again);
    assert_true(again.epoch == command.epoch);
    command_fini(&again);
    free(text);

    read_command("{\"type\":\"setSubscriptionList\",\"subscriptions\":[]}", &again);
    assert_true(again.epoch == 0);
    command_fini(&again);
}

static void an_epoch_that_is_none_is_refused(void **state)
{
    static const char *const epochs[] = {"0", "-1", "1.5", "\"7\"", "9007199254740993"};

    for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++) {
        struct command command = {0};
        struct baton_error error = {0};
        char text[128];

        (void)snprintf(text, sizeof(text),
                       "{\"type\":\"setSubscriptionList\",\"epoch\":%s,\"subscriptions\":[]}",
                       epochs[i]);
        assert_int_equal(
            command_parse(text, strlen(text), sizeof(struct subscription), &command, &error),
            BATON_EPROTO);
        assert_non_null(strstr(error.message, "epoch is"));
    }
}

static void a_message_for_people_is_escaped(void **state)
{
    struct command command = {.type = COMMAND_PATCH_SESSION_RESULT,
                              .session = {true, 7},
                              .text = "no \"field\" colour\\"};
    char *text = format_command(&command);

    assert_string_equal(text, "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":7,"
                              "\"success\":false,\"message\":\"no \\\"field\\\" colour\\\\\"}}");
    free(text);
}

static long allocations_left = -1; /* then one fails; -1: none does */

static void *allocate(size_t bytes)
{
    return allocations_left >= 0 && allocations_left-- == 0 ? NULL : malloc(bytes);
}

/* A list without its epoch or a camera's snapshots would be another one. What libjansson itself
 * writes when memory is short is no JSON. */
static void a_list_for_which_memory_is_short_is_whole_or_is_none(void **state)
{
    struct command command, again;
    char *whole;
    bool has_failed = true;

    read_command("{\"type\":\"setSubscriptionList\",\"epoch\":3,\"subscriptions\":[{"
                 "\"subscriptionIdentifier\":\"d;c\",\"rtspUrl\":\"rtsp://h/1\","
                 "\"snapshotUrl\":\"http://h/s\",\"snapshotInterval\":5,\"modelUrl\":"
                 "\"http://h/m\",\"modelName\":\"m\",\"modelId\":1,\"cropX1\":4}]}",
                 &command);
    whole = format_command(&command);
    assert_non_null(whole);
    json_set_alloc_funcs(allocate, free);
    for (long before = 0; has_failed; before++) {
        struct baton_error error;
        char *text;
        allocations_left = before;
        text = format_command(&command);
        has_failed = allocations_left < 0;
        allocations_left = -1;
        if (text != NULL && strcmp(text, whole) != 0 &&
            command_parse(text, strlen(text), sizeof(struct subscription), &again, &error) == 0) {
            fail_msg("after %ld: %s", before, text);
        }
        free(text);
    }
    json_set_alloc_funcs(malloc, free);
    free(whole);
    command_fini(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_of_the_specification_is_written_as_it_shows_it),
        cmocka_unit_test(an_epoch_is_read_again_and_without_one_no_field_is_written),
        cmocka_unit_test(an_epoch_that_is_none_is_refused),
        cmocka_unit_test(a_message_for_people_is_escaped),
        cmocka_unit_test(a_list_for_which_memory_is_short_is_whole_or_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
