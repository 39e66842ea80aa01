/* What a service tells systemd (sd_notify): ready, its status, alive, stopping.
 * Does nothing where no service manager listens, or where built without libsystemd. */
#ifndef OPTIONS_NOTIFY_H
#define OPTIONS_NOTIFY_H

#include "base/clock.h"

void notify_ready(void);
void notify_stopping(void);
void notify_status(const char *text);
void notify_alive(void);

/* How often notify_alive must be called; 0: not at all. Half of what the unit demands. */
span notify_interval(void);

#endif
