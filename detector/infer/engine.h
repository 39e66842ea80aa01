/* An engine opens an archive and runs its models, by ONNX Runtime or OpenCV's dnn, in a confined
 * child process, baton-model.
 *
 *   engine_start(archive) ─▶ session_open ─▶ numbers into session->values ─▶ session_run ─▶ outputs
 *
 *   session->values ═══ shared memory ═══▶ baton-model: library.h
 *        outputs    ◀══ shared memory ═══
 *
 * A model has one input of float32 with four sides, which is the picture, and up to
 * SESSION_OUTPUTS_MAX outputs of float32. An archive comes from outside, and the libraries that
 * read it and its models were not written against attacks: the child has no other file, no network
 * and no privilege when it reads the first byte of it. The input is not copied. When the child
 * crashes or hangs, every call fails with BATON_ECLOSED, and the caller needs a new engine;
 * BATON_EUNAVAILABLE if the child was killed neither by this process nor for its own calls, as by a
 * system without memory.
 */
#ifndef DETECTOR_INFER_ENGINE_H
#define DETECTOR_INFER_ENGINE_H

#include "detector/infer/library.h"
#include "detector/model/pipeline.h"

#include <stdatomic.h>

enum { ENGINE_OPEN_MS = 60000, ENGINE_RUN_MS = 10000 };

struct engine_options {
    const char *program; /* path of baton-model; NULL: found beside this program */
    struct library_options library;
    uint64_t archive_bytes_max;     /* 0: any size */
    int open_ms;                    /* until the child is killed; 0: ENGINE_OPEN_MS */
    int run_ms;                     /* 0: ENGINE_RUN_MS */
    const atomic_bool *is_canceled; /* borrowed; ends every wait and the child; NULL: never */
};

struct engine; /* opaque; one thread at a time uses it with its sessions */

struct session {
    struct engine *engine;
    int64_t batch_max;    /* pictures that the model takes at once */
    float *values;        /* the input, which the caller fills; the same of all sessions */
    size_t picture_count; /* numbers of one picture */
};

/* Starts the child, which lives as long as the engine and the calling thread, and opens the archive
 * (borrowed) by a descriptor of its own. A pipeline of zeroes is read from it, and is the caller's
 * to free, also after an error. Returns the codes of archive_open() in detector/model/archive.h and
 * of pipeline_parse(), BATON_ENOENT if the library is missing, or BATON_EUNAVAILABLE if the program
 * cannot be started or not be confined, or ends. */
int engine_start(struct engine **ret, const struct engine_options *options, int archive_fd,
                 struct pipeline *pipeline, struct baton_error *reterr);
void engine_free(struct engine *engine); /* with its sessions; NULL allowed */

const char *engine_name(const struct engine *engine); /* for people, see struct library */
int engine_pid(const struct engine *engine);          /* of the child; 0: it has gone */

/* Unpacks the file and opens it. `largest` is the input with the largest batch; if the model takes
 * fewer pictures, or they find no room, `batch_max` has their number. The session lives as long as
 * its engine, which has PIPELINE_MODELS_MAX at most. Returns the codes of archive_unpack(), or
 * BATON_EINVAL if the model has no such input or cannot be run; the error names the engine, and
 * another one that may. */
int session_open(struct session **ret, struct engine *engine, const char *file,
                 struct shape largest, struct baton_error *reterr);

/* Runs the model on session->values; `pictures` is 1 to batch_max. Returns the number of outputs,
 * at most SESSION_OUTPUTS_MAX; they are valid until the session runs again. */
int session_run(struct session *session, int64_t pictures, struct tensor ret[SESSION_OUTPUTS_MAX],
                struct baton_error *reterr);

#endif
