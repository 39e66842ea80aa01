#include "base/invariant.h"
#include "detector/camera/camera_int.h"
#include "detector/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    READS_MAX = 1024,        /* datagrams in one turn, because the loop has other work, too */
    REAP_MS = 10,            /* between two looks whether the process has ended */
    FAREWELL_LOOKS = 100,    /* for the session with its camera to end */
    KILLED_LOOKS = 3000,     /* for the process to end, once it was killed */
    CAPTURED_MAX_MS = 60000, /* the greatest age of a frame */
};

/* A frame that is shown, at its slot in the ring. */
struct held {
    struct frame shown; /* first, because the public pointer points here */
    struct child *child;
    uint32_t slot;
};

struct child {
    unsigned refs;        /* one for each handle that is not closed, and one for each frame */
    struct feed *feed;    /* NULL: stopped */
    struct helper helper; /* its socket is -1 once it needs no frame back */
    uint8_t *memory;      /* the ring; only the child writes to it */
    uint32_t held;        /* one bit for each of its slots: somebody holds its frame */
    uv_poll_t poll;
    uv_timer_t reaper;
    unsigned looks;           /* of the reaper */
    bool has_last_word;       /* which is: */
    struct baton_error error; /* code 0: its source was read to the end */
};

static void child_unref(struct child *child)
{
    INVARIANT(child->refs > 0);
    if (--child->refs == 0) {
        (void)munmap(child->memory, RING_BYTES);
        free(child);
    }
}

/* ---- its frames ---- */

/* To the child, or once it has ended to the system. The former cannot fail for long: the child may
 * show few frames at a time, and is killed if it does not read. */
static void give_back(const struct child *child, uint32_t slot)
{
    const struct camera_request request = {.type = REQUEST_SLOT_BACK, .value = slot};

    if (child->helper.socket < 0) {
        (void)madvise(child->memory + (size_t)slot * RING_STRIDE, RING_STRIDE, MADV_REMOVE);
        return;
    }
    (void)send(child->helper.socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Both clocks are read here, so the child's message only says how old the frame is. */
static void set_times(struct frame *frame, instant captured)
{
    struct timespec wall;
    instant now = clock_now();
    span age = instant_since(now, captured);

    if (age.ns < 0 || age.ns > SPAN_MS(CAPTURED_MAX_MS).ns) {
        captured = now;
        age.ns = 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    frame->captured = captured;
    frame->captured_unix_ms =
        (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - age.ns / 1000000;
}

static void let_go(struct frame *frame)
{
    struct held *held = (struct held *)frame;
    struct child *child = held->child;

    child->held &= ~(1U << held->slot);
    give_back(child, held->slot);
    child_unref(child);
    free(held);
}

/* Returns the frame, held once, or NULL if too many are held. */
static struct frame *claim(struct child *child, const struct camera_message *message)
{
    bool is_full = __builtin_popcount(child->held) >= RING_HELD_MAX;
    struct held *held = is_full ? NULL : malloc(sizeof(*held));
    struct ring_layout layout;

    if (held == NULL) {
        return NULL;
    }
    (void)ring_layout(&layout, message->width, message->height, NULL); /* was checked */
    *held = (struct held){.child = child, .slot = message->slot};
    held->shown = (struct frame){.width = layout.width,
                                 .height = layout.height,
                                 .is_full_range = (message->flags & FRAME_FULL_RANGE) != 0,
                                 .is_bt709 = (message->flags & FRAME_BT709) != 0,
                                 .number = message->sequence,
                                 .pts_us = message->pts_us,
                                 .refs = 1,
                                 .free = let_go};
    set_times(&held->shown, (instant){message->captured_ns});
    for (int plane = 0; plane < 3; plane++) {
        held->shown.stride[plane] = layout.stride[plane];
        held->shown.plane[plane] =
            child->memory + (size_t)message->slot * RING_STRIDE + layout.offset[plane];
    }
    child->refs++;
    child->held |= 1U << message->slot;
    return &held->shown;
}

/* ---- its messages ---- */

static void show(struct child *child, const struct camera_message *message)
{
    struct feed *feed = child->feed;
    struct frame *frame = claim(child, message);
    uint64_t missed = message->sequence - feed->config.sequence - 1 + (frame == NULL);

    feed->config.sequence = message->sequence;
    if (frame == NULL) {
        give_back(child, message->slot);
    }
    feed_hear(feed, message, missed, frame);
    frame_unref(frame);
}

/* Of frames only the newest one is shown. */
static int take(struct child *child, const struct camera_message *message,
                struct camera_message *newest, struct baton_error *reterr)
{
    if (message->type == MESSAGE_END) {
        child->has_last_word = true;
        (void)error_set(&child->error, message->code, "%s",
                        message->code != 0 ? message->text : "the stream ended");
    } else if (message->type != MESSAGE_FRAME) {
        feed_hear(child->feed, message, 0, NULL);
    } else if (message->sequence - child->feed->config.sequence - 1 >= UINT32_MAX) {
        /* It grows, and not so far that a child after a hostile one had no numbers left. */
        return error_set(reterr, BATON_EPROTO, "frame: its sequence is not allowed");
    } else {
        if (newest->type != 0) {
            give_back(child, newest->slot);
        }
        *newest = *message;
    }
    return 0;
}

static void on_look(uv_timer_t *timer);

static void start_reaper(struct child *child)
{
    (void)uv_poll_stop(&child->poll);
    (void)uv_timer_start(&child->reaper, on_look, REAP_MS, REAP_MS);
}

/* Handles one datagram. Descriptors that came with it are closed by the kernel. Returns 1 to go on,
 * 0 after the last one or if none waits, or an error if it breaks the rules. */
static int read_one(struct child *child, struct camera_message *newest, struct baton_error *reterr)
{
    struct camera_message message;
    int rc;
    ssize_t got = recv(child->helper.socket, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);

    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            start_reaper(child); /* the end is reported when the process has ended */
        }
        return 0;
    }
    rc = message_check(&message, (size_t)got, reterr);
    rc = rc ? rc : take(child, &message, newest, reterr);
    return rc != 0 ? rc : 1;
}

static void drain(struct child *child)
{
    struct camera_message newest = {.type = 0};
    struct baton_error error;
    int rc = 1;

    for (int reads = 0; reads < READS_MAX && rc == 1; reads++) {
        rc = read_one(child, &newest, &error);
    }
    if (rc < 0) {
        feed_end(child->feed, &error);
    } else if (newest.type != 0) {
        show(child, &newest);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    drain(poll->data);
}

/* ---- its start and end ---- */

static void on_closed(uv_handle_t *handle)
{
    child_unref(handle->data);
}

/* Releases everything but the memory of held frames. The kernel counts its removal as writing. */
static void close_handles(struct child *child)
{
    uv_close((uv_handle_t *)&child->poll, on_closed);
    uv_close((uv_handle_t *)&child->reaper, on_closed);
    (void)close(child->helper.socket);
    child->helper.socket = -1;
    (void)mprotect(child->memory, RING_BYTES, PROT_READ | PROT_WRITE);
    for (uint32_t slot = 0; slot < RING_SLOTS; slot++) {
        if ((child->held & 1U << slot) == 0) {
            give_back(child, slot);
        }
    }
}

static void report_end(struct child *child, int status)
{
    bool is_killed = WIFSIGNALED(status);

    drain(child); /* its last messages */
    if (child->feed == NULL) {
        return;
    }
    if (!child->has_last_word) {
        (void)error_set(&child->error, BATON_EIO,
                        is_killed ? "decoder process was killed by signal %d"
                                  : "decoder process ended with status %d",
                        is_killed ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    feed_end(child->feed, &child->error);
}

/* From the end of its socket, or the feed's end of it. One that the kernel does not let go, as
 * while it waits for a device, is left behind, and what is left of it once it has ended goes with
 * this program. */
static void on_look(uv_timer_t *timer)
{
    struct child *child = timer->data;
    int status;
    bool has_ended = helper_wait(&child->helper, 0, &status);

    child->looks++;
    if (has_ended && child->feed != NULL) {
        report_end(child, status);
    } else if (child->feed == NULL && (has_ended || child->looks > FAREWELL_LOOKS + KILLED_LOOKS)) {
        close_handles(child);
    } else if (child->looks == FAREWELL_LOOKS) {
        (void)kill(child->helper.pid, SIGKILL);
    }
}

void child_stop(struct feed *feed, bool is_killed)
{
    struct child *child = feed->child;

    if (child == NULL) {
        return;
    }
    feed->child = NULL;
    feed->stats.pid = 0;
    child->feed = NULL;
    if (child->helper.pid == 0) {
        close_handles(child);
        return;
    }
    (void)shutdown(child->helper.socket, SHUT_RDWR);
    if (is_killed) {
        (void)kill(child->helper.pid, SIGKILL);
    }
    child->looks = is_killed ? FAREWELL_LOOKS : 0;
    start_reaper(child);
}

void child_set_interval(struct child *child, span interval)
{
    int64_t us = interval.ns / 1000;
    const struct camera_request request = {.type = REQUEST_INTERVAL,
                                           .value = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us};

    (void)send(child->helper.socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* It fails as when the kernel watches no descriptor more. */
static int start_handles(struct child *child, uv_loop_t *loop, struct baton_error *reterr)
{
    int rc = uv_poll_init(loop, &child->poll, child->helper.socket);

    if (rc != 0) {
        return error_set(reterr, BATON_EIO, "baton-camera: %s", uv_strerror(rc));
    }
    child->refs++;
    child->poll.data = child->reaper.data = child;
    (void)uv_timer_init(loop, &child->reaper); /* it cannot fail; its reference is the first */
    (void)uv_poll_start(&child->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    return 0;
}

int child_start(struct feed *feed, struct baton_error *reterr)
{
    const struct camera_pool_config *pool = &feed->pool->config;
    struct child *child;
    void *memory;
    int rc, ring = helper_share(&memory, "baton-frames", RING_BYTES, reterr);

    if (ring < 0) {
        return ring;
    }
    (void)mprotect(memory, RING_BYTES, PROT_READ);    /* only the child writes */
    (void)madvise(memory, RING_BYTES, MADV_DONTDUMP); /* a dump would fill all of it */
    child = calloc(1, sizeof(*child));
    if (child == NULL) {
        (void)munmap(memory, RING_BYTES);
        (void)close(ring);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a camera");
    }
    *child = (struct child){.refs = 1, .feed = feed, .memory = memory, .helper.socket = -1};
    rc = helper_start(&child->helper, pool->program, "baton-camera", (int[]){ring, -1}, reterr);
    (void)close(ring);
    if (rc == 0 && send(child->helper.socket, &feed->config, sizeof(feed->config), MSG_NOSIGNAL) !=
                       sizeof(feed->config)) {
        rc = error_set(reterr, BATON_EIO, "baton-camera: %s", strerror(errno));
    }
    rc = rc ? rc : start_handles(child, pool->loop, reterr);
    if (rc != 0) {
        (void)helper_kill(&child->helper);
        helper_close(&child->helper.socket, 1);
        child_unref(child);
        return rc;
    }
    feed->child = child;
    feed->stats.pid = child->helper.pid;
    return 0;
}

/* ---- what it leaves ---- */

static bool is_broker(pid_t pid)
{
    char path[32], name[sizeof(BROKER_NAME)] = "";
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, name, sizeof(name) - 1);
        (void)close(fd);
    }
    return strcmp(name, BROKER_NAME) == 0;
}

void child_reap_brokers(void)
{
    siginfo_t ended = {.si_pid = 0};

    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0 &&
           is_broker(ended.si_pid)) {
        (void)waitpid(ended.si_pid, NULL, WNOHANG);
    }
}
