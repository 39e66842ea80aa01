/* Lines of JSON for a channel, several in one message: those of one turn of the loop go out
 * together. Over Redis each is a message, as other programs there expect. */
#ifndef FLEET_WORKERS_PUBLISH_H
#define FLEET_WORKERS_PUBLISH_H

#include "base/buffer.h"
#include "member/member.h"

#include <jansson.h>

struct publisher {
    struct member *member;
    const char *channel; /* static */
    struct buffer lines;
    uv_timer_t timer;
    bool is_single; /* one line a message */
    void (*closed)(void *userdata);
    void *userdata;
};

/* In zeroed memory, which the timer's handle needs until `closed`. */
void publisher_init(struct publisher *publisher, struct member *member, const char *channel);
/* What waits goes out. */
void publisher_close(struct publisher *publisher, void (*closed)(void *userdata), void *userdata);

/* At most once, as channels are: a line that does not get through is lost. Steals the object; NULL
 * is nothing. False: it is too large. */
bool publisher_put(struct publisher *publisher, json_t *line);

#endif
