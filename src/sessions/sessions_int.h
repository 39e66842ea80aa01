/* For the files of sessions only. */
#ifndef SESSIONS_SESSIONS_INT_H
#define SESSIONS_SESSIONS_INT_H

#include "base/names.h"
#include "sessions/sessions.h"

struct sessions {
    struct session *all; /* by id, in the order of their ids */
    struct session_election *elections;
    struct names names;         /* of the elections */
    struct deadlines deadlines; /* of the sessions, for keeper.h */
    size_t bytes;
    session_change_cb on_change; /* or NULL */
    void *userdata;
};

void sessions_report(const struct sessions *sessions, const struct session_change *change);

/* BATON_ENOMEM. */
int session_open(struct sessions *sessions, const struct session_order *order, uint64_t id);
void session_end(struct sessions *sessions, struct session *session, uint64_t index,
                 enum session_end end);
/* Finds or adds it. NULL when out of memory. */
struct session_election *session_election_add(struct sessions *sessions, const char *name);
/* At the end of the line, not eligible. NULL when out of memory. */
struct session_contender *session_contender_add(struct sessions *sessions,
                                                struct session_election *election,
                                                struct session *session);

#endif
