/* The interface that every provider of elections implements.
 *
 * A provider turns a core's outputs into I/O and I/O into its inputs. It runs on one libuv loop:
 * all functions are called and all callbacks run on that loop's thread. Nothing blocks: a reply
 * that takes a round trip comes by callback. A new provider is one folder and one line in table.c;
 * tests/provider/ is the suite that it must pass.
 *
 * A function returns 0, or a negative BATON_E… and fills in reterr; after a failure nothing has
 * begun and no callback comes. A callback comes exactly once, with 0 or a negative code.
 */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "provider/lease_cell.h"

#include <baton/types.h>
#include <uv.h>

struct provider_option {
    const char *key; /* "preset", "data", … as in a URL's query */
    const char *value;
};

/* Borrowed during the call to open, except for `loop`, `logger`, `alive_ns` and `userdata`, which
 * outlive the provider. */
struct provider_config {
    uv_loop_t *loop;
    struct logger *logger;                 /* or NULL */
    const char *url;                       /* whole; never logged unmasked */
    const char *node;                      /* this node's name; NULL: the provider's default */
    const struct provider_option *options; /* override the URL's query */
    size_t option_count;
    /* When the program said last that it is alive, in CLOCK_BOOTTIME; 0: it does not. Any thread
     * writes it. With the setting `hang` a leader that falls silent is killed. NULL: never. */
    const _Atomic int64_t *alive_ns;
    /* The provider's own disk has failed, or the group refuses what is on it (BATON_EUNSAFE): it
     * does nothing more in this process. Or its only server refuses the credentials from the start
     * on (BATON_EAUTH). A program without an election of its own ends then, as others do on a
     * BATON_EVENT_ERROR. May come again; closes nothing. NULL: unwanted. */
    void (*on_failed)(void *userdata, const struct baton_error *error);
    void *userdata; /* of on_failed */
};

/* Called on the loop's thread. It may leave the election, but not close the provider. */
typedef void (*provider_event_cb)(void *userdata, const struct baton_event *event);

struct provider_campaign {
    const char *election;    /* its name; letters, digits, "-_.:/{}" */
    bool eligible;           /* false: votes and listens, but never leads */
    const char *metadata;    /* JSON object for the registry, or NULL */
    struct lease_cell *cell; /* the provider publishes here before it delivers the event */
    provider_event_cb on_event;
    void *userdata;
    /* For a session that is resumed: the latest epoch of this election that the process knows, and
     * whether it acts in that one now. A grant of a later epoch is new; that of `known_epoch` goes
     * on if it `acts`, and else counts as given up. 0: it has never led. Providers without attach
     * take no notice. */
    uint64_t known_epoch;
    bool acts;
    int32_t priority; /* in the line, added to the node's own; providers without lines ignore it */
};

/* A process that takes part through another one, the agent of its host. Borrowed during the call,
 * except for `userdata`. */
struct provider_process {
    const char *name;      /* its member name */
    const char *metadata;  /* JSON object, or NULL */
    const uint8_t *secret; /* PROVIDER_SECRET_BYTES that only the process knows; NULL: none */
    uint64_t session;      /* resumes this session, if it lives and the secret is right; 0: new */
    /* The process has this session now; 0: it was lost, and a new one is opened. Comes on the loop,
     * before any event of an election in that session, and not within provider_attach(). A resumed
     * session is reported as a new one is; one that cannot be resumed is replaced by a new one, and
     * only that one's id is reported. NULL: unwanted. */
    void (*on_session)(void *userdata, uint64_t session);
    void *userdata;
};

/* What the group knows of one election. */
struct provider_election_state {
    const char *name;
    const char *leader; /* name of the process that leads; "": none */
    uint64_t epoch;     /* of that leader; 0: none */
    size_t waiting;     /* others that may lead */
    span left;          /* of the leader's lease; negative: not known here */
};

enum provider_feature {
    PROVIDER_MEMBERS = 1u << 0,
    PROVIDER_CHANNELS = 1u << 1,
    PROVIDER_STATE = 1u << 2,
    PROVIDER_OPERATE = 1u << 3,        /* changes of membership, cordon */
    PROVIDER_MANY_ELECTIONS = 1u << 4, /* more than one name for each open provider */
};

/* Base of every provider's own struct. */
struct provider {
    const struct provider_ops *ops;
};
struct provider_election {
    const struct provider_ops *ops;
    struct provider *provider;
};

typedef void (*provider_done_cb)(void *userdata, int code, const struct baton_error *error);
typedef void (*provider_members_cb)(void *userdata, int code, const struct baton_member *members,
                                    size_t count);
typedef void (*provider_elections_cb)(void *userdata, int code,
                                      const struct provider_election_state *elections,
                                      size_t count);
typedef void (*provider_message_cb)(void *userdata, const char *channel, const void *data,
                                    size_t bytes);

/* A value with its revision, which grows with each change of the key; 0: the key is absent. */
struct provider_value {
    const char *key;
    const void *data; /* NULL: deleted */
    size_t bytes;
    uint64_t revision;
};
typedef void (*provider_values_cb)(void *userdata, int code, const struct provider_value *values,
                                   size_t count);
/* `revision`: on success the key's new one, 0 after a deletion; after BATON_ECONFLICT the one at
 * which the key is, which all providers know; else 0. */
typedef void (*provider_put_cb)(void *userdata, int code, uint64_t revision,
                                const struct baton_error *error);

#define PROVIDER_ANY_REVISION UINT64_MAX

enum {
    PROVIDER_KEY_MAX = 512,           /* bytes of a key's or channel's name */
    PROVIDER_VALUE_MAX = 1024 * 1024, /* bytes of a value or message; more is BATON_ETOOBIG */
    PROVIDER_SECRET_BYTES = 32,       /* of a process's secret */
    PROVIDER_EACH_MAX = 64,           /* keys of one get_each() */
};

struct victims;          /* guardian/victims.h */
struct provider_setting; /* provider/setting.h */

struct provider_ops {
    const char *scheme;  /* of the URL, without ":" */
    const char *others;  /* further schemes, separated by blanks; or NULL */
    const char *summary; /* one line for --help */
    unsigned features;   /* enum provider_feature; functions of missing features are NULL */
    const struct provider_setting *settings; /* the table of its settings: provider/setting.h */

    int (*open)(struct provider **ret, const struct provider_config *config,
                struct baton_error *reterr);
    /* Resigns from all elections (voids first), waits briefly for that, frees. Elections must not
     * be used any more; each gets a last BATON_EVENT_STOPPED before `closed`. */
    void (*close)(struct provider *provider, void (*closed)(void *userdata), void *userdata);

    /* Becomes a member of the group before the first election: votes, and has its state. The error
     * is that of the start: a port that is taken, a directory of another node. NULL function: there
     * is nothing to begin before. */
    int (*begin)(struct provider *provider, struct baton_error *reterr);
    int (*campaign)(struct provider_election **ret, struct provider *provider,
                    const struct provider_campaign *campaign, struct baton_error *reterr);
    /* Checks that `to`, an id or a name, is another member that may lead, as far as is known here,
     * so that the work under the lease is not stopped in vain. BATON_EINVAL lists the possible
     * members. BATON_EBUSY: it started a moment ago and cannot lead yet; or `to` is NULL, which
     * means any member, and none can lead now: the message says of each why. */
    int (*check_heir)(struct provider_election *election, const char *to,
                      struct baton_error *reterr);
    /* Hands leadership to the named node, or (NULL) to the best one. Voids the lease before
     * anything is sent. BATON_ENOTLEADER at once if not leading; otherwise an event has the
     * outcome. */
    int (*resign)(struct provider_election *election, const char *to, instant deadline,
                  struct baton_error *reterr);
    /* Continues the hand-over that the provider announced by BATON_EVENT_DRAIN: nothing acts under
     * the lease any more. It continues in any case after the event's lease_left_ns; if it fails, a
     * BATON_EVENT_ERROR has BATON_ETIMEDOUT. NULL: the provider has no such event.
     */
    void (*drained)(struct provider_election *election);
    /* Sets whether this process campaigns or only takes part (cordon). A cordoned leader
     * resigns. */
    int (*set_eligible)(struct provider_election *election, bool eligible,
                        struct baton_error *reterr);
    /* Leaves the election: resigns if leading; BATON_EVENT_STOPPED is the last event. */
    void (*leave)(struct provider_election *election);
    /* The leader as known here; id "": none. */
    void (*leader)(struct provider_election *election, struct baton_member *ret,
                   uint64_t *ret_epoch);

    /* A new jansson object with the provider's own status, without secrets; NULL: out of memory.
     * NULL function: there is nothing to add. */
    struct json_t *(*status)(struct provider *provider);

    /* MEMBERS */
    int (*members)(struct provider_election *election, provider_members_cb done, void *userdata,
                   struct baton_error *reterr);

    /* Replaces this member's metadata in the registry: a JSON object, or NULL. NULL function: the
     * metadata of the campaign stays. */
    int (*set_metadata)(struct provider_election *election, const char *metadata,
                        struct baton_error *reterr);

    /* OPERATE: changes the group. `done` comes when the change is complete. BATON_ETIMEDOUT at the
     * deadline: it may still complete; BATON_EBUSY, BATON_EUNAVAILABLE: it has not begun. An
     * existing member is changed; its address only if it `replaces`, else BATON_EEXIST. */
    int (*member_add)(struct provider_election *election, const struct baton_member *member,
                      bool replaces, instant deadline, provider_done_cb done, void *userdata,
                      struct baton_error *reterr);
    int (*member_remove)(struct provider_election *election, const char *id, instant deadline,
                         provider_done_cb done, void *userdata, struct baton_error *reterr);

    /* CHANNELS: at most once, unordered between publishers. */
    int (*publish)(struct provider *provider, const char *channel, const void *data, size_t bytes,
                   provider_done_cb done, void *userdata, struct baton_error *reterr);
    int (*subscribe)(struct provider *provider, const char *channel, provider_message_cb on_message,
                     void *userdata, struct baton_error *reterr);
    void (*unsubscribe)(struct provider *provider, const char *channel, void *userdata);

    /* STATE: linearizable, as long as the servers keep their data. `lifetime` 0: for ever. */
    int (*get)(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr);
    int (*list)(struct provider *provider, const char *prefix, provider_values_cb done,
                void *userdata, struct baton_error *reterr);
    /* Those of the keys that are there, all by one request. NULL function: provider_get_each() asks
     * for one after the other. */
    int (*get_each)(struct provider *provider, const char *const *keys, size_t count,
                    provider_values_cb done, void *userdata, struct baton_error *reterr);
    /* data NULL deletes. BATON_ECONFLICT unless the key is at `revision` (0: absent). */
    int (*put)(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
               struct baton_error *reterr);
    /* Reports the present keys, then changes, in order for each key; of changes that came too fast,
     * only the last; until unwatch. */
    int (*watch)(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr);
    void (*unwatch)(struct provider *provider, const char *prefix, void *userdata);

    /* Sets the processes that act for this one (NULL: none), which are killed before its death is
     * certified. Replaces all; copies. NULL function: the provider certifies nothing. */
    void (*set_victims)(struct provider *provider, const struct victims *victims);

    /* Reads certificates and keys again from the files that the settings name, and takes the
     * passwords of `url`. All are checked first; if one is wrong, all stay as they are, and the
     * error names the file or what refused the password. Connections that are open stay open; new
     * ones use what was read. BATON_EINVAL: a file is wrong, or the URL differs in something else;
     * BATON_EAUTH: a server refused the password, or others may read a key; BATON_EBUSY: a reload
     * is under way. NULL function: there is nothing to read. */
    int (*reload)(struct provider *provider, const char *url, provider_done_cb done, void *userdata,
                  struct baton_error *reterr);

    /* Makes a handle by which another process takes part: with a session, elections and leases of
     * its own. It has the functions about elections; state, channels and the rest are asked of the
     * provider. close() ends its session, and all that it held is handed on at once. The provider
     * outlives its handles. A BATON_EVENT_DRAIN of its elections waits for drained() without an
     * end: only the process itself gives an election up. NULL function: provider_attach() opens the
     * URL anew under the process's name. */
    int (*attach)(struct provider **ret, struct provider *provider,
                  const struct provider_process *process, struct baton_error *reterr);
    /* How long a lease of an attached process lasts from its renewal: who asks for it less often
     * leads with interruptions. NULL function: without an end. */
    span (*lease)(const struct provider *provider);
    /* As close(), but the session goes on for its lifetime, and may be resumed: no election reports
     * a loss. The cells are void when it returns. NULL function: provider_detach() closes. */
    void (*detach)(struct provider *handle, void (*closed)(void *userdata), void *userdata);

    /* Of any election, whether this process takes part in it or not; NULL functions: not known.
     * All elections that have a contender, by name. */
    int (*elections)(struct provider *provider, provider_elections_cb done, void *userdata,
                     struct baton_error *reterr);
    /* Asks the leader to hand over to the process named `to`, or (NULL) to the next in line. `done`
     * comes when another leads. BATON_ENOENT: no such election, or it has no leader; BATON_EINVAL:
     * `to` does not wait for it; BATON_EBUSY: nobody does; BATON_ETIMEDOUT at the deadline: it may
     * still happen. */
    int (*ask_pass)(struct provider *provider, const char *election, const char *to,
                    instant deadline, provider_done_cb done, void *userdata,
                    struct baton_error *reterr);
    /* Sets whether the process of this name may lead the election; one that leads hands over.
     * `done` comes when the group knows it. BATON_ENOENT: it takes no part in the election. */
    int (*ask_eligible)(struct provider *provider, const char *election, const char *process,
                        bool eligible, instant deadline, provider_done_cb done, void *userdata,
                        struct baton_error *reterr);
};

/* All providers; ends with NULL. */
const struct provider_ops *const *provider_table(void);

/* Opens the provider that the URL's scheme names; BATON_EINVAL lists the known ones. */
int provider_open(struct provider **ret, const struct provider_config *config,
                  struct baton_error *reterr);

/* A handle for another process: that of `provider`, or, if it has none, the provider of `config`
 * (with which `provider` was opened) opened anew under the process's name. The latter knows no
 * sessions: on_session is never called, and each campaign has the metadata. */
int provider_attach(struct provider **ret, struct provider *provider,
                    const struct provider_config *config, const struct provider_process *process,
                    struct baton_error *reterr);
/* Ends a handle, but not its session, where the provider has sessions; else closes it. */
void provider_detach(struct provider *handle, void (*closed)(void *userdata), void *userdata);

/* Whether the provider of this URL has a setting of this key. True if no provider has the URL's
 * scheme, which is then refused by provider_open(). */
bool provider_has_setting(const char *url, const char *key);

#endif
