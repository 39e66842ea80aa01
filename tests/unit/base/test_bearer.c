#include "base/bearer.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct baton_error error;
static char path[64];

static int begin(void **state)
{
    int fd;
    snprintf(path, sizeof(path), "/tmp/baton-bearer-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
    return unlink(path);
}

static int read_it(const char *text, size_t bytes, char *ret, size_t ret_bytes)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_int_equal(write(fd, text, bytes), bytes);
    close(fd);
    return bearer_read(ret, ret_bytes, path, &error);
}

static void a_token_is_the_one_line_of_its_file(void **state)
{
    static const char *const right[] = {"0123456789abcdef", "0123456789abcdef\n",
                                        "0123456789abcdef\r\n"};
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "shorter than 16"},
        {"\n", "one line"},
        {"0123456789abcde", "shorter than 16"},
        {"0123456789abcdef\nmore", "one line"},
        {"0123456789abc def", "one line"},
        {"0123456789abcdef0123456789abcdefgeheim", "longer than 30"},
    };
    char token[32];

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_int_equal(read_it(right[i], strlen(right[i]), token, sizeof(token)), BATON_OK);
        assert_string_equal(token, "0123456789abcdef");
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(read_it(wrong[i].text, strlen(wrong[i].text), token, sizeof(token)),
                         BATON_EINVAL);
        if (!strstr(error.message, wrong[i].says) || strstr(error.message, "geheim")) {
            fail_msg("%s", error.message);
        }
    }
    assert_int_equal(read_it("0123456789\0abcdef", 17, token, sizeof(token)), BATON_EINVAL);
}

static void what_others_may_read_is_refused(void **state)
{
    static const mode_t always[] = {0600, 0400};
    static const mode_t never[] = {0604, 0644, 0660, 0602, 0666};
    char token[32];

    assert_int_equal(read_it("0123456789abcdef", 16, token, sizeof(token)), BATON_OK);
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        assert_int_equal(chmod(path, always[i]), 0);
        assert_int_equal(bearer_read(token, sizeof(token), path, &error), BATON_OK);
    }
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        assert_int_equal(chmod(path, never[i]), 0);
        assert_int_equal(bearer_read(token, sizeof(token), path, &error), BATON_EAUTH);
        assert_non_null(strstr(error.message, "chmod 600"));
    }
}

/* A program that reads its token again would stand still. */
static void a_fifo_that_nobody_writes_to_is_not_waited_for(void **state)
{
    char token[32];
    int writer;

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(bearer_read(token, sizeof(token), path, &error), BATON_EINVAL);
    writer = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(write(writer, "0123456789abcdef0123456789abcdef", 32), 32);
    assert_int_equal(bearer_read(token, sizeof(token), path, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "longer than 30"));
    close(writer);
}

static void only_roots_may_be_read_by_its_group(void **state)
{
    char token[32];

    assert_int_equal(read_it("0123456789abcdef", 16, token, sizeof(token)), BATON_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(bearer_read(token, sizeof(token), path, &error),
                     getuid() == 0 ? BATON_OK : BATON_EAUTH);
    if (getuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(bearer_read(token, sizeof(token), path, &error), BATON_EAUTH);
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    char token[32];

    assert_int_equal(bearer_read(token, sizeof(token), "/nonexistent/token", &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "/nonexistent/token"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_token_is_the_one_line_of_its_file),
        CASE(what_others_may_read_is_refused),
        CASE(only_roots_may_be_read_by_its_group),
        CASE(a_fifo_that_nobody_writes_to_is_not_waited_for),
        CASE(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
