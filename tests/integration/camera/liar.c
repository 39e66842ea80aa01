/* A child that was taken over: it stands where baton-camera should and breaks every rule that it
 * can. Which one says the URL's last word. */
#include "detector/camera/message.h"
#include "detector/camera/ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WIDTH = 320, HEIGHT = 240, FLOOD = 100000, FDS = 200 };

static void send_bytes(const void *bytes, size_t count, const int *fds, size_t fd_count)
{
    char space[CMSG_SPACE(sizeof(int) * FDS)] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > 0) {
        header.msg_control = space;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *passed = CMSG_FIRSTHDR(&header);
        passed->cmsg_level = SOL_SOCKET;
        passed->cmsg_type = SCM_RIGHTS;
        passed->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(passed), fds, sizeof(int) * fd_count);
    }
    (void)sendmsg(CAMERA_FD_SOCKET, &header, MSG_NOSIGNAL);
}

static void send_message(struct camera_message message, int fd)
{
    send_bytes(&message, sizeof(message), &fd, fd >= 0);
}

static const struct camera_message ring = {
    .type = MESSAGE_RING, .width = WIDTH, .height = HEIGHT, .sequence = 1};
static const struct camera_message frame = {.type = MESSAGE_FRAME, .slot = 1, .sequence = 1};

static void send_many_fds(void)
{
    int fds[FDS];

    for (int i = 0; i < FDS; i++) {
        fds[i] = dup(CAMERA_FD_SOCKET);
    }
    send_bytes("xx", 2, fds, FDS);
}

/* A ring that is right, and frames that are not: each slot is shown again and again, whoever has
 * it. */
static void lie_about_frames(void)
{
    struct camera_message message = frame;
    struct ring_layout layout;
    uint8_t *memory;
    int fd;

    (void)ring_layout(&layout, WIDTH, HEIGHT);
    (void)ring_make(&memory, &fd, &layout, NULL);
    send_message(ring, fd);
    for (int i = 1; i < FLOOD / 10; i++) {
        message.slot = (uint8_t)(i % RING_SLOTS);
        message.sequence = (uint64_t)i * (i > FLOOD / 20 ? 7919 : 1);
        message.captured_ns = INT64_MIN + i;
        message.counts.decoded = UINT64_MAX - (uint64_t)i;
        send_message(message, -1);
    }
    message.slot = RING_SLOTS;
    send_message(message, -1);
}

static void lie(const char *how)
{
    struct ring_layout layout;
    int fd;

    (void)ring_layout(&layout, WIDTH, HEIGHT);
    if (strcmp(how, "frame-first") == 0) {
        send_message(frame, -1);
    } else if (strcmp(how, "no-ring") == 0) {
        send_message(ring, -1);
    } else if (strcmp(how, "unsealed") == 0) {
        fd = memfd_create("x", MFD_ALLOW_SEALING);
        (void)!ftruncate(fd, (off_t)layout.bytes);
        send_message(ring, fd);
    } else if (strcmp(how, "other-file") == 0) {
        fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
        send_message(ring, fd);
    } else if (strcmp(how, "long") == 0) {
        static const struct camera_message two[2] = {{.type = MESSAGE_END}, {.type = MESSAGE_END}};
        send_bytes(two, sizeof(two), NULL, 0);
    } else if (strcmp(how, "noise") == 0) {
        send_bytes("\1\3\7noise", 8, NULL, 0);
    } else if (strcmp(how, "many-fds") == 0) {
        send_many_fds();
    } else if (strcmp(how, "mute") == 0) {
        (void)close(CAMERA_FD_SOCKET);
    } else {
        lie_about_frames();
    }
}

int main(void)
{
    static struct camera_config config;

    if (recv(CAMERA_FD_SOCKET, &config, sizeof(config), 0) == sizeof(config)) {
        lie(strrchr(config.url, '/') + 1);
    }
    (void)pause(); /* it has to be killed */
    return 0;
}
