/* What the head of a server's answer says of the file, line by line. */
#include "cmocka_all.h"

#include "detector/model/reply.h"

#include <string.h>

static struct reply read_head(const char *head)
{
    struct reply reply;

    reply_init(&reply);
    while (*head != '\0') {
        size_t bytes = strcspn(head, "\n");
        bytes += head[bytes] == '\n';
        reply_line(&reply, head, bytes);
        head += bytes;
    }
    return reply;
}

static void etags_are_taken_as_they_are(void **state)
{
    static const struct {
        const char *head, *etag;
    } rows[] = {
        {"ETag: \"v1\"\r\n", "\"v1\""},
        {"etag:\"v1\"\n", "\"v1\""},
        {"ETAG: \t W/\"v1\" \t\r\n", "W/\"v1\""},
        {"X-ETag: \"v1\"\r\n", ""},
        {"ETag\r\n", ""},
        {"ETag:\r\n", ""},
        {"ETag: \"a b\"\r\n", ""},     /* would be two words of a line of ours */
        {"ETag: \"a\rb\"\r\n", ""},    /* or two lines */
        {"ETag: \"caf\xe9\"\r\n", ""}, /* or no ASCII */
        {"ETag: \"v1\"\r\nHTTP/1.1 200 OK\r\n", ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nETag: \"v2\"\r\n", "\"v2\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(read_head(rows[i].head).etag, rows[i].etag);
    }
}

static void parts_are_taken_only_if_they_make_sense(void **state)
{
    static const struct {
        const char *head;
        int64_t start, total;
    } rows[] = {
        {"Content-Range: bytes 100-199/200\r\n", 100, 200},
        {"content-range:bytes 0-0/1\r\n", 0, 1},
        {"Content-Range: bytes 100-199/*\r\n", 100, -1},
        {"Content-Range: bytes 100-199/150\r\n", 100, -1},
        {"Content-Range: bytes 100-99/200\r\n", -1, -1},
        {"Content-Range: bytes -100-199/200\r\n", -1, -1},
        {"Content-Range: bytes */200\r\n", -1, -1},
        {"Content-Range: bytes 99999999999999999999-199/200\r\n", -1, -1},
        {"Content-Range: words 1-2/3\r\n", -1, -1},
        {"Content-Range: bytes\r\n", -1, -1},
        {"Content-Length: 100\r\n", -1, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply reply = read_head(rows[i].head);
        assert_int_equal(reply.range_start, rows[i].start);
        assert_int_equal(reply.range_total, rows[i].total);
    }
}

static void what_is_too_long_is_not_taken(void **state)
{
    char line[REPLY_ETAG_BYTES + 16], etag[REPLY_ETAG_BYTES];
    struct reply reply;

    (void)state;
    memset(line, 'e', sizeof(line));
    reply_etag(etag, line, REPLY_ETAG_BYTES);
    assert_string_equal(etag, "");
    reply_etag(etag, line, REPLY_ETAG_BYTES - 1);
    assert_int_equal(strlen(etag), REPLY_ETAG_BYTES - 1);
    reply_init(&reply);
    memcpy(line, "ETag: ", 6);
    reply_line(&reply, line, sizeof(line));
    assert_string_equal(reply.etag, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etags_are_taken_as_they_are),
        cmocka_unit_test(parts_are_taken_only_if_they_make_sense),
        cmocka_unit_test(what_is_too_long_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
