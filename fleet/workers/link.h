/* The connection to one worker, opened again for as long as it is wanted, and all that it carries.
 *
 *   link_open ─▶ connects ──▶ open: sync.h says what is sent ─▶ link_close ─▶ closed
 *                   ▲           │
 *                   └───────────┘ lost, or silent: at once, then after 0.1 s … 5 s, at random
 *
 * The worker is online from its first stateReport. It is offline when it has sent none for
 * `silence`, and when the connection is lost and not open again within `grace`.
 *
 * What the worker sends is not trusted: a message that cannot be used is counted and reported, and
 * the connection goes on where WebSocket allows it. While the worker does not read, nothing new is
 * sent: then it gets the newest of each.
 *
 * The loop's thread only.
 */
#ifndef FLEET_WORKERS_LINK_H
#define FLEET_WORKERS_LINK_H

#include "fleet/workers/sync.h"
#include "net/tls.h"

#include <uv.h>

struct link; /* opaque; ends when `closed` returns */

/* Called on the loop's thread, and not after link_close(). They must not close the link. */
struct link_calls {
    /* Asked before each message and connection. False: the connection is closed at once. */
    bool (*may_send)(void *userdata);
    /* True: a connection is open, and nothing is sent on it before link_set_list(). False: the
     * worker is offline; on its next connection the list is wanted anew. */
    void (*on_wanted)(void *userdata, bool is_wanted);
    /* The command with the whole list and fresh URLs, as text for free(); NULL: out of memory. */
    char *(*list)(void *userdata);
    /* As sync.h has it. */
    void (*display)(void *userdata, const char *display, struct session_id *ret_session,
                    enum stage *ret_stage);
    /* Messages as worker_message_parse() gives them, borrowed during the call; a report after the
     * link has taken it in. `ticket` is for link_answer_patch(). */
    void (*on_report)(void *userdata, json_t *report);
    void (*on_detection)(void *userdata, json_t *message);
    void (*on_patch_session)(void *userdata, json_t *message, uint64_t ticket);
    /* `reason` of being offline; else NULL. */
    void (*on_online)(void *userdata, bool is_online, const char *reason);
    /* camera-online, camera-offline {subscription}; worker-in-sync, worker-not-in-sync;
     * message-refused {error, count}, connection-failed {error, count}: of those with a count the
     * first, second, fourth, eighth … Steals fields. */
    void (*on_event)(void *userdata, const char *name, json_t *fields);
};

/* Borrowed for the call, but for `tls` and `connections`. */
struct link_config {
    uv_loop_t *loop;
    const char *url;       /* ws or wss */
    const char *token;     /* shown as a bearer; NULL: none */
    const struct tls *tls; /* of wss; NULL: none */
    span grace, silence;
    uint64_t *connections; /* counts those of all links: a connection's number is its ticket */
    struct link_calls calls;
    void *userdata;
};

struct link_counters {
    uint64_t detections, refused;
    uint64_t reconnects; /* connections after the first one */
    uint64_t stalls;     /* times that messages had to wait since the worker did not read */
};

/* BATON_ENOMEM. All else comes by the calls, none before this function returns. */
int link_open(struct link **ret, const struct link_config *config, struct baton_error *reterr);

/* Closes with a handshake, or `at_once`, which may also follow a first call: its `closed` then
 * counts no more. `closed` comes once, never before this function returns. */
void link_close(struct link *link, bool at_once, void (*closed)(void *userdata));

/* As sync_set_list() and sync_display_changed(). BATON_ENOMEM. */
int link_set_list(struct link *link, const struct subscription *list, size_t count,
                  uint64_t revision, bool is_other);
void link_display_changed(struct link *link, const char *display);

/* False: that connection has ended, or the worker does not read. */
bool link_answer_patch(struct link *link, uint64_t ticket, int64_t session, bool is_success,
                       const char *text);

const char *link_url(const struct link *link);
bool link_is_in_sync(const struct link *link);
uint64_t link_revision(const struct link *link);
const struct link_counters *link_counters(const struct link *link);

#endif
