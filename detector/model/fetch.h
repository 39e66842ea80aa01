/* One archive fetched by HTTP into a file.
 *
 *   ask ──200, 206──▶ bytes to the file ──all there──▶ the archive
 *    │  ├─304, or 200 with the ETag that is known──▶ the known one is still right
 *    │  ├─301, 302, 303, 307, 308─▶ checked as the first address was, asked
 *    │  ├─refused (401, 403, 404, …), too large ───▶ an error
 *    ▲  └─broken, silent, busy (5xx, 429)
 *    └──── a little later, from where it broke if the server has the same file still (If-Range)
 *
 * Addresses come from outside. They are http or https and of an allowed host, and what is dialled
 * is no link-local address (where clouds keep their secrets), whatever names, numbers or redirects
 * lead there. A redirect leads neither from https to http nor, to another host or port, into a
 * private network. No message names more of an address than scheme, host and port: signatures and
 * passwords are in the rest.
 *
 * One thread makes, steers and frees a fetch; another one may run it.
 */
#ifndef DETECTOR_MODEL_FETCH_H
#define DETECTOR_MODEL_FETCH_H

#include "detector/model/store.h"

struct fetch_rules {
    uint64_t bytes_max;
    int connect_ms;
    int silent_ms; /* without a byte for so long the connection is broken */
    int total_ms;  /* with all further tries */
    int tries_max; /* in a row without more bytes than the best before */
    int retry_ms;  /* before the second try; doubled before each further one, up to 32 times as long
                    */
    const char *const
        *hosts;          /* "models.example", ".example" with all below; NULL ends; NULL: any */
    const char *ca_file; /* NULL: the system's */
    bool leads_inside;   /* a redirect may lead into a private network */
};

/* The defaults: 1 GiB, 10 s, 30 s, 15 min, 5, 500 ms, any, the system's, no. */
struct fetch_rules fetch_rules_default(void);

struct fetch_result {
    bool is_same;          /* the server's file still has the known ETag; the file here is empty */
    char etag[ETAG_BYTES]; /* "" if there is none */
    uint64_t bytes;
    int asked; /* requests sent */
};

struct fetch; /* opaque */

/* `rules` are borrowed. Returns BATON_EINVAL or BATON_EAUTH if the address is not allowed. */
int fetch_new(struct fetch **ret, const struct fetch_rules *rules, const char *url,
              struct baton_error *reterr);
void fetch_free(struct fetch *fetch); /* NULL is allowed */

/* Fetches into `file_fd` (borrowed, empty), and blocks. `etag` is of the known archive, or "". With
 * BATON_ETOOBIG the result has the ETag of the archive that is too large. Once a fetch. */
int fetch_run(struct fetch *fetch, const char *etag, int file_fd, struct fetch_result *ret,
              struct baton_error *reterr);

/* Gives a fresh address of the same archive, signed later, to every further try; a try that waits
 * starts at once. Bytes that arrived are kept. An address that is not allowed changes nothing. */
void fetch_renew(struct fetch *fetch, const char *url);

/* True if no try has used the last of these. */
bool fetch_is_fresh(struct fetch *fetch);

/* Ends it soon, with BATON_ECANCELED. */
void fetch_stop(struct fetch *fetch);

/* True after fetch_stop(). */
const atomic_bool *fetch_is_stopped(const struct fetch *fetch);

/* "https://host:443/…", for messages; the thread that runs it. */
const char *fetch_shown(const struct fetch *fetch);

#endif
