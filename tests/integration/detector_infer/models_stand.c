#include "cmocka_all.h"

#include "integration/detector_infer/models_stand.h"

#include "base/error.h"
#include "integration/camera/viewer.h"
#include "integration/detector_infer/made_pipeline.h"
#include "integration/detector_infer/stand.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 5 };

/* ---- A source whose archives are there already ---------------------------------------------- */

/* 1 and 2 are right; 3 is an archive that is none, 4 a model that cannot be run; the pipeline of 6
 * was given to another. */
static void on_answer(uv_timer_t *timer)
{
    struct asked *asked = timer->data;
    struct baton_error error = {0};
    struct pipeline pipeline = {0};

    asked->is_answered = true;
    if (asked->is_look) {
        models_unchanged(asked->asker);
        return;
    }
    if (asked->model_id == 3 && !asked->stand->is_mended) {
        (void)error_set(&error, BATON_EPROTO, "pipeline.json: is missing");
        models_arrived(asked->asker, NULL, NULL, &error);
        return;
    }
    if (asked->model_id == 6 && !asked->stand->is_mended) {
        models_arrived(asked->asker, MODELS "/.", &pipeline, NULL);
        return;
    }
    pipeline = made_pipeline(asked->model_id == 4 ? "colours.onnx" : "rectangles.onnx");
    pipeline.track.is_on = asked->stand->is_tracked;
    /* Folders of the same content that are told apart. */
    if (asked->stand->is_offline) {
        (void)error_set(&error, BATON_EUNAVAILABLE, "the server is silent");
    }
    models_arrived(asked->asker, asked->model_id == 1 ? MODELS : MODELS "/.", &pipeline,
                   error.code ? &error : NULL);
    assert_null(pipeline.models);
}

static void begin(struct stand *stand, struct asked *asked, const char *url, void **ret)
{
    asked->stand = stand;
    (void)snprintf(asked->url, sizeof(asked->url), "%s", url);
    assert_int_equal(uv_timer_init(&stand->gallery.loop, &asked->timer), 0);
    asked->timer.data = asked;
    assert_int_equal(uv_timer_start(&asked->timer, on_answer, ANSWER_MS, 0), 0);
    stand->held++;
    *ret = asked;
}

static int want(void *userdata, void **ret, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr)
{
    struct stand *stand = userdata;
    struct asked *asked;

    if (model_id == 5) {
        return error_set(reterr, BATON_EAUTH, "that host is not allowed");
    }
    asked = &stand->asked[stand->asked_count++];
    assert_true(stand->asked_count <= ASKED_MAX);
    *asked = (struct asked){.asker = asker, .model_id = model_id};
    begin(stand, asked, url, ret);
    return 0;
}

static int look(void *userdata, void **ret, const char *url, void *held, void *asker,
                struct baton_error *reterr)
{
    struct stand *stand = userdata;
    struct asked *asked;

    assert_true(((struct asked *)held)->is_answered);
    (void)reterr;
    stand->look_count++;
    asked = calloc(1, sizeof(*asked));
    assert_non_null(asked);
    asked->asker = asker;
    asked->is_look = true;
    begin(stand, asked, url, ret);
    return 0;
}

static void free_look(uv_handle_t *timer)
{
    free(timer->data);
}

static void drop(void *userdata, void *ticket)
{
    struct asked *asked = ticket;

    ((struct stand *)userdata)->held--;
    uv_close((uv_handle_t *)&asked->timer, asked->is_look ? free_look : NULL);
}

/* ---- Subscriptions, a camera, and what comes of them ---------------------------------------- */

static void on_detected(void *userdata, struct detection *detection)
{
    struct stand *stand = userdata;

    assert_true(detection->model_id == 1 || detection->model_id == 2);
    assert_string_equal(detection->model_name, "plates");
    assert_true(detection->at_unix_ms > 0);
    assert_non_null(json_object_get(detection->attributes, "colour"));
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
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_CAMERA, "a;1", 1);
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

struct stand *stand_new_with(int retry_min_ms)
{
    struct stand *stand = calloc(1, sizeof(*stand));
    struct models_config config = {
        .source = {.want = want, .look = look, .drop = drop, .userdata = stand},
        .retry_min_ms = retry_min_ms,
        .uses_stream_time = true, /* ours is the machine's load */
        .detected = on_detected,
        .userdata = stand};

    assert_non_null(stand);
    stand->url = STAND_FIRST_URL;
    gallery_init(&stand->gallery);
    config.loop = &stand->gallery.loop;
    config.logger = stand->gallery.logger;
    stand->models = models_new(&config);
    assert_non_null(stand->models);
    return stand;
}

struct stand *stand_new(void)
{
    return stand_new_with(0);
}

void stand_free(struct stand *stand)
{
    camera_close(stand->camera);
    models_close(stand->models);
    gallery_fini(&stand->gallery); /* runs the loop until all is closed */
    models_free(stand->models);
    assert_int_equal(stand->held, 0);
    free(stand);
}

void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
               const char *identifier, int64_t model_id)
{
    const struct subscription subscription = {.identifier = (char *)(uintptr_t)identifier,
                                              .model_url = (char *)(uintptr_t)stand->url,
                                              .model_name = (char *)"plates",
                                              .model_id = model_id};
    const struct worker_event event = {
        .type = type, .identifier = identifier, .subscription = &subscription, .changes = changes};

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

bool has_failed(const void *userdata)
{
    return is_state(userdata, "a;1", "failed");
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

/* The same list, but for what is told. */
void list_again(struct stand *stand, const char *url, int64_t model_id)
{
    stand->url = url;
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL_URL, "a;1", model_id);
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
