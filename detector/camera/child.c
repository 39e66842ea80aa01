#include "detector/camera/child.h"

#include "base/error.h"
#include "detector/camera/frames_int.h"
#include "detector/helper/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READS_MAX = 1024,   /* datagrams in one turn, because the loop has other work, too */
    FAREWELL_MS = 1000, /* for the session with its camera to end */
};

struct child {
    struct frames frames; /* its references: also each handle that is not closed */
    struct child_hooks hooks;
    bool is_stopped, has_ended, is_closing;
    pid_t pid;  /* 0: it has ended */
    int end_fd; /* its pidfd, readable once it has ended */
    uv_poll_t poll, end;
    uv_timer_t farewell;
    struct camera_message newest; /* FRAME that is not shown yet; its type is 0 if there is none */
    uint64_t sequence;            /* of the newest frame, of earlier children at first */
    uint32_t interval_us;         /* as it was sent */
    /* The child's last error is reported once its process has ended. */
    bool has_error, is_at_end;
    struct baton_error error;
};

static void child_unref(struct child *child)
{
    frames_unref(&child->frames);
}

static void on_closed(uv_handle_t *handle)
{
    child_unref(handle->data);
}

/* Releases everything but the memory, which held frames still need. */
static void close_handles(struct child *child)
{
    if (child->is_closing) {
        return;
    }
    child->is_closing = true;
    uv_close((uv_handle_t *)&child->poll, on_closed);
    uv_close((uv_handle_t *)&child->farewell, on_closed);
    uv_close((uv_handle_t *)&child->end, on_closed);
    (void)close(child->end_fd);
    (void)close(child->frames.socket);
    child->frames.socket = -1;
    frames_forget(&child->frames);
}

static void end(struct child *child, const struct baton_error *error)
{
    if (!child->has_ended && !child->is_stopped) {
        child->has_ended = true;
        child->hooks.ended(child->hooks.userdata, error);
    }
}

/* ---- its messages ---- */

/* A newer frame or ring is there. */
static void leave_newest(struct child *child)
{
    if (child->newest.type == MESSAGE_FRAME) {
        frames_leave(&child->frames, &child->newest);
        child->newest.type = 0;
    }
}

static void show_newest(struct child *child)
{
    const struct camera_message message = child->newest;
    struct camera_frame *frame = frames_claim(&child->frames, &message);
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

static int take(struct child *child, const struct camera_message *message, int fd,
                struct baton_error *reterr)
{
    switch (message->type) {
    case MESSAGE_FRAME:
        if (message->slot >= frames_slots(&child->frames)) {
            return error_set(reterr, BATON_EPROTO, "frame: there is no slot %u", message->slot);
        }
        /* It grows, and not so far that a child after a hostile one had no numbers left. */
        if (message->sequence - child->sequence - 1 >= UINT32_MAX) {
            return error_set(reterr, BATON_EPROTO, "frame: its sequence is not allowed");
        }
        leave_newest(child);
        child->newest = *message;
        return 0;
    case MESSAGE_RING:
        leave_newest(child); /* it is one of the previous ring */
        return frames_adopt(&child->frames, fd, message, reterr);
    case MESSAGE_ERROR:
        child->has_error = true;
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

/* Handles one datagram. Returns 1 to go on, 0 after the last one or if none waits, or an error if
 * it breaks the rules. */
static int read_one(struct child *child, struct baton_error *reterr)
{
    struct camera_message message;
    int fds[HELPER_PASSED], rc;
    ssize_t got =
        helper_receive(child->frames.socket, &message, sizeof(message), fds, MSG_DONTWAIT);

    if (got <= 0) {
        if (got == 0) {
            (void)uv_poll_stop(&child->poll); /* reported when the process has ended */
        }
        return 0;
    }
    rc = message_check(&message, (size_t)got, reterr);
    rc = rc ? rc : take(child, &message, fds[0], reterr);
    helper_close(fds);
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
    struct child *child = poll->data;

    (void)status;
    (void)events;
    frames_ref(&child->frames); /* a hook may stop it */
    drain(child);
    child_unref(child);
}

static void on_process_end(uv_poll_t *poll, int rc, int events)
{
    struct child *child = poll->data;
    struct baton_error error;
    int status = 0;

    (void)rc;
    (void)events;
    (void)uv_poll_stop(poll);
    (void)waitpid(child->pid, &status, 0);
    child->pid = 0;
    frames_ref(&child->frames);
    if (!child->is_stopped) {
        drain(child); /* its last messages */
    }
    if (child->has_error) {
        end(child, &child->error);
    } else if (child->is_at_end) {
        end(child, NULL);
    } else if (WIFSIGNALED(status)) {
        (void)error_set(&error, BATON_EIO, "decoder process was killed by signal %d",
                        WTERMSIG(status));
        end(child, &error);
    } else {
        (void)error_set(&error, BATON_EIO, "decoder process ended with status %d",
                        WEXITSTATUS(status));
        end(child, &error);
    }
    if (child->is_stopped) {
        close_handles(child);
    }
    child_unref(child);
}

/* ---- its start and end ---- */

static void kill_it(struct child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
    }
}

static void on_farewell_over(uv_timer_t *timer)
{
    kill_it(timer->data);
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
    (void)shutdown(child->frames.socket, SHUT_RDWR);
    if (is_killed) {
        kill_it(child);
    } else {
        (void)uv_timer_start(&child->farewell, on_farewell_over, FAREWELL_MS, 0);
    }
}

void child_set_interval(struct child *child, span interval)
{
    int64_t us = interval.ns / 1000;
    const struct camera_request request = {.value = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us};

    if (child->interval_us != request.value &&
        send(child->frames.socket, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        child->interval_us = request.value;
    }
}

int child_pid(const struct child *child)
{
    return child->pid;
}

/* Neither can fail: the descriptors are our own. */
static void start_handles(struct child *child, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &child->farewell);
    (void)uv_poll_init(loop, &child->poll, child->frames.socket);
    (void)uv_poll_init(loop, &child->end, child->end_fd);
    child->farewell.data = child->poll.data = child->end.data = child;
    child->frames.refs = 3;
    (void)uv_poll_start(&child->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    (void)uv_poll_start(&child->end, UV_READABLE, on_process_end);
}

int child_start(struct child **ret, uv_loop_t *loop, const char *program,
                const struct camera_config *config, const struct child_hooks *hooks,
                struct baton_error *reterr)
{
    struct helper helper;
    struct child *child = NULL;
    int end_fd, rc = helper_start(&helper, program, "baton-camera", -1, reterr);

    if (rc != 0) {
        return rc;
    }
    end_fd = pidfd_open(helper.pid, 0);
    if (end_fd >= 0 &&
        send(helper.socket, config, sizeof(*config), MSG_NOSIGNAL) == sizeof(*config)) {
        child = calloc(1, sizeof(*child));
    }
    if (child == NULL) {
        rc = error_set(reterr, BATON_EIO, "%s: %s", program, strerror(errno));
        (void)helper_kill(&helper);
        helper_close((int[]){helper.socket, end_fd});
        return rc;
    }
    child->hooks = *hooks;
    child->sequence = config->sequence;
    child->frames.socket = helper.socket;
    child->pid = helper.pid;
    child->end_fd = end_fd;
    start_handles(child, loop);
    *ret = child;
    return 0;
}
