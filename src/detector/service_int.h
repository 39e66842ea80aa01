/* What service.c and service_http.c share. */
#ifndef DETECTOR_SERVICE_INT_H
#define DETECTOR_SERVICE_INT_H

#include "detector/gpu.h"
#include "detector/image_encoder.h"
#include "detector/service.h"
#include "detector/usage.h"

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
    bool has_heartbeat; /* the timer's handle is open */
    bool is_draining;
    uint64_t images_served;
    instant started_at;
};

/* Answers one GET or HEAD. */
void service_http_answer(struct service *service, const struct http_question *question,
                         struct http_reply *reply);

/* An encoding that an answer waits for is done: an encoder_done. */
void service_http_encoded(void *userdata, uint64_t ticket, const struct image *image,
                          const struct baton_error *error);

#endif
