#include "detector/camera/publish.h"

#include "base/error.h"

#include <errno.h>
#include <libavutil/pixdesc.h>
#include <libyuv/rotate.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PROGRESS_MS = 1000,
    TICK_MS = 50,
    TRIM_MS = 1000,
    QUARTER = 90,
    LAST_WORD_MS = 1000,
};

bool publisher_send(struct publisher *publisher, const struct camera_message *message)
{
    bool is_sent = send(publisher->socket, message, sizeof(*message),
                        MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*message);

    if (!is_sent && errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
        publisher->is_stopping = true;
    }
    return is_sent;
}

void publisher_end(struct publisher *publisher, const struct baton_error *error)
{
    struct camera_message message = {.type = MESSAGE_END, .code = error->code};
    struct pollfd writable = {.fd = publisher->socket, .events = POLLOUT};

    (void)snprintf(message.text, sizeof(message.text), "%s", error->message);
    (void)poll(&writable, 1, LAST_WORD_MS);
    (void)publisher_send(publisher, &message);
}

/* ---- what the parent asks for ---- */

void publisher_listen(struct publisher *publisher)
{
    struct camera_request request;
    ssize_t got;

    while ((got = recv(publisher->socket, &request, sizeof(request), MSG_DONTWAIT)) ==
           sizeof(request)) {
        if (request.type == REQUEST_INTERVAL) {
            publisher->interval = SPAN_US(request.value);
        } else {
            slots_give_back(&publisher->slots, request.value);
        }
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        publisher->is_stopping = true;
    }
}

static void report(struct publisher *publisher, instant now)
{
    struct camera_message message = {.type = MESSAGE_PROGRESS, .counts = publisher->counts};

    if (instant_since(now, publisher->told_at).ns >= SPAN_MS(PROGRESS_MS).ns &&
        publisher_send(publisher, &message)) {
        publisher->told_at = now;
    }
}

void publisher_tick(struct publisher *publisher, instant now)
{
    if (instant_since(now, publisher->ticked_at).ns >= SPAN_MS(TICK_MS).ns) {
        publisher->ticked_at = now;
        publisher_listen(publisher);
        report(publisher, now);
    }
    if (instant_since(now, publisher->trimmed_at).ns >= SPAN_MS(TRIM_MS).ns) {
        publisher->trimmed_at = now; /* a stall has filled more slots than pictures need */
        slots_trim(&publisher->slots, true);
    }
}

/* Sleeps until the parent asks for something, for `most`, or until the next report is due. */
static void doze(struct publisher *publisher, span most)
{
    struct pollfd readable = {.fd = publisher->socket, .events = POLLIN};
    int64_t ms = (most.ns + SPAN_MS(1).ns - 1) / SPAN_MS(1).ns;

    (void)poll(&readable, 1, ms < PROGRESS_MS ? (int)ms : PROGRESS_MS);
    publisher_listen(publisher);
    report(publisher, clock_now());
}

void publisher_sleep(struct publisher *publisher, instant from, const span *length)
{
    span left = instant_since(instant_add(from, *length), clock_now());

    while (left.ns > 0 && !publisher->is_stopping) {
        doze(publisher, left);
        left = instant_since(instant_add(from, *length), clock_now());
    }
}

static bool is_full_range(const AVFrame *frame)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get((enum AVPixelFormat)frame->format);

    return frame->color_range == AVCOL_RANGE_JPEG ||
           (format != NULL && strncmp(format->name, "yuvj", 4) == 0) ||
           (format != NULL && (format->flags & AV_PIX_FMT_FLAG_RGB) != 0);
}

static bool is_420(const AVFrame *frame)
{
    return frame->format == AV_PIX_FMT_YUV420P || frame->format == AV_PIX_FMT_YUVJ420P;
}

/* Makes 4:2:0 of it; range and matrix stay as they are. Returns NULL on failure. */
static AVFrame *convert(struct publisher *publisher, const AVFrame *frame)
{
    const int *matrix = sws_getCoefficients(SWS_CS_DEFAULT);
    int range = is_full_range(frame);
    AVFrame *made = av_frame_alloc();

    publisher->scaler = sws_getCachedContext(
        publisher->scaler, frame->width, frame->height, (enum AVPixelFormat)frame->format,
        frame->width, frame->height, AV_PIX_FMT_YUV420P, SWS_BILINEAR, NULL, NULL, NULL);
    if (made != NULL && publisher->scaler != NULL) {
        made->format = AV_PIX_FMT_YUV420P;
        made->width = frame->width;
        made->height = frame->height;
        (void)sws_setColorspaceDetails(publisher->scaler, matrix, range, matrix, range, 0, 1 << 16,
                                       1 << 16);
        if (sws_scale_frame(publisher->scaler, made, frame) >= 0) {
            return made;
        }
    }
    av_frame_free(&made);
    return NULL;
}

/* Writes the picture to the slot, upright. */
static bool fill(struct publisher *publisher, const AVFrame *frame,
                 const struct ring_layout *layout, int slot)
{
    AVFrame *made = is_420(frame) ? NULL : convert(publisher, frame);
    const AVFrame *from = is_420(frame) ? frame : made;
    const size_t *offsets = layout->offset;
    const int *strides = layout->stride;
    uint8_t *at = slots_at(&publisher->slots, slot);
    bool is_filled =
        from != NULL &&
        I420Rotate(from->data[0], from->linesize[0], from->data[1], from->linesize[1],
                   from->data[2], from->linesize[2], at + offsets[0], strides[0], at + offsets[1],
                   strides[1], at + offsets[2], strides[2], frame->width, frame->height,
                   (enum RotationMode)(publisher->turns * QUARTER)) == 0;

    av_frame_free(&made);
    return is_filled;
}

/* Finds the picture in the ring if it was decoded there, else a slot to copy it to. Returns -1 if
 * there is none now. */
static int find_slot(struct publisher *publisher, const AVFrame *frame,
                     const struct ring_layout *layout)
{
    int slot = slots_find(&publisher->slots, layout, frame);

    if (slot >= 0) {
        return slot;
    }
    slot = slots_find_free(&publisher->slots, layout);
    return slot >= 0 && fill(publisher, frame, layout, slot) ? slot : -1;
}

static uint8_t flags_of(const AVFrame *frame)
{
    /* Where the stream does not name a matrix, it follows from the size, as in players. */
    bool is_709 =
        frame->colorspace == AVCOL_SPC_BT709 || (frame->colorspace == AVCOL_SPC_UNSPECIFIED &&
                                                 frame->height >= 720 && !is_full_range(frame));

    return (uint8_t)((is_full_range(frame) ? FRAME_FULL_RANGE : 0) | (is_709 ? FRAME_BT709 : 0));
}

/* Sends the frame to the parent; false: it was not sent. */
static bool hand_over(struct publisher *publisher, const AVFrame *frame,
                      const struct ring_layout *layout, int64_t pts_us, instant captured)
{
    int slot = find_slot(publisher, frame, layout);
    struct camera_message message = {.type = MESSAGE_FRAME,
                                     .width = (uint32_t)layout->width,
                                     .height = (uint32_t)layout->height,
                                     .slot = (uint8_t)slot,
                                     .flags = flags_of(frame),
                                     .sequence = publisher->sequence,
                                     .pts_us = pts_us,
                                     .captured_ns = captured.ns,
                                     .counts = publisher->counts};

    if (slot < 0 || !publisher_send(publisher, &message)) {
        return false; /* the parent is far behind, and is sent a later one */
    }
    slots_show(&publisher->slots, slot);
    return true;
}

/* Whether the picture is to be shown; then it counts in the sequence. */
static bool is_due(struct publisher *publisher, const AVFrame *frame, instant now)
{
    while (publisher->is_lossless && publisher->slots.shown != 0 && !publisher->is_stopping) {
        doze(publisher, SPAN_MS(PROGRESS_MS));
    }
    if ((frame->flags & AV_FRAME_FLAG_CORRUPT) != 0 ||
        !(publisher->is_lossless || pace_is_due(&publisher->pace, now, publisher->interval))) {
        publisher->counts.dropped++;
        return false;
    }
    publisher->sequence++;
    return __builtin_popcount(publisher->slots.shown) < RING_SHOWN_MAX;
}

int publisher_show(struct publisher *publisher, const AVFrame *frame, int64_t pts_us,
                   instant captured, struct baton_error *reterr)
{
    bool is_across = publisher->turns % 2 != 0;
    instant now = clock_now();
    struct ring_layout layout;
    int rc = 0;

    publisher_listen(publisher);
    publisher->counts.decoded++;
    if (is_due(publisher, frame, now)) {
        rc = ring_layout(&layout, (uint32_t)(is_across ? frame->height : frame->width),
                         (uint32_t)(is_across ? frame->width : frame->height), reterr);
        if (rc == 0 && hand_over(publisher, frame, &layout, pts_us, captured)) {
            publisher->told_at = now;
            return 0;
        }
    }
    report(publisher, now);
    return rc;
}
