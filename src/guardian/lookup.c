#include "guardian/lookup.h"

#include <string.h>

enum { PAUSE_MS = 1000, DOUBLINGS_MAX = 6 };

static void ask(struct lookup *lookup);

static void on_again(uv_timer_t *timer)
{
    ask(timer->data);
}

static void on_closed(uv_handle_t *timer)
{
    struct lookup *lookup = timer->data;

    lookup->ended(lookup);
}

static void fail(struct lookup *lookup, int status)
{
    unsigned doublings = lookup->tries < DOUBLINGS_MAX ? lookup->tries : DOUBLINGS_MAX;

    (void)uv_timer_start(&lookup->again, on_again, (uint64_t)PAUSE_MS << doublings, 0);
    if (lookup->tries++ == 0) {
        lookup->failed(lookup, status);
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct lookup *lookup = request->data;
    struct sockaddr_storage address = {0};

    lookup->is_asking = false;
    if (lookup->is_ended) {
        uv_close((uv_handle_t *)&lookup->again, on_closed);
    } else if (status != 0) {
        fail(lookup, status);
    } else {
        memcpy(&address, found->ai_addr, found->ai_addrlen);
        resolve_set_port(&address, lookup->port);
        lookup->found(lookup, &address, found->ai_addrlen);
    }
    uv_freeaddrinfo(found);
}

static void ask(struct lookup *lookup)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int status =
        uv_getaddrinfo(lookup->loop, &lookup->request, on_resolved, lookup->host, NULL, &hints);

    lookup->is_asking = status == 0;
    if (status != 0) {
        fail(lookup, status);
    }
}

void lookup_begin(struct lookup *lookup)
{
    (void)uv_timer_init(lookup->loop, &lookup->again); /* cannot fail */
    uv_unref((uv_handle_t *)&lookup->again);
    lookup->again.data = lookup->request.data = lookup;
    ask(lookup);
}

void lookup_end(struct lookup *lookup)
{
    lookup->is_ended = true;
    if (lookup->is_asking) {
        (void)uv_cancel((uv_req_t *)&lookup->request); /* else it is running: its end is awaited */
    } else {
        uv_close((uv_handle_t *)&lookup->again, on_closed);
    }
}
