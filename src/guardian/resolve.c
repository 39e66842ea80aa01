#include "guardian/resolve.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

int resolve_split(const char *address, char host[RESOLVE_HOST_MAX], int *ret_port,
                  struct baton_error *reterr)
{
    const char *colon = strrchr(address, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - address) : 0;
    const char *start = address;
    char *end = NULL;
    long port = colon != NULL ? strtol(colon + 1, &end, 10) : 0;

    if (bytes >= 2 && address[0] == '[' && address[bytes - 1] == ']') {
        start++;
        bytes -= 2;
    }
    if (bytes == 0 || bytes >= RESOLVE_HOST_MAX || end == colon + 1 || *end != '\0' || port < 1 ||
        port > 65535) {
        return error_set(reterr, BATON_EINVAL,
                         "address %s: must be HOST:PORT, with a port from 1 to 65535", address);
    }
    memcpy(host, start, bytes);
    host[bytes] = '\0';
    *ret_port = (int)port;
    return 0;
}

bool resolve_numeric(const char *host, int port, struct sockaddr_storage *ret, socklen_t *ret_bytes)
{
    memset(ret, 0, sizeof(*ret));
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)ret) == 0) {
        *ret_bytes = sizeof(struct sockaddr_in);
        return true;
    }
    *ret_bytes = sizeof(struct sockaddr_in6);
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret) == 0;
}
