/* Time zones, by the C library and the host's tzdata.
 *
 * The C library knows one zone at a time, that of $TZ, so each change of the zone reads a file: ask
 * for one zone as long as possible. One thread; it must be the only one that uses local time.
 */
#ifndef CRON_ZONE_H
#define CRON_ZONE_H

#include "base/error.h"
#include "cron/calendar.h"

#include <stdbool.h>

enum { ZONE_NAME_MAX = 64 };

/* Call it once, before there are threads: it gives this process a $TZ of its own. */
void zone_begin(void);

/* Whether tzdata has a zone of this name, such as Europe/Berlin; "": the host's own. */
bool zone_exists(const char *name);

/* `name` is borrowed as long as the result is used; "": the host's own. */
struct calendar_zone zone_of(const char *name);

#endif
