/* A real decoder whose pictures lie in the ring, beside one that puts them where it likes. */
#include "cmocka_all.h"

#include "detector/camera/slots.h"

#include <libavformat/avformat.h>
#include <string.h>
#include <sys/mman.h>

struct player {
    AVFormatContext *input;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    bool is_drained;
};

static struct slots slots;

static int lend(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct ring_layout layout;

    assert_int_equal(
        ring_layout(&layout, (uint32_t)decoder->width, (uint32_t)decoder->height, NULL), 0);
    return slots_lend(&slots, &layout, decoder, frame, flags);
}

static void player_open(struct player *player, const char *clip, bool uses_rings)
{
    const AVCodec *codec = NULL;

    *player = (struct player){.packet = av_packet_alloc(), .frame = av_frame_alloc()};
    assert_int_equal(avformat_open_input(&player->input, clip, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(player->input, NULL) >= 0);
    player->stream = av_find_best_stream(player->input, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    assert_true(player->stream >= 0);
    player->decoder = avcodec_alloc_context3(codec);
    player->decoder->thread_count = 1;
    (void)avcodec_parameters_to_context(player->decoder,
                                        player->input->streams[player->stream]->codecpar);
    if (uses_rings) {
        player->decoder->get_buffer2 = lend;
        player->decoder->thread_type = FF_THREAD_SLICE;
    }
    assert_int_equal(avcodec_open2(player->decoder, codec, NULL), 0);
}

static void player_close(struct player *player)
{
    av_frame_free(&player->frame);
    av_packet_free(&player->packet);
    avcodec_free_context(&player->decoder);
    avformat_close_input(&player->input);
}

/* The next picture in player->frame; false: there is none. */
static bool play(struct player *player)
{
    av_frame_unref(player->frame);
    while (avcodec_receive_frame(player->decoder, player->frame) != 0) {
        if (player->is_drained) {
            return false;
        }
        player->is_drained = av_read_frame(player->input, player->packet) < 0;
        if (player->is_drained || player->packet->stream_index == player->stream) {
            (void)avcodec_send_packet(player->decoder, player->is_drained ? NULL : player->packet);
        }
        av_packet_unref(player->packet);
    }
    return true;
}

static void assert_same_picture(const AVFrame *one, const AVFrame *other)
{
    assert_int_equal(one->width, other->width);
    assert_int_equal(one->height, other->height);
    for (int plane = 0; plane < 3; plane++) {
        int width = plane > 0 ? (one->width + 1) / 2 : one->width;
        int height = plane > 0 ? (one->height + 1) / 2 : one->height;
        for (int y = 0; y < height; y++) {
            assert_memory_equal(one->data[plane] + (ptrdiff_t)one->linesize[plane] * y,
                                other->data[plane] + (ptrdiff_t)other->linesize[plane] * y,
                                (size_t)width);
        }
    }
}

static int begin(void **state)
{
    slots = (struct slots){.memory = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)};
    return slots.memory == MAP_FAILED;
}

static int end(void **state)
{
    (void)munmap(slots.memory, RING_BYTES);
    return slots.lent != 0; /* somebody still has something of it */
}

/* Decodes the clip twice, and compares. Returns how many pictures it has. */
static unsigned compare(const char *clip, unsigned *ret_in_ring)
{
    struct player ours, theirs;
    unsigned frames = 0;

    *ret_in_ring = 0;
    player_open(&ours, clip, true);
    player_open(&theirs, clip, false);
    while (play(&ours)) {
        struct ring_layout layout;
        assert_int_equal(
            ring_layout(&layout, (uint32_t)ours.frame->width, (uint32_t)ours.frame->height, NULL),
            0);
        *ret_in_ring += slots_find(&slots, &layout, ours.frame) >= 0;
        assert_true(play(&theirs));
        assert_same_picture(ours.frame, theirs.frame);
        frames++;
    }
    assert_false(play(&theirs));
    player_close(&ours);
    player_close(&theirs);
    return frames;
}

static void pictures_of_cameras_are_decoded_where_they_are_shown(void **state)
{
    static const char *const clips[] = {"/rects.mp4",    "/bframes.mp4",  "/full_range.mp4",
                                        "/rects265.mp4", "/resized.h264", "/larger.h264"};

    for (size_t i = 0; i < sizeof(clips) / sizeof(clips[0]); i++) {
        char clip[256];
        unsigned in_ring, frames;
        (void)snprintf(clip, sizeof(clip), "%s%s", BATON_CLIPS, clips[i]);
        frames = compare(clip, &in_ring);
        assert_true(frames >= 45);
        assert_int_equal(in_ring, frames);
    }
}

/* Other codecs and formats: they are shown all the same, from elsewhere. */
static void what_does_not_suit_a_ring_lies_elsewhere(void **state)
{
    unsigned in_ring;

    assert_true(compare(BATON_CLIPS "/odd.mp4", &in_ring) >= 45);
    assert_int_equal(in_ring, 0);
    assert_true(compare(BATON_CLIPS "/mjpeg.avi", &in_ring) >= 45);
    assert_int_equal(in_ring, 0);
    assert_int_equal(slots.recent, 0);
}

/* The slots from `first` on are the parent's. */
static void show_from(int first)
{
    for (int slot = first; slot < RING_SLOTS; slot++) {
        slots_show(&slots, slot);
    }
}

/* A stream that wants more than there is; and some slots that come and go, so that pictures of both
 * kinds predict from each other. */
static void without_a_free_slot_it_decodes_all_the_same(void **state)
{
    unsigned in_ring, frames;

    show_from(0);
    assert_true(compare(BATON_CLIPS "/bframes.mp4", &in_ring) >= 45);
    assert_int_equal(in_ring, 0);
    assert_int_equal(end(state) + begin(state), 0);
    show_from(2);
    frames = compare(BATON_CLIPS "/bframes.mp4", &in_ring);
    assert_true(in_ring > 0 && in_ring < frames);
}

enum { SIDE = 64, FRAMES_MAX = RING_SLOTS + 1, SHOWN = 6 };

/* Returns the slot that a new frame got, or -1 if it got none. */
static int take(AVFrame **ret, uint32_t width, uint32_t height)
{
    struct ring_layout layout;

    *ret = av_frame_alloc();
    (*ret)->width = (int)width;
    (*ret)->height = (int)height;
    assert_int_equal(ring_layout(&layout, width, height, NULL), 0);
    return slots_take(&slots, &layout, *ret) ? slots_find(&slots, &layout, *ret) : -1;
}

/* A decoder never has so many, beside the parent's, that nothing could be copied in. */
static void a_slot_is_left_alone_until_decoder_and_parent_give_it_back(void **state)
{
    AVFrame *frames[FRAMES_MAX];
    struct ring_layout layout;
    uint32_t taken = 0;
    int count = 0, slot;

    assert_int_equal(ring_layout(&layout, SIDE, SIDE, NULL), 0);
    for (int i = 0; i < SHOWN; i++) {
        slot = slots_find_free(&slots, &layout);
        assert_true(slot >= 0 && (taken & 1U << slot) == 0);
        taken |= 1U << slot;
        slots_show(&slots, slot);
    }
    while ((slot = take(&frames[count], SIDE, SIDE)) >= 0) {
        assert_int_equal(taken & 1U << slot, 0);
        taken |= 1U << slot;
        count++;
    }
    assert_true(count > 16);
    assert_true(slots_find_free(&slots, &layout) >= 0);
    slot = slots_find(&slots, &layout, frames[0]);
    slots_show(&slots, slot);
    av_frame_free(&frames[0]);
    assert_int_not_equal(slots_find_free(&slots, &layout), slot);
    slots_give_back(&slots, RING_SLOTS);
    assert_int_not_equal(slots_find_free(&slots, &layout), slot);
    slots_give_back(&slots, (uint32_t)slot);
    assert_true(slots_take(&slots, &layout, frames[count]));
    for (int i = 1; i <= count; i++) {
        av_frame_free(&frames[i]);
    }
}

/* As a camera of snapshots has them: one is being written, one the parent has, one is over. */
static void trim(bool keeps_recent)
{
    AVFrame *frames[3];
    int taken[3];

    for (int i = 0; i < 3; i++) {
        taken[i] = take(&frames[i], 33, 17);
        memset(frames[i]->data[0], i + 1, (size_t)frames[i]->linesize[0] * 18);
    }
    slots_show(&slots, taken[1]);
    av_frame_free(&frames[1]);
    av_frame_free(&frames[2]);
    slots_trim(&slots, true); /* all were needed just now */
    assert_int_equal(slots_at(&slots, taken[2])[0], 3);
    slots_trim(&slots, keeps_recent);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(slots_at(&slots, taken[i])[0], i < 2 ? i + 1 : 0);
    }
    av_frame_free(&frames[0]);
}

static void what_nobody_has_costs_no_memory_at_once_or_at_the_next_time(void **state)
{
    trim(false);
    assert_int_equal(end(state) + begin(state), 0);
    trim(true);
}

static void a_smaller_picture_costs_no_more_memory_than_it_needs(void **state)
{
    const uint8_t *rest;
    AVFrame *frame;
    int slot;

    slot = take(&frame, 640, 480);
    rest = frame->data[2];
    memset(frame->data[2], 1, 1);
    av_frame_free(&frame);
    assert_int_equal(take(&frame, SIDE, SIDE), slot);
    assert_int_equal(*rest, 0);
    av_frame_free(&frame);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pictures_of_cameras_are_decoded_where_they_are_shown),
        CASE(what_does_not_suit_a_ring_lies_elsewhere),
        CASE(without_a_free_slot_it_decodes_all_the_same),
        CASE(a_slot_is_left_alone_until_decoder_and_parent_give_it_back),
        CASE(what_nobody_has_costs_no_memory_at_once_or_at_the_next_time),
        CASE(a_smaller_picture_costs_no_more_memory_than_it_needs),
    };
    return cmocka_run_group_tests_name("integration_camera_slots", tests, NULL, NULL);
}
