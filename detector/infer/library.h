/* A library that runs models, in the process that loads it: baton-model, after this process has
 * found the library and before it reads the first model.
 *
 * ONNX Runtime is preferred: it is faster and has more operators than OpenCV's dnn. Nothing is ever
 * closed or freed but the outputs of a run: a library has threads and data of its own, and the
 * process ends with its models, also if one of them could not be opened.
 */
#ifndef DETECTOR_INFER_LIBRARY_H
#define DETECTOR_INFER_LIBRARY_H

#include "base/error.h"
#include "detector/infer/shape.h"

enum {
    SESSION_OUTPUTS_MAX = 8,
    ENGINE_NAME_MAX = 127,
    MODEL_BYTES_MAX = 1 << 30,
    LIBRARY_PATH_MAX = 1024,
};

/* The device that runs models, by ONNX Runtime's names; and these, in the same order. */
enum engine_provider { PROVIDER_CPU, PROVIDER_CUDA, PROVIDER_TENSORRT };
#define ENGINE_PROVIDERS "cpu|cuda|tensorrt"

enum engine_kind { ENGINE_ANY, ENGINE_ONNXRUNTIME, ENGINE_OPENCV };
#define ENGINE_KINDS "any|onnxruntime|opencv"

struct library_options {
    enum engine_kind kind;
    enum engine_provider provider; /* if it is missing the CPU is used, and the name says so */
    int threads;                   /* of a model; 0: one */
    char path[LIBRARY_PATH_MAX]; /* "": beside this program, in its lib, the user's, the system's */
};

struct network;

/* One for each of the two. */
struct library {
    char name[ENGINE_NAME_MAX + 1]; /* for people: "onnxruntime 1.30.0", "…, cuda" */
    bool uses_hardware;             /* another provider than the CPU */
    int threads;
    /* Opens the .onnx file `bytes`, which are not needed afterwards. `network` has the library, the
     * values, and the input with the largest batch, which is lowered if the model takes fewer
     * pictures. Returns BATON_EINVAL if the model has no such input or cannot be run; the error
     * names the library. */
    int (*open)(struct network *network, const void *bytes, size_t count,
                struct baton_error *reterr);
    /* Returns the number of outputs, which are valid until the model runs again. */
    int (*run)(struct network *network, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
               struct baton_error *reterr);
};

struct network {
    struct library *library;
    struct shape input; /* with the largest batch */
    float *values;      /* of the input, which the caller owns and fills */
    void *own;          /* the library's */
};

/* ENGINE_ANY loads ONNX Runtime if it is found, else OpenCV. Returns BATON_ENOMEM, or BATON_ENOENT
 * if the library is not installed; the error says how to install it. */
int library_load(struct library **ret, const struct library_options *options,
                 struct baton_error *reterr);

/* ---- For the two (onnx.c, opencv_dnn.cc) ---------------------------------------------------- */

int onnx_load(struct library **ret, const struct library_options *options,
              struct baton_error *reterr);

/* Opens the first of the shared libraries `names` (ends with NULL) that is found in ../lib,
 * ../lib/baton and ../../lib/baton from this program, where Baton is installed, in
 * ~/.local/lib/baton, or where the loader looks; or only `path`, unless it is "". The result is
 * for dlsym(). Returns BATON_ENOENT. */
int library_find(void **ret, const char *const *names, const char *path,
                 struct baton_error *reterr);

#endif
