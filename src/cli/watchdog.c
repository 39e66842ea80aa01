#include "cli/watchdog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_MAX = 4096 };

#define ALIVE "WATCHDOG=1"

/* A name of the kernel's: "\0" and five digits. Readers of NOTIFY_SOCKET write "@" for the "\0". */
static bool bind_to_any(struct watchdog *watchdog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(address.sun_family);
    const int on = 1;

    if (bind(watchdog->fd, (struct sockaddr *)&address, bytes) != 0 ||
        setsockopt(watchdog->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
        return false;
    }
    bytes = sizeof(address);
    if (getsockname(watchdog->fd, (struct sockaddr *)&address, &bytes) != 0) {
        return false;
    }
    (void)snprintf(watchdog->name, sizeof(watchdog->name), "@%.*s",
                   (int)(bytes - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
    return true;
}

int watchdog_open(struct watchdog *watchdog, span hang, struct baton_error *reterr)
{
    if (hang.ns == 0) {
        return error_set(reterr, BATON_EINVAL,
                         "--watchdog: give --hang, too: the time within which CMD must say that it "
                         "is alive");
    }
    watchdog->hang = hang;
    watchdog->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (watchdog->fd < 0 || !bind_to_any(watchdog)) {
        int errnum = errno;
        watchdog_close(watchdog);
        return error_set(reterr, BATON_EIO, "--watchdog: no socket for CMD: %s", strerror(errnum));
    }
    return BATON_OK;
}

void watchdog_close(struct watchdog *watchdog)
{
    if (watchdog->fd > 0) {
        (void)close(watchdog->fd);
    }
    watchdog->fd = 0;
}

/* The name of the socket is no secret: a message of another user's process does not count, unless
 * that is root. */
static bool is_ours(struct msghdr *header)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(header);
    struct ucred sender;

    if (control == NULL || control->cmsg_type != SCM_CREDENTIALS ||
        control->cmsg_len != CMSG_LEN(sizeof(sender))) {
        return false;
    }
    memcpy(&sender, CMSG_DATA(control), sizeof(sender));
    return sender.uid == geteuid() || sender.uid == 0;
}

/* One of the lines. */
static bool says_alive(char *text)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(line, ALIVE) == 0) {
            return true;
        }
    }
    return false;
}

/* False: nothing waits. Descriptors that come along are closed. */
static bool take_one(struct watchdog *watchdog, bool *ret_is_alive)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))]; /* the kernel closes what has no room */
        struct cmsghdr aligned;
    } ancillary;
    char text[MESSAGE_MAX + 1];
    struct iovec data = {.iov_base = text, .iov_len = MESSAGE_MAX};
    struct msghdr header = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &ancillary,
                            .msg_controllen = sizeof(ancillary)};
    ssize_t bytes = recvmsg(watchdog->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (bytes < 0) {
        return errno == EINTR;
    }
    text[bytes] = '\0';
    *ret_is_alive |= is_ours(&header) && says_alive(text);
    return true;
}

enum { MESSAGES_AT_ONCE = 64 };

void watchdog_hear(struct watchdog *watchdog, bool counts)
{
    bool is_alive = false;

    for (int i = 0; i < MESSAGES_AT_ONCE && take_one(watchdog, &is_alive); i++) {
    }
    if (is_alive && counts) {
        atomic_store(&watchdog->alive_ns, clock_now().ns);
    }
}

void watchdog_forget(struct watchdog *watchdog)
{
    watchdog_hear(watchdog, false);
    atomic_store(&watchdog->alive_ns, 0);
}

void watchdog_variables(const struct watchdog *watchdog,
                        char ret[static WATCHDOG_VARIABLES][VARIABLE_BYTES])
{
    (void)snprintf(ret[0], VARIABLE_BYTES, "NOTIFY_SOCKET=%s", watchdog->name);
    (void)snprintf(ret[1], VARIABLE_BYTES, "WATCHDOG_USEC=%" PRId64, watchdog->hang.ns / 1000);
    (void)snprintf(ret[2], VARIABLE_BYTES, "WATCHDOG_PID"); /* of another watchdog */
}
