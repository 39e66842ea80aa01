/* Models in a child: what they say of crops, with each library, and what a child that is lost,
 * hangs or is fed nonsense costs. */
#include "cmocka_all.h"

#include "base/value.h"
#include "integration/detector_infer/model_liar.h"
#include "integration/detector_infer/stand.h"
#include "lib/assert_ok.h"
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
#define PICTURE                                                                                    \
    {                                                                                              \
        4,                                                                                         \
        {                                                                                          \
            1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH                                              \
        }                                                                                          \
    }

/* The models of each engine here. */
enum { CROPS, SQUARE, VAST, TORN, FUTURE, MODELS };
static struct zip_part models[MODELS];
static const struct shape shapes[MODELS] = {[CROPS] = {4, {4, 3, CROP_SIDE, CROP_SIDE}},
                                            [SQUARE] = {4, {1, 3, 640, 640}},
                                            [VAST] = PICTURE,
                                            [TORN] = PICTURE,
                                            [FUTURE] = PICTURE};

static int make_models(void **state)
{
    models[CROPS] = stand_model("colours.onnx");
    models[SQUARE] = stand_model("rectangles.onnx");
    models[VAST] = stand_model("vast.onnx");
    models[TORN] = (struct zip_part){.name = "torn.onnx", .text = "no model"};
    models[FUTURE] = stand_model("colours.onnx");
    models[FUTURE].name = "future.onnx";
    /* Of a version of the format that is not made yet: the first field, ir_version. */
    assert_int_equal(models[FUTURE].text[0], 1 << 3);
    ((char *)(uintptr_t)models[FUTURE].text)[1] = 99;
    return 0;
}

/* Starts one with an archive, which is closed. Its pipeline is known. */
static int start_with(struct engine **ret, const struct engine_options *options, int archive,
                      struct baton_error *reterr)
{
    struct pipeline known = {.model_count = 1};
    int code = engine_start(ret, options, archive, &known, reterr);

    (void)close(archive);
    return code;
}

static int try_to_start(struct engine **ret, const struct engine_options *options,
                        struct baton_error *reterr)
{
    return start_with(ret, options, stand_archive("{}", models, MODELS), reterr);
}

static int open_model(struct session **ret, struct engine *engine, int index,
                      struct baton_error *reterr)
{
    return session_open(ret, engine, models[index].name, shapes[index], reterr);
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

    if (open_model(&session, engine, CROPS, &error) != 0) {
        fail_msg("%s: %s", engine_name(engine), error.message);
    }
    return session;
}

static void assert_refused(struct engine *engine, int index, struct baton_error *error)
{
    struct session *session = NULL;

    assert_int_equal(open_model(&session, engine, index, error), BATON_EINVAL);
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

static void a_batch_is_as_large_as_the_input_has_room_for(struct engine *engine)
{
    static const struct shape vast = {4, {1 << 20, 3, CROP_SIDE, CROP_SIDE}};
    static const struct shape one = {4, {1, 3, 4096, 4097}};
    struct session *session = NULL;
    struct baton_error error = {0};

    assert_int_equal(session_open(&session, engine, models[CROPS].name, one, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "is no picture's shape"));
    assert_int_equal(session_open(&session, engine, models[CROPS].name, vast, &error), 0);
    assert_int_equal(session->batch_max,
                     stand_is_onnxruntime(engine) ? (192 << 20) / 4 / CROP_NUMBERS : 1);
    for (int64_t i = 0; i < session->batch_max; i++) {
        session->values[i * CROP_NUMBERS] = 1; /* it is there */
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
    int code = open_model(&session, engine, VAST, &error);

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
    assert_int_equal(process_status(pid, "Uid", 10), geteuid() == 0 ? 65534 : geteuid());
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
static void damage(const struct zip_part *model, unsigned seed)
{
    unsigned char *bytes = (unsigned char *)(uintptr_t)model->text;

    for (int i = 0; i < 1 + (int)(seed % 7); i++) {
        seed = seed * 1103515245U + 12345U;
        bytes[(seed >> 8) % model->bytes] ^= (unsigned char)(1U << (seed % 8));
    }
}

static void models_that_are_damaged_cost_their_child_at_most(void **state)
{
    static const char *const names[] = {"colours.onnx", "stripes.onnx", "rectangles.onnx"};
    static const struct shape inputs[] = {
        {4, {1, 3, 32, 32}}, {4, {1, 3, 16, 64}}, {4, {1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH}}};
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    unsigned descriptors = process_count_descriptors();
    int refusals = 0, runs = 0, losses = 0;

    for (unsigned i = 0; i < 120; i++) {
        const struct engine_options options = {.library.kind = kinds[i / 3 % 2]};
        const struct zip_part model = stand_model(names[i % 3]);
        struct session *session = NULL;
        struct engine *engine = NULL;
        struct baton_error error = {0};
        int code;

        damage(&model, i);
        if (start_with(&engine, &options, stand_archive("{}", &model, 1), &error) != 0) {
            continue; /* it is not there */
        }
        code = session_open(&session, engine, model.name, inputs[i % 3], &error);
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

/* ---- Its archive ---------------------------------------------------------------------------- */

static int start_here(const struct engine_options *options, int archive, struct baton_error *error)
{
    struct engine *engine = NULL;
    struct pipeline pipeline = {0};
    int code = engine_start(&engine, options, archive, &pipeline, error);

    (void)close(archive);
    pipeline_fini(&pipeline);
    engine_free(engine);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    return code;
}

static void what_is_no_archive_is_refused_by_the_child(void **state)
{
    const struct engine_options any = {0}, small = {.archive_bytes_max = 10};

    ASSERT_FAILS(start_here(&any, zip_file_of("no archive", 10), failure), BATON_EPROTO, "zip");
    ASSERT_FAILS(start_here(&small, zip_file_of("no archive!", 11), failure), BATON_ETOOBIG,
                 "11 bytes; at most 10 are allowed");
    ASSERT_FAILS(start_here(&any, stand_archive("{}", models, 1), failure), BATON_EPROTO,
                 "pipeline.json: version is missing");
}

/* The library takes forty bytes for each before it reads one. */
static void an_archive_that_promises_millions_of_entries_gets_little_memory(void **state)
{
    struct baton_error error = {0};
    int code = start_here(&(struct engine_options){0}, zip_promise(20000000), &error);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they end the process */
    assert_int_not_equal(code, 0);
#else
    assert_int_equal(code, BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "it takes too much memory"));
#endif
}

static int lie(enum lie which, struct baton_error *error)
{
    const char first = (char)which;

    return start_here(&(struct engine_options){.program = BATON_LIAR_PROGRAM, .open_ms = 2000},
                      zip_file_of(&first, 1), error);
}

static void what_the_child_says_is_not_believed(void **state)
{
    static const struct {
        enum lie lie;
        int code;
        const char *said;
    } cases[] = {
        {LIE_NOTHING, BATON_EUNAVAILABLE, "ended"},
        {LIE_CRASH_FIRST, BATON_EUNAVAILABLE, "signal 11"},
        {LIE_CRASH, BATON_ECLOSED, "signal 11 (Segmentation fault); do not trust this archive"},
        {LIE_SILENT, BATON_EUNAVAILABLE, "no answer for 2000 ms"},
        {LIE_CLOSED, BATON_EUNAVAILABLE, "ended"},
        {LIE_HALF, BATON_EUNAVAILABLE, "nonsense"},
        {LIE_CODE, BATON_EUNAVAILABLE, "nonsense"},
        {LIE_ERROR, BATON_EPROTO, "a?[31m?b"},
        {LIE_LONG_TEXT, BATON_EUNAVAILABLE, "nonsense"},
        {LIE_BAD_PIPELINE, BATON_EPROTO, "pipeline.json"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("lie %d\n", (int)cases[i].lie);
        ASSERT_FAILS(lie(cases[i].lie, failure), cases[i].code, cases[i].said);
    }
    assert_int_equal(lie(LIE_NONE, NULL), 0);
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
        EACH(a_batch_is_as_large_as_the_input_has_room_for),
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
        cmocka_unit_test(what_is_no_archive_is_refused_by_the_child),
        cmocka_unit_test(an_archive_that_promises_millions_of_entries_gets_little_memory),
        cmocka_unit_test(what_the_child_says_is_not_believed),
        EACH(a_model_may_have_several_threads),
    };
    return cmocka_run_group_tests(tests, make_models, NULL);
}
