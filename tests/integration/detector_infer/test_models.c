#include "cmocka_all.h"

#include "base/error.h"
#include "detector/program/models.h"
#include "integration/camera/viewer.h"
#include "integration/detector_infer/made_pipeline.h"
#include "integration/detector_infer/stand.h"

#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 256, ANSWER_MS = 5, RETRY_MS = 20 };

static const char first_url[] = "https://models/archive?signature=1";

/* ---- A source whose archives are there already ---------------------------------------------- */

struct asked {
    struct stand *stand;
    void *asker;
    int64_t model_id;
    char url[64];
    bool is_answered;
    uv_timer_t timer;
};

struct stand {
    struct gallery gallery;
    struct models *models;
    struct camera *camera;
    struct asked asked[ASKED_MAX];
    size_t asked_count, held;
    const char *identifiers[2];
    unsigned frames, detections, of_model[4], wanted;
    const char *url;
    bool has_ended;
    bool is_mended;  /* 3 is right, too */
    bool is_offline; /* all are those from before */
    bool is_rewound; /* the clip begins anew when it ends */
};

/* 1 and 2 are right; 3 is an archive that is none, 4 a model that cannot be run. */
static void on_answer(uv_timer_t *timer)
{
    struct asked *asked = timer->data;
    struct baton_error error = {0};
    struct pipeline pipeline = {0};

    asked->is_answered = true;
    if (asked->model_id == 3 && !asked->stand->is_mended) {
        (void)error_set(&error, BATON_EPROTO, "pipeline.json: is missing");
        models_arrived(asked->asker, NULL, NULL, &error);
        return;
    }
    pipeline = made_pipeline(asked->model_id == 4 ? "colours.onnx" : "rectangles.onnx");
    pipeline.track.is_on = false;
    /* Folders of the same content that are told apart. */
    if (asked->stand->is_offline) {
        (void)error_set(&error, BATON_EUNAVAILABLE, "the server is silent");
    }
    models_arrived(asked->asker, asked->model_id == 1 ? MODELS : MODELS "/.", &pipeline,
                   error.code ? &error : NULL);
    assert_null(pipeline.models);
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
    *asked = (struct asked){.stand = stand, .asker = asker, .model_id = model_id};
    (void)snprintf(asked->url, sizeof(asked->url), "%s", url);
    assert_int_equal(uv_timer_init(&stand->gallery.loop, &asked->timer), 0);
    asked->timer.data = asked;
    assert_int_equal(uv_timer_start(&asked->timer, on_answer, ANSWER_MS, 0), 0);
    stand->held++;
    *ret = asked;
    return 0;
}

static void drop(void *userdata, void *ticket)
{
    struct asked *asked = ticket;

    ((struct stand *)userdata)->held--;
    uv_close((uv_handle_t *)&asked->timer, NULL);
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
    for (size_t i = 0; i < 2 && stand->identifiers[i]; i++) {
        models_frame(stand->models, stand->identifiers[i], frame, STAGE_NONE);
    }
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

static struct stand *stand_new_with(int retry_min_ms)
{
    struct stand *stand = calloc(1, sizeof(*stand));
    struct models_config config = {.source = {want, drop, stand},
                                   .retry_min_ms = retry_min_ms,
                                   .detected = on_detected,
                                   .userdata = stand};

    assert_non_null(stand);
    stand->url = first_url;
    gallery_init(&stand->gallery);
    config.loop = &stand->gallery.loop;
    config.logger = stand->gallery.logger;
    stand->models = models_new(&config);
    assert_non_null(stand->models);
    return stand;
}

static struct stand *stand_new(void)
{
    return stand_new_with(0);
}

static void stand_free(struct stand *stand)
{
    camera_close(stand->camera);
    models_close(stand->models);
    gallery_fini(&stand->gallery); /* runs the loop until all is closed */
    models_free(stand->models);
    assert_int_equal(stand->held, 0);
    free(stand);
}

static void subscribe(struct stand *stand, enum worker_event_type type, unsigned changes,
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

static json_int_t described(const struct stand *stand, const char *identifier, const char *key)
{
    json_t *camera = json_object();
    json_int_t value;

    models_describe(stand->models, identifier, camera);
    value = json_integer_value(json_object_get(json_object_get(camera, "model_state"), key));
    json_decref(camera);
    return value;
}

static char *described_text(const struct stand *stand, const char *identifier, const char *key)
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

static bool all_run(const void *userdata)
{
    const struct stand *stand = userdata;

    return is_state(stand, "a;1", "running") &&
           (!stand->identifiers[1] || is_state(stand, "a;2", "running"));
}

static bool has_failed(const void *userdata)
{
    return is_state(userdata, "a;1", "failed");
}

static bool was_refused(const void *userdata)
{
    char *error = described_text(userdata, "a;1", "last_error");
    bool is_said = error[0] != '\0';

    free(error);
    return is_said;
}

static bool has_ended(const void *userdata)
{
    return ((const struct stand *)userdata)->has_ended;
}

static bool has_detections(const void *userdata)
{
    const struct stand *stand = userdata;

    return stand->detections >= stand->wanted;
}

static bool is_second_running(const void *userdata)
{
    return described(userdata, "a;1", "running_id") == 2 &&
           ((const struct stand *)userdata)->of_model[2] >= 30;
}

static bool is_third_running(const void *userdata)
{
    return described(userdata, "a;1", "running_id") == 3;
}

/* ---- The tests ------------------------------------------------------------------------------ */

static void subscriptions_of_one_archive_share_a_child(void **state)
{
    struct stand *stand = stand_new();
    char *log;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_int_equal(described(stand, "a;1", "pid"), described(stand, "a;2", "pid"));
    assert_int_equal(described(stand, "a;1", "subscriptions"), 2);
    show_clip(stand);
    gallery_run_until(&stand->gallery, has_ended, stand);
    stand->wanted = stand->frames * COLOURS * 2;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->detections, stand->wanted);
    log = gallery_log(&stand->gallery);
    assert_non_null(strstr(log, "model-open"));
    assert_null(strstr(strstr(log, "model-open") + 1, "model-open"));
    free(log);
    stand_free(stand);
}

static void models_are_exchanged_without_losing_a_frame(void **state)
{
    struct stand *stand = stand_new();

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    stand->is_rewound = true;
    show_clip(stand);
    stand->wanted = 10;
    gallery_run_until(&stand->gallery, has_detections, stand);
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, "a;1", 2);
    gallery_run_until(&stand->gallery, is_second_running, stand);
    stand->is_rewound = false;
    stand->has_ended = false;
    gallery_run_until(&stand->gallery, has_ended, stand);
    stand->wanted = stand->frames * COLOURS;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->detections, stand->wanted);
    assert_true(stand->of_model[1] >= 10);
    assert_int_equal(stand->held, 1);
    stand_free(stand);
}

static void what_is_bad_is_told_and_the_old_one_goes_on(void **state)
{
    static const int64_t bad[] = {3, 4, 5};
    static const char *const said[] = {"pipeline.json", "colours.onnx", "not allowed"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stand *stand = stand_new();
        char *error;

        subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
        gallery_run_until(&stand->gallery, all_run, stand);
        subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL, "a;1", bad[i]);
        gallery_run_until(&stand->gallery, was_refused, stand);
        error = described_text(stand, "a;1", "last_error");
        assert_non_null(strstr(error, said[i]));
        assert_non_null(strstr(error, "; model 1 ("));
        assert_true((strstr(error, "onnx.checker") != NULL) == (bad[i] == 4));
        free(error);
        assert_int_equal(described(stand, "a;1", "running_id"), 1);
        show_clip(stand);
        stand->wanted = 30;
        gallery_run_until(&stand->gallery, has_detections, stand);
        assert_int_equal(stand->of_model[1], stand->detections);
        stand_free(stand);
    }
}

/* The same list, but for what is told. */
static void list_again(struct stand *stand, const char *url, int64_t model_id)
{
    stand->url = url;
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_MODEL_URL, "a;1", model_id);
}

static void what_was_refused_is_asked_for_again(void **state)
{
    struct stand *stand = stand_new_with(RETRY_MS);

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 3);
    gallery_run_until(&stand->gallery, has_failed, stand);
    assert_int_equal(stand->held, 0);
    stand->is_mended = true;
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_true(stand->asked_count >= 2);
    assert_string_equal(stand->asked[1].url, first_url);
    stand_free(stand);
}

static void until_the_wanted_model_runs_each_fresh_url_is_asked(void **state)
{
    struct stand *stand = stand_new();
    size_t count;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    list_again(stand, "https://models/archive?signature=2", 1);
    assert_int_equal(stand->asked_count, 1); /* what runs is not asked for again */
    list_again(stand, "https://models/other?signature=2", 3);
    gallery_run_until(&stand->gallery, was_refused, stand);
    stand->is_mended = true;
    subscribe(stand, WORKER_SUBSCRIPTION_UPDATED, CHANGE_CROP, "a;1", 3);
    assert_int_equal(stand->asked_count, 2);
    list_again(stand, "https://models/other?signature=3", 3);
    assert_int_equal(stand->asked_count, 3);
    gallery_run_until(&stand->gallery, is_third_running, stand);
    /* The same number at another place. */
    list_again(stand, "https://models/moved?signature=4", 3);
    count = stand->asked_count;
    assert_string_equal(stand->asked[count - 1].url, "https://models/moved?signature=4");
    stand_free(stand);
}

static void a_fresh_url_takes_the_place_of_the_one_under_way(void **state)
{
    struct stand *stand = stand_new();

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    list_again(stand, "https://models/archive?signature=2", 1);
    assert_int_equal(stand->asked_count, 2);
    assert_int_equal(stand->held, 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    assert_true(!stand->asked[0].is_answered && stand->asked[1].is_answered);
    stand_free(stand);
}

static bool is_newest(const void *userdata)
{
    return !was_refused(userdata) && all_run(userdata);
}

static void what_is_from_before_runs_and_the_newest_is_asked_for_again(void **state)
{
    struct stand *stand = stand_new_with(RETRY_MS);
    char *log;

    (void)state;
    stand->is_offline = true;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    gallery_run_until(&stand->gallery, all_run, stand);
    log = described_text(stand, "a;1", "last_error");
    assert_non_null(strstr(log, "the server is silent; model 1 ("));
    free(log);
    stand->is_offline = false;
    gallery_run_until(&stand->gallery, is_newest, stand);
    assert_true(stand->asked_count >= 2);
    log = gallery_log(&stand->gallery); /* nothing was exchanged, as nothing is another */
    assert_non_null(strstr(log, "model-running"));
    assert_null(strstr(strstr(log, "model-running") + 1, "model-running"));
    free(log);
    stand_free(stand);
}

static void what_is_removed_is_gone(void **state)
{
    struct stand *stand = stand_new();
    unsigned before;

    (void)state;
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;2", 2);
    gallery_run_until(&stand->gallery, all_run, stand);
    show_clip(stand);
    stand->wanted = 10;
    gallery_run_until(&stand->gallery, has_detections, stand);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    before = stand->of_model[1];
    stand->wanted = stand->detections + 30;
    gallery_run_until(&stand->gallery, has_detections, stand);
    assert_int_equal(stand->of_model[1], before);
    assert_int_equal(stand->held, 1);
    /* And at once after it was asked for. */
    subscribe(stand, WORKER_SUBSCRIPTION_ADDED, 0, "a;1", 1);
    subscribe(stand, WORKER_SUBSCRIPTION_REMOVED, 0, "a;1", 1);
    assert_int_equal(stand->held, 1);
    stand_free(stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscriptions_of_one_archive_share_a_child),
        cmocka_unit_test(models_are_exchanged_without_losing_a_frame),
        cmocka_unit_test(what_is_bad_is_told_and_the_old_one_goes_on),
        cmocka_unit_test(what_was_refused_is_asked_for_again),
        cmocka_unit_test(until_the_wanted_model_runs_each_fresh_url_is_asked),
        cmocka_unit_test(a_fresh_url_takes_the_place_of_the_one_under_way),
        cmocka_unit_test(what_is_from_before_runs_and_the_newest_is_asked_for_again),
        cmocka_unit_test(what_is_removed_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
