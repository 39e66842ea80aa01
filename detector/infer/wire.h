/* The messages of baton-detector and its baton-model. Only this folder includes this header.
 *
 *   parent ── START ─▶ child, confined now ── the library ─▶
 *          ── ARCHIVE ─▶ ── the length of pipeline.json, which is in the memory of outputs ─▶
 *          ── OPEN ─▶ ── the number of pictures that the model takes ─▶
 *          ── RUN ─▶ ── shapes; the numbers are in the memory of outputs, one after another ─▶
 *
 * The child inherits memory, first that of the outputs, then that of the input, which all models
 * share, and the archive. Each message is one datagram of one struct: both ends are the same
 * build. Every request has one answer. Models stay open until the child ends. The child trusts the
 * parent; the parent checks every answer with answer_check().
 */
#ifndef DETECTOR_INFER_WIRE_H
#define DETECTOR_INFER_WIRE_H

#include "detector/helper/helper.h"
#include "detector/infer/library.h"
#include "detector/model/pipeline.h"

enum {
    WIRE_MEMORY = HELPER_FILE, /* descriptors of the child */
    WIRE_ARCHIVE_FILE,
    /* Untouched pages use no memory. */
    WIRE_OUTPUT_BYTES = 64 << 20, /* of all outputs of one run */
    WIRE_INPUT_BYTES = 192 << 20, /* one picture of 4096 x 4096, or more smaller ones */
    WIRE_BYTES = WIRE_OUTPUT_BYTES + WIRE_INPUT_BYTES,
};

enum wire_type { WIRE_START = 1, WIRE_ARCHIVE, WIRE_OPEN, WIRE_RUN };

struct wire_request {
    enum wire_type type;
    unsigned model;                   /* OPEN, RUN: from 0 */
    int64_t pictures;                 /* RUN */
    struct shape largest;             /* OPEN: the input with the largest batch */
    char file[PIPELINE_FILE_MAX + 1]; /* OPEN */
    uint64_t archive_bytes_max;       /* ARCHIVE */
    struct library_options library;   /* START */
};

struct wire_answer {
    int code;          /* 0 or BATON_E…, then `error` says more */
    int output_count;  /* RUN */
    int64_t batch_max; /* OPEN */
    size_t text_bytes; /* ARCHIVE */
    struct shape shapes[SESSION_OUTPUTS_MAX];
    char name[ENGINE_NAME_MAX + 1]; /* START */
    char error[BATON_ERROR_MESSAGE_MAX];
};

/* True if the answer is within its bounds. Terminates its texts. */
bool answer_check(struct wire_answer *answer, size_t bytes);

#endif
