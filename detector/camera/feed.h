/* A user's options, callbacks and statistics of a camera. feed_int.h has the feed itself. */
#ifndef DETECTOR_CAMERA_FEED_H
#define DETECTOR_CAMERA_FEED_H

#include "base/clock.h"
#include "base/error.h"
#include "detector/camera/frames.h"
#include "detector/camera/url.h"

enum {
    CAMERA_FEEDS_MAX = 2048, /* distinct URLs: a subscription may have a stream and snapshots */
    CAMERA_STALL_MS = 10000,
    CAMERA_OPEN_MS = 10000,
    CAMERA_SNAPSHOT_MS = 5000,
};

/* The first user's options apply to the feed; each user has its own `interval_ms`. */
struct camera_options {
    int interval_ms;      /* at least so long between two frames; 0: every frame; of http URLs how
                             often to ask, 0: CAMERA_SNAPSHOT_MS */
    int stall_ms;         /* no frame for so long: reopened. 0: CAMERA_STALL_MS */
    int open_ms;          /* 0: CAMERA_OPEN_MS */
    bool uses_udp;        /* RTSP media over UDP; else over the connection */
    const char *hardware; /* of FFmpeg: "vaapi", "cuda"; NULL: software. Software if not there */
    const char *ca_file;  /* certificates that rtsps and https are checked against; NULL: the
                             system's. Longer than MESSAGE_PATH_MAX: BATON_EINVAL */
    bool trusts_any;      /* rtsps, https: whatever certificate is shown */
    bool is_paced;        /* clip: at its own speed. Else as fast as it decodes */
    bool is_lossless;     /* clip: every frame, the next when this one was given back */
    const char *label;    /* the camera's user, for the log; NULL: none */
    int motion_permille;  /* above 0: only frames in which so much of the picture moved */
};

struct camera_callbacks {
    /* Borrowed during the call, see camera_frame_ref. */
    void (*frame)(void *userdata, const struct camera_frame *frame);
    void (*online)(void *userdata, bool is_online); /* on change; false at first, untold; or NULL */
    /* A clip has been played to its end; it is played again only if it is opened again. May be
     * NULL. */
    void (*ended)(void *userdata);
    void *userdata;
};

struct camera_stats {
    char url[URL_MASKED_MAX];
    bool is_online;
    char codec[32], hardware[32]; /* "" until opened; hardware "": software */
    int width, height;
    double nominal_fps;                  /* 0: unknown */
    span duration;                       /* of a clip, by its header; 0: unknown */
    unsigned subscribers;                /* of the feed */
    int pid;                             /* of the child; 0: none */
    uint64_t received, decoded, dropped; /* packets in; frames; of these not shown: cap, damage */
    uint64_t shown;                      /* handed to subscribers */
    uint64_t skipped; /* announced, but replaced by a newer one, or too many are held */
    uint64_t still;   /* of this subscription: kept back because nothing moved */
    uint64_t restarts;
    char last_error[BATON_ERROR_MESSAGE_MAX]; /* "": none yet */
};

#endif
