/* Who may take part in which elections: rules of the agent's configuration. The first rule whose
 * pattern fits an election decides on it; an election that none fits is everybody's. Root and the
 * agent's own user may always. One thread.
 */
#ifndef AGENT_ACCESS_H
#define AGENT_ACCESS_H

#include "net/local.h"

struct access; /* NULL: no rule */

/* Appends a rule, "PATTERN=WHO[,WHO...]": PATTERN as of a shell (fnmatch(3)), WHO a user or @group,
 * by name or number. BATON_EINVAL: it is none, or no such user or group is known here;
 * BATON_ENOMEM. After an error nothing has changed. */
int access_add(struct access **access, const char *rule, struct baton_error *reterr);
void access_free(struct access *access); /* NULL allowed */

/* Whether the process at the other end, `peer` of `local`, may take part in the election: by the
 * user and the groups, supplementary ones too, that it had when it connected. */
bool access_allows(const struct access *access, const char *election, const struct local *local,
                   const struct local_peer *peer);

#endif
