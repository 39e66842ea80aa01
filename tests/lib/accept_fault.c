#include "lib/accept_fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILURES_MAX = 1000 };

_Atomic int accept_fault;
_Atomic unsigned accept_failures;

int accept4(int fd, struct sockaddr *address, socklen_t *restrict bytes, int flags)
{
    if (accept_fault == 0) {
        return (int)syscall(SYS_accept4, fd, address, bytes, flags);
    }
    if (++accept_failures > FAILURES_MAX) {
        (void)fprintf(stderr, "accept4() has failed, and is called again and again\n");
        abort();
    }
    errno = accept_fault;
    return -1;
}
