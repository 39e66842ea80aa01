#include "base/log.h"
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char line[4096];

static const char *written_by(enum log_format format, const char *value)
{
    int ends[2];
    ssize_t length;
    struct logger *logger;

    assert_int_equal(pipe(ends), 0);
    logger = logger_new(ends[1], format, LOG_INFO);
    assert_non_null(logger);
    log_debug(logger, "not-wanted");
    log_warning(logger, "peer-refused", LOG_STR("peer", value), LOG_U64("term", 7),
                LOG_BOOL("tls", true));
    close(ends[1]);
    length = read(ends[0], line, sizeof(line) - 1);
    assert_true(length > 0);
    line[length] = '\0';
    close(ends[0]);
    logger_free(logger);
    return line;
}

static void a_person_reads_words(void **state)
{
    assert_non_null(strstr(written_by(LOG_FORMAT_HUMAN, "b"),
                           " warning peer-refused peer=b term=7 tls=true\n"));
}

static void a_program_reads_json(void **state)
{
    assert_non_null(strstr(written_by(LOG_FORMAT_JSON, "b\"c"),
                           "\"level\":\"warning\",\"event\":\"peer-refused\",\"peer\":\"b\\\"c\","
                           "\"term\":7,\"tls\":true}\n"));
}

static void the_journal_gets_a_priority(void **state)
{
    assert_int_equal(strncmp(written_by(LOG_FORMAT_JOURNAL, "b"), "<4>peer-refused ", 16), 0);
}

/* What a service starts inherits the variable, and may write to a file. */
static void the_journal_is_known_by_its_descriptor(void **state)
{
    struct stat status;
    char own[64];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fstat(ends[1], &status), 0);
    (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", "8:4711", 1), 0);
    assert_int_equal(log_format_for(ends[1], false), LOG_FORMAT_HUMAN);
    assert_string_equal(log_prefix(ends[1], LOG_ERROR), "");
    assert_int_equal(setenv("JOURNAL_STREAM", own, 1), 0);
    assert_int_equal(log_format_for(ends[1], false), LOG_FORMAT_JOURNAL);
    assert_int_equal(log_format_for(ends[1], true), LOG_FORMAT_JSON);
    assert_string_equal(log_prefix(ends[1], LOG_ERROR), "<3>");
    assert_string_equal(log_prefix(ends[1], LOG_WARNING), "<4>");
    assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
    assert_int_equal(log_format_for(ends[1], false), LOG_FORMAT_HUMAN);
    close(ends[0]);
    close(ends[1]);
}

static void a_field_without_a_value_is_left_out(void **state)
{
    assert_non_null(strstr(written_by(LOG_FORMAT_HUMAN, NULL), " peer-refused term=7 tls=true\n"));
    assert_non_null(strstr(written_by(LOG_FORMAT_JSON, NULL),
                           "\"event\":\"peer-refused\",\"term\":7,\"tls\":true}\n"));
}

static void a_newline_from_outside_stays_inside_its_value(void **state)
{
    const char *text = written_by(LOG_FORMAT_HUMAN, "b\nerror forged");
    assert_non_null(strstr(text, "peer=\"b\\u000aerror forged\""));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void no_value_moves_a_terminals_cursor(void **state)
{
    assert_non_null(strstr(written_by(LOG_FORMAT_HUMAN, "\x1b[2J\x7f\xc2\x9b"
                                                        "2J\xc3\x9b"),
                           "peer=\"\\u001b[2J\\u007f\\u009b2J\xc3\x9b\""));
}

static void a_reader_that_stands_still_does_not_stop_the_program(void **state)
{
    int ends[2];
    struct logger *logger;
    ssize_t length;

    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    logger = logger_new(ends[1], LOG_FORMAT_HUMAN, LOG_INFO);
    (void)alarm(60); /* ends a logger that waits for the reader */
    for (int i = 0; i < 1000; i++) {
        log_info(logger, "before");
    }
    length = read(ends[0], line, sizeof(line));
    assert_true(length > 0);
    log_info(logger, "after");
    (void)alarm(0);
    length = read(ends[0], line, sizeof(line) - 1);
    assert_true(length > 0);
    line[length] = '\0';
    assert_non_null(strstr(line, " warning log-lines-left-out count="));
    assert_non_null(strstr(line, " after\n"));
    close(ends[0]);
    close(ends[1]);
    logger_free(logger);
}

static void without_a_logger_nothing_happens(void **state)
{
    log_error(NULL, "silent", LOG_STR("a", "b"));
    assert_false(log_wants(NULL, LOG_ERROR));
    assert_int_equal(log_level_parse("debug"), LOG_DEBUG);
    assert_int_equal(log_level_parse("loud"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_reads_words),
        cmocka_unit_test(a_program_reads_json),
        cmocka_unit_test(the_journal_gets_a_priority),
        cmocka_unit_test(the_journal_is_known_by_its_descriptor),
        cmocka_unit_test(a_newline_from_outside_stays_inside_its_value),
        cmocka_unit_test(no_value_moves_a_terminals_cursor),
        cmocka_unit_test(a_field_without_a_value_is_left_out),
        cmocka_unit_test(a_reader_that_stands_still_does_not_stop_the_program),
        cmocka_unit_test(without_a_logger_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
