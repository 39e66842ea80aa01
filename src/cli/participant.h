/* One process's part in an election, with its doors: what node, run and once have in common.
 *
 *     options ──▶ member ──▶ provider ──▶ events ──▶ log, control socket's watchers, systemd
 *                   │                        └─────▶ on_event (the command's own)
 *                   └──▶ control socket, status server
 *
 * Everything runs on one libuv loop, and on its thread.
 */
#ifndef CLI_PARTICIPANT_H
#define CLI_PARTICIPANT_H

#include "base/log.h"
#include "guardian/victims.h"
#include "options/option.h"
#include "provider/provider.h"

#include <jansson.h>

struct participant; /* opaque */

struct participant_config {
    uv_loop_t *loop;
    const struct options *options;
    struct logger *logger;
    const char *proofs;        /* the default of --proofs, or NULL */
    bool kills_outliving;      /* the guardian ends this process if it outlives its lease */
    struct lease_watch *lease; /* what the supervisor of CMD sees of the lease, or NULL */
    bool has_doors;            /* control socket and status server */
    provider_event_cb on_event;
    /* Before leadership is given away on purpose: what acts under it must have stopped first.
     * true: not yet, participant_drained will be called, by `deadline` at the latest. NULL: at
     * once. */
    bool (*drain)(void *userdata, instant deadline);
    void *userdata;
};

/* On failure nothing is left behind but handles that the loop closes when it next runs. */
int participant_open(struct participant **ret, const struct participant_config *config,
                     struct baton_error *reterr);

/* Hands leadership over if it leads, leaves, closes the doors. `closed` comes once; after it the
 * loop is to be run until it is done, then participant_free. */
void participant_close(struct participant *member, void (*closed)(void *userdata), void *userdata);
void participant_free(struct participant *member); /* NULL allowed */

/* Nothing acts under the lease any more: what waited for that goes on. */
void participant_drained(struct participant *member);
/* It goes on now: this node still leads, but not for long; an error event says if it does. */
bool participant_hands_over(const struct participant *member);

bool participant_is_leader(const struct participant *member, uint64_t *ret_epoch);
span participant_lease_left(const struct participant *member);
/* Why this node does not lead, as was told last. */
const char *participant_obstacle(const struct participant *member);
const char *participant_node(const struct participant *member);
const char *participant_election(const struct participant *member);
struct provider_election *participant_provider_election(const struct participant *member);
struct provider *participant_provider(const struct participant *member);

/* Who acts for this node, and is killed before the guardian certifies its death. Copied. */
void participant_set_victims(struct participant *member, const struct victims *victims);

/* Makes the data directory, of --data, the provider's URL or $STATE_DIRECTORY the first that there
 * is. NULL: none; the caller frees it. BATON_EIO. */
int participant_make_data(char **ret, const struct options *options, struct baton_error *reterr);
/* The data directory of --data or $STATE_DIRECTORY; NULL: neither. */
const char *participant_data(const struct options *options);

/* What stands in --http-token-file. BATON_EINVAL, BATON_EAUTH: it is not private. */
int participant_token(char *ret, size_t bytes, const char *path, struct baton_error *reterr);

/* A logger as --log-level and --log-json want it, on standard error; NULL when out of memory. */
struct logger *participant_logger(const struct options *options);

#endif
