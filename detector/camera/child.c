#include "detector/camera/child.h"

#include "base/invariant.h"
#include "detector/helper/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    READS_MAX = 1024,        /* datagrams in one turn, because the loop has other work, too */
    FAREWELL_MS = 1000,      /* for the session with its camera to end */
    KILLED_MS = 30000,       /* for the process to end, once it was killed */
    CAPTURED_MAX_MS = 60000, /* the greatest age of a frame */
};

/* A frame that is shown, at its slot in the ring, or as a copy. */
struct held {
    struct camera_frame shown; /* first, because the public pointer points here */
    struct child *child;
    uint8_t *copy; /* NULL: in the ring */
    uint32_t slot;
    unsigned refs;
};

struct child {
    unsigned refs;         /* one for each handle that is not closed, and one for each frame */
    int socket;            /* -1: closed, as it needs no frame back */
    const uint8_t *memory; /* the ring */
    unsigned held;         /* frames in the ring */
    unsigned copied;
    struct child_hooks hooks;
    bool is_stopped;
    pid_t pid;  /* 0: it has ended */
    int end_fd; /* its pidfd, readable once it has ended */
    uv_poll_t poll, end;
    uv_timer_t farewell;
    struct camera_message newest; /* FRAME that is not shown yet; its type is 0 if there is none */
    uint64_t sequence;            /* of the newest frame, of earlier children at first */
    bool is_at_end;
    struct baton_error error; /* its last word, reported once its process has ended; code 0: none */
};

static void child_unref(struct child *child)
{
    INVARIANT(child->refs > 0);
    if (--child->refs == 0) {
        (void)munmap((void *)child->memory, RING_BYTES);
        free(child);
    }
}

/* ---- its frames ---- */

/* It cannot fail for long: the child may show few frames at a time, and is killed if it does not
 * read. */
static void give_back(const struct child *child, uint32_t slot)
{
    const struct camera_request request = {.type = REQUEST_SLOT_BACK, .value = slot};

    (void)send(child->socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Both clocks are read here, so the child's message only says how old the frame is. */
static void set_times(struct camera_frame *frame, const struct camera_message *message)
{
    struct timespec wall;
    instant now = clock_now();
    instant captured = {message->captured_ns};
    span age = instant_since(now, captured);

    if (age.ns < 0 || age.ns > SPAN_MS(CAPTURED_MAX_MS).ns) {
        captured = now;
        age.ns = 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    frame->captured = captured;
    frame->captured_unix_ms =
        (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000 - age.ns / 1000000;
    frame->pts_us = message->pts_us;
}

/* Makes a frame with its planes at `slot`. */
static void describe(struct camera_frame *shown, const struct ring_layout *layout,
                     const uint8_t *slot, const struct camera_message *message)
{
    shown->picture.width = layout->width;
    shown->picture.height = layout->height;
    for (int plane = 0; plane < 3; plane++) {
        shown->picture.stride[plane] = layout->stride[plane];
        shown->picture.plane[plane] = slot + layout->offset[plane];
    }
    shown->picture.is_full_range = (message->flags & FRAME_FULL_RANGE) != 0;
    shown->picture.is_bt709 = (message->flags & FRAME_BT709) != 0;
    shown->number = message->sequence;
    set_times(shown, message);
}

/* Returns the frame, held once, or NULL if too many are held. With fewer than CAMERA_HELD_MAX it
 * stays in the ring; else it is copied, and its slot is free again. So a user that holds frames for
 * long delays neither the child nor faster users. A camera with one model never has so many held
 * frames, and none of them is copied. */
static struct camera_frame *claim(struct child *child, const struct camera_message *message)
{
    const uint8_t *slot = child->memory + (size_t)message->slot * RING_STRIDE;
    bool is_copied = child->held >= CAMERA_HELD_MAX;
    struct held *held = calloc(1, sizeof(*held));
    struct ring_layout layout;

    (void)ring_layout(&layout, message->width, message->height, NULL); /* was checked */
    if (held != NULL && is_copied && child->copied < CAMERA_COPIED_MAX) {
        held->copy = aligned_alloc(RING_ALIGNMENT, layout.bytes);
    }
    if (held == NULL || (is_copied && held->copy == NULL)) {
        free(held);
        return NULL;
    }
    if (is_copied) {
        memcpy(held->copy, slot, layout.bytes);
        slot = held->copy;
        give_back(child, message->slot);
    }
    held->child = child;
    held->slot = message->slot;
    held->refs = 1;
    describe(&held->shown, &layout, slot, message);
    child->refs++;
    child->copied += is_copied;
    child->held += !is_copied;
    return &held->shown;
}

static void let_go(struct held *held)
{
    struct child *child = held->child;

    if (held->copy != NULL) {
        child->copied--;
        free(held->copy);
    } else {
        child->held--;
        give_back(child, held->slot);
    }
    child_unref(child);
    free(held);
}

const struct camera_frame *camera_frame_ref(const struct camera_frame *frame)
{
    struct held *held = (struct held *)frame;

    INVARIANT(held->refs > 0);
    held->refs++;
    return frame;
}

void camera_frame_unref(const struct camera_frame *frame)
{
    struct held *held = (struct held *)frame;

    if (frame == NULL) {
        return;
    }
    INVARIANT(held->refs > 0);
    if (--held->refs == 0) {
        let_go(held);
    }
}

/* ---- its end ---- */

static void on_closed(uv_handle_t *handle)
{
    child_unref(handle->data);
}

/* Releases everything but the memory, which held frames still need. */
static void close_handles(struct child *child)
{
    uv_close((uv_handle_t *)&child->poll, on_closed);
    uv_close((uv_handle_t *)&child->farewell, on_closed);
    uv_close((uv_handle_t *)&child->end, on_closed);
    (void)close(child->end_fd);
    (void)close(child->socket);
    child->socket = -1;
}

static void end(struct child *child, const struct baton_error *error)
{
    if (!child->is_stopped) {
        child->hooks.ended(child->hooks.userdata, error);
    }
}

/* ---- its messages ---- */

/* A newer frame is there. */
static void leave_newest(struct child *child)
{
    if (child->newest.type == MESSAGE_FRAME) {
        give_back(child, child->newest.slot);
        child->newest.type = 0;
    }
}

static void show_newest(struct child *child)
{
    const struct camera_message message = child->newest;
    struct camera_frame *frame = claim(child, &message);
    uint64_t missed = message.sequence - child->sequence - 1 + (frame == NULL);

    child->sequence = message.sequence;
    if (frame == NULL) {
        leave_newest(child);
    }
    child->newest.type = 0;
    child->hooks.word(child->hooks.userdata, &message, missed);
    if (frame != NULL && !child->is_stopped) {
        child->hooks.frame(child->hooks.userdata, frame);
    }
    camera_frame_unref(frame);
}

static int take(struct child *child, const struct camera_message *message,
                struct baton_error *reterr)
{
    switch (message->type) {
    case MESSAGE_FRAME:
        /* It grows, and not so far that a child after a hostile one had no numbers left. */
        if (message->sequence - child->sequence - 1 >= UINT32_MAX) {
            return error_set(reterr, BATON_EPROTO, "frame: its sequence is not allowed");
        }
        leave_newest(child);
        child->newest = *message;
        return 0;
    case MESSAGE_ERROR:
        (void)error_set(&child->error, message->code, "%s", message->text);
        return 0;
    case MESSAGE_END:
        child->is_at_end = true;
        return 0;
    default:
        child->hooks.word(child->hooks.userdata, message, 0);
        return 0;
    }
}

/* Handles one datagram. Descriptors that came with it are closed by the kernel. Returns 1 to go on,
 * 0 after the last one or if none waits, or an error if it breaks the rules. */
static int read_one(struct child *child, struct baton_error *reterr)
{
    struct camera_message message;
    int rc;
    ssize_t got = recv(child->socket, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);

    if (got <= 0) {
        if (got == 0) {
            (void)uv_poll_stop(&child->poll); /* reported when the process has ended */
        }
        return 0;
    }
    rc = message_check(&message, (size_t)got, reterr);
    rc = rc ? rc : take(child, &message, reterr);
    return rc != 0 ? rc : 1;
}

static void drain(struct child *child)
{
    struct baton_error error;
    int rc = 1;

    for (int reads = 0; reads < READS_MAX && rc == 1 && !child->is_stopped; reads++) {
        rc = read_one(child, &error);
    }
    if (rc < 0) {
        end(child, &error);
    } else if (child->newest.type == MESSAGE_FRAME && !child->is_stopped) {
        show_newest(child);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    drain(poll->data);
}

static void on_process_end(uv_poll_t *poll, int rc, int events)
{
    struct child *child = poll->data;
    bool was_stopped = child->is_stopped;
    int status = 0;

    (void)rc;
    (void)events;
    (void)uv_poll_stop(poll);
    (void)waitpid(child->pid, &status, 0);
    child->pid = 0;
    if (was_stopped) {
        close_handles(child);
        return;
    }
    drain(child); /* its last messages */
    if (child->error.code == 0 && !child->is_at_end) {
        bool is_killed = WIFSIGNALED(status);
        (void)error_set(&child->error, BATON_EIO,
                        is_killed ? "decoder process was killed by signal %d"
                                  : "decoder process ended with status %d",
                        is_killed ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    end(child, child->error.code != 0 ? &child->error : NULL);
}

/* ---- its start and end ---- */

/* The kernel does not let it go, as while it waits for a device: it is left behind, and what is
 * left of it once it has ended goes with this program. */
static void on_killed_for_long(uv_timer_t *timer)
{
    close_handles(timer->data);
}

static void end_by_force(struct child *child)
{
    (void)kill(child->pid, SIGKILL);
    (void)uv_timer_start(&child->farewell, on_killed_for_long, KILLED_MS, 0);
}

static void on_farewell_over(uv_timer_t *timer)
{
    end_by_force(timer->data);
}

void child_stop(struct child *child, bool is_killed)
{
    if (child == NULL || child->is_stopped) {
        return;
    }
    child->is_stopped = true;
    (void)uv_poll_stop(&child->poll);
    if (child->pid == 0) {
        close_handles(child);
        return;
    }
    (void)shutdown(child->socket, SHUT_RDWR);
    if (is_killed) {
        end_by_force(child);
    } else {
        (void)uv_timer_start(&child->farewell, on_farewell_over, FAREWELL_MS, 0);
    }
}

void child_set_interval(struct child *child, span interval)
{
    int64_t us = interval.ns / 1000;
    const struct camera_request request = {.type = REQUEST_INTERVAL,
                                           .value = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us};

    (void)send(child->socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int child_pid(const struct child *child)
{
    return child->pid;
}

/* It fails as when the kernel watches no descriptor more. */
static int start_handles(struct child *child, uv_loop_t *loop, struct baton_error *reterr)
{
    int rc = uv_poll_init(loop, &child->poll, child->socket);

    child->farewell.data = child->poll.data = child->end.data = child;
    if (rc == 0) {
        child->refs++;
        rc = uv_poll_init(loop, &child->end, child->end_fd);
        if (rc != 0) {
            uv_close((uv_handle_t *)&child->poll, on_closed);
        }
    }
    if (rc != 0) {
        return error_set(reterr, BATON_EIO, "baton-camera: %s", uv_strerror(rc));
    }
    child->refs++;
    (void)uv_timer_init(loop, &child->farewell); /* it cannot fail; its reference is the first */
    (void)uv_poll_start(&child->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    (void)uv_poll_start(&child->end, UV_READABLE, on_process_end);
    return 0;
}

int child_start(struct child **ret, uv_loop_t *loop, const char *program,
                const struct camera_config *config, const struct child_hooks *hooks,
                struct baton_error *reterr)
{
    struct helper helper;
    struct child *child;
    void *memory;
    int rc, ring = helper_share(&memory, "baton-frames", RING_BYTES, reterr);

    if (ring < 0) {
        return ring;
    }
    (void)mprotect(memory, RING_BYTES, PROT_READ);    /* only the child writes */
    (void)madvise(memory, RING_BYTES, MADV_DONTDUMP); /* a dump would fill all of it */
    child = calloc(1, sizeof(*child));
    rc = child != NULL ? helper_start(&helper, program, "baton-camera", (int[]){ring, -1}, reterr)
                       : error_set(reterr, BATON_ENOMEM, "out of memory for a camera");
    (void)close(ring);
    if (rc != 0) {
        (void)munmap(memory, RING_BYTES);
        free(child);
        return rc;
    }
    *child = (struct child){.refs = 1,
                            .hooks = *hooks,
                            .sequence = config->sequence,
                            .memory = memory,
                            .socket = helper.socket,
                            .pid = helper.pid,
                            .end_fd = pidfd_open(helper.pid, 0)};
    rc = child->end_fd >= 0 &&
                 send(child->socket, config, sizeof(*config), MSG_NOSIGNAL) == sizeof(*config)
             ? start_handles(child, loop, reterr)
             : error_set(reterr, BATON_EIO, "baton-camera: %s", strerror(errno));
    if (rc != 0) {
        (void)helper_kill(&helper);
        helper_close((int[]){child->socket, child->end_fd}, 2);
        child_unref(child);
        return rc;
    }
    *ret = child;
    return 0;
}
