/* The messages between a camera's child and its parent, one datagram each.
 *
 *   parent ─ config, once; requests ─────────────────▶ child
 *   parent ◀─ OPENED · FRAME · PROGRESS · END ───────── child
 *
 * A datagram is the struct as it lies in memory, since both programs are of one build and one
 * machine. The child inherits the socket, at whose end it ends, too, and the memory for pictures
 * (ring.h). The config goes over the socket, and never in arguments or the environment, because it
 * holds the URL with its password. A message of the child is hostile until it was checked here,
 * since the child reads bytes from the network with decoders that had faults before.
 */
#ifndef DETECTOR_CAMERA_MESSAGE_H
#define DETECTOR_CAMERA_MESSAGE_H

#include "base/error.h"
#include "detector/camera/url.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MESSAGE_VERSION = 7,
    MESSAGE_NAME_MAX = 31,
    MESSAGE_TEXT_MAX = 300,
    MESSAGE_URL_MAX = 4096,
};

/* What the broker of a child (broker.h) is called in /proc/PID/comm. */
#define BROKER_NAME "baton-broker"

/* The options of the first user apply to the feed, and of all `interval_ms` the shortest one. */
struct camera_options {
    int interval_ms; /* the least time between two frames, 0: every frame; for http URLs the time
                        between two requests; the child is told later, as it may change */
    int motion_permille; /* the parent's; above 0: only frames in which this share of the picture
                            moved */
    int stall_ms;        /* reopened after so long without a frame; 0: CAMERA_STALL_MS */
    int open_ms;         /* 0: CAMERA_OPEN_MS */
    bool uses_udp;       /* media of rtsp URLs come over UDP instead of the connection */
    bool trusts_any;     /* rtsps and https accept every certificate */
    bool is_paced;       /* a clip plays at its own speed, instead of as fast as it decodes */
    bool is_lossless;    /* a clip shows every frame, and the next one only when this one was given
                            back */
    char hardware[MESSAGE_NAME_MAX + 1]; /* FFmpeg's name, "vaapi" or "cuda"; "": software, which
                                            also replaces missing hardware */
    char ca_file[PATH_MAX];              /* the authorities for rtsps and https; "": the system's */
};

/* Of all children of a feed. */
struct camera_counts {
    uint64_t received; /* packets of the video stream, or snapshots */
    uint64_t decoded;  /* frames */
    uint64_t dropped;  /* of these: not shown, because of the cap or damage */
};

enum source_kind { SOURCE_RTSP, SOURCE_SNAPSHOT, SOURCE_FILE };

struct camera_config {
    uint32_t version; /* MESSAGE_VERSION */
    enum source_kind kind;
    uint64_t sequence;           /* of the last child's newest frame: numbers grow over restarts, */
    struct camera_counts counts; /* as these do */
    struct camera_options options;
    struct url parts;                         /* of the URL; of a file only what is shown of it */
    char url[MESSAGE_URL_MAX + URL_PORT_MAX]; /* see url_without_tls(); or "file:" and a path */
};

struct camera_request {
    enum { REQUEST_SLOT_BACK, REQUEST_INTERVAL } type;
    uint32_t value; /* the slot; or the least time between two frames, in µs, and 0: every frame */
};

enum message_type {
    MESSAGE_OPENED = 1,
    MESSAGE_FRAME,
    MESSAGE_PROGRESS, /* it decodes, although nothing was shown lately */
    MESSAGE_END,      /* its last message */
};

enum frame_flags {
    FRAME_FULL_RANGE = 1 << 0, /* luma of 0 to 255, not 16 to 235 */
    FRAME_BT709 = 1 << 1,      /* its matrix; else BT.601 */
    FRAME_FLAGS = (1 << 2) - 1,
};

/* It has no bool and no enum: a hostile child writes it, and of those not every value is one. */
struct camera_message {
    uint32_t type; /* enum message_type; what it does not use is 0 */
    /* OPENED, FRAME */
    uint32_t width, height;
    /* OPENED */
    uint32_t fps_milli;   /* 0: unknown */
    uint32_t duration_ms; /* of a file, by its header; 0: unknown */
    char codec[MESSAGE_NAME_MAX + 1];
    char hardware[MESSAGE_NAME_MAX + 1]; /* "": software */
    /* FRAME */
    uint8_t slot, flags;
    uint64_t sequence; /* of frames that were due, after the config's */
    int64_t pts_us;
    int64_t captured_ns; /* boot clock, when its last packet arrived */
    /* FRAME, PROGRESS */
    struct camera_counts counts;
    /* END */
    int32_t code; /* BATON_E…; 0: after a file's end, or a request to stop */
    char text[MESSAGE_TEXT_MAX + 1];
};

/* Checks a datagram of the child that was received into *message, and makes its texts printable
 * ASCII. Returns BATON_EPROTO. */
int message_check(struct camera_message *message, size_t bytes, struct baton_error *reterr);

#endif
