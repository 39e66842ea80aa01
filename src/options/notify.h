/* Notifications of a service to systemd (sd_notify): ready, its status, alive, stopping. They do
 * nothing without a service manager. */
#ifndef OPTIONS_NOTIFY_H
#define OPTIONS_NOTIFY_H

#include "base/clock.h"

void notify_ready(void);
void notify_stopping(void);
void notify_status(const char *text);
void notify_alive(void);

/* How often notify_alive must be called, half of the unit's WatchdogSec; 0: never. */
span notify_interval(void);

#endif
