/* libcurl's transfers on a libuv loop: no thread, nothing blocks but what libcurl does itself.
 *
 * libcurl says which sockets it waits for and when it wants to be woken; both become handles of the
 * loop. The loop's thread only.
 */
#ifndef DETECTOR_MODEL_TRANSFERS_H
#define DETECTOR_MODEL_TRANSFERS_H

#include <baton/error.h>

#include <curl/curl.h>
#include <uv.h>

struct transfers; /* opaque */

int transfers_new(struct transfers **ret, uv_loop_t *loop, struct baton_error *reterr);

/* Every transfer has been stopped or has ended. The memory ends with the loop's next turn. NULL
 * allowed. */
void transfers_close(struct transfers *transfers);

struct transfer {
    CURL *easy; /* the caller's, whose CURLOPT_PRIVATE is ours */
    /* It has ended and may be started again, also here. */
    void (*on_end)(struct transfer *transfer, CURLcode result);
};

/* `transfer` is the caller's and stays where it is until the transfer has ended or is stopped. */
int transfer_start(struct transfers *transfers, struct transfer *transfer,
                   struct baton_error *reterr);

/* on_end is not called any more. Of one that has ended: nothing. */
void transfer_stop(struct transfers *transfers, struct transfer *transfer);

#endif
