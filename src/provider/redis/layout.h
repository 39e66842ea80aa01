/* Which keys hold the lock of an election NAME, so that a process which follows one of the seeds by
 * its text alone takes part in the same election.
 *
 *                     lock          its holder's heartbeat
 *   master-election   NAME:master   NAME:heartbeat, for as long as the lock
 *   sovereign         NAME:leader   NAME:heartbeat:ID, for 5 s longer; the others check it
 *
 * All else (the registry, the epoch, the channel that wakes) is the same in both.
 */
#ifndef PROVIDER_REDIS_LAYOUT_H
#define PROVIDER_REDIS_LAYOUT_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAYOUT_KEY_MAX = 192 }; /* the names of an election and of a process are in it */

struct layout; /* opaque, constant */

/* NULL: the default. BATON_EINVAL: there is none of that name. */
int layout_find(const struct layout **ret, const char *name, struct baton_error *reterr);

const char *layout_name(const struct layout *layout);

/* Joins the parts (NULL ends them) and truncates the result. A renewal makes several keys, and
 * printf() would be a third of its cost. */
void layout_join(char *ret, size_t ret_bytes, const char *const *parts);

/* `name` may contain a placeholder, which is copied. */
void layout_lock_key(const struct layout *layout, const char *name, char ret[LAYOUT_KEY_MAX]);
void layout_heartbeat_key(const struct layout *layout, const char *name, const char *id,
                          char ret[LAYOUT_KEY_MAX]);

/* The part of the heartbeat's key before the id; "": the key has no id, and is not checked. */
void layout_heartbeat_prefix(const struct layout *layout, const char *name,
                             char ret[LAYOUT_KEY_MAX]);

/* How long a heartbeat counts and its key lives. */
span layout_heartbeat_lifetime(const struct layout *layout, span lease);

/* How often a follower looks at the lock. */
span layout_check_interval(const struct layout *layout);

#endif
