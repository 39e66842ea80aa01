/* A crontab is read whole, or refused with the line and the reason. */
#include "cmocka_all.h"
#include "cron/crontab.h"

#include <stdio.h>
#include <string.h>

static bool has_zone(const char *name)
{
    return strcmp(name, "Europe/Berlin") == 0 || strcmp(name, "UTC") == 0 || !*name;
}

static struct crontab *parse(const char *text)
{
    struct crontab *crontab = NULL;
    struct baton_error error = {0};

    if (crontab_parse(&crontab, text, strlen(text), "file", has_zone, &error)) {
        fail_msg("%s", error.message);
    }
    return crontab;
}

static void expect_refused(const char *text, const char *why)
{
    struct crontab *crontab;
    struct baton_error error = {0};

    assert_int_equal(crontab_parse(&crontab, text, strlen(text), "file", has_zone, &error),
                     BATON_EINVAL);
    if (!strstr(error.message, why)) {
        fail_msg("'%s' does not say '%s'", error.message, why);
    }
}

static void a_classic_crontab_is_one(void **state)
{
    struct crontab *crontab = parse("\xEF\xBB\xBF# a comment\n"
                                    "\n"
                                    "SHELL=/bin/bash\n"
                                    "PATH = \"/usr/bin:/bin\"\r\n"
                                    "MAILTO=\"\"\n"
                                    "17 *\t* * *   cd / && run-parts \\%F\n"
                                    "  @daily backup");
    assert_int_equal(crontab->count, 2);
    assert_string_equal(crontab->lines[0].when, "17 * * * *");
    assert_string_equal(crontab->lines[0].command, "cd / && run-parts %F");
    assert_string_equal(crontab->lines[0].zone, "");
    assert_int_equal(crontab->lines[0].number, 6);
    assert_string_equal(crontab_variable(crontab, &crontab->lines[0], "PATH"), "/usr/bin:/bin");
    assert_string_equal(crontab_variable(crontab, &crontab->lines[0], "SHELL"), "/bin/bash");
    assert_null(crontab_variable(crontab, &crontab->lines[0], "HELL"));
    assert_string_equal(crontab->lines[1].when, "@daily");
    assert_int_equal(crontab->lines[1].overlap, CRON_OVERLAP_SKIP);
    assert_int_equal(crontab->lines[1].missed, CRON_MISSED_RUN_ONCE);
    assert_int_equal(crontab->lines[1].interrupted, CRON_INTERRUPTED_RUN_AGAIN);
    crontab_free(crontab);
}

static void options_are_those_of_the_next_line(void **state)
{
    struct crontab *crontab = parse("# baton: name=report overlap=wait missed=skip\n"
                                    "#baton:  interrupted=skip\n"
                                    "# it is long\n"
                                    "* * * * * report\n"
                                    "# baton: overlap=allow jitter=10s\n"
                                    "* * * * * other\n"
                                    "* * * * * third\n");
    const struct cron_line *report = crontab_find(crontab, "report");
    assert_ptr_equal(report, &crontab->lines[0]);
    assert_int_equal(report->overlap, CRON_OVERLAP_WAIT);
    assert_int_equal(report->missed, CRON_MISSED_SKIP);
    assert_int_equal(report->interrupted, CRON_INTERRUPTED_SKIP);
    assert_int_equal(report->delay_s, 0);
    assert_int_equal(crontab->lines[1].overlap, CRON_OVERLAP_ALLOW);
    assert_in_range(crontab->lines[1].delay_s, 0, 10);
    assert_int_equal(crontab->lines[2].overlap, CRON_OVERLAP_SKIP);
    crontab_free(crontab);
}

static void a_zone_counts_for_the_lines_below_it(void **state)
{
    struct crontab *crontab = parse("* * * * * a\nCRON_TZ=Europe/Berlin\n* * * * * b\n"
                                    "TZ=UTC\n* * * * * c\nCRON_TZ=\n* * * * * d");
    assert_string_equal(crontab->lines[0].zone, "");
    assert_string_equal(crontab->lines[1].zone, "Europe/Berlin");
    assert_null(crontab_variable(crontab, &crontab->lines[1], "TZ"));
    assert_string_equal(crontab->lines[2].zone, "UTC");
    assert_string_equal(crontab_variable(crontab, &crontab->lines[2], "TZ"), "UTC");
    assert_string_equal(crontab->lines[3].zone, "");
    crontab_free(crontab);
}

static void a_line_keeps_its_id_when_the_order_changes(void **state)
{
    struct crontab *one = parse("* * * * * a\n*/5 * * * * b\n");
    struct crontab *other = parse("# new\n*/5  *  * * *   b\n0 0 * * * new\n* * * * * a\n");
    struct crontab *changed = parse("* * * * * a2\n*/6 * * * * b\nTZ=UTC\n* * * * * a\n");
    assert_ptr_equal(crontab_find(other, one->lines[0].id), &other->lines[2]);
    assert_ptr_equal(crontab_find(other, one->lines[1].id), &other->lines[0]);
    assert_null(crontab_find(changed, one->lines[0].id));
    assert_null(crontab_find(changed, one->lines[1].id));
    crontab_free(one);
    crontab_free(other);
    crontab_free(changed);
}

static void mistakes_are_named_with_their_line(void **state)
{
    expect_refused("\n* * * * *\n", "file:2: the command is missing");
    expect_refused("61 * * * * a\n", "file:1: minute '61'");
    expect_refused("hello world\n", "file:1: minute 'hello'");
    expect_refused("* * * * * date +%F\n", "write \\%");
    expect_refused("* * * * * a\n* * * * * a\n", "file:2: line 1 is the same");
    expect_refused("# baton: name=x\n* * * * * a\n# baton: name=x\n* * * * * b\n",
                   "file:4: name 'x': line 2 has it already");
    expect_refused("# baton: name=x\n\n", "file:1: no line follows these options");
    expect_refused("# baton: name=x name=y\n* * * * * a\n", "name: is given twice");
    expect_refused("# baton: name=a/b\n* * * * * a\n", "name 'a/b'");
    expect_refused("# baton: overlap=maybe\n* * * * * a\n", "must be one of skip|wait|allow");
    expect_refused("# baton: overlap\n* * * * * a\n", "options are KEY=VALUE");
    expect_refused("# baton: timeout=5s\n* * * * * a\n", "'timeout': the options are");
    expect_refused("# baton overlap=wait\n* * * * * a\n", "with a colon");
    expect_refused("# Baton overlap=wait\n* * * * * a\n", "with a colon");
    expect_refused("# BATON: overlap=wat\n* * * * * a\n", "'wat'");
    expect_refused("# baton: jitter=2h\n* * * * * a\n", "at most 1h");
    expect_refused("CRON_TZ=Mars/Olympus\n* * * * * a\n", "there is no such time zone");
    expect_refused("MAILTO=root\n* * * * * a\n", "no mail is sent");
    expect_refused("SHELL=bash\n* * * * * a\n", "must be an absolute path");
    expect_refused("* * * * * a\x01\n", "control character");
    expect_refused("* * * * * \xff\n", "no UTF-8");
}

static void comments_about_baton_are_comments(void **state)
{
    struct crontab *crontab = parse("# baton runs this on one node\n#batons=2\n* * * * * a\n");
    assert_int_equal(crontab->count, 1);
    crontab_free(crontab);
}

static void a_nul_and_a_long_line_are_refused(void **state)
{
    static char text[CRON_COMMAND_MAX + 32];
    struct crontab *crontab;
    struct baton_error error;
    assert_int_equal(crontab_parse(&crontab, "* * * * * a\0b", 13, "f", has_zone, NULL),
                     BATON_EINVAL);
    memset(text, 'x', sizeof(text));
    assert_int_equal(crontab_parse(&crontab, text, sizeof(text), "f", has_zone, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "f:1: the line has more than"));
}

static void there_are_bounds(void **state)
{
    static char text[CRONTAB_LINES_MAX * 20 + 40];
    struct crontab *crontab;
    size_t used = 0;
    for (int i = 0; i <= CRONTAB_LINES_MAX; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "* * * * * c%d\n", i);
    }
    assert_int_equal(crontab_parse(&crontab, text, used, "f", has_zone, NULL), BATON_ETOOBIG);
    used = 0;
    for (int i = 0; i <= CRONTAB_VARIABLES_MAX; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "V=%d\n", i);
    }
    assert_int_equal(crontab_parse(&crontab, text, used, "f", has_zone, NULL), BATON_ETOOBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_classic_crontab_is_one),
        cmocka_unit_test(options_are_those_of_the_next_line),
        cmocka_unit_test(a_zone_counts_for_the_lines_below_it),
        cmocka_unit_test(a_line_keeps_its_id_when_the_order_changes),
        cmocka_unit_test(mistakes_are_named_with_their_line),
        cmocka_unit_test(comments_about_baton_are_comments),
        cmocka_unit_test(a_nul_and_a_long_line_are_refused),
        cmocka_unit_test(there_are_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
