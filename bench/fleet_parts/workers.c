/* Many detector workers in one process, for bench/fleet: each at a loopback address of its own,
 * with the worker protocol over real sockets, and without cameras.
 *
 *   baton-bench-workers COUNT PORT [REPORT_MS]
 *
 * Worker I listens at 127.1.(I / 250).(I % 250 + 1):PORT. Lines on standard input:
 *
 *   expect N         so many subscriptions are declared
 *   kill I, start I  worker I ends, as a process that is killed; it is there again, with nothing
 *   rate N           all workers together send N detections a second
 *   listen PORT      hears the detections by /events of a process there
 *   stats            prints what was counted
 *
 * A line of JSON on standard output for each change from whole to not whole and back, with the time
 * (CLOCK_BOOTTIME). Whole: each subscription is in the list of exactly one worker that lives, whose
 * backend is connected and has sent the list on this connection.
 */
#include "listener.h"

#include "base/clock.h"
#include "protocol/protocol.h"
#include "web/upgrade.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

enum { WORKERS_MAX = 10000, DETECTIONS_MS = 5, ADDRESS_MAX = 64 };

struct place { /* a subscription, wherever it is */
    char *id;
    unsigned held;  /* workers alive that have it in their list */
    unsigned owned; /* of these, with a backend that has sent the list */
    UT_hash_handle hh;
};

struct worker {
    unsigned number;
    struct web_server *server;  /* NULL: it is dead */
    struct web_socket *backend; /* NULL: none is connected */
    bool is_listed;             /* the backend has sent a list */
    struct place **list;
    int64_t *models;
    size_t count;
    size_t turn; /* of the next detection */
    uint64_t lists;
};

static uv_loop_t loop;
static struct worker workers[WORKERS_MAX];
static struct place *places;
static unsigned worker_count, port, report_ms = 2000;
static size_t expected, single, doubles; /* places owned once; held more than once */
static size_t doubles_most;
static bool is_whole;
static uint64_t sent, blocked, lists;
static double rate, due;
static unsigned next_worker;
static uv_timer_t reports, detections;

static void judge(void)
{
    bool now_whole = expected > 0 && single == expected && doubles == 0;

    doubles_most = doubles > doubles_most ? doubles : doubles_most;
    if (now_whole != is_whole) {
        is_whole = now_whole;
        (void)printf("{\"event\":\"%s\",\"at_ns\":%" PRId64 ",\"owned\":%zu,\"doubles\":%zu}\n",
                     is_whole ? "whole" : "broken", clock_now().ns, single, doubles);
        (void)fflush(stdout);
    }
}

static void hold(struct place *place, int by)
{
    doubles -= place->held > 1;
    place->held += (unsigned)by;
    doubles += place->held > 1;
}

static void own(struct place *place, int by)
{
    single -= place->owned == 1;
    place->owned += (unsigned)by;
    single += place->owned == 1;
}

static void disown(struct worker *worker)
{
    for (size_t i = 0; worker->is_listed && i < worker->count; i++) {
        own(worker->list[i], -1);
    }
    worker->is_listed = false;
}

static void drop_list(struct worker *worker)
{
    disown(worker);
    for (size_t i = 0; i < worker->count; i++) {
        hold(worker->list[i], -1);
    }
    free(worker->list);
    free(worker->models);
    worker->list = NULL;
    worker->models = NULL;
    worker->count = 0;
}

static struct place *place_of(const char *id)
{
    struct place *place;

    HASH_FIND_STR(places, id, place);
    if (!place) {
        place = calloc(1, sizeof(*place));
        place->id = strdup(id);
        HASH_ADD_KEYPTR(hh, places, place->id, strlen(place->id), place);
    }
    return place;
}

static void report(struct worker *worker)
{
    struct subscription *list = calloc(worker->count + 1, sizeof(*list));
    struct subscription **entries = calloc(worker->count + 1, sizeof(struct subscription *));
    const struct usage usage = {.cpu = 20 + (double)worker->count, .memory = 30};
    char *text;

    for (size_t i = 0; i < worker->count; i++) {
        list[i] = (struct subscription){.identifier = worker->list[i]->id,
                                        .model_id = worker->models[i],
                                        .model_name = (char *)"cars",
                                        .is_online = true};
        entries[i] = &list[i];
    }
    text = format_state_report(&usage, entries, worker->count);
    if (text && worker->backend) {
        (void)web_socket_send(worker->backend, text, strlen(text));
    }
    free(text);
    free(entries);
    free(list);
}

static void take_list(struct worker *worker, const struct command *command)
{
    drop_list(worker);
    worker->count = command->subscription_count;
    worker->list = calloc(worker->count + 1, sizeof(struct place *));
    worker->models = calloc(worker->count + 1, sizeof(*worker->models));
    for (size_t i = 0; i < worker->count; i++) {
        worker->list[i] = place_of(command->subscriptions[i]->identifier);
        worker->models[i] = command->subscriptions[i]->model_id;
        hold(worker->list[i], 1);
        own(worker->list[i], 1);
    }
    worker->is_listed = true;
    lists++;
    report(worker);
    judge();
}

static void on_text(void *userdata, const char *text, size_t bytes)
{
    struct worker *worker = userdata;
    struct command command;
    struct baton_error error;

    if (command_parse(text, bytes, sizeof(struct subscription), &command, &error) != BATON_OK) {
        (void)fprintf(stderr, "worker %u: %s\n", worker->number, error.message);
        exit(1);
    }
    if (command.type == COMMAND_SET_SUBSCRIPTION_LIST) {
        take_list(worker, &command);
    } else if (command.type == COMMAND_REQUEST_STATE) {
        report(worker);
    }
    command_fini(&command);
}

static void on_refused(void *userdata, const char *reason)
{
    const struct worker *worker = userdata;

    (void)fprintf(stderr, "worker %u: %s\n", worker->number, reason);
}

static void on_drain(void *userdata)
{
    (void)userdata;
}

static void on_close(void *userdata)
{
    struct worker *worker = userdata;

    worker->backend = NULL;
    disown(worker);
    judge();
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct worker *worker = userdata;
    const struct web_socket_options options = {.message_max = PROTOCOL_MESSAGE_MAX,
                                               .backlog_max = 1 << 20,
                                               .ping_after_s = 20,
                                               .callbacks = {.on_text = on_text,
                                                             .on_refused = on_refused,
                                                             .on_drain = on_drain,
                                                             .on_closing = on_drain,
                                                             .on_close = on_close},
                                               .userdata = worker};

    if (web_socket_fault(web_exchange_request(exchange)) || worker->backend) {
        web_refuse(exchange, 409, "another backend is connected");
        return;
    }
    worker->backend = web_socket_open(exchange, &options);
    report(worker);
}

static void start(struct worker *worker)
{
    char host[ADDRESS_MAX];
    struct baton_error error;
    struct web_config config = {.loop = &loop,
                                .host = host,
                                .port = (int)port,
                                .connections_max = 16,
                                .head_within_s = 10,
                                .read_within_s = 60,
                                .head_max = (size_t)16 * 1024,
                                .answer_max = PROTOCOL_MESSAGE_MAX,
                                .callbacks = {.on_request = on_request},
                                .userdata = worker};

    (void)snprintf(host, sizeof(host), "127.1.%u.%u", worker->number / 250,
                   worker->number % 250 + 1);
    if (!worker->server && web_server_open(&worker->server, &config, &error) != BATON_OK) {
        (void)fprintf(stderr, "worker %u: %s\n", worker->number, error.message);
        exit(1);
    }
}

static void end(struct worker *worker)
{
    struct web_server *server = worker->server;

    worker->server = NULL;
    drop_list(worker);
    judge();
    web_server_close(server); /* freed with the process */
}

/* ---- Detections ------------------------------------------------------------------------------ */

static void detect(struct worker *worker)
{
    struct timespec now;
    char stamp[PROTOCOL_TIMESTAMP_BYTES], text[512];
    size_t at = worker->turn++ % worker->count;
    int bytes;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    format_timestamp((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, stamp);
    bytes = snprintf(text, sizeof(text),
                     "{\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"%s\","
                     "\"timestamp\":\"%s\",\"data\":{\"detection\":{\"carModel\":\"Civic\","
                     "\"carBrand\":\"Honda\",\"carYear\":2023,\"bodyType\":\"Sedan\","
                     "\"licensePlateText\":\"ABCD1234\",\"licensePlateConfidence\":0.95,"
                     "\"number\":%" PRIu64 ",\"sentNs\":\"%" PRId64 "\"},\"modelId\":%" PRId64
                     ",\"modelName\":\"cars\"}}",
                     worker->list[at]->id, stamp, sent, clock_now().ns, worker->models[at]);
    if (web_socket_send(worker->backend, text, (size_t)bytes)) {
        sent++;
    } else {
        blocked++;
    }
}

static void on_detections(uv_timer_t *timer)
{
    (void)timer;
    due += rate * DETECTIONS_MS / 1000;
    for (unsigned tried = 0; due >= 1 && tried < worker_count; tried++) {
        struct worker *worker = &workers[next_worker++ % worker_count];

        if (worker->backend && worker->count > 0) {
            detect(worker);
            due -= 1;
            tried = 0;
        }
    }
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void print_stats(void)
{
    unsigned connected = 0, alive = 0;
    double p50, p99, most;

    listener_ages(&p50, &p99, &most);
    for (unsigned i = 0; i < worker_count; i++) {
        connected += workers[i].backend != NULL;
        alive += workers[i].server != NULL;
    }
    (void)printf(
        "{\"event\":\"stats\",\"at_ns\":%" PRId64 ",\"sent\":%" PRIu64 ",\"blocked\":%" PRIu64
        ",\"lists\":%" PRIu64 ",\"connected\":%u,\"alive\":%u,"
        "\"owned\":%zu,\"doubles\":%zu,\"doubles_most\":%zu,\"whole\":%s,\"heard\":%" PRIu64
        ",\"age_p50_ms\":%.3f,\"age_p99_ms\":%.3f,\"age_max_ms\":%.3f}\n",
        clock_now().ns, sent, blocked, lists, connected, alive, single, doubles, doubles_most,
        is_whole ? "true" : "false", listener_heard(), p50, p99, most);
    (void)fflush(stdout);
}

static void obey(const char *line)
{
    char word[16];
    double number = 0;
    int words = sscanf(line, "%15s %lf", word, &number);
    unsigned index = (unsigned)number;

    if (words < 1) {
        return;
    }
    if (strcmp(word, "expect") == 0) {
        expected = index;
        judge();
    } else if (strcmp(word, "rate") == 0) {
        rate = number;
        due = 0;
    } else if (strcmp(word, "listen") == 0) {
        listener_open(&loop, index);
    } else if (strcmp(word, "stats") == 0) {
        print_stats();
    } else if (index < worker_count && strcmp(word, "kill") == 0 && workers[index].server) {
        end(&workers[index]);
    } else if (index < worker_count && strcmp(word, "start") == 0) {
        start(&workers[index]);
    }
}

static void on_alloc(uv_handle_t *handle, size_t bytes, uv_buf_t *ret)
{
    static char space[64 * 1024];
    (void)handle;
    (void)bytes;
    *ret = uv_buf_init(space, sizeof(space));
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    static char line[256];
    static size_t used;
    (void)stream;

    if (count < 0) {
        exit(0);
    }
    for (ssize_t i = 0; i < count; i++) {
        if (buffer->base[i] == '\n') {
            line[used] = '\0';
            used = 0;
            obey(line);
        } else if (used + 1 < sizeof(line)) {
            line[used++] = buffer->base[i];
        }
    }
}

/* A few in each call, so that they are spread over the interval. */
static void on_reports(uv_timer_t *timer)
{
    static unsigned next;
    static double share;
    (void)timer;

    share += worker_count * 10.0 / report_ms;
    while (share >= 1) {
        report(&workers[next++ % worker_count]);
        share -= 1;
    }
}

int main(int argc, char **argv)
{
    static uv_pipe_t input;

    if (argc < 3 || strtoul(argv[1], NULL, 10) > WORKERS_MAX) {
        (void)fputs("usage: baton-bench-workers COUNT PORT [REPORT_MS]\n", stderr);
        return 64;
    }
    worker_count = (unsigned)strtoul(argv[1], NULL, 10);
    port = (unsigned)strtoul(argv[2], NULL, 10);
    report_ms = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : report_ms;
    (void)uv_loop_init(&loop);
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].number = i;
        start(&workers[i]);
    }
    (void)uv_timer_init(&loop, &reports);
    (void)uv_timer_init(&loop, &detections);
    (void)uv_timer_start(&reports, on_reports, 10, 10);
    (void)uv_timer_start(&detections, on_detections, DETECTIONS_MS, DETECTIONS_MS);
    (void)uv_pipe_init(&loop, &input, 0);
    (void)uv_pipe_open(&input, 0);
    (void)uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
    (void)puts("{\"event\":\"ready\"}");
    (void)fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
