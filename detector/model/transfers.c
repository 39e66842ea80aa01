#include "detector/model/transfers.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdlib.h>

struct transfers {
    uv_loop_t *loop;
    uv_timer_t timer;
    CURLM *multi;
    bool is_closing;
};

/* A socket that libcurl waits for; its memory ends in the close callback. */
struct watched {
    uv_poll_t poll;
    struct transfers *transfers;
    curl_socket_t socket;
};

static void tell_ended(struct transfers *transfers)
{
    const CURLMsg *message;
    int left;

    while (!transfers->is_closing &&
           (message = curl_multi_info_read(transfers->multi, &left)) != NULL) {
        struct transfer *transfer = NULL;
        CURLcode result = message->data.result;
        CURL *easy = message->easy_handle; /* removing the handle frees the message */

        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
        (void)curl_multi_remove_handle(transfers->multi, easy);
        transfer->on_end(transfer, result);
    }
}

static void act(struct transfers *transfers, curl_socket_t socket, int events)
{
    int running;

    (void)curl_multi_socket_action(transfers->multi, socket, events, &running);
    tell_ended(transfers);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *watched = poll->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;

    flags |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    flags |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    act(watched->transfers, watched->socket, flags);
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void free_watched(uv_handle_t *handle)
{
    free(handle->data);
}

static struct watched *watch(struct transfers *transfers, curl_socket_t socket)
{
    struct watched *watched = calloc(1, sizeof(*watched));

    if (watched == NULL || uv_poll_init_socket(transfers->loop, &watched->poll, socket) != 0) {
        free(watched);
        return NULL;
    }
    watched->transfers = transfers;
    watched->socket = socket;
    watched->poll.data = watched;
    (void)curl_multi_assign(transfers->multi, socket, watched);
    return watched;
}

/* libcurl gives up the transfer if this is not 0. */
static int on_socket(CURL *easy, curl_socket_t socket, int what, void *userdata, void *assigned)
{
    struct transfers *transfers = userdata;
    struct watched *watched = assigned;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watched != NULL) {
            (void)curl_multi_assign(transfers->multi, socket, NULL);
            (void)uv_poll_stop(&watched->poll);
            uv_close((uv_handle_t *)&watched->poll, free_watched);
        }
        return 0;
    }
    events |= what != CURL_POLL_OUT ? UV_READABLE : 0;
    events |= what != CURL_POLL_IN ? UV_WRITABLE : 0;
    watched = watched != NULL ? watched : watch(transfers, socket);
    return watched != NULL && uv_poll_start(&watched->poll, events, on_poll) == 0 ? 0 : -1;
}

/* The timer fires later: libcurl must not be called from its own callback. */
static int on_wish(CURLM *multi, long timeout_ms, void *userdata)
{
    struct transfers *transfers = userdata;

    (void)multi;
    if (timeout_ms < 0) {
        return uv_timer_stop(&transfers->timer) == 0 ? 0 : -1;
    }
    return uv_timer_start(&transfers->timer, on_timer, (uint64_t)timeout_ms, 0) == 0 ? 0 : -1;
}

int transfers_new(struct transfers **ret, uv_loop_t *loop, struct baton_error *reterr)
{
    struct transfers *transfers = calloc(1, sizeof(*transfers));
    CURLMcode rc;

    if (transfers == NULL || (transfers->multi = curl_multi_init()) == NULL) {
        free(transfers);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    transfers->loop = loop;
    rc = curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    rc = rc ? rc : curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    rc = rc ? rc : curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, on_wish);
    rc = rc ? rc : curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    if (rc != CURLM_OK || uv_timer_init(loop, &transfers->timer) != 0) {
        (void)curl_multi_cleanup(transfers->multi);
        free(transfers);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    transfers->timer.data = transfers;
    *ret = transfers;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct transfers *transfers = handle->data;

    (void)curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, NULL);
    (void)curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, NULL);
    (void)curl_multi_cleanup(transfers->multi);
    free(transfers);
}

/* on_end may call this while libcurl's handle is in use, so the handle is freed later. */
void transfers_close(struct transfers *transfers)
{
    if (transfers != NULL) {
        transfers->is_closing = true;
        uv_close((uv_handle_t *)&transfers->timer, on_closed);
    }
}

int transfer_start(struct transfers *transfers, struct transfer *transfer,
                   struct baton_error *reterr)
{
    if (curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer) != CURLE_OK ||
        curl_multi_add_handle(transfers->multi, transfer->easy) != CURLM_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a transfer");
    }
    return 0;
}

void transfer_stop(struct transfers *transfers, struct transfer *transfer)
{
    (void)curl_multi_remove_handle(transfers->multi, transfer->easy);
}
