/* The leaders, by the latest events: one copy for all elections with the same leader. All under the
 * lock.
 *
 * A process that takes part in ten thousand elections knows of a handful of other processes, and a
 * member is some hundreds of bytes. The table holds the latest copy for each id; an earlier copy
 * lives as long as an election refers to it.
 */
#ifndef API_LEADERS_H
#define API_LEADERS_H

#include "api/object.h"

/* A reference to the copy of this member, whose id is not empty; NULL when out of memory. */
struct leader *leader_get_locked(struct baton *baton, const struct baton_member *member);
void leader_drop_locked(struct baton *baton, struct leader *leader); /* NULL allowed */
const struct baton_member *leader_member(const struct leader *leader);

#endif
