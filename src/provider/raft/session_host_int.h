/* For the files of the sessions' host only. */
#ifndef PROVIDER_RAFT_SESSION_HOST_INT_H
#define PROVIDER_RAFT_SESSION_HOST_INT_H

#include "provider/raft/node.h"
#include "provider/raft/session_host.h"
#include "sessions/keeper.h"

/* In FRAME_RENEWED. */
enum session_outcome { SESSION_RENEWED, SESSION_GONE, SESSION_NOT_NOW };

struct session_tenant {
    struct node *node;
    struct session_host *host; /* may end first */
    struct session_client *client;
    struct session_user user;
    uint64_t incarnation;
    uint8_t secret[SESSION_SECRET_BYTES];
    uint64_t number;  /* among the tenants; never 0 */
    uint64_t session; /* as of the last step; 0: none */
    uint64_t resumes; /* until its session is open */
    bool is_changed;  /* since it was driven */
    bool is_closing;
    uv_timer_t timer;
    struct session_tenant *prev, *next; /* of those that changed */
    UT_hash_handle hh;                  /* by number */
    UT_hash_handle by_session;
};

/* The end of a session that was ordered here. It is ordered again until it is carried out: the
 * order may get lost with the leader of the log. */
struct ending {
    uint64_t session, attached;
    struct ending *next;
};

struct session_host {
    struct node *node;
    struct sessions *sessions;
    struct keeper keeper;
    raft_term kept_term; /* in which this node keeps, or kept last */
    struct session_tenant *tenants;
    struct session_tenant *by_session; /* those that have one */
    struct session_tenant *changed;
    struct ending *endings;
    instant refused_again; /* the keeper's ENDs are due again; INSTANT_NEVER: none was refused */
    instant end_again;
    uint64_t last_number;
    uint64_t random;
    uint32_t drift_ppm; /* the widest bound of a member's clock */
    bool is_driving;
    bool is_closing;
    uv_timer_t timer; /* of the keeper and the endings */
};

/* ---- session_host.c -------------------------------------------------------------------------- */

void session_host_rearm(struct session_host *host);
void session_host_set_timer(const struct session_host *host, uv_timer_t *timer,
                            uv_timer_cb callback, instant at);
/* By this node, if it may; `from`: the asking one. */
enum session_outcome session_host_renew(struct session_host *host, raft_id from, uint64_t session);

/* ---- session_tenants.c ----------------------------------------------------------------------- */

/* NULL: none. */
struct session_tenant *session_tenant_of(const struct session_host *host, uint64_t session);
struct session_tenant *session_tenant_of_request(const struct session_host *host, uint64_t request);
/* The caller drives. */
void session_tenant_step(struct session_tenant *tenant, const struct session_input *input);
void session_tenant_take_outcome(struct session_tenant *tenant, uint64_t session, uint64_t request,
                                 enum session_outcome outcome);
/* Orders again the ends that tenants have ordered and that were not carried out. */
void session_host_order_endings(struct session_host *host);
void session_host_forget_endings(struct session_host *host);

#endif
