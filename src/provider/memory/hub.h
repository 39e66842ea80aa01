/* The state that all openers of one memory:NAME share, on whichever threads their loops run.
 *
 * One mutex guards a hub. A thread that changes it leaves notifications for the others and wakes
 * their loops; each loop calls its callbacks on its own thread, without the mutex. A change of
 * leader is no notification: each registration looks the leader up when its loop wakes, so that a
 * lack of memory cannot lose it.
 */
#ifndef PROVIDER_MEMORY_HUB_H
#define PROVIDER_MEMORY_HUB_H

#include "provider/provider.h"

#include <pthread.h>
#include <uthash.h>

struct memory;

/* A process's part in an election. */
struct registration {
    struct provider_election base;
    struct memory *memory;
    struct hub_election *election;
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    char *metadata;
    struct registration *next; /* of the election, in the order of joining; hub's lock */
    /* Hub's lock: */
    bool eligible;
    uint64_t granted_epoch; /* last led in */
    uint64_t lost_epoch;    /* last lost */
    enum baton_loss loss;
    /* Its loop only: */
    struct registration *next_own; /* of the same memory */
    enum baton_role reported_role;
    uint64_t reported_acquired;
    uint64_t reported_lost;
    uint64_t reported_leader; /* epoch; 0: none */
    bool is_leaving;
};

/* An election, from the first use of its name. */
struct hub_election {
    char name[BATON_NAME_MAX];
    struct registration *registrations;
    struct registration *leader;
    uint64_t epoch; /* of the leader */
    UT_hash_handle hh;
};

struct key {
    char *name;
    void *data;
    size_t bytes;
    uint64_t revision;
    instant expires;
    UT_hash_handle hh;
};

/* A subscriber of a channel or of keys. */
struct subscriber {
    struct subscriber *next;     /* of the hub */
    struct subscriber *next_own; /* of the same memory; its loop only */
    struct memory *memory;
    uint64_t id;
    bool is_watch;
    char *name;
    provider_message_cb on_message;
    provider_values_cb on_change;
    void *userdata;
};

/* A notice for another loop: an event of a registration, or data for a subscriber. */
struct notification {
    struct notification *next;
    struct registration *registration; /* looked up before use; or NULL */
    struct baton_event event;
    uint64_t subscriber;
    char *name;
    void *data; /* NULL: deleted */
    size_t bytes;
    uint64_t revision;
};

struct hub {
    struct hub *next;
    size_t references;
    char name[BATON_NAME_MAX];
    pthread_mutex_t lock;
    /* Under it: */
    uint64_t revision;
    uint64_t ids;
    struct hub_election *elections;
    struct key *keys;
    instant next_expiry;
    struct subscriber *subscribers;
    struct memory *memories;
};

/* An open provider. */
struct memory {
    struct provider base;
    uv_loop_t *loop;
    struct hub *hub;
    struct memory *next; /* of the hub; its lock */
    char node[BATON_NAME_MAX];
    uv_async_t wake;
    uv_timer_t expiry;
    struct notification *notifications, **notifications_last; /* hub's lock */
    /* Its loop only: */
    struct registration *registrations;
    struct subscriber *subscribers;
    unsigned depth; /* callbacks under way: registrations are freed by the outermost */
    bool is_closing;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* The hub of that name, made if need be; name "": a new one of its own. NULL: out of memory. */
struct hub *hub_join(const char *name);
void hub_leave(struct hub *hub);
/* Greater than every one before, in this process and in those that ended. */
uint64_t hub_next_epoch(void);

/* For a moment: no callback runs under it. */
void hub_lock(struct hub *hub);
void hub_unlock(struct hub *hub);
/* Under it. */
void hub_wake_all(struct hub *hub);
/* Appends a notification and wakes its memory. */
void hub_post(struct memory *memory, struct notification *notification);

/* A copy of the guarded state. */
struct standing {
    uint64_t granted_epoch;
    uint64_t lost_epoch;
    enum baton_loss loss;
    uint64_t leader_epoch; /* 0: no leader */
    struct baton_member leader;
};

/* report.c: on the loop of the memory, without the lock. */
struct standing memory_look(struct registration *registration);
void memory_deliver(struct registration *registration, const struct baton_event *event);
/* Reports every change of its standing that was not reported yet. */
void memory_report_standing(struct registration *registration);
/* All of that memory's registrations and subscribers. */
void memory_catch_up(struct memory *memory);
/* Frees the registrations that have left, unless a callback is under way. */
void memory_sweep(struct memory *memory);

/* election.c: under the lock. */
struct hub_election *hub_election_find(struct hub *hub, const char *name); /* made if need be */
void hub_election_join(struct hub_election *election, struct registration *registration);
void hub_election_leave(struct hub_election *election, struct registration *registration,
                        enum baton_loss loss);
struct registration *hub_election_registration_of(const struct hub_election *election,
                                                  const char *node);
/* Replaces the leader by `to` (NULL: the next in the queue). */
void hub_election_hand_over(struct hub *hub, struct hub_election *election, enum baton_loss loss,
                            struct registration *to);
/* Appoints a leader, if any registration may lead. */
void hub_election_appoint(struct hub *hub, struct hub_election *election, struct registration *to);
void registration_describe(const struct registration *registration, const struct memory *asking,
                           struct baton_member *ret);

/* state.c: functions of the provider. */
int memory_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr);
int memory_list(struct provider *provider, const char *prefix, provider_values_cb done,
                void *userdata, struct baton_error *reterr);
int memory_put(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
               struct baton_error *reterr);
int memory_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr);
void memory_unwatch(struct provider *provider, const char *prefix, void *userdata);
int memory_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                   provider_done_cb done, void *userdata, struct baton_error *reterr);
int memory_subscribe(struct provider *provider, const char *channel, provider_message_cb on_message,
                     void *userdata, struct baton_error *reterr);
void memory_unsubscribe(struct provider *provider, const char *channel, void *userdata);
/* Under the lock: deletes keys whose lifetime is over, and notifies their watchers. */
void hub_keys_expire(struct hub *hub, instant now);
void hub_keys_free(struct hub *hub);
/* On the memory's loop, without the lock. */
void subscribers_deliver(struct memory *memory, const struct notification *notification);
void readers_end(struct memory *memory);
void expiry_rearm(struct memory *memory);

void notification_free(struct notification *notification);

#endif
