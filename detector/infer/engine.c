#include "detector/infer/engine.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "detector/infer/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 500 };

struct engine {
    struct wire_request request; /* large, so not on the stack */
    struct wire_answer answer;
    char name[ENGINE_NAME_MAX + 1];
    float *outputs; /* WIRE_OUTPUT_BYTES, written by the child, and then the input */
    size_t bytes;   /* of both */
    struct helper child;
    int open_ms, run_ms;
    const atomic_bool *is_canceled;
    struct session sessions[WIRE_MODELS_MAX];
};

/* ---- The process ---------------------------------------------------------------------------- */

/* Sets the error of a process that gave no answer, and ends the process, if it has not ended by
 * itself in `wait_ms`. One that did not start, or was killed from outside, says nothing about the
 * models. */
static int lost(struct engine *engine, const char *why, int wait_ms, struct baton_error *reterr)
{
    int code = engine->name[0] != '\0' ? BATON_ECLOSED : BATON_EUNAVAILABLE;
    int status = 0;
    bool has_ended = helper_wait(&engine->child, wait_ms, &status);

    (void)helper_kill(&engine->child);
    if (has_ended && WIFSIGNALED(status)) {
        return error_set(reterr, WTERMSIG(status) == SIGKILL ? BATON_EUNAVAILABLE : code,
                         "the model's process was ended by signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    }
    return error_set(reterr, code, "the model's process %s", why);
}

static int talks_nonsense(struct engine *engine, struct baton_error *reterr)
{
    return lost(engine, "talks nonsense and was ended", 0, reterr);
}

/* ---- Questions and answers ------------------------------------------------------------------ */

/* Waits in recv(), which returns from time to time, to see whether the wait was canceled. The
 * answer for a frame comes long before that, so it costs one system call. */
static int await(struct engine *engine, int timeout_ms, ssize_t *ret, struct baton_error *reterr)
{
    instant end = instant_add(clock_now(), SPAN_MS(timeout_ms));
    ssize_t bytes;

    while ((bytes = recv(engine->child.socket, &engine->answer, sizeof(engine->answer),
                         MSG_TRUNC)) < 0 &&
           (errno == EAGAIN || errno == EINTR)) {
        bool is_silent = errno == EAGAIN;
        if (engine->is_canceled && atomic_load(engine->is_canceled)) {
            return lost(engine, "was not wanted any more", 0, reterr);
        }
        /* After an interruption, such as a SIGCONT, an answer may be there: read again. */
        if (is_silent && !instant_before(clock_now(), end)) {
            char why[64];
            (void)snprintf(why, sizeof(why), "gave no answer for %d ms and was ended", timeout_ms);
            return lost(engine, why, 0, reterr);
        }
    }
    *ret = bytes;
    return 0;
}

bool answer_check(struct wire_answer *answer, size_t bytes)
{
    bool is_right = bytes == sizeof(*answer) && answer->code <= 0 &&
                    answer->code >= BATON_ECLOSED && answer->batch_max >= 0 &&
                    answer->output_count >= 0 && answer->output_count <= SESSION_OUTPUTS_MAX;

    answer->error[sizeof(answer->error) - 1] = '\0';
    answer->name[sizeof(answer->name) - 1] = '\0';
    for (int i = 0; is_right && i < answer->output_count; i++) {
        is_right = shape_numbers(&answer->shapes[i]) >= 0;
    }
    return is_right;
}

static int receive(struct engine *engine, int timeout_ms, struct baton_error *reterr)
{
    ssize_t bytes = 0;
    int code = await(engine, timeout_ms, &bytes, reterr);

    if (code) {
        return code;
    }
    if (bytes <= 0) {
        /* The socket closes a moment before the process has ended, by a signal that is worth
         * telling. One that closes it and goes on is not waited for. */
        return lost(engine, "ended", END_MS, reterr);
    }
    if (!answer_check(&engine->answer, (size_t)bytes)) {
        return talks_nonsense(engine, reterr);
    }
    return engine->answer.code ? error_set(reterr, engine->answer.code, "%s", engine->answer.error)
                               : 0;
}

static int ask(struct engine *engine, int timeout_ms, struct baton_error *reterr)
{
    if (engine->child.pid <= 0) {
        return error_set(reterr, BATON_ECLOSED, "the model's process has ended");
    }
    /* If the process has ended, the wait for the answer reports it. */
    (void)send(engine->child.socket, &engine->request, sizeof(engine->request), MSG_NOSIGNAL);
    return receive(engine, timeout_ms, reterr);
}

/* ---- Sessions ------------------------------------------------------------------------------- */

int session_open(struct session **ret, struct engine *engine, size_t index,
                 struct baton_error *reterr)
{
    struct session *session = &engine->sessions[index];
    const struct shape *largest = &session->largest;
    int64_t count = shape_numbers(largest);
    char text[SHAPE_TEXT_MAX];
    int code;

    if (count < 1) {
        return error_set(reterr, BATON_EINVAL, "%s: is no picture's shape",
                         shape_text(largest, text));
    }
    engine->request.type = WIRE_OPEN;
    engine->request.model = (unsigned)index;
    engine->request.largest = *largest;
    code = ask(engine, engine->open_ms, reterr);
    session->batch_max = engine->answer.batch_max;
    session->picture_count = (size_t)(count / largest->sides[0]);
    if (!code && (session->batch_max < 1 || session->batch_max > largest->sides[0])) {
        code = talks_nonsense(engine, reterr);
    }
    if (!code) {
        *ret = session;
    }
    return code;
}

int session_run(struct session *session, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
                struct baton_error *reterr)
{
    struct engine *engine = session->engine;
    const struct wire_answer *answer = &engine->answer;
    size_t used = 0;
    int code;

    engine->request.type = WIRE_RUN;
    engine->request.model = (unsigned)(session - engine->sessions);
    engine->request.pictures = pictures;
    code = ask(engine, engine->run_ms, reterr);
    if (code) {
        return code;
    }
    for (int i = 0; i < answer->output_count; i++) {
        size_t count = (size_t)shape_numbers(&answer->shapes[i]);
        if (count > WIRE_OUTPUT_BYTES / sizeof(float) - used) {
            return talks_nonsense(engine, reterr);
        }
        ret[i] = (struct tensor){answer->shapes[i], engine->outputs + used};
        used += count;
    }
    return answer->output_count;
}

/* ---- The engine ----------------------------------------------------------------------------- */

void engine_free(struct engine *engine)
{
    if (!engine) {
        return;
    }
    if (engine->child.socket >= 0) {
        (void)close(engine->child.socket);
    }
    (void)helper_kill(&engine->child); /* the process has nothing to release */
    if (engine->outputs) {
        (void)munmap(engine->outputs, engine->bytes);
    }
    free(engine);
}

static int start(struct engine *engine, const struct engine_options *options,
                 const struct engine_model *models, size_t count, struct baton_error *reterr)
{
    int files[HELPER_FILES_MAX + 1];
    int64_t most = 0;
    void *memory = NULL;
    int code;

    INVARIANT(count <= WIRE_MODELS_MAX);
    for (size_t i = 0; i < count; i++) {
        int64_t numbers = shape_numbers(&models[i].largest); /* -1: session_open() fails */
        most = numbers > most ? numbers : most;
        files[1 + i] = models[i].file;
    }
    files[1 + count] = -1;
    engine->bytes = WIRE_OUTPUT_BYTES + (size_t)most * sizeof(float);
    files[0] = helper_share(&memory, "baton-model", engine->bytes, reterr);
    if (files[0] < 0) {
        return files[0];
    }
    engine->outputs = memory;
    (void)mprotect(memory, WIRE_OUTPUT_BYTES, PROT_READ);
    for (size_t i = 0; i < count; i++) {
        engine->sessions[i] =
            (struct session){.engine = engine,
                             .values = engine->outputs + WIRE_OUTPUT_BYTES / sizeof(float),
                             .largest = models[i].largest};
    }
    code = helper_start(&engine->child, options->program, "baton-model", files, reterr);
    (void)close(files[0]);
    if (code) {
        return code;
    }
    engine->request = (struct wire_request){
        .type = WIRE_START, .memory_bytes = engine->bytes, .library = options->library};
    return ask(engine, engine->open_ms, reterr);
}

int engine_start(struct engine **ret, const struct engine_options *options,
                 const struct engine_model *models, size_t count, struct baton_error *reterr)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    int code;

    if (!engine) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    engine->child.socket = -1;
    engine->is_canceled = options->is_canceled;
    engine->open_ms = options->open_ms ? options->open_ms : ENGINE_OPEN_MS;
    engine->run_ms = options->run_ms ? options->run_ms : ENGINE_RUN_MS;
    code = start(engine, options, models, count, reterr);
    if (code) {
        engine_free(engine);
        return code;
    }
    memcpy(engine->name, engine->answer.name, sizeof(engine->name));
    *ret = engine;
    return 0;
}

const char *engine_name(const struct engine *engine)
{
    return engine->name;
}

int engine_pid(const struct engine *engine)
{
    return engine->child.pid;
}
