/* What a delivery to an outlet is made of: its signature, its queue and its events. */
#include "cmocka_all.h"
#include "fleet/outlets/event_names.h"
#include "fleet/outlets/queue.h"
#include "fleet/outlets/signature.h"

#include <stdio.h>
#include <string.h>

/* The expected value is Python's: hmac.new(secret, b'1700000000.' + body, 'sha256'). */
static void a_signature_is_that_of_the_timestamp_and_the_body(void **state)
{
    static const char body[] = "{\"event\":\"camera-offline\"}";
    char signature[SIGNATURE_ROOM];

    assert_true(
        signature_of(signature, "It-is-a-Secret-to-Everybody", 1700000000, body, strlen(body)));
    assert_string_equal(signature,
                        "sha256=22fdedd441ce8129cc90eaaa6c025ae78073ee4dc586259f87bccad7ee1ac88a");
}

static struct message *numbered(int number)
{
    char text[16];
    int bytes = snprintf(text, sizeof(text), "%d", number);
    struct message *message = message_new("detection", text, (size_t)bytes);

    assert_non_null(message);
    return message;
}

static void expect_next(struct queue *queue, const char *body)
{
    struct message *message = queue_take(queue);

    assert_non_null(message);
    assert_string_equal(message->body, body);
    message_unref(message);
}

static void a_full_queue_drops_the_oldest(void **state)
{
    static struct queue queue;

    for (int i = 0; i < QUEUE_MAX + 2; i++) {
        struct message *message = numbered(i);

        assert_int_equal(queue_put(&queue, message), i < QUEUE_MAX);
        message_unref(message);
    }
    assert_int_equal(queue.count, QUEUE_MAX);
    expect_next(&queue, "2");
    expect_next(&queue, "3");
    queue_clear(&queue);
    assert_null(queue_take(&queue));
}

static void a_message_lives_as_long_as_a_queue_has_it(void **state)
{
    static struct queue first, second;
    struct message *message = numbered(7);

    (void)queue_put(&first, message);
    (void)queue_put(&second, message);
    message_unref(message);
    queue_clear(&first);
    expect_next(&second, "7");
}

static void the_usual_events_have_no_detections(void **state)
{
    event_names names = 0;
    struct baton_error error;

    assert_int_equal(event_names_parse(&names, EVENT_NAMES_USUAL, &error), BATON_OK);
    assert_true(event_names_have(names, "camera-offline"));
    assert_true(event_names_have(names, "not-placed"));
    assert_false(event_names_have(names, "detection"));
    assert_false(event_names_have(names, "no-such-event"));
    assert_int_equal(event_names_parse(&names, "detection", &error), BATON_OK);
    assert_true(event_names_have(names, "detection"));
    assert_false(event_names_have(names, "camera-offline"));
}

static void an_unknown_event_is_named_with_those_that_there_are(void **state)
{
    event_names names = 4711;
    struct baton_error error;

    assert_int_equal(event_names_parse(&names, "worker-online,camera-off", &error), BATON_EINVAL);
    assert_int_equal(names, 4711);
    assert_non_null(strstr(error.message, "'camera-off' is no event"));
    assert_non_null(strstr(error.message, "camera-offline"));
    assert_non_null(strstr(error.message, "worker-released"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_that_of_the_timestamp_and_the_body),
        cmocka_unit_test(a_full_queue_drops_the_oldest),
        cmocka_unit_test(a_message_lives_as_long_as_a_queue_has_it),
        cmocka_unit_test(the_usual_events_have_no_detections),
        cmocka_unit_test(an_unknown_event_is_named_with_those_that_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
