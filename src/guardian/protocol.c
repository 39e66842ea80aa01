#include "guardian/protocol.h"

#include <string.h>

/* Descriptors in a VICTIMS message: the supervisor's socket and pidfd. */
enum { RIGHTS = 2 };

union ancillary {
    char bytes[CMSG_SPACE(RIGHTS * sizeof(int))];
    struct cmsghdr aligned;
};

bool protocol_send(int fd, const struct guardian_message *message)
{
    struct guardian_message copy = *message;
    struct iovec data = {.iov_base = &copy, .iov_len = sizeof(copy)};
    union ancillary ancillary = {0};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    bool is_sent;

    if (message->type == GUARDIAN_VICTIMS && message->victims.supervisor > 0 &&
        message->victims.process > 0) {
        const int rights[RIGHTS] = {message->victims.supervisor, message->victims.process};
        ancillary.aligned = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                             .cmsg_type = SCM_RIGHTS,
                                             .cmsg_len = CMSG_LEN(sizeof(rights))};
        memcpy(CMSG_DATA(&ancillary.aligned), rights, sizeof(rights));
        header.msg_control = &ancillary;
        header.msg_controllen = sizeof(ancillary);
    }
    is_sent = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
    explicit_bzero(&copy, sizeof(copy));
    return is_sent;
}

ssize_t protocol_receive(int fd, struct guardian_message *ret)
{
    struct iovec data = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union ancillary ancillary = {0};
    struct msghdr header = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &ancillary,
                            .msg_controllen = sizeof(ancillary)};
    ssize_t bytes = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *control = bytes > 0 ? CMSG_FIRSTHDR(&header) : NULL;
    int rights[RIGHTS] = {-1, -1}; /* lost on their way */

    if (control != NULL && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len == CMSG_LEN(sizeof(rights))) {
        memcpy(rights, CMSG_DATA(control), sizeof(rights));
    }
    if (bytes == (ssize_t)sizeof(*ret) && ret->type == GUARDIAN_VICTIMS &&
        ret->victims.supervisor != 0) {
        ret->victims.supervisor = rights[0];
        ret->victims.process = rights[1];
    }
    return bytes;
}
