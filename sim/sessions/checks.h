/* The rules that hold at every instant. */
#ifndef SIM_SESSIONS_CHECKS_H
#define SIM_SESSIONS_CHECKS_H

#include "sim/sessions/assembly.h"

/* After every event: who acts holds the election, by the log, in the epoch in which it acts. So no
 * two act, and epochs grow. */
void assembly_check_acting(struct assembly *assembly);
/* After every entry: no election is idle while a contender of it may lead. */
void assembly_check_truth(struct assembly *assembly);
/* The callback of the truth's changes (its userdata is the assembly): a grant has a new epoch, and
 * goes to a contender that may lead. */
void assembly_note_truth(void *userdata, const struct session_change *change);
/* A leader of the log has renewed the session: no entry has let it end for its lifetime. */
void assembly_check_renewed(struct assembly *assembly, const struct assembly_agent *agent,
                            uint64_t session);
/* A leader of the log that has fenced a host has ordered the ends of all sessions that had attached
 * there before. Only while it keeps. */
void assembly_check_fenced(struct assembly *assembly, const struct assembly_agent *agent);
/* An agent that has applied everything has the same state. */
void assembly_check_same(struct assembly *assembly, const struct assembly_agent *agent);

#endif
