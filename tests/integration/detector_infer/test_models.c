#include "cmocka_all.h"

#include "detector/program/models.h"
#include "integration/camera/server.h"
#include "integration/camera/viewer.h"
#include "integration/detector_infer/stand.h"
#include "lib/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1 and 2 find the same; 3 finds each object once. */
enum { MODEL_TRACKED = 3, MODELS_MAX };

/* Models from a server of archives, and a camera that shows a clip to a subscription. */
struct stand {
    struct gallery gallery;
    struct server server;
    char folder[64];
    struct store *store;
    struct supply *supply;
    struct models models;
    struct camera *camera;
    struct images images;
    struct bound bound;
    char url[128];
    unsigned frames, detections, of_model[MODELS_MAX];
    bool has_ended;
    unsigned moved_at; /* the frame before which it gets another camera; 0: never */
    bool is_rewound;   /* the clip begins anew when it ends */
};

/* ---- A subscription, a camera, and what comes of them ---------------------------------------- */

static void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
                      int64_t model_id)
{
    static const char *const places[MODELS_MAX] = {"", "boxes", "boxes_too", "tracked"};
    const struct worker_event event = {
        .type = type, .subscription = &stand->images.subscription, .changes = changes};

    stand->images.subscription = (struct subscription){.identifier = (char *)"a;1",
                                                       .model_url = stand->url,
                                                       .model_name = (char *)"plates",
                                                       .model_id = model_id};
    (void)snprintf(stand->url, sizeof(stand->url), "http://127.0.0.1:%d/test/%s.mpta",
                   stand->server.port, places[model_id]);
    models_event(&stand->models, &stand->bound, &event);
}

static void on_detected(void *userdata, struct detection *detection)
{
    struct stand *stand = userdata;

    assert_string_equal(detection->model_name, "plates");
    assert_true(detection->at_unix_ms > 0);
    assert_non_null(json_object_get(detection->attributes, "class"));
    assert_int_equal(detection_check(detection, NULL), 0);
    stand->detections++;
    stand->of_model[detection->model_id]++;
    detection_fini(detection);
}

static void on_frame(void *userdata, const struct frame *frame)
{
    struct stand *stand = userdata;

    stand->frames++;
    if (stand->frames == stand->moved_at) {
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_CAMERA, MODEL_TRACKED);
    }
    models_frame(&stand->bound, frame, STAGE_NONE);
}

static void show_clip(struct stand *stand);

static void on_ended(void *userdata)
{
    struct stand *stand = userdata;

    stand->has_ended = true;
    if (stand->is_rewound) {
        camera_close(stand->camera);
        show_clip(stand);
    }
}

/* The next frame is shown when nobody holds the last one any more, so that none is dropped. */
static void show_clip(struct stand *stand)
{
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .ended = on_ended, .userdata = stand};

    assert_int_equal(camera_open(&stand->camera, stand->gallery.pool, clip("rects.mp4"),
                                 &(struct camera_options){.is_lossless = true}, &callbacks, NULL),
                     0);
}

static void open_supply(struct stand *stand)
{
    static const char *const hosts[] = {"127.0.0.1", NULL};
    struct supply_config config = {.loop = &stand->gallery.loop,
                                   .logger = stand->gallery.logger,
                                   .fetch = fetch_rules_default()};

    process_make_folder(stand->folder, sizeof(stand->folder));
    assert_int_equal(store_open(&stand->store, stand->folder, 1 << 30, NULL), 0);
    config.store = stand->store;
    config.fetch.hosts = hosts;
    assert_int_equal(supply_new(&stand->supply, &config, NULL), 0);
}

static struct stand *stand_new(void)
{
    struct stand *stand = calloc(1, sizeof(*stand));
    struct models_config config = {.uses_stream_time = true, /* ours is the machine's load */
                                   .detected = on_detected,
                                   .userdata = stand};

    assert_non_null(stand);
    assert_int_equal(setenv("TEST_MODELS", MODELS, 1), 0);
    server_start(&stand->server, "../integration/detector_model/model_server.py", NULL);
    gallery_init(&stand->gallery);
    open_supply(stand);
    config.loop = &stand->gallery.loop;
    config.logger = stand->gallery.logger;
    config.supply = stand->supply;
    stand->models.config = config;
    return stand;
}

static void stand_free(struct stand *stand)
{
    camera_close(stand->camera);
    models_close(&stand->models);
    supply_close(stand->supply);
    gallery_fini(&stand->gallery); /* runs the loop until all is closed */
    store_close(stand->store);
    server_end(&stand->server);
    process_remove_folder(stand->folder);
    free(stand);
}

/* A number that /status says. */
static json_int_t described(struct stand *stand, const char *key)
{
    json_t *camera = json_object();
    json_int_t value;

    models_describe(&stand->bound, camera);
    value = json_integer_value(json_object_get(json_object_get(camera, "model_state"), key));
    json_decref(camera);
    return value;
}

/* ---- The tests ------------------------------------------------------------------------------ */

static void models_are_exchanged_without_losing_a_frame(void **state)
{
    struct stand *stand = stand_new();
    unsigned wanted;

    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, 1);
    AWAIT_IN(&stand->gallery, described(stand, "running_id") != 0);
    stand->is_rewound = true;
    show_clip(stand);
    AWAIT_IN(&stand->gallery, stand->detections >= 10);
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, 2);
    AWAIT_IN(&stand->gallery, described(stand, "running_id") == 2 && stand->of_model[2] >= 30);
    stand->is_rewound = stand->has_ended = false;
    AWAIT_IN(&stand->gallery, stand->has_ended);
    wanted = stand->frames * COLOURS; /* every object in all of its frames */
    AWAIT_IN(&stand->gallery, stand->detections >= wanted);
    assert_int_equal(stand->detections, wanted);
    assert_true(stand->of_model[1] >= 10);
    stand_free(stand);
}

static void what_another_camera_shows_are_other_objects(void **state)
{
    static const unsigned moved_at[] = {0, 20};

    for (unsigned i = 0; i < 2; i++) {
        struct stand *stand = stand_new();

        stand->moved_at = moved_at[i];
        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, MODEL_TRACKED);
        AWAIT_IN(&stand->gallery, described(stand, "running_id") != 0);
        show_clip(stand);
        AWAIT_IN(&stand->gallery, stand->has_ended);
        /* Once before it, and once after. */
        assert_int_equal(stand->detections, (i + 1) * COLOURS);
        assert_int_equal(described(stand, "restarts"), 0);
        stand_free(stand);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_exchanged_without_losing_a_frame),
        cmocka_unit_test(what_another_camera_shows_are_other_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
