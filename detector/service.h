/* The running worker: worker.h behind a server of src/web, with a heartbeat, the images and the
 * status pages.
 *
 *   GET /camera/{display;camera}/image[?crop=1][&width=W][&boxes=1][&source=stream|snapshot]
 *   GET /camera/{display;camera}/stream     the same JPEG, again and again: MJPEG
 *   GET /healthz  /readyz  /metrics  /status
 *
 * With a token, WebSockets and HTTP must show it (Authorization: Bearer …), but /healthz and
 * /readyz. A page in a browser cannot drive the worker: a WebSocket with an Origin is refused. Nor
 * can one see anything that was rebound to our address: without a token, HTTP answers only who asks
 * for a host that could not be foreign.
 *
 * The part that opens cameras gets the subscriptions through `changed`, and reports through
 * service_frame, `is_online` and worker_detected, all on the loop's thread.
 */
#ifndef DETECTOR_SERVICE_H
#define DETECTOR_SERVICE_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "detector/image.h"
#include "detector/worker.h"
#include "web/server.h"

#include <jansson.h>

enum {
    SERVICE_CONNECTIONS_MAX = 3584,
    SERVICE_TOKEN_MAX = 256,
};

/* Texts are borrowed, and stay. */
struct service_config {
    struct web_config web;    /* loop, logger, host, port, tls_cert and tls_key; the rest follows */
    const char *token;        /* NULL: none */
    const char *const *hosts; /* further names that HTTP may ask for; NULL-ended, or NULL */
    int report_interval_ms;   /* 100 to 60000; the specification has 2000 */
    size_t queue_max;         /* detections that wait for a backend */
    size_t entry_bytes;       /* of a struct that begins with a struct images: worker.h */
    /* Called when a subscription was added, updated or removed, or a session or stage changed. May
     * be NULL. */
    void (*changed)(void *userdata, const struct worker_event *event);
    /* Adds fields to a camera's object in /status. May be NULL. */
    void (*describe)(void *userdata, struct subscription *subscription, json_t *camera);
    /* Adds families to /metrics, see web/exposition.h. May be NULL. */
    void (*measure)(void *userdata, struct buffer *body);
    /* The drain that service_drain() began is over; it may call service_close(). May be NULL. */
    void (*drained)(void *userdata);
    void *userdata;
};

struct service; /* opaque */

/* BATON_EIO: it cannot listen there; BATON_EINVAL: certificate or key is none; BATON_ENOMEM. */
int service_open(struct service **ret, const struct service_config *config,
                 struct baton_error *reterr);
int service_port(const struct service *service);
/* For its detections, and for what is known of subscriptions. */
struct worker *service_worker(struct service *service);

/* Sets the newest frame of its source. With `is_shown` the subscription shows it from now on. */
void service_frame(struct service *service, struct images *images, bool is_shown,
                   const struct frame *frame);

/* Applies the part of the configuration that may change at work. */
void service_set_limits(struct service *service, int report_interval_ms, size_t queue_max);

/* Begins the orderly end: /readyz is 503 at once; waiting detections are delivered for up to
 * `patience`; the backends get a close frame, and have a second to answer it. */
void service_drain(struct service *service, span patience);

/* Close once, then run the loop until it is done, then free. NULL is allowed. */
void service_close(struct service *service);
void service_free(struct service *service);

#endif
