/* Which process acts at this instant, by its own clock. */
#ifndef SIM_SESSIONS_ACTING_H
#define SIM_SESSIONS_ACTING_H

#include "sim/sessions/assembly.h"

instant process_local(const struct assembly *assembly, const struct assembly_process *process);
bool process_has_session(const struct assembly *assembly, const struct assembly_process *process);
bool process_acts(const struct assembly *assembly, const struct assembly_process *process,
                  int election);

#endif
