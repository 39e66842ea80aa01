/* The URL of a camera's picture at its worker, beside the WebSocket.
 *
 *   ws://10.0.0.7:8000  "display-1;cam-1"  "width=320"
 *   http://10.0.0.7:8000/camera/display-1%3Bcam-1/image?width=320
 */
#ifndef FLEET_HTTP_IMAGE_URL_H
#define FLEET_HTTP_IMAGE_URL_H

#include "base/error.h"

#include <stddef.h>

enum { IMAGE_URL_MAX = 4096 };

/* A slash in the subscription stays one, as the worker's path has it; whatever else is no letter or
 * digit is encoded. The query is passed on as it came. BATON_EINVAL: the worker's URL is none;
 * BATON_ETOOBIG. */
int image_url(char ret[static IMAGE_URL_MAX], const char *worker, const char *subscription,
              const char *query, struct baton_error *reterr);

#endif
