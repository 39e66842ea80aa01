#include "cmocka_all.h"

#include "detector/infer/decoder.h"
#include "detector/infer/remote.h"
#include "integration/detector_infer/stand.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct shape crops = {4, {8, 3, 32, 32}};

static struct engine *started(const struct remote_options *options)
{
    struct engine *engine = NULL;
    struct baton_error error = {0};

    if (remote_load(&engine, options, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return engine;
}

static struct session *opened(struct engine *engine)
{
    struct session *session = NULL;
    struct baton_error error = {0};
    size_t bytes;
    void *model = stand_model("colours.onnx", &bytes);

    if (session_open(&session, engine, model, bytes, &crops, &error) != 0) {
        fail_msg("%s", error.message);
    }
    free(model);
    return session;
}

static void assert_colour(struct session *session, int colour)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    float score;
    struct baton_error error = {0};

    stand_draw(session->values, 32, 32, &(struct drawn){colour, 0, 0, 32, 32}, 1);
    if (session_run(session, 1, outputs, &error) != 1) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(best_class(outputs[0].values, 0, COLOURS, 1, &score), colour);
}

static void several_sessions_share_a_child(void **state)
{
    struct engine *engine = started(&(struct remote_options){0});
    struct session *sessions[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        sessions[i] = opened(engine);
    }
    for (int i = 0; i < 3; i++) {
        assert_colour(sessions[i], i);
    }
    session_close(sessions[1]);
    assert_colour(sessions[2], GREEN);
    sessions[1] = opened(engine);
    assert_colour(sessions[1], RED);
    for (int i = 0; i < 3; i++) {
        session_close(sessions[i]);
    }
    engine_free(engine);
}

/* The value of a line of /proc/PID/status. */
static long status_of(int pid, const char *key)
{
    char path[64];
    char line[256];
    long value = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtol(line + strlen(key), NULL, 16);
        }
    }
    (void)fclose(file);
    return value;
}

static void the_child_is_confined_before_it_sees_a_model(void **state)
{
    struct engine *engine = started(&(struct remote_options){0});
    int pid = remote_pid(engine);

    (void)state;
    assert_int_equal(status_of(pid, "Seccomp:"), 2);
    assert_true(status_of(pid, "Seccomp_filters:") >= 2);
    assert_int_equal(status_of(pid, "NoNewPrivs:"), 1);
    assert_int_equal(status_of(pid, "CapEff:"), 0);
    engine_free(engine);
    assert_int_equal(kill(pid, 0), -1);
}

static void a_child_that_dies_is_an_error_and_a_new_one_works(void **state)
{
    struct engine *engine = started(&(struct remote_options){0});
    struct session *session = opened(engine);
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    struct baton_error error = {0};
    siginfo_t info;

    (void)state;
    assert_colour(session, BLUE);
    assert_int_equal(kill(remote_pid(engine), SIGSEGV), 0);
    assert_int_equal(waitid(P_PID, (id_t)remote_pid(engine), &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(session_run(session, 1, outputs, &error), BATON_ECLOSED);
    assert_non_null(strstr(error.message, "process"));
    assert_int_equal(remote_pid(engine), 0);
    assert_int_equal(session_run(session, 1, outputs, &error), BATON_ECLOSED);
    session_close(session);
    engine_free(engine);
    engine = started(&(struct remote_options){0});
    session = opened(engine);
    assert_colour(session, BLUE);
    session_close(session);
    engine_free(engine);
}

static void a_child_that_hangs_is_ended(void **state)
{
    struct engine *engine = started(&(struct remote_options){.run_ms = 50});
    struct session *session = opened(engine);
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    struct baton_error error = {0};
    int pid = remote_pid(engine);

    (void)state;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(session_run(session, 1, outputs, &error), BATON_ECLOSED);
    assert_non_null(strstr(error.message, "50 ms"));
    assert_int_equal(kill(pid, 0), -1);
    session_close(session);
    engine_free(engine);
}

static pid_t load(void *userdata)
{
    (void)userdata;
    return remote_pid(started(&(struct remote_options){0}));
}

/* One that is stopped does not look at its socket, as one that is in a model without end. */
static void a_child_that_hangs_dies_with_who_started_it(void **state)
{
    (void)state;
    process_must_die_with_starter(load, NULL);
}

static void what_is_no_child_is_an_error(void **state)
{
    struct engine *engine = NULL;
    struct baton_error error = {0};

    (void)state;
    assert_int_equal(remote_load(&engine, &(struct remote_options){.program = "/bin/true"}, &error),
                     BATON_ECLOSED);
    assert_int_equal(
        remote_load(&engine, &(struct remote_options){.program = "/nonexistent/model"}, &error),
        BATON_EIO);
    assert_non_null(strstr(error.message, "/nonexistent/model"));
    assert_int_equal(remote_load(&engine,
                                 &(struct remote_options){.kind = ENGINE_ONNXRUNTIME,
                                                          .library = "/nonexistent/library.so"},
                                 &error),
                     BATON_ENOENT);
    assert_non_null(strstr(error.message, "make deps-onnxruntime"));
    assert_null(engine);
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
    static const enum engine_kind kinds[] = {ENGINE_ONNXRUNTIME, ENGINE_OPENCV};
    static const char *const names[] = {"colours.onnx", "stripes.onnx", "rectangles.onnx"};
    static const struct shape shapes[] = {
        {4, {1, 3, 32, 32}}, {4, {1, 3, 16, 64}}, {4, {1, 3, RECTANGLES_HEIGHT, RECTANGLES_WIDTH}}};
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    int refused = 0, run = 0, lost = 0;

    (void)state;
    for (unsigned i = 0; i < 120; i++) {
        struct remote_options options = {.kind = kinds[i / 3 % 2], .run_ms = 5000};
        struct session *session = NULL;
        struct engine *engine = stand_remote(options.kind);
        struct baton_error error = {0};
        size_t bytes;
        unsigned char *model = stand_model(names[i % 3], &bytes);
        int code;

        if (!engine) {
            free(model);
            continue;
        }
        damage(model, bytes, i);
        code = session_open(&session, engine, model, bytes, &shapes[i % 3], &error);
        code = code ? code : session_run(session, 1, outputs, &error);
        assert_true(code >= 0 || error.message[0] != '\0');
        refused += code < 0 && code != BATON_ECLOSED;
        lost += code == BATON_ECLOSED;
        run += code >= 0;
        session_close(session);
        engine_free(engine);
        free(model);
    }
    print_message("%d refused, %d run all the same, %d cost their child\n", refused, run, lost);
    assert_true(refused > 0 && run > 0);
}

static void a_model_may_have_several_threads(void **state)
{
    static const enum engine_kind kinds[] = {ENGINE_ONNXRUNTIME, ENGINE_OPENCV};
    int tested = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct engine *engine = stand_remote(kinds[i]);
        struct session *session;
        if (engine) {
            tested++;
            engine_free(engine);
            engine = started(&(struct remote_options){.kind = kinds[i], .threads = 2});
            session = opened(engine);
            assert_colour(session, GREEN);
            assert_int_equal(status_of(remote_pid(engine), "Seccomp:"), 2);
            session_close(session);
            engine_free(engine);
        }
    }
    if (tested == 0) {
        skip();
    }
}

static void nothing_is_left_of_a_child(void **state)
{
    unsigned before = process_count_descriptors();

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct engine *engine = started(&(struct remote_options){0});
        struct session *session = opened(engine);
        int pid = remote_pid(engine);
        assert_colour(session, i % 3);
        session_close(session);
        engine_free(engine);
        assert_int_equal(kill(pid, 0), -1);
    }
    assert_int_equal(process_count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child at all */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_sessions_share_a_child),
        cmocka_unit_test(the_child_is_confined_before_it_sees_a_model),
        cmocka_unit_test(a_child_that_dies_is_an_error_and_a_new_one_works),
        cmocka_unit_test(a_child_that_hangs_is_ended),
        cmocka_unit_test(a_child_that_hangs_dies_with_who_started_it),
        cmocka_unit_test(what_is_no_child_is_an_error),
        cmocka_unit_test(models_that_are_damaged_cost_their_child_at_most),
        cmocka_unit_test(a_model_may_have_several_threads),
        cmocka_unit_test(nothing_is_left_of_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
