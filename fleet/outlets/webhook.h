/* One webhook: events are posted to its URL, one at a time, in their order.
 *
 *   webhook_put ──▶ queue ──▶ POST ──2xx──▶ sent, the next one
 *                              │ ▲
 *                              │ └── backoff.h, at most RETRIES_MAX times
 *                              ├──▶ no whole answer, 408, 429, 5xx
 *                              └──▶ any other status: refused, the next one
 *
 * A receiver may get an event twice, if its answer is lost; "id" is then the same.
 *
 * The loop's thread only.
 */
#ifndef FLEET_OUTLETS_WEBHOOK_H
#define FLEET_OUTLETS_WEBHOOK_H

#include "fleet/outlets/counters.h"
#include "fleet/outlets/queue.h"
#include "net/tls.h"

#include <uv.h>

enum { WEBHOOK_SHOWN_MAX = 320 };

struct webhook; /* opaque */

/* All of it outlives the webhook; only the URL is copied. */
struct webhook_config {
    uv_loop_t *loop;
    const char *url;
    const char *secret;    /* NULL: requests are not signed */
    const struct tls *tls; /* of https */
    struct outlets_counters *counters;
    /* The first failure after a success; its message shows nothing secret. */
    void (*on_failed)(void *userdata, const char *shown, const struct baton_error *error);
    void (*on_closed)(void *userdata); /* once, after webhook_close() */
    void *userdata;
};

/* BATON_EINVAL, whose message shows nothing secret of the URL; BATON_ENOMEM. */
int webhook_open(struct webhook **ret, const struct webhook_config *config,
                 struct baton_error *reterr);
void webhook_put(struct webhook *webhook, struct message *message);
/* At once: what waits is lost. */
void webhook_close(struct webhook *webhook);

/* The URL as people may see it: scheme and host, for a token may be anywhere behind them. */
void webhook_shown(char ret[static WEBHOOK_SHOWN_MAX], const char *url);

#endif
