/* Models from a server of archives, and a camera that shows a clip. */
#ifndef TESTS_DETECTOR_INFER_MODELS_STAND_H
#define TESTS_DETECTOR_INFER_MODELS_STAND_H

#include "detector/program/models.h"
#include "integration/camera/server.h"
#include "integration/camera/viewer.h"

/* 1 and 2 find the same; 3 is no archive, 4 a model that cannot be run, 5 is on another host, 6
 * finds each object once. */
enum { MODEL_TRACKED = 6, MODELS_MAX = 7 };

struct stand {
    struct gallery gallery;
    struct server server;
    char folder[64];
    struct store *store;
    struct supply *supply;
    struct models *models;
    struct camera *camera;
    const char *identifiers[2];
    unsigned frames, detections, of_model[MODELS_MAX], wanted;
    bool has_ended;
    unsigned moved_at; /* the frame before which "a;1" gets another camera; 0: never */
    bool is_rewound;   /* the clip begins anew when it ends */
};

struct stand *stand_new(void);
void stand_free(struct stand *stand); /* runs until all is closed */

/* Shows its subscriptions every frame; they are "a;1" and "a;2" at most. */
void show_clip(struct stand *stand);

void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
               const char *identifier, int64_t model_id);

/* What /status says. */
json_int_t described(const struct stand *stand, const char *identifier, const char *key);
char *described_text(const struct stand *stand, const char *identifier, const char *key);

/* For gallery_run_until(). */
bool all_run(const void *userdata);
bool was_refused(const void *userdata);
bool has_ended(const void *userdata);
bool has_detections(const void *userdata); /* as many as `wanted` */

/* The clip that began anew plays to its end; every object in all of its frames was seen. */
void check_rest_of_clip(struct stand *stand);

#endif
