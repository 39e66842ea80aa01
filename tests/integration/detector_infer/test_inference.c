#include "cmocka_all.h"

#include "detector/infer/inference.h"
#include "integration/camera/viewer.h"
#include "integration/detector_infer/stand.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILL_TRIES = 100 };

/* ---- A camera before it --------------------------------------------------------------------- */

struct show {
    struct gallery gallery;
    struct inference *inference;
    struct inference_feed *feed;
    struct camera *camera;
    int archive;
    bool is_opened;
    struct baton_error error; /* the last one */
    unsigned results, boxes, dropped;
    uint64_t number;
};

static void on_seen(void *userdata, const struct inference_result *result)
{
    struct show *show = userdata;

    assert_true(result->frame->number > show->number);
    show->number = result->frame->number;
    show->results++;
    show->boxes += (unsigned)result->count;
}

static void on_opened(void *userdata, const struct baton_error *error)
{
    struct show *show = userdata;

    show->is_opened = true;
    if (error) {
        show->error = *error;
    }
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    struct show *show = userdata;

    show->error = *error;
}

static void on_frame(void *userdata, const struct frame *frame)
{
    struct show *show = userdata;
    const int rect[4] = {0, 0, frame->width, frame->height};

    show->dropped += inference_feed_frame(show->feed, frame, rect, STAGE_NONE);
}

/* An archive of a detector in that file. */
static int archive_of(const char *file)
{
    char json[64];
    const struct change changes[] = {{"stages.2", NULL},
                                     {"stages.1", NULL},
                                     {"models.stripes", NULL},
                                     {"models.colours", NULL},
                                     {"models.rectangles.file", json},
                                     {NULL, NULL}};
    const struct zip_part model = stand_model(file);
    char *text;
    int fd;

    (void)snprintf(json, sizeof(json), "\"%s\"", file);
    text = stand_text(changes);
    fd = stand_archive(text, &model, 1);
    free(text);
    return fd;
}

/* Its models are being opened. */
static struct show *show_begin(const char *file, int run_ms)
{
    struct show *show = calloc(1, sizeof(*show));
    struct inference_config config = {.engine = {.run_ms = run_ms},
                                      .hooks = {on_opened, on_failed, show}};
    struct baton_error error = {0};

    assert_non_null(show);
    gallery_init(&show->gallery);
    show->archive = archive_of(file);
    config.archive_fd = show->archive;
    config.loop = &show->gallery.loop;
    if (inference_open(&show->inference, &config, &error) != 0) {
        fail_msg("%s", error.message);
    }
    show->feed = inference_feed_new(show->inference, on_seen, show);
    assert_non_null(show->feed);
    return show;
}

/* A show whose models have been opened, or refused, by now. */
static struct show *show_of(const char *file, int run_ms)
{
    struct show *show = show_begin(file, run_ms);

    AWAIT_IN(&show->gallery, show->is_opened);
    return show;
}

static void open_camera(struct show *show)
{
    const struct camera_callbacks callbacks = {.frame = on_frame, .userdata = show};
    const struct camera_options options = {.is_paced = true};
    struct baton_error error = {0};

    if (camera_open(&show->camera, show->gallery.pool, clip("rects.mp4"), &options, &callbacks,
                    &error) != 0) {
        fail_msg("%s", error.message);
    }
}

static struct show *show_new(void)
{
    struct show *show = show_of("rectangles.onnx", 0);

    if (show->error.code) {
        fail_msg("%s", show->error.message);
    }
    open_camera(show);
    return show;
}

static int child_of(const struct show *show)
{
    return inference_stats(show->inference)->pid;
}

static void show_free(struct show *show)
{
    int pid = child_of(show);

    camera_close(show->camera);
    inference_feed_free(show->feed);
    inference_close(show->inference);
    AWAIT_IN(&show->gallery, pid <= 0 || kill(pid, 0) != 0);
    gallery_fini(&show->gallery);
    (void)close(show->archive);
    free(show);
}

static void run_results(struct show *show, unsigned more)
{
    unsigned wanted = show->results + more;

    AWAIT_IN(&show->gallery, show->results >= wanted);
}

/* ---- The tests ------------------------------------------------------------------------------ */

/* What came is seen then, and the next camera's frames are numbered anew. */
static void end_camera(struct show *show)
{
    camera_close(show->camera);
    show->camera = NULL;
    AWAIT_IN(&show->gallery, inference_feed_is_idle(show->feed));
    show->number = 0;
}

static void a_slow_model_drops_frames_and_goes_on_with_the_newest(void **state)
{
    struct show *show = show_new();

    run_results(show, 1);
    end_camera(show);
    assert_int_equal(kill(child_of(show), SIGSTOP), 0);
    open_camera(show); /* anew: the first result may come when the clip is nearly over */
    AWAIT_IN(&show->gallery, show->dropped >= 8);
    assert_int_equal(kill(child_of(show), SIGCONT), 0);
    run_results(show, 2); /* the one that was under way, and the newest */
    assert_true(show->number >= 9);
    show_free(show);
}

/* The clip is played once more: it has three seconds, which a model's process may need to begin. */
static void a_model_that_hangs_is_ended_and_opened_again(void **state)
{
    struct show *show = show_of("rectangles.onnx", 500);
    int pid = child_of(show);

    open_camera(show);
    run_results(show, 1);
    end_camera(show);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    open_camera(show);
    AWAIT_IN(&show->gallery, child_of(show) != pid && child_of(show) > 0);
    end_camera(show);
    open_camera(show);
    run_results(show, 2);
    assert_non_null(strstr(show->error.message, "the model's process"));
    assert_non_null(strstr(show->error.message, "gave no answer for 500 ms and was ended"));
    show_free(show);
}

/* Shows before the first frame, while an old one still runs. */
static void a_model_that_never_ends_is_told_once(void **state)
{
    struct show *show = show_of("endless.onnx", 200);

    /* OpenCV cannot read it. */
    assert_true(show->error.code == BATON_ECLOSED || show->error.code == BATON_EINVAL);
    assert_non_null(strstr(show->error.message, "model 'rectangles' (endless.onnx)"));
    show_free(show);
}

static void a_model_that_finds_nothing_runs(void **state)
{
    struct show *show = show_of("nothing.onnx", 0);

    if (show->error.code) { /* OpenCV has no empty output */
        assert_non_null(strstr(show->error.message, "opencv"));
    } else {
        open_camera(show);
        run_results(show, 3);
        assert_int_equal(show->boxes, 0);
        assert_int_equal(show->error.code, 0);
    }
    show_free(show);
}

/* Returns the code of an opening whose process was killed, unless it had answered before. */
static int killed_while_opening(void)
{
    struct show *show = show_begin("endless.onnx", 0);
    pid_t pid = 0;
    int code;

    while (pid == 0 && !show->is_opened) {
        pid = process_child(getpid());
        (void)uv_run(&show->gallery.loop, UV_RUN_NOWAIT);
    }
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
    }
    AWAIT_IN(&show->gallery, show->is_opened);
    code = show->error.code;
    show_free(show);
    return code;
}

/* As a system without memory kills it. */
static void a_process_that_is_killed_says_nothing_of_its_model(void **state)
{
    int code = BATON_EINVAL;

    for (int tries = 0; tries < KILL_TRIES && code == BATON_EINVAL; tries++) {
        code = killed_while_opening(); /* OpenCV may have refused it by then */
    }
    assert_int_equal(code, BATON_EUNAVAILABLE);
}

static void closing_does_not_wait_for_a_model_that_hangs(void **state)
{
    struct show *show = show_of("rectangles.onnx", 2 * PATIENCE_MS);

    open_camera(show);
    run_results(show, 1);
    assert_int_equal(kill(child_of(show), SIGSTOP), 0);
    AWAIT_IN(&show->gallery, show->dropped >= 1); /* so one is under way */
    show_free(show); /* within the gallery's patience, which is less than a run may take */
}

static void closing_at_once_leaves_nothing_behind(void **state)
{
    struct show *show = show_begin("rectangles.onnx", 0);

    open_camera(show);
    show_free(show);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_model_drops_frames_and_goes_on_with_the_newest),
        cmocka_unit_test(a_model_that_hangs_is_ended_and_opened_again),
        cmocka_unit_test(a_model_that_never_ends_is_told_once),
        cmocka_unit_test(a_model_that_finds_nothing_runs),
        cmocka_unit_test(a_process_that_is_killed_says_nothing_of_its_model),
        cmocka_unit_test(closing_does_not_wait_for_a_model_that_hangs),
        cmocka_unit_test(closing_at_once_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
