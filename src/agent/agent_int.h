/* For the files of the agent only. */
#ifndef AGENT_AGENT_INT_H
#define AGENT_AGENT_INT_H

#include "agent/agent.h"

#include <uthash.h>

struct tenant;
struct list; /* lists.c */

/* An election in which a process takes part. */
struct part {
    struct tenant *tenant;
    struct provider_election *election; /* NULL: it has stopped */
    struct lease_cell *cell;
    uint64_t held;  /* the epoch in which the process leads, for the provider; 0: none */
    uint64_t epoch; /* the same, if it may act: the client has given nothing up; 0: none */
    bool is_asked;  /* the provider waits for it to drain */
    bool is_leaving;
    UT_hash_handle hh;
    char name[BATON_NAME_MAX];
};

/* A process that takes part; it outlives its connections. */
struct tenant {
    struct agent *agent;
    struct client *client; /* its connection; NULL: none now */
    struct provider *handle;
    struct part *parts;
    uint64_t session;                      /* 0: not open yet */
    uint8_t secret[PROVIDER_SECRET_BYTES]; /* zero: none */
    bool has_secret;
    bool has_session_events; /* the provider reports sessions; else the agent makes them up */
    bool is_ending;
    instant heard;    /* its latest message */
    instant promised; /* until when it may act, at the most */
    char *metadata;   /* JSON, or NULL */
    char *marker;     /* "NAME=value" in the environment of those that act for it, or NULL */
    char *token;      /* of the supervisor of those that act for it, or NULL: none has to say so */
    struct local_peer peer;
    uv_poll_t death;
    uv_poll_t container; /* the end of process 1 of its PID namespace */
    int container_fd;    /* its pidfd, as the process has passed it; -1: it is not known */
    bool is_watched;     /* `death` is open */
    bool is_dead;        /* it has died */
    bool is_hunted_for;  /* and those that act for it are being killed */
    bool waits_for_hunt; /* or will be, when the hunts before this one have ended */
    bool has_survivors;  /* they could not be killed */
    bool is_gone;        /* their supervisor says that none is left, or their container has ended */
    int holds;           /* of this memory: the handle, the poll, the hunt */
    struct tenant *prev, *next;
    char name[BATON_NAME_MAX];
};

/* A watch or a subscription. */
struct feed {
    struct client *client;
    struct feed *next;
    int64_t id; /* of the request; 0: a subscription */
    char name[PROVIDER_KEY_MAX + 1];
};

/* A connection. */
struct client {
    struct agent *agent;
    struct local *local;
    struct tenant *tenant; /* NULL: before its hello */
    struct local_peer peer;
    uint64_t number; /* replies find their client by it */
    size_t pending;
    struct feed *feeds;
    size_t feed_count;
    struct list *lists; /* that are not out yet, oldest first */
    size_t list_bytes;  /* of them */
    UT_hash_handle hh;
};

struct agent {
    struct agent_config config;
    struct provider_config attach_config;
    struct provider_option *attach_options;
    char *attach_url; /* NULL: that of the start */
    struct listener *listener;
    struct client *clients; /* by number */
    struct tenant *tenants;
    size_t tenant_count;
    size_t list_bytes;         /* of all clients' lists */
    uint64_t messages_dropped; /* of channels: their subscriber did not read */
    uint64_t last_number;
    uv_timer_t sweep;
    uv_idle_t turns; /* runs while clients wait for their next turn */
    instant swept;
    bool is_closing;
    void (*closed)(void *userdata);
    void *userdata;
};

/* A reply that comes later: its client may have gone by then. */
struct pending {
    struct agent *agent;
    uint64_t client;
    int64_t id;
};

/* ---- agent.c --------------------------------------------------------------------------------- */

/* Ends the agent, if it is closing and nothing is left to wait for. */
void agent_finish(struct agent *agent);

/* ---- client.c: connections and what is written to them --------------------------------------- */

void client_accept(struct agent *agent, int fd);
/* Reads on from the clients that wait for their next turn. */
void clients_go_on(uv_idle_t *turns);
/* Whether there may be one more, of `all` that there are and of `own` of the same user. */
bool client_has_room(const struct client *client, size_t all, size_t own);
struct client *client_find(struct agent *agent, uint64_t number); /* NULL: gone */
/* Takes the reference; `message` NULL: out of memory, which ends the connection. `client` NULL:
 * nobody hears it. */
void client_send(struct client *client, json_t *message);
/* A reply without, or with further members, which it takes the reference of (NULL: none). */
void client_reply(struct client *client, int64_t id, json_t *more);
void client_fail(struct client *client, int64_t id, int code, const char *text);
/* For a reply that comes later. NULL: the client has been refused, for want of memory or for too
 * many requests. */
struct pending *client_pend(struct client *client, int64_t id);
/* Frees it. NULL: the client has gone. */
struct client *client_settle(struct pending *pending, int64_t *ret_id);
/* A provider_done_cb for a struct pending. */
void client_done(void *userdata, int code, const struct baton_error *error);

/* ---- requests.c: one row for each verb ------------------------------------------------------- */

/* Answers, or arranges for it. */
void request_take(struct client *client, json_t *message);
/* NULL, and the client was refused: it is missing, or no text. */
const char *request_text(struct client *client, const json_t *message, const char *key);
int64_t request_id(const json_t *message);
instant request_deadline(const json_t *message);

/* ---- tenant.c ------------------------------------------------------------------------------- */

void tenant_hello(struct client *client, const json_t *message);
void tenant_renew(struct client *client, const json_t *message);
void tenant_bye(struct client *client, const json_t *message);
void tenant_acting(struct client *client, const json_t *message);
void tenant_gone(struct client *client, const json_t *message);
/* Takes the pidfd of process 1 of its PID namespace: when that has ended, nothing acts for it. */
void tenant_take_container(struct tenant *tenant, int pidfd);
/* Ends its session: it acts no more. */
void tenant_end(struct tenant *tenant, const char *why);
/* Ends what the agent has of it; where there are sessions, its session goes on. */
void tenant_detach(struct tenant *tenant);
/* Ends the processes that were silent for too long. */
void tenant_sweep(struct agent *agent);
/* Ends a hunt. */
void tenant_hunted(struct tenant *tenant, bool has_survivors);
/* Until when it may act; the past: it leads nothing, or not for certain. */
instant tenant_promise(struct tenant *tenant);

/* ---- hunt.c ---------------------------------------------------------------------------------- */

/* Kills what has the marker of a client that has died, in its turn; tenant_hunted() follows, or has
 * been called. */
void hunt_begin(struct tenant *tenant);

/* ---- parts.c ----------------------------------------------------------------------------- */

void part_campaign(struct client *client, const json_t *message);
void part_resign(struct client *client, const json_t *message);
void part_drained(struct client *client, const json_t *message);
void part_leave(struct client *client, const json_t *message);
void part_eligible(struct client *client, const json_t *message);
void part_metadata(struct client *client, const json_t *message);
void part_leader(struct client *client, const json_t *message);
void part_members(struct client *client, const json_t *message);
void part_list(struct client *client, const json_t *message);
void part_pass(struct client *client, const json_t *message);
void part_cordon(struct client *client, const json_t *message);
/* Frees it: it has stopped. */
void part_free(struct part *part);
/* Until when the process may act in it. */
instant part_end(const struct part *part);

/* ---- lists.c: values ------------------------------------------------------------------------- */

/* Replies with the values, in parts where one message has no room for them. Copies. */
void list_reply(struct client *client, int64_t id, const struct provider_value *values,
                size_t count);
/* The same, as an event of the watch. Closes the client if there is no room for the values. */
void list_change(struct client *client, int64_t watch, const struct provider_value *values,
                 size_t count);
/* The watch has ended. */
void list_unwatch(struct client *client, int64_t watch);
/* The client has taken all that was sent to it. */
void lists_go_on(struct client *client);
/* The connection has ended. */
void lists_end(struct client *client);
/* Closes clients that do not read their lists. */
void lists_sweep(struct agent *agent, instant now);

/* ---- data.c: state and channels -------------------------------------------------------------- */

void data_get(struct client *client, const json_t *message);
void data_list(struct client *client, const json_t *message);
void data_put(struct client *client, const json_t *message);
void data_watch(struct client *client, const json_t *message);
void data_unwatch(struct client *client, const json_t *message);
void data_publish(struct client *client, const json_t *message);
void data_subscribe(struct client *client, const json_t *message);
void data_unsubscribe(struct client *client, const json_t *message);
/* Ends all feeds of a connection that has ended. */
void data_end(struct client *client);

#endif
