/* The command that a worker finds in an item's body. */
#include "cli/job_body.h"
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

/* What it makes of this text. */
static int read_text(struct job_body *ret, const char *text, struct baton_error *reterr)
{
    struct work_item item = {
        .id = (char *)"bag.7", .body = (uint8_t *)text, .body_bytes = strlen(text)};

    *ret = (struct job_body){0};
    return job_body_read(ret, &item, 3, reterr);
}

static void words_and_variables_are_as_they_were_given(void **state)
{
    struct job_body body;

    assert_int_equal(read_text(&body,
                               "{\"argv\":[\"echo\",\"\",\"a b\"],\"env\":{\"A\":\"b=c\"},"
                               "\"later\":1}",
                               NULL),
                     BATON_OK);
    assert_string_equal(body.argv[0], "echo");
    assert_string_equal(body.argv[1], "");
    assert_string_equal(body.argv[2], "a b");
    assert_null(body.argv[3]);
    assert_string_equal(body.variables[0], "A=b=c");
    assert_string_equal(body.variables[1], "BATON_ITEM=bag.7");
    assert_string_equal(body.variables[2], "BATON_ATTEMPT=3");
    assert_null(body.variables[3]);
    job_body_fini(&body);
}

static void a_shell_goes_to_the_folder_first(void **state)
{
    struct job_body body;

    assert_int_equal(read_text(&body, "{\"argv\":[\"ls\",\"-l\"],\"dir\":\"-odd dir\"}", NULL),
                     BATON_OK);
    assert_string_equal(body.argv[0], "/bin/sh");
    assert_string_equal(body.argv[4], "-odd dir");
    assert_string_equal(body.argv[5], "ls");
    assert_string_equal(body.argv[6], "-l");
    assert_null(body.argv[7]);
    job_body_fini(&body);
}

static void a_body_that_is_no_command_says_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *says;
    } odd[] = {
        {"", "is no command"},
        {"[]", "is no command"},
        {"{\"argv\":[]}", "is no command"},
        {"{\"argv\":[\"a\",null]}", "\"argv\"[1] is no text"},
        {"{\"argv\":[\"a\"],\"dir\":7}", "\"dir\" must be a text"},
        {"{\"argv\":[\"a\"],\"env\":[]}", "\"env\" an object"},
        {"{\"argv\":[\"a\"],\"env\":{\"A=B\":\"c\"}}", "\"A=B\""},
        {"{\"argv\":[\"a\"],\"env\":{\"\":\"c\"}}", "\"\""},
        {"{\"argv\":[\"a\"],\"env\":{\"A\":1}}", "\"A\""},
    };

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct baton_error error = {0};
        struct job_body body;

        assert_int_equal(read_text(&body, odd[i].text, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, odd[i].says));
        job_body_fini(&body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_variables_are_as_they_were_given),
        cmocka_unit_test(a_shell_goes_to_the_folder_first),
        cmocka_unit_test(a_body_that_is_no_command_says_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
