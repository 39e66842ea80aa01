#include "net/stream.h"

#include "base/addresses.h"
#include "base/buffer.h"
#include "net/tls_int.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ_BYTES = 65536, KEEPALIVE_S = 15, USER_TIMEOUT_MS = 30000, UNSENT_BYTES_MAX = 16384 };

/* TCP_RTO_MIN_US of Linux 6.15, which Debian 12's headers do not have: so long after the round trip
 * that was measured, a packet counts as lost. 200 ms where the kernel does not know it. It counts
 * in ticks, and refuses less than two: this is the least at 250 Hz. */
enum { RETRANSMIT_OPTION = 45, RETRANSMIT_US = 5000 };

/* Kept back until the socket takes more. */
struct latest {
    size_t bytes; /* 0: none */
    uint8_t data[STREAM_LATEST_BYTES];
};

struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    bool is_pipe; /* a Unix socket */
    uv_connect_t connecting;
    uv_shutdown_t ending;
    bool is_ending;               /* nothing more is written */
    struct addresses *resolving;  /* of a name, under way; NULL: not */
    struct addrinfo *found;       /* of a name; NULL: none */
    const struct addrinfo *first; /* of these, the one that was tried first */
    const struct addrinfo *other; /* and the one to try next; NULL: none is left */
    bool is_redialing;            /* the handle is being closed, for the next address */
    bool has_redialed;
    bool was_refused; /* by every address */
    bool is_open;
    bool is_closing;
    int broken; /* error of the latest write; data that the peer sent before is still read */
    struct stream_options options;
    struct tls_session *session;
    struct buffer clear;  /* decrypted, to hand on */
    struct buffer cipher; /* encrypted, to send */
    size_t queued_bytes;
    uint64_t written_bytes; /* so far, with those that are queued */
    struct latest latest[STREAM_KINDS];
    int port;
    int close_code;
    char close_reason[352];
    char peer_name_wanted[256];
    char peer_address[128];
    bool is_loopback;
    /* Never cleared: pages of it that no read has filled cost nothing, at birth or at death. */
    char read_space[];
};

struct write_request {
    uv_write_t request;
    size_t bytes;
    uint8_t data[];
};

static struct stream *stream_new(const struct stream_options *options, bool is_pipe)
{
    struct stream *stream = malloc(sizeof(*stream) + READ_BYTES);

    if (!stream) {
        return NULL;
    }
    memset(stream, 0, sizeof(*stream));
    stream->options = *options;
    if (options->peer_name) {
        (void)snprintf(stream->peer_name_wanted, sizeof(stream->peer_name_wanted), "%s",
                       options->peer_name);
    }
    buffer_init(&stream->clear, options->queue_bytes_max + READ_BYTES);
    buffer_init(&stream->cipher, options->queue_bytes_max + READ_BYTES);
    stream->is_pipe = is_pipe;
    if ((is_pipe ? uv_pipe_init(options->loop, &stream->socket.pipe,
                                options->callbacks.on_descriptor != NULL)
                 : uv_tcp_init(options->loop, &stream->socket.tcp)) != 0) {
        free(stream);
        return NULL;
    }
    stream->socket.handle.data = stream;
    return stream;
}

static void handle_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    stream->options.callbacks.on_close(stream, stream->close_code, stream->close_reason,
                                       stream->options.userdata);
    tls_session_free(stream->session);
    uv_freeaddrinfo(stream->found);
    buffer_fini(&stream->clear);
    buffer_fini(&stream->cipher);
    free(stream);
}

static void close_with(struct stream *stream, int code, const char *reason)
{
    if (stream->is_closing) {
        return;
    }
    stream->is_closing = true;
    stream->close_code = code;
    (void)snprintf(stream->close_reason, sizeof(stream->close_reason), "%s", reason);
    if (stream->resolving != NULL) {
        addresses_leave(stream->resolving);
        stream->resolving = NULL;
    }
    if (stream->options.callbacks.on_closing) {
        stream->options.callbacks.on_closing(stream, stream->options.userdata);
    }
    if (!stream->is_redialing) {
        uv_close(&stream->socket.handle, handle_closed);
    }
}

void stream_close(struct stream *stream)
{
    close_with(stream, BATON_ECANCELED, "closed");
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A peer that refuses this node sends its reason and closes, which often shows first as a failed
 * write. So reading goes on to the end of the data, and the reason is not lost. */
static void write_failed(struct stream *stream, int status)
{
    if (status == UV_ECONNRESET || status == UV_EPIPE) {
        stream->broken = status;
    } else {
        close_with(stream, BATON_EIO, uv_strerror(status));
    }
}

static void send_latest(struct stream *stream);

static void written(uv_write_t *request, int status)
{
    struct write_request *write = (struct write_request *)request;
    struct stream *stream = request->handle->data;

    stream->queued_bytes -= write->bytes;
    stream->written_bytes -= status != 0 ? write->bytes : 0;
    free(write);
    if (status != 0 && status != UV_ECANCELED) {
        write_failed(stream, status);
    } else if (!stream->is_closing) {
        send_latest(stream);
        if (stream->queued_bytes == 0 && stream->options.callbacks.on_drain) {
            stream->options.callbacks.on_drain(stream, stream->options.userdata);
        }
    }
}

static int queue(struct stream *stream, const uint8_t *data, size_t bytes)
{
    struct write_request *write;
    uv_buf_t piece;

    if (stream->queued_bytes + bytes > stream->options.queue_bytes_max) {
        close_with(stream, BATON_ETOOBIG, "the peer reads too slowly");
        return BATON_ETOOBIG;
    }
    write = malloc(sizeof(*write) + bytes);
    if (!write) {
        close_with(stream, BATON_ENOMEM, "out of memory");
        return BATON_ENOMEM;
    }
    memcpy(write->data, data, bytes);
    write->bytes = bytes;
    piece = uv_buf_init((char *)write->data, (unsigned)bytes);
    stream->queued_bytes += bytes;
    if (uv_write(&write->request, &stream->socket.stream, &piece, 1, written) != 0) {
        stream->queued_bytes -= bytes;
        free(write);
        close_with(stream, BATON_EIO, "write failed");
        return BATON_EIO;
    }
    stream->written_bytes += bytes;
    return BATON_OK;
}

static int write_raw(struct stream *stream, const uint8_t *data, size_t bytes)
{
    size_t sent = 0;

    if (stream->queued_bytes == 0) {
        uv_buf_t piece = uv_buf_init((char *)data, (unsigned)bytes);
        int result = uv_try_write(&stream->socket.stream, &piece, 1);
        if (result < 0 && result != UV_EAGAIN) {
            write_failed(stream, result);
            return BATON_EIO;
        }
        sent = result > 0 ? (size_t)result : 0;
        stream->written_bytes += sent;
    }
    return sent < bytes ? queue(stream, data + sent, bytes - sent) : BATON_OK;
}

static int flush_cipher(struct stream *stream)
{
    int r = BATON_OK;

    if (stream->cipher.failed) {
        close_with(stream, BATON_ENOMEM, "out of memory");
        return BATON_ENOMEM;
    }
    if (stream->cipher.bytes > 0) {
        r = write_raw(stream, stream->cipher.data, stream->cipher.bytes);
    }
    buffer_clear(&stream->cipher);
    return r;
}

int stream_write(struct stream *stream, const void *data, size_t bytes)
{
    if (stream->is_closing || !stream->is_open || stream->broken != 0 || stream->is_ending) {
        return BATON_ECLOSED;
    }
    if (!stream->session) {
        return write_raw(stream, data, bytes);
    }
    if (tls_session_send(stream->session, data, bytes, &stream->cipher) != BATON_OK) {
        close_with(stream, BATON_EIO, "TLS failed");
        return BATON_EIO;
    }
    return flush_cipher(stream);
}

int stream_write_latest(struct stream *stream, unsigned kind, const void *data, size_t bytes)
{
    struct latest *latest = &stream->latest[kind];

    if (stream->queued_bytes == 0 || bytes > sizeof(latest->data)) {
        return stream_write(stream, data, bytes);
    }
    if (stream->is_closing || stream->broken != 0) {
        return BATON_ECLOSED;
    }
    memcpy(latest->data, data, bytes);
    latest->bytes = bytes;
    return BATON_OK;
}

static void ended(uv_shutdown_t *request, int status)
{
    (void)request; /* a failure shows when the peer's direction ends, too */
    (void)status;
}

void stream_shutdown(struct stream *stream)
{
    if (stream->is_closing || stream->is_ending || !stream->is_open) {
        return;
    }
    if (stream->session) {
        tls_session_end(stream->session, &stream->cipher);
        (void)flush_cipher(stream);
    }
    stream->is_ending = true;
    if (uv_shutdown(&stream->ending, &stream->socket.stream, ended) != 0) {
        close_with(stream, BATON_EIO, "shutdown failed");
    }
}

/* Something was taken from the queue. Where more is left, these get in line now, or a queue that
 * is never empty would keep them back for ever; where nothing is left they go until the socket is
 * full again. */
static void send_latest(struct stream *stream)
{
    bool was_empty = stream->queued_bytes == 0;

    for (size_t kind = 0; kind < STREAM_KINDS; kind++) {
        struct latest *latest = &stream->latest[kind];
        size_t bytes = latest->bytes;
        if (was_empty && stream->queued_bytes > 0) {
            return;
        }
        latest->bytes = 0;
        if (bytes > 0 && stream_write(stream, latest->data, bytes) != BATON_OK) {
            return;
        }
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void opened(struct stream *stream)
{
    stream->is_open = true;
    stream->options.callbacks.on_open(stream, stream->options.userdata);
}

static void hand_on(struct stream *stream, const void *data, size_t bytes)
{
    if (bytes > 0 && !stream->is_closing) {
        stream->options.callbacks.on_data(stream, data, bytes, stream->options.userdata);
    }
}

static void receive_tls(struct stream *stream, const void *data, size_t bytes)
{
    const char *reason = "TLS failed";
    bool was_open = stream->is_open;
    int r =
        tls_session_receive(stream->session, data, bytes, &stream->clear, &stream->cipher, &reason);

    int flushed = flush_cipher(stream);

    if (r != BATON_OK || stream->clear.failed) {
        close_with(stream, r != BATON_OK ? BATON_EAUTH : BATON_ETOOBIG, reason);
        return;
    }
    if (flushed != BATON_OK) {
        return;
    }
    if (!was_open && tls_session_is_open(stream->session)) {
        opened(stream);
    }
    hand_on(stream, stream->clear.data, stream->clear.bytes);
    buffer_clear(&stream->clear);
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct stream *stream = handle->data;
    (void)suggested;
    *ret = uv_buf_init(stream->read_space, READ_BYTES);
}

static void carrier_closed(uv_handle_t *carrier)
{
    free(carrier);
}

/* libuv hands a descriptor on as a handle, whatever it is. -1: that failed. */
static int take_descriptor(struct stream *stream)
{
    uv_pipe_t *carrier = malloc(sizeof(*carrier));
    uv_os_fd_t fd;
    int ret = -1;

    if (!carrier || uv_pipe_init(stream->options.loop, carrier, 0) != 0) {
        free(carrier);
        return -1;
    }
    if (uv_accept(&stream->socket.stream, (uv_stream_t *)carrier) == 0 &&
        uv_fileno((uv_handle_t *)carrier, &fd) == 0) {
        ret = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    uv_close((uv_handle_t *)carrier, carrier_closed);
    return ret;
}

static void take_descriptors(struct stream *stream)
{
    int count = uv_pipe_pending_count(&stream->socket.pipe);

    for (; count > 0; count--) {
        int fd = take_descriptor(stream);

        if (fd >= 0 && stream->is_closing) {
            (void)close(fd);
        } else if (fd >= 0) {
            stream->options.callbacks.on_descriptor(stream, fd, stream->options.userdata);
        }
    }
}

static void received(uv_stream_t *handle, ssize_t bytes, const uv_buf_t *buffer)
{
    struct stream *stream = handle->data;

    if (stream->is_pipe && stream->options.callbacks.on_descriptor) {
        take_descriptors(stream);
    }
    if (bytes < 0 && stream->broken != 0) {
        close_with(stream, BATON_EIO, uv_strerror(stream->broken));
    } else if (bytes == UV_EOF) {
        close_with(stream, BATON_OK, "ended by the peer");
    } else if (bytes < 0) {
        close_with(stream, BATON_EIO, uv_strerror((int)bytes));
    } else if (stream->session) {
        receive_tls(stream, buffer->base, (size_t)bytes);
    } else {
        hand_on(stream, buffer->base, (size_t)bytes);
    }
}

void stream_pause(struct stream *stream, bool is_paused)
{
    if (stream->is_closing) {
        return;
    }
    if (is_paused) {
        (void)uv_read_stop(&stream->socket.stream);
    } else {
        (void)uv_read_start(&stream->socket.stream, give_space, received);
    }
}

/* ---- Beginnings ------------------------------------------------------------------------------ */

static void note_address(struct stream *stream)
{
    struct sockaddr_storage address;
    int length = sizeof(address);
    char host[64] = "?";
    int port = 0;

    if (stream->is_pipe) {
        stream->is_loopback = true;
        return;
    }
    if (uv_tcp_getpeername(&stream->socket.tcp, (struct sockaddr *)&address, &length) != 0) {
        return;
    }
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        (void)uv_ip4_name(v4, host, sizeof(host));
        port = ntohs(v4->sin_port);
        stream->is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        (void)uv_ip6_name(v6, host, sizeof(host));
        port = ntohs(v6->sin6_port);
        stream->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    (void)snprintf(stream->peer_address, sizeof(stream->peer_address),
                   address.ss_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host, port);
}

void stream_hurry(int fd)
{
    const int retransmit_us = RETRANSMIT_US;

    (void)setsockopt(fd, IPPROTO_TCP, RETRANSMIT_OPTION, &retransmit_us, sizeof(retransmit_us));
}

static void tune(struct stream *stream)
{
    const int timeout_ms = USER_TIMEOUT_MS;
    const int unsent_bytes = UNSENT_BYTES_MAX;
    const int yes = 1;
    uv_os_fd_t fd;

    if (stream->is_pipe) {
        return;
    }
    (void)uv_tcp_nodelay(&stream->socket.tcp, 1);
    (void)uv_tcp_keepalive(&stream->socket.tcp, 1, KEEPALIVE_S);
    if (uv_fileno(&stream->socket.handle, &fd) != 0) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    if (stream->options.is_prompt) {
        stream_hurry(fd);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &yes, sizeof(yes));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof(unsent_bytes));
    }
}

static int begin(struct stream *stream, bool is_client)
{
    tune(stream);
    note_address(stream);
    if (stream->options.tls) {
        stream->session =
            tls_session_new(stream->options.tls, is_client,
                            stream->peer_name_wanted[0] ? stream->peer_name_wanted : NULL);
        if (!stream->session) {
            return BATON_ENOMEM;
        }
    }
    if (uv_read_start(&stream->socket.stream, give_space, received) != 0) {
        return BATON_EIO;
    }
    if (!stream->session) {
        opened(stream);
    } else if (is_client) {
        receive_tls(stream, NULL, 0);
    }
    return BATON_OK;
}

static void connect_failed(struct stream *stream, int status);

static void connected(uv_connect_t *request, int status)
{
    struct stream *stream = request->handle->data;

    if (status != 0) {
        connect_failed(stream, status);
    } else if (!stream->is_closing && begin(stream, true) != BATON_OK) {
        close_with(stream, BATON_ENOMEM, "out of memory");
    }
}

static int dial(struct stream *stream, const struct sockaddr *address)
{
    int result = uv_tcp_connect(&stream->connecting, &stream->socket.tcp, address, connected);

    if (result == 0 && stream->options.is_prompt) {
        stream_hurry(stream_fd(stream));
    }
    return result;
}

static void dial_next(struct stream *stream)
{
    const struct addrinfo *address = stream->other;
    int result;

    stream->other = address->ai_next != NULL ? address->ai_next : stream->found;
    stream->other = stream->other != stream->first ? stream->other : NULL;
    result = dial(stream, address->ai_addr);
    if (result != 0) {
        connect_failed(stream, result);
    }
}

/* The next address may be of the other family, so that it needs a new socket. */
static void redial(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    stream->is_redialing = false;
    if (stream->is_closing) {
        handle_closed(handle);
        return;
    }
    (void)uv_tcp_init(stream->options.loop, &stream->socket.tcp); /* it has no socket yet */
    stream->socket.handle.data = stream;
    stream->has_redialed = true;
    dial_next(stream);
}

static void connect_failed(struct stream *stream, int status)
{
    stream->was_refused =
        status == UV_ECONNREFUSED && (stream->was_refused || !stream->has_redialed);
    if (stream->is_closing || stream->other == NULL) {
        close_with(stream, BATON_EUNAVAILABLE, uv_strerror(status));
        return;
    }
    stream->is_redialing = true;
    uv_close(&stream->socket.handle, redial);
}

static void resolved(void *userdata, struct addrinfo *found, const char *fault)
{
    struct stream *stream = userdata;

    stream->resolving = NULL;
    stream->found = found;
    if (found == NULL) {
        close_with(stream, BATON_EUNAVAILABLE, fault);
        return;
    }
    stream->first = found;
    for (unsigned turn = stream->options.turn; turn > 0; turn--) {
        stream->first = stream->first->ai_next != NULL ? stream->first->ai_next : found;
    }
    stream->other = stream->first;
    dial_next(stream);
}

int stream_connect(struct stream **ret, const struct stream_options *options, const char *host,
                   int port, struct baton_error *reterr)
{
    struct stream *stream = stream_new(options, false);
    struct sockaddr_storage address;
    int result;

    if (!stream) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a connection");
    }
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)&address) == 0 ||
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)&address) == 0) {
        result = dial(stream, (const struct sockaddr *)&address);
    } else {
        result = addresses_ask(&stream->resolving, options->loop, host, port, resolved, stream);
    }
    if (result != 0) {
        close_with(stream, BATON_EUNAVAILABLE, uv_strerror(result));
    }
    *ret = stream; /* a failure comes by on_close, like every other */
    return BATON_OK;
}

int stream_connect_unix(struct stream **ret, const struct stream_options *options, const char *path,
                        struct baton_error *reterr)
{
    size_t room = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    struct stream *stream;

    if (strlen(path) > room) { /* libuv would cut it */
        return error_set(reterr, BATON_EINVAL, "Unix socket %.40s…: a path has at most %zu bytes",
                         path, room);
    }
    stream = stream_new(options, true);
    if (!stream) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a connection");
    }
    (void)snprintf(stream->peer_address, sizeof(stream->peer_address), "%s", path);
    uv_pipe_connect(&stream->connecting, &stream->socket.pipe, path, connected);
    *ret = stream;
    return BATON_OK;
}

int stream_accept(struct stream **ret, const struct stream_options *options, int fd, bool is_unix,
                  struct baton_error *reterr)
{
    struct stream *stream = stream_new(options, is_unix);
    int failed;

    if (!stream) {
        (void)close(fd);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a connection");
    }
    *ret = stream;
    failed =
        is_unix ? uv_pipe_open(&stream->socket.pipe, fd) : uv_tcp_open(&stream->socket.tcp, fd);
    if (failed != 0) {
        (void)close(fd);
    }
    if (failed != 0 || begin(stream, false) != BATON_OK) {
        close_with(stream, BATON_EIO, "accept failed");
    }
    return BATON_OK;
}

int stream_start_tls(struct stream *stream, const struct tls *tls, const void *first, size_t bytes)
{
    stream->session = tls_session_new(tls, false, NULL);
    if (!stream->session) {
        close_with(stream, BATON_ENOMEM, "out of memory");
        return BATON_ENOMEM;
    }
    stream->is_open = false;
    receive_tls(stream, first, bytes);
    return BATON_OK;
}

bool stream_proves(const struct stream *stream, const char *name)
{
    return stream->session && tls_session_proves(stream->session, name);
}

bool stream_has_backlog(const struct stream *stream)
{
    return stream->queued_bytes > 0;
}

size_t stream_backlog(const struct stream *stream)
{
    return stream->queued_bytes;
}

uint64_t stream_written(const struct stream *stream)
{
    return stream->written_bytes;
}

uint64_t stream_arrived(const struct stream *stream)
{
    uint64_t taken = /* by our system */
        stream->written_bytes - uv_stream_get_write_queue_size(&stream->socket.stream);
    int left;

    return ioctl(stream_fd(stream), TIOCOUTQ, &left) == 0 ? taken - (uint64_t)left : 0;
}

int stream_fd(const struct stream *stream)
{
    uv_os_fd_t fd;

    return uv_fileno(&stream->socket.handle, &fd) == 0 ? fd : -1;
}

/* Returns zeros if the kernel has no such information. */
static struct tcp_info tcp_info_of(const struct stream *stream)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info);
    uv_os_fd_t fd;

    if (!stream->is_pipe && !stream->is_closing && uv_fileno(&stream->socket.handle, &fd) == 0) {
        (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
    }
    return info;
}

/* Asks the kernel: a delayed loop may not have read the answer yet. */
bool stream_is_resolving(const struct stream *stream)
{
    return stream->resolving != NULL;
}

bool stream_is_connecting(const struct stream *stream)
{
    return tcp_info_of(stream).tcpi_state == TCP_SYN_SENT;
}

bool stream_is_stuck(const struct stream *stream)
{
    return tcp_info_of(stream).tcpi_retransmits > 0;
}

/* The kernel backs off after it has sent data again, and after it has asked for a window. */
bool stream_is_overdue(const struct stream *stream)
{
    struct tcp_info info = tcp_info_of(stream);

    return info.tcpi_retransmits > 0 || info.tcpi_backoff > 0;
}

bool stream_was_refused(const struct stream *stream)
{
    return stream->was_refused;
}

bool stream_has_unread(const struct stream *stream)
{
    int bytes = 0;

    return ioctl(stream_fd(stream), FIONREAD, &bytes) == 0 && bytes > 0;
}

bool stream_is_loopback(const struct stream *stream)
{
    return stream->is_loopback;
}

const char *stream_peer_address(const struct stream *stream)
{
    return stream->peer_address;
}
