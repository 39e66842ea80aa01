/* Requests of the client to servers that play a script: the bytes that it sends, how it reads the
 * response, and how it ends if the server is hostile. */
#include "web/client.h"

#include "cmocka_all.h"
#include "lib/process.h"
#include "script.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK "HTTP/1.1 200 OK\r\n"

enum { HEAD_MAX = 1024, BODY_MAX = 4096, SHORT_MS = 100 };

struct world {
    uv_loop_t loop;
    struct web_client *client;
    bool closes_on_response;
    char body[BODY_MAX + 1];
    unsigned status; /* of the response; 0: none came */
    unsigned closed;
    struct baton_error error;
    unsigned parts;
    char heard[BODY_MAX + 1]; /* in parts */
};

static void on_response(void *userdata, const struct web_response *response)
{
    struct world *world = userdata;

    assert_int_equal(world->status, 0);
    assert_int_equal(world->closed, 0);
    world->status = response->status;
    (void)snprintf(world->body, sizeof(world->body), "%.*s", (int)response->body.bytes,
                   response->body.data != NULL ? (const char *)response->body.data : "");
    if (world->closes_on_response) {
        web_client_close(world->client);
    }
}

static void on_part(void *userdata, const void *data, size_t bytes)
{
    struct world *world = userdata;
    size_t used = strlen(world->heard);

    assert_int_equal(world->status, 0);
    world->parts++;
    (void)snprintf(world->heard + used, sizeof(world->heard) - used, "%.*s", (int)bytes,
                   (const char *)data);
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct world *world = userdata;

    world->closed++;
    world->error = *error;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_int_equal(uv_loop_init(&world->loop), 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void open_client(struct world *world, struct web_client_options options)
{
    struct baton_error error;

    world->status = world->closed = 0;
    options.loop = &world->loop;
    options.head_max = HEAD_MAX;
    options.body_max = BODY_MAX;
    options.callbacks.on_response = on_response;
    options.callbacks.on_close = on_close;
    options.userdata = world;
    assert_int_equal(web_client_open(&world->client, &options, &error), 0);
}

static void run(struct world *world)
{
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(world->closed, 1);
}

/* The whole conversation; the URL has a secret in its query. */
static void ask(struct world *world, struct script *script, struct web_client_options options)
{
    char url[64];

    script_start(script);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/a/b?token=secret", script->port);
    options.url = url;
    options.within_ms = options.within_ms > 0 ? options.within_ms : PATIENCE_MS;
    open_client(world, options);
    run(world);
    script_join(script);
}

static void a_request_is_sent_as_it_was_asked_for(void **state)
{
    struct script script = {.bytes = OK "Content-Length: 0\r\n\r\n", .holds = true};
    char expected[256];

    ask(*state, &script,
        (struct web_client_options){
            .method = "POST", .headers = "authorization: Bearer x\r\n", .body = "abc", .bytes = 3});
    (void)snprintf(expected, sizeof(expected),
                   "POST /a/b?token=secret HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nconnection: close\r\n"
                   "authorization: Bearer x\r\ncontent-length: 3\r\n\r\nabc",
                   script.port);
    assert_string_equal(script.request, expected);
}

static void a_response_comes_in_parts_if_they_are_asked_for(void **state)
{
    struct world *world = *state;
    struct script script = {.bytes = OK "Transfer-Encoding: chunked\r\n\r\n"
                                        "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
                            .piece = 4,
                            .is_slow = true,
                            .holds = true};
    struct script refusal = {.bytes = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
                             .piece = 4,
                             .is_slow = true};
    size_t bytes;

    ask(world, &script, (struct web_client_options){.callbacks.on_part = on_part});
    assert_true(world->parts > 1);
    assert_int_equal(world->status, 200);
    bytes = strlen(world->heard);
    assert_memory_equal("abcdefg", world->heard, bytes);
    assert_string_equal(world->body, "abcdefg" + bytes);
    ask(world, &refusal, (struct web_client_options){.callbacks.on_part = on_part});
    assert_int_equal(world->status, 404);
    assert_string_equal(world->body, "none");
}

/* The server keeps the connection: the client ends it. */
static void a_response_is_given_out_whole_however_it_comes(void **state)
{
    static const char *const responses[] = {
        OK "Content-Length: 3\r\n\r\nabc",
        "HTTP/1.1 100 Continue\r\n\r\n" OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n"
        "0\r\n\r\n",
    };
    struct world *world = *state;

    for (size_t i = 0; i < 2; i++) {
        for (size_t piece = 0; piece < 2; piece++) {
            struct script script = {.bytes = responses[i], .piece = piece, .holds = true};
            ask(world, &script, (struct web_client_options){.method = NULL});
            assert_int_equal(world->error.code, 0);
            assert_int_equal(world->status, 200);
            assert_string_equal(world->body, "abc");
        }
    }
}

static void a_response_may_be_to_a_head_request(void **state)
{
    struct script script = {.bytes = OK "Content-Length: 3000\r\n\r\n", .holds = true};
    struct world *world = *state;

    ask(world, &script, (struct web_client_options){.method = "HEAD"});
    assert_int_equal(world->error.code, 0);
    assert_int_equal(world->status, 200);
}

static void expect_failure(struct world *world, struct script *script, uint64_t within_ms, int code,
                           const char *reason)
{
    char url[64];

    ask(world, script, (struct web_client_options){.within_ms = within_ms});
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/a/b: ", script->port);
    assert_int_equal(world->status, 0);
    assert_int_equal(world->error.code, code);
    assert_ptr_equal(strstr(world->error.message, url), world->error.message);
    assert_string_equal(world->error.message + strlen(url), reason);
}

static void a_response_that_cannot_be_used_is_a_failure_with_the_url(void **state)
{
    static const struct {
        struct script script;
        int code;
        const char *reason;
    } cases[] = {
        {{.bytes = NULL}, BATON_ECLOSED, "the connection ended before the response was whole"},
        {{.bytes = NULL, .resets = true}, BATON_ECLOSED, "connection reset by peer"},
        {{.bytes = OK "Content-Le"},
         BATON_ECLOSED,
         "the connection ended before the response was whole"},
        {{.bytes = OK "Content-Length: 3\r\n\r\nab"},
         BATON_ECLOSED,
         "the connection ended before the response was whole"},
        {{.bytes = OK "\r\nabc"},
         BATON_EPROTO,
         "the response has neither a length nor chunks, so its end cannot be seen"},
        {{.bytes = "SSH-2.0-x\r\n", .holds = true},
         BATON_EPROTO,
         "what came is not a response of HTTP"},
        {{.bytes = OK "Content-Length: 4097\r\n\r\n", .holds = true},
         BATON_ETOOBIG,
         "the body is too large"},
        {{.bytes = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
          .holds = true},
         BATON_EPROTO,
         "the server changes the protocol, which was not asked for"},
        /* without an end */
        {{.bytes = OK, .again = "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"},
         BATON_ETOOBIG,
         "the head is too large"},
        {{.bytes = "HTTP/1.1 ", .again = "2"}, BATON_EPROTO, "what came is not a response of HTTP"},
        {{.bytes = "", .again = "HTTP/1.1 100 Continue\r\n\r\n"},
         BATON_ETOOBIG,
         "the head is too large"},
        {{.bytes = OK "Transfer-Encoding: chunked\r\n\r\n", .again = "3\r\nabc\r\n"},
         BATON_ETOOBIG,
         "the body is too large"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = cases[i].script;
        expect_failure(*state, &script, 0, cases[i].code, cases[i].reason);
    }
}

static void a_server_that_takes_too_long_is_given_up(void **state)
{
    static const struct script scripts[] = {
        {.bytes = NULL, .holds = true},
        {.bytes = OK "Content-Length: 3\r\n\r\nab", .holds = true},
        {.bytes = OK, .again = "X: y\r\n", .piece = 1, .is_slow = true},
    };

    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct script script = scripts[i];
        expect_failure(*state, &script, SHORT_MS, BATON_ETIMEDOUT,
                       "timeout: no whole response within 0.100 s");
    }
}

static void nobody_at_the_address_is_a_failure_with_the_url(void **state)
{
    struct world *world = *state;
    char url[64], expected[128];

    (void)snprintf(url, sizeof(url), "http://localhost:%d/?token=secret", process_free_port());
    open_client(world, (struct web_client_options){.url = url, .within_ms = PATIENCE_MS});
    run(world);
    (void)snprintf(expected, sizeof(expected), "%.*s: connection refused", (int)strcspn(url, "?"),
                   url);
    assert_int_equal(world->error.code, BATON_EUNAVAILABLE);
    assert_string_equal(world->error.message, expected);
}

static void a_client_may_be_closed_before_it_is_connected(void **state)
{
    struct world *world = *state;
    int port, listener = process_listen(&port);
    char url[64];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    open_client(world, (struct web_client_options){.url = url, .within_ms = PATIENCE_MS});
    web_client_close(world->client);
    run(world);
    assert_int_equal(world->error.code, BATON_ECANCELED);
    (void)close(listener);
}

static void a_client_may_be_closed_by_its_callback(void **state)
{
    struct script script = {.bytes = OK "Content-Length: 3\r\n\r\nabc", .holds = true};
    struct world *world = *state;

    world->closes_on_response = true;
    ask(world, &script, (struct web_client_options){.method = NULL});
    assert_int_equal(world->error.code, 0); /* the response was whole */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_as_it_was_asked_for),
        TEST(a_response_comes_in_parts_if_they_are_asked_for),
        TEST(a_response_is_given_out_whole_however_it_comes),
        TEST(a_response_may_be_to_a_head_request),
        TEST(a_response_that_cannot_be_used_is_a_failure_with_the_url),
        TEST(a_server_that_takes_too_long_is_given_up),
        TEST(nobody_at_the_address_is_a_failure_with_the_url),
        TEST(a_client_may_be_closed_before_it_is_connected),
        TEST(a_client_may_be_closed_by_its_callback),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
