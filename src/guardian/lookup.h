/* A peer's host name, looked up until it is found: the name service may come later than we do. For
 * the guardian layer only. */
#ifndef GUARDIAN_LOOKUP_H
#define GUARDIAN_LOOKUP_H

#include "guardian/resolve.h"

#include "base/addresses.h"

#include <uv.h>

struct lookup {
    uv_loop_t *loop;
    size_t place; /* of the peer, for the caller */
    int port;
    char host[RESOLVE_HOST_MAX];
    void (*found)(struct lookup *lookup, const struct sockaddr_storage *address, socklen_t bytes);
    void (*failed)(struct lookup *lookup, const char *fault); /* at the first failure only */
    void (*ended)(struct lookup *lookup);                     /* after lookup_end(); frees it */
    void *userdata;
    struct lookup *next; /* for the caller */
    /* The lookup's own: */
    struct addresses *request; /* NULL: none is under way */
    uv_timer_t again;
    unsigned tries;
};

/* Begins; the caller has filled in the part of its own. A failed try is repeated after 1 s, later
 * after up to 64 s. */
void lookup_begin(struct lookup *lookup);
/* No callback comes after it but `ended`. */
void lookup_end(struct lookup *lookup);

#endif
