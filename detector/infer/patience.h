/* Objects that are reported once, and wait until all is known of them that was asked for.
 *
 * In the frame in which an object is sure to be one, its licence plate may be too far away. So a
 * further stage that gives no answer holds the report back, for so many tries or until the object
 * is out of sight; what others have answered by then is kept. Inside this folder only.
 */
#ifndef DETECTOR_INFER_PATIENCE_H
#define DETECTOR_INFER_PATIENCE_H

#include "detector/infer/boxes.h"

#include <jansson.h>

enum {
    PATIENCE_TRIES = 10,
    PATIENCE_UNSEEN = 3, /* frames in a row */
    PATIENCE_MAX = 64,   /* objects; further ones do not wait */
};

struct waiting {
    size_t stage;
    uint64_t track;
    struct box box;     /* where it was last */
    json_t *attributes; /* owned */
    int tries, unseen;
    bool is_here; /* in this frame */
};

struct patience {
    struct waiting all[PATIENCE_MAX];
    int count;
};

/* NULL: it does not wait. */
struct waiting *patience_find(struct patience *patience, size_t stage, uint64_t track);

/* The object waits, for the first time or again, with the attributes (borrowed) that it has by now.
 * False: it has waited long enough, or there is no room; then it does not wait any more. */
bool patience_hold(struct patience *patience, size_t stage, const struct box *box, uint64_t track,
                   json_t *attributes);
void patience_forget(struct patience *patience, struct waiting *waiting);

/* After each frame: one that has been out of sight for too long; NULL: none. To be forgotten by the
 * caller, who calls again until there is none. */
struct waiting *patience_lost(struct patience *patience);
/* The frame is over: what was not held in it is counted as unseen. */
void patience_tick(struct patience *patience);

void patience_fini(struct patience *patience);

#endif
