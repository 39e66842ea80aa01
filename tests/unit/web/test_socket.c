/* WebSockets of a server on a loop of its own thread; the clients are sockets of the test, which
 * make their frames by hand. */
#include "web/upgrade.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_MAX = 4096, BACKLOG_MAX = 1 << 20, PART_BYTES = 65536, PAYLOAD_MAX = 65536 };

struct world {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct web_server *server;
    /* Written by the loop's thread. */
    _Atomic unsigned refused, drained, closing, closed;
    _Atomic size_t backlog; /* the most that waited */
};

struct peer {
    struct world *world;
    struct web_socket *socket;
    bool floods; /* sends until no more fits, and again after each drain */
};

static void flood(struct peer *peer)
{
    static char part[PART_BYTES];

    memset(part, 'f', sizeof(part));
    while (web_socket_send(peer->socket, part, sizeof(part))) {
    }
    if (web_socket_backlog(peer->socket) > peer->world->backlog) {
        peer->world->backlog = web_socket_backlog(peer->socket);
    }
}

/* "close CODE REASON" closes, "flood" floods, and anything else is echoed. */
static void on_text(void *userdata, const char *text, size_t bytes)
{
    struct peer *peer = userdata;

    if (bytes > 6 && memcmp(text, "close ", 6) == 0) {
        char copy[MESSAGE_MAX + 1], *reason;
        (void)snprintf(copy, sizeof(copy), "%.*s", (int)bytes, text);
        unsigned code = (unsigned)strtoul(copy + 6, &reason, 10);
        web_socket_close(peer->socket, code, *reason == ' ' ? reason + 1 : reason);
        assert_false(web_socket_send(peer->socket, "late", 4));
    } else if (bytes == 5 && memcmp(text, "flood", 5) == 0) {
        peer->floods = true;
        flood(peer);
    } else {
        assert_true(web_socket_send(peer->socket, text, bytes));
    }
}

static void on_refused(void *userdata, const char *reason)
{
    struct peer *peer = userdata;

    assert_non_null(reason);
    peer->world->refused++;
}

static void on_drain(void *userdata)
{
    struct peer *peer = userdata;

    peer->world->drained++;
    if (peer->floods) {
        flood(peer);
    }
}

static void on_closing(void *userdata)
{
    struct peer *peer = userdata;

    assert_true(web_socket_arrived(peer->socket) > 0);
    peer->world->closing++;
}

static void on_close(void *userdata)
{
    struct peer *peer = userdata;

    peer->world->closed++;
    free(peer);
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    const char *fault = web_socket_fault(web_exchange_request(exchange));
    struct peer *peer = fault == NULL ? calloc(1, sizeof(*peer)) : NULL;
    struct web_socket_options options = {.message_max = MESSAGE_MAX,
                                         .backlog_max = BACKLOG_MAX,
                                         .ping_after_s = 1,
                                         .callbacks = {.on_text = on_text,
                                                       .on_refused = on_refused,
                                                       .on_drain = on_drain,
                                                       .on_closing = on_closing,
                                                       .on_close = on_close},
                                         .userdata = peer};

    if (peer == NULL) {
        web_refuse(exchange, 400, fault);
        return;
    }
    peer->world = userdata;
    peer->socket = web_socket_open(exchange, &options);
    assert_non_null(peer->socket);
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

    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct web_config config = {.loop = &world->loop,
                                .host = "127.0.0.1",
                                .connections_max = 64,
                                .head_within_s = 3600,
                                .read_within_s = 3600,
                                .head_max = 4096,
                                .body_max = 16,
                                .answer_max = 4 * BACKLOG_MAX,
                                .callbacks = {.on_request = on_request},
                                .userdata = world};
    struct baton_error error;

    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(web_server_open(&world->server, &config, &error), 0);
    assert_int_equal(uv_async_init(&world->loop, &world->stop, on_stop), 0);
    world->stop.data = world;
    assert_int_equal(pthread_create(&world->thread, NULL, serve, world), 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    uv_async_send(&world->stop);
    pthread_join(world->thread, NULL);
    web_server_free(world->server);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    assert_int_equal(world->closing, world->closed);
    free(world);
    return 0;
}

/* ---- A client by hand ------------------------------------------------------------------------ */

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ASK                                                                                        \
    "Host: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"                         \
    "Sec-WebSocket-Version: 13\r\n"
#define UPGRADE "GET / HTTP/1.1\r\n" ASK KEY "\r\n"

static int dial(const struct world *world)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)web_server_port(world->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t count)
{
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

/* The head of the answer, to its empty line. */
static void hear_head(int fd, char ret[static 1024])
{
    size_t used = 0;

    while (used < 4 || memcmp(ret + used - 4, "\r\n\r\n", 4) != 0) {
        assert_true(used < 1023);
        process_read(fd, ret + used++, 1);
    }
    ret[used] = '\0';
}

static int upgrade(const struct world *world)
{
    char head[1024];
    int fd = dial(world);

    say(fd, UPGRADE, sizeof(UPGRADE) - 1);
    hear_head(fd, head);
    assert_ptr_equal(strstr(head, "HTTP/1.1 101 Switching Protocols\r\n"), head);
    return fd;
}

/* `first`: the byte of FIN and opcode. */
static void say_frame(int fd, unsigned first, const void *payload, size_t bytes)
{
    static const uint8_t mask[WEB_MASK_BYTES] = {0x11, 0xfe, 0x00, 0x80};
    uint8_t frame[WEB_FRAME_HEAD_MAX + PAYLOAD_MAX];
    size_t head = web_frame_head(frame, WEB_OPCODE_TEXT, bytes, mask);

    frame[0] = (uint8_t)first;
    web_mask(frame + head, payload, bytes, mask, 0);
    say(fd, frame, head + bytes);
}

/* Returns the opcode of a whole frame without a mask. */
static unsigned hear_frame(int fd, char ret[static PAYLOAD_MAX + 1], size_t *ret_bytes)
{
    uint8_t head[10];
    unsigned more;
    size_t bytes;

    process_read(fd, head, 2);
    assert_int_equal(head[0] & 0xf0, 0x80);
    assert_int_equal(head[1] & 0x80, 0);
    more = head[1] == 126 ? 2 : head[1] == 127 ? 8 : 0;
    process_read(fd, head + 2, more);
    bytes = more == 0 ? head[1] : 0;
    for (unsigned i = 0; i < more; i++) {
        bytes = bytes << 8 | head[2 + i];
    }
    assert_true(bytes <= PAYLOAD_MAX);
    process_read(fd, ret, bytes);
    ret[bytes] = '\0';
    *ret_bytes = bytes;
    return head[0] & 0x0fU;
}

static void expect_text(int fd, const char *text)
{
    char payload[PAYLOAD_MAX + 1];
    size_t bytes;

    assert_int_equal(hear_frame(fd, payload, &bytes), WEB_OPCODE_TEXT);
    assert_string_equal(payload, text);
}

/* A close frame of that code, after any pings and pongs, and then the end of the connection; code
 * 0: the frame is empty. */
static void expect_close(int fd, unsigned code, const char *reason)
{
    char payload[PAYLOAD_MAX + 1];
    unsigned opcode = WEB_OPCODE_PING;
    size_t bytes;

    while (opcode == WEB_OPCODE_PING || opcode == WEB_OPCODE_PONG) {
        opcode = hear_frame(fd, payload, &bytes);
    }
    assert_int_equal(opcode, WEB_OPCODE_CLOSE);
    if (code == 0) {
        assert_int_equal(bytes, 0);
    } else {
        assert_true(bytes >= 2);
        assert_int_equal((uint8_t)payload[0] << 8 | (uint8_t)payload[1], code);
        assert_string_equal(payload + 2, reason);
    }
}

static void expect_end(int fd)
{
    char byte;

    process_wait_readable(fd);
    assert_int_equal(read(fd, &byte, 1), 0);
    (void)close(fd);
}

/* ---- The handshake --------------------------------------------------------------------------- */

/* The key and the answer of RFC 6455, 1.3. */
static void an_upgrade_is_answered_with_the_key_of_the_standard(void **state)
{
    char head[1024];
    int fd = dial(*state);

    say(fd, UPGRADE, sizeof(UPGRADE) - 1);
    hear_head(fd, head);
    assert_non_null(strstr(head, "\r\nupgrade: websocket\r\n"));
    assert_non_null(strstr(head, "\r\nconnection: Upgrade\r\n"));
    assert_non_null(strstr(head, "\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    (void)close(fd);
}

static void a_handshake_that_is_not_whole_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *bytes, *reason;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" ASK "\r\n", "the WebSocket handshake is not whole"},
        {"GET / HTTP/1.1\r\n" ASK KEY KEY "\r\n", "the WebSocket handshake is not whole"},
        {"GET / HTTP/1.1\r\n" ASK "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n",
         "the WebSocket handshake is not whole"},
        {"GET / HTTP/1.1\r\n" ASK KEY "Sec-WebSocket-Protocol: chat\r\n\r\n",
         "may ask for no subprotocol"},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" KEY
         "\r\n",
         "the WebSocket handshake is not whole"},
        {"GET / HTTP/1.0\r\n" ASK KEY "\r\n", "the WebSocket handshake is not whole"},
        {"POST / HTTP/1.1\r\n" ASK KEY "\r\n", "a WebSocket begins with a GET"},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 8\r\n" KEY "\r\n",
         "only WebSocket version 13 is known"},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
         "only an upgrade to websocket is known"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char answer[2048];
        int fd = dial(*state);
        size_t bytes;
        say(fd, cases[i].bytes, strlen(cases[i].bytes));
        bytes = process_read_all(fd, answer, sizeof(answer) - 1);
        answer[bytes] = '\0';
        assert_ptr_equal(strstr(answer, "HTTP/1.1 400 Bad Request\r\n"), answer);
        assert_non_null(strstr(answer, cases[i].reason));
        (void)close(fd);
    }
}

static void frames_right_behind_the_handshake_are_read(void **state)
{
    static const char both[] = UPGRADE "\x81\x85\0\0\0\0hello";
    char head[1024];
    int fd = dial(*state);

    say(fd, both, sizeof(both) - 1);
    hear_head(fd, head);
    expect_text(fd, "hello");
    (void)close(fd);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void texts_are_given_out_whole(void **state)
{
    char longest[MESSAGE_MAX + 1];
    int fd = upgrade(*state);

    memset(longest, 'm', MESSAGE_MAX);
    longest[MESSAGE_MAX] = '\0';
    say_frame(fd, 0x81, longest, MESSAGE_MAX);
    expect_text(fd, longest);
    say_frame(fd, 0x01, "in ", 3); /* with a ping between the fragments */
    say_frame(fd, 0x89, "", 0);
    say_frame(fd, 0x80, "two", 3);
    {
        char payload[PAYLOAD_MAX + 1];
        size_t bytes;
        assert_int_equal(hear_frame(fd, payload, &bytes), WEB_OPCODE_PONG);
        assert_int_equal(bytes, 0);
    }
    expect_text(fd, "in two");
    say_frame(fd, 0x81, "", 0);
    expect_text(fd, "");
    (void)close(fd);
}

static void a_frame_in_the_write_of_the_handshake_is_one_like_others(void **state)
{
    static const uint8_t frame[] = {0x81, 0x82, 0, 0, 0, 0, 'h', 'i'};
    uint8_t both[sizeof(UPGRADE) - 1 + sizeof(frame)];
    char head[1024];
    int fd = dial(*state);

    memcpy(both, UPGRADE, sizeof(UPGRADE) - 1);
    memcpy(both + sizeof(UPGRADE) - 1, frame, sizeof(frame));
    say(fd, both, sizeof(both));
    hear_head(fd, head);
    expect_text(fd, "hi");
    (void)close(fd);
}

static void a_binary_message_is_reported_and_the_next_text_is_read(void **state)
{
    struct world *world = *state;
    int fd = upgrade(world);

    say_frame(fd, 0x82, "\xff\x00", 2);
    say_frame(fd, 0x81, "text", 4);
    expect_text(fd, "text");
    assert_int_equal(world->refused, 1);
    (void)close(fd);
}

static void what_breaks_the_protocol_is_closed_with_code_and_reason(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
        unsigned code;
        const char *reason;
    } cases[] = {
#define BYTES(text) text, sizeof(text) - 1
        {BYTES("\x81\x01x"), 1002, "a frame of a client is not masked"},
        {BYTES("\xc1\x80\0\0\0\0"), 1002, "a reserved bit is set"},
        {BYTES("\x83\x80\0\0\0\0"), 1002, "a frame of an unknown kind"},
        {BYTES("\x80\x80\0\0\0\0"), 1002, "a fragment of no message"},
        {BYTES("\x09\x80\0\0\0\0"), 1002, "a control frame is whole, and of at most 125 bytes"},
        {BYTES("\x88\x81\0\0\0\0x"), 1002, "a close frame without a valid code"},
        {BYTES("\x88\x82\0\0\0\0\x03\xed"), 1002, "a close frame without a valid code"},
        {BYTES("\x88\x83\0\0\0\0\x03\xe8\xff"), 1007, "the reason of a close that is not UTF-8"},
        {BYTES("\x81\x81\0\0\0\0\xff"), 1007, "a text message that is not UTF-8"},
        {BYTES("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"), 1009,
         "message too large: at most 4096 bytes are read"},
        {BYTES("\x81\xfe\x10\x01\0\0\0\0"), 1009, "message too large: at most 4096 bytes are read"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = upgrade(world);
        say(fd, cases[i].bytes, cases[i].count);
        expect_close(fd, cases[i].code, cases[i].reason);
        expect_end(fd);
        assert_int_equal(world->refused, i + 1);
    }
}

/* ---- Control frames -------------------------------------------------------------------------- */

static void a_ping_is_answered_with_its_bytes(void **state)
{
    char payload[PAYLOAD_MAX + 1], sent[WEB_CONTROL_MAX];
    int fd = upgrade(*state);
    size_t bytes;

    memset(sent, 0xfe, sizeof(sent));
    say_frame(fd, 0x89, sent, sizeof(sent));
    assert_int_equal(hear_frame(fd, payload, &bytes), WEB_OPCODE_PONG);
    assert_int_equal(bytes, sizeof(sent));
    assert_memory_equal(payload, sent, sizeof(sent));
    (void)close(fd);
}

static void a_peer_that_says_nothing_is_pinged(void **state)
{
    char payload[PAYLOAD_MAX + 1];
    int fd = upgrade(*state);
    size_t bytes;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(hear_frame(fd, payload, &bytes), WEB_OPCODE_PING);
        say_frame(fd, 0x8a, payload, bytes);
    }
    (void)close(fd);
}

/* A peer with the server's own interval: its ping comes when the server's next one is due. Some
 * come just before, some just after. */
static void a_ping_that_comes_as_ours_is_due_has_its_own_answer(void **state)
{
    enum { ROUNDS = 5, INTERVAL_US = 1000000, STEP_US = 1000 };
    int fd = upgrade(*state);

    for (int i = 0; i < ROUNDS; i++) {
        char payload[PAYLOAD_MAX + 1], text[16];
        bool is_pinged = false, is_answered = false;
        size_t bytes;
        assert_int_equal(hear_frame(fd, payload, &bytes), WEB_OPCODE_PING);
        say_frame(fd, 0x8a, payload, bytes);
        (void)usleep((useconds_t)(INTERVAL_US + (i - ROUNDS / 2) * STEP_US));
        say_frame(fd, 0x89, text, (size_t)snprintf(text, sizeof(text), "PNG%d", i));
        while (!is_answered) {
            if (hear_frame(fd, payload, &bytes) == WEB_OPCODE_PONG) {
                assert_string_equal(payload, text);
                is_answered = true;
            } else {
                assert_false(is_pinged); /* the server's next one waits for the answer to this */
                say_frame(fd, 0x8a, payload, bytes);
                is_pinged = true;
            }
        }
    }
    (void)close(fd);
}

static void a_peer_that_answers_no_ping_is_closed_with_1008(void **state)
{
    int fd = upgrade(*state);

    expect_close(fd, 1008, "the peer answers no ping within 10 s");
    (void)close(fd);
}

static void too_many_control_frames_are_closed_with_1008(void **state)
{
    enum { PINGS = 8192 };
    static uint8_t bytes[PINGS * 131];
    int fd = upgrade(*state);

    for (size_t i = 0; i < PINGS; i++) {
        uint8_t *at = bytes + i * 131;
        at[0] = 0x89;
        at[1] = 0x80 | 125;
    }
    (void)send(fd, bytes, sizeof(bytes),
               MSG_NOSIGNAL | MSG_DONTWAIT); /* as much as there is room */
    expect_close(fd, 1008, "too many control frames");
    (void)close(fd);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void a_close_is_answered_with_its_code(void **state)
{
    int fd = upgrade(*state);

    say_frame(fd, 0x88, "\x0b\xb8 over", 7);
    expect_close(fd, 3000, "");
    expect_end(fd);
    fd = upgrade(*state);
    say_frame(fd, 0x88, "", 0);
    expect_close(fd, 0, NULL);
    expect_end(fd);
}

/* Of a reason of 124 bytes the last code point does not fit, as a whole or in half. */
static void a_long_reason_ends_with_a_whole_code_point(void **state)
{
    char text[160], expected[124];
    int bytes = snprintf(text, sizeof(text), "close 4000 %0122d\xc3\xa9", 0);
    int fd = upgrade(*state);

    (void)snprintf(expected, sizeof(expected), "%0122d", 0);
    say_frame(fd, 0x81, text, (size_t)bytes);
    say_frame(fd, 0x81, "not read any more", 17);
    expect_close(fd, 4000, expected);
    say_frame(fd, 0x88, "\x0f\xa0", 2);
    expect_end(fd);
}

static void a_peer_that_does_not_answer_a_close_is_cut_off(void **state)
{
    int fd = upgrade(*state);

    say_frame(fd, 0x81, "close 1001 bye", 14);
    expect_close(fd, 1001, "bye");
    expect_end(fd);
}

/* ---- Slow readers ---------------------------------------------------------------------------- */

/* The server has read all that was sent before: it answers on another connection, twice, because it
 * may find the bytes of several connections at once. */
static void expect_all_is_read(const struct world *world)
{
    int fd = upgrade(world);

    for (int i = 0; i < 2; i++) {
        say_frame(fd, 0x81, "read", 4);
        expect_text(fd, "read");
    }
    (void)close(fd);
}

static void what_waits_for_a_slow_reader_is_bounded_and_comes_whole(void **state)
{
    struct world *world = *state;
    char payload[PAYLOAD_MAX + 1];
    int fd = upgrade(world);
    size_t bytes;

    say_frame(fd, 0x81, "flood", 5);
    expect_all_is_read(world);
    assert_true(world->backlog > BACKLOG_MAX - (size_t)PART_BYTES);
    assert_true(world->backlog <= BACKLOG_MAX + WEB_FRAME_HEAD_MAX);
    while (world->drained < 2) {
        if (hear_frame(fd, payload, &bytes) == WEB_OPCODE_TEXT) {
            assert_int_equal(bytes, PART_BYTES);
            assert_int_equal(strspn(payload, "f"), PART_BYTES);
        }
    }
    (void)close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_upgrade_is_answered_with_the_key_of_the_standard),
        TEST(a_handshake_that_is_not_whole_is_refused_with_the_reason),
        TEST(frames_right_behind_the_handshake_are_read),
        TEST(texts_are_given_out_whole),
        TEST(a_frame_in_the_write_of_the_handshake_is_one_like_others),
        TEST(a_binary_message_is_reported_and_the_next_text_is_read),
        TEST(what_breaks_the_protocol_is_closed_with_code_and_reason),
        TEST(a_ping_is_answered_with_its_bytes),
        TEST(a_peer_that_says_nothing_is_pinged),
        TEST(a_ping_that_comes_as_ours_is_due_has_its_own_answer),
        TEST(a_peer_that_answers_no_ping_is_closed_with_1008),
        TEST(too_many_control_frames_are_closed_with_1008),
        TEST(a_close_is_answered_with_its_code),
        TEST(a_long_reason_ends_with_a_whole_code_point),
        TEST(a_peer_that_does_not_answer_a_close_is_cut_off),
        TEST(what_waits_for_a_slow_reader_is_bounded_and_comes_whole),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
