#include "member/status_server.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef-token"

struct world {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct http_server *server;
    int port;
};

static void on_request(void *userdata, const char *path, struct http_answer *answer)
{
    if (strcmp(path, "/status") == 0 || strcmp(path, "/healthz") == 0) {
        answer->status = 200;
        answer->type = "application/json";
        buffer_put_text(&answer->body, "{\"ok\":true}\n");
    } else if (strcmp(path, "/big") == 0) {
        answer->status = 200;
        for (int i = 0; i < 20000; i++) {
            buffer_put_text(&answer->body, "0123456789012345678901234567890123456789012345678\n");
        }
    }
}

static void on_stop(uv_async_t *handle)
{
    struct world *world = handle->data;
    http_server_close(world->server);
    uv_close((uv_handle_t *)handle, NULL);
}

static void *serve(void *userdata)
{
    struct world *world = userdata;
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void start(struct world *world, const char *token)
{
    static const char *const hosts[] = {"a",
                                        "b",
                                        "c",
                                        "d",
                                        "e",
                                        "f",
                                        "g",
                                        "h",
                                        "i",
                                        "j",
                                        "k",
                                        "l",
                                        "m",
                                        "n",
                                        "o",
                                        "p",
                                        "node-a.example",
                                        NULL};
    struct http_config config = {.loop = &world->loop,
                                 .host = "127.0.0.1",
                                 .token = token,
                                 .hosts = hosts,
                                 .on_request = on_request};
    struct baton_error error = {0};
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(http_server_open(&world->server, &config, &error), 0);
    world->port = http_server_port(world->server);
    assert_int_equal(uv_async_init(&world->loop, &world->stop, on_stop), 0);
    world->stop.data = world;
    assert_int_equal(pthread_create(&world->thread, NULL, serve, world), 0);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct world));
    start(*state, NULL);
    return 0;
}

static int setup_with_token(void **state)
{
    *state = calloc(1, sizeof(struct world));
    start(*state, TOKEN);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    uv_async_send(&world->stop);
    pthread_join(world->thread, NULL);
    http_server_free(world->server);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static int dial(const struct world *world)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)world->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Sends the text, and returns all that comes until the server hangs up; malloc'ed. */
static char *talk(const struct world *world, const char *text)
{
    size_t used = 0;
    size_t room = 2 * 1024 * 1024;
    char *ret = calloc(1, room);
    int fd = dial(world);
    ssize_t count;
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL);
    while (used < room - 1 && (count = read(fd, ret + used, room - 1 - used)) > 0) {
        used += (size_t)count;
    }
    close(fd);
    return ret;
}

static void expect(void **state, const char *request, const char *status)
{
    char *answer = talk(*state, request);
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "HTTP/1.1 %s", status);
    if (strncmp(answer, wanted, strlen(wanted)) != 0 &&
        (strncmp(answer, "HTTP/1.0", 8) != 0 || strncmp(answer + 9, status, strlen(status)) != 0)) {
        fail_msg("%s got %.60s", request, answer);
    }
    free(answer);
}

#define END "Connection: close\r\n\r\n"

static void a_page_is_answered_and_an_unknown_one_is_not(void **state)
{
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "200");
    expect(state, "HEAD /status HTTP/1.1\r\nHost: localhost:99\r\n" END, "200");
    expect(state, "GET /status HTTP/1.1\r\nHost: node-a.example\r\n" END, "200");
    expect(state, "GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "40");
}

static void a_large_answer_comes_whole(void **state)
{
    char *answer = talk(*state, "GET /big HTTP/1.1\r\nHost: 127.0.0.1\r\n" END);
    char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(strlen(body + 4), 1000000);
    free(answer);
}

static void a_foreign_host_or_origin_is_refused(void **state)
{
    expect(state, "GET /status HTTP/1.1\r\nHost: evil.example\r\n" END, "403");
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n" END, "403");
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n" END,
           "403");
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\n" END, "403");
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://localhost:1\r\n" END,
           "200");
}

/* With another question behind it, which must not be seen as one; and who is refused so is hung up
 * on. */
static void expect_last(void **state, const char *head, const char *status)
{
    char request[1024];
    char *answer;

    (void)snprintf(request, sizeof(request),
                   "%s\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", head);
    expect(state, request, status);
    answer = talk(*state, request);
    assert_null(strstr(answer + 1, "HTTP/1.1 2"));
    free(answer);
}

static void what_could_be_read_in_two_ways_is_refused(void **state)
{
#define ASK "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    expect_last(state, ASK "Content-Length: 3", "400");
    expect_last(state, ASK "Content-Length: 1000000000000", "400");
    expect_last(state, ASK "Content-Length: 0, 0", "400");
    expect_last(state, ASK "Content-Length: 0\r\nContent-Length: 0", "400");
    expect_last(state, ASK "Content-Length:", "400");
    expect_last(state, ASK "Transfer-Encoding: chunked", "400");
    expect_last(state, ASK "Transfer-Encoding:", "400");
    expect_last(state, ASK "Host: localhost", "400");
    expect_last(state, "GET /healthz HTTP/1.1", "400");
    expect_last(state, "GET /healthz HTTP/1.1\r\nHost: a b", "400");
    expect_last(state, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999", "405");
    expect_last(state, "PUT /healthz HTTP/1.1\r\nHost: localhost", "405");
    expect(state, ASK "Content-Length: 0\r\n" END, "200");
    expect(state, "GET /healthz HTTP/1.0\r\nHost:\t localhost \r\n" END, "200");
#undef ASK
}

static void a_change_is_not_a_thing_that_it_does(void **state)
{
    expect(state, "POST /status HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n" END "{}",
           "405");
}

static void a_token_is_demanded_of_all_but_health(void **state)
{
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "401");
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer wrong\r\n" END,
           "401");
    expect(state,
           "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " TOKEN "\r\n" END,
           "200");
    expect(state, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "200");
}

static void a_megabyte_of_header_is_harmless(void **state)
{
    enum { BYTES = 1024 * 1024 };
    char *text = malloc(BYTES + 1);
    size_t used = (size_t)sprintf(text, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ");
    memset(text + used, 'a', BYTES - used);
    text[BYTES] = '\0';
    char *answer = talk(*state, text);
    assert_null(strstr(answer, " 200 "));
    free(answer);
    free(text);
    expect(state, "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "200");
}

static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* Probes are answered while the slow ones are there, and not when their time is over. */
static void two_hundred_slow_clients_delay_no_probe(void **state)
{
    enum { SLOW = 200, PROBES = 8 };
    int slow[SLOW];

    for (int i = 0; i < SLOW; i++) {
        slow[i] = dial(*state);
        (void)send(slow[i], "GET /st", 7, MSG_NOSIGNAL);
    }
    for (int i = 0; i < PROBES; i++) {
        expect(state, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, "200");
    }
    assert_true(is_open(slow[SLOW - 1]));
    for (int i = 0; i < SLOW; i++) {
        close(slow[i]);
    }
}

static void a_head_that_comes_byte_by_byte_is_cut_off(void **state)
{
    enum { LOOKS_MAX = PATIENCE_MS / 10 };
    int fd = dial(*state);
    int looks = 0;

    (void)send(fd, "GET /status HTTP/1.1\r\nX-Long: ", 31, MSG_NOSIGNAL);
    while (send(fd, "a", 1, MSG_NOSIGNAL) == 1 && is_open(fd)) {
        assert_true(looks++ < LOOKS_MAX);
        (void)poll(NULL, 0, 10);
    }
    close(fd);
}

static void it_listens_at_its_address_and_no_other(void **state)
{
    const struct world *world = *state;
    struct sockaddr_in other = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)world->port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    struct sockaddr_in6 another = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)world->port),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&other, sizeof(other)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&another, sizeof(another)), -1);
    close(fd);
}

static void where_it_cannot_listen_it_says_so_and_nothing_is_left(void **state)
{
    int taken, listener = process_listen(&taken);
    const struct http_config cases[] = {
        {.host = "127.0.0.1", .port = taken},
        {.host = "localhost", .port = taken},
        {.host = "203.0.113.1", .token = TOKEN}, /* of no machine */
        {.host = "nonsense", .token = TOKEN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_config config = cases[i];
        struct baton_error error = {0};
        struct http_server *server;
        uv_loop_t loop;

        assert_int_equal(uv_loop_init(&loop), 0);
        config.loop = &loop;
        config.on_request = on_request;
        assert_int_equal(http_server_open(&server, &config, &error), BATON_EIO);
        assert_non_null(strstr(error.message, config.host));
        assert_int_equal(uv_loop_close(&loop), 0);
    }
    close(listener);
}

static void off_loopback_it_does_not_start_without_a_token(void **state)
{
    uv_loop_t loop;
    struct http_server *server;
    struct baton_error error;
    struct http_config config = {.loop = &loop, .host = "0.0.0.0", .on_request = on_request};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(http_server_open(&server, &config, &error), BATON_EAUTH);
    assert_non_null(strstr(error.message, "0.0.0.0"));
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void nobody_upgrades_to_http_2(void **state)
{
    expect(state,
           "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\n"
           "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
           "400");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_is_answered_and_an_unknown_one_is_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_large_answer_comes_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_upgrades_to_http_2, setup, teardown),
        cmocka_unit_test_setup_teardown(a_foreign_host_or_origin_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_could_be_read_in_two_ways_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_is_not_a_thing_that_it_does, setup, teardown),
        cmocka_unit_test_setup_teardown(a_token_is_demanded_of_all_but_health, setup_with_token,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_megabyte_of_header_is_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(two_hundred_slow_clients_delay_no_probe, setup, teardown),
        cmocka_unit_test_setup_teardown(a_head_that_comes_byte_by_byte_is_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(it_listens_at_its_address_and_no_other, setup, teardown),
        cmocka_unit_test(where_it_cannot_listen_it_says_so_and_nothing_is_left),
        cmocka_unit_test(off_loopback_it_does_not_start_without_a_token),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
