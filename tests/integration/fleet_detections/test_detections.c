/* Detections of workers, known in every process once. */
#include "fleet/detections/detections.h"
#include "integration/fleet_state/stand.h"
#include "protocol/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 3000 }; /* more than one message has, of each process */

struct process {
    struct detections *detections;
    size_t lines;
    char latest[1024];                  /* line */
    bool is_own;                        /* of the latest line */
    size_t accepted, refused;           /* calls */
    char display[64], reason[TEXT_MAX]; /* of the latest of each */
    char name[8];
};
static struct process processes[PEERS];

static void on_line(void *userdata, const char *line, size_t bytes, bool is_own)
{
    struct process *process = userdata;

    assert_int_equal(strlen(line), bytes);
    process->lines++;
    process->is_own = is_own;
    (void)snprintf(process->latest, sizeof(process->latest), "%s", line);
}

static void on_accepted(void *userdata, const char *display, const json_t *attributes)
{
    struct process *process = userdata;

    assert_true(json_is_object(attributes));
    process->accepted++;
    (void)snprintf(process->display, sizeof(process->display), "%s", display);
}

static void on_refused(void *userdata, const char *worker, const struct baton_error *error)
{
    struct process *process = userdata;

    assert_string_equal(worker, "w1");
    process->refused++;
    (void)snprintf(process->reason, sizeof(process->reason), "%s", error->message);
}

static void open_detections(int number)
{
    struct process *process = &processes[number];
    const struct detections_config config = {.state = peers[number].state,
                                             .process = process->name,
                                             .on_line = on_line,
                                             .on_accepted = on_accepted,
                                             .on_refused = on_refused,
                                             .userdata = process};

    (void)snprintf(process->name, sizeof(process->name), "p%d", number);
    ASSERT_OK(detections_open(&process->detections, &config, failure));
}

/* Reads a message as a worker sends it. */
static json_t *message_of(const char *text)
{
    json_t *message;

    ASSERT_OK(worker_message_parse(text, strlen(text), &message, failure));
    return message;
}

static void take(int number, const char *text)
{
    json_t *message = message_of(text);

    detections_take(processes[number].detections, "w1", message);
    json_decref(message);
}

/* The n-th of a worker. */
static void take_numbered(int number, int n)
{
    char text[256];

    (void)snprintf(text, sizeof(text),
                   "{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"d1;c1\","
                   "\"timestamp\":\"t%d\",\"data\":{\"detection\":{\"carModel\":\"Civic\"},"
                   "\"modelId\":101,\"modelName\":\"LPR\"}}",
                   n);
    take(number, text);
}

/* What one process publishes reaches all of them: only then do they listen. */
static void await_listeners(void)
{
    for (int from = 0; from < PEERS; from++) {
        instant until = instant_add(clock_now(), SPAN_S(PATIENCE_S));

        for (int n = -1 - from * 100000;; n--) {
            bool is_everywhere = true;

            for (int to = 0; to < PEERS; to++) {
                processes[to].lines = 0;
            }
            take_numbered(from, n);
            for (int turns = 0; turns < 20; turns++) {
                (void)uv_run(&loop, UV_RUN_ONCE);
            }
            for (int to = 0; to < PEERS; to++) {
                is_everywhere = is_everywhere && processes[to].lines > 0;
            }
            if (is_everywhere) {
                break;
            }
            assert_true(instant_before(clock_now(), until));
        }
    }
}

static void open_all(void)
{
    memset(processes, 0, sizeof(processes));
    for (int i = 0; i < PEERS; i++) {
        stand_ready(i);
    }
    assert_int_equal(
        put(0, FLEET_MODEL, "{\"id\":101,\"name\":\"LPR\",\"url\":\"http://store/lpr\"}", 0, NULL),
        BATON_OK);
    assert_int_equal(put(0, FLEET_CAMERA, "{\"id\":\"c1\",\"rtspUrl\":\"rtsp://h/1\"}", 0, NULL),
                     BATON_OK);
    assert_int_equal(put(0, FLEET_DISPLAY, "{\"id\":\"d1\"}", 0, NULL), BATON_OK);
    assert_int_equal(
        put(0, FLEET_SUBSCRIPTION, "{\"display\":\"d1\",\"camera\":\"c1\",\"model\":101}", 0, NULL),
        BATON_OK);
    for (int i = 0; i < PEERS; i++) {
        AWAIT(fleet_state_count(peers[i].state, FLEET_SUBSCRIPTION) == 1);
        open_detections(i);
    }
    await_listeners();
    for (int i = 0; i < PEERS; i++) {
        processes[i].lines = processes[i].accepted = 0;
    }
}

static int tear_down(void **state)
{
    for (int i = 0; i < PEERS; i++) {
        detections_close(processes[i].detections);
        processes[i].detections = NULL;
    }
    return stand_tear_down(state);
}

static const char example[] =
    "{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"d1;c1\","
    "\"timestamp\":\"2025-07-14T12:34:56.789Z\",\"data\":{\"detection\":{\"carModel\":\"Civic\","
    "\"licensePlateConfidence\":0.95},\"modelId\":101,\"modelName\":\"LPR\"}}";

/* ---- Taking ---------------------------------------------------------------------------------- */

static void a_detection_reaches_every_process_once(void **state)
{
    json_t *list, *line;

    open_all();
    take(1, example);
    take(1, example);
    for (int i = 0; i < PEERS; i++) {
        AWAIT(processes[i].lines == 1);
        list = detections_list(processes[i].detections, "d1", "c1", 1);
        line = json_array_get(list, 0);
        assert_string_equal(json_string_value(json_object_get(line, "worker")), "w1");
        assert_string_equal(json_string_value(json_object_get(line, "process")), "p1");
        assert_int_equal(processes[i].is_own, i == 1);
        assert_string_equal(json_string_value(json_object_get(line, "timestamp")),
                            "2025-07-14T12:34:56.789Z");
        assert_true(json_is_null(json_object_get(line, "sessionId")));
        json_decref(list);
    }
    assert_int_equal(processes[1].accepted, 1);
    assert_string_equal(processes[1].display, "d1");
    assert_int_equal(processes[0].accepted, 0);
    assert_int_equal(detections_counters(processes[1].detections)->duplicates, 1);
}

static void what_a_worker_sends_again_to_another_process_is_known_there(void **state)
{
    open_all();
    take(1, example);
    AWAIT(processes[2].lines == 1);
    take(2, example);
    take_numbered(2, 1); /* comes after what process 2 may have published */
    for (int i = 0; i < PEERS; i++) {
        AWAIT(processes[i].lines == 2);
    }
    assert_int_equal(detections_counters(processes[2].detections)->duplicates, 1);
}

static void all_of_many_reach_every_process(void **state)
{
    open_all();
    for (int n = 0; n < MANY; n++) {
        take_numbered(n % PEERS, n);
    }
    for (int i = 0; i < PEERS; i++) {
        AWAIT(processes[i].lines == MANY);
        assert_int_equal(detections_counters(processes[i].detections)->unpublished, 0);
    }
}

static void a_detection_has_its_own_session_or_its_displays(void **state)
{
    char text[512];

    open_all();
    put_raw(0, "yard/data/d1", "{\"sessionId\":77}");
    AWAIT(fleet_state_data(peers[0].state, "d1", NULL));
    take(0, example);
    assert_non_null(strstr(processes[0].latest, "\"sessionId\":77,"));
    (void)snprintf(text, sizeof(text), "{\"sessionId\":5,%s", example + 1);
    *strstr(text, "56.789Z") = '7';
    take(0, text);
    assert_non_null(strstr(processes[0].latest, "\"sessionId\":5,"));
    (void)snprintf(text, sizeof(text), "{\"sessionId\":null,%s", example + 1);
    *strstr(text, "56.789Z") = '8';
    take(0, text);
    assert_non_null(strstr(processes[0].latest, "\"sessionId\":null,"));
}

static void what_the_fleet_does_not_know_is_refused(void **state)
{
    char text[512];

    open_all();
    (void)snprintf(text, sizeof(text), "%s", example);
    *strstr(text, "c1\"") = 'x';
    take(0, text);
    assert_int_equal(processes[0].refused, 1);
    assert_string_equal(processes[0].reason, "detection of \"d1;x1\": no such subscription");
    assert_int_equal(processes[0].lines, 0);
    assert_int_equal(detections_counters(processes[0].detections)->refused, 1);
}

static void what_is_closed_hears_nothing(void **state)
{
    open_all();
    detections_close(processes[2].detections);
    processes[2].detections = NULL;
    take(0, example);
    AWAIT(processes[1].lines == 1);
    take(1, example);
    assert_int_equal(processes[2].lines, 0);
}

static void what_waits_at_the_end_is_published(void **state)
{
    open_all();
    take(0, example);
    detections_close(processes[0].detections);
    processes[0].detections = NULL;
    AWAIT(processes[1].lines == 1 && processes[2].lines == 1);
}

/* ---- Strangers ------------------------------------------------------------------------------- */

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    *(int *)userdata = code;
}

static void publish(int number, const char *text)
{
    int code = 1;

    ASSERT_OK(store_publish(peers[number].member, "worker:responses", text, strlen(text),
                            on_published, &code, failure));
    AWAIT(code != 1);
    assert_int_equal(code, BATON_OK);
}

static void what_strangers_publish_is_no_detection(void **state)
{
    open_all();
    publish(0, "{\"type\":\"stateReport\"}\nnonsense\n\n{\"key\":\"\n{\"key\":\"0123456789abcdeX\","
               "\"worker\":\"w\"}\n{\"key\":\"0123456789abcdef\",\"worker\":\"w\"");
    publish(0, "");
    publish(0, "\n\n\n");
    publish(0, "{\"key\":\"0123456789abcdef\",\"worker\":\"w\"}");
    AWAIT(processes[1].lines == 1);
    assert_int_equal(detections_counters(processes[1].detections)->foreign, 2);
    AWAIT(processes[0].lines == 1 && processes[2].lines == 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, stand_set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        TEST(a_detection_reaches_every_process_once),
        TEST(what_a_worker_sends_again_to_another_process_is_known_there),
        TEST(all_of_many_reach_every_process),
        TEST(a_detection_has_its_own_session_or_its_displays),
        TEST(what_the_fleet_does_not_know_is_refused),
        TEST(what_is_closed_hears_nothing),
        TEST(what_waits_at_the_end_is_published),
        TEST(what_strangers_publish_is_no_detection),
    };
    int result;

    if (count != 2 || !stand_choose(arguments[1])) {
        return 64;
    }
    result = cmocka_run_group_tests(tests, NULL, NULL);
    stand_end();
    return result;
}
