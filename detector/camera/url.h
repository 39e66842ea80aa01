/* Parses a camera's URL into its printable part, host and port. */
#ifndef DETECTOR_CAMERA_URL_H
#define DETECTOR_CAMERA_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { URL_MASKED_MAX = 320, URL_HOST_MAX = 256, URL_PORT_MAX = 8 };

struct url {
    /* "rtsp://camera.example:554/…", without user, password, path and query, since cameras take
     * passwords in each of them. */
    char masked[URL_MASKED_MAX];
    char scheme[8];          /* in lower case */
    char host[URL_HOST_MAX]; /* an address of IPv6 is without brackets */
    uint16_t port;           /* the scheme's own if none is given */
    bool has_user;           /* and perhaps a password */
    uint32_t login;          /* a sum of host, user and password: all URLs of one camera have it */
};

/* Parses a URL of rtsp, rtsps, http or https. Returns BATON_EINVAL; the message quotes no part of
 * the URL. */
int url_parse(struct url *ret, const char *text, struct baton_error *reterr);

/* Writes the text that was parsed with its scheme in lower case, "rtsp://host:/path" without the
 * colon, and "rtsps://host/path" as "rtsp://host:322/path". `bytes` is above the length of `text`
 * by URL_PORT_MAX. */
void url_without_tls(char *ret, size_t bytes, const struct url *url, const char *text);

#endif
