/* An open provider: two connections to one server (commands; what is told), and what runs on them.
 * Inner header: for the files of this folder. */
#ifndef PROVIDER_REDIS_CLIENT_H
#define PROVIDER_REDIS_CLIENT_H

#include "lease/lease.h"
#include "lease/majority.h"
#include "net/redis/cluster.h"
#include "net/redis/redis.h"
#include "net/redis/sentinel.h"
#include "provider/redis/layout.h"
#include "provider/redis/parse.h"
#include "provider/redis/redis_provider.h"
#include "provider/redis/scripts.h"

/* Out of memory, an element has no table, in place of the process's end. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define WAKE ":wake" /* behind a name: the channel of its notices */

enum {
    ID_MAX = 40,
    KEY_NAMES = 9,
    KEY_MAX = BATON_NAME_MAX + 32,
    REGISTRY_KEYS = 6,
    BEATS_AT_ONCE = 16 /* elections whose heartbeats are one script */
};

struct client;
struct guardian;
struct victims;

struct text; /* texts.c */

/* Another one of the registry, as it was last read. */
struct entry {
    struct entry *next;
    struct text *id;
    struct text *name;
    struct text *metadata; /* JSON, or NULL */
    int64_t seen_ms;       /* what it says of its latest sign of life; 0: nothing */
    instant seen;          /* when that changed, by our clock */
    bool is_there;         /* while the list is read anew */
    bool is_cordoned;
    enum member_fault fault : 8; /* that was told */
    uint32_t max_lease_ms;       /* 0: it says none */
};

/* What is asked of the server for an election. */
enum errand { ERRAND_LOCK, ERRAND_ENTRY, ERRAND_LIST, ERRANDS };

/* What it refused last, as it was told; 0: nothing. */
struct refusal {
    uint32_t kind;
    instant told;
};

/* This process in one election. */
struct seat {
    struct provider_election base;
    struct client *client;
    struct seat *next_unused;
    UT_hash_handle hh; /* by name */
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    char *metadata;
    struct lease lease;
    instant deadline;      /* the lease core's; before that, the start */
    instant beat;          /* of the registry */
    int64_t registered_ms; /* by the wall clock: when it began to take part */
    instant starts;        /* contends from then on */
    uint32_t place;        /* in the agenda, counted from 1; 0: none */
    int slot;              /* of the guardian's commands */
    instant offered;       /* to somebody else, who may have it until then; 0: it is not */
    bool is_starting;      /* from the campaign until its start and the server are there */
    bool eligible;
    bool is_contending; /* for a lock that nobody is known to have */
    bool is_urgent; /* what the next step asks of the server leaves before anything else is done */
    bool is_leaving;
    bool is_stopped;
    bool knows_trouble; /* it was told why there is no connection */
    bool is_reading;    /* the registry */
    bool reads_again;
    enum baton_role role;
    bool is_listed;      /* in the registry, as it was last read */
    struct text *holder; /* id of who has the lock; NULL: nobody */
    uint64_t holder_epoch;
    instant beatless_since; /* the holder has no heartbeat; 0: it has one */
    enum { BEAT_FINE, BEAT_STALE, BEAT_AHEAD } told_beat; /* the holder's heartbeat, as told */
    bool knows_clock;      /* it was told that the server's clock is not ours */
    bool knows_endless;    /* it was told that the lock has no lifetime */
    bool knows_difference; /* it was told that the leader has another max-lease */
    bool knows_odd;        /* it was told that the lock's value is no id */
    bool knows_nameless;   /* the same of an id in the registry */
    struct refusal refusals[ERRANDS];
    uint64_t told_leader; /* epoch that was told with it */
    struct text *told;
    const struct text *heir; /* to whom it is being passed */
    bool is_offer;           /* whoever comes first may have it: the heir is to be that one */
    struct entry *entries;
    struct quorum *quorum; /* NULL: there is but one server */
    unsigned references;   /* answers on their way, and the client's table */
    char name[];
};

struct turn {
    instant due;
    struct seat *seat;
};

/* Whose turn it is next. */
struct agenda {
    struct turn *heap; /* the next to be seen to first */
    uint32_t count, capacity;
    uv_timer_t timer;
    instant armed; /* when it comes; INSTANT_NEVER: not at all */
    bool is_running;
};

/* Who hears of a channel or of keys. */
struct reader {
    struct reader *next;
    struct client *client;
    bool is_watch;
    bool is_gone;
    char *name;
    provider_message_cb on_message;
    provider_values_cb on_change;
    void *userdata;
    struct known *known; /* of a watch: what was told */
    uint64_t revision;   /* the highest told */
    bool is_listing;
};

/* One of several that are independent of each other, or the only one. */
struct server {
    struct client *client;
    int number;
    struct redis *commands;
    struct redis *told;
    bool is_double;            /* another name of one that is there already: it does not count */
    char peer[REDIS_HOST_MAX]; /* "HOST:PORT" in numbers, or a path, as it was reached last */
    char trouble[BATON_ERROR_MESSAGE_MAX]; /* that there is now */
    char said[BATON_ERROR_MESSAGE_MAX];    /* told, and over for a moment at most */
    instant trouble_told;
    instant up_since;                           /* 0: it has not come up since then */
    char told_trouble[BATON_ERROR_MESSAGE_MAX]; /* the same of the other connection */
};

/* What the server has granted, and counts once so many replicas have it. */
struct waits {
    int replicas; /* 0: at once */
    span timeout;
    struct waiting *asked; /* by the WAIT that is under way */
    struct waiting *queued;
};

struct client {
    struct provider base;
    uv_loop_t *loop;
    struct logger *logger;
    struct redis_address address;
    struct lease_settings settings;
    const struct layout *layout;
    span max_lease;        /* the longest lease that any process of these elections may have */
    span longest;          /* the same, or a greater one that a leader has */
    span process_lifetime; /* of a registry entry */
    char lifetimes[16];    /* by what its entries end on the server; "": it is to be asked */
    span start_delay;      /* at most, before a process first contends */
    char prefix[128];      /* of the state's keys */
    bool has_own_prefix;   /* the user gave it */
    char id[ID_MAX];       /* of this process: a UUID */
    char node[BATON_NAME_MAX];
    struct server servers[MAJORITY_MAX];
    int server_count;
    struct redis *commands; /* the first one's, which is the only one as a rule */
    struct redis *told;
    struct sentinel *sentinel;     /* or NULL */
    struct redis_cluster *cluster; /* or NULL; its home is .commands */
    struct redis_script scripts[SCRIPT_COUNT];
    struct guardian *guardian; /* or NULL */
    bool wants_guardian;
    bool has_victims;                      /* a program acts for this process */
    bool kills_outliving;                  /* it ends a process that outlives its lease */
    char refusal[BATON_ERROR_MESSAGE_MAX]; /* the latest that was logged */
    const struct baton_error *cause;       /* why the request that a step goes by failed, or NULL */
    uv_timer_t upkeep;           /* of watches: lifetimes that are over are told by nobody */
    redis_renewed_cb on_renewed; /* or NULL */
    void *renewed_userdata;
    struct seat *seats;
    struct seat *unused; /* nobody refers to them any more */
    struct agenda agenda;
    struct seat *beating[BEATS_AT_ONCE]; /* whose heartbeats leave at the end of this turn */
    int beating_count;
    struct waits waits;
    struct drafts {
        char *processes[2][2]; /* leads; eligible */
        char *slave;
    } drafts; /* of the entries of whoever has no metadata */
    uint64_t chance;
    char lease_ms[24]; /* lifetimes as the scripts take them */
    char max_lease_ms[24];
    char longest_ms[24];
    char interval_ms[24];
    char beat_ms[24];
    struct text *texts;
    struct text *self; /* the id */
    struct reader *readers;
    unsigned depth; /* callbacks under way */
    bool is_closing;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* connections.c */
int client_connect(struct client *client, struct baton_error *reterr);
/* The code of an answer that is not what was asked for. Where only a code can be given to whoever
 * asked, the log has the words: once for as long as they stay the same. */
int client_refused(struct client *client, const redisReply *reply);
void client_warn(struct client *client, const struct baton_error *error);

/* redis_provider.c */
void client_release(struct client *client);
/* The same on one of several servers. */
int client_run_at(struct client *client, int server, enum script_name script, int key_count,
                  int count, const char **words, redis_reply_cb on_reply, void *userdata,
                  uint64_t tag);
/* More than half of the servers can be reached; of one, it. */
bool client_is_up(const struct client *client);
int client_subscribe(struct client *client, const char *channel);
void client_unsubscribe(struct client *client, const char *channel);
/* PUBLISH on one of them: whoever subscribes does so on all. */
int client_publish(struct client *client, const char *channel, const void *data, size_t bytes,
                   redis_reply_cb on_reply, void *userdata);
/* The connection to whoever has this key, as far as it is known now; or NULL. */
const struct redis *client_server_of(const struct client *client, const char *key);
/* What was asked of whoever has this key leaves now, and not when the loop has time. */
void client_flush(struct client *client, const char *key);
void client_enter(struct client *client);
void client_exit(struct client *client); /* the outermost sweeps what is gone */
uint64_t client_random(void);
/* A number for a decision that may be guessed, at the price of a few instructions. */
uint64_t client_chance(struct client *client);
int client_run(struct client *client, enum script_name script, int key_count, int count,
               const char **words, const size_t *lengths, redis_reply_cb on_reply, void *userdata,
               uint64_t tag);

/* status.c */
struct json_t *redis_provider_status(struct provider *provider);

/* election.c: coming and going */
int seat_campaign(struct provider_election **ret, struct provider *provider,
                  const struct provider_campaign *campaign, struct baton_error *reterr);
int seat_check_heir(struct provider_election *election, const char *to, struct baton_error *reterr);
int seat_resign(struct provider_election *election, const char *to, instant deadline,
                struct baton_error *reterr);
int seat_set_eligible(struct provider_election *election, bool eligible,
                      struct baton_error *reterr);
int seat_set_metadata(struct provider_election *election, const char *metadata,
                      struct baton_error *reterr);
void seat_leave(struct provider_election *election);
void seat_leader(struct provider_election *election, struct baton_member *ret, uint64_t *ret_epoch);
void seat_wake(const struct seat *seat, char ret[KEY_MAX]); /* the name of its channel */
struct seat *seat_find(const struct client *client, const char *name, size_t bytes);
/* The last one leaves it to seats_bury(), which comes when no callback is under way. */
void seat_unref(struct seat *seat);
void seat_answered(struct seat *seat); /* the same, by an answer that needs it no more */
void seats_bury(struct client *client);
void seat_end(struct seat *seat);

/* steps.c: what drives the lease core */
void seat_start(struct seat *seat); /* it contends from now on, or after its delay */
void seat_step(struct seat *seat, const struct lease_input *input);
void seat_due(struct seat *seat, instant now);
void seat_connection(struct seat *seat, bool is_up);
void seat_notice(struct seat *seat, const char *text, size_t bytes);
void seat_contenders(struct seat *seat, uint32_t count);
void seat_take_holder(struct seat *seat, const char *id, uint64_t epoch);
struct text *seat_text(struct seat *seat, const char *id); /* "": NULL */
/* A grant is not wanted after all: nobody is told. */
void seat_give_back(struct seat *seat, uint64_t epoch);

/* tell.c: what listeners hear */
void seat_tell(struct seat *seat, const struct baton_event *event);
void seat_error(struct seat *seat, const struct baton_error *error);
/* Tells it if it is an error: what lasts is told once, and again after a while. */
void seat_refused(struct seat *seat, enum errand errand, const redisReply *reply);
/* The same, whatever it is, unless there is none. */
void seat_misunderstood(struct seat *seat, enum errand errand, const redisReply *reply);
void seat_understood(struct seat *seat, enum errand errand); /* what was told is over */
/* As it is told: by the election's name. */
void seat_fault(const struct seat *seat, enum errand errand, const redisReply *reply,
                struct baton_error *ret);
/* What a step has brought about, at this instant; then who contends, and who leads by now. */
void seat_tell_change(struct seat *seat, const struct lease_event *from, instant at);
void seat_tell_contest(struct seat *seat, const struct lease_input *input,
                       const struct lease_update *update);
void seat_tell_leader(struct seat *seat);

/* texts.c */
struct text *text_get(struct client *client, const char *bytes, size_t count); /* NULL: no memory */
void text_drop(struct client *client, struct text *text);                      /* NULL allowed */
/* Puts a text that was got in the place of another, which is dropped. */
void text_move(struct client *client, struct text **to, struct text *text);
const char *text_of(const struct text *text); /* NULL: "" */
/* As JSON wants it: the registry is written in it. */
bool text_is_utf8(const char *bytes);

/* agenda.c */
void agenda_init(struct client *client);
void agenda_fini(struct client *client);
int agenda_add(struct seat *seat);     /* BATON_ENOMEM */
void agenda_change(struct seat *seat); /* its times have changed */
void agenda_remove(struct seat *seat);

/* heartbeats.c: for a layout in which they are looked at */
void heartbeats_judge(struct seat *seat, const struct lock_answer *answer);
void heartbeats_sweep(struct seat *seat);

/* lock.c */
/* One order of the majority, or of the core, to a server; -1: the only one. */
int seat_send(struct seat *seat, int server, const struct majority_order *order,
              redis_reply_cb on_reply, void *userdata, uint64_t tag);
/* Another one's setting, from the lock's record or its entry in the registry: the longest counts.
 */
void lock_judge_max_lease(struct seat *seat, const char *rank, const char *id, span theirs,
                          bool is_known);
/* Tells of what is in the lock's keys and cannot be ours. */
void lock_judge(struct seat *seat, const struct lock_answer *answer);

/* waits.c */
int waits_check(const struct client *client, struct baton_error *reterr);
/* False: the grant counts at once. Else the core hears of it, or of no answer, from there. */
bool waits_take(struct seat *seat, const struct lease_input *grant, bool is_take, instant sent);

/* quorum.c: an election on several servers */
int quorum_begin(struct seat *seat);
int quorum_run(struct seat *seat, const struct lease_command *command);
void quorum_end(struct seat *seat);

/* enrol.c: this process's own entry in the registry */
void enrol_begin(struct seat *seat);
void enrol_beat(struct seat *seat);         /* at the end of this turn; and plans the next */
void enrol_beat_now(struct client *client); /* the turn is at its end */
/* AND_READ: and then who else there is, if anybody. AGAIN: a heartbeat. */
enum registering { REGISTER, REGISTER_AND_READ, REGISTER_AGAIN };
void enrol_write(struct seat *seat, enum registering how);
/* When whoever follows has had time to ask: the server does one thing after another. */
void enrol_soon(struct seat *seat);
void enrol_forget_drafts(struct client *client);
void enrol_leave(struct seat *seat);

/* registry.c: the entries of others */
/* As the scripts take them: processes, their lifetimes, channels, notices, slaves, the leader. */
void registry_keys(const struct seat *seat, char ret[REGISTRY_KEYS][KEY_MAX]);
void registry_read(struct seat *seat);
/* Whether what was read last is not what the server has, which knows of `count`, us included. */
bool registry_is_behind(const struct seat *seat, uint32_t count);
void registry_free(struct seat *seat);
/* Another one than this process. */
const struct entry *registry_find(const struct seat *seat, const char *id_or_name);
void registry_describe(const struct seat *seat, const char *id, struct baton_member *ret);
int registry_members(struct provider_election *election, provider_members_cb done, void *userdata,
                     struct baton_error *reterr);

/* guardian.c */
void redis_guardian_begin(struct client *client);
void redis_guardian_connected(struct client *client);
void redis_guardian_end(struct client *client);
void redis_guardian_slot_begin(struct seat *seat);
void redis_guardian_slot_end(struct seat *seat);
void redis_guardian_publish(struct seat *seat, const struct lease_update *update);
void redis_guardian_set_victims(struct provider *provider, const struct victims *victims);

/* state.c */
int redis_state_get(struct provider *provider, const char *key, provider_values_cb done,
                    void *userdata, struct baton_error *reterr);
int redis_state_list(struct provider *provider, const char *prefix, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int redis_state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
                    uint64_t revision, span lifetime, provider_done_cb done, void *userdata,
                    struct baton_error *reterr);
int redis_state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                      void *userdata, struct baton_error *reterr);
void redis_state_unwatch(struct provider *provider, const char *prefix, void *userdata);
void redis_state_told(struct client *client, const char *text, size_t bytes);
void redis_state_look_again(struct client *client);
void known_free(struct reader *reader);

/* channel.c */
int channel_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                    provider_done_cb done, void *userdata, struct baton_error *reterr);
int channel_subscribe(struct provider *provider, const char *channel,
                      provider_message_cb on_message, void *userdata, struct baton_error *reterr);
void channel_unsubscribe(struct provider *provider, const char *channel, void *userdata);
void channel_told(struct client *client, const char *channel, const void *data, size_t bytes);
void readers_sweep(struct client *client);

#endif
