#include "guardian/sender.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

enum {
    TRIES_MAX = 6,
    RETRY_MS = 25,          /* doubled with each try */
    SPARE_MS = 10,          /* after the first dial; more than a round trip in one place */
    DELIVERY_MAX_MS = 5000, /* all peers and tries together */
};

static void drop(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

void sender_clear(struct sender *sender)
{
    for (size_t i = 0; i < sender->count; i++) {
        drop(&sender->peers[i].fd);
        drop(&sender->peers[i].spare);
    }
    sender->count = 0;
}

/* One of the two connections has ended. */
static void fail(struct sender_peer *peer, int *fd)
{
    drop(fd);
    if (peer->fd < 0) {
        peer->fd = peer->spare;
        peer->spare = -1;
    }
    if (peer->fd < 0) {
        peer->tries++;
        peer->is_done = peer->tries >= TRIES_MAX;
        peer->retry_at_ns = instant_add(clock_now(), SPAN_MS(RETRY_MS << peer->tries)).ns;
    }
}

static void dial(struct sender_peer *peer, int *fd)
{
    int one = 1;

    *fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (*fd < 0) {
        fail(peer, fd);
        return;
    }
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only for speed */
    if (connect(*fd, (const struct sockaddr *)&peer->address, peer->address_bytes) != 0 &&
        errno != EINPROGRESS) {
        fail(peer, fd);
    }
}

static void dial_if_due(struct sender_peer *peer)
{
    int64_t now_ns = clock_now().ns;

    if (!peer->is_done && peer->fd < 0 && now_ns >= peer->retry_at_ns) {
        peer->spare_at_ns = now_ns + SPAN_MS(SPARE_MS).ns;
        dial(peer, &peer->fd);
    }
}

static void dial_spare_if_due(struct sender_peer *peer)
{
    if (!peer->is_done && peer->fd >= 0 && clock_now().ns >= peer->spare_at_ns) {
        peer->spare_at_ns = INT64_MAX;
        dial(peer, &peer->spare);
    }
}

/* Peers are served in the order of the array. */
static void heir_to_front(struct sender *sender, uint64_t heir)
{
    for (size_t i = 1; i < sender->count; i++) {
        if (sender->peers[i].node == heir) {
            struct sender_peer first = sender->peers[0];
            sender->peers[0] = sender->peers[i];
            sender->peers[i] = first;
        }
    }
}

void sender_connect(struct sender *sender, uint64_t heir)
{
    heir_to_front(sender, heir);
    for (size_t i = 0; i < sender->count; i++) {
        dial_if_due(&sender->peers[i]);
    }
}

static void send_frame(struct sender_peer *peer, int *fd, const uint8_t *frame)
{
    if (peer->is_done || *fd < 0) {
        return;
    }
    if (send(*fd, frame, CERTIFICATE_BYTES, MSG_NOSIGNAL) == CERTIFICATE_BYTES) {
        /* Ends our side only: closing with unread input would send a reset, which may overtake the
         * frame. */
        (void)shutdown(*fd, SHUT_WR);
        peer->is_done = true;
    } else if (errno != EAGAIN) { /* still connecting: POLLOUT follows */
        fail(peer, fd);
    }
}

static bool is_done(const struct sender *sender)
{
    for (size_t i = 0; i < sender->count; i++) {
        if (!sender->peers[i].is_done) {
            return false;
        }
    }
    return true;
}

/* When the peer needs the next dial; INT64_MAX: not before something happens. */
static int64_t next_dial_ns(const struct sender_peer *peer)
{
    return peer->is_done ? INT64_MAX : peer->fd < 0 ? peer->retry_at_ns : peer->spare_at_ns;
}

/* Sends on each connection that is established, then waits until something changes. On one host
 * connect() succeeds at once: the first peer has its frame before the second is dialled. */
static void deliver_round(struct sender *sender, const uint8_t *frame, int64_t end_ns)
{
    struct pollfd polls[2 * GUARDIAN_PEERS_MAX];
    int64_t wake_ns = end_ns;

    for (size_t i = 0; i < sender->count; i++) {
        struct sender_peer *peer = &sender->peers[i];
        dial_if_due(peer);
        send_frame(peer, &peer->spare, frame);
        send_frame(peer, &peer->fd, frame);
        dial_spare_if_due(peer);
        wake_ns = next_dial_ns(peer) < wake_ns ? next_dial_ns(peer) : wake_ns;
        polls[2 * i] = (struct pollfd){.fd = peer->is_done ? -1 : peer->fd, .events = POLLOUT};
        polls[2 * i + 1] =
            (struct pollfd){.fd = peer->is_done ? -1 : peer->spare, .events = POLLOUT};
    }
    if (is_done(sender)) {
        return;
    }
    int64_t wait_ms = (wake_ns - clock_now().ns + 999999) / 1000000;
    (void)poll(polls, 2 * sender->count, wait_ms > 0 ? (int)wait_ms : 0);
    for (size_t i = 0; i < sender->count; i++) {
        struct sender_peer *peer = &sender->peers[i];
        if (polls[2 * i + 1].fd >= 0 && polls[2 * i + 1].revents & (POLLERR | POLLHUP)) {
            fail(peer, &peer->spare);
        }
        if (polls[2 * i].fd >= 0 && polls[2 * i].revents & (POLLERR | POLLHUP)) {
            fail(peer, &peer->fd);
        }
    }
}

/* A failure is ignored: the connections deliver the frame. */
static void send_datagrams(const struct sender *sender, const uint8_t *frame)
{
    for (size_t i = 0; i < sender->count; i++) {
        const struct sender_peer *peer = &sender->peers[i];
        int fd = socket(peer->address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
            (void)sendto(fd, frame, CERTIFICATE_BYTES, MSG_NOSIGNAL,
                         (const struct sockaddr *)&peer->address, peer->address_bytes);
            (void)close(fd);
        }
    }
}

void sender_deliver(struct sender *sender, const struct certificate *certificate)
{
    uint8_t frame[CERTIFICATE_BYTES];
    int64_t end_ns = instant_add(clock_now(), SPAN_MS(DELIVERY_MAX_MS)).ns;

    certificate_encode(frame, certificate);
    heir_to_front(sender, certificate->heir);
    send_datagrams(sender, frame);
    while (!is_done(sender) && clock_now().ns < end_ns) {
        deliver_round(sender, frame, end_ns);
    }
}
