/* For the files of this provider only.
 *
 *                 ┌─ elections: what this process wants, and what it holds
 *   connection ───┼─ feeds: watches and subscriptions          each is sent again by a new one
 *   (session)     └─ calls: requests, each with one reply
 *
 * All of it belongs to the loop's thread. Callbacks of the user's side run with `depth` above 0,
 * and what they end is freed when it is 0 again.
 */
#ifndef PROVIDER_AGENT_REMOTE_H
#define PROVIDER_AGENT_REMOTE_H

#include "guardian/victims.h"
#include "net/local.h"
#include "provider/listing.h"
#include "provider/provider.h"

#include <jansson.h>
#include <uthash.h>

enum {
    REMOTE_SESSION_MAX = 24, /* bytes of a session's id, with the NUL */
    REMOTE_SECRET_HEX = 2 * PROVIDER_SECRET_BYTES + 1,
    REMOTE_CALLS_MAX = 65536,          /* requests that wait for the agent or its reply */
    REMOTE_SENT_MAX = 1000,            /* of these, sent; the agent allows 1024 */
    REMOTE_BYTES_MAX = LOCAL_LIST_MAX, /* of the values and messages in them */
    REMOTE_BACKLOG_MAX = LOCAL_QUEUE_MAX - LOCAL_LINE_MAX - 1, /* unread: one more always fits */
    REMOTE_HEIRS_MAX = 8, /* elections that are led whose members are asked for regularly */
};

struct remote;
struct seen;

/* A request. `reply` NULL: the connection was lost before it came, or (code BATON_ETIMEDOUT) it did
 * not come in time. */
struct call {
    int64_t id;
    void (*done)(struct call *call, int code, const json_t *reply);
    void *owner; /* the election or feed it is about; or NULL */
    json_t *message;
    size_t bytes; /* of the value or message in it */
    bool is_own;  /* of the connection: a new one sends its own */
    bool is_sent;
    instant sent;     /* when it was */
    instant deadline; /* INSTANT_NEVER: the connection's end */
    union {
        provider_done_cb done;
        provider_members_cb members;
        provider_elections_cb elections;
        provider_values_cb values;
        provider_put_cb put;
        uint64_t epoch;
    } then;
    void *userdata;
    struct listing parts; /* of its reply: the values that have come so far */
    UT_hash_handle hh;
};

/* A process's part in an election. */
struct contest {
    struct provider_election base;
    struct remote *remote;
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    UT_hash_handle hh; /* by name */
    bool is_eligible;
    bool is_leaving; /* its user has left; it goes when the agent has confirmed that */
    bool has_left;   /* and the agent has confirmed it: to be freed */
    bool is_refused; /* an error was reported for which it cannot take part */
    bool is_out;     /* the agent has ended its part: it is entered again at enter_at */
    bool acts;       /* ACQUIRED was reported */
    bool is_doubted; /* JEOPARDY was reported, and the lease not renewed since */
    bool is_drained; /* DRAIN was reported */
    bool is_resigning;
    int32_t priority;
    uint64_t known;     /* the latest epoch that was granted to this process */
    uint64_t epoch;     /* the same, while it is not given up; 0: none */
    int64_t granted_at; /* id of the last request before the grant */
    uint64_t owed;      /* epoch that was given up, until the agent confirms that; 0: none */
    instant end;        /* of the lease */
    instant enter_at;
    struct baton_member leader;
    uint64_t leader_epoch;
    struct baton_member *members; /* as the agent said last; for check_heir */
    size_t member_count;
    char name[BATON_NAME_MAX];
};

/* A watch, or a subscription. */
struct feed {
    struct feed *next;
    struct remote *remote;
    char *name; /* of the channel, or the prefix */
    bool is_watch;
    bool is_anew; /* the next list is of a new connection */
    bool has_ended;
    int64_t id; /* of its request on this connection; 0: none; -1: another feed's serves it */
    struct seen *seen; /* keys, by name */
    provider_message_cb on_message;
    provider_values_cb on_change;
    void *userdata;
};

/* An open provider. */
struct remote {
    struct provider base;
    uv_loop_t *loop;
    struct logger *logger;
    struct local *local; /* NULL: no connection */
    uv_timer_t timer;
    bool is_ready;    /* the agent has greeted */
    bool has_grants;  /* no renewal was sent since the last grant */
    bool is_reported; /* that the agent is away */
    bool is_closing;
    bool is_ending; /* says bye, or waits for its handles */
    unsigned depth;
    unsigned holds;    /* of this memory: the timer, connections */
    unsigned renewals; /* without a reply */
    int64_t last_id;
    size_t sent;
    size_t bytes; /* of all calls */
    span lifetime, interval, backoff;
    instant renew_at, connect_at, report_at, members_at;
    struct call *calls; /* by id, in the order of their making */
    size_t own_waiting; /* of them, the connection's that are not sent */
    instant expires_at; /* no deadline of them is before this */
    struct contest *contests;
    size_t acting;    /* of them */
    bool has_leavers; /* perhaps one of them has left, and is to be freed */
    struct feed *feeds;
    char *metadata; /* JSON, or NULL */
    json_t *about;  /* the agent's reply to hello, or NULL */
    void (*closed)(void *userdata);
    void *closed_userdata;
    char path[LOCAL_PATH_MAX];
    char node[BATON_NAME_MAX]; /* "": the agent chooses */
    char secret[REMOTE_SECRET_HEX];
    char session[REMOTE_SESSION_MAX]; /* "": none */
    char token[VICTIMS_TOKEN_MAX]; /* of the supervisor of what acts for this process; "": none */
};

/* ---- agent_provider.c ------------------------------------------------------------------------ */

/* Frees it, after the last of its holds. */
void remote_release(struct remote *remote);

/* ---- connection.c ---------------------------------------------------------------------------- */

void remote_connect(struct remote *remote);
/* Sends what is due, and sets the timer for what comes next. After every change. */
void remote_step(struct remote *remote);
/* Names the supervisor of what acts for this process, or that there is none. */
void remote_say_acting(struct remote *remote);
/* A request of the connection itself: however many of the user's wait, it has room. Takes the
 * reference of `message`, and numbers it. NULL: out of memory. */
struct call *remote_call(struct remote *remote, json_t *message,
                         void (*done)(struct call *call, int code, const json_t *reply));
/* The same for the user's request, with what it is answered by. BATON_EBUSY: too many wait, or too
 * many bytes; BATON_ENOMEM. */
int remote_ask(struct call **ret, struct remote *remote, json_t *message,
               void (*done)(struct call *call, int code, const json_t *reply), void *userdata,
               struct baton_error *reterr);
/* Without a reply it ends with BATON_ETIMEDOUT then. */
void remote_limit(struct remote *remote, struct call *call, instant deadline);
/* Its reply finds nobody. */
void remote_forget(struct remote *remote, const void *owner);
/* Ends the connection; `contest`s hold what they were promised. */
void remote_disconnect(struct remote *remote);
/* What a reply says is wrong: its code, and its words in reterr. */
int remote_code(const json_t *reply, struct baton_error *reterr);
void remote_enter_callback(struct remote *remote);
void remote_leave_callback(struct remote *remote);

/* ---- contest.c: elections -------------------------------------------------------------------- */

int contest_campaign(struct provider_election **ret, struct provider *provider,
                     const struct provider_campaign *campaign, struct baton_error *reterr);
int contest_check_heir(struct provider_election *election, const char *to,
                       struct baton_error *reterr);
int contest_resign(struct provider_election *election, const char *to, instant deadline,
                   struct baton_error *reterr);
void contest_drained(struct provider_election *election);
int contest_set_eligible(struct provider_election *election, bool eligible,
                         struct baton_error *reterr);
void contest_leave(struct provider_election *election);
void contest_leader(struct provider_election *election, struct baton_member *ret,
                    uint64_t *ret_epoch);
int contest_members(struct provider_election *election, provider_members_cb done, void *userdata,
                    struct baton_error *reterr);
int contest_set_metadata(struct provider_election *election, const char *metadata,
                         struct baton_error *reterr);
int remote_elections(struct provider *provider, provider_elections_cb done, void *userdata,
                     struct baton_error *reterr);
int remote_ask_pass(struct provider *provider, const char *election, const char *to,
                    instant deadline, provider_done_cb done, void *userdata,
                    struct baton_error *reterr);
int remote_ask_eligible(struct provider *provider, const char *election, const char *process,
                        bool eligible, instant deadline, provider_done_cb done, void *userdata,
                        struct baton_error *reterr);

/* The agent has greeted: what each wants is sent again. */
void contests_enter(struct remote *remote);
/* Enters again what the agent has refused, when it is time; returns when the next is due. */
instant contests_enter_again(struct remote *remote);
/* Epochs that were given up and not confirmed are said again. */
void contests_settle(struct remote *remote);
/* A reply to the renewal `id`: all that was granted before it was sent holds until `end`. */
void contests_renewed(struct remote *remote, int64_t id, instant end);
/* Ends those whose lease is over; returns when the next one ends. */
instant contests_expire(struct remote *remote);
/* The session ended, and all that was held by it. */
void contests_lose_all(struct remote *remote, enum baton_loss loss);
void contests_stop_all(struct remote *remote);
void contests_report_error(struct remote *remote, const struct baton_error *error);
/* Asks for the members of those that are led, for check_heir(). False: none is led. */
bool contests_ask_members(struct remote *remote);
void contests_sweep(struct remote *remote);
/* An event of an election. */
void contest_take(struct remote *remote, const char *event, const json_t *message);

/* ---- data.c: state and channels -------------------------------------------------------------- */

int remote_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr);
int remote_get_each(struct provider *provider, const char *const *keys, size_t count,
                    provider_values_cb done, void *userdata, struct baton_error *reterr);
int remote_list(struct provider *provider, const char *prefix, provider_values_cb done,
                void *userdata, struct baton_error *reterr);
int remote_put(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
               struct baton_error *reterr);
int remote_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr);
void remote_unwatch(struct provider *provider, const char *prefix, void *userdata);
int remote_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                   provider_done_cb done, void *userdata, struct baton_error *reterr);
int remote_subscribe(struct provider *provider, const char *channel, provider_message_cb on_message,
                     void *userdata, struct baton_error *reterr);
void remote_unsubscribe(struct provider *provider, const char *channel, void *userdata);
/* Takes a part of a reply that has more. BATON_ETOOBIG: all its parts have more than a list may;
 * BATON_ENOMEM. */
int call_take_part(struct call *call, const json_t *part);
void feeds_enter(struct remote *remote);
void feeds_leave(struct remote *remote); /* the connection is lost */
void feeds_take(struct remote *remote, const char *event, const json_t *message);
void feeds_sweep(struct remote *remote);
void feeds_free(struct remote *remote);

#endif
