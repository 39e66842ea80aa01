#include "net/listener.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TURN_CONNECTIONS = 64, PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 1000, LOCK_TRIES = 2000 };

struct listener {
    struct listener_options options;
    uv_poll_t poll;
    uv_timer_t pause;
    unsigned pause_ms; /* the latest one, until a connection is accepted; 0: none */
    unsigned handles_left;
    int fd; /* -1: closed */
    bool is_unix;
    struct sockaddr_un address; /* of a Unix socket */
    struct stat about;          /* its file, so that only that one is removed */
};

/* ---- Accepting ------------------------------------------------------------------------------- */

static const char *name_of(const struct listener *listener, char room[static 16])
{
    (void)snprintf(room, 16, "port %d", listener_port(listener));
    return listener->is_unix ? listener->address.sun_path : room;
}

static void on_connections(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;

    (void)uv_poll_start(&listener->poll, UV_READABLE, on_connections); /* cannot fail */
}

static void pause_for(struct listener *listener, int errnum)
{
    char room[16];

    if (listener->pause_ms == 0) {
        log_warning(listener->options.logger, "accepts-none",
                    LOG_STR("socket", name_of(listener, room)), LOG_STR("reason", strerror(errnum)),
                    LOG_STR("text", "connections wait until the system has room for them"));
    }
    listener->pause_ms = listener->pause_ms == 0                 ? PAUSE_MIN_MS
                         : listener->pause_ms < PAUSE_MAX_MS / 2 ? 2 * listener->pause_ms
                                                                 : PAUSE_MAX_MS;
    (void)uv_poll_stop(&listener->poll);
    (void)uv_timer_start(&listener->pause, on_pause_over, listener->pause_ms, 0);
}

static void hand_on(struct listener *listener, int fd)
{
    char room[16];

    if (listener->pause_ms > 0) {
        listener->pause_ms = 0;
        log_notice(listener->options.logger, "accepts-again",
                   LOG_STR("socket", name_of(listener, room)));
    }
    listener->options.on_connection(fd, listener->options.userdata);
}

static bool is_of_one_connection(int errnum)
{
    return errnum == ECONNABORTED || errnum == EPROTO || errnum == EINTR;
}

static void on_connections(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    int errnum = -status;
    (void)events;

    for (int i = 0; i < TURN_CONNECTIONS && listener->fd >= 0 && errnum == 0; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_on(listener, fd);
        } else if (!is_of_one_connection(errno)) {
            errnum = errno;
        }
    }
    if (errnum != 0 && errnum != EAGAIN) {
        pause_for(listener, errnum);
    }
}

/* ---- Opening and closing --------------------------------------------------------------------- */

/* Returns 0 or a negative errno, as begin() does. */
static int create(struct listener **ret, const struct listener_options *options, int family)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    int failed = -ENOMEM;

    if (listener) {
        listener->options = *options;
        listener->is_unix = family == AF_UNIX;
        listener->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        failed = listener->fd >= 0 ? 0 : -errno;
    }
    if (failed) {
        free(listener);
        return failed;
    }
    *ret = listener;
    return 0;
}

/* Of a listener that has no handles yet. */
static void discard(struct listener *listener)
{
    (void)close(listener->fd);
    free(listener);
}

static int begin(struct listener *listener)
{
    uv_loop_t *loop = listener->options.loop;
    int failed = listen(listener->fd, listener->options.backlog) == 0 ? 0 : -errno;

    failed = failed ? failed : uv_poll_init(loop, &listener->poll, listener->fd);
    if (failed == 0) {
        (void)uv_timer_init(loop, &listener->pause); /* these cannot fail */
        listener->poll.data = listener->pause.data = listener;
        listener->handles_left = 2;
        (void)uv_poll_start(&listener->poll, UV_READABLE, on_connections);
    }
    return failed;
}

int listener_open_tcp(struct listener **ret, const struct listener_options *options,
                      const struct sockaddr *address)
{
    const int yes = 1, no = 0;
    bool is_ipv6 = address->sa_family == AF_INET6;
    struct listener *listener;
    int failed = create(&listener, options, address->sa_family);

    if (failed != 0) {
        return failed;
    }
    (void)setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (is_ipv6) {
        (void)setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    }
    failed = bind(listener->fd, address,
                  is_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) == 0
                 ? begin(listener)
                 : -errno;
    if (failed != 0) {
        discard(listener);
        return failed;
    }
    *ret = listener;
    return 0;
}

static int fail(const char *path, int errnum, struct baton_error *reterr)
{
    return error_set(reterr, error_from_errno(errnum), "socket %s: %s", path, strerror(errnum));
}

/* A socket on which a process listens is not stale. */
static int check_place(const struct listener *listener, const struct listener_place *place,
                       struct baton_error *reterr)
{
    struct stat about;

    if (connect(listener->fd, (const struct sockaddr *)&listener->address,
                sizeof(listener->address)) == 0 ||
        errno == EAGAIN || errno == EPROTOTYPE) { /* that one, to a socket of datagrams */
        return error_set(reterr, BATON_EBUSY, "socket %s: a process listens there already%s",
                         place->path, place->hint ? place->hint : "");
    }
    if (lstat(place->path, &about) == 0 && !S_ISSOCK(about.st_mode)) {
        return error_set(reterr, BATON_EEXIST, "socket %s: there is a file that is no socket",
                         place->path);
    }
    return BATON_OK;
}

/* Only root and the group's own members may give a file to it. */
static int fail_bound(const struct listener_place *place, int errnum, struct baton_error *reterr)
{
    (void)unlink(place->path);
    if (errnum == EPERM && place->group != (gid_t)-1) {
        return error_set(reterr, error_from_errno(errnum),
                         "socket %s: it cannot be given to group %u, as the user of this process "
                         "is not in it; of a systemd unit, SupplementaryGroups= names the group",
                         place->path, (unsigned)place->group);
    }
    return fail(place->path, errnum, reterr);
}

/* fchmod() of a socket before bind() gives the file its mode from the first moment on. */
static int bind_unix(struct listener *listener, const struct listener_place *place,
                     struct baton_error *reterr)
{
    bool has_group = place->group != (gid_t)-1;
    int failed;

    (void)unlink(place->path);
    if (fchmod(listener->fd, has_group ? 0600 : place->mode) != 0 ||
        bind(listener->fd, (const struct sockaddr *)&listener->address,
             sizeof(listener->address)) != 0) {
        return fail(place->path, errno, reterr);
    }
    if ((has_group && lchown(place->path, (uid_t)-1, place->group) != 0) ||
        chmod(place->path, place->mode) != 0 || lstat(place->path, &listener->about) != 0) {
        return fail_bound(place, errno, reterr);
    }
    failed = begin(listener);
    return failed == 0 ? BATON_OK : fail_bound(place, -failed, reterr);
}

/* Two that come at one time would both find a stale socket, and the second one replace what the
 * first one has made of it. Without a lock it goes on: the folder may not be readable, or a
 * stranger may hold the lock of /tmp. Returns a descriptor, or -1. */
static int lock_folder(const char *path)
{
    const char *end = strrchr(path, '/');
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = ".";
    int fd;

    if (end != NULL) {
        (void)snprintf(folder, sizeof(folder), "%.*s", end == path ? 1 : (int)(end - path), path);
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
            break;
        }
        (void)poll(NULL, 0, 1);
    }
    return fd;
}

int listener_open_unix(struct listener **ret, const struct listener_options *options,
                       const struct listener_place *place, struct baton_error *reterr)
{
    struct listener *listener;
    size_t bytes = strlen(place->path) + 1;
    int code, lock;

    if (bytes > sizeof(listener->address.sun_path)) {
        return error_set(reterr, BATON_ETOOBIG,
                         "socket %s: a Unix socket's path has at most %zu bytes%s", place->path,
                         sizeof(listener->address.sun_path) - 1, place->hint ? place->hint : "");
    }
    code = create(&listener, options, AF_UNIX);
    if (code != 0) {
        return fail(place->path, -code, reterr);
    }
    listener->address.sun_family = AF_UNIX;
    memcpy(listener->address.sun_path, place->path, bytes);
    lock = lock_folder(place->path);
    code = check_place(listener, place, reterr);
    code = code ? code : bind_unix(listener, place, reterr);
    if (lock >= 0) {
        (void)close(lock);
    }
    if (code != BATON_OK) {
        discard(listener);
        return code;
    }
    *ret = listener;
    return BATON_OK;
}

int listener_fd(const struct listener *listener)
{
    return listener->fd;
}

int listener_port(const struct listener *listener)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any = {0}};
    socklen_t bytes = sizeof(address);

    (void)getsockname(listener->fd, &address.any, &bytes);
    return ntohs(address.any.sa_family == AF_INET6  ? address.v6.sin6_port
                 : address.any.sa_family == AF_INET ? address.v4.sin_port
                                                    : 0);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;

    if (--listener->handles_left == 0) {
        if (listener->options.on_closed) {
            listener->options.on_closed(listener->options.userdata);
        }
        free(listener);
    }
}

void listener_end(struct listener *listener)
{
    struct stat now;

    if (!listener || listener->fd < 0) {
        return;
    }
    if (listener->is_unix && lstat(listener->address.sun_path, &now) == 0 &&
        now.st_dev == listener->about.st_dev && now.st_ino == listener->about.st_ino) {
        (void)unlink(listener->address.sun_path);
    }
    uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
    uv_close((uv_handle_t *)&listener->pause, on_handle_closed);
    (void)close(listener->fd);
    listener->fd = -1;
}
