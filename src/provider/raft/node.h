/* A node of a group: the core, its data directory, its connections, on one libuv loop.
 *
 *                     ┌───────────── node.c ─────────────┐
 *   connection.c ───▶ │ input ─▶ raft_step ─▶ update     │ ───▶ lease cell, connection.c, storage
 *   proof.c      ───▶ │ (messages, writes, events)       │ ───▶ event.c ─▶ who campaigns
 *   request.c,   ───▶ └──────────────────────────────────┘
 *   state.c                                ◀─── committed orders
 *
 * Inner header: for the files of this folder.
 */
#ifndef PROVIDER_RAFT_NODE_H
#define PROVIDER_RAFT_NODE_H

#include "guardian/victims.h"
#include "net/stream.h"
#include "net/tls.h"
#include "provider/raft/frame.h"
#include "provider/raft/identity.h"
#include "provider/raft/keys.h"
#include "provider/raft/options.h"
#include "provider/raft/raft_provider.h"
#include "provider/raft/storage.h"

#include <uthash.h>

enum {
    NODE_STRANGERS_MAX = 256, /* accepted connections that have not greeted */
    NODE_STRANGER_LIFE_MS = 10000,
    NODE_STRANGER_BYTES_MAX = 1024, /* kept of one that has not greeted */
    NODE_HELLO_BYTES_MAX = 16389,   /* of a handshake that waits: one TLS record */
    NODE_HANDSHAKE_EVERY_MS = 2,    /* one of strangers begins: it costs up to some milliseconds */
    NODE_QUEUE_BYTES_MAX = 8 * 1024 * 1024,
    NODE_REQUESTS_MAX = 256, /* of operators, waiting for the leader */
    NODE_RECONNECT_MIN_MS = 20,
    NODE_RECONNECT_MAX_MS = 1000,
    NODE_COMPACT_ENTRIES = 1024, /* the log is compacted when it is longer */
};

/* X(field, name): what was refused or happened, for the status and the metrics. */
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
    X(refused_strangers, "refused_strangers")                                                      \
    X(connects, "connects")                                                                        \
    X(disconnects, "disconnects")                                                                  \
    X(writes, "writes")                                                                            \
    X(elections, "elections")                                                                      \
    X(proofs_accepted, "proofs_accepted")                                                          \
    X(proofs_ignored, "proofs_ignored")

struct node_counters {
#define NODE_COUNTER_FIELD(field, name) uint64_t field;
    NODE_COUNTERS(NODE_COUNTER_FIELD)
#undef NODE_COUNTER_FIELD
};

struct node;
struct node_state; /* state.c */
struct guardian;

/* What is known of another process of the group, by its latest greeting. */
struct acquaintance {
    raft_id id;
    char name[RAFT_NAME_MAX];
    uint64_t incarnation;
    struct storage_peer seen; /* what it had stored, by all that it has said */
    bool has_greeted;         /* this process: else it is known from the data directory alone */
    bool is_unsaved;          /* more is seen than is on disk */
    char settings[IDENTITY_WHY_MAX]; /* which of its settings do not go with ours; "" */
    uint8_t commitment[32];
    uint8_t flags; /* GREETING_GUARDIAN_ONLY stays from any earlier incarnation */
    /* An earlier incarnation whose guardian has yet to certify its death; 0: none. */
    uint64_t uncertified;
    uint8_t uncertified_commitment[32];
    UT_hash_handle hh;
};

/* One stream. Ours (link is set) or one that was accepted. */
struct connection {
    struct node *node;
    struct stream *stream;
    struct link *link;
    raft_id id; /* RAFT_NOBODY: not greeted yet */
    uint64_t incarnation;
    struct buffer input;
    bool is_open;
    bool is_tls;
    bool is_stranger;    /* accepted, and has not greeted */
    bool is_from_member; /* a stranger: it comes from a host of a member */
    bool
        waits_for_handshake; /* a stranger: its first record, in `input`, is not given to TLS yet */
    instant since;           /* a stranger's beginning */
    bool has_greeted;        /* our own greeting went out */
    bool is_turned_away;     /* one of the two has refused the other's greeting */
    char wrong[IDENTITY_WHY_MAX]; /* why its greeting was not acceptable; "" */
    raft_index peer_commit;       /* as the peer's greeting said */
    uint64_t pins_sent, pins_answered;
    instant pin_sent;           /* the first that is not answered */
    struct connection *awaited; /* of an earlier process of the same peer, see meeting.c */
    uint64_t awaits_pins;       /* answered by that one; 0: it waits for nothing */
    uint64_t looked_round;
    bool is_stuck; /* when it was looked at last, in uv_now's time */
    uint64_t looked_ms;
    struct connection *prev, *next; /* of the accepted ones */
};

/* What was refused, and logged last; the same is logged more seldom. See stranger.c. */
struct refusals {
    instant logged;
    uint64_t unlogged; /* since then */
    char reason[80];   /* its beginning */
};

/* The way to one member: dialed, and dialed again. See link.c. */
struct link {
    struct node *node;
    raft_id id;
    char name[RAFT_NAME_MAX];
    char address[RAFT_ADDRESS_MAX];
    bool tries_elsewhere; /* at the address in this node's own settings, if that is another one */
    struct connection *connection; /* NULL: between two tries */
    struct connection *beside;     /* dialed since `connection` stands still; or NULL */
    uv_timer_t retry;              /* until the next dial, or how long this one may take */
    uint64_t dialed_ms;            /* uv_now at the latest dial */
    int64_t backoff_ms;
    bool is_leaving;  /* the member is gone: ends with its timer */
    bool is_prospect; /* to one that is to become a member; its id is known once it has greeted */
    instant wanted;   /* a prospect: when it was asked for last */
    bool was_greeted; /* on the connection that ended last: a refusal now means something */
    char refusal[IDENTITY_WHY_MAX]; /* why the greeting was refused last, here or there; "" */
    struct refusals refusals;
    uint64_t last_incarnation;
    bool last_was_loopback;
    char last_address[RAFT_ADDRESS_MAX]; /* where it was reached, with its port; "": never */

    int pidfd; /* of the peer's process on this host; -1: none */
    uint64_t pidfd_incarnation;
    bool is_pinned; /* the process answered after the pidfd was opened */
    uv_poll_t *pid_poll;
    struct link *next;
};

struct node_change {
    bool is_add;
    bool replaces;             /* a member with another address */
    bool is_taken_back;        /* removed unless it votes by now */
    struct raft_member member; /* to remove one: its name and id */
};

struct node_asker {
    provider_done_cb done;
    void *userdata;
};

/* Of an operator of this node; asked again and again. */
struct node_request {
    uint64_t id;
    struct node_change change;
    instant deadline;
    uint64_t round;
    raft_id asked;            /* whose reply counts: the leader that it was sent to last */
    bool has_begun;           /* a leader has it */
    bool was_member;          /* when it was asked */
    struct baton_error error; /* why it could not begin yet */
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

struct queued_event {
    struct baton_event event;
    struct queued_event *next;
};

struct node {
    struct provider base;
    uv_loop_t *loop;
    struct logger *logger;
    struct raft_options options;
    struct tls *tls;
    struct storage *storage;
    struct raft *raft; /* NULL before the first campaign has named the cluster */
    uint32_t cluster;
    raft_id id;
    uint64_t incarnation;
    struct greeting greeting; /* ours */
    bool is_new_founder;      /* this process has made the data directory, and does not join */
    bool is_pinning;          /* births or the group's identity may be missing in the log */
    bool is_cast_out;         /* the group does not know this data directory */
    raft_term stored_term;    /* or pledged */
    uint64_t look_round;
    uint8_t secret[32];

    uv_tcp_t listener;
    int timer_fd; /* CLOCK_BOOTTIME, in nanoseconds: libuv's timers count milliseconds awake */
    uv_poll_t timer;
    instant armed; /* what the timer is set to */
    bool is_armed; /* set, and not expired since */
    uv_timer_t checkpoint;
    uv_timer_t stranger_timer;  /* runs while there are strangers */
    uv_timer_t handshake_timer; /* runs for a moment after a handshake has begun */
    int open_handles;           /* to be closed before the memory ends */

    struct link *links;
    struct connection *accepted;
    size_t stranger_count;
    struct acquaintance *acquaintances;
    struct frame_scratch scratch;
    struct buffer output;

    struct guardian *guardian; /* or NULL */
    struct victims victims;    /* who dies before this node is certified dead */
    bool has_victims;

    struct node_state *state; /* NULL before the first campaign, and after the end */
    bool state_is_lost;       /* memory ran out while an order was carried out: until a new start */

    struct node_election *election;
    struct node_request *requests;
    uv_timer_t request_timer; /* runs while there are any */
    uint64_t request_round;
    uint64_t next_request;
    struct queued_event *events_first, *events_last;
    int depth; /* of steps within steps: events are told when it is 0 */
    bool eligible;
    bool is_isolated;
    bool has_unnamed_leader; /* it follows one whose name it has yet to learn */
    bool is_poisoned;        /* its crash was announced: it never leads again */
    bool is_broken;          /* its start failed: only to be closed */
    bool is_closing;
    bool is_closed;
    struct refusals refusals; /* of addresses of which no member is known */
    struct raft_lease published;
    instant slow_disk_reported;
    raft_index applied;
    struct node_counters counters;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* raft_provider.c */
/* The process has announced its crash, and was certified dead, but goes on: it steps down, and
 * neither campaigns nor answers by its lease from now on. It still votes. */
void node_retire(struct node *node);

/* node.c */
int node_step(struct node *node, const struct raft_input *input);
/* When the core wants to be asked next. A timer that is set to that already is left alone. */
void node_rearm(struct node *node, instant deadline);
/* One handle less; the last one of a node that is closing ends it. */
void node_release(struct node *node);
void node_handle_closed(uv_handle_t *handle); /* the same, for handles whose data is the node */
void node_publish_void(struct node *node);
/* From here on this node stores, votes and leads no more. */
void node_fail_storage(struct node *node, int code, const struct baton_error *error);

/* connection.c */
int connection_listen(struct node *node, struct baton_error *reterr);
void connection_close_accepted(struct node *node);
/* NULL: out of memory, or no address. Whatever else goes wrong comes by link_ended. */
struct connection *connection_dial(struct link *link);
/* Its link is done with it. */
void connection_give_up(struct connection *connection);
void connection_send_message(struct node *node, const struct raft_message *message);
void connection_send_text(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                          const char *text);
void connection_send_bytes(struct node *node, raft_id to, enum frame_type type, uint64_t id,
                           const void *data, size_t bytes);
void connection_send_bare(struct connection *connection, enum frame_type type);
void connection_send_greeting(struct connection *connection, const struct greeting *greeting);
void connection_turn_away(struct connection *connection, enum refusal refusal, const char *why);
/* What it has sent and nobody took yet is looked at again. */
void connection_look_again(struct connection *connection);
void connection_ask(struct connection *connection); /* whether its peer's process is there */
/* To all peers, on every connection: whichever is read last, it says how it is. */
void connection_send_cordon(struct node *node);
void connection_report_peer(struct node *node, raft_id peer, bool is_up);
bool connection_is_up(const struct node *node, raft_id id);

/* link.c */
/* Makes the links fit the configuration in force. */
void link_follow_membership(struct node *node);
void link_end_all(struct node *node);
struct link *link_to(const struct node *node, raft_id id); /* NULL: none */
/* To one that is no member yet: dialed until nobody asks for it any more. NULL: out of memory. */
struct link *link_prospect(struct node *node, const struct raft_member *member);
const char *link_where(const struct link *link); /* the address that is dialed next */
/* Whoever dials us is there: no need to wait for our own next try. */
void link_hurry(struct node *node, raft_id id);
void link_dial_beside(struct link *link); /* not more often than a dial may take */
/* Of the connections of a link: the peer has greeted on it; it has ended, and is about to go. */
void link_greeted(struct connection *connection);
void link_ended(struct connection *connection, bool was_refused);

/* stranger.c */
void stranger_begin(struct connection *connection);
void stranger_end(struct connection *connection); /* it has greeted, or is closed */
/* At most one line a second; the next one says how many there were besides. */
void stranger_log(struct connection *connection, const char *event, const char *reason);
/* These bytes begin, or go on with, a handshake that is to wait for its turn. */
void stranger_hello(struct connection *connection, const void *data, size_t bytes);

/* meeting.c */
void meeting_begin(struct node *node, const struct storage_loaded *loaded);
void meeting_greet(struct connection *connection);
/* MEETING_LATER: nothing of this connection is taken before connection_look_again(). */
enum { MEETING_LATER = 1 };
int meeting_take_greeting(struct connection *connection, const struct greeting *greeting);
void meeting_take_refusal(struct connection *connection, const struct frame *frame);
void meeting_note_message(struct connection *connection, const struct raft_message *message);
/* At greetings that wait for a peer's earlier process: it has answered, or has ended. */
void meeting_look_again(struct node *node);
void meeting_note_progress(struct node *node, raft_id id); /* what a follower has stored */
void meeting_remember(struct node *node);                  /* on disk */

/* group.c */
/* What is stored against what is configured. BATON_EUNSAFE: they are two groups. */
int group_check(struct node *node, struct baton_error *reterr);
/* Learns the group's identity once it is committed; a leader has it and the births written down. */
void group_follow(struct node *node);
/* This node must not take part any more; for good: nor any later start of its data directory. */
void group_cast_out(struct node *node, const char *why, bool for_good);

/* proof.c */
struct acquaintance *acquaintance_of(const struct node *node, raft_id id); /* NULL: never met */
/* Of its death only its guardian's certificate is proof. */
bool proof_is_guardian_only(const struct acquaintance *known);
void proof_make_greeting(struct node *node);
/* A peer's process has greeted on `connection`; false: it is not to be heard. */
bool proof_on_greeting(struct connection *connection, const struct greeting *greeting);
void proof_on_pinned(struct connection *connection);
void proof_on_certificate(struct node *node, const void *frame);
/* A dial that failed, or a link that ended. */
void proof_on_refused(struct link *link);
void proof_drop_pidfd(struct link *link);

/* guardian.c */
void guard_begin(struct node *node);
void guard_follow_membership(struct node *node);
void guard_publish(struct node *node, const struct raft_lease *lease);
void guard_set_heir(struct node *node, raft_id heir);
void guard_end(struct node *node);
void guard_set_victims(struct provider *provider, const struct victims *victims);

/* event.c */
void event_take(struct node *node, const struct raft_event *event);
void event_push(struct node *node, const struct baton_event *event);
void event_deliver(struct node *node);
void event_error(struct node *node, int code, const struct baton_error *error);
void event_member_of(const struct node *node, raft_id id, struct baton_member *ret);
/* Why a member cannot be handed leadership now, as the leader knows it: "does not answer". */
void event_unready(const struct node *node, raft_id id, char *ret, size_t bytes);

/* state.c. The first ones with the life of the node, the next with each update of the core. */
int state_begin(struct node *node, const struct raft_snapshot *snapshot,
                struct baton_error *reterr);
void state_end(struct node *node);
/* Tries a snapshot's state and keeps it for the update that installs it, which comes next if at
 * all. BATON_ECORRUPT, BATON_ENOMEM: it cannot be taken in. */
int state_offer(struct node *node, const struct raft_snapshot *snapshot);
/* False: out of memory, and this update's orders were the first that were lost by it. */
bool state_apply(struct node *node, const struct raft_update *update);
void state_applied(struct node *node, raft_index applied);
void state_deliver(struct node *node);
void state_snapshot(const struct node *node, struct buffer *buffer);
void state_receive_order(struct node *node, raft_id from, const struct frame *frame);
void state_receive_refusal(struct node *node, const struct frame *frame);
/* Functions of the provider. */
int state_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
              struct baton_error *reterr);
int state_list(struct provider *provider, const char *prefix, provider_values_cb done,
               void *userdata, struct baton_error *reterr);
int state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
              uint64_t revision, span lifetime, provider_done_cb done, void *userdata,
              struct baton_error *reterr);
int state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                void *userdata, struct baton_error *reterr);
void state_unwatch(struct provider *provider, const char *prefix, void *userdata);

/* request.c */
/* `done` comes when the change is complete, and else at the deadline. */
int request_add(struct node *node, const struct baton_member *member, bool replaces,
                instant deadline, const struct node_asker *asker, struct baton_error *reterr);
int request_remove(struct node *node, const char *name, instant deadline,
                   const struct node_asker *asker, struct baton_error *reterr);
void request_receive(struct node *node, raft_id from, const struct frame *frame);
void request_reply(struct node *node, raft_id from, const struct frame *frame);
void request_fail_all(struct node *node, int code);

#endif
