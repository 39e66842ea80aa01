#include "options/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A datagram to the socket that the service manager names; '@' stands for the NUL of an abstract
 * one. A manager that reads no more is not waited for. */
static void tell(const char *key, const char *value)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    char text[512];
    int bytes = snprintf(text, sizeof(text), "%s=%s", key, value);
    int fd;

    if (length == 0 || length >= sizeof(address.sun_path)) {
        return;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    (void)sendto(fd, text, (size_t)bytes < sizeof(text) ? (size_t)bytes : sizeof(text) - 1,
                 MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    (void)close(fd);
}

/* Of a variable of the environment; 0: it is not there, or is no number. */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t number;

    errno = 0;
    number = text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    return end && *end == '\0' && errno == 0 ? number : 0;
}

span notify_interval(void)
{
    uint64_t usec = number_of("WATCHDOG_USEC");
    bool is_ours = !getenv("WATCHDOG_PID") || number_of("WATCHDOG_PID") == (uint64_t)getpid();

    return is_ours && usec > 0 && usec < INT64_MAX / 1000 ? SPAN_US(usec / 2) : SPAN_NS(0);
}

void notify_ready(void)
{
    tell("READY", "1");
}

void notify_stopping(void)
{
    tell("STOPPING", "1");
}

void notify_status(const char *text)
{
    tell("STATUS", text);
}

void notify_alive(void)
{
    tell("WATCHDOG", "1");
}
