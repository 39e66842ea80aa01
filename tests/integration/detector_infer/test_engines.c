#include "cmocka_all.h"

#include "detector/infer/decoder.h"
#include "integration/detector_infer/stand.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const enum engine_kind kinds[] = {ENGINE_ONNXRUNTIME, ENGINE_OPENCV};
static const struct shape picture = {4, {1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH}};
static const struct shape crops = {4, {4, 3, 32, 32}};

static int open_model(struct session **ret, struct engine *engine, const char *name,
                      const struct shape *largest, struct baton_error *error)
{
    size_t bytes;
    void *model = stand_model(name, &bytes);
    int code = session_open(ret, engine, model, bytes, largest, error);

    free(model);
    return code;
}

static struct session *opened(struct engine *engine, const char *name, const struct shape *largest)
{
    struct session *session = NULL;
    struct baton_error error = {0};

    if (open_model(&session, engine, name, largest, &error) != 0) {
        fail_msg("%s: %s: %s", engine->name, name, error.message);
    }
    return session;
}

static void with_each(void (*test)(struct engine *engine))
{
    int tested = 0;

    for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct engine *engine = i % 2 ? stand_remote(kinds[i / 2]) : stand_engine(kinds[i / 2]);
        if (engine) {
            test(engine);
            engine_free(engine);
            tested++;
        }
    }
    if (tested == 0) {
        skip();
    }
}

static void detect_as(enum pipeline_decoder decoder, struct session *session,
                      const struct drawn *drawn, int count)
{
    static struct answer answer;
    static char *names[] = {(char *)"red", (char *)"green", (char *)"blue"};
    const struct pipeline_model model = {
        .decoder = decoder,
        .classes = names,
        .class_count = decoder == DECODER_RETINAFACE ? 1 : COLOURS,
        .input = {.width = RECTANGLES_WIDTH, .height = RECTANGLES_HEIGHT},
        .nms = decoder == DECODER_YOLOV10 ? 1 : 0.5F};
    struct tensor all[SESSION_OUTPUTS_MAX];
    struct baton_error error = {0};
    struct outputs outputs = {.model = &model, .all = all, .pictures = 1, .score_min = 0.5F};
    struct fit fit;

    stand_draw(session->values, RECTANGLES_WIDTH, RECTANGLES_HEIGHT, drawn, count);
    assert_int_equal(fit_init(&fit, (int[]){0, 0, RECTANGLES_WIDTH, RECTANGLES_HEIGHT},
                              RECTANGLES_WIDTH, RECTANGLES_HEIGHT, false, NULL),
                     0);
    outputs.fit = &fit;
    outputs.count = session_run(session, 1, all, &error);
    if (outputs.count < 1 || answer_read(&answer, &outputs, &error)) {
        fail_msg("%s", error.message);
    }
    stand_assert_boxes(answer.boxes, answer.box_count, drawn, count, 0.01F);
}

static void detect(struct session *session, const struct drawn *drawn, int count)
{
    detect_as(DECODER_YOLOV8, session, drawn, count);
}

static void layouts_with(struct engine *engine)
{
    static const struct {
        const char *file;
        enum pipeline_decoder decoder;
    } cases[] = {{"yolov5.onnx", DECODER_YOLOV5},
                 {"yolov10.onnx", DECODER_YOLOV10},
                 {"ssd.onnx", DECODER_SSD},
                 {"retinaface.onnx", DECODER_RETINAFACE}};
    const struct drawn drawn[] = {{RED, 41, 43, 63, 30}, {GREEN, 0, 0, 33, 21}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct session *session = opened(engine, cases[i].file, &picture);
        detect_as(cases[i].decoder, session, drawn, cases[i].decoder == DECODER_RETINAFACE ? 1 : 2);
        session_close(session);
    }
}

static void each_layout_of_outputs_gives_the_same_boxes(void **state)
{
    (void)state;
    with_each(layouts_with);
}

static void rectangles_with(struct engine *engine)
{
    struct session *session = opened(engine, "rectangles.onnx", &picture);

    detect(session, NULL, 0);
    detect(session, (struct drawn[]){{RED, 40, 40, 64, 32}}, 1);
    /* Not on the grid of four pixels, at the edges, side by side, one around a hole of another. */
    detect(session,
           (struct drawn[]){{RED, 41, 43, 63, 30},
                            {GREEN, 0, 0, 33, 21},
                            {BLUE, 287, 150, 33, 42},
                            {RED, 150, 43, 17, 100},
                            {GREEN, 170, 43, 17, 100}},
           5);
    detect(session, (struct drawn[]){{BLUE, 10, 10, 200, 16}, {BLUE, 10, 40, 16, 120}}, 2);
    session_close(session);
}

static void rectangles_are_found_where_they_are_drawn(void **state)
{
    (void)state;
    with_each(rectangles_with);
}

static int best(const struct tensor *output, int64_t at)
{
    float score = 0;
    int label = best_class(output->values + at * COLOURS, 0, COLOURS, 1, &score);

    assert_true(score > 0.9F);
    return label;
}

static void colours_with(struct engine *engine)
{
    static const int wanted[] = {BLUE, RED, GREEN, BLUE};
    struct session *session = opened(engine, "colours.onnx", &crops);
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    struct baton_error error = {0};

    assert_true(session->batch_max >= 1);
    for (int64_t i = 0; i < session->batch_max; i++) {
        stand_draw(session->values + i * 3 * 32 * 32, 32, 32,
                   &(struct drawn){wanted[i], 2, 2, 28, 28}, 1);
    }
    assert_int_equal(session_run(session, session->batch_max, outputs, &error), 1);
    assert_int_equal(outputs[0].shape.sides[0], session->batch_max);
    for (int64_t i = 0; i < session->batch_max; i++) {
        assert_int_equal(best(&outputs[0], i), wanted[i]);
    }
    assert_int_equal(session_run(session, session->batch_max + 1, outputs, &error), BATON_EINVAL);
    session_close(session);
}

static void crops_are_told_apart_by_colour(void **state)
{
    (void)state;
    with_each(colours_with);
}

static void nonsense_with(struct engine *engine)
{
    struct session *session = NULL;
    struct baton_error error = {0};

    assert_int_equal(session_open(&session, engine, "no model", 8, &picture, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, engine->name));
    assert_int_equal(session_open(&session, engine, "", 0, &picture, &error), BATON_EINVAL);
    assert_int_equal(
        open_model(&session, engine, "rectangles.onnx", &(struct shape){4, {1, 3, 8, 8}}, &error),
        BATON_EINVAL);
    assert_null(session);
}

static void what_is_no_such_model_is_an_error_that_names_the_engine(void **state)
{
    (void)state;
    with_each(nonsense_with);
}

static void a_model_that_only_one_engine_can_run_says_so(void **state)
{
    const struct shape shape = {4, {1, 3, 32, 32}};
    struct engine *opencv = stand_engine(ENGINE_OPENCV);
    struct engine *onnx = stand_engine(ENGINE_ONNXRUNTIME);
    struct session *session = NULL;
    struct baton_error error = {0};

    (void)state;
    if (!opencv && !onnx) {
        skip();
    }
    if (opencv) {
        assert_int_equal(open_model(&session, opencv, "product.onnx", &shape, &error),
                         BATON_EINVAL);
        assert_non_null(strstr(error.message, "ONNX Runtime may"));
        assert_null(session);
    }
    if (onnx) {
        session_close(opened(onnx, "product.onnx", &shape));
    }
    engine_free(onnx);
    engine_free(opencv);
}

static void the_input_must_be_the_one_that_is_declared(void **state)
{
    struct engine *engine = stand_engine(ENGINE_ONNXRUNTIME);
    struct session *session = NULL;
    struct baton_error error = {0};

    (void)state;
    if (!engine) {
        skip();
    }
    assert_int_equal(open_model(&session, engine, "rectangles.onnx",
                                &(struct shape){4, {1, 3, 640, 640}}, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "[1, 3, 192, 320]"));
    assert_non_null(strstr(error.message, "[1, 3, 640, 640]"));
    engine_free(engine);
}

static void the_faster_engine_is_preferred(void **state)
{
    struct engine *onnx = stand_engine(ENGINE_ONNXRUNTIME);
    struct engine *any = stand_engine(ENGINE_ANY);

    (void)state;
    assert_non_null(any);
    assert_int_equal(any->kind, onnx ? ENGINE_ONNXRUNTIME : ENGINE_OPENCV);
    engine_free(any);
    engine_free(onnx);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2; /* "." and ".." */

    assert_non_null(tasks);
    while (readdir(tasks)) {
        count++;
    }
    (void)closedir(tasks);
    return count;
}

/* ONNX Runtime's telemetry would be one. */
static void nothing_but_the_session_runs(void **state)
{
    int before = count_threads();
    struct engine *engine = stand_engine(ENGINE_ONNXRUNTIME);
    struct session *session;

    (void)state;
    if (!engine) {
        skip();
    }
    session = opened(engine, "rectangles.onnx", &picture);
    assert_int_equal(count_threads(), before);
    session_close(session);
    engine_free(engine);
}

static void a_provider_that_is_not_there_leaves_the_work_to_the_cpu(void **state)
{
    static const char *const names[] = {"cpu", "cuda", "tensorrt"};
    struct engine *engine = stand_engine(ENGINE_ONNXRUNTIME);

    (void)state;
    if (!engine) {
        skip();
    }
    assert_null(strchr(engine->name, ','));
    engine_free(engine);
    for (int i = 0; i < 3; i++) {
        struct engine_options options = {.provider =
                                             (enum engine_provider)engine_provider_parse(names[i])};
        struct session *session;
        assert_int_equal(engine_load(&engine, ENGINE_ONNXRUNTIME, &options, NULL), 0);
        print_message("%s\n", engine->name);
        assert_true(i == 0 || strstr(engine->name, names[i]) != NULL);
        assert_true(engine->uses_hardware == (i > 0 && !strstr(engine->name, "there is no")));
        session = opened(engine, "rectangles.onnx", &picture);
        detect(session, (struct drawn[]){{RED, 40, 40, 64, 32}}, 1);
        session_close(session);
        engine_free(engine);
    }
    assert_int_equal(engine_provider_parse("abacus"), -1);
}

static void an_engine_that_is_not_there_says_how_to_get_it(void **state)
{
    const struct engine_options nowhere = {.library = "/nonexistent/libonnxruntime.so.1"};
    const struct engine_options wrong = {.threads = ENGINE_THREADS_MAX + 1};
    struct engine *engine = NULL;
    struct baton_error error = {0};

    (void)state;
    assert_int_equal(engine_load(&engine, ENGINE_ONNXRUNTIME, &nowhere, &error), BATON_ENOENT);
    assert_non_null(strstr(error.message, "make deps-onnxruntime"));
    assert_int_equal(engine_load(&engine, ENGINE_ANY, &wrong, &error), BATON_EINVAL);
    assert_null(engine);
    assert_int_equal(engine_kind_parse("opencv"), ENGINE_OPENCV);
    assert_int_equal(engine_kind_parse("tensorrt"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_the_session_runs), /* before any other library is loaded */
        cmocka_unit_test(rectangles_are_found_where_they_are_drawn),
        cmocka_unit_test(each_layout_of_outputs_gives_the_same_boxes),
        cmocka_unit_test(crops_are_told_apart_by_colour),
        cmocka_unit_test(what_is_no_such_model_is_an_error_that_names_the_engine),
        cmocka_unit_test(a_model_that_only_one_engine_can_run_says_so),
        cmocka_unit_test(the_input_must_be_the_one_that_is_declared),
        cmocka_unit_test(the_faster_engine_is_preferred),
        cmocka_unit_test(a_provider_that_is_not_there_leaves_the_work_to_the_cpu),
        cmocka_unit_test(an_engine_that_is_not_there_says_how_to_get_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
