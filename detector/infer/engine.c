#include "detector/infer/engine.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS = 6 };

static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

int engine_kind_parse(const char *name)
{
    static const char *const names[] = {"any", "onnxruntime", "opencv", NULL};

    return find(names, name);
}

int engine_provider_parse(const char *name)
{
    static const char *const names[] = {"cpu", "cuda", "tensorrt", NULL};

    return find(names, name);
}

int engine_load(struct engine **ret, enum engine_kind kind, const struct engine_options *options,
                struct baton_error *reterr)
{
    static const struct engine_options none;
    int code = BATON_ENOENT;

    options = options ? options : &none;
    if (options->threads < 0 || options->threads > ENGINE_THREADS_MAX) {
        return error_set(reterr, BATON_EINVAL, "%d threads: must be 1 to %d", options->threads,
                         ENGINE_THREADS_MAX);
    }
    if (kind != ENGINE_OPENCV) {
        code = onnx_load(ret, options, reterr);
    }
    if (code && kind != ENGINE_ONNXRUNTIME) {
        code = opencv_load(ret, options, reterr);
    }
    return code;
}

void engine_free(struct engine *engine)
{
    if (engine) {
        engine->calls->free(engine);
    }
}

int session_open(struct session **ret, struct engine *engine, const void *model, size_t bytes,
                 const struct shape *largest, struct baton_error *reterr)
{
    size_t count;

    if (largest->rank != 4 || !shape_count(largest, &count)) {
        char text[SHAPE_TEXT_MAX];
        return error_set(reterr, BATON_EINVAL, "%s: is no picture's shape",
                         shape_text(largest, text));
    }
    if (bytes == 0 || bytes > MODEL_BYTES_MAX) {
        return error_set(reterr, BATON_EINVAL, "a model of %zu bytes: must be 1 to %d", bytes,
                         MODEL_BYTES_MAX);
    }
    return engine->calls->open(ret, engine, model, bytes, largest, reterr);
}

void session_close(struct session *session)
{
    if (session) {
        session->engine->calls->close(session);
    }
}

int session_make_room(struct session *session, const char *name, const struct shape *declared,
                      const struct shape *largest, struct baton_error *reterr)
{
    struct shape shape = *largest;

    if (!declared) {
        shape.sides[0] = 1; /* the file does not say whether it takes more at once */
    } else if (declared->sides[0] > 0 && declared->sides[0] < shape.sides[0]) {
        shape.sides[0] = declared->sides[0];
    }
    if (declared && !shape_fits(declared, &shape)) {
        char wanted[SHAPE_TEXT_MAX];
        char given[SHAPE_TEXT_MAX];
        return error_set(reterr, BATON_EINVAL,
                         "the model's input '%s' is %s, not %s; see width, height and layout of "
                         "its `input`",
                         name, shape_text(declared, wanted), shape_text(&shape, given));
    }
    session->input = shape;
    session->batch_max = shape.sides[0];
    (void)shape_count(&shape, &session->value_count);
    session->values = calloc(session->value_count, sizeof(float));
    return session->values ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");
}

int session_run(struct session *session, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
                struct baton_error *reterr)
{
    if (pictures < 1 || pictures > session->batch_max) {
        return error_set(reterr, BATON_EINVAL, "%lld pictures at once: the model takes 1 to %lld",
                         (long long)pictures, (long long)session->batch_max);
    }
    return session->engine->calls->run(session, pictures, ret, reterr);
}

/* ---- Libraries ------------------------------------------------------------------------------ */

/* "" where there is none; the last one is the loader's own search. */
static void list_folders(char ret[FOLDERS][PATH_MAX])
{
    const char *home = getenv("HOME");
    char program[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;

    memset(ret, 0, sizeof(char[FOLDERS][PATH_MAX]));
    program[bytes > 0 ? bytes : 0] = '\0';
    slash = strrchr(program, '/');
    if (slash) {
        *slash = '\0';
        (void)snprintf(ret[0], PATH_MAX, "%s/../lib/", program);
        (void)snprintf(ret[1], PATH_MAX, "%s/../lib/baton/", program);
        (void)snprintf(ret[2], PATH_MAX, "%s/../../%s/baton/", program, BATON_LIBDIR_NAME);
    }
    (void)snprintf(ret[3], PATH_MAX, "%s/", BATON_LIBDIR);
    if (home && home[0] == '/') {
        (void)snprintf(ret[4], PATH_MAX, "%s/.local/lib/baton/", home);
    }
}

int engine_library(void **ret, const char *const *names, const char *path,
                   struct baton_error *reterr)
{
    char folders[FOLDERS][PATH_MAX];
    char whole[PATH_MAX + NAME_MAX];
    void *library = NULL;

    if (path) {
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            return error_set(reterr, BATON_ENOENT, "%s", dlerror());
        }
        *ret = library;
        return 0;
    }
    list_folders(folders);
    for (int i = 0; i < FOLDERS && !library; i++) {
        bool is_system = i == FOLDERS - 1;
        for (size_t k = 0; names[k] && !library && (is_system || folders[i][0]); k++) {
            (void)snprintf(whole, sizeof(whole), "%s%s", folders[i], names[k]);
            if (is_system || access(whole, R_OK) == 0) {
                library = dlopen(whole, RTLD_NOW | RTLD_LOCAL);
            }
        }
    }
    if (!library) {
        return error_set(reterr, BATON_ENOENT, "%s: not found", names[0]);
    }
    *ret = library;
    return 0;
}
