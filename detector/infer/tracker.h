/* Which box is which object: boxes of one frame joined to those of the frames before. Pure.
 *
 *   box, score ≥ high ──overlap──▶ track ──TRACK_HITS frames──▶ confirmed ──unseen──▶ lost ──┐
 *        │ no track                  ▲                              ▲                        │
 *        └──── new, tentative ───────┘     score ≥ low, what is left┴──── seen again ────────┤
 *              gone with the first miss                                after age_max: gone ◀─┘
 *
 * As in ByteTrack, boxes that the model is sure of choose first, and the unsure ones may go on with
 * a track (something stands half before it) but never begin one. Where frames are rare, age_max is
 * as long as some of them take. Where a track should be by now follows from its velocity, so
 * objects that cross keep their names, and frames may be missing. A box of another class needs more
 * overlap; the track takes the new class once it was seen TRACK_HITS times in a row.
 */
#ifndef DETECTOR_INFER_TRACKER_H
#define DETECTOR_INFER_TRACKER_H

#include "base/clock.h"
#include "detector/infer/boxes.h"

#include <jansson.h>

enum {
    TRACKS_MAX = 256,
    TRACK_BOXES_MAX = 256, /* of one frame */
    TRACK_AGE_FRAMES = 3,  /* a lost object is kept for at least the time of so many frames */
    TRACK_HITS = 3,
};

/* A known object is kept with this share of the confidence that a new one needs. */
#define TRACK_LOW 0.5F

struct tracker_rules {
    float confidence;  /* high; low is TRACK_LOW of it */
    float overlap_min; /* above 0 */
    span age_max;      /* forgotten after being lost for longer, but see TRACK_AGE_FRAMES */
};

/* What was reported of an object, and what waits to be: the caller's (report.h). */
struct report {
    bool is_reported;
    instant at;      /* of the last report */
    int label;       /* then */
    json_t *last;    /* owned: the attributes then, where changes are reported; NULL: none */
    json_t *waiting; /* owned: attributes so far; NULL: nothing waits */
    int tries;       /* frames for which it has waited */
};

struct track {
    uint64_t id; /* from 1, never used again */
    bool is_confirmed;
    int label;             /* of the object; that of the box may differ for a while */
    struct box box;        /* as it was last seen */
    unsigned seen, unseen; /* in so many frames; in so many of the last ones it was not */
    instant last_seen;
    float velocity_x, velocity_y; /* of its middle, pixels a second */
    struct report report;
    /* the tracker's */
    struct box expected;
    int label_next, label_hits; /* of the last boxes, so many in a row */
    int matched;                /* the box of this frame; -1: none */
};

struct tracker; /* opaque */

struct tracker *tracker_new(struct tracker_rules rules); /* NULL: out of memory */
void tracker_free(struct tracker *tracker);              /* NULL allowed */

/* Takes the boxes of the next frame, which was taken at `now`, the best first, at most
 * TRACK_BOXES_MAX: ret[i] is the object of boxes[i], NULL: none. A time before the last one counts
 * as the last one. */
void tracker_step(struct tracker *tracker, instant now, const struct box *boxes, int count,
                  struct track **ret);

/* The objects that are known, lost and tentative ones too: from 0 until NULL. They are valid until
 * the next step. One whose report waits is not forgotten. */
struct track *tracker_at(struct tracker *tracker, int index);

#endif
