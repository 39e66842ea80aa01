/* A camera's URL: its printable part, and its port. */
#ifndef DETECTOR_CAMERA_URL_H
#define DETECTOR_CAMERA_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { URL_MASKED_MAX = 320, URL_HOST_MAX = 256 };

struct url {
    /* "rtsp://camera.example:554/…": never user, password, path or query, for cameras take
     * passwords in each of them. */
    char masked[URL_MASKED_MAX];
    char scheme[8];
    char host[URL_HOST_MAX]; /* of IPv6 without brackets */
    uint16_t port;           /* the scheme's own if none is given */
};

/* Of rtsp, rtsps, http, https. BATON_EINVAL; the message quotes no part of the URL. */
int url_parse(struct url *ret, const char *text, struct baton_error *reterr);

/* Alike but for capitals in the scheme. */
bool url_is_same(const char *one, const char *other);
void url_lower_scheme(char *url);

#endif
