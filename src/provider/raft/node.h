/* A node of a group: the core, its data directory and its connections, on one libuv loop.
 *
 *                     ┌───────────── node.c ─────────────┐
 *   connection.c ───▶ │ input ─▶ raft_step ─▶ update     │ ───▶ lease cell, connection.c, storage
 *   proof.c      ───▶ │ (messages, writes, events)       │ ───▶ event.c ─▶ the program
 *   request.c,   ───▶ └──────────────────────────────────┘
 *   state.c                                ◀─── committed orders
 *
 * For the files of this folder only.
 */
#ifndef PROVIDER_RAFT_NODE_H
#define PROVIDER_RAFT_NODE_H

#include "guardian/certificate.h"
#include "guardian/victims.h"
#include "net/stream.h"
#include "net/tls.h"
#include "provider/provider.h"
#include "provider/raft/frame.h"
#include "provider/raft/identity.h"
#include "provider/raft/keys.h"
#include "provider/raft/options.h"
#include "provider/raft/parcels.h"
#include "provider/raft/storage.h"

#include <uthash.h>

enum {
    NODE_PENDING_MAX = 256, /* accepted connections that have not greeted */
    NODE_PENDING_LIFE_MS = 10000,
    NODE_PENDING_BYTES_MAX = 1024, /* kept of one that has not greeted */
    NODE_HELLO_BYTES_MAX = 16389,  /* buffered for a waiting handshake: one TLS record */
    NODE_HANDSHAKE_EVERY_MS = 2,   /* between two handshakes: each costs up to some milliseconds */
    NODE_QUEUE_BYTES_MAX = 24 * 1024 * 1024, /* more than one follower's appends in flight */
    NODE_QUEUE_BYTES_DUE = 1024 * 1024, /* values wait for these, and leases only behind them */
    NODE_PARCELS_BYTES_MAX = 4 * 1024 * 1024, /* of messages that wait for one connection */
    NODE_REQUESTS_MAX = 256,                  /* requests of operators under way */
    NODE_RECONNECT_MIN_MS = 20,
    NODE_RECONNECT_MAX_MS = 1000,
    NODE_STATE_FORMAT = 2,                 /* of a snapshot's state: keys and sessions */
    NODE_COMPACT_ENTRIES = 1024,           /* a longer log is compacted at a checkpoint */
    NODE_COMPACT_BYTES = 16 * 1024 * 1024, /* and one of more bytes, and than the state, at once */
    NODE_COMPACT_ORDER_BYTES = 512 * 1024, /* or of so many in orders of sessions */
    NODE_ENTRY_OVERHEAD = 64,              /* of an entry in memory */
};

/* X(field, name): a counter in the status and the metrics. */
#define NODE_COUNTERS(X)                                                                           \
    X(frames_sent, "frames_sent")                                                                  \
    X(frames_received, "frames_received")                                                          \
    X(bytes_sent, "bytes_sent")                                                                    \
    X(bytes_received, "bytes_received")                                                            \
    X(refused_length, "refused_length")                                                            \
    X(refused_version, "refused_version")                                                          \
    X(refused_cluster, "refused_cluster")                                                          \
    X(refused_checksum, "refused_checksum")                                                        \
    X(refused_content, "refused_content")                                                          \
    X(refused_greeting, "refused_greeting")                                                        \
    X(refused_certificate, "refused_certificate")                                                  \
    X(refused_pending, "refused_pending")                                                          \
    X(messages_sent, "messages_sent")                                                              \
    X(messages_received, "messages_received")                                                      \
    X(messages_dropped, "messages_dropped")                                                        \
    X(connects, "connects")                                                                        \
    X(disconnects, "disconnects")                                                                  \
    X(writes, "writes")                                                                            \
    X(elections, "elections")                                                                      \
    X(proofs_accepted, "proofs_accepted")                                                          \
    X(proofs_ignored, "proofs_ignored")                                                            \
    X(fences, "fences")                                                                            \
    X(fences_failed, "fences_failed")

struct node_counters {
#define NODE_COUNTER_FIELD(field, name) uint64_t field;
    NODE_COUNTERS(NODE_COUNTER_FIELD)
#undef NODE_COUNTER_FIELD
};

struct node;
struct node_state;   /* state.c */
struct session_host; /* session_host.h */
struct named;        /* named.h */
struct ask;          /* asks.h */
struct channels;     /* channels.h */
struct fencing;      /* fencing.h */
struct guardian;

/* Knowledge about another process of the group, from its latest greeting and messages. */
struct acquaintance {
    raft_id id;
    char name[RAFT_NAME_MAX];
    uint64_t incarnation;
    uint64_t proved;    /* its incarnations up to this one are dead */
    uint64_t certified; /* the one whose certificate came last */
    uint64_t at_fence;  /* its incarnation when its host's fence began */
    uint64_t uncertified_at_fence;
    raft_index index_at_fence;
    uint64_t fenced;          /* its incarnations up to this one ended by a fence of the host */
    raft_index fenced_index;  /* and the processes that had attached there by this entry */
    struct storage_peer seen; /* the latest that it is known to have stored */
    bool has_greeted;         /* since our start; otherwise known from our data directory */
    bool is_unsaved;          /* `seen` is newer than on disk */
    char settings[IDENTITY_WHY_MAX];  /* describes settings that differ from ours; "" */
    uint64_t description_incarnation; /* of the sender of `description` */
    uint64_t description;             /* the number of its latest one; 0: none */
    char *metadata;                   /* in it; NULL: none */
    uint64_t parcel_incarnation;      /* of the sender of `last_parcel` */
    uint64_t last_parcel;             /* the latest that was taken; an earlier one comes too late */
    uint8_t commitment[32];
    uint8_t flags; /* GREETING_GUARDIAN_ONLY is kept from earlier incarnations */
    /* An earlier incarnation whose death its guardian has not certified yet; 0: none. */
    uint64_t uncertified;
    uint8_t uncertified_commitment[32];
    UT_hash_handle hh;
};

/* A connection that this node dialed (link is set) or accepted. */
struct connection {
    struct node *node;
    struct stream *stream;
    struct link *link;
    raft_id id; /* RAFT_NOBODY: the peer has not greeted */
    uint64_t incarnation;
    struct buffer input;
    struct parcels outgoing; /* wait for the socket */
    struct assembly incoming;
    bool is_open;
    bool is_tls;
    bool is_pending;              /* accepted, and has not greeted */
    bool is_from_member;          /* pending, from a member's host */
    bool waits_for_handshake;     /* pending; its first TLS record waits in `input` */
    instant since;                /* while pending: when it was accepted */
    bool has_greeted;             /* our own greeting was sent */
    bool is_held_back;            /* nothing is read while its greeting waits */
    bool is_turned_away;          /* either side refused the other's greeting */
    char wrong[IDENTITY_WHY_MAX]; /* why its greeting was refused; "" */
    raft_index peer_commit;       /* from the peer's greeting */
    uint64_t peer_group;          /* 0: it knows none */
    uint64_t pins_sent, pins_answered;
    instant pin_sent;           /* the oldest one without a reply */
    struct connection *awaited; /* connection of the peer's earlier process, see meeting.c */
    uint64_t awaits_pins;       /* `awaited` must answer so many; 0: does not wait */
    uint64_t looked_round;
    bool is_stuck; /* as of `looked_ms`, in uv_now's time */
    uint64_t looked_ms;
    struct connection *prev, *next; /* in the list of accepted connections */
};

/* The refusal that was logged last; repetitions are logged less often. See pending.c. */
struct refusals {
    instant logged;
    uint64_t unlogged; /* repetitions since then */
    char reason[80];   /* truncated */
};

enum { LINK_PLACES_MAX = 3 };

/* Dials one member, and redials. See link.c. */
struct link {
    struct node *node;
    raft_id id;
    char name[RAFT_NAME_MAX];
    char address[RAFT_ADDRESS_MAX];
    unsigned misses;               /* dials since the latest greeting; each goes elsewhere */
    struct connection *connection; /* NULL: between two dials */
    struct connection *beside;     /* dialed because `connection` stalls; or NULL */
    uv_timer_t retry;              /* the next dial, or the limit of the current one */
    uint64_t dialed_ms;            /* uv_now of the latest dial */
    int64_t backoff_ms;
    bool is_leaving;                /* the member was removed: freed with its timer */
    bool is_prospect;               /* the peer is not a member yet; its greeting gives its id */
    instant wanted;                 /* of a prospect: when it was requested last */
    bool was_greeted;               /* the last connection was: a refusal now is a proof */
    char refusal[IDENTITY_WHY_MAX]; /* why the latest greeting was refused by either side; "" */
    struct refusals refusals;
    uint64_t last_incarnation;
    bool last_was_loopback;
    /* The peer's address and port when it was last reached; "". */
    char last_address[RAFT_ADDRESS_MAX];

    int pidfd; /* of the peer's process, if on this host; -1: none */
    uint64_t pidfd_incarnation;
    bool is_pinned; /* the process has answered since the pidfd was opened */
    uv_poll_t *pid_poll;
    struct link *next;
};

struct node_change {
    bool is_add;
    bool replaces;             /* may replace a member that has another address */
    bool is_taken_back;        /* remove it unless it is a voter now */
    struct raft_member member; /* for a removal: its name and id */
};

struct node_asker {
    provider_done_cb done;
    void *userdata;
};

/* A request of this node's operator, repeated until it is complete. */
struct node_request {
    uint64_t id;
    struct node_change change;
    instant deadline;
    uint64_t round;
    raft_id asked;            /* the leader that it was sent to last: only its reply counts */
    bool has_begun;           /* a leader has accepted it */
    bool was_member;          /* at the time of the request */
    struct baton_error error; /* why it has not begun */
    provider_done_cb done;
    void *userdata;
    struct node_request *next;
};

struct node_election {
    struct provider_election base;
    struct node *node;
    char name[BATON_NAME_MAX];
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    bool is_leaving;
};

/* Of a named election, or of what it belongs to. */
typedef void event_receiver_fn(void *to, const struct baton_event *event);

struct node {
    struct provider base;
    uv_loop_t *loop;
    struct logger *logger;
    const _Atomic int64_t *alive_ns; /* as struct provider_config has them, and on_failed */
    void (*on_failed)(void *userdata, const struct baton_error *error);
    void *failed_userdata;
    struct raft_options options;
    struct tls *tls;
    struct storage *storage;
    struct raft *raft; /* NULL before the first campaign has named the cluster */
    uint32_t cluster;
    raft_id id;
    uint64_t incarnation;
    struct greeting greeting; /* ours */
    bool is_new_founder;      /* this process has made the data directory, and does not join */
    bool is_pinning;          /* the log may lack births or the group's identity */
    bool is_cast_out;         /* the group refuses this data directory */
    raft_term stored_term;    /* or pledged */
    uint64_t look_round;
    uint8_t secret[32];

    struct listener *listener; /* NULL: none yet */
    uv_udp_t datagrams;
    uint8_t datagram[CERTIFICATE_BYTES];
    int timer_fd; /* a timerfd: libuv's timers lack CLOCK_BOOTTIME and nanoseconds */
    uv_poll_t timer;
    instant armed;   /* the instant that the timer is set to */
    bool is_armed;   /* set and not expired */
    bool was_member; /* the latest members in the log's line had this node */
    uv_timer_t checkpoint;
    uv_timer_t log_timer;       /* active while SQLite's log is due to be moved */
    uv_timer_t pending_timer;   /* active while connections are pending */
    uv_timer_t handshake_timer; /* delays the next handshake */
    uv_timer_t muster;          /* when it fires, missing voters are logged */
    int open_handles;           /* to close before the memory is freed */

    struct link *links;
    struct connection *accepted;
    size_t pending_count;
    struct acquaintance *acquaintances;
    struct frame_scratch scratch;
    struct buffer output;

    char *metadata;       /* of this member, where the group is one election; NULL: none */
    uint64_t description; /* number of the latest one that was sent */
    struct channels *channels;
    uv_idle_t turn; /* active while messages can be sent or delivered */

    struct fencing *fencing;   /* NULL: `fence-after` is not set */
    struct guardian *guardian; /* or NULL */
    struct victims victims;    /* killed before this node is certified dead */
    bool has_victims;
    span hang;           /* after which silence the guardian kills this node; 0: never */
    unsigned hang_kills; /* of earlier processes of this directory, lately */

    struct session_host *host; /* as `state` */
    struct named *named;       /* this process's; NULL: the group is one election */
    struct named *all_named;   /* it, and those that take part through it */
    struct ask *asks;
    struct node_state *state; /* NULL before the first campaign and after the end */
    bool state_is_lost;       /* an order failed for lack of memory: until a restart */

    struct node_election *election;
    struct node_request *requests;
    uv_timer_t request_timer; /* active while there are requests */
    uint64_t request_round;
    uint64_t next_request; /* begins at random: the log keeps the requests of earlier processes */
    struct queued_event *events_first, *events_last; /* event.c */
    struct kept_member *kept_last;                   /* event.c: the member that was kept last */
    struct baton_error unsaid;                       /* event.c: it found no memory; code 0: none */
    int depth; /* of nested steps: events are delivered at 0 */
    bool eligible;
    bool is_isolated;
    bool has_unnamed_leader; /* the leader's name is not known yet */
    bool is_poisoned;        /* the process announced its crash: it never leads again */
    bool is_broken;          /* the start failed: it can only be closed */
    bool is_closing;
    bool is_closed;
    struct refusals refusals; /* of addresses that belong to no known member */
    struct raft_lease published;
    instant slow_disk_reported;
    raft_index applied;
    size_t applied_bytes; /* since the log was compacted */
    size_t order_bytes;   /* of these, in memory: the orders of sessions */
    size_t state_bytes;   /* when it was */
    struct node_counters counters;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* raft_provider.c */
/* For a process that announced its crash and was certified dead, but survived: the node steps down,
 * and neither campaigns nor answers reads by its lease any more. It still votes. */
void node_retire(struct node *node);
/* Makes this process a member: it listens, dials, promises and votes. */
int node_begin(struct node *node, struct baton_error *reterr);
uint64_t node_draw_number(const struct node *node);

/* muster.c: whether nobody leads because too few voters answer; then the text names those that do
 * not: "1 of 3 votes is here, and 2 are needed; no answer from b at 10.0.0.2:7400". */
bool muster_lacks_quorum(const struct node *node, char *ret, size_t bytes);
/* The same of any members, by who is here; of a joint configuration, the half that lacks them. */
typedef bool (*muster_is_here)(const void *userdata, raft_id id);
bool muster_lacks(char *ret, size_t bytes, const struct raft_configuration *now,
                  muster_is_here is_here, const void *userdata);
/* Logs that after 5 s, and then once a minute; those who take part in named elections are told. */
void muster_begin(struct node *node);
/* Somebody takes part newly: it is told after 5 s, too. */
void muster_soon(struct node *node);

/* compaction.c: starts the timer of checkpoints */
void compaction_begin(struct node *node);
/* Both soon, outside of any step. */
void node_compact_if_long(struct node *node);
void node_move_log_if_due(struct node *node);

/* node.c */
int node_step(struct node *node, const struct raft_input *input);
/* Sets the timer to the core's deadline, unless it is set to that already. */
void node_rearm(struct node *node, instant deadline);
/* Counts one handle less; the last one of a closing node frees the node. */
void node_release(struct node *node);
void node_handle_closed(uv_handle_t *handle); /* for handles whose data is the node */
/* Publishes the update's lease for is_leader, and the guardian's page. */
void node_publish(struct node *node, const struct raft_update *update);
void node_publish_void(struct node *node);
/* After this the node stores nothing, and neither votes nor leads. */
void node_fail_storage(struct node *node, int code, const struct baton_error *error);

/* connection.c */
int connection_listen(struct node *node, struct baton_error *reterr);
/* Whether it would succeed now; nothing listens. */
int connection_may_listen(const struct node *node, struct baton_error *reterr);
void connection_close_accepted(struct node *node);
/* NULL: out of memory, or no address. All other failures are reported by link_ended(). */
struct connection *connection_dial(struct link *link);
/* Closes a connection that its link no longer needs. */
void connection_give_up(struct connection *connection);
void connection_send_message(struct node *node, const struct raft_message *message);
void connection_send_text(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                          const char *text);
void connection_send_bytes(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                           const void *data, size_t bytes);
void connection_send_bare(struct connection *connection, enum frame_type type);
void connection_send_description(struct connection *connection, uint64_t number, uint8_t flags,
                                 const char *metadata);
void connection_send_part(struct connection *connection, const struct part *part);
/* The same on both connections, where there are two: it may come twice. */
void connection_send_urgent(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                            const void *data, size_t bytes);
/* Where messages of channels go; NULL: the peer is not connected. */
struct connection *connection_for_parcels(const struct node *node, raft_id id);
void connection_send_greeting(struct connection *connection, const struct greeting *greeting);
void connection_turn_away(struct connection *connection, enum refusal refusal, const char *why);
/* Processes the received bytes that were held back. */
void connection_look_again(struct connection *connection);
void connection_ask(struct connection *connection); /* asks the peer's process for an answer */
void connection_report_peer(struct node *node, raft_id peer, bool is_up);
bool connection_is_up(const struct node *node, raft_id id);
/* Whether so little waits to be sent to it that values may be added: a connection whose queue is
 * full ends, and all that it has with it. */
bool connection_has_room(const struct node *node, raft_id id);

/* datagram.c */
/* Listens at this address for certificates. A failure is only a warning. */
void datagram_listen(struct node *node, const struct sockaddr *address);

/* link.c */
/* Adds and removes links to match the configuration in force. */
void link_follow_membership(struct node *node);
void link_end_all(struct node *node);
struct link *link_to(const struct node *node, raft_id id); /* NULL: none */
/* A link to a future member, which is dialed as long as requests ask for it. NULL: out of
 * memory. */
struct link *link_prospect(struct node *node, const struct raft_member *member);
const char *link_where(const struct link *link); /* the address that is dialed next */
/* Dials now: the peer has just dialed us, so it is there. */
void link_hurry(struct node *node, raft_id id);
void link_dial_beside(struct link *link); /* at most once per time limit of a dial */
/* Reports of a link's connection: the peer has greeted; it has ended and will be freed. */
void link_greeted(struct connection *connection);
void link_ended(struct connection *connection, bool was_refused);

/* pending.c */
void pending_begin(struct connection *connection);
void pending_end(struct connection *connection); /* it has greeted, or was closed */
/* Logs at most one line a second; the next line has the number that was left out. */
void pending_log(struct connection *connection, const char *event, const char *reason);
/* Holds back the bytes of a handshake until its turn. */
void pending_hello(struct connection *connection, const void *data, size_t bytes);

/* meeting.c */
void meeting_begin(struct node *node, const struct storage_loaded *loaded);
void meeting_greet(struct connection *connection);
/* MEETING_LATER: keep the connection's bytes until connection_look_again(). */
enum { MEETING_LATER = 1 };
int meeting_take_greeting(struct connection *connection, const struct greeting *greeting);
void meeting_take_refusal(struct connection *connection, const struct frame *frame);
void meeting_note_message(struct connection *connection, const struct raft_message *message);
/* Checks the greetings that wait for a peer's earlier process: it has answered, or has ended. */
void meeting_look_again(struct node *node);
void meeting_note_progress(struct node *node, raft_id id); /* records what a follower has stored */
void meeting_remember(struct node *node);                  /* stores it on disk */

/* group.c */
/* Compares the stored group with the configured one. BATON_EUNSAFE: they differ. */
int group_check(struct node *node, struct baton_error *reterr);
/* Learns the group's identity once it is committed; as the leader, writes it and the births into
 * the log. */
void group_follow(struct node *node);
/* Logs the members: at the start, and whenever they have changed. */
void group_log_members(struct node *node);
/* Ends this node's part in the group; for_good: and every later start of its data directory. */
void group_cast_out(struct node *node, const char *why, bool for_good);

/* proof.c */
struct acquaintance *acquaintance_of(const struct node *node, raft_id id); /* NULL: never met */
/* Whether only its guardian's certificate proves its death. */
bool proof_is_guardian_only(const struct acquaintance *known);
void proof_make_greeting(struct node *node);
/* A peer's process has greeted on `connection`. False: ignore it. */
bool proof_on_greeting(struct connection *connection, const struct greeting *greeting);
void proof_on_pinned(struct connection *connection);
void proof_on_certificate(struct node *node, const void *frame);
/* The host of that member was off after the instant at which `at_fence` was set. */
void proof_on_fenced(struct node *node, struct acquaintance *known);
/* A dial was refused after the link's connection had ended. */
void proof_on_refused(struct link *link);
void proof_drop_pidfd(struct link *link);

/* guardian.c */
void guard_begin(struct node *node);
void guard_follow_membership(struct node *node);
void guard_publish(struct node *node, const struct raft_lease *lease);
void guard_set_heir(struct node *node, raft_id heir);
void guard_end(struct node *node);
void guard_set_victims(struct provider *provider, const struct victims *victims);

/* credentials.c */
/* The files that the options name: certificates or the cluster key; *ret is NULL without any. */
int credentials_read(struct tls **ret, const struct raft_options *options,
                     struct baton_error *reterr);
int credentials_reload(struct provider *provider, const char *url, provider_done_cb done,
                       void *userdata, struct baton_error *reterr);

/* event.c */
void event_take(struct node *node, const struct raft_event *event);
void event_push(struct node *node, const struct baton_event *event);
void event_push_to(struct node *node, event_receiver_fn *receive, void *to,
                   const struct baton_event *event);
void event_deliver(struct node *node);
void event_error(struct node *node, int code, const struct baton_error *error);
void event_member_of(const struct node *node, raft_id id, struct baton_member *ret);
/* Describes why leadership cannot pass to a member now, as the leader knows: "does not answer". */
void event_unready(const struct node *node, raft_id id, char *ret, size_t bytes);

/* named.c, asks.c */
/* Another session holds the election now, or none does. */
void named_note_holder(struct node *node, const char *election);
/* The session's process takes part in it now. */
void named_note_entered(struct node *node, uint64_t session, const char *election);
void asks_note_holder(struct node *node, const char *election);
/* An order of this node that is no tenant's was carried out, or failed. */
void asks_take_reply(struct node *node, uint64_t request, int code);

/* state.c: first the functions of the node's life, then those for each update of the core */
int state_begin(struct node *node, const struct raft_snapshot *snapshot,
                struct baton_error *reterr);
void state_end(struct node *node);
/* Decodes a snapshot's state and keeps it for the update that may install it, which comes next.
 * BATON_ECORRUPT, BATON_ENOMEM: it is unusable. */
int state_offer(struct node *node, const struct raft_snapshot *snapshot);
/* False: out of memory; orders of this update were lost, for the first time. */
bool state_apply(struct node *node, const struct raft_update *update);
void state_applied(struct node *node, raft_index applied);
void state_deliver(struct node *node);
void state_snapshot(const struct node *node, struct buffer *buffer);
void state_receive_order(struct node *node, raft_id from, const struct frame *frame);
void state_receive_refusal(struct node *node, const struct frame *frame);
/* Sends an order of sessions to the leader of the log; a refusal goes to session_host_refused().
 * BATON_EUNAVAILABLE: there is none; BATON_ENOMEM, BATON_EBUSY. */
int state_send_order(struct node *node, uint64_t request, const void *data, size_t bytes,
                     bool is_urgent);
/* Proposes what waits, before this node stops to lead. */
void state_flush_orders(struct node *node);
/* Functions of the provider. */
int state_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
              struct baton_error *reterr);
int state_get_each(struct provider *provider, const char *const *keys, size_t count,
                   provider_values_cb done, void *userdata, struct baton_error *reterr);
int state_list(struct provider *provider, const char *prefix, provider_values_cb done,
               void *userdata, struct baton_error *reterr);
int state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
              uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
              struct baton_error *reterr);
int state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                void *userdata, struct baton_error *reterr);
void state_unwatch(struct provider *provider, const char *prefix, void *userdata);

/* request.c */
/* Calls `done` when the change is complete, or at the deadline. */
int request_add(struct node *node, const struct baton_member *member, bool replaces,
                instant deadline, const struct node_asker *asker, struct baton_error *reterr);
int request_remove(struct node *node, const char *name, instant deadline,
                   const struct node_asker *asker, struct baton_error *reterr);
void request_receive(struct node *node, raft_id from, const struct frame *frame);
void request_reply(struct node *node, raft_id from, const struct frame *frame);
void request_fail_all(struct node *node, int code);

#endif
