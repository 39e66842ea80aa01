#include "base/addresses.h"

#include "base/errand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 256, SERVICE_BYTES = 16 };

struct addresses {
    struct errand errand;
    addresses_done *done;
    void *userdata;
    struct addrinfo *found; /* NULL: none, or handed on */
    int code, errnum;       /* of getaddrinfo(3) */
    char service[SERVICE_BYTES];
    char host[];
};

/* Those under way, and those left behind. */
static atomic_int asked;

static void run(struct errand *errand)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addresses *addresses = (struct addresses *)errand;

    addresses->code = getaddrinfo(addresses->host, addresses->service, &hints, &addresses->found);
    addresses->errnum = errno;
}

static void on_done(struct errand *errand)
{
    struct addresses *addresses = (struct addresses *)errand;
    struct addrinfo *found = addresses->found;
    const char *fault =
        addresses->code == EAI_SYSTEM ? strerror(addresses->errnum) : gai_strerror(addresses->code);

    addresses->found = NULL;
    addresses->done(addresses->userdata, found, found != NULL ? NULL : fault);
}

static void release(struct errand *errand)
{
    struct addresses *addresses = (struct addresses *)errand;

    if (addresses->found != NULL) {
        freeaddrinfo(addresses->found);
    }
    free(addresses);
    (void)atomic_fetch_sub(&asked, 1);
}

int addresses_ask(struct addresses **ret, uv_loop_t *loop, const char *host, int port,
                  addresses_done *done, void *userdata)
{
    size_t bytes = strlen(host) + 1;
    struct addresses *addresses = calloc(1, sizeof(*addresses) + bytes);
    int code;

    if (addresses == NULL) {
        return UV_ENOMEM;
    }
    if (atomic_fetch_add(&asked, 1) >= ASKED_MAX) {
        release(&addresses->errand);
        return UV_EAGAIN;
    }
    addresses->errand = (struct errand){.run = run, .done = on_done, .free = release};
    addresses->done = done;
    addresses->userdata = userdata;
    (void)snprintf(addresses->service, sizeof(addresses->service), "%d", port);
    memcpy(addresses->host, host, bytes);
    code = errand_begin(&addresses->errand, loop);
    if (code == 0) {
        *ret = addresses;
    }
    return code;
}

void addresses_leave(struct addresses *addresses)
{
    errand_leave(&addresses->errand);
}
