#include "cmocka_all.h"
#include "detector/service_question.h"

#include <string.h>

static int parse(const char *path, const char *query, struct camera_question *question)
{
    struct baton_error error = {0};
    int rc = camera_question_parse(question, path, query, &error);

    assert_int_equal(rc == 0, error.message[0] == '\0');
    return rc;
}

static void a_camera_is_named_in_the_path(void **state)
{
    struct camera_question question;

    (void)state;
    assert_int_equal(parse("/camera/display-001;cam-001/image", "", &question), 0);
    assert_string_equal(question.identifier, "display-001;cam-001");
    assert_false(question.is_cropped);
    assert_int_equal(parse("/camera/T\xc3\xbcr;haus/hof/image", "", &question), 0);
    assert_string_equal(question.identifier, "T\xc3\xbcr;haus/hof");
    assert_false(question.is_stream);
    assert_int_equal(parse("/camera/a;1/stream", "width=320", &question), 0);
    assert_string_equal(question.identifier, "a;1");
    assert_true(question.is_stream);
    assert_int_equal(question.width, 320);
}

static void what_is_no_page_is_told_apart_from_what_is_no_name(void **state)
{
    static const struct {
        const char *path;
        int code;
    } cases[] = {
        {"/camera/", BATON_ENOENT},
        {"/camera/a;1", BATON_ENOENT},
        {"/camera/a;1/video", BATON_ENOENT},
        {"/kamera/a;1/video", BATON_ENOENT},
        {"/camera/image", BATON_EINVAL},
        {"/x/image", BATON_ENOENT},
        {"/image", BATON_ENOENT},
        {"/kamera/a;1/stream", BATON_ENOENT},
        {"/camera//image", BATON_EINVAL},
        {"/camera/a/image", BATON_EINVAL},
        {"/camera/a;/image", BATON_EINVAL},
        {"/camera/;b/image", BATON_EINVAL},
        {"/camera/a;b;c/image", BATON_EINVAL},
        {"/camera/a;b\n/image", BATON_EINVAL},
        {"/camera/a;b\x7f/image", BATON_EINVAL},
        {"/camera/../x;1/image", BATON_EINVAL},
        {"/camera/a;../image", BATON_EINVAL},
        {"/camera/a;../../etc/passwd/image", BATON_EINVAL},
        {"/camera/..;1/image", BATON_EINVAL},
        {"/camera/a;x/./y/image", BATON_EINVAL},
        {"/camera/a;..\\x/image", BATON_EINVAL},
    };
    struct camera_question question;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int rc = parse(cases[i].path, "", &question);
        if (rc != cases[i].code) {
            fail_msg("%s: %d, not %d", cases[i].path, rc, cases[i].code);
        }
    }
}

static void a_name_has_a_longest(void **state)
{
    struct camera_question question;
    char path[5000];

    (void)state;
    for (size_t bytes = PROTOCOL_IDENTIFIER_MAX; bytes < 4200; bytes += 4096 - 256 + 1) {
        (void)snprintf(path, sizeof(path), "/camera/a;%*s/image", (int)bytes - 2, "x");
        assert_int_equal(parse(path, "", &question),
                         bytes == PROTOCOL_IDENTIFIER_MAX ? 0 : BATON_EINVAL);
    }
}

static void a_query_is_strict_where_it_is_known(void **state)
{
    static const struct {
        const char *query;
        int code;
        bool is_cropped;
    } cases[] = {
        {"crop=1", 0, true},
        {"crop=0", 0, false},
        {"t=99&crop=1", 0, true},
        {"crop=1&", 0, true},
        {"&&", 0, false},
        {"cropped=7", 0, false},
        {"=", 0, false},
        {"crop", BATON_EINVAL, false},
        {"crop=", BATON_EINVAL, false},
        {"crop=2", BATON_EINVAL, false},
        {"crop=11", BATON_EINVAL, false},
        {"crop=yes", BATON_EINVAL, false},
    };
    struct camera_question question;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int rc = parse("/camera/a;1/image", cases[i].query, &question);
        if (rc != cases[i].code || (rc == 0 && question.is_cropped != cases[i].is_cropped)) {
            fail_msg("%s: %d", cases[i].query, rc);
        }
    }
}

static void a_width_is_a_number_of_pixels(void **state)
{
    static const char *const nonsense[] = {
        "width=",
        "width",
        "width=0",
        "width=15",
        "width=8193",
        "width=-1",
        "width=+64",
        "width= 64",
        "width=64px",
        "width=0x40",
        "width=1e3",
        "width=6.4e1",
        "width=640.5",
        "width=\xd9\xa6\xd9\xa4",
        "width=99999999999999999999",
        "width=4294967360",
    };
    struct camera_question question;

    (void)state;
    assert_int_equal(parse("/camera/a;1/image", "", &question), 0);
    assert_int_equal(question.width, 0);
    assert_int_equal(parse("/camera/a;1/image", "crop=1&width=16", &question), 0);
    assert_int_equal(question.width, 16);
    assert_int_equal(parse("/camera/a;1/image", "width=08192", &question), 0);
    assert_int_equal(question.width, 8192);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
        if (parse("/camera/a;1/image", nonsense[i], &question) != BATON_EINVAL) {
            fail_msg("%s", nonsense[i]);
        }
    }
}

static void a_source_is_one_of_two_or_not_named(void **state)
{
    static const char *const nonsense[] = {"source",         "source=",        "source=1",
                                           "source=streams", "source=Stream",  "source=shown",
                                           "source=snap",    "source=stream,", "source= stream"};
    struct camera_question question;

    (void)state;
    assert_int_equal(parse("/camera/a;1/image", "sources=7", &question), 0);
    assert_int_equal(question.source, IMAGE_SHOWN);
    assert_int_equal(parse("/camera/a;1/image", "width=64&source=snapshot", &question), 0);
    assert_int_equal(question.source, IMAGE_SNAPSHOT);
    assert_int_equal(parse("/camera/a;1/stream", "source=stream&crop=1", &question), 0);
    assert_int_equal(question.source, IMAGE_STREAM);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
        if (parse("/camera/a;1/image", nonsense[i], &question) != BATON_EINVAL) {
            fail_msg("%s", nonsense[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_camera_is_named_in_the_path),
        cmocka_unit_test(what_is_no_page_is_told_apart_from_what_is_no_name),
        cmocka_unit_test(a_name_has_a_longest),
        cmocka_unit_test(a_query_is_strict_where_it_is_known),
        cmocka_unit_test(a_width_is_a_number_of_pixels),
        cmocka_unit_test(a_source_is_one_of_two_or_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
