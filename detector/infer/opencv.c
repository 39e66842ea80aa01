/* The engine OpenCV dnn. */
#include "detector/infer/engine.h"
#include "detector/infer/opencv_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPENCV_ERROR_MAX = 300 };

struct opencv_engine {
    struct engine base;
    const struct opencv_calls *calls;
    int threads;
};

struct opencv_session {
    struct session base;
    void *net;
};

static const struct opencv_calls *calls_of(const struct session *session)
{
    return ((const struct opencv_engine *)session->engine)->calls;
}

/* OpenCV's own text is the longest part and stands last: callers cut the end off a long message. */
static int fail(const struct engine *engine, const char *what, const char *text,
                struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL,
                     "%s cannot %s, ONNX Runtime may ('make deps-onnxruntime' fetches it): %s",
                     engine->name, what, text);
}

static void opencv_close(struct session *base)
{
    struct opencv_session *session = (struct opencv_session *)base;

    if (session->net) {
        calls_of(base)->close(session->net);
    }
    free(base->values);
    free(session);
}

static int opencv_run(struct session *base, int64_t pictures, struct tensor *ret,
                      struct baton_error *reterr)
{
    struct opencv_session *session = (struct opencv_session *)base;
    struct shape shape = base->input;
    char error[OPENCV_ERROR_MAX] = "";
    size_t numbers;
    int count;

    shape.sides[0] = pictures;
    count = calls_of(base)->run(session->net, base->values, &shape, ret, SESSION_OUTPUTS_MAX, error,
                                sizeof(error));
    if (count < 0) {
        return fail(base->engine, "run the model", error, reterr);
    }
    for (int i = 0; i < count; i++) {
        if (!shape_numbers(&ret[i].shape, &numbers)) {
            return fail(base->engine, "run the model", "an output without numbers", reterr);
        }
    }
    return count;
}

/* OpenCV knows only after a run that a model can be run, so it runs once on an empty picture. */
static int opencv_open(struct session **ret, struct engine *base, const void *model, size_t bytes,
                       const struct shape *largest, struct baton_error *reterr)
{
    const struct opencv_engine *engine = (const struct opencv_engine *)base;
    struct opencv_session *session = calloc(1, sizeof(*session));
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    char error[OPENCV_ERROR_MAX] = "";
    int code;

    if (!session) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    session->base.engine = base;
    code = session_make_room(&session->base, NULL, NULL, largest, reterr);
    if (!code) {
        session->net = engine->calls->open(model, bytes, engine->threads, error, sizeof(error));
        code = session->net ? 0 : fail(base, "read the model", error, reterr);
    }
    code = code ? code : session_run(&session->base, 1, outputs, reterr);
    if (code < 0) {
        opencv_close(&session->base);
        return code;
    }
    *ret = &session->base;
    return 0;
}

static void opencv_free(struct engine *base)
{
    free(base); /* the library stays, as threads of its own may */
}

static const struct engine_calls opencv_engine_calls = {
    .open = opencv_open, .run = opencv_run, .close = opencv_close, .free = opencv_free};

int opencv_load(struct engine **ret, const struct engine_options *options,
                struct baton_error *reterr)
{
    static const char *const names[] = {"libbaton-opencv.so", NULL};
    struct opencv_engine *engine;
    void *library;
    int code = engine_library(&library, names, options->library, reterr);

    if (code) {
        error_wrap(reterr, "OpenCV");
        return code;
    }
    engine = calloc(1, sizeof(*engine));
    if (!engine) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    engine->calls = dlsym(library, "baton_opencv");
    if (!engine->calls) {
        free(engine);
        return error_set(reterr, BATON_ENOENT, "OpenCV: %s: is not Baton's", names[0]);
    }
    engine->base = (struct engine){.calls = &opencv_engine_calls, .kind = ENGINE_OPENCV};
    engine->threads = options->threads ? options->threads : 1;
    (void)snprintf(engine->base.name, sizeof(engine->base.name), "opencv %s",
                   engine->calls->version);
    *ret = &engine->base;
    return 0;
}
