/* An engine runs models: ONNX Runtime or OpenCV's dnn, in a confined child process, baton-model.
 *
 *   engine_start(models) ─▶ session_open ─▶ numbers into session->values ─▶ session_run ─▶ outputs
 *
 *   session->values ═══ shared memory ═══▶ baton-model: library.h
 *        outputs    ◀══ shared memory ═══
 *
 * A model has one input of float32 with four sides, which is the picture, and up to
 * SESSION_OUTPUTS_MAX outputs of float32. It comes from outside, and the libraries that read it
 * were not written against attacks: the child has no other file, no network and no privilege when
 * it reads the first byte of a model. The input is not copied. When the child crashes or hangs,
 * every call fails with BATON_ECLOSED, and the caller needs a new engine; BATON_EUNAVAILABLE if the
 * child was killed neither by this process nor for its own calls, as by a system without memory.
 */
#ifndef DETECTOR_INFER_ENGINE_H
#define DETECTOR_INFER_ENGINE_H

#include "detector/infer/library.h"

#include <stdatomic.h>

enum { ENGINE_OPEN_MS = 60000, ENGINE_RUN_MS = 10000 };

struct engine_options {
    const char *program; /* path of baton-model; NULL: found beside this program */
    struct library_options library;
    int open_ms;                    /* until the child is killed; 0: ENGINE_OPEN_MS */
    int run_ms;                     /* 0: ENGINE_RUN_MS */
    const atomic_bool *is_canceled; /* borrowed; ends every wait and the child; NULL: never */
};

struct engine_model {
    int file;             /* an .onnx file that can be mapped */
    struct shape largest; /* the input's shape with the largest batch */
};

struct engine; /* opaque; one thread at a time uses it with its sessions */

struct session {
    struct engine *engine;
    int64_t batch_max;    /* pictures that the model takes at once */
    float *values;        /* the input, which the caller fills; the same of all sessions */
    size_t picture_count; /* numbers of one picture */
    struct shape largest; /* see struct engine_model */
};

/* Starts the child, which lives as long as the engine and the calling thread. The models, of which
 * there are WIRE_MODELS_MAX at most (wire.h), are borrowed during the call. Returns BATON_ENOENT if
 * the library is missing, BATON_EUNAVAILABLE if the program cannot be started or not be confined,
 * or ends, or BATON_ENOMEM. */
int engine_start(struct engine **ret, const struct engine_options *options,
                 const struct engine_model *models, size_t count, struct baton_error *reterr);
void engine_free(struct engine *engine); /* with its sessions; NULL allowed */

const char *engine_name(const struct engine *engine); /* for people, see struct library */
int engine_pid(const struct engine *engine);          /* of the child; 0: it has gone */

/* Opens the engine's model `index`, once. If it takes fewer pictures than its largest batch,
 * `batch_max` has their number. The session lives as long as its engine. Returns BATON_EINVAL if
 * the model has no such input or cannot be run; the error names the engine, and another one that
 * may. */
int session_open(struct session **ret, struct engine *engine, size_t index,
                 struct baton_error *reterr);

/* Runs the model on session->values; `pictures` is 1 to batch_max. Returns the number of outputs,
 * at most SESSION_OUTPUTS_MAX; they are valid until the session runs again. */
int session_run(struct session *session, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
                struct baton_error *reterr);

#endif
