/* The events of a fleet by name, and sets of them as an option has them:
 * "camera-offline,detection". Pure.
 */
#ifndef FLEET_OUTLETS_EVENT_NAMES_H
#define FLEET_OUTLETS_EVENT_NAMES_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define EVENT_NAMES_USUAL "camera-offline,camera-online,worker-offline,worker-online,not-placed"

typedef uint32_t event_names; /* a set; 0 is empty */

/* BATON_EINVAL names what is no event, and those that are. An empty text is an empty set. */
int event_names_parse(event_names *ret, const char *text, struct baton_error *reterr);
bool event_names_have(event_names names, const char *name);

#endif
