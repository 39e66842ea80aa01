/* The agent of a host: takes part in elections for the processes of its machine, which speak with
 * it over a Unix socket (docs/agent-protocol.md).
 *
 *   client ── connection ──▶ requests ──▶ parts, data
 *                │                            │
 *                └─ hello ─▶ process ─────────┴──▶ provider_attach(), one handle for each process
 *                              │
 *                              ├ pidfd: its death ends the session at once
 *                              └ silence for `client_lease`: ends it then
 *
 * A process may act on what it leads until the end that the agent promised it last. The agent never
 * promises more than the provider's lease, nor more than `client_lease` from the client's latest
 * message, and gives nothing up before that end, unless the process is dead or has said that it no
 * longer acts. All functions belong to the loop's thread.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/access.h"
#include "net/listener.h"
#include "provider/provider.h"

enum {
    AGENT_CLIENTS_MAX = 4096,
    AGENT_CLIENTS_SPARE = 4, /* of these, kept for root */
    AGENT_CLIENTS_OF_A_USER_MAX = 2048,
    AGENT_ELECTIONS_MAX = 16384,
    AGENT_PENDING_MAX = 1024,             /* requests of one client without a reply */
    AGENT_FEEDS_MAX = 256,                /* watches and subscriptions of one client */
    AGENT_LISTS_MAX = 2 * LOCAL_LIST_MAX, /* bytes of all clients' lists that are not read yet */
};

struct agent; /* opaque */

struct agent_config {
    uv_loop_t *loop;
    struct logger *logger;     /* or NULL */
    struct provider *provider; /* the agent's own; closes after the agent */
    /* With which it was opened; outlives the agent, with all that it points to. */
    const struct provider_config *provider_config;
    const char *name; /* of the host or node; borrowed as above */
    struct listener_place place;
    span client_lease;
    const struct access *access; /* borrowed as above; NULL: everybody may everything */
};

/* BATON_ENOTSUP: the provider has one election only; and as listener_open_unix(). */
int agent_open(struct agent **ret, const struct agent_config *config, struct baton_error *reterr);

/* The provider has read certificates, keys and the passwords of `url` again: so do the handles of
 * clients, also of those to come, where each is a provider of its own. Copied. */
void agent_reload(struct agent *agent, const char *url);

/* Ends the connections. Sessions go on for their lifetime, so that the next agent can take them
 * over, where the provider has sessions; else each client is told that it leads no more, and is
 * waited for until the end that it was promised. Then `closed` comes, once. */
void agent_close(struct agent *agent, void (*closed)(void *userdata), void *userdata);
/* After its provider has closed, which may still call back until then. NULL allowed. */
void agent_free(struct agent *agent);

#endif
