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
    static const char *const pages[] = {
        "/camera/",           "/camera/a;1", "/camera/a;1/video", "/kamera/a;1/video", "/x/image",
        "/kamera/a;1/stream", "/image"};
    static const char *const names[] = {"/camera/image",
                                        "/camera//image",
                                        "/camera/a/image",
                                        "/camera/a;/image",
                                        "/camera/;b/image",
                                        "/camera/a;b;c/image",
                                        "/camera/a;b\n/image",
                                        "/camera/a;b\x7f/image",
                                        "/camera/../x;1/image",
                                        "/camera/a;../image",
                                        "/camera/a;../../etc/passwd/image",
                                        "/camera/..;1/image",
                                        "/camera/a;x/./y/image",
                                        "/camera/a;..\\x/image"};
    struct camera_question question;

    (void)state;
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        if (parse(pages[i], "", &question) != BATON_ENOENT) {
            fail_msg("%s", pages[i]);
        }
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (parse(names[i], "", &question) != BATON_EINVAL) {
            fail_msg("%s", names[i]);
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
    static const char *const bad[] = {"crop",
                                      "crop=",
                                      "crop=2",
                                      "crop=11",
                                      "crop=yes",
                                      "boxes=many",
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
                                      "width=640.5",
                                      "width=\xd9\xa6",
                                      "width=4294967360",
                                      "source",
                                      "source=",
                                      "source=1",
                                      "source=streams",
                                      "source=Stream",
                                      "source=shown",
                                      "source=snap",
                                      "source=stream,",
                                      "source= stream",
                                      "width=%31e3",
                                      "width=99999999999999999999",
                                      "x=1&&width=0"};
    static const struct {
        const char *query;
        bool is_cropped, has_boxes;
        int width;
        enum image_source source;
    } good[] = {
        {"", false, false, 0, IMAGE_SHOWN},
        {"crop=1", true, false, 0, IMAGE_SHOWN},
        {"crop=0&boxes=1&&", false, true, 0, IMAGE_SHOWN},
        {"t=99&%63rop=%31&=", true, false, 0, IMAGE_SHOWN},
        {"cropped=7&sources=7&;width=0&x=a%26width=0", false, false, 0, IMAGE_SHOWN},
        {"crop=1&width=16", true, false, 16, IMAGE_SHOWN},
        {"width=08192&source=snapshot", false, false, 8192, IMAGE_SNAPSHOT},
        {"source=stream&crop=1", true, false, 0, IMAGE_STREAM},
    };
    struct camera_question question;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (parse("/camera/a;1/image", bad[i], &question) != BATON_EINVAL) {
            fail_msg("%s", bad[i]);
        }
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        if (parse("/camera/a;1/image", good[i].query, &question) != 0 ||
            question.is_cropped != good[i].is_cropped || question.has_boxes != good[i].has_boxes ||
            question.width != good[i].width || question.source != good[i].source) {
            fail_msg("%s", good[i].query);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
