/* What a command writes is kept, and of much the end. */
#include "cli/job_output.h"
#include "cmocka_all.h"
#include "work/message.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uv_loop_t loop;
static struct job_output *output;
static int writer; /* the command's own descriptor, as after a fork */

static int begin(void **state)
{
    int end;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(job_output_open(&output, &loop, &end, NULL), BATON_OK);
    writer = dup(end);
    assert_true(writer >= 0);
    job_output_started(output);
    return 0;
}

static int end(void **state)
{
    if (writer >= 0) {
        close(writer);
    }
    job_output_close(output);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void put(const char *text, size_t bytes)
{
    assert_int_equal(write(writer, text, bytes), bytes);
}

static void expect(const char *text, size_t bytes)
{
    uint8_t *kept;
    size_t kept_bytes;

    job_output_take(output, &kept, &kept_bytes);
    assert_int_equal(kept_bytes, bytes);
    if (bytes > 0) {
        assert_memory_equal(kept, text, bytes);
    }
    free(kept);
}

static void what_the_loop_has_not_read_is_there_too(void **state)
{
    put("first ", 6);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    put("last", 4);
    expect("first last", 10);
}

static void nothing_written_is_nothing(void **state)
{
    expect("", 0);
}

static void bytes_are_bytes(void **state)
{
    put("a\0\xff\r\n", 5);
    expect("a\0\xff\r\n", 5);
}

static void of_much_output_the_end_is_kept(void **state)
{
    static char all[3 * WORK_OUTPUT_MAX + 7];
    size_t step = 1000;

    for (size_t i = 0; i < sizeof(all); i++) {
        all[i] = (char)('a' + i % 23);
    }
    for (size_t at = 0; at < sizeof(all); at += step) {
        put(all + at, at + step < sizeof(all) ? step : sizeof(all) - at);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    expect(all + sizeof(all) - WORK_OUTPUT_MAX, WORK_OUTPUT_MAX);
}

static void an_output_that_was_closed_keeps_what_came(void **state)
{
    put("bye", 3);
    close(writer);
    writer = -1;
    (void)uv_run(&loop, UV_RUN_DEFAULT); /* until the end of file */
    expect("bye", 3);
}

static void no_output_is_taken_and_closed_as_nothing(void **state)
{
    uint8_t *kept;
    size_t bytes;

    job_output_take(NULL, &kept, &bytes);
    assert_null(kept);
    assert_int_equal(bytes, 0);
    job_output_close(NULL);
}

#define OUTPUT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTPUT_TEST(what_the_loop_has_not_read_is_there_too),
        OUTPUT_TEST(nothing_written_is_nothing),
        OUTPUT_TEST(bytes_are_bytes),
        OUTPUT_TEST(of_much_output_the_end_is_kept),
        OUTPUT_TEST(an_output_that_was_closed_keeps_what_came),
        cmocka_unit_test(no_output_is_taken_and_closed_as_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
