/* Responses as bytes, and how they are parsed: at once, and byte by byte. */
#include "web/response.h"

#include "base/error.h"
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK    "HTTP/1.1 200 OK\r\n"
#define EMPTY "Content-Length: 0\r\n\r\n"

enum { HEAD_MAX = 256, BODY_MAX = 16 };

struct transcript {
    const char *bytes;
    size_t count;        /* 0: strlen(bytes) */
    const char *outcome; /* "200 body", "more", or the reason of the refusal */
};

static const struct transcript responses[] = {
    {OK "Content-Length: 3\r\n\r\nabc", 0, "200 abc"},
    {OK "Content-Length: 3\r\n\r\nabcd", 0, "200 abc"},
    {OK EMPTY, 0, "200 "},
    {"HTTP/1.0 200\r\n" EMPTY, 0, "200 "},
    {"HTTP/1.1 404 Not\xff Found\r\n" EMPTY, 0, "404 "},
    {OK "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX: y\r\n\r\n", 0,
     "200 abc"},
    {"HTTP/1.1 204 No Content\r\n\r\n", 0, "204 "},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3000\r\n\r\n", 0, "304 "},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK EMPTY, 0,
     "200 "},
    {"HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n" OK EMPTY, 0, "200 "},
    {"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x01x", 0,
     "101 "},
    {"HTTP/1.1 101 Switching\r\nContent-Length: 3\r\n\r\nabc", 0, "101 "},
    /* cut off */
    {"", 0, "more"},
    {"HTTP/1.1 200 OK\r\nContent-Le", 0, "more"},
    {OK "Content-Length: 3\r\n\r\nab", 0, "more"},
    {OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", 0, "more"},
    {"HTTP/1.1 100 Continue\r\n\r\n", 0, "more"},
    /* an end that cannot be seen, or can be in two ways */
    {OK "\r\nabc", 0, "the response has neither a length nor chunks, so its end cannot be seen"},
    {OK "Transfer-Encoding: gzip\r\n\r\nabc", 0,
     "the response has neither a length nor chunks, so its end cannot be seen"},
    {OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0,
     "the length of the body is not clear: Content-Length, Transfer-Encoding"},
    {OK "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 0,
     "the length of the body is not clear: Content-Length, Transfer-Encoding"},
    {OK "Content-Length: -3\r\n\r\nabc", 0,
     "the length of the body is not clear: Content-Length, Transfer-Encoding"},
    {OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", 0, "the chunks of the body are malformed"},
    /* too large */
    {OK "Content-Length: 17\r\n\r\n", 0, "the body is too large"},
    {OK "Content-Length: 18446744073709551615\r\n\r\n", 0,
     "the length of the body is not clear: Content-Length, Transfer-Encoding"},
    {OK "Transfer-Encoding: chunked\r\n\r\n11\r\n01234567890123456\r\n0\r\n\r\n", 0,
     "the body is too large"},
    /* heads that are none */
    {"SSH-2.0-OpenSSH_9.2\r\n", 0, "what came is not a response of HTTP"},
    {"HTTP/2.0 200 OK\r\n" EMPTY, 0, "only HTTP/1.1 and HTTP/1.0 are spoken"},
    {"HTTP/1.1 99 No\r\n" EMPTY, 0, "the status of the response is none of HTTP"},
    {"HTTP/1.1 999 No\r\n" EMPTY, 0, "the status of the response is none of HTTP"},
    {"HTTP/1.1 65736 OK\r\n" EMPTY, 0, "what came is not a response of HTTP"},
    {OK "X Y: z\r\n" EMPTY, 0, "the name of a header has a blank in it"},
    {OK "X: y\r\n z\r\n" EMPTY, 0, "a header goes on in a line that begins with a blank"},
    {OK "X:\0\r\n" EMPTY, sizeof(OK "X:\0\r\n" EMPTY) - 1,
     "the value of a header has a zero in it"},
    {OK "nonsense\r\n\r\n", 0,
     "the head is malformed: each header needs a name, a colon and a line end"},
};

static const char *outcome(struct web_response *response, enum web_read read, char *ret,
                           size_t bytes)
{
    if (read == WEB_READ_MORE) {
        return "more";
    }
    if (read == WEB_READ_REFUSED) {
        assert_int_not_equal(response->code, 0);
        return response->reason;
    }
    (void)snprintf(ret, bytes, "%u %.*s", response->status, (int)response->body.bytes,
                   response->body.data != NULL ? (const char *)response->body.data : "");
    return ret;
}

/* Reads from memory that ends where the piece does. */
static enum web_read read_pieces(struct web_response *response, const char *bytes, size_t count,
                                 size_t piece)
{
    enum web_read read = WEB_READ_MORE;

    for (size_t at = 0; at < count && read == WEB_READ_MORE; at += piece) {
        size_t part = count - at < piece ? count - at : piece, taken;
        char *copy = malloc(part);
        assert_non_null(copy);
        memcpy(copy, bytes + at, part);
        read = web_response_read(response, copy, part, &taken);
        assert_true(taken <= part);
        free(copy);
    }
    return read;
}

static void each_response_is_read_as_listed(void **state)
{
    for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++) {
        const struct transcript *one = &responses[i];
        size_t count = one->count > 0 ? one->count : strlen(one->bytes);
        for (size_t piece = 1; piece <= count + 1; piece += count > 0 ? count : 1) {
            struct web_response response;
            char text[64];
            enum web_read read;
            web_response_init(&response, false, HEAD_MAX, BODY_MAX);
            read = read_pieces(&response, one->bytes, count, piece);
            assert_string_equal(outcome(&response, read, text, sizeof(text)), one->outcome);
            web_response_fini(&response);
        }
    }
}

static void what_follows_an_upgrade_is_left(void **state)
{
    static const char bytes[] = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n"
                                "Connection: Upgrade\r\nContent-Length: 3\r\n\r\nabc";
    struct web_response response;
    size_t taken;

    web_response_init(&response, false, HEAD_MAX, BODY_MAX);
    assert_int_equal(web_response_read(&response, bytes, sizeof(bytes) - 1, &taken),
                     WEB_READ_WHOLE);
    assert_int_equal(taken, sizeof(bytes) - 1 - 3);
    assert_string_equal(web_header(&response.head, "upgrade"), "websocket");
    web_response_fini(&response);
}

static void the_response_to_a_head_request_has_no_body(void **state)
{
    static const char bytes[] = OK "Content-Length: 3000\r\n\r\n";
    struct web_response response;
    size_t taken;

    web_response_init(&response, true, HEAD_MAX, BODY_MAX);
    assert_int_equal(web_response_read(&response, bytes, sizeof(bytes) - 1, &taken),
                     WEB_READ_WHOLE);
    web_response_fini(&response);
}

/* One long header, many short ones, and interim responses without an end. */
static void a_head_has_a_limit_however_it_grows(void **state)
{
    static const char *const first[] = {OK "X: ", OK, ""};
    static const char *const more[] = {"yyyyyyyyyyyyyyyy", "X: y\r\n", "HTTP/1.1 100 C\r\n\r\n"};

    for (size_t i = 0; i < 3; i++) {
        struct web_response response;
        size_t taken, sent = strlen(first[i]);
        enum web_read read = WEB_READ_MORE;
        web_response_init(&response, false, HEAD_MAX, BODY_MAX);
        if (sent > 0) {
            read = web_response_read(&response, first[i], sent, &taken);
        }
        while (read == WEB_READ_MORE && sent < (size_t)4 * HEAD_MAX) {
            read = web_response_read(&response, more[i], strlen(more[i]), &taken);
            sent += strlen(more[i]);
        }
        assert_int_equal(read, WEB_READ_REFUSED);
        assert_int_equal(response.code, BATON_ETOOBIG);
        assert_string_equal(response.reason, "the head is too large");
        web_response_fini(&response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_response_is_read_as_listed),
        cmocka_unit_test(what_follows_an_upgrade_is_left),
        cmocka_unit_test(the_response_to_a_head_request_has_no_body),
        cmocka_unit_test(a_head_has_a_limit_however_it_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
