/* Turns "HOST:PORT" into a socket address; for the guardian layer only. */
#ifndef GUARDIAN_RESOLVE_H
#define GUARDIAN_RESOLVE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { RESOLVE_HOST_MAX = 112 };

/* Splits "HOST:PORT" or "[HOST]:PORT". The text of BATON_EINVAL names the address. */
int resolve_split(const char *address, char host[RESOLVE_HOST_MAX], int *ret_port,
                  struct baton_error *reterr);

/* False: the host is a name, which must be resolved. */
bool resolve_numeric(const char *host, int port, struct sockaddr_storage *ret,
                     socklen_t *ret_bytes);

#endif
