/* An engine (engine.h) whose models run in a confined child process, baton-model.
 *
 *   session->values ═══ shared memory ═══▶ baton-model: ONNX Runtime or OpenCV
 *        outputs    ◀══ shared memory ═══
 *
 * A model comes from outside, and the engines that read it were not written against attacks: the
 * child has no file, no network and no privilege when it gets the first byte of a model. The input
 * is not copied. When the child crashes or hangs, every call fails with BATON_ECLOSED, and the
 * caller needs a new engine.
 */
#ifndef DETECTOR_INFER_REMOTE_H
#define DETECTOR_INFER_REMOTE_H

#include "detector/infer/engine.h"

#include <stdbool.h>

enum { REMOTE_OPEN_MS = 60000, REMOTE_RUN_MS = 10000 };

struct remote_options {
    const char *program; /* path of baton-model; NULL: found beside this program */
    enum engine_kind kind;
    enum engine_provider provider;
    int threads;         /* 0: one */
    const char *library; /* NULL: searched */
    int open_ms;         /* until the child is killed; 0: REMOTE_OPEN_MS */
    int run_ms;          /* 0: REMOTE_RUN_MS */
    int cancel_fd;       /* once it can be read, every wait ends and the child is killed; 0: none */
};

/* Starts the child, which lives as long as the engine and the calling thread. Returns BATON_ENOENT
 * if the program or engine is missing, BATON_EUNAVAILABLE if it could not be confined, BATON_EIO or
 * BATON_ENOMEM. */
int remote_load(struct engine **ret, const struct remote_options *options,
                struct baton_error *reterr);

int remote_pid(const struct engine *engine); /* of a remote engine; 0: it has gone */
/* True if the child was killed neither by this process nor for its own calls, as by a system
 * without memory. */
bool remote_was_killed(const struct engine *engine);

#endif
