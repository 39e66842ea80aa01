/* The messages of baton-detector and its baton-model. Only this folder includes this header.
 *
 *   parent ── START ─▶ child, confined now ── the library ─▶
 *          ── OPEN ─▶ ── the number of pictures that the model takes ─▶
 *          ── RUN ─▶ ── shapes; the numbers are in the memory of outputs, one after another ─▶
 *
 * The child inherits memory, first that of the outputs, then that of the input, which all models
 * share, and the models' files. Each message is one datagram of one struct: both ends are the same
 * build. Every request has one answer. Models stay open until the child ends. The child trusts the
 * parent; the parent checks every answer with answer_check().
 */
#ifndef DETECTOR_INFER_WIRE_H
#define DETECTOR_INFER_WIRE_H

#include "detector/helper/helper.h"
#include "detector/infer/library.h"

enum {
    WIRE_MODELS = HELPER_FILE + 1, /* descriptors of the child, after that of the memory */
    WIRE_MODELS_MAX = HELPER_FILES_MAX - 1,
    WIRE_OUTPUT_BYTES = 64 << 20, /* of all outputs of one run; untouched pages use no memory */
};

enum wire_type { WIRE_START = 1, WIRE_OPEN, WIRE_RUN };

struct wire_request {
    enum wire_type type;
    unsigned model;       /* OPEN, RUN: from 0 */
    int64_t pictures;     /* RUN */
    struct shape largest; /* OPEN: the input with the largest batch */
    size_t memory_bytes;  /* START */
    struct library_options library;
};

struct wire_answer {
    int code;          /* 0 or BATON_E…, then `error` says more */
    int output_count;  /* RUN */
    int64_t batch_max; /* OPEN */
    struct shape shapes[SESSION_OUTPUTS_MAX];
    char name[ENGINE_NAME_MAX + 1]; /* START */
    char error[BATON_ERROR_MESSAGE_MAX];
};

/* True if the answer is within its bounds. Terminates its texts. */
bool answer_check(struct wire_answer *answer, size_t bytes);

#endif
