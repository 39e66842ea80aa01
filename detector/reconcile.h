/* How a list of subscriptions differs from the one before. Pure.
 *
 * Subscriptions are the same if their identifiers are. A pre-signed model URL is fresh in every
 * list, so a change of it alone has a bit of its own: it is only remembered.
 */
#ifndef DETECTOR_RECONCILE_H
#define DETECTOR_RECONCILE_H

#include "protocol/protocol.h"

enum {
    CHANGE_CAMERA = 1 << 0,    /* rtspUrl; if there is none, snapshotUrl */
    CHANGE_SNAPSHOT = 1 << 1,  /* snapshotUrl */
    CHANGE_MODEL = 1 << 2,     /* modelId, modelName */
    CHANGE_MODEL_URL = 1 << 3, /* modelUrl */
    CHANGE_CROP = 1 << 4,
    CHANGE_INTERVAL = 1 << 5, /* snapshotInterval */
};

/* The CHANGE_ bits by which the two differ. */
unsigned subscription_changes(const struct subscription *from, const struct subscription *to);

#endif
