/* The steps by which the running subscriptions become the wanted ones: a pure function.
 *
 * Subscriptions are the same if their identifiers are. A pre-signed model URL is fresh in every
 * list, so a change of it alone has a step of its own: it is only remembered.
 */
#ifndef DETECTOR_RECONCILE_H
#define DETECTOR_RECONCILE_H

#include "protocol/protocol.h"

enum {
    CHANGE_CAMERA = 1 << 0,    /* rtspUrl; if there is none, snapshotUrl */
    CHANGE_SNAPSHOT = 1 << 1,  /* snapshotUrl, snapshotInterval */
    CHANGE_MODEL = 1 << 2,     /* modelId, modelName */
    CHANGE_MODEL_URL = 1 << 3, /* modelUrl */
    CHANGE_CROP = 1 << 4,
};

enum step_type { STEP_REMOVE, STEP_UPDATE, STEP_KEEP, STEP_ADD };

struct step {
    enum step_type type;
    unsigned changes; /* of STEP_UPDATE: CHANGE_ bits */
    size_t current;   /* index, except for STEP_ADD */
    size_t wanted;    /* index, except for STEP_REMOVE */
};

/* Writes one step for each identifier that is in either list, removals first (they free cameras),
 * then the wanted list in its order. `steps` has room for current_count + wanted_count. Returns
 * their number. Identifiers within a list are unique. */
size_t reconcile(const struct subscription *current, size_t current_count,
                 const struct subscription *wanted, size_t wanted_count, struct step *steps);

/* The CHANGE_ bits by which the two differ. */
unsigned subscription_changes(const struct subscription *from, const struct subscription *to);

#endif
