/* Where an election really happens: the small interface that every provider implements.
 *
 * A provider turns a core's outputs into I/O and I/O into its inputs. It runs on one libuv loop,
 * all of its functions are called on that loop's thread, and all of its callbacks come there.
 * Nothing blocks: an answer that takes a round trip comes by callback. A new provider is one folder
 * and one line in table.c; tests/provider/ is the suite that it must pass.
 *
 * Failures: a function returns 0 or a negative BATON_E… and fills reterr; after a failure nothing
 * was begun and no callback comes. A callback comes exactly once, with 0 or a negative code.
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

/* All borrowed during the call to open, but `loop`, `logger`: those outlive the provider. */
struct provider_config {
    uv_loop_t *loop;
    struct logger *logger;                 /* or NULL */
    const char *url;                       /* whole; never logged unmasked */
    const char *node;                      /* this node's name; NULL: the provider's default */
    const struct provider_option *options; /* beat those of the URL's query */
    size_t option_count;
};

/* Comes on the loop's thread. The election may be left from inside; the provider not closed. */
typedef void (*provider_event_cb)(void *userdata, const struct baton_event *event);

struct provider_campaign {
    const char *election;    /* its name; letters, digits, "-_.:/{}" */
    bool eligible;           /* false: takes part (votes, listens) but never leads */
    const char *metadata;    /* JSON object for the registry, or NULL */
    struct lease_cell *cell; /* the provider publishes here first, and tells of it afterwards */
    provider_event_cb on_event;
    void *userdata;
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
typedef void (*provider_message_cb)(void *userdata, const char *channel, const void *data,
                                    size_t bytes);

/* A value with its revision: grows with each change of the key, 0 is "not there". */
struct provider_value {
    const char *key;
    const void *data; /* NULL: deleted */
    size_t bytes;
    uint64_t revision;
};
typedef void (*provider_values_cb)(void *userdata, int code, const struct provider_value *values,
                                   size_t count);

#define PROVIDER_ANY_REVISION UINT64_MAX

enum {
    PROVIDER_KEY_MAX = 512,          /* bytes of a key's or channel's name */
    PROVIDER_VALUE_MAX = 1024 * 1024 /* bytes of a value or message; more is BATON_ETOOBIG */
};

struct victims;          /* guardian/victims.h */
struct provider_setting; /* provider/setting.h */

struct provider_ops {
    const char *scheme;  /* of the URL, without ":" */
    const char *others;  /* schemes that are this provider's too, a blank between two; or NULL */
    const char *summary; /* one line for --help */
    unsigned features;   /* of enum provider_feature; the functions of the others are NULL */
    const struct provider_setting *settings; /* what it may be told: provider/setting.h */

    int (*open)(struct provider **ret, const struct provider_config *config,
                struct baton_error *reterr);
    /* Resigns everything (void first), waits for it briefly, frees. Elections must not be used any
     * more; each gets its last BATON_EVENT_STOPPED before `closed`. */
    void (*close)(struct provider *provider, void (*closed)(void *userdata), void *userdata);

    int (*campaign)(struct provider_election **ret, struct provider *provider,
                    const struct provider_campaign *campaign, struct baton_error *reterr);
    /* Whether `to`, an id or a name, is another member that may lead, as far as is known here: what
     * works under the lease need not stop for one that is not. BATON_EINVAL lists those there are.
     * BATON_EBUSY: not yet, because it started a moment ago.
     */
    int (*check_heir)(struct provider_election *election, const char *to,
                      struct baton_error *reterr);
    /* Hands leadership over: to the named node, or (NULL) to the best. The lease is void before
     * anything is sent. BATON_ENOTLEADER at once if not leading; else the outcome is an event. */
    int (*resign)(struct provider_election *election, const char *to, instant deadline,
                  struct baton_error *reterr);
    /* The hand-over that a BATON_EVENT_DRAIN of this provider announced may go on: nothing acts
     * under the lease any more. It goes on after the event's lease_left_ns in any case; one that
     * comes to nothing is a BATON_EVENT_ERROR with BATON_ETIMEDOUT. NULL: there is no such event.
     */
    void (*drained)(struct provider_election *election);
    /* Campaign or only take part, from now on (cordon). A leader that is cordoned resigns. */
    int (*set_eligible)(struct provider_election *election, bool eligible,
                        struct baton_error *reterr);
    /* Leaves the election: resigns if leading; BATON_EVENT_STOPPED is the last event. */
    void (*leave)(struct provider_election *election);
    /* The leader as known here; id "" if none. */
    void (*leader)(struct provider_election *election, struct baton_member *ret,
                   uint64_t *ret_epoch);

    /* What an operator wants to know of it beyond all this, as a new JSON object of jansson's; NULL
     * when out of memory. NULL function: there is nothing more. Never a secret. */
    struct json_t *(*status)(struct provider *provider);

    /* MEMBERS */
    int (*members)(struct provider_election *election, provider_members_cb done, void *userdata,
                   struct baton_error *reterr);

    /* What the registry has of this member from now on: a JSON object, or NULL. NULL function: it
     * stays as it was in the campaign. */
    int (*set_metadata)(struct provider_election *election, const char *metadata,
                        struct baton_error *reterr);

    /* OPERATE: changes the group itself. `done` comes when the change is complete. At the deadline
     * BATON_ETIMEDOUT: it goes on; BATON_EBUSY, BATON_EUNAVAILABLE: it could not begin. A member
     * that there is already is changed; with another address only if it `replaces`, else
     * BATON_EEXIST. */
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
    /* data NULL deletes. BATON_ECONFLICT unless the key is at `revision` (0: absent). */
    int (*put)(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_done_cb done, void *userdata,
               struct baton_error *reterr);
    /* First what there is, then the changes, in order for a key; of several that it could not hear
     * of in time, the last; until unwatch. */
    int (*watch)(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr);
    void (*unwatch)(struct provider *provider, const char *prefix, void *userdata);

    /* Who acts for this process, and is killed before anybody hears that it died; all of them, each
     * time; NULL: nobody. Copied. The function is NULL where nobody is told. */
    void (*set_victims)(struct provider *provider, const struct victims *victims);
};

/* The providers there are, ending with NULL. */
const struct provider_ops *const *provider_table(void);

/* Opens the provider that the URL's scheme names; BATON_EINVAL lists the known ones. */
int provider_open(struct provider **ret, const struct provider_config *config,
                  struct baton_error *reterr);

/* Whether the provider that the URL names has a setting of that key; what no provider is named by
 * has any, and is refused when it is opened. */
bool provider_has_setting(const char *url, const char *key);

#endif
