/* The workers that this process owns, or waits to own.
 *
 *   `owners` names it ──▶ campaigns for ──▶ leads: a link (link.h)
 *   first or second       worker:owners:       │   │
 *                         WORKER               │   └─ the lease is lost: the link ends at once
 *                            ▲                 └─ is not the first, and the first asks:
 *                            └──────────────────── closes the link, then passes
 *
 * An owner sends what `assigned`, the objects and the displays' data say, as soon as they change,
 * and publishes what the worker reports (table.h). A process that is named no more leaves; one that
 * owns the worker goes on until the first asks.
 *
 * The first asks on the channel worker:owners:asks, every second while another process leads, with
 * lines {"worker":…,"process":…}: a place in line does not prove that it lives.
 *
 * All on the thread of the member's loop. Callbacks must not close the owners.
 */
#ifndef FLEET_WORKERS_OWNERS_H
#define FLEET_WORKERS_OWNERS_H

#include "fleet/state/state.h"
#include "net/tls.h"

#define WORKER_ELECTION "worker:owners:"
#define WORKER_ASKS     "worker:owners:asks"

struct owners; /* opaque */

struct owners_callbacks {
    /* Messages that worker_message_parse() has checked; borrowed during the call. The answer to a
     * patch is owners_answer_patch(). */
    void (*on_detection)(void *userdata, const char *worker, json_t *message);
    void (*on_patch_session)(void *userdata, const char *worker, json_t *message, uint64_t ticket);
    /* The model's URL for a command, fresh, as text for free(); NULL: there is none now. */
    char *(*model_url)(void *userdata, const struct fleet_object *model);
    /* An event of a worker that this process owns; the other processes get it by the table.
     * `fields` has worker and process; steals it.
     *
     *   worker-owned {epoch}   worker-released            worker-online   worker-offline {reason}
     *   worker-not-in-sync {for_s}   worker-in-sync       camera-online, camera-offline
     * {subscription} message-refused, connection-failed {error, count}   model-url-missing
     * {subscription} election-failed {error} */
    void (*on_event)(void *userdata, const char *name, json_t *fields);
    void *userdata;
};

/* Texts are copied; the state, `tls` and the process's member outlive the owners. */
struct owners_config {
    struct fleet_state *state;
    const char *process;   /* this process's name, as `owners` has it */
    const char *token;     /* which workers want; NULL: none */
    const struct tls *tls; /* of wss; NULL: none */
    span grace;            /* of a lost connection; 0: 1 s */
    span silence;          /* of a worker; 0: 10 s */
    struct owners_callbacks callbacks;
};

/* Begins when the state is ready. BATON_ENOTSUP: the provider has no channels, or one election
 * only; BATON_ENOMEM. */
int owners_open(struct owners **ret, const struct owners_config *config,
                struct baton_error *reterr);
/* Closes the connections, and passes each worker on to the next in line. `closed` comes once, never
 * before this returns; the state is open until then, and the memory ends with it. */
void owners_close(struct owners *owners, void (*closed)(void *userdata), void *userdata);

/* Dropped if the connection that the patch came on is gone: the worker has lost its question too.
 */
void owners_answer_patch(struct owners *owners, const char *worker, uint64_t ticket,
                         int64_t session, bool is_success, const char *text);

bool owners_owns(const struct owners *owners, const char *worker);
size_t owners_count(const struct owners *owners);

#endif
