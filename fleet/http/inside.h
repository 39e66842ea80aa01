/* A process's API, as the files of this folder share it. */
#ifndef FLEET_HTTP_INSIDE_H
#define FLEET_HTTP_INSIDE_H

#include "fleet/http/api.h"
#include "fleet/http/gate.h"
#include "fleet/http/rates.h"
#include "web/exposition.h"

enum {
    HTTP_BODY_MAX = 64 << 10,              /* bytes of one object */
    HTTP_APPLY_MAX = FLEET_FILE_BYTES_MAX, /* of a file for /api/apply */
    HTTP_ANSWER_MAX = 16 << 20,            /* that may wait for one client */
    HTTP_ANSWERS_MAX = 128 << 20,          /* that may wait for all clients; then 503 */
    HTTP_CLASSES = 6,                      /* of a status: 2xx is 2 */
};

/* What the API counts of itself, for /metrics. */
struct counts {
    uint64_t by_class[HTTP_CLASSES]; /* answers */
    uint64_t too_many;               /* of an address: 429 */
    uint64_t events, followers_cut;  /* followers that read too slowly */
    uint64_t images, images_cached;  /* that a worker sent; that were sent again */
    struct histogram times;          /* from a request to the end of its answer */
};

extern const double http_bounds_s[]; /* of that; in metrics.c */

struct events; /* events.h */
struct images; /* image.h */

struct fleet_http {
    struct fleet_http_config config;
    struct fleet_http_parts parts;
    struct web_server *web;
    struct gate gate;
    struct rates rates;
    struct events *events;
    struct images *images;
    struct fleet_observer observer;
    uint64_t changes[FLEET_KINDS]; /* of the objects, seen so far: the tags of lists */
    struct counts counters;
    uint32_t run; /* a random number of this process's life */
    instant started;
    bool has_begun; /* all parts are open */
    bool is_applying, is_closing;
    uv_timer_t ending; /* of fleet_http_free() */
};

#endif
