/* A record is read as it was written, and nothing else is taken for one. */
#include "cmocka_all.h"
#include "cron/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cron_text text = {"* * * * *", "Europe/Berlin", "echo \"x\""};

static struct cron_record full(void)
{
    struct cron_record record = {.since_s = 1,
                                 .fire_s = 1200,
                                 .next_s = 1260,
                                 .state = CRON_RUNNING,
                                 .running_count = 2,
                                 .last = {.run = {60, 2, "b", 6, 60001},
                                          .state = CRON_FAILED,
                                          .exit_code = 3,
                                          .end_ms = 61000,
                                          .output = "one\ntwo\n"},
                                 .runs = 7,
                                 .failures = 1,
                                 .interrupted = 4,
                                 .skipped = 2,
                                 .missed = 3};

    record.running[0] = (struct cron_run){1140, 1, "a", 7, 1140001};
    record.running[1] = (struct cron_run){1200, 3, "a", 0, 1200001};
    return record;
}

static void it_is_read_as_it_was_written(void **state)
{
    struct cron_record record = full(), read;
    char *written = cron_record_write(&record, &text), *again;
    assert_non_null(written);
    assert_int_equal(cron_record_read(&read, written, strlen(written), NULL), 0);
    assert_memory_equal(&read.running, &record.running, sizeof(record.running));
    assert_string_equal(read.last.output, "one\ntwo\n");
    again = cron_record_write(&read, &text);
    assert_string_equal(again, written);
    free(written);
    free(again);
}

static void one_that_never_ran_has_no_last_run_and_no_code(void **state)
{
    struct cron_record record = {.since_s = 5}, read;
    char *written = cron_record_write(&record, &text);
    assert_null(strstr(written, "\"last\""));
    assert_int_equal(cron_record_read(&read, written, strlen(written), NULL), 0);
    assert_int_equal(read.last.run.attempt, 0);
    free(written);
    record = full();
    record.last.exit_code = -1;
    written = cron_record_write(&record, &text);
    assert_null(strstr(written, "exit_code"));
    assert_int_equal(cron_record_read(&read, written, strlen(written), NULL), 0);
    assert_int_equal(read.last.exit_code, -1);
    free(written);
}

/* With `from` replaced by `to`. */
static void expect_refused(const char *from, const char *to, const char *why)
{
    struct cron_record record = full(), read;
    struct baton_error error = {0};
    char *written = cron_record_write(&record, &text), *at = strstr(written, from);
    char changed[4096];

    assert_non_null(at);
    (void)snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - written), written, to,
                   at + strlen(from));
    assert_int_equal(cron_record_read(&read, changed, strlen(changed), &error), BATON_EPROTO);
    if (!strstr(error.message, why)) {
        fail_msg("'%s' does not say '%s'", error.message, why);
    }
    free(written);
}

static void what_is_wrong_is_named(void **state)
{
    expect_refused("\"since\":1", "\"since\":-1", "since");
    expect_refused("\"since\":1,", "", "since is missing");
    expect_refused("\"since\":1", "\"since\":9223372036854775807", "since");
    expect_refused("\"fire\":1200,\"interrupted\"", "\"fire\":\"x\",\"interrupted\"",
                   "fire is a string");
    expect_refused("\"state\":\"running\"", "\"state\":\"asleep\"", "state 'asleep'");
    expect_refused("\"attempt\":3", "\"attempt\":0", "running[1].attempt");
    expect_refused("\"exit_code\":3", "\"exit_code\":300", "last.exit_code");
    expect_refused("\"output\":\"one\\ntwo\\n\"", "\"output\":[]", "last.output");
    expect_refused("\"output\":\"one\\ntwo\\n\"", "\"output\":\"\\u0000\"", "");
    expect_refused("\"running\":[", "\"running\":[5,", "running[0]");
    expect_refused("\"running\":[", "\"runnin\":[", "running is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_as_it_was_written),
        cmocka_unit_test(one_that_never_ran_has_no_last_run_and_no_code),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
