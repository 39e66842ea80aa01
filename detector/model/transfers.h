/* Runs libcurl's transfers on a libuv loop, without a thread; only libcurl itself may block.
 *
 * libcurl names the sockets that it waits for and the time of its next timer; both become handles
 * of the loop. The loop's thread only.
 */
#ifndef DETECTOR_MODEL_TRANSFERS_H
#define DETECTOR_MODEL_TRANSFERS_H

#include <baton/error.h>

#include <curl/curl.h>
#include <uv.h>

struct transfers; /* opaque */

int transfers_new(struct transfers **ret, uv_loop_t *loop, struct baton_error *reterr);

/* Call it after every transfer has been stopped or has ended. The memory is freed with the loop's
 * next turn. NULL is allowed. */
void transfers_close(struct transfers *transfers);

struct transfer {
    CURL *easy; /* the caller's, whose CURLOPT_PRIVATE is ours */
    /* The transfer has ended and can be started again, also from within this call. */
    void (*on_end)(struct transfer *transfer, CURLcode result);
};

/* `transfer` is the caller's, and keeps its address until the transfer has ended or is stopped. */
int transfer_start(struct transfers *transfers, struct transfer *transfer,
                   struct baton_error *reterr);

/* on_end is not called any more. Without effect on a transfer that has ended. */
void transfer_stop(struct transfers *transfers, struct transfer *transfer);

#endif
