/* Objects that are reported once, and wait for the answers of all their stages.
 *
 * In the frame that confirms an object, its licence plate may be too far away. So a further stage
 * without an answer holds the report back, for a number of tries or until the object is out of
 * sight; meanwhile the answers of other stages are kept. Only this folder includes this header.
 */
#ifndef DETECTOR_INFER_PATIENCE_H
#define DETECTOR_INFER_PATIENCE_H

#include "detector/infer/boxes.h"

#include <jansson.h>

enum {
    PATIENCE_TRIES = 10,
    PATIENCE_UNSEEN = 3, /* frames in a row */
    PATIENCE_MAX = 64,   /* further objects do not wait */
};

struct waiting {
    size_t stage;
    uint64_t track;
    struct box box;     /* its last position */
    json_t *attributes; /* owned */
    int tries, unseen;
    bool is_here; /* in this frame */
};

struct patience {
    struct waiting all[PATIENCE_MAX];
    int count;
};

/* Returns NULL if the object does not wait. */
struct waiting *patience_find(struct patience *patience, size_t stage, uint64_t track);

/* The object waits, for the first time or again, with its attributes so far (borrowed). False: it
 * has waited long enough, or there is no room; then it does not wait any more. */
bool patience_hold(struct patience *patience, size_t stage, const struct box *box, uint64_t track,
                   json_t *attributes);
void patience_forget(struct patience *patience, struct waiting *waiting);

/* Called after each frame, until it returns NULL: returns an object that has been out of sight for
 * too long, which the caller must forget. */
struct waiting *patience_lost(struct patience *patience);
/* Ends the frame: objects that were not held in it count as unseen. */
void patience_tick(struct patience *patience);

void patience_fini(struct patience *patience);

#endif
