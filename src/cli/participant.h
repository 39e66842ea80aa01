/* One process's part in an election, with its endpoints: shared by node, run and once.
 *
 *     options ─▶ settings ─▶ member, election ─▶ events ─▶ on_event (the command's own)
 *                                   │              └─────▶ log, systemd
 *                                   └──▶ status ─▶ control socket, status server
 *
 * Everything runs on one libuv loop, and on its thread.
 */
#ifndef CLI_PARTICIPANT_H
#define CLI_PARTICIPANT_H

#include "base/log.h"
#include "member/election.h"
#include "options/option.h"

struct participant; /* opaque */

struct participant_config {
    uv_loop_t *loop;
    const struct options *options;
    struct logger *logger;
    const char *proofs;              /* the default of --proofs, or NULL */
    bool kills_outliving;            /* the guardian ends this process if it outlives its lease */
    struct lease_watch *lease;       /* shows the lease to CMD's supervisor, or NULL */
    const _Atomic int64_t *alive_ns; /* as struct provider_config has it */
    bool has_endpoints;              /* control socket and HTTP status server */
    provider_event_cb on_event; /* gets every event first; for BATON_EVENT_DRAIN see handover.h */
    void *userdata;
};

/* After a failure run the loop: it closes the handles that are left. */
int participant_open(struct participant **ret, const struct participant_config *config,
                     struct baton_error *reterr);

/* Hands leadership over if it leads, leaves the election, closes the endpoints. Calls `closed`
 * once; then run the loop until it is done, and call participant_free. */
void participant_close(struct participant *part, void (*closed)(void *userdata), void *userdata);
void participant_free(struct participant *part); /* NULL allowed */

struct member *participant_member(const struct participant *part);
struct election *participant_election(const struct participant *part);
bool participant_is_leader(const struct participant *part, uint64_t *ret_epoch);
span participant_lease_left(const struct participant *part);
/* This node's name. */
const char *participant_node(const struct participant *part);
/* Returns whether this error ends the program; its code in *ret gives the exit code. Fatal are: the
 * group refuses this data directory (BATON_EUNSAFE); the disk has failed, so that the node votes no
 * more (BATON_EIO, BATON_EFULL); the provider refuses the credentials at the start (BATON_EAUTH).
 * Later refusals of credentials are not fatal: they may be corrected meanwhile. */
bool participant_is_fatal(const struct participant *part, const struct baton_event *event,
                          struct baton_error *ret);
/* Reads certificates, keys, tokens and passwords again, and logs `reloaded`, or `reload-refused` if
 * one of them is wrong: then none of them changes. Leadership continues in both cases. */
void participant_reload(struct participant *part);
/* Follows reload_hold(), when the loop handles signals. */
void participant_release_reload(struct participant *part);
/* Returns why this node does not lead, by the latest event that gives a reason. */
const char *participant_obstacle(struct participant *part);

#endif
