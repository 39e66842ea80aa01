/* Reads the frames of one WebSocket connection (RFC 6455, 5), each byte once, and makes frames.
 *
 *   FIN, 3 bits, opcode (4) │ mask?, length (7) │ length: 0, 2 or 8 bytes │ key: 0 or 4 │ payload
 *
 * A frame is judged as soon as its head is here: one that is too long is refused before its payload
 * comes. A text is checked byte by byte, wherever it is cut. Pure: bytes go in, in pieces of any
 * size, and messages or a refusal come out.
 */
#ifndef WEB_FRAMES_H
#define WEB_FRAMES_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEB_FRAME_HEAD_MAX = 14,
    WEB_MASK_BYTES = 4,
    WEB_CONTROL_MAX = 125,    /* bytes of a control frame's payload */
    WEB_FRAGMENTS_MAX = 4096, /* of a message */

    WEB_CLOSE_PROTOCOL_ERROR = 1002,
    WEB_CLOSE_NOT_TEXT = 1007,
    WEB_CLOSE_POLICY = 1008,
    WEB_CLOSE_TOO_LARGE = 1009,
};

enum web_opcode {
    WEB_OPCODE_MORE = 0,
    WEB_OPCODE_TEXT = 1,
    WEB_OPCODE_BINARY = 2,
    WEB_OPCODE_CLOSE = 8,
    WEB_OPCODE_PING = 9,
    WEB_OPCODE_PONG = 10,
};

enum web_frame {
    WEB_FRAME_MORE,    /* all bytes were taken, and nothing is complete */
    WEB_FRAME_TEXT,    /* `message` */
    WEB_FRAME_BINARY,  /* whose bytes are not kept */
    WEB_FRAME_PING,    /* `control` */
    WEB_FRAME_PONG,    /* `control` */
    WEB_FRAME_CLOSE,   /* `code` and `control`, the peer's reason */
    WEB_FRAME_REFUSED, /* close with `code` and `reason`; what follows has no meaning */
};

/* Where a text is, between its bytes. */
struct web_utf8 {
    uint8_t wanted;    /* bytes of a code point that are still to come */
    uint8_t low, high; /* bounds of the next of them */
};

struct web_frames {
    struct buffer message; /* a text as far as it came; valid until the next read */
    uint8_t control[WEB_CONTROL_MAX];
    size_t control_bytes;
    uint64_t control_total; /* bytes of all control frames so far, with their heads */
    unsigned code;          /* 0: a close frame without one */
    const char *reason;     /* static text, of a refusal */

    /* The reader's own. */
    bool wants_mask; /* the peer is a client */
    size_t message_max;
    uint8_t head[WEB_FRAME_HEAD_MAX];
    unsigned head_bytes;
    uint64_t left;                /* bytes of the payload that are still to come */
    uint64_t length;              /* of the message so far, with the frame whose head was read */
    unsigned at;                  /* in the mask */
    uint8_t mask[WEB_MASK_BYTES]; /* zeros: none */
    bool is_in_payload;           /* the head is read */
    bool is_over;                 /* a message was given out, and its bytes go with the next read */
    enum web_opcode opcode, kind; /* of this frame; of the message, MORE: none has begun */
    bool is_final;
    unsigned fragments;
    struct web_utf8 utf8;
};

/* is_server: the peer is a client, which masks. */
void web_frames_init(struct web_frames *frames, bool is_server, size_t message_max);
void web_frames_fini(struct web_frames *frames);

enum web_frame web_frames_read(struct web_frames *frames, const void *data, size_t bytes,
                               size_t *ret_taken);

/* The head of a frame that is a whole message; returns its bytes. mask: of a client's frame, whose
 * payload is then masked by web_mask(); NULL: a server's. */
size_t web_frame_head(uint8_t ret[static WEB_FRAME_HEAD_MAX], enum web_opcode opcode, size_t bytes,
                      const uint8_t mask[WEB_MASK_BYTES]);
/* Masks bytes, or unmasks them; `at`: how many bytes of the payload are in front of them. */
void web_mask(uint8_t *to, const uint8_t *from, size_t bytes, const uint8_t mask[WEB_MASK_BYTES],
              unsigned at);

/* Takes the next bytes of a text. False: they are not UTF-8. It may end where `wanted` is 0. */
bool web_utf8_take(struct web_utf8 *utf8, const uint8_t *data, size_t bytes);

#endif
