/* A child that was taken over: it stands where baton-camera should and breaks every rule that it
 * can. Which one says the URL's last word. */
#include "detector/camera/message.h"
#include "detector/camera/ring.h"
#include "detector/helper/helper.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEIGHT = 240, FLOOD = 10000, FDS = 200, WIDTHS = 14 };

static void say(const void *bytes, size_t count)
{
    (void)send(HELPER_FD, bytes, count, MSG_NOSIGNAL);
}

static void send_many_fds(void)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * FDS)];
    } control = {.head = {CMSG_LEN(sizeof(int) * FDS), SOL_SOCKET, SCM_RIGHTS}};
    struct camera_message message = {.type = MESSAGE_PROGRESS};
    struct iovec part = {&message, sizeof(message)};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    int fds[FDS];

    for (int i = 0; i < FDS; i++) {
        fds[i] = dup(HELPER_FD);
    }
    memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
    (void)sendmsg(HELPER_FD, &header, MSG_NOSIGNAL);
}

/* Each slot is shown again and again, whoever has it, in many sizes. */
static void lie_about_frames(void)
{
    struct camera_message message = {.type = MESSAGE_FRAME, .height = HEIGHT};

    for (int i = 1; i < FLOOD; i++) {
        message.width = 1U << i % WIDTHS;
        message.slot = (uint8_t)(i % RING_SLOTS);
        message.sequence = (uint64_t)i * (i > FLOOD / 2 ? 7919 : 1);
        message.captured_ns = INT64_MIN + i;
        message.counts.decoded = UINT64_MAX - (uint64_t)i;
        say(&message, sizeof(message));
    }
    message.slot = RING_SLOTS;
    say(&message, sizeof(message));
}

static void lie(const char *how)
{
    if (strcmp(how, "long") == 0) {
        static const struct camera_message two[2] = {{.type = MESSAGE_END}, {.type = MESSAGE_END}};
        say(two, sizeof(two));
    } else if (strcmp(how, "noise") == 0) {
        say("\1\3\7noise", 8);
    } else if (strcmp(how, "many-fds") == 0) {
        send_many_fds();
    } else if (strcmp(how, "mute") == 0) {
        (void)close(HELPER_FD);
    } else {
        lie_about_frames();
    }
}

int main(void)
{
    static struct camera_config config;

    if (recv(HELPER_FD, &config, sizeof(config), 0) == sizeof(config)) {
        lie(strrchr(config.url, '/') + 1);
    }
    (void)pause(); /* it has to be killed */
    return 0;
}
