#include "cmocka_all.h"
#include "detector/frame_heads.h"

#include <stdlib.h>
#include <string.h>

#define KEY "\1\2\3\4"

/* In one piece and in each two. */
static struct frame_heads read_all(const char *bytes, size_t count)
{
    struct frame_heads whole = {0};

    frame_heads_read(&whole, bytes, count);
    for (size_t i = 0; i <= count; i++) {
        struct frame_heads parts = {0};
        frame_heads_read(&parts, bytes, i);
        frame_heads_read(&parts, bytes + i, count - i);
        assert_ptr_equal(parts.fault, whole.fault);
        assert_int_equal(parts.control_bytes, whole.control_bytes);
        assert_int_equal(parts.payload, whole.payload);
    }
    return whole;
}

#define READ(text) read_all(text, sizeof(text) - 1)

static void frames_must_be_masked(void **state)
{
    (void)state;
    assert_null(READ("").fault);
    assert_null(READ("\x81").fault);
    assert_null(READ("\x81\x83" KEY "abc\x89\x80" KEY "\x88\x82" KEY "\3\xe8").fault);
    assert_string_equal(READ("\x81\x03"
                             "abc")
                            .fault,
                        "frames of a client must be masked");
    assert_non_null(READ("\x81\x00").fault);
    assert_non_null(READ("\x89\x00").fault);
    assert_non_null(READ("\x81\x83" KEY "abc\x88\x00").fault);
    assert_non_null(READ("\x81\x00\x81\x80" KEY).fault);
}

static void a_length_is_as_short_as_it_can_be(void **state)
{
    (void)state;
    assert_null(READ("\x81\xfe\0\x7e" KEY).fault);
    assert_non_null(READ("\x81\xfe\0\x7d" KEY).fault);
    assert_null(READ("\x81\xff\0\0\0\0\0\1\0\0" KEY).fault);
    assert_non_null(READ("\x81\xff\0\0\0\0\0\0\xff\xff" KEY).fault);
    assert_null(READ("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff" KEY).fault);
    assert_non_null(READ("\x81\xff\x80\0\0\0\0\0\0\0" KEY).fault);
    assert_int_equal(READ("\x81\xff\0\0\0\0\0\1\0\0" KEY "x").payload, 65535);
}

static void only_control_frames_are_counted(void **state)
{
    (void)state;
    assert_int_equal(READ("\x81\x83" KEY "abc\x02\x80" KEY).control_bytes, 0);
    assert_int_equal(READ("\x89\x83" KEY "abc\x8a\x80" KEY "\x81\x81" KEY "x").control_bytes, 15);
    assert_int_equal(READ("\x89\x83" KEY "a").control_bytes, 7);
    assert_int_equal(READ("\x88\xfe\0\x80" KEY "abcd").control_bytes, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_must_be_masked),
        cmocka_unit_test(a_length_is_as_short_as_it_can_be),
        cmocka_unit_test(only_control_frames_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
