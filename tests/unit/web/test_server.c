/* A server on a loop of its own thread, and clients that are sockets of the test. */
#include "web/server.h"

#include "cmocka_all.h"
#include "lib/accept_fault.h"
#include "lib/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 4 << 20, PARTS = 64, PART_BYTES = 65536, SMALL = 8 };

struct world {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    sem_t holds, goes_on; /* of the loop's thread, in "/hold" */
    struct web_server *server;
    /* Written by the loop's thread, read by the test's. */
    struct web_exchange *_Atomic waiting; /* for a later answer */
    _Atomic unsigned parts;
    _Atomic unsigned gone;
    _Atomic unsigned early; /* drains with bytes that are not taken */
};

/* Of the loop's thread: the allocation of this number fails, counted from 1; 0: none does. */
static _Atomic int failing;
static _Thread_local bool is_loops_thread;

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

static bool is_short(void)
{
    return is_loops_thread && failing > 0 && --failing == 0;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_short() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_malloc(size_t bytes)
{
    return is_short() ? NULL : __real_malloc(bytes);
}

static void text(struct web_exchange *exchange, const char *body)
{
    struct web_answer answer = {
        .status = 200, .type = "text/plain", .body = body, .bytes = strlen(body)};
    web_answer(exchange, &answer);
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    static const struct web_answer stream = {.status = 200, .type = "text/event-stream"};
    struct world *world = userdata;
    const struct web_request *request = web_exchange_request(exchange);

    if (strcmp(request->target, "/stream") == 0) {
        web_begin(exchange, &stream);
    } else if (strcmp(request->target, "/hold") == 0) {
        (void)sem_post(&world->holds);
        (void)sem_wait(&world->goes_on); /* and it has no answer */
    } else if (strcmp(request->target, "/who") == 0) {
        text(exchange, web_exchange_address(exchange));
    } else if (strcmp(request->target, "/later") == 0) {
        world->waiting = exchange;
    } else if (strcmp(request->target, "/now") == 0) {
        text(world->waiting, "later");
        text(exchange, "now");
    } else if (request->body.bytes > 0) {
        char *body = strndup((const char *)request->body.data, request->body.bytes);
        text(exchange, body);
        free(body);
    } else {
        text(exchange, request->target);
    }
}

static size_t body_limit(void *userdata, const struct web_request *request)
{
    return strcmp(request->target, "/small") == 0 ? SMALL : SIZE_MAX;
}

static void on_drain(void *userdata, struct web_exchange *exchange)
{
    struct world *world = userdata;
    static char part[PART_BYTES];

    memset(part, 'p', sizeof(part));
    world->early += web_exchange_backlog(exchange) > 0;
    if (world->parts++ < PARTS) {
        web_part(exchange, part, 1);
        web_part(exchange, part, sizeof(part) - 1);
    } else {
        web_finish(exchange);
    }
}

static void on_gone(void *userdata, struct web_exchange *exchange)
{
    struct world *world = userdata;

    world->gone++;
}

static void on_stop(uv_async_t *handle)
{
    struct world *world = handle->data;

    web_server_close(world->server);
    uv_close((uv_handle_t *)handle, NULL);
}

static void *serve(void *userdata)
{
    struct world *world = userdata;

    is_loops_thread = true;
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int setup_with(void **state, unsigned answer_within_s)
{
    struct world *world = calloc(1, sizeof(*world));
    struct web_config config = {.loop = &world->loop,
                                .host = "127.0.0.1",
                                .connections_max = 8,
                                .head_within_s = 3600,
                                .read_within_s = 1,
                                .answer_within_s = answer_within_s,
                                .head_max = 4096,
                                .body_max = 1024,
                                .answer_max = ROOM,
                                .callbacks = {.on_request = on_request,
                                              .body_limit = body_limit,
                                              .on_drain = on_drain,
                                              .on_gone = on_gone},
                                .userdata = world};
    struct baton_error error;

    assert_int_equal(sem_init(&world->holds, 0, 0) | sem_init(&world->goes_on, 0, 0), 0);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(web_server_open(&world->server, &config, &error), 0);
    assert_int_equal(uv_async_init(&world->loop, &world->stop, on_stop), 0);
    world->stop.data = world;
    assert_int_equal(pthread_create(&world->thread, NULL, serve, world), 0);
    *state = world;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 3600);
}

static int setup_impatient(void **state)
{
    return setup_with(state, 1);
}

static void stop(struct world *world)
{
    uv_async_send(&world->stop);
    pthread_join(world->thread, NULL);
    web_server_free(world->server);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    world->server = NULL;
}

static int teardown(void **state)
{
    struct world *world = *state;

    if (world->server != NULL) {
        stop(world);
    }
    free(world);
    return 0;
}

static int dial(const struct world *world)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)web_server_port(world->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void say(int fd, const char *bytes)
{
    assert_int_equal(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
}

/* All that comes until the server hangs up; malloc'ed. */
static char *hear(int fd)
{
    char *ret = calloc(1, 2 * ROOM);
    size_t used = 0;
    ssize_t count;

    while (used < 2 * ROOM - 1 && (count = read(fd, ret + used, 2 * ROOM - 1 - used)) > 0) {
        used += (size_t)count;
    }
    (void)close(fd);
    return ret;
}

static char *talk(const struct world *world, const char *bytes)
{
    int fd = dial(world);

    say(fd, bytes);
    return hear(fd);
}

#define HEAD(target) "GET " target " HTTP/1.1\r\nHost: x\r\n"
#define LAST         "Connection: close\r\n\r\n"

/* The bodies must come in this order. */
static void expect_order(const char *heard, const char *const *bodies)
{
    for (size_t i = 0; bodies[i] != NULL; i++) {
        heard = strstr(heard, bodies[i]);
        assert_non_null(heard);
        heard += strlen(bodies[i]);
    }
}

static void requests_of_one_write_are_answered_in_order(void **state)
{
    static const char *const order[] = {"\r\n\r\n/a", "\r\n\r\n/b", "\r\n\r\n/c", NULL};
    char *heard = talk(*state, HEAD("/a") "\r\n" HEAD("/b") "\r\n" HEAD("/c") LAST);

    expect_order(heard, order);
    free(heard);
}

static void a_thousand_requests_ahead_need_no_stack(void **state)
{
    enum { COUNT = 1000 };
    static const char one[] = HEAD("/a") "\r\n";
    char *bytes = malloc(COUNT * sizeof(one) + 64), *at = bytes;
    size_t answers = 0;

    for (size_t i = 0; i < COUNT; i++) {
        at = stpcpy(at, one);
    }
    (void)stpcpy(at, HEAD("/z") LAST);
    at = talk(*state, bytes);
    for (const char *next = at; (next = strstr(next, "HTTP/1.1 200")) != NULL; next++) {
        answers++;
    }
    assert_int_equal(answers, COUNT + 1);
    free(at);
    free(bytes);
}

static void a_request_waits_for_the_answer_before_it(void **state)
{
    static const char *const order[] = {"\r\n\r\nlater", "\r\n\r\n/a", NULL};
    const struct world *world = *state;
    int fd = dial(world);
    char byte, *heard;

    say(fd, HEAD("/later") "\r\n" HEAD("/a") LAST);
    while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0) {
        int other = dial(world); /* its answer shows that the first request was read, or comes */
        say(other, world->waiting != NULL ? HEAD("/now") LAST : HEAD("/b") LAST);
        free(hear(other));
    }
    heard = hear(fd);
    expect_order(heard, order);
    free(heard);
}

static void a_client_is_asked_for_its_body(void **state)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char first[sizeof(go_on)] = "", *heard;
    int fd = dial(*state);

    say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            "Expect: 100-continue\r\n" LAST);
    assert_int_equal(recv(fd, first, sizeof(go_on) - 1, MSG_WAITALL), sizeof(go_on) - 1);
    assert_string_equal(first, go_on);
    say(fd, "3\r\nabc\r\n0\r\n\r\n");
    heard = hear(fd);
    assert_non_null(strstr(heard, "\r\n\r\nabc"));
    free(heard);
}

static void a_refusal_has_a_reason_and_is_the_last_answer(void **state)
{
    char *heard = talk(*state, "GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" HEAD("/b") LAST);

    assert_ptr_equal(strstr(heard, "HTTP/1.1 400 Bad Request\r\n"), heard);
    assert_non_null(strstr(heard, "{\"error\":\"a request has one Host\"}\n"));
    assert_non_null(strstr(heard, "connection: close\r\n"));
    assert_null(strstr(heard, "200"));
    free(heard);
}

static void a_head_request_gets_the_length_and_no_body(void **state)
{
    char *heard = talk(*state, "HEAD /abc HTTP/1.1\r\nHost: x\r\n" LAST);

    assert_non_null(strstr(heard, "content-length: 4\r\n"));
    assert_string_equal(strstr(heard, "\r\n\r\n"), "\r\n\r\n");
    free(heard);
}

static void a_stream_comes_in_chunks_to_its_end(void **state)
{
    char *heard = talk(*state, HEAD("/stream") LAST);
    const char *at = strstr(heard, "\r\n\r\n") + 4;
    size_t bytes = 0;

    assert_non_null(strstr(heard, "transfer-encoding: chunked\r\n"));
    for (;;) {
        char *end;
        size_t chunk = strtoul(at, &end, 16);
        assert_ptr_equal(strstr(end, "\r\n"), end);
        at = end + 2 + chunk + 2;
        if (chunk == 0) {
            break;
        }
        bytes += chunk;
    }
    assert_int_equal(bytes, PARTS * PART_BYTES);
    free(heard);
}

static void a_client_of_http_1_0_gets_no_chunks(void **state)
{
    char *heard = talk(*state, "GET /stream HTTP/1.0\r\n\r\n");
    const char *body = strstr(heard, "\r\n\r\n") + 4;

    assert_null(strstr(heard, "transfer-encoding"));
    assert_int_equal(strspn(body, "p"), PARTS * PART_BYTES);
    assert_int_equal(strlen(body), PARTS * PART_BYTES);
    free(heard);
}

/* The parts wait for the client, and the client is cut off. */
static void a_client_that_reads_nothing_is_cut_off(void **state)
{
    struct world *world = *state;
    const int small = 4096;
    int fd = dial(world);
    char *heard;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    say(fd, HEAD("/stream") "\r\n");
    while (world->gone == 0) {
        heard = talk(world, HEAD("/a") LAST);
        assert_non_null(strstr(heard, "200"));
        free(heard);
    }
    assert_true(world->parts < PARTS);
    assert_int_equal(world->early, 0);
    (void)close(fd);
}

static void a_connection_without_memory_is_ended_and_the_next_one_is_served(void **state)
{
    struct world *world = *state;

    for (int number = 1; number <= 2; number++) { /* of the exchange, and of its stream */
        char byte, *heard;
        int fd;

        failing = number;
        fd = dial(world);
        assert_true(read(fd, &byte, 1) <= 0);
        (void)close(fd);
        assert_int_equal(failing, 0);
        heard = talk(world, HEAD("/a") LAST);
        assert_non_null(strstr(heard, "200"));
        free(heard);
    }
}

static void a_connection_waits_while_the_system_has_no_descriptor(void **state)
{
    static const char request[] = HEAD("/a") "\r\n";
    struct world *world = *state;
    int first = dial(world), next;
    char bytes[256], *heard;

    say(first, request);
    assert_true(read(first, bytes, sizeof(bytes)) > 0);
    accept_fault = ENFILE;
    accept_failures = 0;
    next = dial(world);
    say(next, HEAD("/b") LAST);
    while (accept_failures < 2) {
        say(first, request); /* others are served meanwhile */
        assert_true(read(first, bytes, sizeof(bytes)) > 0);
    }
    accept_fault = 0;
    heard = hear(next);
    assert_non_null(strstr(heard, "\r\n\r\n/b"));
    free(heard);
    (void)close(first);
}

static void the_oldest_silent_connection_makes_room(void **state)
{
    enum { SILENT = 9 };
    int silent[SILENT];
    char byte, *heard;

    for (int i = 0; i < SILENT; i++) {
        silent[i] = dial(*state);
    }
    assert_int_equal(read(silent[0], &byte, 1), 0);
    say(silent[SILENT - 1], HEAD("/a") LAST);
    heard = hear(silent[SILENT - 1]);
    assert_non_null(strstr(heard, "200"));
    free(heard);
    for (int i = 0; i < SILENT - 1; i++) {
        (void)close(silent[i]);
    }
}

/* More than there is room for come while the loop is busy: it accepts all, and then reads. The
 * connections are the test's to close, but for the one that keeps the loop busy. */
static void come_at_once(struct world *world, const char *bytes, int *ret_clients, int count)
{
    int busy = dial(world);

    say(busy, HEAD("/hold") LAST);
    assert_int_equal(sem_wait(&world->holds), 0);
    for (int i = 0; i < count; i++) {
        ret_clients[i] = dial(world);
        say(ret_clients[i], bytes);
    }
    assert_int_equal(sem_post(&world->goes_on), 0);
    (void)close(busy);
}

static void no_connection_makes_room_whose_request_is_here(void **state)
{
    enum { CLIENTS = 24 };
    int clients[CLIENTS];

    come_at_once(*state, HEAD("/a") LAST, clients, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        char *heard = hear(clients[i]);
        assert_ptr_equal(strstr(heard, "HTTP/1.1 200"), heard);
        free(heard);
    }
}

static void each_connection_that_is_too_much_makes_another_one_go(void **state)
{
    enum { CLIENTS = 24, ROOM_FOR = 8 };
    int clients[CLIENTS];
    char byte;

    come_at_once(*state, "", clients, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        if (i < CLIENTS - ROOM_FOR) {
            assert_int_equal(read(clients[i], &byte, 1), 0);
        }
        (void)close(clients[i]);
    }
}

/* The limit of one request does not last: the second one's body is longer. */
static void a_body_is_limited_by_its_head(void **state)
{
    static const char *const order[] = {"\r\n\r\n12345678", "\r\n\r\n123456789", "HTTP/1.1 413",
                                        "{\"error\":\"the body is too large\"}", NULL};
    char *heard =
        talk(*state, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n12345678"
                     "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123456789"
                     "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");

    expect_order(heard, order);
    free(heard);
    heard = talk(*state, "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "9\r\n123456789\r\n0\r\n\r\n");
    assert_ptr_equal(strstr(heard, "HTTP/1.1 413"), heard);
    free(heard);
}

static void a_client_has_an_address(void **state)
{
    char *heard = talk(*state, HEAD("/who") LAST);

    assert_non_null(strstr(heard, "\r\n\r\n127.0.0.1:"));
    free(heard);
}

/* A reset would take the answer with it. */
static void a_refused_client_that_still_sends_gets_its_answer(void **state)
{
    enum { BYTES = 2 << 20 };
    char *much = malloc(BYTES), *heard;
    int fd = dial(*state);

    memset(much, 'y', BYTES);
    say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
    for (size_t at = 0; at < BYTES;) {
        ssize_t count = send(fd, much + at, BYTES - at, MSG_NOSIGNAL);
        assert_true(count > 0);
        at += (size_t)count;
    }
    heard = hear(fd);
    assert_ptr_equal(strstr(heard, "HTTP/1.1 413"), heard);
    free(heard);
    free(much);
}

static void a_closed_server_tells_of_the_answers_that_are_owed(void **state)
{
    struct world *world = *state;
    int fd = dial(world);

    say(fd, HEAD("/later") "\r\n");
    while (world->waiting == NULL) {
        free(talk(world, HEAD("/a") LAST));
    }
    stop(world);
    assert_int_equal(world->gone, 1);
    (void)close(fd);
}

/* The reset is there when the server reads the request: the connection ends before its on_drain. */
static void a_client_that_resets_at_once_gets_no_part(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    struct world *world = *state;

    for (int i = 0; i < 50; i++) {
        int fd = dial(world);
        say(fd, HEAD("/stream") "\r\n");
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
        (void)close(fd);
    }
    free(talk(world, HEAD("/a") LAST));
}

/* Once the program hears that nobody waits any more, it must not answer. */
static void an_answer_that_takes_too_long_is_a_503(void **state)
{
    struct world *world = *state;
    char *heard = talk(world, HEAD("/later") "\r\n" HEAD("/a") LAST);

    assert_ptr_equal(strstr(heard, "HTTP/1.1 503 Service Unavailable\r\n"), heard);
    assert_non_null(strstr(heard, "{\"error\":\"the answer was not ready in time\"}\n"));
    assert_null(strstr(heard, "200"));
    assert_int_equal(world->gone, 1);
    free(heard);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(requests_of_one_write_are_answered_in_order),
        TEST(a_thousand_requests_ahead_need_no_stack),
        TEST(a_request_waits_for_the_answer_before_it),
        TEST(a_client_is_asked_for_its_body),
        TEST(a_body_is_limited_by_its_head),
        TEST(a_client_has_an_address),
        TEST(a_refusal_has_a_reason_and_is_the_last_answer),
        TEST(a_head_request_gets_the_length_and_no_body),
        TEST(a_stream_comes_in_chunks_to_its_end),
        TEST(a_client_of_http_1_0_gets_no_chunks),
        TEST(a_client_that_reads_nothing_is_cut_off),
        TEST(a_connection_without_memory_is_ended_and_the_next_one_is_served),
        TEST(a_connection_waits_while_the_system_has_no_descriptor),
        TEST(the_oldest_silent_connection_makes_room),
        TEST(no_connection_makes_room_whose_request_is_here),
        TEST(each_connection_that_is_too_much_makes_another_one_go),
        TEST(a_refused_client_that_still_sends_gets_its_answer),
        TEST(a_closed_server_tells_of_the_answers_that_are_owed),
        TEST(a_client_that_resets_at_once_gets_no_part),
        cmocka_unit_test_setup_teardown(an_answer_that_takes_too_long_is_a_503, setup_impatient,
                                        teardown),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
