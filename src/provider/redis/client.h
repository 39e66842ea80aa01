/* An open provider: two connections to one server (commands; notices), and the elections on them.
 * Inner header: for the files of this folder. */
#ifndef PROVIDER_REDIS_CLIENT_H
#define PROVIDER_REDIS_CLIENT_H

#include "base/deadlines.h"
#include "lease/lease.h"
#include "lease/majority.h"
#include "net/redis/cluster.h"
#include "net/redis/redis.h"
#include "net/redis/sentinel.h"
#include "provider/provider.h"
#include "provider/redis/layout.h"
#include "provider/redis/parse.h"
#include "provider/redis/scripts.h"

#include <uthash.h>

#define WAKE ":wake" /* NAME:wake is the channel of an election's notices */

enum {
    ID_MAX = 40,
    KEY_NAMES = 9,
    KEY_MAX = BATON_NAME_MAX + 32,
    REGISTRY_KEYS = 6,
    BEATS_AT_ONCE = 16 /* elections whose heartbeats share one script */
};

struct client;
struct guardian;
struct victims;

struct text; /* texts.c */

/* The registry's entry of another process, as last read. */
struct entry {
    struct entry *next;
    struct text *id;
    struct text *name;
    struct text *metadata; /* JSON, or NULL */
    int64_t seen_ms;       /* its latest sign of life, by its own entry; 0: none */
    instant seen;          /* when that changed, by our clock */
    bool is_there;         /* while the list is read anew */
    bool is_cordoned;
    enum member_fault fault : 8; /* the fault that was reported */
    uint32_t max_lease_ms;       /* 0: none */
};

/* The kinds of requests for an election. */
enum request_kind { REQUEST_LOCK, REQUEST_ENTRY, REQUEST_LIST, REQUEST_KINDS };

/* The last refusal by the server that was reported; kind 0: none. */
struct refusal {
    uint32_t kind;       /* 0: none */
    uint32_t reported_s; /* of the monotonic clock */
};

/* This process's registration in one election. There may be ten thousand of them: its bytes are
 * counted (tests/provider/test_redis_many.c), so what is small stands together. */
struct registration {
    struct provider_election base;
    struct client *client;
    struct registration *next_unused;
    UT_hash_handle hh; /* by name */
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    char *metadata;
    struct lease lease;
    instant deadline;      /* the lease core's; before the start, the start itself */
    instant beat;          /* of the registry */
    int64_t registered_ms; /* by the wall clock: when it began to take part */
    instant starts;        /* it contends from then on */
    struct deadline turn;  /* in the agenda: the earlier of both */
    int slot;              /* of the guardian's commands */
    instant offered;       /* the lock is offered to another process until then; 0: it is not */
    struct text *holder;   /* the lock's holder, by id; NULL: none */
    uint64_t holder_epoch;
    instant beatless_since; /* the holder has no heartbeat; 0: it has one */
    struct refusal refusals[REQUEST_KINDS];
    uint64_t reported_epoch; /* of the leader that was reported last */
    struct text *reported_leader;
    bool is_leader_listed;   /* and the registry had an entry of it */
    const struct text *heir; /* the process to which the lock is being passed */
    struct entry *entries;
    struct quorum *quorum; /* NULL: there is but one server */
    enum baton_role role;
    enum { BEAT_FINE, BEAT_STALE, BEAT_AHEAD } reported_beat; /* the holder's heartbeat */
    bool is_starting; /* until its start delay is over and the server is up */
    bool eligible;
    bool is_contending; /* for a lock without a known holder */
    bool is_urgent;     /* the next step's request leaves before any other work */
    bool is_leaving;
    bool is_stopped;
    bool is_reading; /* the registry */
    bool reads_again;
    bool is_listed;        /* in the registry, as it was last read */
    bool is_offer;         /* any process may take the lock; the heir asks first */
    bool knows_trouble;    /* reported: the lack of a connection */
    bool knows_clock;      /* reported: the server's clock differs from ours */
    bool knows_endless;    /* reported: the lock has no lifetime */
    bool knows_difference; /* reported: another member has another max-lease */
    bool knows_odd;        /* reported: the lock's value is no id */
    bool knows_nameless;   /* reported: an invalid id in the registry */
    unsigned references;   /* replies under way, and the client's table */
    char name[];
};

/* The registrations in the order of their next deadlines. */
struct agenda {
    struct deadlines turns;
    uv_timer_t timer;
    instant armed; /* when the timer fires; INSTANT_NEVER: it is off */
    bool is_running;
};

/* A subscriber of a channel or of keys. */
struct subscriber {
    struct subscriber *next;
    struct client *client;
    bool is_watch;
    bool is_gone;
    char *name;
    provider_message_cb on_message;
    provider_values_cb on_change;
    void *userdata;
    struct known *known; /* of a watch: the keys that were reported */
    uint64_t revision;   /* the highest that was reported */
    bool is_listing;
};

/* One of several independent servers, or the only one. */
struct server {
    struct client *client;
    int number;
    struct redis *commands;
    struct redis *notices;
    bool is_double;                         /* the same server as another one here: not counted */
    char peer[REDIS_HOST_MAX];              /* the latest numeric "HOST:PORT", or path */
    char trouble[BATON_ERROR_MESSAGE_MAX];  /* the present fault */
    char reported[BATON_ERROR_MESSAGE_MAX]; /* reported, and not over for long */
    instant trouble_logged;
    instant away_logged; /* the same of the program's log, if it has no election */
    bool is_away_logged;
    instant up_since;                              /* 0: not up since then */
    char notices_trouble[BATON_ERROR_MESSAGE_MAX]; /* the same of the other connection */
};

/* Grants of the server that count once `replicas` replicas have them. */
struct waits {
    int replicas; /* 0: at once */
    span timeout;
    struct waiting *asked; /* covered by the WAIT under way */
    struct waiting *queued;
};

struct client {
    struct provider base;
    uv_loop_t *loop;
    struct logger *logger;
    const _Atomic int64_t *alive_ns; /* this and on_failed as struct provider_config has them */
    void (*on_failed)(void *userdata, const struct baton_error *error);
    void *failed_userdata;
    struct redis_address address;
    struct lease_settings settings;
    const struct layout *layout;
    span max_lease;        /* the longest lease that any process of these elections may have */
    span longest;          /* the same, or a leader's if that is longer */
    span process_lifetime; /* of a registry entry */
    char lifetimes[16];    /* how entries expire on the server; "": not known yet */
    span start_delay;      /* at most, before a process first contends */
    char prefix[128];      /* of the state's keys */
    bool has_own_prefix;   /* the user gave it */
    char id[ID_MAX];       /* of this process: a UUID */
    char node[BATON_NAME_MAX];
    struct server servers[MAJORITY_MAX];
    int server_count;
    bool was_up;            /* one of them was */
    struct redis *commands; /* of the first server, mostly the only one */
    struct redis *notices;
    struct sentinel *sentinel;     /* or NULL */
    struct redis_cluster *cluster; /* or NULL; its home is .commands */
    struct redis_script scripts[SCRIPT_COUNT];
    struct guardian *guardian; /* or NULL */
    bool wants_guardian;
    bool has_victims;     /* a program acts for this process */
    bool kills_outliving; /* the guardian kills a process that outlives its lease */
    span hang;            /* and a leader whose loop is silent for so long; 0: not */
    char refusal[BATON_ERROR_MESSAGE_MAX]; /* the latest that was logged */
    const struct baton_error *cause; /* why the request behind the current step failed, or NULL */
    uv_timer_t upkeep;               /* of watches: the end of a lifetime sends no notice */
    void (*on_renewed)(void *userdata, span took); /* or NULL */
    void *renewed_userdata;
    struct registration *registrations;
    struct registration *unused; /* without references */
    struct agenda agenda;
    struct registration
        *beating[BEATS_AT_ONCE]; /* whose heartbeats are sent at the end of this turn */
    int beating_count;
    struct waits waits;
    struct drafts {
        char *processes[2][2]; /* leads; eligible */
        char *slave;
    } drafts; /* of entries without metadata */
    uint64_t chance;
    char lease_ms[24]; /* lifetimes as the scripts take them */
    char max_lease_ms[24];
    char longest_ms[24];
    char interval_ms[24];
    char beat_ms[24];
    struct text *texts;
    struct text *self; /* the id */
    struct subscriber *subscribers;
    unsigned depth; /* callbacks under way */
    bool is_closing;
    bool is_reloading; /* a new password was sent to the servers, which have not all answered */
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* connections.c */
int client_connect(struct client *client, struct baton_error *reterr);
/* The code of an unexpected reply. If the caller gets only the code, the log has the text: once for
 * as long as it stays the same. */
int client_refused(struct client *client, const redisReply *reply);
void client_warn(struct client *client, const struct baton_error *error);

/* redis_provider.c */
void client_release(struct client *client);
/* Runs a script on one of several servers. */
int client_run_at(struct client *client, int server, enum script_name script, int key_count,
                  int count, const char **arguments, redis_reply_cb on_reply, void *userdata,
                  uint64_t tag);
/* Whether more than half of the servers are reachable. */
bool client_is_up(const struct client *client);
int client_subscribe(struct client *client, const char *channel);
void client_unsubscribe(struct client *client, const char *channel);
/* PUBLISH on one server: subscribers listen to all of them. */
int client_publish(struct client *client, const char *channel, const void *data, size_t bytes,
                   redis_reply_cb on_reply, void *userdata);
/* The connection to the server of this key, as far as it is known now; or NULL. */
const struct redis *client_server_of(const struct client *client, const char *key);
/* Sends the requests to the server of this key now, and not when the loop has time. */
void client_flush(struct client *client, const char *key);
void client_enter(struct client *client);
void client_exit(struct client *client); /* the outermost call frees what has ended */
uint64_t client_random(void);
/* A cheap random number, for decisions that an attacker may predict. */
uint64_t client_chance(struct client *client);
int client_run(struct client *client, enum script_name script, int key_count, int count,
               const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
               void *userdata, uint64_t tag);

/* status.c */
struct json_t *redis_provider_status(struct provider *provider);

/* reload.c */
int redis_provider_reload(struct provider *provider, const char *url, provider_done_cb done,
                          void *userdata, struct baton_error *reterr);

/* election.c: coming and going */
int registration_campaign(struct provider_election **ret, struct provider *provider,
                          const struct provider_campaign *campaign, struct baton_error *reterr);
int registration_check_heir(struct provider_election *election, const char *to,
                            struct baton_error *reterr);
int registration_resign(struct provider_election *election, const char *to, instant deadline,
                        struct baton_error *reterr);
int registration_set_eligible(struct provider_election *election, bool eligible,
                              struct baton_error *reterr);
int registration_set_metadata(struct provider_election *election, const char *metadata,
                              struct baton_error *reterr);
void registration_leave(struct provider_election *election);
void registration_leader(struct provider_election *election, struct baton_member *ret,
                         uint64_t *ret_epoch);
void registration_wake(const struct registration *registration,
                       char ret[KEY_MAX]); /* the name of its channel */
struct registration *registration_find(const struct client *client, const char *name, size_t bytes);
/* The last reference leaves the memory to registrations_free_unused(), which runs when no callback
 * is under way.
 */
void registration_unref(struct registration *registration);
void registration_answered(struct registration *registration); /* drops the reference of a reply */
void registrations_free_unused(struct client *client);
void registration_end(struct registration *registration);

/* steps.c: what drives the lease core */
void registration_start(
    struct registration *registration); /* it contends from now on, or after its delay */
void registration_step(struct registration *registration, const struct lease_input *input);
void registration_due(struct registration *registration, instant now);
void registration_connection(struct registration *registration, bool is_up);
void registration_notice(struct registration *registration, const char *text, size_t bytes);
void registration_contenders(struct registration *registration, uint32_t count);
void registration_take_holder(struct registration *registration, const char *id, uint64_t epoch);
struct text *registration_text(struct registration *registration, const char *id); /* "": NULL */
/* Releases an unwanted grant, without a notice. */
void registration_give_back(struct registration *registration, uint64_t epoch);

/* report.c: events for listeners */
void registration_deliver(struct registration *registration, const struct baton_event *event);
void registration_error(struct registration *registration, const struct baton_error *error);
/* Reports it if it is an error: a lasting one once, and again after a while. */
void registration_refused(struct registration *registration, enum request_kind request,
                          const redisReply *reply);
/* Reports any reply as a fault, except for NULL. */
void registration_misunderstood(struct registration *registration, enum request_kind request,
                                const redisReply *reply);
void registration_understood(struct registration *registration,
                             enum request_kind request); /* the reported fault is over */
/* The error's text, with the election's name. */
void registration_fault(const struct registration *registration, enum request_kind request,
                        const redisReply *reply, struct baton_error *ret);
/* Events of a step, at this instant; then those of an attempt to take the lock, and of a new
 * leader. */
void registration_report_change(struct registration *registration, const struct lease_event *from,
                                instant at);
void registration_report_attempt(struct registration *registration, const struct lease_input *input,
                                 const struct lease_update *update);
void registration_report_leader(struct registration *registration);

/* texts.c */
struct text *text_get(struct client *client, const char *bytes, size_t count); /* NULL: no memory */
void text_drop(struct client *client, struct text *text);                      /* NULL allowed */
/* Replaces a text by one from text_get(), and drops the old one. */
void text_move(struct client *client, struct text **to, struct text *text);
const char *text_of(const struct text *text); /* NULL: "" */
/* Whether JSON, and so the registry, can contain the text. */
bool text_is_utf8(const char *bytes);

/* agenda.c */
void agenda_init(struct client *client);
void agenda_fini(struct client *client);
int agenda_add(struct registration *registration);     /* BATON_ENOMEM */
void agenda_change(struct registration *registration); /* its times have changed */
void agenda_remove(struct registration *registration);

/* heartbeats.c: for a layout whose heartbeats are checked */
void heartbeats_check(struct registration *registration, const struct lock_answer *answer);
void heartbeats_sweep(struct registration *registration);

/* lock.c */
/* Sends an order of the majority, or of the core, to a server; -1: the only one. */
int registration_send(struct registration *registration, int server,
                      const struct majority_order *order, redis_reply_cb on_reply, void *userdata,
                      uint64_t tag);
/* Takes another process's max-lease, from the lock's record or the registry: the longest one
 * counts.
 */
void lock_check_max_lease(struct registration *registration, const char *rank, const char *id,
                          span theirs, bool is_known);
/* Reports foreign values in the lock's keys. */
void lock_check(struct registration *registration, const struct lock_answer *answer);

/* waits.c */
int waits_check(const struct client *client, struct baton_error *reterr);
/* False: the grant counts at once. True: the core gets the grant, or a lost reply, later. */
bool waits_take(struct registration *registration, const struct lease_input *grant, bool is_take,
                instant sent);

/* quorum.c: an election on several servers */
int quorum_begin(struct registration *registration);
int quorum_run(struct registration *registration, const struct lease_command *command);
void quorum_end(struct registration *registration);

/* enrol.c: this process's own entry in the registry */
void enrol_begin(struct registration *registration);
void enrol_beat(
    struct registration *registration);     /* at the end of this turn; also plans the next one */
void enrol_beat_now(struct client *client); /* called at the end of the turn */
/* AND_READ: then reads the other members, if there are any. AGAIN: a heartbeat. */
enum registering { REGISTER, REGISTER_AND_READ, REGISTER_AGAIN };
void enrol_write(struct registration *registration, enum registering how);
/* When the next leader has had time to ask: the server runs one command after another. */
void enrol_soon(struct registration *registration);
void enrol_forget_drafts(struct client *client);
void enrol_leave(struct registration *registration);

/* registry.c: the entries of others */
/* As the scripts take them: processes, their lifetimes, channels, notices, slaves, the leader. */
void registry_keys(const struct registration *registration, char ret[REGISTRY_KEYS][KEY_MAX]);
void registry_read(struct registration *registration);
/* Whether the registry differs from what was read last; the server has `count` entries, with
 * ours. */
bool registry_is_behind(const struct registration *registration, uint32_t count);
void registry_free(struct registration *registration);
/* Finds another process than this one. */
const struct entry *registry_find(const struct registration *registration, const char *id_or_name);
void registry_describe(const struct registration *registration, const char *id,
                       struct baton_member *ret);
int registry_members(struct provider_election *election, provider_members_cb done, void *userdata,
                     struct baton_error *reterr);

/* guardian.c */
void redis_guardian_begin(struct client *client);
void redis_guardian_connected(struct client *client);
void redis_guardian_end(struct client *client);
void redis_guardian_slot_begin(struct registration *registration);
void redis_guardian_slot_end(struct registration *registration);
void redis_guardian_publish(struct registration *registration, const struct lease_update *update);
void redis_guardian_set_victims(struct provider *provider, const struct victims *victims);

/* state.c */
int redis_state_get(struct provider *provider, const char *key, provider_values_cb done,
                    void *userdata, struct baton_error *reterr);
int redis_state_list(struct provider *provider, const char *prefix, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int redis_state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
                    uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                    struct baton_error *reterr);
int redis_state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                      void *userdata, struct baton_error *reterr);
void redis_state_unwatch(struct provider *provider, const char *prefix, void *userdata);
void redis_state_deliver(struct client *client, const char *text, size_t bytes);
void redis_state_look_again(struct client *client);
void known_free(struct subscriber *subscriber);

/* channel.c */
int channel_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                    provider_done_cb done, void *userdata, struct baton_error *reterr);
int channel_subscribe(struct provider *provider, const char *channel,
                      provider_message_cb on_message, void *userdata, struct baton_error *reterr);
void channel_unsubscribe(struct provider *provider, const char *channel, void *userdata);
void channel_deliver(struct client *client, const char *channel, const void *data, size_t bytes);
void subscribers_sweep(struct client *client);

#endif
