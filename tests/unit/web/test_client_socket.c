/* WebSockets of the client: against a server of ours on the same loop, in the clear and under TLS,
 * and against servers that play a script. */
#include "web/client.h"

#include "cmocka_all.h"
#include "lib/process.h"
#include "script.h"
#include "web/upgrade.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWITCHES "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
#define OPENED   SWITCHES "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"

enum { MESSAGE_MAX = 1 << 20, BACKLOG_MAX = 4 << 20, TEXTS = 7 };

static const size_t lengths[TEXTS] = {0, 1, 125, 126, 65535, 65536, MESSAGE_MAX};

struct world {
    uv_loop_t loop;
    struct web_server *server;
    struct web_socket *echo; /* the server's end */
    struct web_client *client;
    struct web_socket *socket;
    unsigned texts, opened, socket_closed, closed;
    unsigned status; /* of a refusal */
    char refused[128];
    bool gives_up; /* at the first text */
    struct baton_error error;
};

static void ignore(void *userdata)
{
}

/* ---- The server ------------------------------------------------------------------------------ */

static void echo_text(void *userdata, const char *text, size_t bytes)
{
    struct world *world = userdata;

    assert_true(web_socket_send(world->echo, text, bytes));
}

static void echo_refused(void *userdata, const char *reason)
{
    fail_msg("the server refuses: %s", reason);
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct world *world = userdata;
    struct web_socket_options options = {.message_max = MESSAGE_MAX,
                                         .backlog_max = BACKLOG_MAX,
                                         .ping_after_s = 60,
                                         .callbacks = {.on_text = echo_text,
                                                       .on_refused = echo_refused,
                                                       .on_drain = ignore,
                                                       .on_closing = ignore,
                                                       .on_close = ignore},
                                         .userdata = world};

    assert_null(web_socket_fault(web_exchange_request(exchange)));
    if (!web_shows_token(web_exchange_request(exchange), "secret")) {
        web_refuse(exchange, 401, "a bearer token is needed");
        return;
    }
    world->echo = web_socket_open(exchange, &options);
    assert_non_null(world->echo);
}

static void open_server(struct world *world, const char *folder)
{
    char cert[128], key[128];
    struct web_config config = {.loop = &world->loop,
                                .host = "127.0.0.1",
                                .tls_cert = folder != NULL ? cert : NULL,
                                .tls_key = folder != NULL ? key : NULL,
                                .connections_max = 8,
                                .head_within_s = 3600,
                                .read_within_s = 3600,
                                .head_max = 4096,
                                .answer_max = 2 * BACKLOG_MAX,
                                .callbacks = {.on_request = on_request},
                                .userdata = world};
    struct baton_error error;

    (void)snprintf(cert, sizeof(cert), "%s/cert.pem", folder != NULL ? folder : "");
    (void)snprintf(key, sizeof(key), "%s/key.pem", folder != NULL ? folder : "");
    assert_int_equal(web_server_open(&world->server, &config, &error), 0);
}

/* ---- The client ------------------------------------------------------------------------------ */

/* One text after the other; each byte says where it is. */
static void send_next(struct world *world)
{
    size_t bytes = lengths[world->texts];
    char *text = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i++) {
        text[i] = (char)('a' + i % 23);
    }
    assert_true(web_socket_send(world->socket, text, bytes));
    free(text);
}

static void on_text(void *userdata, const char *text, size_t bytes)
{
    struct world *world = userdata;

    if (world->gives_up) {
        world->texts++;
        web_client_close(world->client);
        return;
    }
    assert_int_equal(bytes, lengths[world->texts]);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(text[i], 'a' + i % 23);
    }
    if (++world->texts == TEXTS) {
        web_socket_close(world->socket, 1000, "done");
    } else {
        send_next(world);
    }
}

static void on_refused(void *userdata, const char *reason)
{
    struct world *world = userdata;

    (void)snprintf(world->refused, sizeof(world->refused), "%s", reason);
}

static void on_socket_close(void *userdata)
{
    struct world *world = userdata;

    assert_int_equal(world->closed, 0);
    world->socket_closed++;
}

static void on_open(void *userdata, struct web_socket *socket)
{
    struct world *world = userdata;

    world->opened++;
    world->socket = socket;
    if (world->server != NULL) {
        send_next(world);
    }
}

static void on_response(void *userdata, const struct web_response *response)
{
    struct world *world = userdata;

    world->status = response->status;
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct world *world = userdata;

    world->closed++;
    world->error = *error;
    web_server_close(world->server);
}

static void converse(struct world *world, const char *scheme, const char *host, int port,
                     const struct tls *tls, const char *headers)
{
    const struct web_socket_options socket = {.message_max = MESSAGE_MAX,
                                              .backlog_max = BACKLOG_MAX,
                                              .ping_after_s = 60,
                                              .callbacks = {.on_text = on_text,
                                                            .on_refused = on_refused,
                                                            .on_drain = ignore,
                                                            .on_closing = ignore,
                                                            .on_close = on_socket_close},
                                              .userdata = world};
    struct web_client_options options = {
        .loop = &world->loop,
        .tls = tls,
        .headers = headers,
        .head_max = 4096,
        .body_max = 4096,
        .within_ms = PATIENCE_MS,
        .socket = &socket,
        .callbacks = {.on_response = on_response, .on_open = on_open, .on_close = on_close},
        .userdata = world};
    struct baton_error error;
    char url[128];

    (void)snprintf(url, sizeof(url), "%s://%s:%d/echo?token=secret", scheme, host, port);
    options.url = url;
    assert_int_equal(web_client_open(&world->client, &options, &error), 0);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(world->closed, 1);
    assert_int_equal(world->socket_closed, world->opened);
    web_server_free(world->server);
    world->server = NULL;
}

#define TOKEN "authorization: Bearer secret\r\n"

static void expect_error(const struct world *world, int code, const char *reason)
{
    assert_int_equal(world->error.code, code);
    assert_non_null(strstr(world->error.message, reason));
    assert_non_null(strstr(world->error.message, "/echo: "));
    assert_null(strstr(world->error.message, "secret"));
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

static void texts_of_any_length_go_both_ways(void **state)
{
    struct world *world = *state;

    open_server(world, NULL);
    converse(world, "ws", "127.0.0.1", web_server_port(world->server), NULL, TOKEN);
    assert_int_equal(world->texts, TEXTS);
    assert_int_equal(world->error.code, 0); /* closed by both */
}

static void a_refusal_is_given_out_and_is_an_error(void **state)
{
    struct world *world = *state;

    open_server(world, NULL);
    converse(world, "ws", "127.0.0.1", web_server_port(world->server), NULL, NULL);
    assert_int_equal(world->opened, 0);
    assert_int_equal(world->status, 401);
    expect_error(world, BATON_EAUTH, "no WebSocket: refused with status 401");
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A certificate for 127.0.0.1 that signs itself, and its key. */
static void make_certificate(const char *folder)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    char path[128];
    FILE *file;

    (void)X509_set_version(cert, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    (void)X509_gmtime_adj(X509_getm_notAfter(cert), 36000);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"t", -1, -1,
                                     0);
    (void)X509_set_issuer_name(cert, name);
    (void)X509_set_pubkey(cert, key);
    (void)X509_add_ext(cert, extension, -1);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    (void)snprintf(path, sizeof(path), "%s/cert.pem", folder);
    file = fopen(path, "we");
    assert_int_equal(PEM_write_X509(file, cert), 1);
    (void)fclose(file);
    (void)snprintf(path, sizeof(path), "%s/key.pem", folder);
    file = fopen(path, "we");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    (void)fclose(file);
    X509_EXTENSION_free(extension);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* trusts: whether the client knows the certificate. */
static void converse_by_tls(struct world *world, const char *host, bool trusts)
{
    char folder[64], cert[128];
    struct tls_client_options options = {.ca_file = trusts ? cert : NULL};
    struct baton_error error;
    struct tls *tls;

    process_make_folder(folder, sizeof(folder));
    make_certificate(folder);
    (void)snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
    assert_int_equal(tls_new_client(&tls, &options, &error), 0);
    open_server(world, folder);
    converse(world, "wss", host, web_server_port(world->server), tls, TOKEN);
    tls_free(tls);
    process_remove_folder(folder);
}

static void texts_of_any_length_go_both_ways_by_tls(void **state)
{
    struct world *world = *state;

    converse_by_tls(world, "127.0.0.1", true);
    assert_int_equal(world->texts, TEXTS);
    assert_int_equal(world->error.code, 0);
}

static void a_server_with_the_certificate_of_another_host_is_refused(void **state)
{
    struct world *world = *state;

    converse_by_tls(world, "localhost", true);
    assert_int_equal(world->opened, 0);
    expect_error(world, BATON_EAUTH, "certificate refused");
}

static void a_server_with_a_certificate_that_nobody_signed_is_refused(void **state)
{
    struct world *world = *state;

    converse_by_tls(world, "127.0.0.1", false);
    assert_int_equal(world->opened, 0);
    expect_error(world, BATON_EAUTH, "certificate refused");
}

static void tls_and_the_kind_of_the_url_are_checked_before_anything_is_sent(void **state)
{
    struct world *world = *state;
    const struct web_socket_options socket = {.message_max = 1};
    struct web_client_options options = {
        .loop = &world->loop, .url = "wss://a/?b", .socket = &socket};
    struct baton_error error;

    assert_int_equal(web_client_open(&world->client, &options, &error), BATON_EINVAL);
    assert_string_equal(error.message, "wss://a/: TLS is not set up");
    options.url = "http://a/?b";
    assert_int_equal(web_client_open(&world->client, &options, &error), BATON_EINVAL);
    assert_string_equal(error.message, "http://a/: the scheme must be ws or wss");
    options.url = "ws://a";
    options.socket = NULL;
    assert_int_equal(web_client_open(&world->client, &options, &error), BATON_EINVAL);
    assert_string_equal(error.message, "ws://a: the scheme must be http or https");
}

/* ---- Hostile servers ------------------------------------------------------------------------- */

static void play(struct world *world, struct script *script)
{
    world->closed = world->opened = world->socket_closed = 0;
    world->refused[0] = '\0';
    script_start(script);
    converse(world, "ws", "127.0.0.1", script->port, NULL, NULL);
    script_join(script);
}

static void only_the_answer_to_our_key_opens(void **state)
{
    static const struct {
        const char *bytes, *reason;
    } cases[] = {
        {SWITCHES "Connection: Upgrade\r\n\r\n", "is not the answer to our key"},
        {SWITCHES "Connection: Upgrade\r\n"
                  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
         "is not the answer to our key"},
        {SWITCHES "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Accept: x\r\n"
                  "\r\n",
         "is not the answer to our key"},
        {SWITCHES "Sec-WebSocket-Accept: %s\r\n\r\n", "another protocol than WebSocket"},
        {"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
         "%s\r\n\r\n",
         "another protocol than WebSocket"},
        {SWITCHES "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                  "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
         "that was not offered"},
        {SWITCHES "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                  "Sec-WebSocket-Protocol: chat\r\n\r\n",
         "that was not offered"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "no WebSocket: refused with status 200"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = {.bytes = cases[i].bytes, .holds = true};
        play(world, &script);
        assert_int_equal(world->opened, 0);
        expect_error(world, BATON_EPROTO, cases[i].reason);
    }
}

/* What the client sent behind its request: one close frame, masked. Returns its code. */
static unsigned sent_code(const struct script *script)
{
    const char *end = strstr(script->request, "\r\n\r\n") + 4;
    size_t bytes = script->request_bytes - (size_t)(end - script->request);
    const uint8_t *frame = (const uint8_t *)end;

    assert_true(bytes >= 8);
    assert_int_equal(frame[0], 0x88);
    assert_int_equal(frame[1], 0x80 | (bytes - 6));
    return (unsigned)(frame[6] ^ frame[2]) << 8 | (frame[7] ^ frame[3]);
}

static void frames_that_break_the_protocol_are_closed_with_a_masked_frame(void **state)
{
    static const struct {
        struct script script;
        unsigned code;
        const char *reason;
    } cases[] = {
#define BYTES(text) .bytes = (text), .count = sizeof(text) - 1, .holds = true
        {{BYTES(OPENED "\x81\x81\0\0\0\0x")}, 1002, "a frame of a server is masked"},
        {{BYTES(OPENED "\x81\x81\0\0\0\0"), .piece = 1}, 1002, "a frame of a server is masked"},
        {{BYTES(OPENED "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff")},
         1009,
         "message too large: at most 1048576 bytes are read"},
        {{BYTES(OPENED "\x81\x01\xff")}, 1007, "a text message that is not UTF-8"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script script = cases[i].script;
        play(world, &script);
        assert_int_equal(world->opened, 1);
        assert_string_equal(world->refused, cases[i].reason);
        assert_int_equal(sent_code(&script), cases[i].code);
        assert_int_equal(world->error.code, 0);
    }
}

static void a_connection_that_ends_without_a_close_is_an_error(void **state)
{
    static const char *const scripts[] = {OPENED, OPENED "\x81\x05"
                                                         "hel"};
    struct world *world = *state;

    for (size_t i = 0; i < 2; i++) {
        struct script script = {.bytes = scripts[i], .piece = 1};
        play(world, &script);
        assert_int_equal(world->opened, 1);
        expect_error(world, BATON_ECLOSED, "the connection ended without a closing handshake");
    }
}

static void a_close_of_the_server_is_answered(void **state)
{
    struct script script = {.bytes = OPENED "\x88\x02\x03\xe9", .holds = true};
    struct world *world = *state;

    play(world, &script);
    assert_int_equal(world->opened, 1);
    assert_int_equal(sent_code(&script), 1001);
    assert_int_equal(world->error.code, 0);
}

static void no_text_follows_once_the_client_is_closed(void **state)
{
    struct script script = {.bytes = OPENED "\x81\x01x\x81\x01y", .holds = true};
    struct world *world = *state;

    world->gives_up = true;
    play(world, &script);
    assert_int_equal(world->texts, 1);
    expect_error(world, BATON_ECANCELED, "given up");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(texts_of_any_length_go_both_ways),
        TEST(a_refusal_is_given_out_and_is_an_error),
        TEST(texts_of_any_length_go_both_ways_by_tls),
        TEST(a_server_with_the_certificate_of_another_host_is_refused),
        TEST(a_server_with_a_certificate_that_nobody_signed_is_refused),
        TEST(tls_and_the_kind_of_the_url_are_checked_before_anything_is_sent),
        TEST(only_the_answer_to_our_key_opens),
        TEST(frames_that_break_the_protocol_are_closed_with_a_masked_frame),
        TEST(a_connection_that_ends_without_a_close_is_an_error),
        TEST(a_close_of_the_server_is_answered),
        TEST(no_text_follows_once_the_client_is_closed),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
