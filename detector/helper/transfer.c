/* Both sides: shared memory, and messages with descriptors. */
#include "detector/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of a message, to the byte: the kernel fills what is left over. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_LEN(HELPER_PASSED * sizeof(int))];
};

int helper_share(void **ret, const char *name, size_t bytes, struct baton_error *reterr)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, HELPER_SEALS) == 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED) {
        int errnum = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return error_set(reterr, BATON_ENOMEM,
                         "shared memory of %zu bytes: %s; is it above ulimit -v or -f?", bytes,
                         strerror(errnum));
    }
    *ret = memory;
    return fd;
}

bool helper_send(int socket, const void *message, size_t bytes, const int fds[HELPER_PASSED],
                 int flags)
{
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    size_t count = 0;
    ssize_t sent;

    while (count < HELPER_PASSED && fds[count] >= 0) {
        count++;
    }
    if (count > 0) {
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                        .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
        header.msg_control = &control;
        header.msg_controllen = CMSG_LEN(count * sizeof(int));
    }
    do {
        sent = sendmsg(socket, &header, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes;
}

ssize_t helper_receive(int socket, void *ret, size_t bytes, int ret_fds[HELPER_PASSED], int flags)
{
    union control control = {.bytes = {0}};
    struct iovec part = {.iov_base = ret, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control.bytes)};
    const struct cmsghdr *head;
    ssize_t got;

    for (int i = 0; i < HELPER_PASSED; i++) {
        ret_fds[i] = -1;
    }
    do {
        got = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    head = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        memcpy(ret_fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
    }
    return got;
}

void helper_close(const int fds[HELPER_PASSED])
{
    for (int i = 0; i < HELPER_PASSED; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}
