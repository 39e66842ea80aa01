/* The newest frame of each subscription, and its JPEG.
 *
 * A frame is planar YUV 4:2:0, as decoders give it. The store keeps one per subscription, replaced
 * by the next; a JPEG is made when somebody asks, at most once for a frame and a crop, and kept
 * with the frame. Single-threaded.
 */
#ifndef DETECTOR_IMAGE_H
#define DETECTOR_IMAGE_H

#include "detector/protocol.h"

enum { IMAGE_PIXELS_MAX = 8192, IMAGE_QUALITY = 75 };

struct frame {
    int width, height;
    int stride[3];
    const uint8_t *plane[3]; /* Y, U, V */
};

struct image_store; /* opaque */

/* Holds frames of up to `count_max` subscriptions. NULL when out of memory. */
struct image_store *image_store_new(size_t count_max);
void image_store_free(struct image_store *store); /* NULL allowed */

/* Copies the frame in. BATON_EINVAL for a size of 0 or above IMAGE_PIXELS_MAX, BATON_EFULL. */
int image_put(struct image_store *store, const char *identifier, const struct frame *frame,
              struct baton_error *reterr);
void image_remove(struct image_store *store, const char *identifier); /* unknown: nothing */

struct image {
    const uint8_t *jpeg; /* borrowed until the next call */
    size_t bytes;
    uint64_t number; /* of the frame: no two of a store have the same */
    int width, height;
};

/* The frame as JPEG, cut to `crop` unless that is NULL; coordinates outside are moved to the
 * frame's edge. BATON_ENOENT without a frame. */
int image_jpeg(struct image_store *store, const char *identifier, const struct crop *crop,
               struct image *image, struct baton_error *reterr);

/* The rectangle of a frame that a crop means, even so that chroma stays aligned; at least 2x2 if
 * the frame is. rect: x, y, width, height. */
void image_crop_rect(const struct crop *crop, int width, int height, int rect[4]);

#endif
