/* The HTTP API of a process of the fleet, on web/server.h. docs/fleet.md and openapi.json say what
 * it answers.
 *
 *   request ──▶ rates ──▶ route ──▶ gate ──▶ handler ──▶ answer, at once or when a write is done
 *              (429)    (404, 405)  (401, 403)
 *
 * Every answer but a picture, a file of the page and a stream is JSON. A refusal is {"error":
 * reason}, with "field" where one field is wrong. URLs of cameras, models and workers are masked.
 *
 * The loop's thread only.
 */
#ifndef FLEET_HTTP_API_H
#define FLEET_HTTP_API_H

#include "fleet/detections/detections.h"
#include "fleet/displays/displays.h"
#include "fleet/master/master.h"
#include "fleet/outlets/commands.h"
#include "fleet/outlets/outlets.h"
#include "fleet/state/state.h"
#include "fleet/workers/owners.h"
#include "fleet/workers/table.h"

struct fleet_http; /* opaque */

/* What the API shows and changes; borrowed until fleet_http_close(). */
struct fleet_http_parts {
    struct fleet_state *state;
    const char *process, *version;
    /* Those that open once the state is loaded; NULL until fleet_http_begin(). */
    const struct worker_table *table;
    const struct owners *owners;
    struct master *master;
    struct displays *displays;
    struct detections *detections;
    const struct commands *commands;
    const struct outlets *outlets;
};

struct fleet_http_config {
    uv_loop_t *loop;
    const char *host;                      /* NULL: every address */
    int port;                              /* 0: the kernel chooses */
    const char *tls_cert, *tls_key;        /* both NULL: in the clear */
    const char *read_token, *change_token; /* NULL: none */
    const char *const *hosts;              /* further names of this host; NULL-ended, or NULL */
    bool is_insecure;                      /* without tokens also off loopback */
    unsigned requests_per_s;               /* of an address; 0: no limit */
    const char *worker_token;              /* for the pictures; NULL: none */
    const struct tls *worker_tls;
    struct logger *logger;
    struct fleet_http_parts parts;
};

/* Listens: probes, the page and the API's description are answered, all else with 503. Texts are
 * borrowed until fleet_http_free(). BATON_EAUTH: off loopback without a token;
 * BATON_EINVAL: the certificate or a token; BATON_EIO: it cannot listen there; BATON_ENOMEM. */
int fleet_http_open(struct fleet_http **ret, const struct fleet_http_config *config,
                    struct baton_error *reterr);
int fleet_http_port(const struct fleet_http *http);

/* The state is loaded and all parts are open: from now on everything is answered. Once. */
void fleet_http_begin(struct fleet_http *http, const struct fleet_http_parts *parts);

/* To all that follow /events, and into its ring. Steals the fields, an object. */
void fleet_http_event(struct fleet_http *http, const char *name, json_t *fields);
/* The same of a detection, a line of JSON. */
void fleet_http_detection(struct fleet_http *http, const char *line, size_t bytes);

/* Close, close the state, then free; the loop does the rest. NULL is allowed. */
void fleet_http_close(struct fleet_http *http);
void fleet_http_free(struct fleet_http *http);

#endif
