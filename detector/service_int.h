/* Shared by the files of service.h. */
#ifndef DETECTOR_SERVICE_INT_H
#define DETECTOR_SERVICE_INT_H

#include "detector/gpu.h"
#include "detector/image_encoder.h"
#include "detector/service.h"
#include "detector/service_question.h"
#include "detector/usage.h"

enum { SERVICE_STREAMS_MAX = 16 };

/* See service_drain(). */
enum drain_phase { DRAIN_NOT, DRAIN_DELIVERS, DRAIN_GOODBYE };

/* A viewer of a camera's stream. */
struct viewer {
    uint64_t ticket; /* 0: none */
    struct camera_question wanted;
    uint64_t number; /* of the last still that was requested */
    bool is_reading; /* it has read all that was sent: the next part may go */
    bool is_waiting; /* for the encoder */
};

struct service {
    struct service_config config;
    struct worker *worker;
    struct server *server;
    struct image_store *images;
    struct encoder *encoder;
    struct usage_meter meter;
    struct gpu_meter *gpus; /* NULL: none */
    struct usage usage;
    uv_timer_t heartbeat;
    uv_timer_t drainer;
    bool has_timers; /* their handles are open */
    enum drain_phase drain;
    instant drain_until; /* of this phase */
    uint64_t images_served, parts_served;
    struct viewer viewers[SERVICE_STREAMS_MAX];
    instant started_at;
    instant refusal_told_at; /* last entry in the log; 0: none */
};

/* Answers one GET or HEAD: a hook of server.h. */
void service_http_answer(void *userdata, const struct http_question *question,
                         struct http_reply *reply);

/* An encoding that a reply waits for is finished. */
void service_http_encoded(struct service *service, uint64_t ticket, const struct image *image,
                          const struct baton_error *error);
void service_http_error(struct http_reply *reply, unsigned status, const char *message);

/* /camera/…/stream: service_stream.c. */
void service_stream_begin(struct service *service, const struct camera_question *wanted,
                          uint64_t ticket, struct http_reply *reply);
void service_stream_wanted(void *userdata, uint64_t ticket); /* hooks of server.h */
void service_stream_left(void *userdata, uint64_t ticket);
/* False: no viewer has this ticket. */
bool service_stream_encoded(struct service *service, uint64_t ticket, const struct image *image);
void service_stream_frame(struct service *service, const char *identifier);
void service_stream_removed(struct service *service, const char *identifier);
unsigned service_stream_count(const struct service *service);

#endif
