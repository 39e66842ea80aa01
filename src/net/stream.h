/* A byte stream over TCP or a Unix socket on a libuv loop, in plain text or under TLS.
 *
 * Life: stream_connect or stream_accept ──▶ on_open ──▶ on_data … ──▶ on_close, once, always last
 * (also without on_open, when connecting fails). After stream_close only on_close is called; the
 * stream's memory is freed when on_close has returned. The loop's thread only.
 *
 * The program ignores SIGPIPE, or the loop's thread blocks it: then a write to a closed connection
 * is an error.
 *
 * Writes go out at once if the socket takes them; the rest is queued, up to `queue_bytes_max`. A
 * connection whose peer reads too slowly is closed. Data that is of use only while it is fresh goes
 * by stream_write_latest, which does not queue it.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum {
    STREAM_KINDS = 8,          /* of stream_write_latest */
    STREAM_LATEST_BYTES = 128, /* a longer message is written as others are */
};

struct stream; /* opaque */
struct tls;    /* see net/tls.h */

struct stream_callbacks {
    void (*on_open)(struct stream *stream, void *userdata);
    /* Bytes as they come, borrowed during the call. May close the stream. */
    void (*on_data)(struct stream *stream, const void *data, size_t bytes, void *userdata);
    /* The socket has taken all that waited for it. NULL: not needed. */
    void (*on_drain)(struct stream *stream, void *userdata);
    /* The connection is about to be closed, and the system can still be asked about it: once,
     * before on_close. NULL: not needed. */
    void (*on_closing)(struct stream *stream, void *userdata);
    /* code: 0 the peer ended it in order, BATON_ECANCELED it was closed here, BATON_EUNAVAILABLE
     * refused or unreachable, BATON_EIO reset, BATON_EAUTH, BATON_ETOOBIG the queue was full. */
    void (*on_close)(struct stream *stream, int code, const char *reason, void *userdata);
    /* The peer of a Unix socket has passed a descriptor, which the callee closes: before the
     * on_data of the bytes that it came with. NULL: descriptors are refused. */
    void (*on_descriptor)(struct stream *stream, int fd, void *userdata);
};

struct stream_options {
    uv_loop_t *loop;
    struct stream_callbacks callbacks;
    void *userdata;
    size_t queue_bytes_max;
    const struct tls *tls; /* NULL: in the clear; outlives the stream */
    const char *peer_name; /* TLS: the name that the peer's certificate must have; or NULL */
    /* For small messages that must arrive soon: lost data is retransmitted some milliseconds after
     * the round trip (where the kernel can, Linux 6.15), and at even intervals (by default the
     * kernel doubles them), and little waits in the kernel, where it cannot be replaced. */
    bool is_prompt;
    /* Which of a name's addresses is tried first: for one more attempt after an address that did
     * not answer. */
    unsigned turn;
};

/* host: a numeric address, or a name whose addresses are tried in turn. BATON_EINVAL, BATON_ENOMEM;
 * on_close reports other failures. */
int stream_connect(struct stream **ret, const struct stream_options *options, const char *host,
                   int port, struct baton_error *reterr);

/* The same to a Unix socket; path: at most 107 bytes. */
int stream_connect_unix(struct stream **ret, const struct stream_options *options, const char *path,
                        struct baton_error *reterr);

/* Of a connection that a listener has accepted. `fd` is the stream's, also when this fails. */
int stream_accept(struct stream **ret, const struct stream_options *options, int fd, bool is_unix,
                  struct baton_error *reterr);

/* The kernel retransmits what a packet of this socket, or of one that it accepts, has lost, after
 * some milliseconds. Before the first answer of the peer: the kernel's first guess would go down
 * over a dozen messages only. */
void stream_hurry(int fd);

/* Begins TLS on an accepted stream, before anything is written to it; until then all is plain text.
 * `first` are the bytes that were read so far. */
int stream_start_tls(struct stream *stream, const struct tls *tls, const void *first, size_t bytes);

/* Copies. BATON_ETOOBIG, BATON_ECLOSED, BATON_EIO: nothing was sent, the stream is closing. */
int stream_write(struct stream *stream, const void *data, size_t bytes);

/* Writes data of which only the latest version matters: while earlier writes wait, it is kept back,
 * and later data of its kind (below STREAM_KINDS) replaces it, unless a part of it was sent. Other
 * writes may overtake it, and it is lost if the stream is closed. */
int stream_write_latest(struct stream *stream, unsigned kind, const void *data, size_t bytes);

void stream_close(struct stream *stream);

/* Ends our direction once the socket has taken all that was written; reading goes on. */
void stream_shutdown(struct stream *stream);
/* While paused, nothing is read, and so the end of the peer is not noticed either. */
void stream_pause(struct stream *stream, bool is_paused);

/* The peer has shown a certificate for this name: never without TLS, nor with a shared key. */
bool stream_proves(const struct stream *stream, const char *name);
/* Whether the socket has not yet taken all that was written. */
bool stream_has_backlog(const struct stream *stream);
/* How many bytes of it; under TLS, encrypted ones. */
size_t stream_backlog(const struct stream *stream);
/* Bytes that were written so far, and how many of them the peer's system has acknowledged. Under
 * TLS, encrypted ones. The second is a system call. */
uint64_t stream_written(const struct stream *stream);
uint64_t stream_arrived(const struct stream *stream);
/* The socket's descriptor; -1: it is closing. */
int stream_fd(const struct stream *stream);
/* The addresses of its host's name are being looked up. */
bool stream_is_resolving(const struct stream *stream);
/* The peer's machine has not answered yet. A system call, as the next one is. */
bool stream_is_connecting(const struct stream *stream);
/* Whether sent data was retransmitted and still is not acknowledged: the network loses packets, or
 * is cut. Proves nothing about the peer. */
bool stream_is_stuck(const struct stream *stream);
/* Whether sent data waits longer for its acknowledgement than a round trip takes (at least 200 ms,
 * unless is_prompt): it was lost, or the peer's system has no room for it. */
bool stream_is_overdue(const struct stream *stream);
/* For on_close: the peer's machine reported that no process listens there. */
bool stream_was_refused(const struct stream *stream);
/* Bytes have arrived that no on_data has seen. A system call. */
bool stream_has_unread(const struct stream *stream);
/* Both ends are on this machine's loopback. */
bool stream_is_loopback(const struct stream *stream);
/* Of the accepted or connected peer, "address:port" or a socket's path, for people. */
const char *stream_peer_address(const struct stream *stream);

#endif
