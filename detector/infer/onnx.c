/* The library ONNX Runtime. */
#include "detector/infer/library.h"
#include "detector/infer/onnx_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_MAX = 200 };

/* There is one library in a process. */
static struct onnx_calls calls;
static struct onnx_env *env;
static struct onnx_memory *memory;
static struct onnx_allocator *allocator;
/* Adds the provider to a session's options; NULL: the CPU. */
static struct onnx_status *(*add_provider)(struct onnx_options *, int device);

static struct library onnx;

struct onnx_model {
    struct onnx_session *session;
    char *names[1 + SESSION_OUTPUTS_MAX]; /* the input's, then the outputs' */
    size_t output_count;
    struct onnx_value *values[SESSION_OUTPUTS_MAX]; /* of the last run */
};

/* True if it failed. Frees the status. A long message begins with a place in the library's source
 * and ends with the reason. */
static bool fails(struct onnx_status *status, const char *what, struct baton_error *reterr)
{
    if (status) {
        const char *text = calls.error_message(status);
        size_t bytes = strlen(text), left_out = bytes > REASON_MAX ? bytes - REASON_MAX : 0;
        (void)error_set(reterr, BATON_EINVAL, "%s: %s: %s%s", onnx.name, what,
                        left_out > 0 ? "…" : "", text + left_out);
        calls.release_status(status);
    }
    return status != NULL;
}

/* ---- A model's inputs and outputs ----------------------------------------------------------- */

/* Reads the shape of an input, as declared, or of an output. */
static int read_shape(const struct onnx_tensor_type *type, const char *name, struct shape *ret,
                      struct baton_error *reterr)
{
    int element = 0;
    size_t rank = 0;

    if (fails(calls.element_type(type, &element), name, reterr) ||
        fails(calls.rank(type, &rank), name, reterr)) {
        return BATON_EINVAL;
    }
    if (element != ONNX_FLOAT32) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s' is not of float32 (but of ONNX's type %d); export the model with "
                         "float32 inputs and outputs",
                         name, element);
    }
    if (rank > SHAPE_RANK_MAX) {
        return error_set(reterr, BATON_EINVAL, "a tensor of %zu sides: at most %d", rank,
                         SHAPE_RANK_MAX);
    }
    *ret = (struct shape){.rank = (int)rank};
    return fails(calls.sides(type, ret->sides, rank), name, reterr) ? BATON_EINVAL : 0;
}

/* Reads the names, and the declared shape of the input. */
static int read_ports(struct onnx_model *own, struct shape *ret, struct baton_error *reterr)
{
    const struct onnx_tensor_type *tensor = NULL;
    struct onnx_type *type = NULL;
    char **names = own->names;
    size_t inputs = 0;
    bool has_failed =
        fails(calls.input_count(own->session, &inputs), "inputs", reterr) ||
        fails(calls.output_count(own->session, &own->output_count), "outputs", reterr);

    if (!has_failed &&
        (inputs != 1 || own->output_count < 1 || own->output_count > SESSION_OUTPUTS_MAX)) {
        return error_set(reterr, BATON_EINVAL,
                         "the model has %zu inputs and %zu outputs; it must have one input and 1 "
                         "to %d outputs",
                         inputs, own->output_count, SESSION_OUTPUTS_MAX);
    }
    has_failed = has_failed ||
                 fails(calls.input_name(own->session, 0, allocator, &names[0]), "name", reterr) ||
                 fails(calls.input_type(own->session, 0, &type), "type", reterr) ||
                 fails(calls.as_tensor_type(type, &tensor), "type", reterr);
    for (size_t i = 0; i < own->output_count && !has_failed; i++) {
        has_failed =
            fails(calls.output_name(own->session, i, allocator, &names[1 + i]), "name", reterr);
    }
    if (has_failed) {
        return BATON_EINVAL;
    }
    return tensor ? read_shape(tensor, names[0], ret, reterr)
                  : error_set(reterr, BATON_EINVAL, "'%s' is no tensor", names[0]);
}

/* Lowers the batch to the one that is declared, where sides below 1 are open. */
static int fit_input(struct shape *input, const char *name, const struct shape *declared,
                     struct baton_error *reterr)
{
    char wanted[SHAPE_TEXT_MAX];
    char given[SHAPE_TEXT_MAX];

    if (declared->sides[0] > 0 && declared->sides[0] < input->sides[0]) {
        input->sides[0] = declared->sides[0];
    }
    return shape_fits(declared, input)
               ? 0
               : error_set(reterr, BATON_EINVAL,
                           "the model's input '%s' is %s, not %s; see width, height and layout of "
                           "its `input`; a batch must be open or 1",
                           name, shape_text(declared, wanted), shape_text(input, given));
}

/* ---- A model -------------------------------------------------------------------------------- */

/* Spinning is off: waiting threads would use twice the CPU that the work needs. */
static int make_session(struct onnx_session **ret, const void *bytes, size_t count,
                        struct baton_error *reterr)
{
    struct onnx_options *options = NULL;
    bool has_failed =
        fails(calls.create_options(&options), "options", reterr) ||
        fails(calls.set_optimization(options, ONNX_OPTIMIZE_ALL), "options", reterr) ||
        fails(calls.set_intra_threads(options, onnx.threads), "threads", reterr) ||
        fails(calls.set_inter_threads(options, 1), "threads", reterr) ||
        fails(calls.set_config(options, "session.intra_op.allow_spinning", "0"), "options",
              reterr) ||
        (add_provider && fails(add_provider(options, 0), "provider", reterr)) ||
        fails(calls.create_session(env, bytes, count, options, ret), "model", reterr);

    return has_failed ? BATON_EINVAL : 0;
}

static int onnx_open(struct network *network, const void *bytes, size_t count,
                     struct baton_error *reterr)
{
    struct onnx_model *own = calloc(1, sizeof(*own));
    struct shape declared = {0};
    int code = own ? make_session(&own->session, bytes, count, reterr)
                   : error_set(reterr, BATON_ENOMEM, "out of memory");

    code = code ? code : read_ports(own, &declared, reterr);
    code = code ? code : fit_input(&network->input, own->names[0], &declared, reterr);
    network->own = own;
    return code;
}

static int read_output(struct onnx_value *value, const char *name, struct tensor *ret,
                       struct baton_error *reterr)
{
    struct onnx_tensor_type *type = NULL;
    void *data = NULL;
    int code = fails(calls.value_type(value, &type), name, NULL)
                   ? error_set(reterr, BATON_EINVAL, "'%s' is no tensor", name)
                   : read_shape(type, name, &ret->shape, reterr);

    if (!code && fails(calls.tensor_data(value, &data), name, reterr)) {
        code = BATON_EINVAL;
    }
    if (!code && shape_numbers(&ret->shape) < 0) {
        char text[SHAPE_TEXT_MAX];
        code = error_set(reterr, BATON_EINVAL, "%s: an output of %s", onnx.name,
                         shape_text(&ret->shape, text));
    }
    if (type) {
        calls.release_tensor_type(type);
    }
    ret->values = data;
    return code;
}

static int onnx_run(struct network *network, int64_t pictures, struct tensor *ret,
                    struct baton_error *reterr)
{
    struct onnx_model *own = network->own;
    const char *const *names = (const char *const *)own->names;
    struct onnx_value *input = NULL;
    struct shape shape = network->input;
    int code;

    for (size_t i = 0; i < own->output_count; i++) {
        if (own->values[i]) {
            calls.release_value(own->values[i]);
            own->values[i] = NULL;
        }
    }
    shape.sides[0] = pictures;
    if (fails(calls.create_tensor(memory, network->values,
                                  (size_t)shape_numbers(&shape) * sizeof(float), shape.sides,
                                  (size_t)shape.rank, ONNX_FLOAT32, &input),
              "input", reterr)) {
        return BATON_EINVAL;
    }
    const struct onnx_value *const inputs[] = {input};
    code = fails(calls.run(own->session, NULL, names, inputs, 1, names + 1, own->output_count,
                           own->values),
                 "run", reterr)
               ? BATON_EINVAL
               : 0;
    calls.release_value(input);
    for (size_t i = 0; i < own->output_count && !code; i++) {
        code = read_output(own->values[i], names[1 + i], &ret[i], reterr);
    }
    return code ? code : (int)own->output_count;
}

/* ---- The library ---------------------------------------------------------------------------- */

static int find_calls(void *library, struct baton_error *reterr)
{
    const struct onnx_base *(*base_of)(void);
    void *symbol = dlsym(library, "OrtGetApiBase");
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
    (void)snprintf(onnx.name, sizeof(onnx.name), "onnxruntime %s", base->version());
    /* NOLINTBEGIN(bugprone-macro-parentheses): names and types */
#define ONNX_TAKE(place, result, name, parameters) calls.name = (result(*) parameters)table[place];
    ONNX_CALLS(ONNX_TAKE)
#undef ONNX_TAKE
    /* NOLINTEND(bugprone-macro-parentheses) */
    return 0;
}

/* Adds the provider to options that no session uses, to see whether it exists. This also loads its
 * libraries, while files may still be opened. */
static void find_provider(void *library, enum engine_provider provider)
{
    static const char *const symbols[] = {
        [PROVIDER_CUDA] = "OrtSessionOptionsAppendExecutionProvider_CUDA",
        [PROVIDER_TENSORRT] = "OrtSessionOptionsAppendExecutionProvider_Tensorrt"};
    static const char *const names[] = {[PROVIDER_CUDA] = "cuda", [PROVIDER_TENSORRT] = "tensorrt"};
    size_t used = strlen(onnx.name);
    struct onnx_options *options = NULL;
    void *symbol;

    if (provider == PROVIDER_CPU) {
        return;
    }
    symbol = dlsym(library, symbols[provider]);
    memcpy(&add_provider, &symbol, sizeof(symbol));
    onnx.uses_hardware = symbol && !fails(calls.create_options(&options), "options", NULL) &&
                         !fails(add_provider(options, 0), "provider", NULL);
    if (!onnx.uses_hardware) {
        add_provider = NULL;
    }
    (void)snprintf(onnx.name + used, sizeof(onnx.name) - used, ", %s%s",
                   onnx.uses_hardware ? "" : "cpu: there is no ", names[provider]);
}

int onnx_load(struct library **ret, const struct library_options *options,
              struct baton_error *reterr)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so.1.23",
                                        "libonnxruntime.so.1.21", "libonnxruntime.so", NULL};
    void *library;
    int code;

    /* Newer versions send reports on their use over HTTPS, from a thread of their own. */
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    code = library_find(&library, names, options->path, reterr);
    if (code) {
        error_wrap(reterr, "ONNX Runtime ('make deps-onnxruntime' fetches it)");
    }
    code = code ? code : find_calls(library, reterr);
    if (code) {
        return code;
    }
    /* Not the arena: the memory is the caller's. */
    if (fails(calls.create_env(ONNX_LOG_FATAL, "baton", &env), "start", reterr) ||
        fails(calls.create_memory(ONNX_ALLOCATOR_DEVICE, ONNX_MEMORY_DEFAULT, &memory), "memory",
              reterr) ||
        fails(calls.default_allocator(&allocator), "allocator", reterr)) {
        return BATON_EINVAL;
    }
    onnx.open = onnx_open;
    onnx.run = onnx_run;
    find_provider(library, options->provider);
    *ret = &onnx;
    return 0;
}
