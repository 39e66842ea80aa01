#include "cmocka_all.h"

#include "integration/detector_infer/models_stand.h"

#include "integration/detector_infer/stand.h"
#include "lib/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Subscriptions, a camera, and what comes of them ---------------------------------------- */

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

static void on_frame(void *userdata, const struct camera_frame *frame)
{
    struct stand *stand = userdata;

    stand->frames++;
    if (stand->frames == stand->moved_at) {
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_CAMERA, "a;1", MODEL_TRACKED);
    }
    for (size_t i = 0; i < 2 && stand->identifiers[i]; i++) {
        models_frame(stand->models, stand->identifiers[i], frame, STAGE_NONE);
    }
}

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
void show_clip(struct stand *stand)
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
                                   .archive = archive_rules_default(),
                                   .fetch = fetch_rules_default()};

    process_make_folder(stand->folder, sizeof(stand->folder));
    assert_int_equal(store_open(&stand->store, stand->folder, 1 << 30, NULL), 0);
    config.store = stand->store;
    config.fetch.hosts = hosts;
    assert_int_equal(supply_new(&stand->supply, &config, NULL), 0);
}

struct stand *stand_new(void)
{
    struct stand *stand = calloc(1, sizeof(*stand));
    struct models_config config = {.uses_stream_time = true, /* ours is the machine's load */
                                   .detected = on_detected,
                                   .userdata = stand};

    assert_non_null(stand);
    assert_int_equal(setenv("TEST_MODELS", MODELS, 1), 0);
    server_start(&stand->server, "../integration/detector_model/model_server.py",
                 (const char *const[]){NULL});
    gallery_init(&stand->gallery);
    open_supply(stand);
    config.loop = &stand->gallery.loop;
    config.logger = stand->gallery.logger;
    config.supply = stand->supply;
    stand->models = models_new(&config);
    assert_non_null(stand->models);
    return stand;
}

void stand_free(struct stand *stand)
{
    camera_close(stand->camera);
    models_close(stand->models);
    supply_close(stand->supply, NULL, NULL);
    gallery_fini(&stand->gallery); /* runs the loop until all is closed */
    models_free(stand->models);
    store_close(stand->store);
    server_end(&stand->server);
    process_remove_folder(stand->folder);
    free(stand);
}

void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
               const char *identifier, int64_t model_id)
{
    static const char *const places[MODELS_MAX] = {
        "", "test/boxes.mpta",  "test/boxes_too.mpta", "bad.mpta", "test/unfit.mpta",
        "", "test/tracked.mpta"};
    char url[128];
    const struct subscription subscription = {.identifier = (char *)(uintptr_t)identifier,
                                              .model_url = url,
                                              .model_name = (char *)"plates",
                                              .model_id = model_id};
    const struct worker_event event = {
        .type = type, .identifier = identifier, .subscription = &subscription, .changes = changes};

    (void)snprintf(url, sizeof(url), "http://%s:%d/%s",
                   model_id == 5 ? "models.example" : "127.0.0.1", stand->server.port,
                   places[model_id]);
    models_event(stand->models, &event);
    if (type == WORKER_SUBSCRIPTION_ADDED) {
        stand->identifiers[stand->identifiers[0] != NULL] = identifier;
    }
}

json_int_t described(const struct stand *stand, const char *identifier, const char *key)
{
    json_t *camera = json_object();
    json_int_t value;

    models_describe(stand->models, identifier, camera);
    value = json_integer_value(json_object_get(json_object_get(camera, "model_state"), key));
    json_decref(camera);
    return value;
}

char *described_text(const struct stand *stand, const char *identifier, const char *key)
{
    json_t *camera = json_object();
    const char *value;
    char *ret;

    models_describe(stand->models, identifier, camera);
    value = json_string_value(json_object_get(json_object_get(camera, "model_state"), key));
    ret = strdup(value ? value : "");
    json_decref(camera);
    return ret;
}

static bool is_state(const struct stand *stand, const char *identifier, const char *wanted)
{
    char *state = described_text(stand, identifier, "state");
    bool is_right = strcmp(state, wanted) == 0;

    free(state);
    return is_right;
}

bool all_run(const void *userdata)
{
    const struct stand *stand = userdata;

    return is_state(stand, "a;1", "running") &&
           (!stand->identifiers[1] || is_state(stand, "a;2", "running"));
}

bool was_refused(const void *userdata)
{
    char *error = described_text(userdata, "a;1", "last_error");
    bool is_said = error[0] != '\0';

    free(error);
    return is_said;
}

bool has_ended(const void *userdata)
{
    return ((const struct stand *)userdata)->has_ended;
}

bool has_detections(const void *userdata)
{
    const struct stand *stand = userdata;

    return stand->detections >= stand->wanted;
}

void check_rest_of_clip(struct stand *stand)
{
    stand->is_rewound = false;
    stand->has_ended = false;
    gallery_run_until(&stand->gallery, has_ended, stand);
    stand->wanted = stand->frames * COLOURS;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->detections, stand->wanted);
}
