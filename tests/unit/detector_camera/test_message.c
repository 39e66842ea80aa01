#include "cmocka_all.h"

#include "detector/camera/message.h"
#include "detector/camera/ring.h"

#include <stdio.h>
#include <string.h>

static struct camera_message sample(enum message_type type)
{
    switch (type) {
    case MESSAGE_OPENED:
        return (struct camera_message){.type = type,
                                       .width = 1280,
                                       .height = 720,
                                       .fps_milli = 14985,
                                       .duration_ms = 61003,
                                       .codec = "hevc",
                                       .hardware = "vaapi"};
    case MESSAGE_RING:
        return (struct camera_message){.type = type, .width = 321, .height = 241};
    case MESSAGE_FRAME:
        return (struct camera_message){.type = type,
                                       .slot = RING_SLOTS - 1,
                                       .flags = FRAME_FULL_RANGE,
                                       .sequence = 1ull << 40,
                                       .pts_us = INT64_MIN,
                                       .captured_ns = 77,
                                       .counts = {1, 2, 3}};
    case MESSAGE_PROGRESS:
        return (struct camera_message){.type = type, .counts = {4, 5, 6}};
    case MESSAGE_ERROR:
        return (struct camera_message){
            .type = type, .code = BATON_ETIMEDOUT, .text = "read: nothing came"};
    case MESSAGE_END:
        break;
    }
    return (struct camera_message){.type = MESSAGE_END};
}

static void encode(struct buffer *buffer, const struct camera_message *message)
{
    buffer_init(buffer, MESSAGE_BYTES_MAX);
    message_encode(buffer, message);
    assert_false(buffer->failed);
}

static int decode(struct camera_message *ret, const struct camera_message *message)
{
    struct buffer buffer;
    int rc;

    encode(&buffer, message);
    rc = message_decode(ret, buffer.data, buffer.bytes, NULL);
    buffer_fini(&buffer);
    return rc;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (int type = MESSAGE_OPENED; type <= MESSAGE_END; type++) {
        struct camera_message message = sample((enum message_type)type), read;

        assert_int_equal(decode(&read, &message), 0);
        assert_int_equal(read.type, message.type);
        assert_int_equal(read.width, message.width);
        assert_int_equal(read.height, message.height);
        assert_int_equal(read.fps_milli, message.fps_milli);
        assert_int_equal(read.duration_ms, message.duration_ms);
        assert_string_equal(read.codec, message.codec);
        assert_string_equal(read.hardware, message.hardware);
        assert_int_equal(read.slot, message.slot);
        assert_int_equal(read.flags, message.flags);
        assert_true(read.sequence == message.sequence && read.pts_us == message.pts_us);
        assert_true(read.captured_ns == message.captured_ns);
        assert_memory_equal(&read.counts, &message.counts, sizeof(read.counts));
        assert_int_equal(read.code, message.code);
        assert_string_equal(read.text, message.text);
    }
}

static void a_message_of_another_length_is_refused(void **state)
{
    (void)state;
    for (int type = MESSAGE_OPENED; type <= MESSAGE_END; type++) {
        struct camera_message message = sample((enum message_type)type), read;
        struct buffer buffer;

        encode(&buffer, &message);
        for (size_t bytes = 0; bytes < buffer.bytes; bytes++) {
            assert_int_equal(message_decode(&read, buffer.data, bytes, NULL), BATON_EPROTO);
        }
        buffer_put_u8(&buffer, 0);
        assert_int_equal(message_decode(&read, buffer.data, buffer.bytes, NULL), BATON_EPROTO);
        buffer_fini(&buffer);
    }
}

static void a_slot_size_sequence_or_code_out_of_range_is_refused(void **state)
{
    struct camera_message read;
    struct camera_message frame = sample(MESSAGE_FRAME);
    struct camera_message ring = sample(MESSAGE_RING);
    struct camera_message error = sample(MESSAGE_ERROR);

    (void)state;
    frame.slot = RING_SLOTS;
    assert_int_equal(decode(&read, &frame), BATON_EPROTO);
    frame = sample(MESSAGE_FRAME);
    frame.sequence = 0;
    assert_int_equal(decode(&read, &frame), BATON_EPROTO);
    frame = sample(MESSAGE_FRAME);
    frame.flags = FRAME_FLAGS + 1;
    assert_int_equal(decode(&read, &frame), BATON_EPROTO);
    ring.width = 0;
    assert_int_equal(decode(&read, &ring), BATON_EPROTO);
    ring.width = RING_SIDE_MAX + 1;
    assert_int_equal(decode(&read, &ring), BATON_EPROTO);
    ring.width = ring.height = RING_SIDE_MAX; /* each side is allowed, both are too much */
    assert_int_equal(decode(&read, &ring), BATON_EPROTO);
    error.code = 0;
    assert_int_equal(decode(&read, &error), BATON_EPROTO);
}

static void texts_of_the_child_come_out_printable(void **state)
{
    struct camera_message error = sample(MESSAGE_ERROR), read;

    (void)state;
    (void)snprintf(error.text, sizeof(error.text), "a\r\n\x1b[31mb\xff");
    assert_int_equal(decode(&read, &error), 0);
    assert_string_equal(read.text, "a???[31mb?");
}

static void a_config_comes_through_whole(void **state)
{
    struct camera_config config = {.kind = SOURCE_SNAPSHOT,
                                   .uses_udp = true,
                                   .is_lossless = true,
                                   .open_ms = 7,
                                   .stall_ms = 9,
                                   .hardware = "cuda"};
    struct camera_config read;
    struct buffer buffer;

    (void)state;
    memset(config.url, 'u', MESSAGE_URL_MAX);
    buffer_init(&buffer, MESSAGE_CONFIG_MAX);
    config_encode(&buffer, &config);
    assert_false(buffer.failed);
    assert_int_equal(config_decode(&read, buffer.data, buffer.bytes, NULL), 0);
    assert_int_equal(read.kind, config.kind);
    assert_true(read.uses_udp && read.is_lossless && !read.is_paced);
    assert_int_equal(read.open_ms, 7);
    assert_int_equal(read.stall_ms, 9);
    assert_string_equal(read.hardware, "cuda");
    assert_string_equal(read.url, config.url);
    assert_int_equal(config_decode(&read, buffer.data, buffer.bytes - 1, NULL), BATON_EPROTO);
    buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_message_of_another_length_is_refused),
        cmocka_unit_test(a_slot_size_sequence_or_code_out_of_range_is_refused),
        cmocka_unit_test(texts_of_the_child_come_out_printable),
        cmocka_unit_test(a_config_comes_through_whole),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_message", tests, NULL, NULL);
}
