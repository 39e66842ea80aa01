#include "cmocka_all.h"

#include "detector/camera/message.h"
#include "detector/camera/ring.h"

#include <string.h>

#define FRAME(columns, rows) .type = MESSAGE_FRAME, .width = (columns), .height = (rows)

static int check(struct camera_message message)
{
    return message_check(&message, sizeof(message), NULL);
}

static void every_type_has_its_bounds(void **state)
{
    static const struct {
        struct camera_message message;
        bool is_allowed;
    } rows[] = {
        {{.type = MESSAGE_OPENED, .width = 1280, .codec = "hevc"}, true},
        {{.type = MESSAGE_PROGRESS, .counts = {4, 5, 6}}, true},
        {{.type = MESSAGE_END}, true},
        {{.type = 0}, false},
        {{.type = MESSAGE_END + 1}, false},
        {{.type = UINT32_MAX}, false},
        {{FRAME(321, 241), .slot = RING_SLOTS - 1, .flags = FRAME_FLAGS, .sequence = 1ULL << 40},
         true},
        {{FRAME(321, 241), .slot = RING_SLOTS, .sequence = 1}, false},
        {{FRAME(RING_SIDE_MAX, 4352), .sequence = 1}, true},
        {{FRAME(0, 241), .sequence = 1}, false},
        {{FRAME(RING_SIDE_MAX + 1, 1), .sequence = 1}, false},
        /* Each side is allowed, both are too much. */
        {{FRAME(RING_SIDE_MAX, RING_SIDE_MAX), .sequence = 1}, false},
        {{FRAME(321, 241), .flags = FRAME_FLAGS + 1, .sequence = 1}, false},
        {{FRAME(321, 241), .sequence = 0}, false},
        {{.type = MESSAGE_END, .code = BATON_ETIMEDOUT, .text = "read: nothing came"}, true},
        {{.type = MESSAGE_END, .code = 1}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (check(rows[i].message) != (rows[i].is_allowed ? 0 : BATON_EPROTO)) {
            fail_msg("row %zu", i);
        }
    }
}

static void a_datagram_of_another_length_is_refused(void **state)
{
    struct camera_message message = {.type = MESSAGE_END};

    for (size_t bytes = 0; bytes < 2 * sizeof(message); bytes++) {
        assert_int_equal(message_check(&message, bytes, NULL),
                         bytes == sizeof(message) ? 0 : BATON_EPROTO);
    }
}

static void texts_of_the_child_come_out_printable_and_end(void **state)
{
    struct camera_message message = {
        .type = MESSAGE_END, .code = BATON_EIO, .text = "a\r\n\x1b[31mb\xff"};

    memset(message.codec, 'x', sizeof(message.codec));
    assert_int_equal(message_check(&message, sizeof(message), NULL), 0);
    assert_string_equal(message.text, "a???[31mb?");
    assert_int_equal(strlen(message.codec), MESSAGE_NAME_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_bounds),
        cmocka_unit_test(a_datagram_of_another_length_is_refused),
        cmocka_unit_test(texts_of_the_child_come_out_printable_and_end),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_message", tests, NULL, NULL);
}
