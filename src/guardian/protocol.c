#include "guardian/protocol.h"

#include <string.h>

union ancillary {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

static int supervisor_of(const struct guardian_message *message)
{
    return message->type == GUARDIAN_VICTIMS ? message->victims.supervisor : 0;
}

bool protocol_send(int fd, const struct guardian_message *message)
{
    struct guardian_message copy = *message;
    struct iovec data = {.iov_base = &copy, .iov_len = sizeof(copy)};
    union ancillary ancillary = {0};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    int supervisor = supervisor_of(message);
    bool is_sent;

    if (supervisor > 0) {
        struct cmsghdr *rights = &ancillary.aligned;
        *rights = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(rights), &supervisor, sizeof(int));
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
    const struct cmsghdr *rights = bytes > 0 ? CMSG_FIRSTHDR(&header) : NULL;

    if (bytes == (ssize_t)sizeof(*ret) && ret->type == GUARDIAN_VICTIMS) {
        ret->victims.supervisor = ret->victims.supervisor > 0 ? -1 : 0; /* lost on its way */
        if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
            memcpy(&ret->victims.supervisor, CMSG_DATA(rights), sizeof(int));
        }
    }
    return bytes;
}
