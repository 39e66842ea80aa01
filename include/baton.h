/* Baton: exactly one leader in a group of processes, handed on in milliseconds when it dies.
 *
 *   struct baton *baton;
 *   struct baton_election *election;
 *   struct baton_error error;
 *
 *   if (baton_open(&baton,
 *                  "raft://10.0.0.1:7001?node=a&peers=…&data=/var/lib/me&key-file=/etc/me.key",
 *                  NULL, &error) ||
 *       baton_campaign(&election, baton, "billing", NULL, &error)) {
 *       fprintf(stderr, "%s\n", error.message);
 *       return 1;
 *   }
 *   for (;;) {
 *       uint64_t epoch;
 *       if (baton_leadership(election, &epoch)) {
 *           write_with_token(epoch);   // the resource refuses a smaller epoch
 *       }
 *       pause_a_little();
 *   }
 *
 * Objects. A `struct baton` is one open provider with one thread, its loop. A `struct
 * baton_election` is one election that it takes part in, a `struct baton_listener` one function
 * that hears of an election, a `struct baton_subscription` one that hears of a channel or of keys.
 * Nothing is global: a process may open as many as it likes.
 *
 * Errors. A function that can fail returns 0 or a negative BATON_E… code; <baton/error.h> lists
 * them. `reterr` may be NULL and is written on failure only. `ret` is written on success only. A
 * pointer may be NULL only where the comment says so.
 *
 * Threads. Every function may be called from any thread, with the restrictions that it states. A
 * function that says "waits" blocks its caller. On the loop's thread, on which a listener with
 * BATON_ON_LOOP runs, it would wait for itself: there it returns BATON_EDEADLK, and nothing has
 * changed. BATON_EBUSY always means that another holder, other operations or members that are not
 * ready are in the way, and that a later call may succeed.
 *
 * Time. A `timeout_ms` is in milliseconds; BATON_TIMEOUT_DEFAULT (any negative number) stands for
 * 30 s, 0 for "do not wait". When it runs out the call returns BATON_ETIMEDOUT; the operation may
 * still complete later. Points in time are CLOCK_BOOTTIME.
 *
 * Fork. A forked child is not a member: baton_is_leader() is false in it, every function that can
 * fail returns BATON_ECLOSED, and baton_close() does not touch the parent's connections. The child
 * may open a provider of its own.
 *
 * Source: the interface of the seeds' MasterElection and LeaderElection; docs/api.md is the guide.
 */
#ifndef BATON_H
#define BATON_H

#include <baton/error.h>
#include <baton/token.h>
#include <baton/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BATON_VERSION_MAJOR 0
#define BATON_VERSION_MINOR 1
#define BATON_VERSION_PATCH 0

/* The version of the library that is running, "0.1.0". Static storage. */
BATON_API const char *baton_version(void);

struct baton;
struct baton_election;
struct baton_listener;
struct baton_subscription;

#define BATON_TIMEOUT_DEFAULT (-1) /* 30 s */

/* ---- Opening and closing --------------------------------------------------------------------- */

/* One setting of a provider, as in the query of its URL; docs/api.md lists them for each. */
struct baton_setting {
    const char *key;
    const char *value;
};

enum baton_log_level {
    BATON_LOG_ERROR,
    BATON_LOG_WARNING,
    BATON_LOG_NOTICE,
    BATON_LOG_INFO,
    BATON_LOG_DEBUG,
};

/* Where the library writes its log. The descriptor is borrowed until baton_close(). */
struct baton_log {
    size_t size; /* sizeof(struct baton_log) */
    int fd;
    enum baton_log_level level; /* up to and including this one */
    bool json;                  /* a JSON object a line; else plain lines, or for journald */
};

/* All but the size may be zero. Borrowed during the call.
 *
 * The size lets the struct grow: a program that was compiled with an older <baton.h> leaves the
 * newer fields at zero, and a field that the library is too old to know is BATON_EINVAL if set. So
 * it is for every struct with this field.
 *
 * Structs without it keep their size and fields within a major version, because programs have them
 * in memory of their own and in arrays. Only struct baton_event, which the library alone makes, may
 * get further fields at its end. */
struct baton_options {
    size_t size;                          /* sizeof(struct baton_options) */
    const char *node;                     /* this member's name; NULL: the provider's default */
    const struct baton_setting *settings; /* these beat the URL's query */
    size_t setting_count;
    const struct baton_log *log; /* NULL: silence */
    /* Handlers for SEGV, ABRT, BUS … void the leases and announce the crash before the kernel tears
     * the memory down, and then call the handlers that were installed before. Off: the others
     * notice a crash when the process is gone. */
    bool announces_crashes;
};

/* Opens the provider that the URL names and starts its loop. No campaign begins yet.
 *
 *   raft://HOST:PORT?peers=…&data=DIR   the peers themselves; beyond loopback with a key-file
 *   redis://HOST:PORT/DATABASE          a Redis or Valkey server; docs/redis.md has more URLs
 *   memory:NAME                         this process, for all that open one NAME in it
 *
 * `options` may be NULL. Errors: BATON_EINVAL names the part of the URL or the setting that is
 * wrong, BATON_EUNSAFE the inequality that fails, BATON_EAUTH the missing credentials; BATON_EIO,
 * BATON_EBUSY (the data directory is in use), BATON_ECORRUPT, BATON_ENOMEM. No error and no log
 * shows a password of the URL. */
BATON_API int baton_open(struct baton **ret, const char *url, const struct baton_options *options,
                         struct baton_error *reterr);

/* Resigns every leadership, leaves every election and ends the loop. When it returns, the listeners
 * have received each election's last event, BATON_EVENT_STOPPED. Waits, about a second at most for
 * a group that does not answer; from a listener on the loop it only begins. Idempotent; NULL is
 * allowed. Every later call fails with BATON_ECLOSED; handles of elections stay valid. */
BATON_API void baton_stop(struct baton *baton);

/* Stops, waits until no listener runs any more, and frees the handle with those of its elections
 * and listeners: do not use them during or after the call. Not from a listener. NULL is allowed. */
BATON_API void baton_close(struct baton *baton);

/* ---- Campaigning ----------------------------------------------------------------------------- */

/* All but the size may be zero. Borrowed during the call. */
struct baton_campaign_options {
    size_t size;          /* sizeof(struct baton_campaign_options) */
    bool observes;        /* votes and listens, but never leads, until baton_uncordon() */
    const char *metadata; /* a JSON object for the registry, or NULL */
};

/* Takes part in the election called `name` (1 to 63 bytes). Returns when the campaign has begun,
 * not when it is won; a listener that is added later first gets the present state. Waits for the
 * loop.
 *
 * Errors: BATON_EINVAL (the name, the metadata), BATON_EEXIST (this handle takes part already, or
 * the provider has one election only), BATON_ECORRUPT and BATON_EBUSY (the data directory),
 * BATON_ENOMEM, BATON_ECLOSED. The handle belongs to `baton`; baton_leave() frees it earlier. */
BATON_API int baton_campaign(struct baton_election **ret, struct baton *baton, const char *name,
                             const struct baton_campaign_options *options,
                             struct baton_error *reterr);

/* Resigns if leading, leaves the election and frees the handle with its listeners; nobody may use
 * it during or after the call. BATON_EVENT_STOPPED is the last event. Waits. BATON_EDEADLK: it was
 * called on the loop's thread or from a listener of this election, and nothing has changed.
 * BATON_ECLOSED: in a forked child. NULL is allowed. */
BATON_API int baton_leave(struct baton_election *election, struct baton_error *reterr);

/* ---- Asking: no lock, no round trip ---------------------------------------------------------- */

/* True only while the lease holds, by the clock, at the moment of the call. Takes some nanoseconds
 * and no lock, and does not need the loop. After the process was asleep or stopped for longer than
 * its lease, the first call already returns false. Async-signal-safe. */
BATON_API bool baton_is_leader(const struct baton_election *election);

/* The same, and *ret_epoch (NULL allowed) is the epoch of that same leadership, read atomically.
 * Attach it to every write: only the epoch protects the data if the process is paused after this
 * call returned true. Async-signal-safe. */
BATON_API bool baton_leadership(const struct baton_election *election, uint64_t *ret_epoch);

/* Nanoseconds until the lease ends if it is not renewed; 0: not the leader; INT64_MAX: the lease
 * does not end. Async-signal-safe. */
BATON_API int64_t baton_lease_remaining(const struct baton_election *election);

/* The epoch in which this process leads, or led last; 0: it never led. Epochs of one election
 * strictly grow over all leaders and restarts. Async-signal-safe. */
BATON_API uint64_t baton_epoch(const struct baton_election *election);

/* The role as of the latest event; BATON_ROLE_LEADER exactly when baton_is_leader(). */
BATON_API enum baton_role baton_role(const struct baton_election *election);

/* The leader as this process knows it, and its epoch (NULL allowed). BATON_ENOENT: there is none.
 * The member's metadata is left out. */
BATON_API int baton_leader(struct baton_election *election, struct baton_member *ret,
                           uint64_t *ret_epoch, struct baton_error *reterr);

/* The name given to baton_campaign(), and the handle's provider; valid as long as the handle. */
BATON_API const char *baton_election_name(const struct baton_election *election);
BATON_API struct baton *baton_of(const struct baton_election *election);

/* Says that the program is alive. With the provider's setting `hang` the guardian kills a leader
 * whose event loop stands still for so long; once this was called, also one whose program does not
 * call it again in that time. Call it from where a hang would show, at least twice as often as
 * `hang` says. Without the setting it has no effect. Any thread; async-signal-safe. */
BATON_API void baton_alive(struct baton *baton);

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Waits until the election has a leader. BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_wait(struct baton_election *election, int64_t timeout_ms,
                         struct baton_error *reterr);

/* Waits until this process leads. That leadership may be over when the call returns: ask
 * baton_is_leader(). BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_wait_leadership(struct baton_election *election, int64_t timeout_ms,
                                    struct baton_error *reterr);

/* ---- Handing over, and operating ------------------------------------------------------------- */

/* Hands leadership to the best placed member. The call first calls every listener of
 * BATON_EVENT_DRAIN and waits until they have returned, for `timeout_ms` or what is left of the
 * lease; then it voids the lease, and only then sends a message. It returns when this process no
 * longer leads, after `timeout_ms` at the latest (a second more if the loop is stalled). With a
 * timeout of 0 it hands over without waiting for the work.
 *
 * The thread that calls baton_dispatch() goes on dispatching while it waits here. Inside a listener
 * that it dispatches, and on the loop's thread, the call begins and returns 0; events report the
 * result. BATON_ENOTLEADER, BATON_EBUSY (a hand-over is under way; or raft: no other member can
 * take over now, and the error says of each why: it has just started, or does not answer),
 * BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_resign(struct baton_election *election, int64_t timeout_ms,
                           struct baton_error *reterr);

/* The same, to the member with this id or name. If that member does not take over in time, this
 * process goes on leading: BATON_ETIMEDOUT. BATON_EINVAL: there is no such member, or it may not
 * lead; the error lists the members that may lead. BATON_EBUSY also (raft) if it has just started
 * and cannot lead yet, or does not answer. No listener was called in either case. */
BATON_API int baton_pass(struct baton_election *election, const char *to, int64_t timeout_ms,
                         struct baton_error *reterr);

/* Cordon: this process campaigns no more, and first resigns if it leads, as baton_resign() does
 * with the default timeout. Uncordon: it campaigns again. On the loop's thread they do not wait.
 * BATON_EBUSY (cordon: a hand-over is under way), BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_cordon(struct baton_election *election, struct baton_error *reterr);
BATON_API int baton_uncordon(struct baton_election *election, struct baton_error *reterr);

/* All members, in one array; baton_members_free() frees it with the metadata. Waits for at most
 * 30 s. BATON_ENOTSUP, BATON_ETIMEDOUT, BATON_EUNAVAILABLE, BATON_ECLOSED. */
BATON_API int baton_members(struct baton_election *election, struct baton_member **ret,
                            size_t *ret_count, struct baton_error *reterr);
BATON_API void baton_members_free(struct baton_member *members);

/* Replaces this member's metadata, which the others see: a JSON object, or NULL for none. On the
 * loop's thread it does not wait. BATON_EINVAL, BATON_ETOOBIG (redis: above 60 KiB, raft: above
 * 4 KiB, as in baton_campaign()), BATON_ENOMEM, BATON_ECLOSED. */
BATON_API int baton_set_metadata(struct baton_election *election, const char *metadata,
                                 struct baton_error *reterr);

/* Changes the group's members. Of `member` the call uses name, address, kind, weight and priority.
 * It waits for an earlier change to end, and until its own is complete, also over changes of the
 * leader. If the member exists it is changed, except for its address (BATON_EEXIST): remove the
 * member first.
 *
 * BATON_ENOTSUP, BATON_EINVAL, BATON_ENOENT (remove: no such member), BATON_ECLOSED. When the time
 * is over: BATON_EBUSY (another change was under way all the time) and BATON_EUNAVAILABLE (no
 * leader): no change has begun; BATON_ETIMEDOUT: the change may still complete, for example once a
 * member whose vote it needs is started. */
BATON_API int baton_member_add(struct baton_election *election, const struct baton_member *member,
                               int64_t timeout_ms, struct baton_error *reterr);
BATON_API int baton_member_remove(struct baton_election *election, const char *id,
                                  int64_t timeout_ms, struct baton_error *reterr);

/* ---- Listening ------------------------------------------------------------------------------- */

/* On which thread a listener runs. Its events come in order and one at a time. */
enum baton_delivery {
    BATON_ON_LOOP,     /* the loop's, at once: must not block, since the lease's renewal waits */
    BATON_ON_THREAD,   /* a thread of its own: may block */
    BATON_ON_DISPATCH, /* the thread that calls baton_dispatch() when baton_fd() is readable */
};

/* The event is borrowed during the call. A listener of BATON_EVENT_DRAIN acknowledges by returning,
 * so it stops its work first (or waits until the work has stopped, on BATON_ON_THREAD). The event
 * comes before every hand-over on purpose: by this process, or by the group, because a member of
 * higher priority is back or this member is being removed. If the hand-over then fails, a
 * BATON_EVENT_ERROR with BATON_ETIMEDOUT follows. baton_leave(), baton_stop() and baton_close()
 * send no such event: call baton_resign() first.
 *
 * A listener that is BATON_EVENTS_WAITING_MAX events behind misses the following ones; before the
 * next event it gets a BATON_EVENT_ERROR with BATON_ETOOBIG. No lease depends on events: ask
 * baton_is_leader() before acting. */
typedef void (*baton_listener_fn)(struct baton_election *election, const struct baton_event *event,
                                  void *userdata);

enum { BATON_EVENTS_WAITING_MAX = 4096 };

/* Calls `fn` for each event whose bit is in `mask`, until baton_off(); baton_once() calls it for
 * the first one only. The handle (`ret`, NULL allowed) is written before the first event, and
 * valid until baton_off(), or until the election is left or closed; after an error it is NULL or
 * unchanged. BATON_ENOMEM, BATON_EINVAL (empty mask), BATON_EIO (no thread or descriptor),
 * BATON_ECLOSED. */
BATON_API int baton_on(struct baton_listener **ret, struct baton_election *election, uint32_t mask,
                       enum baton_delivery delivery, baton_listener_fn fn, void *userdata,
                       struct baton_error *reterr);
BATON_API int baton_once(struct baton_listener **ret, struct baton_election *election,
                         uint32_t mask, enum baton_delivery delivery, baton_listener_fn fn,
                         void *userdata, struct baton_error *reterr);

/* When it returns, the listener does not run and will not run again, and the handle is freed; from
 * inside the listener itself, the listener is not called again. Waiting events are dropped. NULL is
 * allowed. */
BATON_API void baton_off(struct baton_listener *listener);

/* A descriptor that is readable (poll, epoll, …) while events wait for baton_dispatch(). The
 * library owns it: neither read nor close it. */
BATON_API int baton_fd(const struct baton *baton);

/* Runs the BATON_ON_DISPATCH listeners for the waiting events, on the calling thread, and returns
 * how many events they got; never waits. One thread at a time; another thread gets BATON_EBUSY.
 * BATON_ECLOSED in a forked child. */
BATON_API int baton_dispatch(struct baton *baton);

/* ---- Channels: publish and subscribe --------------------------------------------------------- */

/* Sends a message to the processes that subscribe at this moment: at most once, with no order
 * between publishers; in a raft: group only to members that are connected to this one and read fast
 * enough. `channel` has at most 512 bytes, the message 1 MiB: else BATON_ETOOBIG. `data` may be
 * NULL for 0 bytes, and is borrowed during the call. Waits until the provider has accepted the
 * message, for at most 30 s; on the loop's thread it begins and returns 0. BATON_ENOTSUP,
 * BATON_EUNAVAILABLE (raft: also before the first campaign), BATON_ETIMEDOUT, BATON_ENOMEM,
 * BATON_ECLOSED. */
BATON_API int baton_publish(struct baton *baton, const char *channel, const void *data,
                            size_t bytes, struct baton_error *reterr);

/* On the loop's thread; data is borrowed during the call. */
typedef void (*baton_message_fn)(struct baton *baton, const char *channel, const void *data,
                                 size_t bytes, void *userdata);

/* Calls `fn` for each message of the channel, until baton_unsubscribe(). The handle (`ret`, NULL
 * allowed) is valid until then, or until baton_close(); it is written before the first call,
 * and NULL after an error. BATON_ENOTSUP, BATON_EINVAL, BATON_ETOOBIG, BATON_ENOMEM, BATON_ECLOSED.
 */
BATON_API int baton_subscribe(struct baton_subscription **ret, struct baton *baton,
                              const char *channel, baton_message_fn fn, void *userdata,
                              struct baton_error *reterr);

/* When it returns, the function does not run and never will, and the handle is gone; from inside
 * the function itself, it is not called again. After baton_stop() the handle goes with
 * baton_close(). For channels and keys (baton_watch()). NULL is nothing. */
BATON_API void baton_unsubscribe(struct baton_subscription *subscription);

/* ---- State: small values that outlive a leader ----------------------------------------------- */

/* A key has at most 512 bytes, a value 1 MiB (raft: 128 KiB): else BATON_ETOOBIG. A call waits for
 * at most 30 s.
 *
 *   r = baton_put(baton, "shards/7", "me", 2, 0, 10000, &error);    // only if nobody has it; 10 s
 *   if (r == BATON_ECONFLICT && baton_get(baton, "shards/7", &now, &error) == 0) {
 *       printf("%s has it\n", (const char *)now->data);
 *       baton_values_free(now, 1);
 *   }
 *
 * The revision grows with each change of a key; 0 means that there is no such key. Who keeps a
 * value up to date writes with the revision of the write before, and need not read:
 *
 *   r = baton_put_revision(baton, "progress", text, bytes, at, 0, &at, &error);
 *
 * Guarantees: memory: and raft: are linearizable, and an acknowledged write stays, in raft: as long
 * as a quorum of the disks does. redis: gives the same as long as its server keeps its data. A
 * server that fails over to a replica, or starts without its data, may have lost acknowledged
 * writes. Their revisions are given to no other values, as its revisions are not below its time in
 * microseconds, unless its clock is behind. So attach the epoch to values that must not be lost,
 * and have the resource check it. */
struct baton_value {
    char *key;
    void *data; /* `bytes` bytes, and a NUL behind them; NULL: no such key, or deleted */
    size_t bytes;
    uint64_t revision;
};

#define BATON_ANY_REVISION UINT64_MAX

/* Sees every write that was acknowledged before. BATON_ENOENT: no such key. Free the value with
 * baton_values_free(value, 1). Waits. BATON_ENOTSUP, BATON_EUNAVAILABLE, BATON_ETIMEDOUT,
 * BATON_ETOOBIG, BATON_ENOMEM, BATON_EBUSY (too many requests wait), BATON_EDEADLK, BATON_ECLOSED.
 */
BATON_API int baton_get(struct baton *baton, const char *key, struct baton_value **ret,
                        struct baton_error *reterr);

/* Every key that begins with `prefix`, in the order of the keys' bytes; freed by
 * baton_values_free(values, count). Waits. Errors as baton_get(), except BATON_ENOENT. */
BATON_API int baton_list(struct baton *baton, const char *prefix, struct baton_value **ret,
                         size_t *ret_count, struct baton_error *reterr);
BATON_API void baton_values_free(struct baton_value *values, size_t count);

/* Compare and set: BATON_ECONFLICT unless the key is at `revision` (0: there must be no such key;
 * BATON_ANY_REVISION: any). data NULL deletes. After `lifetime_ms` (0: never) the key is deleted.
 * Waits. Errors as baton_get(), and BATON_EINVAL (a negative lifetime). On the loop's thread it
 * begins and returns 0; a watch reports its result. */
BATON_API int baton_put(struct baton *baton, const char *key, const void *data, size_t bytes,
                        uint64_t revision, int64_t lifetime_ms, struct baton_error *reterr);

/* The same; *ret_revision is the key's new revision, as baton_get() would report it if nobody else
 * wrote; 0 after a deletion. NULL: as baton_put(). On the loop's thread BATON_EDEADLK, and nothing
 * is written. */
BATON_API int baton_put_revision(struct baton *baton, const char *key, const void *data,
                                 size_t bytes, uint64_t revision, int64_t lifetime_ms,
                                 uint64_t *ret_revision, struct baton_error *reterr);

/* On the loop's thread; the value is borrowed during the call. data NULL: deleted or expired. */
typedef void (*baton_change_fn)(struct baton *baton, const struct baton_value *value,
                                void *userdata);

/* First what is there, then the changes, those of a key in their order and none twice. Each of
 * them, as long as this process keeps up; else the last one alone of several: redis: after a
 * connection that was lost or a server that failed over (which takes changes back without a word),
 * raft: on a node that was so far behind that it got the state as a whole. Handle, end and errors
 * as baton_subscribe(). */
BATON_API int baton_watch(struct baton_subscription **ret, struct baton *baton, const char *prefix,
                          baton_change_fn fn, void *userdata, struct baton_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
