/* The worker in C, driven by lines of JSON: test_same.py compares what it does with the clients'.
 *
 *   {"do":"new"}  {"do":"session","session":N}  {"do":"hear","message":"…"}  {"do":"tick"}
 *   {"do":"leave"}  {"do":"end","id":"…","success":true}
 *                   ─▶ [["start","ID",EPOCH], ["halt","ID",EPOCH], MESSAGE, …, IS_IDLE]
 */
#include "work/worker.h"
#include "work/message.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 8 };

struct run {
    char id[WORK_ID_MAX];
    uint64_t epoch; /* 0: none */
};

static struct {
    struct work_worker *worker;
    instant now;
    struct run runs[RUNS_MAX];
} play;

static void begin(void)
{
    struct work_worker_options options = {.name = "w", .slots = 2, .report_interval = SPAN_S(1)};

    work_worker_free(play.worker);
    memset(&play, 0, sizeof(play));
    play.worker = work_worker_new(&options);
}

static void hear(const char *text)
{
    struct work_message message;

    if (work_message_read(&message, text, strlen(text), NULL) == BATON_OK) {
        work_worker_hear(play.worker, &message, play.now);
        work_message_fini(&message);
    }
}

/* NULL: it does not run. */
static struct run *find_run(const char *id)
{
    struct run *run = NULL;

    for (size_t i = 0; i < RUNS_MAX && !run; i++) {
        run = play.runs[i].epoch != 0 && strcmp(play.runs[i].id, id) == 0 ? &play.runs[i] : NULL;
    }
    return run;
}

static void end(const char *id, bool is_lost, bool is_success)
{
    struct run *run = find_run(id);

    if (run) {
        struct work_result result = {.id = run->id,
                                     .epoch = run->epoch,
                                     .is_success = is_success,
                                     .began_unix_ms = 1,
                                     .ended_unix_ms = 2};
        run->epoch = 0;
        if (is_lost) {
            work_worker_gave_up(play.worker, result.id, result.epoch);
        } else {
            work_worker_ended(play.worker, &result, play.now);
        }
    }
}

static void step(const json_t *line)
{
    const char *verb = json_string_value(json_object_get(line, "do"));

    if (strcmp(verb, "new") == 0) {
        begin();
    } else if (strcmp(verb, "session") == 0) {
        work_worker_session(
            play.worker, (uint64_t)json_integer_value(json_object_get(line, "session")), play.now);
    } else if (strcmp(verb, "hear") == 0) {
        hear(json_string_value(json_object_get(line, "message")));
    } else if (strcmp(verb, "tick") == 0) {
        play.now = instant_add(play.now, SPAN_S(1));
        work_worker_tick(play.worker, play.now);
    } else if (strcmp(verb, "leave") == 0) {
        work_worker_leave(play.worker, play.now);
    } else {
        end(json_string_value(json_object_get(line, "id")), strcmp(verb, "lose") == 0,
            json_is_true(json_object_get(line, "success")));
    }
}

static void note_run(const struct work_order *order)
{
    size_t free_one = 0;

    while (play.runs[free_one].epoch != 0) {
        free_one++; /* the test has fewer items than there are places */
    }
    (void)snprintf(play.runs[free_one].id, WORK_ID_MAX, "%s", order->id);
    play.runs[free_one].epoch = order->epoch;
}

static void take_orders(json_t *out)
{
    struct work_order order;

    while (work_worker_next_order(play.worker, &order)) {
        bool is_start = order.type == WORK_START;
        (void)json_array_append_new(out, json_pack("[ssI]", is_start ? "start" : "halt", order.id,
                                                   (json_int_t)order.epoch));
        if (is_start) {
            note_run(&order);
        }
    }
}

static void take_messages(json_t *out)
{
    bool has_more = true;

    while (has_more) {
        struct buffer buffer;
        buffer_init(&buffer, WORK_MESSAGE_MAX);
        has_more = work_worker_next_message(play.worker, &buffer);
        if (has_more) {
            (void)json_array_append_new(
                out, json_loadb((const char *)buffer.data, buffer.bytes, 0, NULL));
        }
        buffer_fini(&buffer);
    }
}

int main(void)
{
    char *text = NULL;
    size_t room = 0;

    while (getline(&text, &room, stdin) > 0) {
        json_t *line = json_loads(text, 0, NULL), *out = json_array();
        step(line);
        take_orders(out);
        take_messages(out);
        (void)json_array_append_new(out, json_boolean(work_worker_running(play.worker) == 0 &&
                                                      work_worker_results(play.worker) == 0));
        (void)json_dumpf(out, stdout, JSON_COMPACT);
        (void)puts("");
        (void)fflush(stdout);
        json_decref(out);
        json_decref(line);
    }
    free(text);
    work_worker_free(play.worker);
    return 0;
}
