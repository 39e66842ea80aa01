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

static void fail(struct lookup *lookup, const char *fault)
{
    unsigned doublings = lookup->tries < DOUBLINGS_MAX ? lookup->tries : DOUBLINGS_MAX;

    (void)uv_timer_start(&lookup->again, on_again, (uint64_t)PAUSE_MS << doublings, 0);
    if (lookup->tries++ == 0) {
        lookup->failed(lookup, fault);
    }
}

static void on_resolved(void *userdata, struct addrinfo *found, const char *fault)
{
    struct lookup *lookup = userdata;
    struct sockaddr_storage address = {0};

    lookup->request = NULL;
    if (found == NULL) {
        fail(lookup, fault);
        return;
    }
    memcpy(&address, found->ai_addr, found->ai_addrlen);
    lookup->found(lookup, &address, found->ai_addrlen);
    freeaddrinfo(found);
}

static void ask(struct lookup *lookup)
{
    int code = addresses_ask(&lookup->request, lookup->loop, lookup->host, lookup->port,
                             on_resolved, lookup);

    if (code != 0) {
        fail(lookup, uv_strerror(code));
    }
}

void lookup_begin(struct lookup *lookup)
{
    (void)uv_timer_init(lookup->loop, &lookup->again); /* cannot fail */
    uv_unref((uv_handle_t *)&lookup->again);
    lookup->again.data = lookup;
    ask(lookup);
}

void lookup_end(struct lookup *lookup)
{
    if (lookup->request != NULL) {
        addresses_leave(lookup->request);
    }
    uv_close((uv_handle_t *)&lookup->again, on_closed);
}
