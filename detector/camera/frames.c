#include "detector/camera/frames_int.h"

#include "base/error.h"
#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { CAPTURED_MAX_MS = 60000 /* the greatest age of a frame */ };

_Static_assert((int)CAMERA_HELD_MAX == (int)RING_HELD_MAX, "one limit");

/* A mapped ring lives as long as it is the newest, or a frame of it is held. */
struct view {
    uint64_t number; /* the child's */
    struct ring_layout layout;
    const uint8_t *memory;
    struct frames *frames;
    unsigned refs;
};

/* A frame that is shown, at its slot in its ring, or as a copy. */
struct held {
    struct camera_frame shown; /* first, because the public pointer points here */
    struct view *view;
    uint8_t *copy; /* NULL: in its ring */
    int slot;
    unsigned refs;
};

void frames_ref(struct frames *frames)
{
    frames->refs++;
}

void frames_unref(struct frames *frames)
{
    INVARIANT(frames->refs > 0);
    if (--frames->refs == 0) {
        free(frames);
    }
}

static void view_unref(struct view *view)
{
    struct frames *frames = view->frames;

    INVARIANT(view->refs > 0);
    if (--view->refs == 0) {
        ring_unmap(view->memory, &view->layout);
        free(view);
        frames_unref(frames);
    }
}

static void set_view(struct frames *frames, struct view *view)
{
    if (frames->view != NULL) {
        view_unref(frames->view);
    }
    frames->view = view;
}

int frames_adopt(struct frames *frames, int fd, const struct camera_message *message,
                 struct baton_error *reterr)
{
    struct view *view = calloc(1, sizeof(*view));
    int rc;

    if (view == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a ring");
    }
    (void)ring_layout(&view->layout, message->width, message->height); /* was checked */
    rc = fd >= 0 ? ring_map(&view->memory, fd, &view->layout, reterr)
                 : error_set(reterr, BATON_EPROTO, "ring: its descriptor is missing");
    if (rc != 0) {
        free(view);
        return rc;
    }
    view->number = message->sequence;
    view->frames = frames;
    view->refs = 1;
    frames_ref(frames);
    set_view(frames, view);
    return 0;
}

void frames_forget(struct frames *frames)
{
    set_view(frames, NULL);
}

int frames_slots(const struct frames *frames)
{
    return frames->view != NULL ? frames->view->layout.slots : 0;
}

/* It cannot fail for long: the child may show few frames at a time, and is killed if it does not
 * read. */
static void give_back(const struct view *view, uint32_t slot)
{
    const struct camera_request request = {.ring = view->number, .value = slot};

    if (view->frames->socket >= 0) {
        (void)send(view->frames->socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void frames_leave(const struct frames *frames, const struct camera_message *message)
{
    give_back(frames->view, message->slot);
}

/* ---- one frame ---- */

/* Both clocks are read here, so the child's message only says how old the frame is. */
static void set_times(struct camera_frame *frame, const struct camera_message *message)
{
    struct timespec wall;
    instant now = clock_now();
    instant captured = {message->captured_ns};
    span age = instant_since(now, captured);

    if (age.ns < 0 || age.ns > SPAN_MS(CAPTURED_MAX_MS).ns) {
        captured = now;
        age.ns = 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    frame->captured = captured;
    frame->captured_unix_ms =
        (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - age.ns / 1000000;
    frame->pts_us = message->pts_us;
}

/* Makes a frame with its planes at `slot`, which is laid out as those of the ring. */
static void describe(struct camera_frame *shown, const struct ring_layout *layout,
                     const uint8_t *slot, const struct camera_message *message)
{
    shown->picture.width = layout->width;
    shown->picture.height = layout->height;
    for (int plane = 0; plane < 3; plane++) {
        shown->picture.stride[plane] = layout->stride[plane];
        shown->picture.plane[plane] = slot + layout->offset[plane];
    }
    shown->is_full_range = (message->flags & FRAME_FULL_RANGE) != 0;
    shown->is_bt709 = (message->flags & FRAME_BT709) != 0;
    shown->number = message->sequence;
    set_times(shown, message);
}

struct camera_frame *frames_claim(struct frames *frames, const struct camera_message *message)
{
    struct view *view = frames->view;
    const uint8_t *slot = view->memory + message->slot * view->layout.slot_bytes;
    bool is_copied = frames->held >= RING_HELD_MAX;
    struct held *held = calloc(1, sizeof(*held));

    if (held != NULL && is_copied && frames->copied < CAMERA_COPIED_MAX) {
        held->copy = aligned_alloc(RING_ALIGNMENT, view->layout.slot_bytes); /* whole pages */
    }
    if (held == NULL || (is_copied && held->copy == NULL)) {
        free(held);
        return NULL;
    }
    if (is_copied) {
        memcpy(held->copy, slot, view->layout.slot_bytes);
        slot = held->copy;
        give_back(view, message->slot);
    }
    held->view = view;
    held->slot = message->slot;
    held->refs = 1;
    describe(&held->shown, &view->layout, slot, message);
    view->refs++;
    frames->copied += is_copied;
    frames->held += !is_copied;
    return &held->shown;
}

static void let_go(struct held *held)
{
    struct frames *frames = held->view->frames;

    if (held->copy != NULL) {
        frames->copied--;
        free(held->copy);
    } else {
        frames->held--;
        give_back(held->view, (uint32_t)held->slot);
    }
    view_unref(held->view);
    free(held);
}

const struct camera_frame *camera_frame_ref(const struct camera_frame *frame)
{
    struct held *held = (struct held *)frame;

    INVARIANT(held->refs > 0);
    held->refs++;
    return frame;
}

void camera_frame_unref(const struct camera_frame *frame)
{
    struct held *held = (struct held *)frame;

    if (frame == NULL) {
        return;
    }
    INVARIANT(held->refs > 0);
    if (--held->refs == 0) {
        let_go(held);
    }
}
