/* The newest frame of each subscription's stream and of its snapshots, and JPEGs of it.
 *
 * A frame is planar YUV 4:2:0, as decoders give it. A subscription holds one of each source; the
 * next one replaces it. It shows one of the two sources.
 *
 * JPEGs are made in other threads: the loop never waits for one, and neither do the cameras.
 *
 *   image_ask ─▶ made already: at once
 *        ├─────▶ under way: waits with the others for the same one
 *        ├─────▶ a thread of libuv's pool ─▶ made(), once for all that wait
 *        └─────▶ IMAGE_ENCODINGS_MAX are under way: refused
 *
 * A picture of one frame, one shape and the same boxes is made at most once, as long as the frame
 * keeps it: it keeps the newest IMAGE_KEPT_MAX.
 */
#ifndef DETECTOR_IMAGE_H
#define DETECTOR_IMAGE_H

#include "base/clock.h"
#include "base/error.h"
#include "protocol/protocol.h"

#include <stdatomic.h>
#include <uv.h>

enum {
    IMAGE_PIXELS_MAX = 8192,
    IMAGE_QUALITY = 75,
    IMAGE_BOXES_MAX = 64,
    IMAGE_ENCODINGS_MAX = 34,
    IMAGE_KEPT_MAX = 8,
};

/* The sources of a subscription's frames. */
enum image_source { IMAGE_STREAM, IMAGE_SNAPSHOT, IMAGE_SOURCES, IMAGE_SHOWN = IMAGE_SOURCES };

#define CAMERA_NO_PTS INT64_MIN

struct encoding;

/* Its samples are read-only; of a camera's, their content comes from a child. */
struct frame {
    int width, height;
    int stride[4];
    const uint8_t *plane[4];  /* Y, U, V; the fourth is for FFmpeg's functions, which take four */
    bool is_full_range;       /* luma of 0 to 255, not 16 to 235 */
    bool is_bt709;            /* else BT.601 */
    enum image_source source; /* IMAGE_STREAM for clips, too */
    uint64_t number;  /* grows with each frame of a source, also over restarts, by one or more */
    int64_t pts_us;   /* by the stream's own clock, or CAMERA_NO_PTS */
    instant captured; /* when it arrived */
    int64_t captured_unix_ms;
    unsigned refs; /* 1 for its maker, who has set: */
    void (*free)(struct frame *frame);
    /* the store's */
    uint64_t id;                /* other frames of the store have another one; 0: it had none yet */
    struct encoding *encodings; /* newest first; one that is not made yet holds the frame */
};

/* Holds the frame, unchanged, until as many calls of unref. On the loop's thread. */
struct frame *frame_ref(const struct frame *frame);
void frame_unref(const struct frame *frame); /* NULL is allowed */

/* The objects found in a frame. */
struct image_box {
    int x, y, width, height; /* in the frame's pixels */
    int colour;              /* any number; the same one is the same colour */
};

struct image_boxes {
    uint64_t number; /* others, also of an earlier subscription, have another one; 0: none */
    size_t count;
    struct image_box boxes[IMAGE_BOXES_MAX];
};

struct image_store;

/* A subscription and its images: the beginning of an entry (worker.h). At first it has none, and
 * its stream is shown. */
struct images {
    struct subscription subscription;
    struct frame *frames[IMAGE_SOURCES]; /* NULL: none */
    enum image_source shown;
    struct image_boxes boxes; /* of what is shown */
};

/* The part of a frame, the size of its picture, and what is drawn there. The same bytes are the
 * same picture. */
struct image_shape {
    int rect[4]; /* x, y, width, height; x and y are even */
    int width, height;
    size_t box_count;
    struct image_box boxes[IMAGE_BOXES_MAX];
};

/* A picture of a frame; borrowed during the call, unless it is not made yet. */
struct encoding {
    bool is_made;
    /* The other thread's until it is made. */
    uint8_t *jpeg; /* NULL: it could not be made */
    size_t bytes;
    struct baton_error error;
    /* the store's */
    struct encoding *next;
    struct image_store *store;
    struct frame *frame;
    struct image_shape shape;
    uv_work_t work;
};

/* All that waited for it get it now, or its error. On the loop's thread. */
typedef void image_made(void *userdata, const struct encoding *encoding);

/* Numbers frames and makes pictures of them; the first three are its user's. */
struct image_store {
    uv_loop_t *loop;
    image_made *made;
    void *userdata;
    atomic_bool is_closing;
    uint64_t frames; /* that had an id */
    struct {
        uint64_t made, refused;
        unsigned waiting; /* under way now */
    } counters;
};

/* `made` is not called any more. Then end all images, and run the loop until it is done. */
void image_store_close(struct image_store *store);

/* Holds the frame, whose sides are 1 to IMAGE_PIXELS_MAX. */
void image_put(struct image_store *store, struct images *images, const struct frame *frame);
/* The source that is shown from now on. Boxes of the other one go. */
void image_show(struct images *images, enum image_source source);
/* Its frames were another camera's. */
void image_drop(struct images *images, enum image_source source);
void images_fini(struct images *images); /* all of them */

/* Of a source, or of IMAGE_SHOWN. NULL: no frame yet. Borrowed until the next change. */
struct frame *image_newest(const struct images *images, enum image_source source);

/* Found in frames of that source, or IMAGE_SHOWN: they take the place of the last ones if it is
 * shown, and else are nothing. At most IMAGE_BOXES_MAX are kept; without a frame, none. */
void image_set_boxes(struct images *images, enum image_source source, const struct image_box *boxes,
                     size_t count);
/* NULL: none, as of a source that is not shown. Borrowed until the next change. */
const struct image_boxes *image_boxes(const struct images *images, enum image_source source);

/* `crop` NULL: all of the frame. `width` 0: as large as the part is; else the picture is scaled
 * down to it, never up. `boxes` NULL: none. */
void image_shape(struct image_shape *ret, const struct frame *frame, const struct crop *crop,
                 int width, const struct image_boxes *boxes);

/* 0: the encoding is made. BATON_EBUSY: `made` will be called with it; until
 * then it is no more than a name. BATON_EUNAVAILABLE: too many are under way. BATON_ENOMEM. */
int image_ask(struct image_store *store, struct frame *frame, const struct image_shape *shape,
              const struct encoding **ret, struct baton_error *reterr);

/* A JPEG of the frame, for tjFree(). From any thread. BATON_EIO, BATON_ENOMEM. */
int image_compress(const struct frame *frame, const struct image_shape *shape, uint8_t **jpeg,
                   size_t *bytes, struct baton_error *reterr);

/* The rectangle of a frame that a crop means, even so that chroma stays aligned; at least 2x2 if
 * the frame is. rect: x, y, width, height. */
void image_crop_rect(const struct crop *crop, int width, int height, int rect[4]);

#endif
