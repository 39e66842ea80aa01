/* Where a server listens: at the address of its configuration, and at no other. */
#include "web/server_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int listen_at(const struct sockaddr *address, socklen_t bytes)
{
    const int yes = 1, no = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failure;

    if (fd < 0) {
        return -errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (address->sa_family == AF_INET6) { /* "::" takes both families, whatever the system's rule */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    }
    if (bind(fd, address, bytes) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    failure = -errno;
    (void)close(fd);
    return failure;
}

int web_listen(const char *host, int port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd;

    if (host == NULL) {
        fd = listen_at((const struct sockaddr *)&v6, sizeof(v6));
        return fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL
                   ? fd
                   : listen_at((const struct sockaddr *)&v4, sizeof(v4));
    }
    if (uv_ip4_addr(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &v4) == 0) {
        return listen_at((const struct sockaddr *)&v4, sizeof(v4));
    }
    if (uv_ip6_addr(host, port, &v6) == 0) {
        return listen_at((const struct sockaddr *)&v6, sizeof(v6));
    }
    return -EINVAL;
}
