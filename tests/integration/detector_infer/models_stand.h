/* Models with a source of archives that are there already, and a camera that shows a clip. */
#ifndef TESTS_DETECTOR_INFER_MODELS_STAND_H
#define TESTS_DETECTOR_INFER_MODELS_STAND_H

#include "detector/program/models.h"
#include "integration/camera/viewer.h"

#define STAND_FIRST_URL "https://models/archive?signature=1"

enum { ASKED_MAX = 256, RETRY_MS = 20 };

struct asked {
    struct stand *stand;
    void *asker;
    int64_t model_id;
    char url[64];
    bool is_answered;
    bool is_look;
    uv_timer_t timer;
};

struct stand {
    struct gallery gallery;
    struct models *models;
    struct camera *camera;
    struct asked asked[ASKED_MAX];
    size_t asked_count, look_count, held;
    const char *identifiers[2];
    unsigned frames, detections, of_model[4], wanted;
    const char *url;
    bool has_ended;
    bool is_mended;    /* 3 is right, too */
    bool is_offline;   /* all are those from before */
    bool is_tracked;   /* every object is reported once */
    unsigned moved_at; /* the frame before which "a;1" gets another camera; 0: never */
    bool is_rewound;   /* the clip begins anew when it ends */
    int old_pid;
};

struct stand *stand_new_with(int retry_min_ms);
struct stand *stand_new(void);
void stand_free(struct stand *stand); /* runs until all is closed, and nothing is held */

/* Shows its subscriptions every frame; they are "a;1" and "a;2" at most. */
void show_clip(struct stand *stand);

void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
               const char *identifier, int64_t model_id);
/* The same list for "a;1", but for what is told. */
void list_again(struct stand *stand, const char *url, int64_t model_id);

/* What /status says. */
json_int_t described(const struct stand *stand, const char *identifier, const char *key);
char *described_text(const struct stand *stand, const char *identifier, const char *key);

/* For gallery_run_until(). */
bool all_run(const void *userdata);
bool has_failed(const void *userdata);
bool was_refused(const void *userdata);
bool has_ended(const void *userdata);
bool has_detections(const void *userdata); /* as many as `wanted` */

/* The clip that began anew plays to its end; every object in all of its frames was seen. */
void check_rest_of_clip(struct stand *stand);

#endif
