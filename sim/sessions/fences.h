/* Fences: a command switches a whole host off, and says so. */
#ifndef SIM_SESSIONS_FENCES_H
#define SIM_SESSIONS_FENCES_H

#include "sim/sessions/assembly.h"

/* Draws whether, and schedules the first. */
void assembly_fences_begin(struct assembly *assembly);
/* ASSEMBLY_FENCE: an agent begins to fence another one's host, if no other fence runs.
 * ASSEMBLY_OFF: whatever ran there is dead, and may start again at once. */
void assembly_fences_happen(struct assembly *assembly, const struct assembly_event *event);

#endif
