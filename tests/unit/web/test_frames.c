/* Frames as bytes, and how a reader parses them: at once, and byte by byte. */
#include "web/frames.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define BYTES(text) text, sizeof(text) - 1
#define NO_MASK     "\0\0\0\0" /* a key of zeros changes nothing */

enum { MESSAGE_MAX = 70000 };

/* What came, one item a frame: "text:…", "binary", "ping:…", "pong:…", "close:CODE:…" and at the
 * end the code of a refusal. */
struct transcript {
    const char *bytes;
    size_t count;
    const char *outcome;
};

static const struct transcript from_clients[] = {
    /* texts */
    {BYTES("\x81\x80" NO_MASK), "text: "},
    {BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text:Hello "},
    {BYTES("\x81\x81" NO_MASK "a\x81\x81" NO_MASK "b"), "text:a text:b "},
    {BYTES("\x01\x81" NO_MASK "a\x80\x81" NO_MASK "b"), "text:ab "},
    {BYTES("\x01\x80" NO_MASK "\x00\x80" NO_MASK "\x80\x80" NO_MASK), "text: "},
    /* control frames within a message */
    {BYTES("\x01\x81" NO_MASK "a\x89\x81" NO_MASK "p\x80\x81" NO_MASK "b"), "ping:p text:ab "},
    {BYTES("\x01\x81" NO_MASK "a\x8a\x80" NO_MASK "\x80\x81" NO_MASK "b"), "pong: text:ab "},
    {BYTES("\x01\x81" NO_MASK "a\x88\x80" NO_MASK), "close:0: "},
    /* binary messages */
    {BYTES("\x82\x81" NO_MASK "\xff"), "binary "},
    {BYTES("\x02\x81" NO_MASK "\xff\x80\x81" NO_MASK "\xff\x81\x81" NO_MASK "a"), "binary text:a "},
    /* code points that are cut */
    {BYTES("\x01\x81" NO_MASK "\xc3\x80\x81" NO_MASK "\xa9"), "text:\xc3\xa9 "},
    {BYTES("\x01\x82" NO_MASK "\xf0\x9f\x89\x80" NO_MASK "\x80\x82" NO_MASK "\x98\x80"),
     "ping: text:\xf0\x9f\x98\x80 "},
    {BYTES("\x81\x83" NO_MASK "\xed\x9f\xbf"), "text:\xed\x9f\xbf "},
    {BYTES("\x81\x83" NO_MASK "\xef\xbf\xbf"), "text:\xef\xbf\xbf "},
    {BYTES("\x81\x84" NO_MASK "\xf4\x8f\xbf\xbf"), "text:\xf4\x8f\xbf\xbf "},
    {BYTES("\x81\x8c" NO_MASK "12345678\xe2\x98\x83!"), "text:12345678\xe2\x98\x83! "},
    /* texts that are none: refused at the byte, not at the end */
    {BYTES("\x81\x81" NO_MASK "\xff"), "1007"},
    {BYTES("\x81\x8f" NO_MASK "123456789\xff"), "1007"},
    {BYTES("\x01\x81" NO_MASK "\x80"), "1007"},
    {BYTES("\x81\x82" NO_MASK "\xc0\x80"), "1007"},
    {BYTES("\x81\x83" NO_MASK "\xe0\x9f\xbf"), "1007"},
    {BYTES("\x81\x83" NO_MASK "\xed\xa0\x80"), "1007"},
    {BYTES("\x81\x84" NO_MASK "\xf0\x8f\xbf\xbf"), "1007"},
    {BYTES("\x81\x84" NO_MASK "\xf4\x90\x80\x80"), "1007"},
    {BYTES("\x81\x84" NO_MASK "\xf5\x80\x80\x80"), "1007"},
    {BYTES("\x81\x82" NO_MASK "\xe2\x98"), "1007"},
    {BYTES("\x01\x82" NO_MASK "\xe2\x98\x80\x80" NO_MASK), "1007"},
    /* order of frames */
    {BYTES("\x80\x81" NO_MASK "a"), "1002"},
    {BYTES("\x00\x81" NO_MASK "a"), "1002"},
    {BYTES("\x01\x81" NO_MASK "a\x81\x81" NO_MASK "b"), "1002"},
    {BYTES("\x01\x81" NO_MASK "a\x82\x81" NO_MASK "b"), "1002"},
    {BYTES("\x81\x81" NO_MASK "a\x80\x81" NO_MASK "b"), "text:a 1002"},
    /* heads */
    {BYTES("\x81\x01"), "1002"},
    {BYTES("\x89\x00"), "1002"},
    {BYTES("\xc1\x80" NO_MASK), "1002"},
    {BYTES("\xa1\x80" NO_MASK), "1002"},
    {BYTES("\x91\x80" NO_MASK), "1002"},
    {BYTES("\x83\x80" NO_MASK), "1002"},
    {BYTES("\x87\x80" NO_MASK), "1002"},
    {BYTES("\x8b\x80" NO_MASK), "1002"},
    {BYTES("\x8f\x80" NO_MASK), "1002"},
    {BYTES("\x09\x80" NO_MASK), "1002"},
    {BYTES("\x08\x80" NO_MASK), "1002"},
    {BYTES("\x89\xfe\0\x7e" NO_MASK), "1002"},
    {BYTES("\x81\xfe\0\x7d" NO_MASK), "1002"},
    {BYTES("\x81\xff\0\0\0\0\0\0\xff\xff" NO_MASK), "1002"},
    /* lengths, of which no byte has come yet */
    {BYTES("\x81\xff\0\0\0\0\0\x01\x11\x71" NO_MASK), "1009"},
    {BYTES("\x82\xff\0\0\0\0\0\x01\x11\x71" NO_MASK), "1009"},
    {BYTES("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff" NO_MASK), "1009"},
    {BYTES("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff" NO_MASK), "1009"},
    {BYTES("\x01\x81" NO_MASK "a\x80\xff\0\0\0\0\0\x01\x11\x70" NO_MASK), "1009"},
    /* closes */
    {BYTES("\x88\x80" NO_MASK), "close:0: "},
    {BYTES("\x88\x82" NO_MASK "\x03\xe8"), "close:1000: "},
    {BYTES("\x88\x85" NO_MASK "\x0f\xa1"
           "bye"),
     "close:4001:bye "},
    {BYTES("\x88\x84" NO_MASK "\x03\xe8\xc3\xa9"), "close:1000:\xc3\xa9 "},
    {BYTES("\x88\x81" NO_MASK "\x03"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x00\x00"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x03\xe7"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x03\xec"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x03\xed"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x03\xee"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x03\xf7"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x07\xd0"), "1002"},
    {BYTES("\x88\x82" NO_MASK "\x13\x88"), "1002"},
    {BYTES("\x88\x84" NO_MASK "\x03\xe8\xe2\x98"), "1007"},
    {BYTES("\x88\x83" NO_MASK "\x03\xe8\xff"), "1007"},
};

static const struct transcript from_servers[] = {
    {BYTES("\x81\x05Hello"), "text:Hello "},
    {BYTES("\x89\x01p\x88\x02\x03\xe8"), "ping:p close:1000: "},
    {BYTES("\x81\x81" NO_MASK "a"), "1002"},
};

static size_t describe(const struct web_frames *frames, enum web_frame frame, char *ret,
                       size_t room)
{
    int control = (int)frames->control_bytes;
    const char *bytes = (const char *)frames->control;
    int used = 0;

    switch (frame) {
    case WEB_FRAME_TEXT:
        used = snprintf(ret, room, "text:%.*s ", (int)frames->message.bytes,
                        frames->message.data != NULL ? (const char *)frames->message.data : "");
        break;
    case WEB_FRAME_BINARY:
        used = snprintf(ret, room, "binary ");
        break;
    case WEB_FRAME_PING:
    case WEB_FRAME_PONG:
        used = snprintf(ret, room, "%s:%.*s ", frame == WEB_FRAME_PING ? "ping" : "pong", control,
                        bytes);
        break;
    case WEB_FRAME_CLOSE:
        used = snprintf(ret, room, "close:%u:%.*s ", frames->code, control, bytes);
        break;
    case WEB_FRAME_REFUSED:
        assert_non_null(frames->reason);
        used = snprintf(ret, room, "%u", frames->code);
        break;
    case WEB_FRAME_MORE:
    default:
        break;
    }
    return (size_t)used;
}

static void expect(const struct transcript *one, bool is_server, size_t piece)
{
    struct web_frames frames;
    char outcome[256] = "";
    size_t used = 0, at = 0;
    enum web_frame frame = WEB_FRAME_MORE;

    web_frames_init(&frames, is_server, MESSAGE_MAX);
    while (at < one->count && frame != WEB_FRAME_REFUSED) {
        size_t taken, bytes = one->count - at < piece ? one->count - at : piece;
        frame = web_frames_read(&frames, one->bytes + at, bytes, &taken);
        assert_true(taken <= bytes && taken > 0);
        assert_true(frame != WEB_FRAME_MORE || taken == bytes);
        at += taken;
        used += describe(&frames, frame, outcome + used, sizeof(outcome) - used);
    }
    web_frames_fini(&frames);
    if (strcmp(outcome, one->outcome) != 0) {
        fail_msg("%02x %02x … in pieces of %zu: \"%s\", not \"%s\"", (unsigned char)one->bytes[0],
                 (unsigned char)one->bytes[1], piece, outcome, one->outcome);
    }
}

static void frames_of_a_client_are_read_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof(from_clients) / sizeof(from_clients[0]); i++) {
        expect(&from_clients[i], true, SIZE_MAX);
        expect(&from_clients[i], true, 1);
        expect(&from_clients[i], true, 3);
    }
}

static void frames_of_a_server_are_read_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof(from_servers) / sizeof(from_servers[0]); i++) {
        expect(&from_servers[i], false, SIZE_MAX);
        expect(&from_servers[i], false, 1);
    }
}

/* Wherever the bytes of a masked message are cut, the same text comes out. */
static void a_message_of_any_length_is_read_as_it_was_made(void **state)
{
    static const size_t lengths[] = {0, 1, 7, 8, 9, 125, 126, 127, 65535, 65536, MESSAGE_MAX};
    static const uint8_t mask[4] = {0x12, 0xa5, 0x00, 0xff};
    static uint8_t bytes[WEB_FRAME_HEAD_MAX + MESSAGE_MAX];

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct web_frames frames;
        size_t head = web_frame_head(bytes, WEB_OPCODE_TEXT, lengths[i], mask), at = 0;
        enum web_frame frame = WEB_FRAME_MORE;
        for (size_t k = 0; k < lengths[i]; k++) {
            bytes[head + k] = (uint8_t)('a' + k % 26) ^ mask[k & 3];
        }
        web_frames_init(&frames, true, MESSAGE_MAX);
        while (frame == WEB_FRAME_MORE) {
            size_t left = head + lengths[i] - at, taken;
            frame = web_frames_read(&frames, bytes + at, left < 1021 ? left : 1021, &taken);
            at += taken;
        }
        assert_int_equal(frame, WEB_FRAME_TEXT);
        assert_int_equal(at, head + lengths[i]);
        assert_int_equal(frames.message.bytes, lengths[i]);
        for (size_t k = 0; k < lengths[i]; k++) {
            assert_int_equal(frames.message.data[k], 'a' + k % 26);
        }
        web_frames_fini(&frames);
    }
}

static void a_message_has_a_bounded_number_of_fragments(void **state)
{
    static const char first[] = "\x01\x80" NO_MASK, more[] = "\x00\x80" NO_MASK;
    struct web_frames frames;
    size_t taken;

    web_frames_init(&frames, true, MESSAGE_MAX);
    assert_int_equal(web_frames_read(&frames, BYTES(first), &taken), WEB_FRAME_MORE);
    for (int i = 1; i < WEB_FRAGMENTS_MAX; i++) {
        assert_int_equal(web_frames_read(&frames, BYTES(more), &taken), WEB_FRAME_MORE);
    }
    assert_int_equal(web_frames_read(&frames, BYTES(more), &taken), WEB_FRAME_REFUSED);
    assert_int_equal(frames.code, WEB_CLOSE_POLICY);
    web_frames_fini(&frames);
}

static void control_frames_are_counted_with_their_heads(void **state)
{
    static const char bytes[] = "\x89\x81" NO_MASK "p\x8a\x80" NO_MASK;
    struct web_frames frames;
    size_t taken, at = 0;

    web_frames_init(&frames, true, MESSAGE_MAX);
    while (at < sizeof(bytes) - 1) {
        (void)web_frames_read(&frames, bytes + at, sizeof(bytes) - 1 - at, &taken);
        at += taken;
    }
    assert_int_equal(frames.control_total, sizeof(bytes) - 1);
    web_frames_fini(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_a_client_are_read_or_refused),
        cmocka_unit_test(frames_of_a_server_are_read_or_refused),
        cmocka_unit_test(a_message_of_any_length_is_read_as_it_was_made),
        cmocka_unit_test(a_message_has_a_bounded_number_of_fragments),
        cmocka_unit_test(control_frames_are_counted_with_their_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
