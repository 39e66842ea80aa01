/* Which session and which stage each display is in. Pure. */
#ifndef DETECTOR_DISPLAYS_H
#define DETECTOR_DISPLAYS_H

#include "protocol/protocol.h"

enum { DISPLAYS_MAX = 4096 };

struct display {
    char *name;
    struct session_id session;
    enum stage stage;
};

/* Those that are in any; {0}: none. */
struct displays {
    struct display all[DISPLAYS_MAX];
    size_t count;
};

void displays_fini(struct displays *displays);

/* Of a subscription; NULL: in neither. */
const struct display *displays_of(const struct displays *displays, const char *identifier);

/* *ret_is_other: it was in another one before. BATON_ETOOBIG, BATON_ENOMEM. */
int displays_set_session(struct displays *displays, const char *name, struct session_id session,
                         bool *ret_is_other, struct baton_error *reterr);
int displays_set_stage(struct displays *displays, const char *name, enum stage stage,
                       bool *ret_is_other, struct baton_error *reterr);

#endif
