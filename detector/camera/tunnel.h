/* TLS to an rtsps camera, through which FFmpeg speaks plain RTSP: no FFmpeg before 8 can be told to
 * check a certificate.
 *
 *   FFmpeg ◀── descriptor ── pair of sockets ── inner ─▶ tunnel ◀─ outer ── TLS (libcurl) ─▶ camera
 *
 * Of the broker (broker.h) only.
 */
#ifndef DETECTOR_CAMERA_TUNNEL_H
#define DETECTOR_CAMERA_TUNNEL_H

#include "detector/camera/message.h"

struct tunnel {
    void *curl; /* NULL: there is none */
    int inner, outer;
};

#define TUNNEL_NONE ((struct tunnel){.inner = -1, .outer = -1})

/* Connects to the URL's host, checks its certificate, and makes `fd` the other end, in place of the
 * last tunnel's. 0, or an errno below 0 and the reason in `fault`. */
int tunnel_open(struct tunnel *tunnel, const struct camera_config *config, int fd,
                struct baton_error *fault);
/* Once an end is readable. Closes the tunnel when either end does. */
void tunnel_pump(struct tunnel *tunnel, bool is_inner_readable);

#endif
