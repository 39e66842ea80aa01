/* An engine runs models, behind one small table of functions.
 *
 *   engine_load ─▶ session_open(model) ─▶ numbers into session->values ─▶ session_run ─▶ outputs
 *
 * Two engines run models in this process, each a shared library that is found at run time: ONNX
 * Runtime (preferred: it is faster and has more operators) and OpenCV's dnn. A third one with the
 * same table, remote.h, runs them in a confined child. A model has one input of float32 with four
 * sides, which is the picture, and up to SESSION_OUTPUTS_MAX outputs of float32.
 */
#ifndef DETECTOR_INFER_ENGINE_H
#define DETECTOR_INFER_ENGINE_H

#include "base/error.h"
#include "detector/infer/shape.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SESSION_OUTPUTS_MAX = 8,
    ENGINE_NAME_MAX = 127,
    ENGINE_THREADS_MAX = 64,
    MODEL_BYTES_MAX = 1 << 30,
};

/* The device that runs models, by ONNX Runtime's names. */
enum engine_provider { PROVIDER_CPU, PROVIDER_CUDA, PROVIDER_TENSORRT };

enum engine_kind { ENGINE_ANY, ENGINE_ONNXRUNTIME, ENGINE_OPENCV };

/* Every engine's own session begins with this struct. */
struct session {
    struct engine *engine;
    struct shape input; /* with the largest batch */
    int64_t batch_max;  /* its first side */
    float *values;      /* the input, as many numbers as that shape has; the caller fills it */
    size_t value_count;
};

struct engine_calls {
    int (*open)(struct session **ret, struct engine *engine, const void *model, size_t bytes,
                const struct shape *largest, struct baton_error *reterr);
    int (*run)(struct session *session, int64_t pictures, struct tensor *ret,
               struct baton_error *reterr);
    void (*close)(struct session *session);
    void (*free)(struct engine *engine);
};

/* Every engine begins with this struct. One thread at a time uses it with its sessions. */
struct engine {
    const struct engine_calls *calls;
    enum engine_kind kind;
    char name[ENGINE_NAME_MAX + 1]; /* for people: "onnxruntime 1.30.0", "…, cuda" */
    bool uses_hardware;             /* another provider than the CPU */
};

struct engine_options {
    int threads;                   /* of a session; 0: one */
    enum engine_provider provider; /* if it is missing the CPU is used, and the name says so */
    const char *library; /* path; NULL: beside this program, in its lib, the user's, the system's */
};

/* Takes "any", "onnxruntime" or "opencv"; -1: another text. */
int engine_kind_parse(const char *name);
/* Takes "cpu", "cuda" or "tensorrt"; -1: another text. */
int engine_provider_parse(const char *name);

/* ENGINE_ANY loads ONNX Runtime if it is found, else OpenCV. Returns BATON_ENOMEM, or BATON_ENOENT
 * if the engine is not installed; the error says how to install it. */
int engine_load(struct engine **ret, enum engine_kind kind, const struct engine_options *options,
                struct baton_error *reterr);
void engine_free(struct engine *engine); /* after its sessions; NULL allowed */

/* `model` is the bytes of an .onnx file, which are not needed afterwards. `largest` is the input's
 * shape with the largest batch; if the model takes fewer pictures, `batch_max` has their number.
 * Returns BATON_EINVAL if the model has no such input or the engine cannot run it; the error names
 * the engine, and another one that may. */
int session_open(struct session **ret, struct engine *engine, const void *model, size_t bytes,
                 const struct shape *largest, struct baton_error *reterr);
void session_close(struct session *session); /* NULL allowed */

/* Runs the model on session->values; `pictures` is 1 to batch_max. Returns the number of outputs,
 * at most SESSION_OUTPUTS_MAX; they are valid until the session runs again. */
int session_run(struct session *session, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
                struct baton_error *reterr);

/* ---- For the engines ------------------------------------------------------------------------ */

int onnx_load(struct engine **ret, const struct engine_options *options,
              struct baton_error *reterr);
int opencv_load(struct engine **ret, const struct engine_options *options,
                struct baton_error *reterr);

/* Sets the input: the largest one, with the batch that the model takes, and allocates the values.
 * `declared` is the shape in the file, where sides below 1 are open; NULL: unknown. */
int session_make_room(struct session *session, const char *name, const struct shape *declared,
                      const struct shape *largest, struct baton_error *reterr);

/* Opens the first of the shared libraries `names` (ends with NULL) that is found in ../lib,
 * ../lib/baton and ../../lib/baton from this program, where Baton is installed, in
 * ~/.local/lib/baton, or where the loader looks; or only `path`, unless it is NULL. The result is
 * for dlsym(). Returns BATON_ENOENT. */
int engine_library(void **ret, const char *const *names, const char *path,
                   struct baton_error *reterr);

#endif
