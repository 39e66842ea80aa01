#include "detector/infer/engine.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "detector/infer/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 500, INPUT_MAX = WIRE_INPUT_BYTES / sizeof(float) };

struct engine {
    struct wire_request request; /* large, so not on the stack */
    struct wire_answer answer;
    char name[ENGINE_NAME_MAX + 1];
    float *outputs; /* WIRE_OUTPUT_BYTES, written by the child, and then the input */
    struct helper child;
    int open_ms, run_ms;
    const atomic_bool *is_canceled;
    bool is_open; /* the archive */
    struct session sessions[PIPELINE_MODELS_MAX];
    size_t session_count;
};

/* ---- The process ---------------------------------------------------------------------------- */

/* Sets the error of a process that gave no answer, and ends the process, if it has not ended by
 * itself in `wait_ms`. One that did not start, or was killed from outside, says nothing about the
 * archive, nor does a disk that is slow when it is opened; a crash does. */
static int lost(struct engine *engine, const char *why, int wait_ms, struct baton_error *reterr)
{
    int code = engine->is_open ? BATON_ECLOSED : BATON_EUNAVAILABLE;
    int status = 0, type = (int)engine->request.type;
    bool has_ended = helper_wait(&engine->child, wait_ms, &status);

    (void)helper_kill(&engine->child);
    if (has_ended && WIFSIGNALED(status)) {
        bool is_killed = WTERMSIG(status) == SIGKILL;
        bool is_suspect = !is_killed && (type == WIRE_ARCHIVE || type == WIRE_OPEN);
        code = is_killed ? BATON_EUNAVAILABLE : is_suspect ? BATON_ECLOSED : code;
        return error_set(reterr, code, "the model's process was ended by signal %d (%s)%s",
                         WTERMSIG(status), strsignal(WTERMSIG(status)),
                         is_suspect ? "; do not trust this archive, make it again" : "");
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
                    answer->text_bytes <= PIPELINE_BYTES_MAX && answer->output_count >= 0 &&
                    answer->output_count <= SESSION_OUTPUTS_MAX;

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

int session_open(struct session **ret, struct engine *engine, const char *file,
                 struct shape largest, struct baton_error *reterr)
{
    struct session *session = &engine->sessions[engine->session_count];
    struct shape one = largest;
    char text[SHAPE_TEXT_MAX];
    int64_t count;
    int code;

    INVARIANT(engine->session_count < PIPELINE_MODELS_MAX);
    one.sides[0] = 1;
    count = shape_numbers(&one);
    if (count < 1 || count > INPUT_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s: is no picture's shape",
                         shape_text(&largest, text));
    }
    if (largest.sides[0] > INPUT_MAX / count) {
        largest.sides[0] = INPUT_MAX / count;
    }
    engine->request.type = WIRE_OPEN;
    engine->request.model = (unsigned)engine->session_count;
    engine->request.largest = largest;
    (void)snprintf(engine->request.file, sizeof(engine->request.file), "%s", file);
    code = ask(engine, engine->open_ms, reterr);
    if (!code && (engine->answer.batch_max < 1 || engine->answer.batch_max > largest.sides[0])) {
        code = talks_nonsense(engine, reterr);
    }
    if (!code) {
        *session = (struct session){.engine = engine,
                                    .batch_max = engine->answer.batch_max,
                                    .values = engine->outputs + WIRE_OUTPUT_BYTES / sizeof(float),
                                    .picture_count = (size_t)count};
        engine->session_count++;
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
        (void)munmap(engine->outputs, WIRE_BYTES);
    }
    free(engine);
}

/* Starts the process with memory and the archive, read-only and with a file position of its own. */
static int start_child(struct engine *engine, const char *program, int archive_fd,
                       struct baton_error *reterr)
{
    int files[] = {-1, -1, -1}, code;
    void *memory = NULL;
    char path[40];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", archive_fd);
    files[1] = open(path, O_RDONLY | O_CLOEXEC);
    if (files[1] < 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "archive: %s", strerror(errno));
    }
    files[0] = helper_share(&memory, "baton-model", WIRE_BYTES, reterr);
    code = files[0] < 0 ? files[0] : 0;
    if (!code) {
        engine->outputs = memory;
        (void)mprotect(memory, WIRE_OUTPUT_BYTES, PROT_READ);
        code = helper_start(&engine->child, program, "baton-model", files, reterr);
    }
    helper_close(files, 2);
    return code;
}

/* Reads a copy, which the child cannot change any more. */
static int read_pipeline(struct pipeline *ret, const struct engine *engine,
                         struct baton_error *reterr)
{
    size_t bytes = engine->answer.text_bytes;
    char *text = malloc(bytes + 1);
    int code;

    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    memcpy(text, engine->outputs, bytes);
    code = pipeline_parse(ret, text, bytes, reterr);
    free(text);
    return code;
}

static int start(struct engine *engine, const struct engine_options *options, int archive_fd,
                 struct pipeline *pipeline, struct baton_error *reterr)
{
    int code = start_child(engine, options->program, archive_fd, reterr);

    engine->request.type = WIRE_START;
    engine->request.library = options->library;
    code = code ? code : ask(engine, engine->open_ms, reterr);
    if (code) {
        return code;
    }
    memcpy(engine->name, engine->answer.name, sizeof(engine->name));
    engine->request.type = WIRE_ARCHIVE;
    engine->request.archive_bytes_max = options->archive_bytes_max;
    code = ask(engine, engine->open_ms, reterr);
    engine->is_open = code == 0;
    return code || pipeline->model_count > 0 ? code : read_pipeline(pipeline, engine, reterr);
}

int engine_start(struct engine **ret, const struct engine_options *options, int archive_fd,
                 struct pipeline *pipeline, struct baton_error *reterr)
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
    code = start(engine, options, archive_fd, pipeline, reterr);
    if (code) {
        engine_free(engine);
        return code;
    }
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
