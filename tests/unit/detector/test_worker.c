#include "cmocka_all.h"
#include "detector/worker.h"
#include "unit/protocol/examples.h"

#include <stdio.h>
#include <string.h>

/* Writes down all that the worker says: "1< …" a message to backend 1, "1x code" a closing,
 * "! event …" an event. */
static struct {
    char text[1 << 16];
    bool is_deaf; /* the backend takes nothing */
    int refusals; /* so many times it takes nothing */
    int receipts; /* so many that were asked for: the position of the latest */
} record;

static void note(const char *format, ...)
{
    size_t used = strlen(record.text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(record.text + used, sizeof(record.text) - used, format, arguments);
    va_end(arguments);
}

static bool on_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                    uint64_t *ret_end)
{
    assert_int_equal(strlen(text), bytes);
    if (record.is_deaf || (record.refusals > 0 && record.refusals-- > 0)) {
        return false;
    }
    if (ret_end != NULL) {
        *ret_end = (uint64_t)++record.receipts;
    }
    note("%d< %s\n", (int)backend, text);
    return true;
}

static void on_close(void *userdata, uint64_t backend, int code, const char *reason)
{
    assert_non_null(reason);
    note("%dx %d\n", (int)backend, code);
}

static struct worker self, *const worker = &self;

static void on_event(void *userdata, const struct worker_event *event)
{
    for (size_t i = 0; i < worker->subscription_count; i++) { /* a handler may look at the list */
        assert_true(worker->subscriptions[i] != event->subscription ||
                    event->type != WORKER_SUBSCRIPTION_REMOVED);
        assert_non_null(worker_find(worker, worker->subscriptions[i]->identifier));
    }
    note("! %s", worker_event_name(event->type));
    if (event->identifier != NULL) {
        note(" %s", event->identifier);
    }
    if (event->type == WORKER_SUBSCRIPTION_UPDATED) {
        note(" %u", event->changes);
    }
    if (event->session.is_set) {
        note(" %d", (int)event->session.id);
    }
    if (event->text != NULL) {
        note(" %s", event->text);
    }
    note("\n");
}

static void begin_anew(size_t queue_max)
{
    struct worker_hooks hooks = {on_send, on_close, on_event, NULL, sizeof(struct subscription)};

    memset(&record, 0, sizeof(record));
    worker_fini(worker);
    worker_init(worker, &hooks, queue_max);
}

/* Backend 1 owns the worker. */
static int set_up(void **state)
{
    begin_anew(3);
    worker_connected(worker, 1);
    record.text[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    worker_fini(worker);
    return 0;
}

/* What was said since the last call. */
static void expect(const char *text)
{
    assert_string_equal(record.text, text);
    record.text[0] = '\0';
}

static void forget(void)
{
    record.text[0] = '\0';
}

/* The backend has all that it was sent. */
static void deliver(uint64_t backend)
{
    worker_delivered(worker, backend, (uint64_t)record.receipts);
    assert_int_equal(worker->outbox.handed, 0);
}

static int receive(uint64_t backend, const char *text)
{
    return worker_receive(worker, backend, text, strlen(text));
}

static int detect(const char *identifier, const char *attributes)
{
    struct detection detection = {.identifier = strdup(identifier),
                                  .model_name = strdup("M"),
                                  .model_id = 1,
                                  .attributes = json_loads(attributes, 0, NULL)};
    return worker_detected(worker, &detection, NULL);
}

/* The same, accepted. */
static void tell(uint64_t backend, const char *text)
{
    assert_int_equal(receive(backend, text), 0);
}

static void see(const char *identifier, const char *attributes)
{
    assert_int_equal(detect(identifier, attributes), 0);
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

/* a;1 is all that backend 1 asks for. */
static void begin(void)
{
    tell(1, LIST(SUB("a;1")));
}

static void a_backend_gets_a_report_at_once_and_with_every_tick(void **state)
{
    struct usage usage = {12.34, 5, 0, 0};

    begin_anew(3);
    worker_connected(worker, 1);
    expect("1< " REPORT("") "! owner-changed\n");
    worker_tick(worker, &usage);
    expect("1< {\"type\":\"stateReport\",\"cpuUsage\":12.3,\"memoryUsage\":5.0,"
           "\"gpuUsage\":0.0,\"gpuMemoryUsage\":0.0,\"cameraConnections\":[]}\n");
}

static void a_list_is_reconciled_and_the_result_reported(void **state)
{
    struct subscription *entry;

    tell(1, LIST(SUB("a;1") "," SUB("b;1")));
    expect("! subscription-added a;1\n! subscription-added b;1\n"
           "1< " REPORT(CONNECTION("a;1", "false") "," CONNECTION("b;1", "false")));
    entry = worker_find(worker, "b;1");
    entry->is_online = true;
    assert_null(worker_find(worker, "nobody;1"));
    tell(1, LIST(SUB("b;1") "," SUB("c;1")));
    expect("! subscription-removed a;1\n! subscription-added c;1\n"
           "1< " REPORT(CONNECTION("b;1", "true") "," CONNECTION("c;1", "false")));
    tell(1, LIST("{\"subscriptionIdentifier\":\"b;1\",\"rtspUrl\":\"rtsp://h/2\","
                 "\"modelUrl\":\"http://m/1\",\"modelName\":\"M\",\"modelId\":1}"));
    expect("! subscription-removed c;1\n! subscription-updated b;1 1\n"
           "1< " REPORT(CONNECTION("b;1", "false")));
    assert_ptr_equal(worker_find(worker, "b;1"), entry);
    assert_string_equal(entry->rtsp_url, "rtsp://h/2");
    tell(1, LIST(""));
    expect("! subscription-removed b;1\n1< " REPORT(""));
}

static void a_bad_subscription_costs_not_its_older_form(void **state)
{
    tell(1, LIST(SUB("a;1") "," SUB("b;1")));
    worker_find(worker, "b;1")->is_online = true;
    forget();
    tell(1, LIST("{\"subscriptionIdentifier\":\"b;1\",\"rtspUrl\":5}"));
    expect("! subscription-refused b;1\n! subscription-removed a;1\n"
           "1< " REPORT(CONNECTION("b;1", "true")));
}

static void session_and_stage_hold_for_a_display_now_and_later(void **state)
{
    for (int i = 0; i < 2; i++) { /* the same again is no event */
        tell(1, SESSION("d", "7"));
        tell(1, STAGE("d", "\"car_fueling\""));
    }
    expect("! session-changed d 7\n! stage-changed d car_fueling\n");
    tell(1, LIST(SUB("d;1") "," SUB("d;2") "," SUB("dd;1")));
    assert_int_equal(worker_session(worker, "d;1").id, 7);
    assert_int_equal(worker_session(worker, "d;2").id, 7);
    assert_false(worker_session(worker, "dd;1").is_set);
    assert_int_equal(worker_stage(worker, "d;2"), STAGE_CAR_FUELING);
    assert_int_equal(worker_stage(worker, "dd;1"), STAGE_NONE);
    tell(1, SESSION("d", "null"));
    assert_false(worker_session(worker, "d;1").is_set);
    assert_int_equal(worker_stage(worker, "d;1"), STAGE_CAR_FUELING);
    tell(1, STAGE("d", "null"));
    assert_int_equal(worker_stage(worker, "d;1"), STAGE_NONE);
}

static void an_unknown_type_is_reported_once(void **state)
{
    tell(1, "{\"type\":\"dance\"}");
    tell(1, "{\"type\":\"dance\"}");
    expect("! message-unknown dance\n");
}

static void a_request_and_a_patch_result_are_answered_and_told(void **state)
{
    tell(1, "{\"type\":\"requestState\"}");
    expect("1< " REPORT(""));
    tell(1, "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":5,"
            "\"success\":false,\"message\":\"gone\"}}");
    expect("! patch-refused 5 gone\n");
    assert_int_equal(worker->counters.patches_refused, 1);
    tell(1, "{\"type\":\"patchSessionResult\",\"payload\":{\"sessionId\":5,"
            "\"success\":true}}");
    expect("! patch-answered 5 \n");
    assert_int_equal(worker->counters.patches_refused, 1);
}

static void a_silent_newcomer_deposes_nobody(void **state)
{
    worker_connected(worker, 2);
    tell(2, "{\"type\":\"requestState\"}");
    assert_int_equal(receive(2, "{\"type\":\"setSessionId\"}"), BATON_EPROTO);
    assert_true(worker->owner == 1);
    worker_disconnected(worker, 2);
    assert_true(worker->owner == 1);
}

static void a_successor_takes_over_and_the_older_is_closed_with_a_reason(void **state)
{
    worker_connected(worker, 2);
    forget();
    tell(2, LIST(SUB("a;1")));
    expect("1x 4001\n! owner-changed\n! subscription-added a;1\n"
           "2< " REPORT(CONNECTION("a;1", "false")));
    /* What was still on its way from the older one has no effect. */
    assert_int_equal(receive(1, LIST("")), BATON_ECLOSED);
    worker_refuse(worker, 1, "binary");
    expect("");
    assert_int_equal(worker->subscription_count, 1);
    worker_disconnected(worker, 1);
    assert_true(worker->owner == 2);
    assert_int_equal(worker->counters.takeovers, 1);
}

static void a_list_of_a_lower_epoch_is_refused_and_its_backend_closed(void **state)
{
    tell(1, EPOCH_LIST("7", SUB("a;1")));
    worker_connected(worker, 2);
    forget();
    assert_int_equal(receive(2, EPOCH_LIST("6", "")), BATON_ECONFLICT);
    expect("2x 4001\n! message-refused\n");
    assert_true(worker->owner == 1);
    assert_int_equal(worker->subscription_count, 1);
    assert_int_equal(receive(2, LIST("")), BATON_ECLOSED);

    worker_disconnected(worker, 1); /* it is remembered without its backend, too */
    worker_connected(worker, 3);
    assert_int_equal(receive(3, EPOCH_LIST("6", "")), BATON_ECONFLICT);
    assert_true(worker->owner == 0);
    assert_int_equal(worker->subscription_count, 1);
}

static void an_equal_or_higher_epoch_and_none_are_accepted(void **state)
{
    tell(1, EPOCH_LIST("7", ""));
    tell(1, EPOCH_LIST("7", ""));
    worker_connected(worker, 2);
    tell(2, EPOCH_LIST("8", ""));
    assert_true(worker->owner == 2);
    worker_connected(worker, 3);
    tell(3, LIST(""));
    assert_true(worker->owner == 3);
    worker_connected(worker, 4);
    assert_int_equal(receive(4, EPOCH_LIST("7", "")), BATON_ECONFLICT);
    assert_true(worker->owner == 3);
}

static void the_newest_that_waits_follows_an_owner_that_goes(void **state)
{
    worker_connected(worker, 2);
    worker_connected(worker, 3);
    worker_disconnected(worker, 1);
    assert_true(worker->owner == 3);
    worker_disconnected(worker, 3);
    worker_disconnected(worker, 2);
    assert_true(worker->owner == 0);
}

static void of_too_many_that_wait_the_oldest_goes_never_the_owner(void **state)
{
    for (uint64_t backend = 2; backend <= WORKER_BACKENDS_MAX; backend++) {
        worker_connected(worker, backend);
    }
    forget();
    worker_connected(worker, 100);
    expect("2x 1013\n100< " REPORT(""));
    assert_true(worker->owner == 1);
}

static void a_detection_goes_out_at_once_with_the_displays_session(void **state)
{
    begin();
    tell(1, SESSION("a", "7"));
    forget();
    see("a;1", "{\"n\":1}");
    expect("1< {\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"a;1\","
           "\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"sessionId\":7,\"data\":{"
           "\"detection\":{\"n\":1},\"modelId\":1,\"modelName\":\"M\"}}\n");
    assert_int_equal(detect("a;1", "{\"n\":[]}"), BATON_EINVAL);
    expect("");
}

static void late_detections_patch_the_session_they_were_seen_in(void **state)
{
    begin();
    tell(1, SESSION("a", "7"));
    worker_disconnected(worker, 1);
    see("a;1", "{\"carBrand\":\"B\"}");
    see("a;1", "{\"people\":2}");
    assert_int_equal(worker_queued(worker), 2);
    forget();
    worker_connected(worker, 2);
    expect("2< " REPORT(CONNECTION(
        "a;1", "false")) "! owner-changed\n"
                         "2< {\"type\":\"patchSession\",\"sessionId\":7,\"data\":{\"currentCar\":{"
                         "\"carBrand\":\"B\"}}}\n"
                         "2< {\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"a;1\","
                         "\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"sessionId\":7,\"data\":{"
                         "\"detection\":{\"people\":2},\"modelId\":1,\"modelName\":\"M\"}}\n");
    assert_int_equal(worker_queued(worker), 2);
    assert_int_equal(worker->counters.patches_sent, 0);
    deliver(2);
    assert_int_equal(worker_queued(worker), 0);
    assert_int_equal(worker->counters.patches_sent, 1);
    assert_int_equal(worker->counters.detections_sent, 1);
}

static void what_a_lost_connection_had_not_taken_goes_to_the_next_backend(void **state)
{
    begin();
    tell(1, SESSION("a", "7"));
    see("a;1", "{\"carBrand\":\"A\"}");
    worker_delivered(worker, 1, 1);
    see("a;1", "{\"carBrand\":\"B\"}");
    see("a;1", "{\"carBrand\":\"C\"}");
    assert_int_equal(worker->counters.detections_sent, 1);
    assert_int_equal(worker_queued(worker), 2);
    worker_disconnected(worker, 1);
    worker_delivered(worker, 1, 3); /* too late to count */
    assert_int_equal(worker_queued(worker), 2);
    forget();
    worker_connected(worker, 2);
    assert_null(strstr(record.text, "\"A\""));
    assert_non_null(strstr(record.text, "{\"type\":\"patchSession\",\"sessionId\":7,"));
    assert_true(strstr(record.text, "\"B\"") < strstr(record.text, "\"C\""));
    deliver(2);
    assert_int_equal(worker_queued(worker), 0);
    assert_int_equal(worker->counters.detections_sent, 1);
    assert_int_equal(worker->counters.patches_sent, 2);
}

static void what_comes_back_keeps_to_the_bound_and_a_successor_gets_the_rest(void **state)
{
    char attributes[32];

    begin();
    for (int i = 0; i < OUTBOX_HANDED_MAX + 5; i++) {
        (void)snprintf(attributes, sizeof(attributes), "{\"n\":%d}", 10000 + i);
        forget();
        see("a;1", attributes);
    }
    assert_int_equal(record.receipts, OUTBOX_HANDED_MAX);
    assert_int_equal(worker_queued(worker), OUTBOX_HANDED_MAX + 3);
    assert_int_equal(worker->counters.detections_dropped, 2);
    worker_delivered(worker, 1, 1); /* so one more may go, with the heartbeat */
    worker_tick(worker, &(struct usage){0});
    assert_int_equal(record.receipts, OUTBOX_HANDED_MAX + 1);
    worker_connected(worker, 2);
    forget();
    tell(2, STAGE("a", "\"welcome\""));
    assert_int_equal(worker_queued(worker), 3);
    assert_int_equal(worker->counters.detections_dropped, OUTBOX_HANDED_MAX + 1);
    assert_non_null(strstr(record.text, "2< {\"type\":\"imageDetection\""));
    assert_null(strstr(record.text, "\"n\":11023"));
    assert_non_null(strstr(record.text, "\"n\":11028"));
}

static void no_detection_overtakes_one_that_waits(void **state)
{
    begin();
    record.refusals = 2; /* the first itself, and its second try */
    see("a;1", "{\"n\":0}");
    see("a;1", "{\"n\":1}");
    assert_int_equal(worker_queued(worker), 2);
    forget();
    see("a;1", "{\"n\":2}");
    deliver(1);
    assert_int_equal(worker_queued(worker), 0);
    assert_true(strstr(record.text, "\"n\":0") < strstr(record.text, "\"n\":1"));
    assert_true(strstr(record.text, "\"n\":1") < strstr(record.text, "\"n\":2"));
}

static void a_full_queue_drops_its_oldest_and_so_does_a_lower_bound(void **state)
{
    char attributes[32];

    begin();
    record.is_deaf = true;
    for (int i = 0; i < 7; i++) {
        (void)snprintf(attributes, sizeof(attributes), "{\"n\":%d}", i);
        see("a;1", attributes);
        if (i == 4) {
            assert_int_equal(worker_queued(worker), 3);
            assert_int_equal(worker->counters.detections_dropped, 2);
            worker_set_queue(worker, 2);
            worker_set_queue(worker, 4);
        }
    }
    assert_int_equal(worker_queued(worker), 4);
    assert_int_equal(worker->counters.detections_dropped, 3);
    record.is_deaf = false;
    forget();
    worker_flush(worker);
    assert_null(strstr(record.text, "\"n\":2"));
    assert_non_null(strstr(record.text, "\"n\":3"));
    assert_true(strstr(record.text, "\"n\":3") < strstr(record.text, "\"n\":4"));
    assert_true(strstr(record.text, "\"n\":4") < strstr(record.text, "\"n\":6"));
    worker_set_queue(worker, 1); /* what was handed over does not wait */
    assert_int_equal(worker_queued(worker), 4);
    worker_disconnected(worker, 1); /* now it does */
    assert_int_equal(worker_queued(worker), 1);
    assert_int_equal(worker->counters.detections_dropped, 6);
}

static void a_display_in_neither_takes_no_room(void **state)
{
    char message[128];

    for (int i = 0; i < WORKER_DISPLAYS_MAX; i++) {
        forget();
        (void)snprintf(message, sizeof(message), SESSION("d%d", "1"), i);
        tell(1, message);
    }
    assert_int_equal(receive(1, STAGE("more", "\"welcome\"")), BATON_ETOOBIG);
    tell(1, SESSION("more", "null")); /* as each backend says it of a display without one */
    tell(1, STAGE("more", "null"));
    tell(1, STAGE("d5", "\"welcome\""));
    tell(1, SESSION("d5", "null"));
    assert_int_equal(receive(1, STAGE("more", "\"welcome\"")), BATON_ETOOBIG);
    tell(1, STAGE("d5", "null"));
    tell(1, STAGE("more", "\"welcome\""));
    assert_int_equal(worker_stage(worker, "more;1"), STAGE_WELCOME);
}

static void the_log_of_the_specification_plays_message_by_message(void **state)
{
    struct usage reports[] = {
        {70.2, 38.1, 55, 20}, {72.5, 39, 57, 21}, {70, 38, 55, 20}, {68, 37, 50, 18}};
    size_t report = 0;
    uint64_t backend = 0;
    int played = 0;

    begin_anew(3);
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *example = &examples[i];
        char expected[4096];
        if (strncmp(example->section, "§9", strlen("§9")) != 0) {
            continue;
        }
        played++;
        if (!example->is_from_worker) {
            tell(backend, example->text);
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
            forget();
            assert_int_equal(worker_detected(worker, &detection, NULL), 0);
            expect(expected);
            continue;
        }
        if (strcmp(example->section, "§9.8") == 0) { /* the worker itself comes back */
            begin_anew(3);
        }
        if (worker->owner == 0) {
            worker_connected(worker, ++backend);
            (void)snprintf(expected, sizeof(expected), "%d< %s\n", (int)backend, example->text);
        }
        if (worker->subscription_count > 0) {
            worker_find(worker, "display-001;entry-cam-01")->is_online = true;
        }
        forget();
        worker_tick(worker, &reports[report++]);
        expect(expected);
    }
    assert_int_equal(played, 13);
    assert_int_equal(report, 4);
}

#define CAMERA(stream, snapshot, model, name, id, interval_ms, ...)                                \
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
    const struct subscription stream = CAMERA("rtsp://h", NULL, "http://m", "M", 1, 0, 0);
    /* Snapshots alone are the camera. */
    const struct subscription stills =
        CAMERA("", "http://s", "http://m", "M", 1, 0, X1, {7, 1, 2, 3});
    const struct {
        const struct subscription *from;
        struct subscription to;
        unsigned changes;
    } cases[] = {
        {&stream, CAMERA("rtsp://i", NULL, "http://m", "M", 1, 0, 0), CHANGE_CAMERA},
        {&stream, CAMERA("rtsp://h", NULL, "http://m", "M", 2, 0, 0), CHANGE_MODEL},
        {&stream, CAMERA("rtsp://h", NULL, "http://m", "N", 1, 0, 0), CHANGE_MODEL},
        {&stream, CAMERA("rtsp://h", "http://s", "http://m", "M", 1, 0, 0), CHANGE_SNAPSHOT},
        {&stream, CAMERA("rtsp://h", NULL, "http://m", "M", 1, 5, 0), CHANGE_INTERVAL},
        {&stream, CAMERA("rtsp://h", NULL, "http://m?token=fresh", "M", 1, 0, 0), CHANGE_MODEL_URL},
        {&stream, CAMERA("rtsp://h", NULL, "http://n", "M", 1, 0, X1),
         CHANGE_MODEL_URL | CHANGE_CROP},
        {&stream, CAMERA("rtsp://h", NULL, "http://m", "M", 1, 0, 0, {7}), 0},
        {&stills, CAMERA("", "http://t", "http://m", "M", 1, 0, X1, {7}),
         CHANGE_CAMERA | CHANGE_SNAPSHOT},
        {&stills, CAMERA("", "http://s", "http://m", "M", 1, 5, X1, {7}), CHANGE_INTERVAL},
        {&stills, CAMERA("rtsp://h", "http://s", "http://m", "M", 1, 5, X1, {7}),
         CHANGE_CAMERA | CHANGE_INTERVAL},
        {&stills, CAMERA("", "http://s", "http://m", "M", 1, 0, X1, {8, 1, 2, 3}), CHANGE_CROP},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(subscription_changes(cases[i].from, &cases[i].to), cases[i].changes);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backend_gets_a_report_at_once_and_with_every_tick),
        TEST(a_list_is_reconciled_and_the_result_reported),
        TEST(a_bad_subscription_costs_not_its_older_form),
        TEST(a_change_is_told_by_what_changed),
        TEST(session_and_stage_hold_for_a_display_now_and_later),
        TEST(an_unknown_type_is_reported_once),
        TEST(a_request_and_a_patch_result_are_answered_and_told),
        TEST(a_silent_newcomer_deposes_nobody),
        TEST(a_successor_takes_over_and_the_older_is_closed_with_a_reason),
        TEST(a_list_of_a_lower_epoch_is_refused_and_its_backend_closed),
        TEST(an_equal_or_higher_epoch_and_none_are_accepted),
        TEST(the_newest_that_waits_follows_an_owner_that_goes),
        TEST(of_too_many_that_wait_the_oldest_goes_never_the_owner),
        TEST(a_detection_goes_out_at_once_with_the_displays_session),
        TEST(late_detections_patch_the_session_they_were_seen_in),
        TEST(no_detection_overtakes_one_that_waits),
        TEST(what_a_lost_connection_had_not_taken_goes_to_the_next_backend),
        TEST(what_comes_back_keeps_to_the_bound_and_a_successor_gets_the_rest),
        TEST(a_full_queue_drops_its_oldest_and_so_does_a_lower_bound),
        TEST(a_display_in_neither_takes_no_room),
        TEST(the_log_of_the_specification_plays_message_by_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
