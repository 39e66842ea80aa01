#include "cmocka_all.h"
#include "detector/displays.h"
#include "detector/outbox.h"
#include "detector/worker.h"
#include "unit/protocol/examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes down all that the worker says: "1< …" a message to backend 1, "1x code" a closing,
 * "! event …" an event. */
struct record {
    char text[1 << 16];
    bool is_deaf; /* the backend takes nothing */
    int refusals; /* so many times it takes nothing */
    int receipts; /* so many that were asked for: the position of the latest */
};

static void note(struct record *record, const char *format, ...)
{
    size_t used = strlen(record->text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(record->text + used, sizeof(record->text) - used, format, arguments);
    va_end(arguments);
}

static bool on_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                    uint64_t *ret_end)
{
    struct record *record = userdata;
    assert_int_equal(strlen(text), bytes);
    if (record->is_deaf || (record->refusals > 0 && record->refusals-- > 0)) {
        return false;
    }
    if (ret_end != NULL) {
        *ret_end = (uint64_t)++record->receipts;
    }
    note(record, "%d< %s\n", (int)backend, text);
    return true;
}

static void on_close(void *userdata, uint64_t backend, int code, const char *reason)
{
    assert_non_null(reason);
    note(userdata, "%dx %d\n", (int)backend, code);
}

static void on_event(void *userdata, const struct worker_event *event)
{
    struct record *record = userdata;
    note(record, "! %s", worker_event_name(event->type));
    if (event->identifier != NULL) {
        note(record, " %s", event->identifier);
    }
    if (event->type == WORKER_SUBSCRIPTION_UPDATED) {
        note(record, " %u", event->changes);
    }
    if (event->session.is_set) {
        note(record, " %d", (int)event->session.id);
    }
    if (event->text != NULL) {
        note(record, " %s", event->text);
    }
    note(record, "\n");
}

struct fixture {
    struct record record;
    struct worker *worker;
};

static int set_up_with(void **state, size_t queue_max)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct worker_hooks hooks = {on_send, on_close, on_event, &fixture->record};
    fixture->worker = worker_new(&hooks, queue_max);
    *state = fixture;
    return fixture->worker == NULL;
}

static int set_up(void **state)
{
    return set_up_with(state, 3);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    worker_free(fixture->worker);
    free(fixture);
    return 0;
}

/* What was said since the last call. */
static void expect(struct fixture *fixture, const char *text)
{
    assert_string_equal(fixture->record.text, text);
    fixture->record.text[0] = '\0';
}

static void forget(struct fixture *fixture)
{
    fixture->record.text[0] = '\0';
}

/* The backend has all that it was sent. */
static void deliver(struct fixture *fixture, uint64_t backend)
{
    worker_delivered(fixture->worker, backend, (uint64_t)fixture->record.receipts);
    assert_false(worker_awaits(fixture->worker));
}

static int receive(struct fixture *fixture, uint64_t backend, const char *text)
{
    return worker_receive(fixture->worker, backend, text, strlen(text));
}

static int detect(struct fixture *fixture, const char *identifier, const char *attributes)
{
    struct detection detection = {.identifier = strdup(identifier),
                                  .model_name = strdup("M"),
                                  .model_id = 1,
                                  .attributes = json_loads(attributes, 0, NULL)};
    return worker_detected(fixture->worker, &detection, NULL);
}

#define SUB(identifier)                                                                            \
    "{\"subscriptionIdentifier\":\"" identifier "\",\"rtspUrl\":\"rtsp://h/1\","                   \
    "\"modelUrl\":\"http://m/1\",\"modelName\":\"M\",\"modelId\":1}"
#define EPOCH_LIST(epoch, elements)                                                                \
    "{\"type\":\"setSubscriptionList\",\"epoch\":" epoch ",\"subscriptions\":[" elements "]}"
#define LIST(elements) "{\"type\":\"setSubscriptionList\",\"subscriptions\":[" elements "]}"
#define SESSION(display, id)                                                                       \
    "{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"" display                     \
    "\",\"sessionId\":" id "}}"
#define STAGE(display, stage)                                                                      \
    "{\"type\":\"setProgressionStage\",\"payload\":{\"displayIdentifier\":\"" display              \
    "\",\"progressionStage\":" stage "}}"
#define REPORT(connections)                                                                        \
    "{\"type\":\"stateReport\",\"cpuUsage\":0.0,\"memoryUsage\":0.0,\"gpuUsage\":0.0,"             \
    "\"gpuMemoryUsage\":0.0,\"cameraConnections\":[" connections "]}\n"
#define CONNECTION(identifier, online)                                                             \
    "{\"subscriptionIdentifier\":\"" identifier "\",\"modelId\":1,\"modelName\":\"M\","            \
    "\"online\":" online "}"

/* Backend 1 owns the worker, and a;1 is all that it asks for. */
static void begin(struct fixture *fixture)
{
    worker_connected(fixture->worker, 1);
    assert_int_equal(receive(fixture, 1, LIST(SUB("a;1"))), 0);
}

static void a_backend_gets_a_report_at_once_and_with_every_tick(void **state)
{
    struct fixture *fixture = *state;
    struct usage usage = {12.34, 5, 0, 0};

    worker_connected(fixture->worker, 1);
    expect(fixture, "1< " REPORT("") "! owner-changed\n");
    worker_tick(fixture->worker, &usage);
    expect(fixture, "1< {\"type\":\"stateReport\",\"cpuUsage\":12.3,\"memoryUsage\":5.0,"
                    "\"gpuUsage\":0.0,\"gpuMemoryUsage\":0.0,\"cameraConnections\":[]}\n");
}

static void a_list_is_reconciled_and_the_result_reported(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    assert_int_equal(receive(fixture, 1, LIST(SUB("a;1") "," SUB("b;1"))), 0);
    expect(fixture, "! subscription-added a;1\n! subscription-added b;1\n"
                    "1< " REPORT(CONNECTION("a;1", "false") "," CONNECTION("b;1", "false")));
    worker_set_online(fixture->worker, "b;1", true);
    worker_set_online(fixture->worker, "nobody;1", true);
    assert_int_equal(receive(fixture, 1, LIST(SUB("b;1") "," SUB("c;1"))), 0);
    expect(fixture, "! subscription-removed a;1\n! subscription-added c;1\n"
                    "1< " REPORT(CONNECTION("b;1", "true") "," CONNECTION("c;1", "false")));
    assert_int_equal(receive(fixture, 1, LIST("")), 0);
    expect(fixture, "! subscription-removed b;1\n! subscription-removed c;1\n1< " REPORT(""));
}

static void another_camera_is_offline_until_its_frames_arrive(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    worker_set_online(fixture->worker, "a;1", true);
    forget(fixture);
    assert_int_equal(
        receive(fixture, 1,
                LIST("{\"subscriptionIdentifier\":\"a;1\",\"rtspUrl\":\"rtsp://h/2\","
                     "\"modelUrl\":\"http://m/1\",\"modelName\":\"M\",\"modelId\":1}")),
        0);
    expect(fixture, "! subscription-updated a;1 1\n1< " REPORT(CONNECTION("a;1", "false")));
}

static void a_bad_message_is_an_event_and_changes_nothing(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    forget(fixture);
    assert_int_equal(receive(fixture, 1, "{\"type\":\"setSubscriptionList\"}"), BATON_EPROTO);
    assert_int_equal(receive(fixture, 1, SESSION("a", "\"x\"")), BATON_EPROTO);
    assert_int_equal(receive(fixture, 1, "nonsense"), BATON_EPROTO);
    expect(fixture, "! message-refused\n! message-refused\n! message-refused\n");
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
    assert_false(worker_session(fixture->worker, "a;1").is_set);
    assert_int_equal(worker_counters(fixture->worker)->messages_refused, 3);
}

static void a_bad_subscription_is_reported_and_the_others_run(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    assert_int_equal(receive(fixture, 1, LIST("{\"subscriptionIdentifier\":\"a;1\"}," SUB("b;1"))),
                     0);
    expect(fixture, "! subscription-refused a;1\n! subscription-added b;1\n"
                    "1< " REPORT(CONNECTION("b;1", "false")));
}

static void a_running_subscription_outlives_its_bad_update(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    assert_int_equal(receive(fixture, 1, LIST(SUB("a;1") "," SUB("b;1"))), 0);
    worker_set_online(fixture->worker, "b;1", true);
    forget(fixture);
    assert_int_equal(
        receive(fixture, 1, LIST("{\"subscriptionIdentifier\":\"b;1\",\"rtspUrl\":5}")), 0);
    expect(fixture, "! subscription-refused b;1\n! subscription-removed a;1\n"
                    "1< " REPORT(CONNECTION("b;1", "true")));
    /* Twice in one list: the first counts, the second is no reason to keep an older one. */
    assert_int_equal(receive(fixture, 1, LIST(SUB("b;1") "," SUB("b;1"))), 0);
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
}

static void session_and_stage_hold_for_a_display_now_and_later(void **state)
{
    struct fixture *fixture = *state;
    struct worker *worker = fixture->worker;

    worker_connected(worker, 1);
    assert_int_equal(receive(fixture, 1, SESSION("d", "7")), 0);
    assert_int_equal(receive(fixture, 1, STAGE("d", "\"car_fueling\"")), 0);
    assert_int_equal(receive(fixture, 1, LIST(SUB("d;1") "," SUB("d;2") "," SUB("dd;1"))), 0);
    assert_int_equal(worker_session(worker, "d;1").id, 7);
    assert_int_equal(worker_session(worker, "d;2").id, 7);
    assert_false(worker_session(worker, "dd;1").is_set);
    assert_int_equal(worker_stage(worker, "d;2"), STAGE_CAR_FUELING);
    assert_int_equal(worker_stage(worker, "dd;1"), STAGE_NONE);
    assert_int_equal(receive(fixture, 1, SESSION("d", "null")), 0);
    assert_false(worker_session(worker, "d;1").is_set);
    assert_int_equal(worker_stage(worker, "d;1"), STAGE_CAR_FUELING);
    assert_int_equal(receive(fixture, 1, STAGE("d", "null")), 0);
    assert_int_equal(worker_stage(worker, "d;1"), STAGE_NONE);
}

static void an_unknown_type_is_reported_once(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    assert_int_equal(receive(fixture, 1, "{\"type\":\"dance\"}"), 0);
    assert_int_equal(receive(fixture, 1, "{\"type\":\"dance\"}"), 0);
    expect(fixture, "! message-unknown dance\n");
}

static void a_request_and_a_patch_result_are_answered_and_told(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    assert_int_equal(receive(fixture, 1, "{\"type\":\"requestState\"}"), 0);
    expect(fixture, "1< " REPORT(""));
    assert_int_equal(receive(fixture, 1,
                             "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":5,"
                             "\"success\":false,\"message\":\"gone\"}}"),
                     0);
    expect(fixture, "! patch-refused 5 gone\n");
    assert_int_equal(worker_counters(fixture->worker)->patches_refused, 1);
    assert_int_equal(receive(fixture, 1,
                             "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":5,"
                             "\"success\":true}}"),
                     0);
    expect(fixture, "! patch-answered 5 \n");
    assert_int_equal(worker_counters(fixture->worker)->patches_refused, 1);
}

static void a_message_that_was_not_read_is_told_and_counted(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    worker_refuse(fixture->worker, 1, "binary");
    worker_refuse(fixture->worker, 2, "nobody's");
    expect(fixture, "! message-refused\n");
    assert_int_equal(worker_counters(fixture->worker)->messages, 1);
    assert_int_equal(worker_counters(fixture->worker)->messages_refused, 1);
    assert_int_equal(worker_owner(fixture->worker), 1);
}

static void a_silent_newcomer_deposes_nobody(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    worker_connected(fixture->worker, 2);
    assert_int_equal(receive(fixture, 2, "{\"type\":\"requestState\"}"), 0);
    assert_int_equal(receive(fixture, 2, "{\"type\":\"setSessionId\"}"), BATON_EPROTO);
    assert_true(worker_owner(fixture->worker) == 1);
    worker_disconnected(fixture->worker, 2);
    assert_true(worker_owner(fixture->worker) == 1);
}

static void a_successor_takes_over_and_the_older_is_closed_with_a_reason(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    worker_connected(fixture->worker, 2);
    forget(fixture);
    assert_int_equal(receive(fixture, 2, LIST(SUB("a;1"))), 0);
    expect(fixture, "1x 4001\n! owner-changed\n! subscription-added a;1\n"
                    "2< " REPORT(CONNECTION("a;1", "false")));
    /* What was still on its way from the older one has no effect. */
    assert_int_equal(receive(fixture, 1, LIST("")), BATON_ECLOSED);
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
    worker_disconnected(fixture->worker, 1);
    assert_true(worker_owner(fixture->worker) == 2);
    assert_int_equal(worker_counters(fixture->worker)->takeovers, 1);
}

static void a_list_of_a_lower_epoch_is_refused_and_its_backend_closed(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    assert_int_equal(receive(fixture, 1, EPOCH_LIST("7", SUB("a;1"))), 0);
    worker_connected(fixture->worker, 2);
    forget(fixture);
    assert_int_equal(receive(fixture, 2, EPOCH_LIST("6", "")), BATON_ECONFLICT);
    expect(fixture, "2x 4001\n! message-refused\n");
    assert_true(worker_owner(fixture->worker) == 1);
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
    assert_int_equal(receive(fixture, 2, LIST("")), BATON_ECLOSED);

    worker_disconnected(fixture->worker, 1); /* it is remembered without its backend, too */
    worker_connected(fixture->worker, 3);
    assert_int_equal(receive(fixture, 3, EPOCH_LIST("6", "")), BATON_ECONFLICT);
    assert_true(worker_owner(fixture->worker) == 0);
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
}

static void an_equal_or_higher_epoch_and_none_are_accepted(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    assert_int_equal(receive(fixture, 1, EPOCH_LIST("7", "")), 0);
    assert_int_equal(receive(fixture, 1, EPOCH_LIST("7", "")), 0);
    worker_connected(fixture->worker, 2);
    assert_int_equal(receive(fixture, 2, EPOCH_LIST("8", "")), 0);
    assert_true(worker_owner(fixture->worker) == 2);
    worker_connected(fixture->worker, 3);
    assert_int_equal(receive(fixture, 3, LIST("")), 0);
    assert_true(worker_owner(fixture->worker) == 3);
    worker_connected(fixture->worker, 4);
    assert_int_equal(receive(fixture, 4, EPOCH_LIST("7", "")), BATON_ECONFLICT);
    assert_true(worker_owner(fixture->worker) == 3);
}

static void the_newest_that_waits_follows_an_owner_that_goes(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    worker_connected(fixture->worker, 2);
    worker_connected(fixture->worker, 3);
    worker_disconnected(fixture->worker, 1);
    assert_true(worker_owner(fixture->worker) == 3);
    worker_disconnected(fixture->worker, 3);
    worker_disconnected(fixture->worker, 2);
    assert_true(worker_owner(fixture->worker) == 0);
}

static void of_too_many_that_wait_the_oldest_goes_never_the_owner(void **state)
{
    struct fixture *fixture = *state;

    for (uint64_t backend = 1; backend <= WORKER_BACKENDS_MAX; backend++) {
        worker_connected(fixture->worker, backend);
    }
    forget(fixture);
    worker_connected(fixture->worker, 100);
    expect(fixture, "2x 1013\n100< " REPORT(""));
    assert_true(worker_owner(fixture->worker) == 1);
}

static void subscriptions_outlive_their_backend(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    worker_disconnected(fixture->worker, 1);
    assert_int_equal(worker_subscription_count(fixture->worker), 1);
}

static void a_detection_goes_out_at_once_with_the_displays_session(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    assert_int_equal(receive(fixture, 1, SESSION("a", "7")), 0);
    forget(fixture);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":1}"), 0);
    expect(fixture, "1< {\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"a;1\","
                    "\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"sessionId\":7,\"data\":{"
                    "\"detection\":{\"n\":1},\"modelId\":1,\"modelName\":\"M\"}}\n");
    assert_int_equal(detect(fixture, "b;1", "{\"n\":1}"), BATON_ENOENT);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":[]}"), BATON_EINVAL);
    expect(fixture, "");
}

static void late_detections_patch_the_session_they_were_seen_in(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    assert_int_equal(receive(fixture, 1, SESSION("a", "7")), 0);
    worker_disconnected(fixture->worker, 1);
    assert_int_equal(detect(fixture, "a;1", "{\"carBrand\":\"B\"}"), 0);
    assert_int_equal(detect(fixture, "a;1", "{\"people\":2}"), 0);
    assert_int_equal(worker_queued(fixture->worker), 2);
    forget(fixture);
    worker_connected(fixture->worker, 2);
    expect(fixture,
           "2< " REPORT(CONNECTION(
               "a;1",
               "false")) "! owner-changed\n"
                         "2< {\"type\":\"patchSession\",\"sessionId\":7,\"data\":{\"currentCar\":{"
                         "\"carBrand\":\"B\"}}}\n"
                         "2< {\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"a;1\","
                         "\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"sessionId\":7,\"data\":{"
                         "\"detection\":{\"people\":2},\"modelId\":1,\"modelName\":\"M\"}}\n");
    assert_int_equal(worker_queued(fixture->worker), 2);
    assert_int_equal(worker_counters(fixture->worker)->patches_sent, 0);
    deliver(fixture, 2);
    assert_int_equal(worker_queued(fixture->worker), 0);
    assert_int_equal(worker_counters(fixture->worker)->patches_sent, 1);
    assert_int_equal(worker_counters(fixture->worker)->detections_sent, 1);
}

static void what_a_lost_connection_had_not_taken_goes_to_the_next_backend(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    assert_int_equal(receive(fixture, 1, SESSION("a", "7")), 0);
    assert_int_equal(detect(fixture, "a;1", "{\"carBrand\":\"A\"}"), 0);
    worker_delivered(fixture->worker, 1, 1);
    assert_int_equal(detect(fixture, "a;1", "{\"carBrand\":\"B\"}"), 0);
    assert_int_equal(detect(fixture, "a;1", "{\"carBrand\":\"C\"}"), 0);
    assert_int_equal(worker_counters(fixture->worker)->detections_sent, 1);
    assert_int_equal(worker_queued(fixture->worker), 2);
    worker_disconnected(fixture->worker, 1);
    worker_delivered(fixture->worker, 1, 3); /* too late to count */
    assert_int_equal(worker_queued(fixture->worker), 2);
    forget(fixture);
    worker_connected(fixture->worker, 2);
    assert_null(strstr(fixture->record.text, "\"A\""));
    assert_non_null(strstr(fixture->record.text, "{\"type\":\"patchSession\",\"sessionId\":7,"));
    assert_true(strstr(fixture->record.text, "\"B\"") < strstr(fixture->record.text, "\"C\""));
    deliver(fixture, 2);
    assert_int_equal(worker_queued(fixture->worker), 0);
    assert_int_equal(worker_counters(fixture->worker)->detections_sent, 1);
    assert_int_equal(worker_counters(fixture->worker)->patches_sent, 2);
}

static void what_comes_back_keeps_to_the_bound_and_a_successor_gets_the_rest(void **state)
{
    struct fixture *fixture = *state;
    char attributes[32];

    begin(fixture);
    for (int i = 0; i < OUTBOX_HANDED_MAX + 5; i++) {
        (void)snprintf(attributes, sizeof(attributes), "{\"n\":%d}", 10000 + i);
        forget(fixture);
        assert_int_equal(detect(fixture, "a;1", attributes), 0);
    }
    assert_int_equal(fixture->record.receipts, OUTBOX_HANDED_MAX);
    assert_int_equal(worker_queued(fixture->worker), OUTBOX_HANDED_MAX + 3);
    assert_int_equal(worker_counters(fixture->worker)->detections_dropped, 2);
    worker_connected(fixture->worker, 2);
    forget(fixture);
    assert_int_equal(receive(fixture, 2, STAGE("a", "\"welcome\"")), 0);
    assert_int_equal(worker_queued(fixture->worker), 3);
    assert_int_equal(worker_counters(fixture->worker)->detections_dropped, OUTBOX_HANDED_MAX + 2);
    assert_non_null(strstr(fixture->record.text, "2< {\"type\":\"imageDetection\""));
    assert_null(strstr(fixture->record.text, "\"n\":11023"));
    assert_non_null(strstr(fixture->record.text, "\"n\":11028"));
}

static void what_waits_for_receipts_goes_out_with_the_heartbeat(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    for (int i = 0; i < OUTBOX_HANDED_MAX + 2; i++) {
        forget(fixture);
        assert_int_equal(detect(fixture, "a;1", "{\"n\":1}"), 0);
    }
    assert_int_equal(fixture->record.receipts, OUTBOX_HANDED_MAX);
    worker_delivered(fixture->worker, 1, 1);
    worker_tick(fixture->worker, &(struct usage){0});
    assert_int_equal(fixture->record.receipts, OUTBOX_HANDED_MAX + 1);
    deliver(fixture, 1);
    worker_tick(fixture->worker, &(struct usage){0});
    deliver(fixture, 1);
    assert_int_equal(worker_queued(fixture->worker), 0);
}

static void a_full_queue_drops_its_oldest_and_counts_it(void **state)
{
    struct fixture *fixture = *state;
    char attributes[32];

    begin(fixture);
    fixture->record.is_deaf = true;
    for (int i = 0; i < 5; i++) {
        (void)snprintf(attributes, sizeof(attributes), "{\"n\":%d}", i);
        assert_int_equal(detect(fixture, "a;1", attributes), 0);
    }
    assert_int_equal(worker_queued(fixture->worker), 3);
    assert_int_equal(worker_counters(fixture->worker)->detections_dropped, 2);
    fixture->record.is_deaf = false;
    forget(fixture);
    worker_writable(fixture->worker);
    assert_non_null(strstr(fixture->record.text, "\"n\":2"));
    assert_true(strstr(fixture->record.text, "\"n\":2") < strstr(fixture->record.text, "\"n\":4"));
    assert_null(strstr(fixture->record.text, "\"n\":1"));
    deliver(fixture, 1);
    assert_int_equal(worker_queued(fixture->worker), 0);
}

static void no_detection_overtakes_one_that_waits(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    fixture->record.refusals = 2; /* the first itself, and its second try */
    assert_int_equal(detect(fixture, "a;1", "{\"n\":0}"), 0);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":1}"), 0);
    assert_int_equal(worker_queued(fixture->worker), 2);
    forget(fixture);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":2}"), 0);
    deliver(fixture, 1);
    assert_int_equal(worker_queued(fixture->worker), 0);
    assert_true(strstr(fixture->record.text, "\"n\":0") < strstr(fixture->record.text, "\"n\":1"));
    assert_true(strstr(fixture->record.text, "\"n\":1") < strstr(fixture->record.text, "\"n\":2"));
}

static void a_lower_bound_drops_the_oldest_that_wait_and_a_higher_one_none(void **state)
{
    struct fixture *fixture = *state;
    struct worker *worker = fixture->worker;

    begin(fixture);
    fixture->record.is_deaf = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(detect(fixture, "a;1", i == 0 ? "{\"n\":0}" : "{\"n\":1}"), 0);
    }
    worker_set_queue(worker, 2);
    worker_set_queue(worker, 4);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":2}"), 0);
    assert_int_equal(detect(fixture, "a;1", "{\"n\":3}"), 0);
    assert_int_equal(worker_queued(worker), 4);
    assert_int_equal(worker_counters(worker)->detections_dropped, 1);
    fixture->record.is_deaf = false;
    forget(fixture);
    worker_writable(worker);
    assert_null(strstr(fixture->record.text, "\"n\":0"));
    assert_true(strstr(fixture->record.text, "\"n\":1") < strstr(fixture->record.text, "\"n\":2"));
    assert_true(strstr(fixture->record.text, "\"n\":2") < strstr(fixture->record.text, "\"n\":3"));
    worker_set_queue(worker, 1); /* what was handed over does not wait */
    assert_int_equal(worker_queued(worker), 4);
    worker_disconnected(worker, 1); /* now it does */
    assert_int_equal(worker_queued(worker), 1);
    assert_int_equal(worker_counters(worker)->detections_dropped, 4);
}

static void a_session_or_stage_that_is_the_same_is_no_event(void **state)
{
    struct fixture *fixture = *state;

    worker_connected(fixture->worker, 1);
    forget(fixture);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(receive(fixture, 1, SESSION("d", "7")), 0);
        assert_int_equal(receive(fixture, 1, STAGE("d", "\"welcome\"")), 0);
    }
    expect(fixture, "! session-changed d 7\n! stage-changed d welcome\n");
}

static void a_display_in_neither_takes_no_room(void **state)
{
    struct fixture *fixture = *state;
    char message[128];

    worker_connected(fixture->worker, 1);
    for (int i = 0; i < DISPLAYS_MAX; i++) {
        forget(fixture);
        (void)snprintf(message, sizeof(message), SESSION("d%d", "1"), i);
        assert_int_equal(receive(fixture, 1, message), 0);
    }
    assert_int_equal(receive(fixture, 1, STAGE("more", "\"welcome\"")), BATON_ETOOBIG);
    assert_int_equal(receive(fixture, 1, STAGE("d5", "\"welcome\"")), 0);
    assert_int_equal(receive(fixture, 1, SESSION("d5", "null")), 0);
    assert_int_equal(receive(fixture, 1, STAGE("more", "\"welcome\"")), BATON_ETOOBIG);
    assert_int_equal(receive(fixture, 1, STAGE("d5", "null")), 0);
    assert_int_equal(receive(fixture, 1, STAGE("more", "\"welcome\"")), 0);
    assert_int_equal(worker_stage(fixture->worker, "more;1"), STAGE_WELCOME);
}

static void the_log_of_the_specification_plays_message_by_message(void **state)
{
    struct fixture *fixture = *state;
    struct usage reports[] = {
        {70.2, 38.1, 55, 20}, {72.5, 39, 57, 21}, {70, 38, 55, 20}, {68, 37, 50, 18}};
    size_t report = 0;
    uint64_t backend = 0;
    int played = 0;

    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *example = &examples[i];
        char expected[4096];
        if (strncmp(example->section, "§9", strlen("§9")) != 0) {
            continue;
        }
        played++;
        if (!example->is_from_worker) {
            assert_int_equal(receive(fixture, backend, example->text), 0);
            continue;
        }
        (void)snprintf(expected, sizeof(expected), "%d< %s\n", (int)backend, example->text);
        if (strstr(example->text, "imageDetection") != NULL) {
            struct detection detection = {
                .identifier = strdup("display-001;entry-cam-01"),
                .model_name = strdup("Vehicle Identification"),
                .model_id = 201,
                .at_unix_ms = 1752573600000,
                .attributes = json_loads(
                    "{\"carBrand\":\"Honda\",\"carModel\":\"CR-V\",\"bodyType\":\"SUV\","
                    "\"licensePlateText\":\"GEMINI-AI\",\"licensePlateConfidence\":0.98}",
                    0, NULL)};
            forget(fixture);
            assert_int_equal(worker_detected(fixture->worker, &detection, NULL), 0);
            expect(fixture, expected);
            continue;
        }
        if (strcmp(example->section, "§9.8") == 0) { /* the worker itself comes back */
            void *fresh;
            worker_free(fixture->worker);
            fixture->worker = NULL;
            assert_int_equal(set_up_with(&fresh, 3), 0);
            (void)tear_down(state);
            *state = fresh;
            fixture = fresh;
        }
        if (worker_owner(fixture->worker) == 0) {
            worker_connected(fixture->worker, ++backend);
            (void)snprintf(expected, sizeof(expected), "%d< %s\n", (int)backend, example->text);
        }
        if (worker_subscription_count(fixture->worker) > 0) {
            worker_set_online(fixture->worker, "display-001;entry-cam-01", true);
        }
        forget(fixture);
        worker_tick(fixture->worker, &reports[report++]);
        expect(fixture, expected);
    }
    assert_int_equal(played, 13);
    assert_int_equal(report, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backend_gets_a_report_at_once_and_with_every_tick),
        TEST(a_list_is_reconciled_and_the_result_reported),
        TEST(another_camera_is_offline_until_its_frames_arrive),
        TEST(a_bad_message_is_an_event_and_changes_nothing),
        TEST(a_bad_subscription_is_reported_and_the_others_run),
        TEST(a_running_subscription_outlives_its_bad_update),
        TEST(session_and_stage_hold_for_a_display_now_and_later),
        TEST(an_unknown_type_is_reported_once),
        TEST(a_request_and_a_patch_result_are_answered_and_told),
        TEST(a_message_that_was_not_read_is_told_and_counted),
        TEST(a_silent_newcomer_deposes_nobody),
        TEST(a_successor_takes_over_and_the_older_is_closed_with_a_reason),
        TEST(a_list_of_a_lower_epoch_is_refused_and_its_backend_closed),
        TEST(an_equal_or_higher_epoch_and_none_are_accepted),
        TEST(the_newest_that_waits_follows_an_owner_that_goes),
        TEST(of_too_many_that_wait_the_oldest_goes_never_the_owner),
        TEST(subscriptions_outlive_their_backend),
        TEST(a_detection_goes_out_at_once_with_the_displays_session),
        TEST(late_detections_patch_the_session_they_were_seen_in),
        TEST(what_waits_for_receipts_goes_out_with_the_heartbeat),
        TEST(a_full_queue_drops_its_oldest_and_counts_it),
        TEST(no_detection_overtakes_one_that_waits),
        TEST(what_a_lost_connection_had_not_taken_goes_to_the_next_backend),
        TEST(what_comes_back_keeps_to_the_bound_and_a_successor_gets_the_rest),
        TEST(a_lower_bound_drops_the_oldest_that_wait_and_a_higher_one_none),
        TEST(a_session_or_stage_that_is_the_same_is_no_event),
        TEST(a_display_in_neither_takes_no_room),
        TEST(the_log_of_the_specification_plays_message_by_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
