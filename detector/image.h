/* The newest frame of each subscription's stream and of its snapshots, and JPEGs of it.
 *
 * A frame is planar YUV 4:2:0, as decoders give it. The store keeps one still for each source; the
 * next frame replaces it, and a holder of the old still keeps that unchanged. The subscription
 * shows one of the two sources. A still is the frame itself if its owner lends it, else a copy.
 * image_encoder.h uses stills in other threads; all else here is one thread's.
 */
#ifndef DETECTOR_IMAGE_H
#define DETECTOR_IMAGE_H

#include "protocol/protocol.h"

enum { IMAGE_PIXELS_MAX = 8192, IMAGE_QUALITY = 75, IMAGE_BOXES_MAX = 64 };

/* The sources of a subscription's frames. */
enum image_source { IMAGE_STREAM, IMAGE_SNAPSHOT, IMAGE_SOURCES, IMAGE_SHOWN = IMAGE_SOURCES };

struct frame {
    int width, height;
    int stride[4];
    const uint8_t *plane[4]; /* Y, U, V; the fourth is for FFmpeg's functions, which take four */
};

/* How a frame is kept where it is. */
struct image_loan {
    const void *owner; /* of the frame */
    void (*hold)(const void *owner);
    void (*give_back)(const void *owner);
};

/* The objects found in a frame. */
struct image_box {
    int x, y, width, height; /* in the frame's pixels */
    int colour;              /* any number; the same one is the same colour */
};

struct image_boxes {
    uint64_t number; /* others of the store have another one; 0: none */
    size_t count;
    struct image_box boxes[IMAGE_BOXES_MAX];
};

struct encoding;

/* A frame that is kept. */
struct still {
    struct frame frame; /* does not change as long as another holder than the store has it */
    uint64_t number;    /* no two of a store have the same */
    struct encoding *encodings; /* image_int.h's, freed with the still */
    struct image_loan loan;     /* its owner is NULL for a copy */
    uint8_t *pixels;            /* of a copy: the three planes, one after the other */
    unsigned holders;
};

struct image_store; /* opaque */

/* Holds frames of up to `count_max` subscriptions. NULL when out of memory. */
struct image_store *image_store_new(size_t count_max);
void image_store_free(struct image_store *store); /* NULL allowed */

/* Keeps the frame by the loan, or copies it if that is NULL. BATON_EINVAL for a size of 0 or above
 * IMAGE_PIXELS_MAX, BATON_EFULL. */
int image_put(struct image_store *store, const char *identifier, enum image_source source,
              const struct frame *frame, const struct image_loan *loan, struct baton_error *reterr);
/* The source that the subscription shows from now on; until then its stream. Boxes of the other one
 * go. */
void image_show(struct image_store *store, const char *identifier, enum image_source source);
/* No frame of the source will come for a while: a lent frame becomes a copy, and is returned once
 * no other holder has it. */
void image_settle(struct image_store *store, const char *identifier, enum image_source source);
/* Its frames were another camera's. */
void image_drop(struct image_store *store, const char *identifier, enum image_source source);
void image_remove(struct image_store *store, const char *identifier); /* unknown: nothing */

/* Of a source, or of IMAGE_SHOWN. NULL: no frame yet. Borrowed until the next change of the store,
 * unless held. */
struct still *image_newest(const struct image_store *store, const char *identifier,
                           enum image_source source);

/* Found in frames of that source, or IMAGE_SHOWN: they take the place of the last ones if it is
 * shown, and else are nothing. At most IMAGE_BOXES_MAX are kept. No frame of that name: there are
 * none then. */
void image_set_boxes(struct image_store *store, const char *identifier, enum image_source source,
                     const struct image_box *boxes, size_t count);
/* NULL: none, as of a source that is not shown. Borrowed until the next change of the store. */
const struct image_boxes *image_boxes(const struct image_store *store, const char *identifier,
                                      enum image_source source);

struct still *still_hold(struct still *still);
void still_release(struct still *still); /* NULL allowed */

/* The part of a frame, and the size of its picture. */
struct image_shape {
    int rect[4]; /* x, y, width, height; x and y are even */
    int width, height;
};

/* `crop` NULL: all of the frame. `width` 0: as large as the part is; else the picture is scaled
 * down to it, never up. */
void image_shape(struct image_shape *ret, const struct frame *frame, const struct crop *crop,
                 int width);

/* A JPEG of the frame, for tjFree(), with the boxes drawn unless they are NULL. From any thread.
 * BATON_EIO, BATON_ENOMEM. */
int image_compress(const struct frame *frame, const struct image_shape *shape,
                   const struct image_boxes *boxes, uint8_t **jpeg, size_t *bytes,
                   struct baton_error *reterr);

/* The rectangle of a frame that a crop means, even so that chroma stays aligned; at least 2x2 if
 * the frame is. rect: x, y, width, height. */
void image_crop_rect(const struct crop *crop, int width, int height, int rect[4]);

#endif
