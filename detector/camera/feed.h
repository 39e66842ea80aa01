/* The options, callbacks and statistics of a camera. feed_int.h has the feed itself. */
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

/* The options of the first user apply to the feed, and of all `interval_ms` the shortest one. */
struct camera_options {
    int interval_ms; /* the least time between two frames, 0: every frame; for http URLs the time
                        between two requests, 0: CAMERA_SNAPSHOT_MS */
    int stall_ms;    /* reopened after so long without a frame; 0: CAMERA_STALL_MS */
    int open_ms;     /* 0: CAMERA_OPEN_MS */
    bool uses_udp;   /* RTSP media come over UDP instead of the connection */
    const char *hardware; /* FFmpeg's name, "vaapi" or "cuda"; NULL: software, which also replaces
                             missing hardware */
    const char *ca_file;  /* the authorities for rtsps and https; NULL: the system's. Longer than
                             MESSAGE_PATH_MAX: BATON_EINVAL */
    bool trusts_any;      /* rtsps and https accept every certificate */
    bool is_paced;        /* a clip plays at its own speed, instead of as fast as it decodes */
    bool is_lossless;     /* a clip shows every frame, and the next one only when this one was given
                             back */
    const char *label;    /* the camera's user, for the log; NULL: none */
    int motion_permille;  /* above 0: only frames in which this share of the picture moved */
};

struct camera_callbacks {
    /* The frame is borrowed during the call; see camera_frame_ref. */
    void (*frame)(void *userdata, const struct camera_frame *frame);
    /* Called on a change; a camera is offline at first, without a call. May be NULL. */
    void (*online)(void *userdata, bool is_online);
    /* The clip was played to its end; it plays again only if it is opened again. May be NULL. */
    void (*ended)(void *userdata);
    void *userdata;
};

/* How fast these counters grow; 0 while it is offline. */
struct camera_fps {
    double received, decoded, dropped, shown;
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
    uint64_t received, decoded, dropped; /* packets received; frames decoded; frames of these not
                                            shown, by the cap or for damage */
    uint64_t shown;                      /* handed to subscribers */
    uint64_t skipped;                    /* replaced by a newer one, or too many were held */
    uint64_t still;                      /* not shown to this subscription, because nothing moved */
    struct camera_fps fps;
    uint64_t restarts;
    char last_error[BATON_ERROR_MESSAGE_MAX]; /* "": none yet */
};

#endif
