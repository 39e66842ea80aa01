/* The shared state of a fleet as the test wants it: displays, data, and writes whose ends the test
 * decides on. It stands in for fleet/state, of which it has the functions that displays/ uses. */
#ifndef TESTS_UNIT_FLEET_DISPLAYS_FAKE_STATE_H
#define TESTS_UNIT_FLEET_DISPLAYS_FAKE_STATE_H

#include "fleet/state/state.h"

/* Opens the only one, on a loop of its own. */
struct fleet_state *fake_open(void);
void fake_close(struct fleet_state *state);
uv_loop_t *fake_loop(void);

void fake_declare(struct fleet_state *state, const char *display);
void fake_undeclare(struct fleet_state *state, const char *display);

/* As another process writes it; NULL deletes. */
void fake_write(struct fleet_state *state, const char *display, const char *data);
/* From now on writes wait for fake_finish(); else they end before the call returns. */
void fake_defer(struct fleet_state *state);
/* Ends the write that has waited longest; a code other than BATON_OK: it fails with it. False:
 * none waits. */
bool fake_finish(struct fleet_state *state, int code);
/* The next `count` writes come after another process's write of {"qrCode":"other N"}. */
void fake_disturb(struct fleet_state *state, unsigned count);
/* The next write is refused at once. */
void fake_refuse(struct fleet_state *state, int code);
unsigned fake_writes(const struct fleet_state *state); /* that were asked for */

#endif
