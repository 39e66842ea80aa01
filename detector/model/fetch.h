/* One archive fetched by HTTP into a file, on the loop.
 *
 *   ask ──200, 206──▶ bytes to the file ──all there──▶ FETCH_NEW
 *    │  ├─304, or 200 with the ETag that is known──▶ FETCH_SAME
 *    │  ├─301, 302, 303, 307, 308─▶ checked as the first address was, asked
 *    │  ├─refused (401, 403, 404, …), too large ───▶ an error
 *    ▲  └─broken, silent, busy (5xx, 429)
 *    └──── a little later, from where it broke if the server has the same file still (If-Range)
 *
 * Addresses come from outside. They are http or https and of an allowed host, and what is dialled
 * is no link-local address (where clouds keep their secrets), whatever names, numbers or redirects
 * lead there; https does not lead back to http. No message names more of an address than scheme,
 * host and port: signatures and passwords are in the rest.
 *
 * The loop's thread only. Writing to the disk is done by libuv's threads; the transfer waits for
 * it.
 */
#ifndef DETECTOR_MODEL_FETCH_H
#define DETECTOR_MODEL_FETCH_H

#include "detector/model/store.h"
#include "detector/model/transfers.h"

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
};

/* The defaults: 1 GiB, 10 s, 30 s, 15 min, 5, 500 ms, any, the system's. */
struct fetch_rules fetch_rules_default(void);

enum fetch_outcome {
    FETCH_NEW,  /* the file is complete */
    FETCH_SAME, /* the server's file still has that ETag; the file here is empty */
};

struct fetch_result {
    enum fetch_outcome outcome;
    char etag[ETAG_BYTES]; /* "" if there is none */
    uint64_t bytes;
    int asked; /* requests sent */
};

struct fetch; /* opaque */

/* Called once at the end, with `result` after success and `error` otherwise. With both, the archive
 * is too large, and the result has only its ETag. The fetch is freed after this call. */
typedef void (*fetch_end)(void *userdata, const struct fetch_result *result,
                          const struct baton_error *error);

/* `etag` is of the known archive, or "". `file_fd` is empty, and borrowed for this call. `rules`
 * are borrowed until the end. Returns BATON_EINVAL or BATON_EAUTH if the address is not allowed. */
int fetch_start(struct fetch **ret, struct transfers *transfers, uv_loop_t *loop,
                const struct fetch_rules *rules, const char *url, const char *etag, int file_fd,
                fetch_end on_end, void *userdata, struct baton_error *reterr);

/* Gives a fresh address of the same archive, signed later, to every further try; a try that waits
 * starts at once. Bytes that arrived are kept. An address that is not allowed changes nothing. */
void fetch_renew(struct fetch *fetch, const char *url);

/* Ends it without a call. */
void fetch_stop(struct fetch *fetch);

#endif
