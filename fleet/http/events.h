/* /events: what happens, to each client that follows it, as server-sent events.
 *
 * An event goes into the ring (ring.h) and, at the end of the loop's turn, to the followers. A
 * follower has no queue of its own: what its socket does not take waits in the ring, and one that
 * the ring has overtaken is cut off. It may come back with Last-Event-ID.
 */
#ifndef FLEET_HTTP_EVENTS_H
#define FLEET_HTTP_EVENTS_H

#include "fleet/http/call.h"
#include "fleet/http/inside.h"

enum { EVENTS_FOLLOWERS_MAX = 256, EVENTS_HEARTBEAT_MS = 15000 };

/* NULL: out of memory. */
struct events *events_new(struct fleet_http *http);
void events_begin(struct events *events);
void events_close(struct events *events); /* of one that has begun; the loop does the rest */
void events_free(struct events *events);  /* NULL allowed */

void events_add(struct events *events, const char *name, const char *data, size_t bytes);
size_t events_followers(const struct events *events);

/* GET /events */
void events_follow(struct call *call);

#endif
