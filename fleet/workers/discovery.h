/* The workers that URLs name, found again and again.
 *
 *   ws://HOST:PORT/  wss://…          that worker
 *   dns+ws://NAME:PORT                each address of the name: the IPv4 ones, else the IPv6 ones
 *   srv+ws://NAME  srv+wss://NAME     each target of the name's SRV records, with its port
 *
 * An answer replaces the one before. A name that cannot be resolved, or has no answer, keeps its
 * latest: a name server that is away must not take the workers away.
 *
 * The loop's thread only; names are resolved on the threads of libuv.
 */
#ifndef FLEET_WORKERS_DISCOVERY_H
#define FLEET_WORKERS_DISCOVERY_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum {
    DISCOVERY_ID_MAX = 49,   /* bytes of a worker's id, with the NUL */
    DISCOVERY_URL_MAX = 320, /* bytes of a worker's URL, with the NUL */
    DISCOVERY_NAMES_MAX = 1024,
    DISCOVERY_FOUND_MAX = 4096, /* workers */
};

struct discovered {
    char id[DISCOVERY_ID_MAX];
    char url[DISCOVERY_URL_MAX];
    const char *source; /* "static", "dns": as the shared state has it */
};

/* The id of a worker: "HOST-PORT" if these are of a worker's safe bytes and fit; else with other
 * bytes replaced, cut, and a hash of the URL at the end. */
void discovery_id(const char *url, char ret[static DISCOVERY_ID_MAX]);
/* BATON_EINVAL: the URL is of none of the kinds. */
int discovery_check(const char *url, struct baton_error *reterr);

struct discovery; /* opaque */

/* `urls` are copied. */
struct discovery_config {
    uv_loop_t *loop;
    const char *const *urls;
    size_t count;
    span every; /* from one look to the next; 0: 10 s */
    /* All workers, sorted by id, each once: when every name was tried, and then whenever they
     * differ. Not `is_whole`: a name was never resolved so far, so that workers may be missing. */
    void (*on_change)(void *userdata, const struct discovered *workers, size_t count,
                      bool is_whole);
    /* A name could not be resolved: the first time in a row, the second, fourth, eighth … */
    void (*on_failed)(void *userdata, const char *url, const struct baton_error *error);
    void *userdata;
};

/* BATON_EINVAL: a URL, or there are more than DISCOVERY_NAMES_MAX; BATON_ENOMEM. */
int discovery_open(struct discovery **ret, const struct discovery_config *config,
                   struct baton_error *reterr);
/* No callback follows. Its memory ends in the loop, with the last request. NULL allowed. */
void discovery_close(struct discovery *discovery);

#endif
