/* agent:PATH: elections of the agent of this host (docs/agent-protocol.md), which takes part for
 * this process. Without a path: $BATON_AGENT, or /run/baton/agent.sock.
 *
 * The process leads by messages: each reply to `renew` says until when it may act. A connection
 * that is lost ends no leadership: the next one continues the session, within the lease. The agent
 * certifies the death of this process, so there is no guardian.
 */
#ifndef PROVIDER_AGENT_AGENT_PROVIDER_H
#define PROVIDER_AGENT_AGENT_PROVIDER_H

#include "provider/provider.h"

extern const struct provider_ops agent_provider_ops;

#endif
