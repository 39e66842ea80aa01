/* The addresses of a host's name, by the resolver of the system, which may take long, or for ever.
 */
#ifndef BASE_ADDRESSES_H
#define BASE_ADDRESSES_H

#include <netdb.h>
#include <uv.h>

struct addresses;

/* `found` is the callee's, for freeaddrinfo(3). NULL: there is none, and `fault` says why. */
typedef void addresses_done(void *userdata, struct addrinfo *found, const char *fault);

/* Begins; `done` comes later, on the loop. Fails by libuv's codes: no memory, no thread, or too
 * many look-ups in this process at once. */
int addresses_ask(struct addresses **ret, uv_loop_t *loop, const char *host, int port,
                  addresses_done *done, void *userdata);

/* Before `done`, which is not called any more. Never waits for the resolver. */
void addresses_leave(struct addresses *addresses);

#endif
