/* A process of the fleet: all its parts on one loop, and what flows between them.
 *
 *   worker ◀──▶ owners ──detections──▶ detections ──lines──▶ streams, outlets
 *                 │ ▲        └───────▶ displays                  ▲
 *                 │ └── assigned, owners, data ── state ◀──▶ provider
 *                 └──── reports ──▶ table ──▶ master ──plan──▶ state
 *
 * Threads: the loop's only.
 */
#ifndef FLEET_PROGRAM_ENGINE_H
#define FLEET_PROGRAM_ENGINE_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <uv.h>

/* Texts are borrowed as long as the engine lives. */
struct engine_config {
    uv_loop_t *loop;
    struct logger *logger;      /* or NULL */
    const char *provider;       /* URL */
    const char *node;           /* this process's name */
    const char *name;           /* the fleet's */
    const char *const *workers; /* URLs; ends with NULL */
    span resolve_every, grace, silence;
    const char *worker_token; /* NULL: none */
    const char *worker_ca;    /* NULL: the system's */
    unsigned subscriptions_max, hysteresis_permille;
    const char *http_host;
    int http_port;
    const char *read_token, *change_token; /* NULL: none */
    const char *const *http_hosts;         /* ends with NULL */
    const char *tls_cert, *tls_key;
    bool is_insecure;
    const char *s3_endpoint, *s3_region, *s3_credentials;
    const char *const *webhooks;   /* URLs; ends with NULL */
    const char *webhook_secret;    /* NULL: none */
    const char *webhook_events;    /* names with commas between them */
    const char *mqtt, *mqtt_topic; /* NULL: none; the default */
    const char *mqtt_events;
    /* A part cannot begin once the state is loaded, as a port that is taken: close the engine. */
    void (*on_failed)(void *userdata, const struct baton_error *error);
    void *userdata;
};

struct engine; /* opaque */

/* Takes part; the parts open as soon as the state is loaded. BATON_EINVAL names the wrong value;
 * or what the provider or the server says. */
int engine_open(struct engine **ret, const struct engine_config *config,
                struct baton_error *reterr);

struct fleet_state *engine_state(const struct engine *engine);
bool engine_is_ready(const struct engine *engine);

/* Passes on what this process has, and leaves; the engine is freed before `closed`. */
void engine_close(struct engine *engine, void (*closed)(void *userdata), void *userdata);

#endif
