/* Which process acts at this instant, by its own clock. */
#ifndef SIM_SESSIONS_ACTING_H
#define SIM_SESSIONS_ACTING_H

#include "sim/sessions/assembly.h"

instant process_local(const struct assembly *assembly, const struct assembly_process *process);
/* The epoch, and its session; 0: it does not act there. */
uint64_t process_acts(const struct assembly *assembly, const struct assembly_process *process,
                      int election, uint64_t *ret_session);

#endif
