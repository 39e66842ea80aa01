#include "detector/infer/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool answer_check(struct wire_answer *answer, size_t bytes)
{
    bool is_right = bytes == sizeof(*answer) && answer->code <= 0 &&
                    answer->code >= BATON_ECLOSED && answer->batch_max >= 0 &&
                    answer->output_count >= 0 && answer->output_count <= SESSION_OUTPUTS_MAX;

    answer->error[sizeof(answer->error) - 1] = '\0';
    answer->name[sizeof(answer->name) - 1] = '\0';
    for (int i = 0; is_right && i < answer->output_count; i++) {
        size_t count;
        is_right = shape_numbers(&answer->shapes[i], &count);
    }
    return is_right;
}

bool wire_send(int socket, const struct wire_request *request, int first, int second)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    const int fds[2] = {first, second};
    size_t count = (size_t)(first >= 0) + (size_t)(second >= 0);
    struct iovec content = {.iov_base = (void *)request, .iov_len = sizeof(*request)};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};

    if (count > 0) {
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                        .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)content.iov_len;
}

bool wire_receive(int socket, struct wire_request *ret, int ret_fds[2])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec content = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr message = {.msg_iov = &content,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    const struct cmsghdr *head;
    ssize_t bytes;

    ret_fds[0] = ret_fds[1] = -1;
    do {
        bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (bytes < 0 && errno == EINTR);
    head = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head) { /* at most two, as there is no room for more */
        memcpy(ret_fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
    }
    return bytes == (ssize_t)sizeof(*ret);
}
