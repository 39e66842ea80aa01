/* Requests as bytes, and how they are parsed: at once, and byte by byte. */
#include "web/request.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define HOST "Host: x\r\n"
#define GET  "GET /a HTTP/1.1\r\n"

/* What came of it: "GET /a", with the body behind it; or "400". */
struct transcript {
    const char *bytes;
    size_t count; /* 0: strlen(bytes) */
    const char *outcome;
};

static const struct transcript questions[] = {
    {GET HOST "\r\n", 0, "GET /a"},
    {"GET /a HTTP/1.1\nHost: x\n\n", 0, "GET /a"},
    {"\r\n" GET HOST "\r\n", 0, "GET /a"},
    {"GET /a HTTP/1.0\r\n\r\n", 0, "GET /a"},
    {"HEAD //a/../b%2Fc?x=%zz HTTP/1.1\r\n" HOST "\r\n", 0, "HEAD //a/../b%2Fc?x=%zz"},
    {"GET /\xc3\xa9;&+~ HTTP/1.1\r\n" HOST "\r\n", 0, "GET /\xc3\xa9;&+~"},
    {GET HOST "X-Y:\t \xff\xfe \r\nX-Z:\r\n\r\n", 0, "GET /a"},
    {GET HOST "Content-Length: 0\r\n\r\n", 0, "GET /a"},
    {GET "Host:\r\n\r\n", 0, "GET /a"},
    /* hosts */
    {GET "\r\n", 0, "400"},
    {GET HOST HOST "\r\n", 0, "400"},
    {"GET /a HTTP/1.0\r\n" HOST "Host: y\r\n\r\n", 0, "400"},
    {GET "Host: a b\r\n\r\n", 0, "400"},
    {GET "Host: evil@x\r\n\r\n", 0, "400"},
    {GET "Host: a\r\n b\r\n\r\n", 0, "400"},
    /* bodies, and what could hide one */
    {GET HOST "Content-Length: 3\r\n\r\nabc", 0, "400"},
    {GET HOST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length: 0, 0\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length: +0\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length: 0x0\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length: -1\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length: 99999999999999999999999\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length:\r\n\r\n", 0, "400"},
    {GET HOST "Content-Length : 3\r\n\r\nabc", 0, "400"},
    {GET HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding: identity\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding:\r\n\r\n", 0, "400"},
    {GET HOST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 0, "400"},
    {GET HOST "X-Y: z\r\n Content-Length: 3\r\n\r\n", 0, "400"},
    {GET HOST "X-Y: z\r\n\tz\r\n\r\n", 0, "400"},
    {GET " X-Y: z\r\n" HOST "\r\n", 0, "400"},
    /* headers that are none */
    {GET HOST "nonsense\r\n\r\n", 0, "400"},
    {GET HOST ": x\r\n\r\n", 0, "400"},
    {GET HOST "X Y: z\r\n\r\n", 0, "400"},
    {GET HOST "X-Y: a\rb\r\n\r\n", 0, "400"},
    {GET HOST "X-Y: a\x01b\r\n\r\n", 0, "400"},
    {GET HOST "X-Y: a\x7f"
              "b\r\n\r\n",
     0, "400"},
    {GET HOST "X-Y: a\0b\r\n\r\n", sizeof(GET HOST "X-Y: a\0b\r\n\r\n") - 1, "400"},
    {GET "Host: \0x\r\n\r\n", sizeof(GET "Host: \0x\r\n\r\n") - 1, "400"},
    {GET HOST "X-Y:\0\r\n\r\n", sizeof(GET HOST "X-Y:\0\r\n\r\n") - 1, "400"},
    {GET HOST "X\xe9: y\r\n\r\n", 0, "400"},
    /* request lines that are none */
    {"get /a HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"BREW /a HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET a HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET * HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET http://x/a HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET /a b HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET /a\tb HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET /a\x01 HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET /a\0b HTTP/1.1\r\n" HOST "\r\n", 28, "400"},
    {"GET\t/a\tHTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET  HTTP/1.1\r\n" HOST "\r\n", 0, "400"},
    {"GET /a HTTP/1.1 \r\n" HOST "\r\n", 0, "400"},
    {"GET /a HTTP/1.2\r\n" HOST "\r\n", 0, "400"},
    {"GET /a HTTP/2.0\r\n" HOST "\r\n", 0, "400"},
    {"GET /a\r\n\r\n", 0, "400"},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, "400"},
    {"GET /a HTTP/1.1\r\r\n" HOST "\r\n", 0, "400"},
    /* changes */
    {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 0, "405"},
    {"DELETE /a HTTP/1.1\r\n" HOST "\r\n", 0, "405"},
    {"CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n", 0, "405"},
};

#define POST "POST /a HTTP/1.1\r\n" HOST

static const struct transcript changes[] = {
    {POST "Content-Length: 3\r\n\r\nabc", 0, "POST /a abc"},
    {POST "Content-Length: 8\r\n\r\n01234567", 0, "POST /a 01234567"},
    {POST "Content-Length: 9\r\n\r\n012345678", 0, "413"},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: x\r\n\r\n", 0,
     "POST /a abcde"},
    {POST "Transfer-Encoding: Chunked\r\n\r\n8\r\n01234567\r\n0\r\n\r\n", 0, "POST /a 01234567"},
    {POST "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n1\r\n8\r\n0\r\n\r\n", 0, "413"},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 0, "400"},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 0, "400"},
    {POST "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 0, "400"},
    {POST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 0, "400"},
    {POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 0, "400"},
    {POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "400"},
    {POST "\r\n", 0, "POST /a"},
};

static void describe(const struct web_request *request, enum web_read read, char ret[64])
{
    if (read == WEB_READ_MORE) {
        (void)snprintf(ret, 64, "more");
    } else if (read == WEB_READ_REFUSED) {
        assert_non_null(request->reason);
        (void)snprintf(ret, 64, "%u", request->status);
    } else {
        (void)snprintf(ret, 64, "%s %s%s%.*s", request->method, request->target,
                       request->body.bytes > 0 ? " " : "", (int)request->body.bytes,
                       request->body.bytes > 0 ? (const char *)request->body.data : "");
    }
}

static void expect(const struct transcript *one, size_t body_max, size_t piece)
{
    size_t count = one->count > 0 ? one->count : strlen(one->bytes), at = 0;
    enum web_read read = WEB_READ_MORE;
    struct web_request request;
    char outcome[64];

    web_request_init(&request, 4096, body_max);
    while (at < count && read == WEB_READ_MORE) {
        size_t taken, bytes = count - at < piece ? count - at : piece;
        read = web_request_read(&request, one->bytes + at, bytes, &taken);
        assert_true(taken <= bytes);
        assert_true(read != WEB_READ_MORE || taken == bytes);
        at += taken;
    }
    describe(&request, read, outcome);
    if (strcmp(outcome, one->outcome) != 0) {
        fail_msg("in pieces of %zu: %s gave %s (%s), not %s", piece, one->bytes, outcome,
                 request.reason != NULL ? request.reason : "-", one->outcome);
    }
    if (read == WEB_READ_WHOLE) {
        assert_int_equal(at, count);
    }
    web_request_fini(&request);
}

static void a_question_is_read_as_sent_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        expect(&questions[i], 0, SIZE_MAX);
        expect(&questions[i], 0, 1);
        expect(&questions[i], 0, 3);
    }
}

static void a_body_is_read_whole_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        expect(&changes[i], 8, SIZE_MAX);
        expect(&changes[i], 8, 1);
    }
}

static void what_follows_a_request_is_left_for_the_next(void **state)
{
    static const char bytes[] = GET HOST "\r\nGET /b HTTP/1.1\r\n" HOST "\r\n";
    const size_t first = sizeof(GET HOST "\r\n") - 1;
    struct web_request request;
    size_t taken;

    web_request_init(&request, 4096, 0);
    assert_int_equal(request.head.bytes, 0);
    assert_int_equal(web_request_read(&request, bytes, sizeof(bytes) - 1, &taken), WEB_READ_WHOLE);
    assert_int_equal(taken, first);
    assert_string_equal(request.target, "/a");
    web_request_next(&request);
    assert_int_equal(web_request_read(&request, bytes + first, sizeof(bytes) - 1 - first, &taken),
                     WEB_READ_WHOLE);
    assert_string_equal(request.target, "/b");
    web_request_fini(&request);
}

static void a_head_has_a_limit(void **state)
{
    struct web_request request;
    char bytes[5000] = GET HOST "X-A: ";
    size_t taken, used = strlen(bytes);

    memset(bytes + used, 'a', sizeof(bytes) - used);
    web_request_init(&request, 4096, 0);
    assert_int_equal(web_request_read(&request, bytes, sizeof(bytes), &taken), WEB_READ_REFUSED);
    assert_int_equal(request.status, 431);
    web_request_fini(&request);
}

static void headers_are_found_by_any_case_and_lists_by_their_items(void **state)
{
    static const char bytes[] = GET HOST "X-A:\t one \r\nx-a: TWO , three\r\nEmpty:\r\n\r\n";
    struct web_request request;
    size_t taken;

    web_request_init(&request, 4096, 0);
    assert_int_equal(web_request_read(&request, bytes, sizeof(bytes) - 1, &taken), WEB_READ_WHOLE);
    assert_string_equal(web_header(&request.head, "x-A"), "one");
    assert_string_equal(web_header(&request.head, "empty"), "");
    assert_null(web_header(&request.head, "x"));
    assert_int_equal(web_header_count(&request.head, "x-a"), 2);
    assert_true(web_header_lists(&request.head, "x-a", "two"));
    assert_true(web_header_lists(&request.head, "x-a", "one"));
    assert_false(web_header_lists(&request.head, "x-a", "on"));
    assert_false(web_header_lists(&request.head, "x-a", "ones"));
    web_request_fini(&request);
}

static void the_connection_goes_on_unless_a_side_ends_it(void **state)
{
    static const struct {
        const char *bytes;
        bool is_last, is_upgrade;
    } cases[] = {
        {GET HOST "\r\n", false, false},
        {GET HOST "Connection: TE, Close\r\n\r\n", true, false},
        {GET HOST "Connection: x\r\nConnection: close\r\n\r\n", true, false},
        {GET HOST "Connection: closed\r\n\r\n", false, false},
        {"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false},
        {GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false, true},
        {GET HOST "Upgrade: websocket\r\n\r\n", false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct web_request request;
        size_t taken;
        web_request_init(&request, 4096, 0);
        assert_int_equal(web_request_read(&request, cases[i].bytes, strlen(cases[i].bytes), &taken),
                         WEB_READ_WHOLE);
        assert_int_equal(taken, strlen(cases[i].bytes));
        assert_int_equal(request.is_last, cases[i].is_last);
        assert_int_equal(request.is_upgrade, cases[i].is_upgrade);
        web_request_fini(&request);
    }
}

static void a_path_is_decoded_or_refused(void **state)
{
    static const struct {
        const char *target, *path; /* NULL: refused */
    } cases[] = {
        {"/", "/"},
        {"/a/b?c", "/a/b"},
        {"//a", "/a"},
        {"///", "/"},
        {"/a/", "/a/"},
        {"/%61%2Fb;+&=", "/a/b;+&="},
        {"/.a/..b/c.", "/.a/..b/c."},
        {"/\xc3\xa9", "/\xc3\xa9"},
        {"/a//b", NULL},
        {"/a%2f/b", NULL},
        {"/%2fa", NULL},
        {"/.", NULL},
        {"/..", NULL},
        {"/./a", NULL},
        {"/a/../b", NULL},
        {"/a/%2e%2E/b", NULL},
        {"/a/..%2fb", NULL},
        {"/a/..", NULL},
        {"/a/.?x", NULL},
        {"/%", NULL},
        {"/%z", NULL},
        {"/%0", NULL},
        {"/%0g", NULL},
        {"/a%00b", NULL},
        {"/%c3%A9/\xf0\x9f\x98\x80", "/\xc3\xa9/\xf0\x9f\x98\x80"},
        {"/%ff", NULL},
        {"/a%c3/b", NULL},
        {"/a%c3", NULL},
        {"/%ed%a0%80", NULL},
        {"/\xff?a", NULL},
    };
    char long_target[WEB_PATH_MAX + 2], path[WEB_PATH_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *fault = web_path(cases[i].target, path);
        if ((fault == NULL) != (cases[i].path != NULL)) {
            fail_msg("%s: %s, %s", cases[i].target, fault != NULL ? fault : "no fault", path);
        }
        if (fault == NULL) {
            assert_string_equal(path, cases[i].path);
        }
    }
    memset(long_target, 'a', sizeof(long_target));
    long_target[0] = '/';
    long_target[WEB_PATH_MAX - 1] = '\0';
    assert_null(web_path(long_target, path));
    long_target[WEB_PATH_MAX - 1] = 'a';
    long_target[WEB_PATH_MAX] = '\0';
    assert_non_null(web_path(long_target, path));
    assert_string_equal(web_query("/a?b=%2F&c?d"), "b=%2F&c?d");
    assert_string_equal(web_query("/a"), "");
}

static void a_query_is_left_as_it_is_or_refused(void **state)
{
    static const char *const good[] = {"/a", "/%zz?", "/a?b=%2f&&c=%c3\xff", "/a?../..//;+"};
    static const char *const bad[] = {"/a?%",   "/a?b=%z1",  "/a?b=%0",
                                      "/a?%00", "/a?b=1%0a", "/a?\x7f"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(web_query_fault(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(web_query_fault(bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_read_as_sent_or_refused),
        cmocka_unit_test(a_body_is_read_whole_or_refused),
        cmocka_unit_test(what_follows_a_request_is_left_for_the_next),
        cmocka_unit_test(a_head_has_a_limit),
        cmocka_unit_test(headers_are_found_by_any_case_and_lists_by_their_items),
        cmocka_unit_test(the_connection_goes_on_unless_a_side_ends_it),
        cmocka_unit_test(a_path_is_decoded_or_refused),
        cmocka_unit_test(a_query_is_left_as_it_is_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
