/* One archive fetched by HTTP into a file, by one try or several.
 *
 *   ask ──200, 206──▶ bytes to the file ──all there──▶ the archive
 *    │  ├─304, or 200 with the ETag that is known──▶ the known one is still right
 *    │  ├─301, 302, 303, 307, 308─▶ checked as the first address was, asked
 *    │  ├─refused (401, 403, 404, …), too large ───▶ an error
 *    ▲  └─broken, silent, busy (5xx, 429): the end of this try
 *    └──── the next one, from where it broke if the server has the same file still (If-Range)
 *
 * Addresses come from outside. They are http or https and of an allowed host, and what is dialled
 * is no link-local address (where clouds keep their secrets), whatever names, numbers or redirects
 * lead there. A redirect leads neither from https to http nor, to another host or port, into a
 * private network. No message names more of an address than scheme, host and port: signatures and
 * passwords are in the rest.
 *
 * One thread at a time may use a fetch.
 */
#ifndef DETECTOR_MODEL_FETCH_H
#define DETECTOR_MODEL_FETCH_H

#include "base/clock.h"
#include "detector/model/store.h"

struct fetch_rules {
    uint64_t bytes_max;
    int silent_ms; /* without a byte for so long the connection is broken */
    int total_ms;  /* with all further tries */
    int tries_max; /* in a row without more bytes than the best before */
    int retry_ms;  /* before the second try; doubled before each further one, up to 32 times as long
                    */
    const char *const
        *hosts;          /* "models.example", ".example" with all below; NULL ends; NULL: any */
    const char *ca_file; /* NULL: the system's */
    bool leads_inside;   /* a redirect may lead into a private network */
    const atomic_bool *is_canceled; /* borrowed; ends a try within a second; NULL: it cannot be */
};

/* The defaults: 1 GiB, 30 s, 15 min, 5, 500 ms, any, the system's, no, NULL. */
struct fetch_rules fetch_rules_default(void);

struct fetch_result {
    bool is_same;          /* the server's file still has the known ETag; the file here is empty */
    char etag[ETAG_BYTES]; /* "" if there is none; also of an archive that is too large */
    span pause;            /* after an error: until the next try; 0: that would be in vain */
};

struct fetch; /* opaque */

/* Fetches into `file_fd` (borrowed, empty). `rules` are borrowed; `etag` is of the known archive,
 * or "". */
int fetch_new(struct fetch **ret, const struct fetch_rules *rules, const char *etag, int file_fd,
              struct baton_error *reterr);
void fetch_free(struct fetch *fetch); /* NULL is allowed */

/* Blocks. `url` is NULL for the address of the try before; else it is a fresh one of the same
 * archive, and the bytes that arrived are kept. Returns BATON_EINVAL or BATON_EAUTH if it is not
 * allowed. After a success there is no further try. */
int fetch_try(struct fetch *fetch, const char *url, struct fetch_result *ret,
              struct baton_error *reterr);

/* "https://host:443/…", for messages. */
const char *fetch_shown(const struct fetch *fetch);

#endif
