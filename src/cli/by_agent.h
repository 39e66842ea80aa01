/* `baton status`, `members`, `watch`, `pass`, `cordon` and `uncordon` of an election of this host's
 * agent. What they return is shaped as a node's answers are (member/status.h); what an agent does
 * not know is absent. The caller owns *ret.
 */
#ifndef CLI_BY_AGENT_H
#define CLI_BY_AGENT_H

#include "cli/command.h"

#include <jansson.h>

/* Whether the agent is asked, and not a node: --election or --socket is given by a source that
 * beats that of --data and --http; or none of them is given, and the agent's socket is there. */
bool by_agent(const struct options *options);

/* Without --election, of the agent itself. BATON_ENOENT: nobody takes part in the election. */
int by_agent_status(json_t **ret, const struct options *options, struct baton_error *reterr);
int by_agent_members(json_t **ret, const struct options *options, struct baton_error *reterr);
/* Hands each event to `each`, until that returns false (0), the time is over (BATON_ETIMEDOUT) or
 * the agent ends (BATON_ECLOSED). */
int by_agent_watch(const struct options *options, bool (*each)(void *userdata, const json_t *event),
                   void *userdata, struct baton_error *reterr);
/* pass: *ret says who leads now. */
int by_agent_operate(json_t **ret, const struct invocation *invocation, struct baton_error *reterr);

#endif
