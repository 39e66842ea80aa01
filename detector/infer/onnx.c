/* The engine ONNX Runtime. */
#include "detector/infer/engine.h"
#include "detector/infer/onnx_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct onnx_engine {
    struct engine base;
    void *library;
    struct onnx_calls calls;
    struct onnx_env *env;
    struct onnx_memory *memory;
    struct onnx_allocator *allocator; /* the library's own, not to be freed */
    int threads;
    /* Adds the provider to a session's options; NULL: the CPU. */
    struct onnx_status *(*add_provider)(struct onnx_options *, int device);
};

struct onnx_own_session {
    struct session base;
    struct onnx_session *session;
    char *names[1 + SESSION_OUTPUTS_MAX]; /* the input's, then the outputs' */
    size_t output_count;
    struct onnx_value *values[SESSION_OUTPUTS_MAX];
};

/* Frees the status. */
static int check(const struct onnx_engine *engine, struct onnx_status *status, const char *what,
                 struct baton_error *reterr)
{
    int code;

    if (!status) {
        return 0;
    }
    code = error_set(reterr, BATON_EINVAL, "%s: %s: %s", engine->base.name, what,
                     engine->calls.error_message(status));
    engine->calls.release_status(status);
    return code;
}

/* ---- A model's inputs and outputs ----------------------------------------------------------- */

static int read_sides(const struct onnx_engine *engine, const struct onnx_tensor_type *type,
                      struct shape *ret, struct baton_error *reterr)
{
    const struct onnx_calls *calls = &engine->calls;
    struct shape shape = {0};
    size_t rank = 0;
    int code = check(engine, calls->rank(type, &rank), "rank", reterr);

    if (!code && rank > SHAPE_RANK_MAX) {
        return error_set(reterr, BATON_EINVAL, "a tensor of %zu sides: at most %d", rank,
                         SHAPE_RANK_MAX);
    }
    shape.rank = (int)rank;
    code = code ? code : check(engine, calls->sides(type, shape.sides, rank), "sides", reterr);
    if (!code) {
        *ret = shape;
    }
    return code;
}

static int read_type(const struct onnx_engine *engine, const struct onnx_type *type,
                     const char *name, struct shape *ret, struct baton_error *reterr)
{
    const struct onnx_tensor_type *tensor = NULL;
    int element = 0;
    int code = check(engine, engine->calls.as_tensor_type(type, &tensor), "type", reterr);

    if (!code && !tensor) {
        return error_set(reterr, BATON_EINVAL, "'%s' is no tensor", name);
    }
    code =
        code ? code : check(engine, engine->calls.element_type(tensor, &element), "type", reterr);
    if (!code && element != ONNX_FLOAT32) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s' is not of float32 (but of ONNX's type %d); export the model with "
                         "float32 inputs and outputs",
                         name, element);
    }
    return code ? code : read_sides(engine, tensor, ret, reterr);
}

/* Port 0 is the input, the others are the outputs. */
static int read_port(struct onnx_own_session *session, const struct onnx_engine *engine,
                     size_t index, struct shape *ret, struct baton_error *reterr)
{
    const struct onnx_calls *calls = &engine->calls;
    char **name = &session->names[index];
    struct onnx_type *type = NULL;
    struct onnx_status *status;
    int code;

    status = index == 0 ? calls->input_name(session->session, 0, engine->allocator, name)
                        : calls->output_name(session->session, index - 1, engine->allocator, name);
    code = check(engine, status, "name", reterr);
    if (code) {
        return code;
    }
    status = index == 0 ? calls->input_type(session->session, 0, &type)
                        : calls->output_type(session->session, index - 1, &type);
    code = check(engine, status, "type", reterr);
    code = code ? code : read_type(engine, type, *name, ret, reterr);
    if (type) {
        calls->release_type(type);
    }
    return code;
}

/* Reads the declared shape of the input. */
static int read_ports(struct onnx_own_session *session, const struct onnx_engine *engine,
                      struct shape *ret, struct baton_error *reterr)
{
    const struct onnx_calls *calls = &engine->calls;
    struct shape shape;
    size_t inputs = 0;
    int code = check(engine, calls->input_count(session->session, &inputs), "inputs", reterr);

    code = code ? code
                : check(engine, calls->output_count(session->session, &session->output_count),
                        "outputs", reterr);
    if (!code &&
        (inputs != 1 || session->output_count < 1 || session->output_count > SESSION_OUTPUTS_MAX)) {
        return error_set(reterr, BATON_EINVAL,
                         "the model has %zu inputs and %zu outputs; it must have one input and 1 "
                         "to %d outputs",
                         inputs, session->output_count, SESSION_OUTPUTS_MAX);
    }
    for (size_t i = 0; i <= session->output_count && !code; i++) {
        code = read_port(session, engine, i, i == 0 ? ret : &shape, reterr);
    }
    return code;
}

/* ---- A session ------------------------------------------------------------------------------ */

static void drop_values(struct onnx_own_session *session)
{
    const struct onnx_engine *engine = (const struct onnx_engine *)session->base.engine;

    for (int i = 0; i < SESSION_OUTPUTS_MAX; i++) {
        if (session->values[i]) {
            engine->calls.release_value(session->values[i]);
            session->values[i] = NULL;
        }
    }
}

static void onnx_close(struct session *base)
{
    struct onnx_own_session *session = (struct onnx_own_session *)base;
    const struct onnx_engine *engine = (const struct onnx_engine *)base->engine;

    drop_values(session);
    for (size_t i = 0; i < sizeof(session->names) / sizeof(session->names[0]); i++) {
        if (session->names[i]) {
            struct onnx_status *status =
                engine->calls.allocator_free(engine->allocator, session->names[i]);
            (void)check(engine, status, "free", NULL);
        }
    }
    if (session->session) {
        engine->calls.release_session(session->session);
    }
    free(base->values);
    free(session);
}

/* Spinning is off: waiting threads would use twice the CPU that the work needs. */
static int make_session(struct onnx_own_session *session, const struct onnx_engine *engine,
                        const void *model, size_t bytes, struct baton_error *reterr)
{
    const struct onnx_calls *calls = &engine->calls;
    struct onnx_options *options = NULL;
    int code = check(engine, calls->create_options(&options), "options", reterr);

    if (code) {
        return code;
    }
    code = check(engine, calls->set_optimization(options, ONNX_OPTIMIZE_ALL), "options", reterr);
    code =
        code ? code
             : check(engine, calls->set_intra_threads(options, engine->threads), "threads", reterr);
    code = code ? code : check(engine, calls->set_inter_threads(options, 1), "threads", reterr);
    code = code ? code
                : check(engine, calls->set_config(options, "session.intra_op.allow_spinning", "0"),
                        "options", reterr);
    code = code
               ? code
               : check(engine,
                       calls->create_session(engine->env, model, bytes, options, &session->session),
                       "model", reterr);
    calls->release_options(options);
    return code;
}

static int onnx_open(struct session **ret, struct engine *base, const void *model, size_t bytes,
                     const struct shape *largest, struct baton_error *reterr)
{
    const struct onnx_engine *engine = (const struct onnx_engine *)base;
    struct onnx_own_session *session = calloc(1, sizeof(*session));
    struct shape declared = {0};
    int code;

    if (!session) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    session->base.engine = base;
    code = make_session(session, engine, model, bytes, reterr);
    code = code ? code : read_ports(session, engine, &declared, reterr);
    code = code ? code
                : session_make_room(&session->base, session->names[0], &declared, largest, reterr);
    if (code) {
        onnx_close(&session->base);
        return code;
    }
    *ret = &session->base;
    return 0;
}

static int read_output(const struct onnx_engine *engine, struct onnx_value *value,
                       struct tensor *ret, struct baton_error *reterr)
{
    struct onnx_tensor_type *type = NULL;
    void *data = NULL;
    size_t count;
    int code = check(engine, engine->calls.value_type(value, &type), "output", reterr);

    code = code ? code : read_sides(engine, type, &ret->shape, reterr);
    code = code ? code : check(engine, engine->calls.tensor_data(value, &data), "output", reterr);
    if (!code && !shape_numbers(&ret->shape, &count)) {
        char text[SHAPE_TEXT_MAX];
        code = error_set(reterr, BATON_EINVAL, "%s: an output of %s", engine->base.name,
                         shape_text(&ret->shape, text));
    }
    if (type) {
        engine->calls.release_tensor_type(type);
    }
    ret->values = data;
    return code;
}

static int onnx_run(struct session *base, int64_t pictures, struct tensor *ret,
                    struct baton_error *reterr)
{
    struct onnx_own_session *session = (struct onnx_own_session *)base;
    const struct onnx_engine *engine = (const struct onnx_engine *)base->engine;
    const char *const *names = (const char *const *)session->names;
    const struct onnx_value *inputs[1] = {NULL};
    struct onnx_value *input = NULL;
    struct shape shape = base->input;
    size_t count = 0;
    int code;

    drop_values(session);
    shape.sides[0] = pictures;
    (void)shape_count(&shape, &count);
    code = check(engine,
                 engine->calls.create_tensor(engine->memory, base->values, count * sizeof(float),
                                             shape.sides, (size_t)shape.rank, ONNX_FLOAT32, &input),
                 "input", reterr);
    if (code) {
        return code;
    }
    inputs[0] = input;
    code = check(engine,
                 engine->calls.run(session->session, NULL, names, inputs, 1, names + 1,
                                   session->output_count, session->values),
                 "run", reterr);
    engine->calls.release_value(input);
    for (size_t i = 0; i < session->output_count && !code; i++) {
        code = read_output(engine, session->values[i], &ret[i], reterr);
    }
    return code ? code : (int)session->output_count;
}

/* ---- The engine ----------------------------------------------------------------------------- */

static void onnx_free(struct engine *base)
{
    struct onnx_engine *engine = (struct onnx_engine *)base;

    if (engine->memory) {
        engine->calls.release_memory(engine->memory);
    }
    if (engine->env) {
        engine->calls.release_env(engine->env);
    }
    /* The library stays: it has threads and thread-local data that outlive its sessions. */
    free(engine);
}

static const struct engine_calls onnx_engine_calls = {
    .open = onnx_open, .run = onnx_run, .close = onnx_close, .free = onnx_free};

static int find_calls(struct onnx_engine *engine, struct baton_error *reterr)
{
    const struct onnx_base *(*base_of)(void);
    void *symbol = dlsym(engine->library, "OrtGetApiBase");
    const struct onnx_base *base;
    void (*const *table)(void);

    if (!symbol) {
        return error_set(reterr, BATON_ENOENT, "libonnxruntime: has no OrtGetApiBase");
    }
    memcpy(&base_of, &symbol, sizeof(base_of));
    base = base_of();
    table = base->table(ONNX_API_VERSION);
    if (!table) {
        return error_set(reterr, BATON_ENOENT, "libonnxruntime %s: is older than 1.%d",
                         base->version(), ONNX_API_VERSION);
    }
    (void)snprintf(engine->base.name, sizeof(engine->base.name), "onnxruntime %s", base->version());
    /* NOLINTBEGIN(bugprone-macro-parentheses): names and types */
#define ONNX_TAKE(place, result, name, parameters)                                                 \
    engine->calls.name = (result(*) parameters)table[place];
    ONNX_CALLS(ONNX_TAKE)
#undef ONNX_TAKE
    /* NOLINTEND(bugprone-macro-parentheses) */
    return 0;
}

/* Adds the provider to options that no session uses, to see whether it exists. This also loads its
 * libraries, while files may still be opened. */
static void find_provider(struct onnx_engine *engine, enum engine_provider provider)
{
    static const char *const symbols[] = {
        [PROVIDER_CUDA] = "OrtSessionOptionsAppendExecutionProvider_CUDA",
        [PROVIDER_TENSORRT] = "OrtSessionOptionsAppendExecutionProvider_Tensorrt"};
    static const char *const names[] = {[PROVIDER_CUDA] = "cuda", [PROVIDER_TENSORRT] = "tensorrt"};
    const struct onnx_calls *calls = &engine->calls;
    char *name = engine->base.name;
    size_t used = strlen(name);
    struct onnx_options *options = NULL;
    void *symbol;

    if (provider == PROVIDER_CPU) {
        return;
    }
    symbol = dlsym(engine->library, symbols[provider]);
    memcpy(&engine->add_provider, &symbol, sizeof(symbol));
    if (symbol && check(engine, calls->create_options(&options), "options", NULL) == 0) {
        engine->base.uses_hardware =
            check(engine, engine->add_provider(options, 0), "provider", NULL) == 0;
        calls->release_options(options);
    }
    if (!engine->base.uses_hardware) {
        engine->add_provider = NULL;
    }
    (void)snprintf(name + used, sizeof(engine->base.name) - used, ", %s%s",
                   engine->base.uses_hardware ? "" : "cpu: there is no ", names[provider]);
}

int onnx_load(struct engine **ret, const struct engine_options *options, struct baton_error *reterr)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so.1.23",
                                        "libonnxruntime.so.1.21", "libonnxruntime.so", NULL};
    struct onnx_engine *engine = calloc(1, sizeof(*engine));
    int code;

    if (!engine) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    engine->base = (struct engine){.calls = &onnx_engine_calls, .kind = ENGINE_ONNXRUNTIME};
    engine->threads = options->threads ? options->threads : 1;
    /* Newer versions send reports on their use over HTTPS, from a thread of their own. */
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    code = engine_library(&engine->library, names, options->library, reterr);
    if (code) {
        error_wrap(reterr, "ONNX Runtime ('make deps-onnxruntime' fetches it)");
    }
    code = code ? code : find_calls(engine, reterr);
    code = code ? code
                : check(engine, engine->calls.create_env(ONNX_LOG_FATAL, "baton", &engine->env),
                        "start", reterr);
    code = code ? code
                : check(engine,
                        engine->calls.create_memory(ONNX_ALLOCATOR_DEVICE, ONNX_MEMORY_DEFAULT,
                                                    &engine->memory),
                        "memory", reterr);
    code = code ? code
                : check(engine, engine->calls.default_allocator(&engine->allocator), "allocator",
                        reterr);
    if (code) {
        onnx_free(&engine->base);
        return code;
    }
    find_provider(engine, options->provider);
    *ret = &engine->base;
    return 0;
}
