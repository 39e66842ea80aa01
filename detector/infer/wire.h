/* The messages of baton-detector and its baton-model. Only this folder includes this header.
 *
 *   parent ── START (memory of outputs) ─▶ child, confined now ── STARTED: its engine ─▶
 *          ── OPEN (model, memory of the input) ─▶ ── OPENED: input, outputs ─▶
 *          ── RUN ─▶ ── RAN: shapes; the numbers are in the memory of outputs, one after another ─▶
 *          ── CLOSE ─▶ ── CLOSED ─▶
 *
 * Each message is one datagram of one struct: both ends are the same build. Every request has one
 * answer. The messages for each frame, RUN and RAN, are the short beginning of their structs. The
 * child trusts the parent; the parent checks every answer with answer_check().
 */
#ifndef DETECTOR_INFER_WIRE_H
#define DETECTOR_INFER_WIRE_H

#include "detector/infer/engine.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WIRE_FD = 3,
    WIRE_SESSIONS_MAX = 64,
    WIRE_PATH_MAX = 1024,
    WIRE_OUTPUT_BYTES = 64 << 20, /* of all outputs of one run; untouched pages use no memory */
};

enum wire_type { WIRE_START = 1, WIRE_OPEN, WIRE_RUN, WIRE_CLOSE };

struct wire_request {
    enum wire_type type;
    unsigned session;
    int64_t pictures; /* RUN */
    /* START; with the memory of outputs */
    enum engine_kind kind;
    enum engine_provider provider;
    int threads;
    char library[WIRE_PATH_MAX]; /* "": searched */
    /* OPEN; with the model and the memory of the input, which has the largest input's size */
    struct shape largest;
    size_t model_bytes;
};

struct wire_answer {
    int code;                                 /* 0 or BATON_E…, then `error` says more */
    int output_count;                         /* OPENED, RAN */
    struct shape shapes[SESSION_OUTPUTS_MAX]; /* RAN: of the outputs; nothing follows these */
    char error[BATON_ERROR_MESSAGE_MAX];
    enum engine_kind kind; /* STARTED */
    char name[ENGINE_NAME_MAX + 1];
    struct port input; /* OPENED */
    int64_t batch_max;
    struct port outputs[SESSION_OUTPUTS_MAX];
};

/* Only the used bytes are sent: the length of an answer to a request of this type, with 0 to
 * SESSION_OUTPUTS_MAX outputs. */
size_t answer_bytes(const struct wire_answer *answer, enum wire_type to);

/* True if an answer of so many bytes to a request of this type is whole and within its bounds.
 * Terminates its texts. */
bool answer_check(struct wire_answer *answer, size_t bytes, enum wire_type to);

/* Sends a request with up to two descriptors (-1: none). False: the other end is closed. */
bool wire_send(int socket, const struct wire_request *request, int first, int second);
/* Receives on the other end. Missing descriptors are -1; false: the connection has ended. */
bool wire_receive(int socket, struct wire_request *ret, int ret_fds[2]);

#endif
