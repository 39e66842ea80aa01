/* Sessions on the group's log: every node carries out their orders beside those of the keys; the
 * leader of the log keeps their lifetimes; this process may have a session itself.
 *
 *   orders of the log ─▶ sessions ─▶ changes ─▶ client ─▶ events of the elections (named.c)
 *   client ─▶ orders, renewals ─▶ the leader of the log: here, or by FRAME_ORDER, FRAME_RENEWAL
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

/* Who has the session of this process. Called within steps: must not call the core. */
struct session_user {
    void (*on_lease)(void *userdata, const struct session_client_lease *lease);
    void (*on_event)(void *userdata, const struct session_event *event);
    /* The holder of this election is another one, or none, or has another epoch. */
    void (*on_holder)(void *userdata, const char *election);
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
void session_host_take_renewal(struct session_host *host, raft_id from, const struct frame *frame);
void session_host_take_renewed(struct session_host *host, const struct frame *frame);
/* The leader did not accept this order. */
void session_host_refused(struct session_host *host, uint64_t request);

/* ---- This process's session ------------------------------------------------------------------ */

/* Opens it. BATON_ENOMEM. */
int session_host_attach(struct session_host *host, const struct session_client_options *options,
                        const struct session_user *user);
/* NULL: has none. Call session_host_drive() after each call of one of its functions. */
struct session_client *session_host_client(struct session_host *host);
void session_host_drive(struct session_host *host);
/* Ends the session; its lease is void when this returns. */
void session_host_leave(struct session_host *host);

#endif
