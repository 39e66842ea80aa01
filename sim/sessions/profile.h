/* What kind of assembly a seed plays. */
#ifndef SIM_SESSIONS_PROFILE_H
#define SIM_SESSIONS_PROFILE_H

#include "sim/sessions/assembly.h"

void assembly_draw(struct assembly *assembly);
span assembly_draw_lease(struct assembly *assembly); /* of a process's life */
int64_t assembly_draw_rate(struct assembly *assembly);

#endif
