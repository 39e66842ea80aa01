/* Models in a child: what they say of crops, with each library, and what a child that is lost,
 * hangs or is fed nonsense costs. */
#include "cmocka_all.h"

#include "base/value.h"
#include "integration/detector_infer/stand.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECTANGLES_WIDTH = 320, RECTANGLES_HEIGHT = 192 }; /* of the model's input */
enum { CROP_SIDE = 32, CROP_NUMBERS = 3 * CROP_SIDE * CROP_SIDE };

static const enum engine_kind kinds[] = {ENGINE_ONNXRUNTIME, ENGINE_OPENCV};
static const struct shape picture = {4, {1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH}};

/* The models of each engine here. */
enum { CROPS, SQUARE, VAST, TORN, FUTURE, MODELS };

/* A model of these bytes. */
static int model_of(const void *bytes, size_t count)
{
    int fd = memfd_create("model", MFD_CLOEXEC);

    assert_int_equal(write(fd, bytes, count), count);
    return fd;
}

/* Of a version of the format that is not made yet. */
static int model_of_the_future(void)
{
    unsigned char bytes[4096];
    int fd = stand_model("colours.onnx");
    ssize_t count = read(fd, bytes, sizeof(bytes));

    (void)close(fd);
    assert_in_range(count, 2, sizeof(bytes) - 1);
    assert_int_equal(bytes[0], 1 << 3); /* the first field, ir_version */
    bytes[1] = 99;
    return model_of(bytes, (size_t)count);
}

static int try_to_start(struct engine **ret, const struct engine_options *options,
                        struct baton_error *reterr)
{
    const struct engine_model models[MODELS] = {
        [CROPS] = {stand_model("colours.onnx"), {4, {4, 3, CROP_SIDE, CROP_SIDE}}},
        [SQUARE] = {stand_model("rectangles.onnx"), {4, {1, 3, 640, 640}}},
        [VAST] = {stand_model("vast.onnx"), picture},
        [TORN] = {model_of("no model", 8), picture},
        [FUTURE] = {model_of_the_future(), picture}};
    int code = engine_start(ret, options, models, MODELS, reterr);

    for (int i = 0; i < MODELS; i++) {
        (void)close(models[i].file);
    }
    return code;
}

static struct engine *started(const struct engine_options *options)
{
    struct engine *engine = NULL;
    struct baton_error error = {0};

    if (try_to_start(&engine, options, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return engine;
}

/* NULL: it is not there. */
static struct engine *started_if_there(enum engine_kind kind)
{
    struct engine *engine = NULL;
    struct baton_error error;

    if (try_to_start(&engine, &(struct engine_options){.library.kind = kind}, &error) != 0) {
        print_message("not tested: %s\n", error.message);
    }
    return engine;
}

static struct session *opened(struct engine *engine)
{
    struct session *session = NULL;
    struct baton_error error = {0};

    if (session_open(&session, engine, CROPS, &error) != 0) {
        fail_msg("%s: %s", engine_name(engine), error.message);
    }
    return session;
}

static void assert_refused(struct engine *engine, size_t index, struct baton_error *error)
{
    struct session *session = NULL;

    assert_int_equal(session_open(&session, engine, index, error), BATON_EINVAL);
    assert_null(session);
}

typedef void engine_test(struct engine *engine);

/* The state is a test that runs on each engine that is there. */
static void with_each(void **state)
{
    engine_test *const *test = *state;
    int tested = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct engine *engine = started_if_there(kinds[i]);
        if (engine) {
            (*test)(engine);
            engine_free(engine);
            tested++;
        }
    }
    if (tested == 0) {
        skip();
    }
}

/* A crop of one colour, as planes of red, green and blue. */
static void paint(float *values, int colour)
{
    for (int i = 0; i < CROP_NUMBERS; i++) {
        values[i] = i / (CROP_SIDE * CROP_SIDE) == colour ? 0.9F : 0.1F;
    }
}

static void crops_are_told_apart_by_colour(struct engine *engine)
{
    static const int wanted[] = {BLUE, RED, GREEN, BLUE};
    struct session *session = opened(engine);
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    struct baton_error error = {0};

    assert_true(session->batch_max >= 1);
    for (int64_t i = 0; i < session->batch_max; i++) {
        paint(session->values + i * CROP_NUMBERS, wanted[i]);
    }
    assert_int_equal(session_run(session, session->batch_max, outputs, &error), 1);
    assert_int_equal(outputs[0].shape.sides[0], session->batch_max);
    for (int64_t i = 0; i < session->batch_max; i++) {
        assert_true(outputs[0].values[i * COLOURS + wanted[i]] > 0.9F);
    }
}

static void a_model_that_cannot_be_run_is_an_error_that_names_the_way_out(struct engine *engine)
{
    struct baton_error error = {0};

    assert_refused(engine, TORN, &error);
    assert_non_null(strstr(error.message, engine_name(engine)));
    assert_refused(engine, SQUARE, &error);
    if (stand_is_onnxruntime(engine)) { /* OpenCV tells of no input that it declares */
        assert_non_null(strstr(error.message, "[1, 3, 192, 320]"));
        assert_non_null(strstr(error.message, "[1, 3, 640, 640]"));
        assert_refused(engine, FUTURE, &error);
        assert_non_null(strstr(error.message, "IR version: 99"));
    }
}

static void an_output_that_is_too_large_is_the_models_fault(struct engine *engine)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    struct session *session = NULL;
    struct baton_error error = {0};
    int code = session_open(&session, engine, VAST, &error);

    code = code ? code : session_run(session, 1, outputs, &error);
    assert_int_equal(code, BATON_EINVAL);
}

static void the_faster_engine_is_preferred(void **state)
{
    struct engine *onnx = started_if_there(ENGINE_ONNXRUNTIME);
    struct engine *any = started_if_there(ENGINE_ANY);

    assert_non_null(any);
    assert_int_equal(stand_is_onnxruntime(any), onnx != NULL);
    engine_free(any);
    engine_free(onnx);
}

static void provider_with(enum engine_provider provider, const char *name)
{
    struct engine *engine = started(
        &(struct engine_options){.library = {.kind = ENGINE_ONNXRUNTIME, .provider = provider}});

    print_message("%s\n", engine_name(engine));
    assert_true(provider == PROVIDER_CPU ? !strchr(engine_name(engine), ',')
                                         : strstr(engine_name(engine), name) != NULL);
    crops_are_told_apart_by_colour(engine);
    /* ONNX Runtime's telemetry would be a thread. */
    assert_true(provider != PROVIDER_CPU || process_status(engine_pid(engine), "Threads", 10) == 1);
    engine_free(engine);
}

static void a_provider_that_is_not_there_leaves_the_work_to_the_cpu(void **state)
{
    static const char *const names[] = {"cpu", "cuda", "tensorrt"};
    struct engine *engine = started_if_there(ENGINE_ONNXRUNTIME);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(value_choice(names[i], ENGINE_PROVIDERS, NULL), i);
        if (engine) {
            provider_with((enum engine_provider)i, names[i]);
        }
    }
    engine_free(engine);
}

static void what_is_no_engine_is_an_error_that_says_how_to_get_one(void **state)
{
    static const struct {
        struct engine_options options;
        int code;
        const char *text;
    } cases[] = {
        {{.program = "/bin/true"}, BATON_EUNAVAILABLE, "process"},
        {{.program = "/nonexistent/model"}, BATON_EUNAVAILABLE, "/nonexistent/model"},
        {{.library = {.kind = ENGINE_ONNXRUNTIME, .path = "/nonexistent/library.so"}},
         BATON_ENOENT,
         "make deps-onnxruntime"},
        {{.library = {.path = "/nonexistent/library.so"}}, BATON_ENOENT, "make deps-onnxruntime"}};
    struct engine *engine = NULL;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct baton_error error = {0};
        assert_int_equal(try_to_start(&engine, &cases[i].options, &error), cases[i].code);
        assert_non_null(strstr(error.message, cases[i].text));
        assert_null(engine);
    }
    assert_int_equal(value_choice("opencv", ENGINE_KINDS, NULL), ENGINE_OPENCV);
}

/* ---- The child ------------------------------------------------------------------------------ */

static void the_child_is_confined_before_it_sees_a_model(void **state)
{
    struct engine *engine = started(&(struct engine_options){0});
    int pid = engine_pid(engine);

    assert_int_equal(process_status(pid, "Seccomp", 10), 2);
    assert_true(process_status(pid, "Seccomp_filters", 10) >= 2);
    assert_int_equal(process_status(pid, "NoNewPrivs", 10), 1);
    assert_int_equal(process_status(pid, "CapEff", 16), 0);
    engine_free(engine);
    assert_int_equal(kill(pid, 0), -1);
}

static void a_child_that_dies_or_hangs_is_an_error_and_is_ended(void **state)
{
    static const struct {
        int signal, run_ms, code;
        const char *text;
    } cases[] = {{SIGKILL, 0, BATON_EUNAVAILABLE, "was ended by signal 9"},
                 {SIGTERM, 0, BATON_ECLOSED, "was ended by signal 15"},
                 {SIGSTOP, 50, BATON_ECLOSED, "50 ms"}};
    struct tensor outputs[SESSION_OUTPUTS_MAX];

    for (int i = 0; i < 3; i++) {
        struct engine *engine = started(&(struct engine_options){.run_ms = cases[i].run_ms});
        struct session *session = opened(engine);
        struct baton_error error = {0};
        int pid = engine_pid(engine);

        assert_int_equal(kill(pid, cases[i].signal), 0);
        assert_int_equal(session_run(session, 1, outputs, &error), cases[i].code);
        assert_non_null(strstr(error.message, cases[i].text));
        assert_int_equal(engine_pid(engine), 0);
        assert_int_equal(kill(pid, 0), -1);
        assert_int_equal(session_run(session, 1, outputs, &error), BATON_ECLOSED);
        engine_free(engine);
    }
}

/* One that closes its socket and goes on. */
static void a_child_that_says_nothing_any_more_is_ended(void **state)
{
    static const char script[] = "#!/bin/sh\nexec 3>&-\nexec sleep 1000\n";
    char path[] = "/tmp/baton-mute-XXXXXX";
    int fd = mkstemp(path);
    struct engine *engine = NULL;
    struct baton_error error = {0};
    const struct engine_options options = {.program = path};

    assert_true(fd >= 0);
    assert_int_equal(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
    assert_int_equal(fchmod(fd, 0700), 0);
    (void)close(fd);
    assert_int_not_equal(try_to_start(&engine, &options, &error), 0);
    assert_null(engine);
    (void)unlink(path);
}

static pid_t load(void *userdata)
{
    return engine_pid(started(&(struct engine_options){0}));
}

/* One that is stopped does not look at its socket, as one that is in a model without end. */
static void a_child_that_hangs_dies_with_who_started_it(void **state)
{
    process_must_die_with_starter(load, NULL);
}

/* Bytes of a model changed at places that follow from `seed`. */
static void damage(unsigned char *bytes, size_t count, unsigned seed)
{
    for (int i = 0; i < 1 + (int)(seed % 7); i++) {
        seed = seed * 1103515245U + 12345U;
        bytes[(seed >> 8) % count] ^= (unsigned char)(1U << (seed % 8));
    }
}

static void models_that_are_damaged_cost_their_child_at_most(void **state)
{
    static const char *const names[] = {"colours.onnx", "stripes.onnx", "rectangles.onnx"};
    static const struct shape shapes[] = {
        {4, {1, 3, 32, 32}}, {4, {1, 3, 16, 64}}, {4, {1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH}}};
    static unsigned char model[1 << 20];
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    unsigned descriptors = process_count_descriptors();
    int refusals = 0, runs = 0, losses = 0;

    for (unsigned i = 0; i < 120; i++) {
        const struct engine_options options = {.library.kind = kinds[i / 3 % 2]};
        struct session *session = NULL;
        struct engine *engine = NULL;
        struct baton_error error = {0};
        int fd = stand_model(names[i % 3]);
        ssize_t bytes = read(fd, model, sizeof(model));
        int code;

        (void)close(fd);
        damage(model, (size_t)bytes, i);
        fd = model_of(model, (size_t)bytes);
        code =
            engine_start(&engine, &options, &(struct engine_model){fd, shapes[i % 3]}, 1, &error);
        (void)close(fd);
        if (code) {
            continue; /* it is not there */
        }
        code = session_open(&session, engine, 0, &error);
        code = code ? code : session_run(session, 1, outputs, &error);
        assert_true(code >= 0 || error.message[0] != '\0');
        refusals += code < 0 && code != BATON_ECLOSED;
        losses += code == BATON_ECLOSED;
        runs += code >= 0;
        engine_free(engine);
    }
    print_message("%d refused, %d run all the same, %d cost their child\n", refusals, runs, losses);
    assert_true(refusals > 0 && runs > 0);
    assert_int_equal(process_count_descriptors(), descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child at all */
}

static void a_model_may_have_several_threads(struct engine *engine)
{
    struct engine *twice = started(&(struct engine_options){
        .library = {.kind = stand_is_onnxruntime(engine) ? ENGINE_ONNXRUNTIME : ENGINE_OPENCV,
                    .threads = 2}});

    crops_are_told_apart_by_colour(twice);
    assert_int_equal(process_status(engine_pid(twice), "Seccomp", 10), 2);
    engine_free(twice);
}

#define EACH(test)                                                                                 \
    {                                                                                              \
#test, with_each, NULL, NULL, &(engine_test *)                                             \
        {                                                                                          \
            test                                                                                   \
        }                                                                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(crops_are_told_apart_by_colour),
        EACH(a_model_that_cannot_be_run_is_an_error_that_names_the_way_out),
        EACH(an_output_that_is_too_large_is_the_models_fault),
        cmocka_unit_test(the_faster_engine_is_preferred),
        cmocka_unit_test(a_provider_that_is_not_there_leaves_the_work_to_the_cpu),
        cmocka_unit_test(what_is_no_engine_is_an_error_that_says_how_to_get_one),
        cmocka_unit_test(the_child_is_confined_before_it_sees_a_model),
        cmocka_unit_test(a_child_that_dies_or_hangs_is_an_error_and_is_ended),
        cmocka_unit_test(a_child_that_says_nothing_any_more_is_ended),
        cmocka_unit_test(a_child_that_hangs_dies_with_who_started_it),
        cmocka_unit_test(models_that_are_damaged_cost_their_child_at_most),
        EACH(a_model_may_have_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
