#include "cmocka_all.h"
#include "detector/request_lines.h"

#include <stdio.h>
#include <string.h>

#define HOST "Host: x\r\n"
#define GOOD "GET /camera/a;1/image?x=../&y=a+b HTTP/1.1\r\n" HOST "\r\n"

/* Number of the first request that is none; 0: all are ones. In one piece and in each two. */
static uint64_t bad(const char *text)
{
    struct request_lines whole = {0};
    size_t bytes = strlen(text);

    (void)request_lines_read(&whole, text, bytes);
    for (size_t i = 0; i <= bytes; i++) {
        struct request_lines parts = {0};
        (void)request_lines_read(&parts, text, i);
        (void)request_lines_read(&parts, text + i, bytes - i);
        assert_int_equal(parts.bad, whole.bad);
        assert_ptr_equal(parts.fault, whole.fault);
        assert_int_equal(parts.begun, whole.begun);
    }
    return whole.bad;
}

static void expect_path(const char *path, bool is_good)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
    if ((bad(text) == 0) != is_good) {
        fail_msg("%s", path);
    }
    (void)snprintf(text, sizeof(text), GOOD "GET %s\n\n" GOOD, path);
    if (bad(text) != (is_good ? 0 : 2)) {
        fail_msg("%s, the second of three", path);
    }
}

static void a_path_that_walks_is_none(void **state)
{
    static const char *const good[] = {"/",
                                       "/camera/a;1/image",
                                       "//camera/a;1/image",
                                       "/a/",
                                       "/a;..x/image",
                                       "/a;..",
                                       "/...",
                                       "/a/.b/..c/d.",
                                       "/a;./b",
                                       "/a?/../b",
                                       "/a?x&y+z",
                                       "/%26%2b",
                                       "/a%2eb",
                                       "/%2f/a",
                                       "/a%3f/..x"};
    static const char *const walking[] = {
        "/..",     "/.",     "/../a",    "/a/../b",     "/a/./b",        "/a//b",
        "/a/..",   "/a/.",   "/a/..?x",  "/a%2f..%2fb", "/a/%2e%2E/b",   "/a/%2e/b",
        "/a/.%2e", "//../a", "/a%2f%2f", "/a;b/../c",   "/a;b%2F..%2Fc", "/%2e%2e",
        "/a&b",    "/a+b",   "/a/%2e.",  "/a%3f/../b",  "/a///",         "/%2f%2e/a"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        expect_path(good[i], true);
    }
    for (size_t i = 0; i < sizeof(walking) / sizeof(walking[0]); i++) {
        expect_path(walking[i], false);
    }
}

static void a_header_is_a_name_a_colon_and_a_value(void **state)
{
    static const struct {
        const char *line;
        bool is_good;
    } cases[] = {
        {"X-Y: z", true},
        {"X-Y:", true},
        {"X-Y:z: \t\xc3\xa9", true},
        {"a!#$%&'*+-.^_`|~9: z", true},
        {"Content-Length: 0", true},
        {"content-length:\t00 ", true},
        {"Content-Lengths: 3", true},
        {"Transfer-Encoding-Not-At-All: x", true},
        {"nonsense", false},
        {": z", false},
        {"X Y: z", false},
        {"X-Y : z", false},
        {"X-Y\t: z", false},
        {" X-Y: z", false},
        {"X-Y: z\r\n\tz", false},
        {"X(Y): z", false},
        {"X\xe9: z", false},
        {"X-Y: a\rb", false},
        {"X-Y: a\x01", false},
        {"X-Y: a\x7f", false},
        {"Content-Length: 3", false},
        {"CONTENT-LENGTH:0x0", false},
        {"Content-Length: 0, 0", false},
        {"transfer-Encoding: chunked", false},
        {"Transfer-Encoding:", false},
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text), GOOD "GET / HTTP/1.1\r\n" HOST "%s\r\n\r\n" GOOD,
                       cases[i].line);
        if (bad(text) != (cases[i].is_good ? 0 : 2)) {
            fail_msg("%s", cases[i].line);
        }
    }
}

static void whoever_asks_again_after_a_fault_is_refused(void **state)
{
    struct request_lines lines = {0};

    (void)state;
    (void)request_lines_read(&lines, GOOD "get / HTTP/1.1\n\n" GOOD,
                             sizeof(GOOD "get / HTTP/1.1\n\n" GOOD) - 1);
    assert_int_equal(lines.begun, 3);
    assert_null(request_lines_fault(&lines, 1, false));
    assert_string_equal(request_lines_fault(&lines, 2, false), "a method is written in capitals");
    assert_ptr_equal(request_lines_fault(&lines, 3, false), lines.fault);
}

static void behind_an_upgrade_are_no_requests(void **state)
{
    static const char text[] = GOOD "GET / HTTP/1.1\r\nupgrade: websocket\r\n" HOST "\r\n";
    struct request_lines lines = {0};

    (void)state;
    assert_int_equal(request_lines_read(&lines, text, sizeof(text)), sizeof(text) - 1);
    assert_int_equal(request_lines_read(&lines, "get\r\r", 5), 0);
    assert_int_equal(lines.begun, 2);
    assert_null(request_lines_fault(&lines, 1, false));
    assert_null(request_lines_fault(&lines, 2, true));
    assert_non_null(request_lines_fault(&lines, 2, false)); /* who was not told of an upgrade */
    assert_non_null(request_lines_fault(&lines, 3, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_that_walks_is_none),
        cmocka_unit_test(a_header_is_a_name_a_colon_and_a_value),
        cmocka_unit_test(whoever_asks_again_after_a_fault_is_refused),
        cmocka_unit_test(behind_an_upgrade_are_no_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
