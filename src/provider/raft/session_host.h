/* Sessions on the group's log: every node carries out their orders beside those of the keys; the
 * leader of the log keeps their lifetimes; this process has a session itself, and one for each
 * process that takes part through it: these are the tenants.
 *
 *   orders of the log ─▶ sessions ─▶ changes ─▶ tenants ─▶ events of the elections (named.c)
 *   tenants ─▶ orders, renewals ─▶ the leader of the log: here, or by FRAME_ORDER, FRAME_RENEWAL
 *   proofs of death ─▶ keeper ─▶ END of the dead process's sessions
 *
 * One thread; inside of this folder only.
 */
#ifndef PROVIDER_RAFT_SESSION_HOST_H
#define PROVIDER_RAFT_SESSION_HOST_H

#include "provider/raft/frame.h"
#include "sessions/client.h"

struct node;
struct session_host;
struct session_tenant;

/* The numbers of orders below this one are of no tenant. */
#define SESSION_HOST_REQUESTS ((1ull << 40) - 1)

/* Who has a session. Called within steps: must not call the core. */
struct session_user {
    void (*on_lease)(void *userdata, const struct session_client_lease *lease);
    void (*on_event)(void *userdata, const struct session_event *event);
    void (*on_closed)(void *userdata); /* after session_tenant_detach(), by the loop */
    void *userdata;
};

/* NULL: out of memory. Without sessions until one is opened or installed. */
struct session_host *session_host_new(struct node *node);
/* Ends at once: what was ordered, but not sent, is lost. NULL allowed. */
void session_host_end(struct session_host *host);

/* ---- The replicated state -------------------------------------------------------------------- */

/* For all entries: the leader of the log begins to keep sessions at the first of its own term. */
void session_host_reach(struct session_host *host, raft_term term);
/* Carries out an entry that holds an order. False: out of memory, the state differs from the
 * group's now. */
bool session_host_apply(struct session_host *host, const void *data, size_t bytes,
                        raft_index index);
void session_host_snapshot(const struct session_host *host, struct buffer *buffer);
/* Takes ownership; reports what differs. */
void session_host_install(struct session_host *host, struct sessions *restored);
const struct sessions *session_host_sessions(const struct session_host *host);

/* ---- The group ------------------------------------------------------------------------------- */

/* This node leads the log now. */
void session_host_lead(struct session_host *host);
/* Another leader of the log is known: what had no leader is asked again. */
void session_host_hurry(struct session_host *host);
/* A member's bound on its clock: the widest one counts. */
void session_host_widen_drift(struct session_host *host, uint32_t drift_ppm);
/* The node's incarnations up to this one are proved dead. */
void session_host_proved(struct session_host *host, raft_id id, uint64_t incarnation);
/* All processes on the node's host that attached by an entry up to `index` are dead. */
void session_host_fenced(struct session_host *host, raft_id id, raft_index index);
/* A session of that node stands, and is not proved dead. */
bool session_host_has(const struct session_host *host, raft_id id);
void session_host_take_renewal(struct session_host *host, raft_id from, const struct frame *frame);
void session_host_take_renewed(struct session_host *host, const struct frame *frame);
/* The leader did not accept this order. */
void session_host_refused(struct session_host *host, uint64_t request);
/* Nor the end of a session, of which it is not known which one. */
void session_host_end_refused(struct session_host *host);

/* Of the tenant that has this session; NULL: none has. */
void *session_host_user(const struct session_host *host, uint64_t session);
/* How long the session lasts yet; negative: not known here. */
span session_host_left(struct session_host *host, const struct session *session);

/* Gives the order to the leader of the log; .node is set here. BATON_EUNAVAILABLE, BATON_ENOMEM,
 * BATON_EBUSY: it was not. */
int session_host_order(struct session_host *host, struct session_order *order);

/* ---- Tenants --------------------------------------------------------------------------------- */

/* Opens a session, or resumes one that no tenant has. BATON_ENOMEM. */
int session_host_attach(struct session_tenant **ret, struct session_host *host,
                        const struct session_client_options *options,
                        const struct session_user *user);
/* Call session_tenant_drive() after each call of one of its functions. */
struct session_client *session_tenant_client(struct session_tenant *tenant);
void session_tenant_drive(struct session_tenant *tenant);
void session_host_drive(struct session_host *host); /* all of them */
/* Ends the session; its lease is void when this returns. */
void session_tenant_leave(struct session_tenant *tenant);
/* Frees the tenant. The session goes on for its lifetime, unless the tenant has left it. */
void session_tenant_detach(struct session_tenant *tenant);

#endif
