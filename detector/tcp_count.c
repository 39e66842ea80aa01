#include "detector/tcp_count.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

bool tcp_count_taken(int fd, uint64_t *ret)
{
    enum { NEEDED = offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(uint64_t) };
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < NEEDED) {
        return false;
    }
    *ret = info.tcpi_bytes_acked;
    return true;
}

bool tcp_count_written(int fd, uint64_t *ret)
{
    uint64_t taken, before;
    int left;

    if (!tcp_count_taken(fd, &taken)) {
        return false;
    }
    do { /* both of one moment */
        before = taken;
        if (ioctl(fd, SIOCOUTQ, &left) != 0 || left < 0 || !tcp_count_taken(fd, &taken)) {
            return false;
        }
    } while (taken != before);
    *ret = taken + (uint64_t)left;
    return true;
}
