/* Shared by the files of service.h. */
#ifndef DETECTOR_SERVICE_INT_H
#define DETECTOR_SERVICE_INT_H

#include "detector/service.h"
#include "detector/service_question.h"
#include "detector/usage.h"
#include "web/socket.h"

/* See service_drain(). */
enum drain_phase { DRAIN_NOT, DRAIN_DELIVERS, DRAIN_GOODBYE };

/* A WebSocket. */
struct peer {
    struct peer *prev, *next;
    struct service *service;
    struct web_socket *socket;
    uint64_t number; /* the worker's name for it */
};

/* A client that waits for a picture, or for one after the other. */
struct viewer {
    struct viewer *prev, *next;
    struct service *service;
    struct web_exchange *exchange;
    const struct images *images;    /* of a picture that is being made it may have gone */
    const struct encoding *awaited; /* the picture that is being made for it; NULL: none */
    struct camera_question wanted;
    char tag[96];
    uint64_t number; /* the id of the last frame that was requested for a stream */
    bool is_reading; /* it has read all that was sent: the next part may go */
};

struct service {
    struct service_config config;
    struct worker worker;
    struct web_server *web;
    struct peer *peers;
    unsigned connections;   /* of them */
    struct viewer *viewers; /* of which so many have streams: */
    unsigned streams;
    uint64_t last_number; /* of a peer */
    struct image_store images;
    struct usage_meter meter;
    uv_timer_t heartbeat, looker;
    bool has_changed; /* subscriptions, since the last heartbeat */
    enum drain_phase drain;
    instant drain_until; /* of this phase */
    uint64_t images_served, parts_served;
    instant started_at;
};

/* Something is to be looked at every few milliseconds, as long as it is: whether what was sent has
 * arrived, or the drain. */
void service_look(struct service *service);

/* ---- service_socket.c: hooks of worker.h, and a request for a WebSocket that may be one ------ */

bool service_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                  uint64_t *ret_end);
void service_drop(void *userdata, uint64_t backend, int code, const char *reason);
void service_socket_begin(struct service *service, struct web_exchange *exchange);
void service_goodbye(struct service *service);
/* The worker is told how much of what it sent has arrived. */
void service_deliver(struct service *service);

/* ---- service_http.c: of the server's callbacks -------------------------------------------- */

void service_http_begin(void *userdata, struct web_exchange *exchange);

/* ---- service_picture.c ----------------------------------------------------------------------- */

void service_picture_begin(struct service *service, const struct camera_question *wanted,
                           struct web_exchange *exchange);
void service_picture_drained(void *userdata, struct web_exchange *exchange);
void service_picture_gone(void *userdata, struct web_exchange *exchange);
void service_picture_made(void *userdata, const struct encoding *encoding);
/* A frame has come; the camera is removed. */
void service_picture_frame(struct service *service, const struct images *images);
void service_picture_removed(struct service *service, const struct images *images);

#endif
