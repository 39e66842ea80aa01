/* Which session and which stage each display is in. Pure. */
#ifndef DETECTOR_DISPLAYS_H
#define DETECTOR_DISPLAYS_H

#include "protocol/protocol.h"

#include <uthash.h>

enum { DISPLAYS_MAX = 4096 };

/* One that is in any. */
struct display {
    struct session_id session;
    enum stage stage;
    UT_hash_handle hh;
    char name[];
};

void displays_free(struct display *displays); /* NULL: none, as in all of these */

/* Of a subscription; NULL: in neither. */
const struct display *displays_of(const struct display *displays, const char *identifier);

/* Does what a setSessionId or a setProgressionStage says. *ret_is_other: it was in another one
 * before. BATON_ETOOBIG, BATON_ENOMEM. */
int displays_set(struct display **displays, const struct command *command, bool *ret_is_other,
                 struct baton_error *reterr);

#endif
