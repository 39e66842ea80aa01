#include "integration/detector_infer/drawn_frame.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { GREY = 110, NEUTRAL = 128, FRAME_MS = 100 };

/* Red, green, blue and pale red in BT.601, 16 to 235. */
static const uint8_t colours[PALETTE][3] = {
    {76, 98, 214}, {125, 70, 54}, {46, 220, 111}, {68, 108, 191}};

void drawn_frame_init(struct drawn_frame *ret, int width, int height)
{
    size_t luma = (size_t)width * (size_t)height;

    *ret = (struct drawn_frame){.memory = malloc(luma * 3 / 2)};
    assert_non_null(ret->memory);
    ret->frame.picture =
        (struct frame){width,
                       height,
                       {width, width / 2, width / 2},
                       {ret->memory, ret->memory + luma, ret->memory + luma + luma / 4}};
    ret->frame.pts_us = CAMERA_NO_PTS;
    drawn_frame_draw(ret, 0, NULL, 0);
}

void drawn_frame_fini(struct drawn_frame *frame)
{
    free(frame->memory);
    frame->memory = NULL;
}

static void fill(struct drawn_frame *frame, int plane, const struct drawn *drawn)
{
    const struct frame *picture = &frame->frame.picture;
    int shift = plane > 0;
    uint8_t *at = frame->memory + (picture->plane[plane] - picture->plane[0]);

    for (int y = drawn->y >> shift; y < (drawn->y + drawn->height) >> shift; y++) {
        memset(at + y * picture->stride[plane] + (drawn->x >> shift), colours[drawn->colour][plane],
               (size_t)(drawn->width >> shift));
    }
}

void drawn_frame_draw(struct drawn_frame *frame, int step, const struct drawn *drawn, int count)
{
    const struct frame *picture = &frame->frame.picture;
    size_t luma = (size_t)picture->width * (size_t)picture->height;

    memset(frame->memory, GREY, luma);
    memset(frame->memory + luma, NEUTRAL, luma / 2);
    for (int i = 0; i < count; i++) {
        for (int plane = 0; plane < 3; plane++) {
            fill(frame, plane, &drawn[i]);
        }
    }
    frame->frame.number = (uint64_t)step + 1;
    frame->frame.captured = (instant){(int64_t)1000000000 + (int64_t)step * FRAME_MS * 1000000};
    frame->frame.captured_unix_ms = 1000 + (int64_t)step * FRAME_MS;
}
