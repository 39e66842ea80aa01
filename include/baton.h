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
 *           write_with_token(epoch);   // what it writes to refuses a smaller epoch
 *       }
 *       pause_a_little();
 *   }
 *
 * Objects. A `struct baton` is one open provider with one thread, its loop. A `struct
 * baton_election` is one election that it takes part in, a `struct baton_listener` one function
 * that hears of an election. Nothing is global: a process may open as many as it likes.
 *
 * Errors. A function that can fail returns 0 or a negative BATON_E… code; <baton/error.h> lists
 * them. `reterr` may be NULL and is written on failure only. Whatever is returned through `ret`
 * is written on success only. A function that does not say so takes no NULL.
 *
 * Threads. Every function may be called from any thread, but for the restrictions it states. One
 * that says "waits" blocks its caller; on the loop's thread, which is where a listener with
 * BATON_ON_LOOP runs, waiting would wait for itself: there it returns BATON_EBUSY at once.
 *
 * Time. A `timeout_ms` is in milliseconds; BATON_TIMEOUT_DEFAULT (any negative number) stands for
 * 30 s, 0 for "do not wait". When it runs out the call returns BATON_ETIMEDOUT; what it asked for
 * may still happen. Points in time are CLOCK_BOOTTIME.
 *
 * Fork. A forked child is not a member: baton_is_leader() is false in it, every function that can
 * fail returns BATON_ECLOSED, and baton_close() lets the parent's connections be. It may open its
 * own.
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
    int fd;
    enum baton_log_level level; /* up to and including this one */
    bool json;                  /* a JSON object a line; else lines for people, or for journald */
};

/* All of it may be zero. Borrowed during the call. */
struct baton_options {
    const char *node;                     /* this member's name; NULL: the provider's default */
    const struct baton_setting *settings; /* these beat the URL's query */
    size_t setting_count;
    const struct baton_log *log; /* NULL: silence */
    /* Handlers for SEGV, ABRT, BUS … void the leases and announce the crash before the kernel tears
     * the memory down, then make way for the handlers that were there. Off: a crash is noticed
     * when the process is gone. */
    bool announces_crashes;
};

/* Opens the provider that the URL names and starts its loop. Nothing campaigns yet.
 *
 *   raft://HOST:PORT?peers=…&data=DIR   peers elect among themselves; off loopback with a key-file
 *   redis://HOST:PORT/DATABASE          on a Redis or Valkey server; docs/redis.md has more ways
 *   memory:NAME                         within this process; all that open one NAME share it
 *
 * `options` may be NULL. Errors: BATON_EINVAL names the part of the URL or the setting that is
 * wrong, BATON_EUNSAFE the inequality that fails, BATON_EAUTH a missing protection, BATON_EIO,
 * BATON_EBUSY (the data directory is in use), BATON_ECORRUPT, BATON_ENOMEM. Passwords in the URL
 * appear in no error and no log. */
BATON_API int baton_open(struct baton **ret, const char *url, const struct baton_options *options,
                         struct baton_error *reterr);

/* Resigns what it leads, leaves every election and ends the loop; each election's last event,
 * BATON_EVENT_STOPPED, has been handed to its listeners. Waits, a second or so at most for a group
 * that does not answer. Idempotent; NULL is nothing. Every later call fails with BATON_ECLOSED, and
 * elections stay valid to ask. From a listener on the loop it only begins. */
BATON_API void baton_stop(struct baton *baton);

/* Stops, waits until no listener runs any more, and frees: the elections and listeners too, which
 * nobody may use from here on. Not from a listener. NULL is nothing. */
BATON_API void baton_close(struct baton *baton);

/* ---- Campaigning ----------------------------------------------------------------------------- */

/* All of it may be zero. Borrowed during the call. */
struct baton_campaign_options {
    bool observes;        /* votes and listens, but never leads, until baton_uncordon() */
    const char *metadata; /* a JSON object for the registry, or NULL */
};

/* Takes part in the election called `name` (1 to 63 bytes). Returns when the campaign has begun,
 * not when it is won; a listener first hears where things stand by then. Waits for the loop.
 *
 * Errors: BATON_EINVAL (the name, the metadata), BATON_EEXIST (in it already, or the provider has
 * room for one election only), BATON_ECORRUPT and BATON_EBUSY (the data directory), BATON_ENOMEM,
 * BATON_ECLOSED. The handle belongs to `baton`; baton_leave() gives it back early. */
BATON_API int baton_campaign(struct baton_election **ret, struct baton *baton, const char *name,
                             const struct baton_campaign_options *options,
                             struct baton_error *reterr);

/* Resigns if leading, leaves the election and frees the handle with its listeners; nobody may use
 * it during or after the call. BATON_EVENT_STOPPED is the last event. Waits; not from a listener.
 * NULL is nothing. */
BATON_API void baton_leave(struct baton_election *election);

/* ---- Asking: no lock, no round trip ---------------------------------------------------------- */

/* True only while the lease holds by the calling thread's own clock, now: some nanoseconds, lock-
 * free, with no need of a loop that is still alive. Async-signal-safe. False after the process was
 * asleep or stopped for longer than its lease, from the first call on. */
BATON_API bool baton_is_leader(const struct baton_election *election);

/* The same, and in *ret_epoch the epoch of that very leadership, as one atomic reading. Put it on
 * every write, since a pause after this returned true can be mended by nothing else. NULL allowed.
 * Async-signal-safe. */
BATON_API bool baton_leadership(const struct baton_election *election, uint64_t *ret_epoch);

/* Nanoseconds until the lease ends, if it is not renewed; 0: not the leader. INT64_MAX: it has no
 * end. Async-signal-safe. */
BATON_API int64_t baton_lease_remaining(const struct baton_election *election);

/* The epoch this process leads in, or led in last; 0: never. It strictly grows over all leaders of
 * an election, whatever restarts. Async-signal-safe. */
BATON_API uint64_t baton_epoch(const struct baton_election *election);

/* As of the last event; BATON_ROLE_LEADER exactly when baton_is_leader(). */
BATON_API enum baton_role baton_role(const struct baton_election *election);

/* Who leads, as far as is known here, and in which epoch (NULL allowed). BATON_ENOENT: nobody. The
 * metadata is left out. */
BATON_API int baton_leader(struct baton_election *election, struct baton_member *ret,
                           uint64_t *ret_epoch, struct baton_error *reterr);

/* The name given to baton_campaign(), and the handle's provider. They live as long as it. */
BATON_API const char *baton_election_name(const struct baton_election *election);
BATON_API struct baton *baton_of(const struct baton_election *election);

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Waits until the election has a result: somebody leads. BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_wait(struct baton_election *election, int64_t timeout_ms,
                         struct baton_error *reterr);

/* Waits until this process leads, which may have ended when it returns. BATON_ETIMEDOUT,
 * BATON_ECLOSED. */
BATON_API int baton_wait_leadership(struct baton_election *election, int64_t timeout_ms,
                                    struct baton_error *reterr);

/* ---- Handing over, and operating ------------------------------------------------------------- */

/* Hands leadership to the best placed member. First every listener of BATON_EVENT_DRAIN is told to
 * stop, and the call waits until they have returned, for `timeout_ms` or what is left of the
 * lease; then the lease is void, and only then is anything sent. Returns when this process no
 * longer leads, after `timeout_ms` at the latest (or a second more, where the loop is stalled): 0
 * hands over without waiting for the work.
 *
 * The thread that calls baton_dispatch() goes on dispatching while it waits here. Inside a listener
 * that it dispatches, and on the loop's thread, the call begins and returns 0; events tell the
 * rest. BATON_ENOTLEADER, BATON_EBUSY (a hand-over is under way), BATON_ETIMEDOUT, BATON_ECLOSED.
 */
BATON_API int baton_resign(struct baton_election *election, int64_t timeout_ms,
                           struct baton_error *reterr);

/* The same, to the member with this id or name. If that one does not take over in time, this one
 * goes on leading: BATON_ETIMEDOUT. BATON_EINVAL: no such member, or one that may not lead; nothing
 * was told to stop, and the error lists those who may. */
BATON_API int baton_pass(struct baton_election *election, const char *to, int64_t timeout_ms,
                         struct baton_error *reterr);

/* No campaign of this process any more, resigning first if it leads, as baton_resign() does with
 * the default timeout; and the opposite. On the loop's thread they do not wait. BATON_EBUSY
 * (cordon: a hand-over is under way), BATON_ETIMEDOUT, BATON_ECLOSED. */
BATON_API int baton_cordon(struct baton_election *election, struct baton_error *reterr);
BATON_API int baton_uncordon(struct baton_election *election, struct baton_error *reterr);

/* All members, in one array that baton_members_free() frees, metadata and all. Waits for at most
 * 30 s. BATON_ENOTSUP, BATON_ETIMEDOUT, BATON_EUNAVAILABLE, BATON_ECLOSED. */
BATON_API int baton_members(struct baton_election *election, struct baton_member **ret,
                            size_t *ret_count, struct baton_error *reterr);
BATON_API void baton_members_free(struct baton_member *members);

/* What the others see as this member's metadata from now on: a JSON object, or NULL for none. On
 * the loop's thread it does not wait. BATON_EINVAL, BATON_ETOOBIG (redis: above 60 KiB, as in
 * baton_campaign()), BATON_ENOTSUP (raft:), BATON_ENOMEM, BATON_ECLOSED. */
BATON_API int baton_set_metadata(struct baton_election *election, const char *metadata,
                                 struct baton_error *reterr);

/* Changes the group itself: of `member` count name, address, kind, weight and priority. Waits until
 * the change is complete, whoever leads meanwhile, and for one before it to end. A member that is
 * there already is changed, but for its address (BATON_EEXIST): remove it first.
 *
 * BATON_ENOTSUP, BATON_EINVAL, BATON_ENOENT (remove: no such member), BATON_ECLOSED. When time is
 * up: BATON_EBUSY (another change was under way all the while) and BATON_EUNAVAILABLE (no leader):
 * nothing has begun; BATON_ETIMEDOUT: it may go on, as it does where the group needs the vote of a
 * member that does not run yet. */
BATON_API int baton_member_add(struct baton_election *election, const struct baton_member *member,
                               int64_t timeout_ms, struct baton_error *reterr);
BATON_API int baton_member_remove(struct baton_election *election, const char *id,
                                  int64_t timeout_ms, struct baton_error *reterr);

/* ---- Listening ------------------------------------------------------------------------------- */

/* On which thread a listener runs. Its events come in order and one at a time. */
enum baton_delivery {
    BATON_ON_LOOP,     /* the loop's: at once; must not block, since the lease's renewal waits */
    BATON_ON_THREAD,   /* one of its own: may take its time */
    BATON_ON_DISPATCH, /* the one that calls baton_dispatch() when baton_fd() is readable */
};

/* The event is borrowed during the call. A listener of BATON_EVENT_DRAIN acknowledges by returning,
 * so it stops its work first (or waits until that has stopped, on BATON_ON_THREAD). It comes before
 * every hand-over that somebody wants: this process, or the group, to which a preferred member is
 * back, or of which this one is no member any more. A hand-over that then comes to nothing is a
 * BATON_EVENT_ERROR with BATON_ETIMEDOUT. Before baton_leave(), baton_stop() and baton_close()
 * there is none: call baton_resign() first.
 *
 * A listener that falls BATON_EVENTS_WAITING_MAX events behind misses those that follow; before
 * the next one it hears a BATON_EVENT_ERROR with BATON_ETOOBIG. That touches no lease: ask
 * baton_is_leader() before acting, whatever an event said. */
typedef void (*baton_listener_fn)(struct baton_election *election, const struct baton_event *event,
                                  void *userdata);

enum { BATON_EVENTS_WAITING_MAX = 4096 };

/* Calls `fn` for each event whose bit is in `mask`, until baton_off(); baton_once() for the first
 * one only. The handle (`ret`, NULL allowed) is valid until baton_off(), or until the election is
 * left or closed. BATON_ENOMEM, BATON_EINVAL (empty mask), BATON_EIO (no thread or descriptor),
 * BATON_ECLOSED. */
BATON_API int baton_on(struct baton_listener **ret, struct baton_election *election, uint32_t mask,
                       enum baton_delivery delivery, baton_listener_fn fn, void *userdata,
                       struct baton_error *reterr);
BATON_API int baton_once(struct baton_listener **ret, struct baton_election *election,
                         uint32_t mask, enum baton_delivery delivery, baton_listener_fn fn,
                         void *userdata, struct baton_error *reterr);

/* When it returns, the listener does not run and never will, and the handle is gone; from inside
 * the listener itself, it is not called again. Events that still waited are dropped. NULL is
 * nothing. */
BATON_API void baton_off(struct baton_listener *listener);

/* A descriptor that is readable (poll, epoll, …) while events wait for baton_dispatch(). It belongs
 * to the library: neither read nor close it. */
BATON_API int baton_fd(const struct baton *baton);

/* Runs the BATON_ON_DISPATCH listeners for what waits, on the calling thread, and returns how many
 * events were handed over; never waits. One thread at a time; another gets BATON_EBUSY.
 * BATON_ECLOSED in a forked child. */
BATON_API int baton_dispatch(struct baton *baton);

/* ---- Channels: publish and subscribe --------------------------------------------------------- */

/* At most once, unordered between publishers; a message to nobody is none. `channel` has at most
 * 512 bytes, the message 1 MiB: else BATON_ETOOBIG. `data` may be NULL for 0 bytes, and is borrowed
 * during the call. Waits until the provider has taken it, for at most 30 s; on the loop's thread it
 * begins and returns 0. BATON_ENOTSUP (raft:), BATON_EUNAVAILABLE, BATON_ETIMEDOUT, BATON_ENOMEM,
 * BATON_ECLOSED. */
BATON_API int baton_publish(struct baton *baton, const char *channel, const void *data,
                            size_t bytes, struct baton_error *reterr);

/* On the loop's thread; data is borrowed during the call. */
typedef void (*baton_message_fn)(struct baton *baton, const char *channel, const void *data,
                                 size_t bytes, void *userdata);

/* One (channel, fn, userdata) is subscribed once: BATON_EEXIST. BATON_ENOTSUP, BATON_EINVAL,
 * BATON_ETOOBIG, BATON_ENOMEM, BATON_ECLOSED. baton_unsubscribe() waits until fn does not run. */
BATON_API int baton_subscribe(struct baton *baton, const char *channel, baton_message_fn fn,
                              void *userdata, struct baton_error *reterr);
BATON_API void baton_unsubscribe(struct baton *baton, const char *channel, baton_message_fn fn,
                                 void *userdata);

/* ---- State: small values that outlive a leader ----------------------------------------------- */

/* A key has at most 512 bytes, a value 1 MiB (raft: 128 KiB): else BATON_ETOOBIG. A call that waits
 * does so for at most 30 s.
 *
 *   r = baton_put(baton, "shards/7", "me", 2, 0, 10000, &error);    // only if nobody has it; 10 s
 *   if (r == BATON_ECONFLICT && baton_get(baton, "shards/7", &now, &error) == 0) {
 *       printf("%s has it\n", (const char *)now->data);
 *       baton_values_free(now, 1);
 *   }
 *
 * The revision grows with each change of a key; 0 means "not there".
 *
 * How much a provider vouches for: memory: and raft: are linearizable; what was answered stays, in
 * raft: as long as a quorum of the disks. redis: is so as long as its server keeps its data. One
 * that fails over to a replica, or starts without its data, may have lost writes that were
 * answered, and then gives their revisions once more, to other values: what must not be lost
 * carries the epoch, and is checked by whatever it is for. */
struct baton_value {
    char *key;
    void *data; /* `bytes` bytes and a NUL behind them; NULL: not there, or deleted */
    size_t bytes;
    uint64_t revision;
};

#define BATON_ANY_REVISION UINT64_MAX

/* What was answered before is seen. BATON_ENOENT: no such key. Free the value with
 * baton_values_free(value, 1). Waits. BATON_ENOTSUP, BATON_EUNAVAILABLE, BATON_ETIMEDOUT,
 * BATON_ETOOBIG, BATON_ENOMEM, BATON_EBUSY (on the loop's thread, or too many questions wait),
 * BATON_ECLOSED. */
BATON_API int baton_get(struct baton *baton, const char *key, struct baton_value **ret,
                        struct baton_error *reterr);

/* Every key that begins with `prefix`, in the order of their bytes; freed by
 * baton_values_free(values, count). Waits. Errors as baton_get(), but BATON_ENOENT. */
BATON_API int baton_list(struct baton *baton, const char *prefix, struct baton_value **ret,
                         size_t *ret_count, struct baton_error *reterr);
BATON_API void baton_values_free(struct baton_value *values, size_t count);

/* Compare and set: BATON_ECONFLICT unless the key is at `revision` (0: must not be there;
 * BATON_ANY_REVISION: whatever is there). data NULL deletes. After `lifetime_ms` (0: never) the key
 * is gone. Waits. Errors as baton_get(), and BATON_EINVAL (a negative lifetime). On the loop's
 * thread BATON_EBUSY means that the change is begun; a watch tells what became of it. */
BATON_API int baton_put(struct baton *baton, const char *key, const void *data, size_t bytes,
                        uint64_t revision, int64_t lifetime_ms, struct baton_error *reterr);

/* On the loop's thread; the value is borrowed during the call. data NULL: deleted or expired. */
typedef void (*baton_change_fn)(struct baton *baton, const struct baton_value *value,
                                void *userdata);

/* First what is there, then the changes, those of a key in their order and none twice. Each of
 * them, as long as this process keeps up; else the last one alone of several: redis: after a
 * connection that was lost or a server that failed over (which takes changes back without a word),
 * raft: on a node that was so far behind that it got the state as a whole. Errors and end as
 * baton_subscribe(). */
BATON_API int baton_watch(struct baton *baton, const char *prefix, baton_change_fn fn,
                          void *userdata, struct baton_error *reterr);
BATON_API void baton_unwatch(struct baton *baton, const char *prefix, baton_change_fn fn,
                             void *userdata);

#ifdef __cplusplus
}
#endif

#endif
