/* GET /api/cameras/{subscription}/image: the latest picture, from the worker that has the camera.
 *
 *   calls ──▶ one entry for each picture ──▶ one request to the worker
 *     ◀── all that wait, and all that come within 200 ms ──┘
 *
 * So a wall of pictures, on any number of screens, costs a worker five requests a second for each.
 * A picture has a largest size, the worker a time limit, and there are only so many entries.
 */
#ifndef FLEET_HTTP_IMAGE_H
#define FLEET_HTTP_IMAGE_H

#include "fleet/http/call.h"
#include "fleet/http/inside.h"

enum {
    IMAGE_BYTES_MAX = 8 << 20,
    IMAGE_ENTRIES_MAX = 256,   /* pictures that are kept or asked for */
    IMAGE_KEPT_MAX = 64 << 20, /* bytes of all that are kept */
    IMAGE_WAITING_MAX = 64,    /* calls that wait for one picture */
    IMAGE_FRESH_MS = 200,
    IMAGE_WITHIN_MS = 5000,
};

/* NULL: out of memory. */
struct images *images_new(struct fleet_http *http);
void images_close(struct images *images);            /* the loop does the rest */
bool images_are_closed(const struct images *images); /* no request is under way */
void images_free(struct images *images);             /* NULL allowed */

/* The handler; call->id is the subscription. */
void image_get(struct call *call);

#endif
