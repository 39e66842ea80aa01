#include "guardian/teller.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { DELIVERY_MAX_MS = 5000, RETRY_MS = 25 };

static void drop(struct teller *teller)
{
    if (teller->fd >= 0) {
        (void)close(teller->fd);
    }
    teller->fd = -1;
}

static bool has_words(const struct teller *teller)
{
    const struct words *words = teller->words;

    return words && atomic_load(&words->is_whole) == 1 && words->address_bytes > 0 &&
           words->address_bytes <= sizeof(words->address) &&
           words->greeting_bytes <= sizeof(words->greeting);
}

void teller_connect(struct teller *teller)
{
    const struct words *words = teller->words;
    int one = 1;

    if (teller->fd >= 0 || !has_words(teller)) {
        return;
    }
    teller->fd = socket(words->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (teller->fd < 0) {
        return;
    }
    (void)setsockopt(teller->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only for speed */
    if (connect(teller->fd, (const struct sockaddr *)&words->address, words->address_bytes) != 0 &&
        errno != EINPROGRESS) {
        drop(teller);
    }
}

/* Waits for the socket until `end`. False: not before, or it failed. */
static bool wait_for(const struct teller *teller, short events, instant end)
{
    struct pollfd look = {.fd = teller->fd, .events = events};
    int64_t left_ms = (instant_since(end, clock_now()).ns + 999999) / 1000000;

    return left_ms > 0 && poll(&look, 1, (int)left_ms) == 1 && look.revents & events;
}

static bool send_all(const struct teller *teller, const char *data, size_t bytes, instant end)
{
    while (bytes > 0) {
        ssize_t sent = send(teller->fd, data, bytes, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            bytes -= (size_t)sent;
        } else {
            bool may_come = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
            if (!may_come || !wait_for(teller, POLLOUT, end)) {
                return false;
            }
        }
    }
    return true;
}

/* Requests gathered into few writes. */
struct batch {
    const struct teller *teller;
    instant end;
    size_t used;
    char bytes[4 * WORDS_RENDERED_MAX];
};

static bool flush(struct batch *batch)
{
    bool sent = send_all(batch->teller, batch->bytes, batch->used, batch->end);
    batch->used = 0;
    return sent;
}

static bool say(struct batch *batch, const struct words_text *text, const char *name,
                uint64_t epoch)
{
    if (sizeof(batch->bytes) - batch->used < WORDS_RENDERED_MAX && !flush(batch)) {
        return false;
    }
    batch->used += words_render(batch->bytes + batch->used, WORDS_RENDERED_MAX, text, name, epoch);
    return true;
}

static bool say_all(const struct teller *teller, instant end)
{
    static struct batch batch;
    const struct words *words = teller->words;
    uint32_t count = atomic_load(&words->slot_count);

    batch = (struct batch){.teller = teller, .end = end};
    memcpy(batch.bytes, words->greeting, words->greeting_bytes);
    batch.used = words->greeting_bytes;
    count = count < teller->slots_max ? count : teller->slots_max;
    /* Leases before seats: somebody waits for them. */
    for (uint32_t i = 0; i < count; i++) {
        const struct words_slot *slot = &words->slots[i];
        uint64_t epoch = atomic_load(&slot->epoch);
        if (atomic_load(&slot->is_used) == 1 && epoch > 0 &&
            !say(&batch, &words->lease, slot->name, epoch)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct words_slot *slot = &words->slots[i];
        if (atomic_load(&slot->is_used) == 1 && !say(&batch, &words->seat, slot->name, 0)) {
            return false;
        }
    }
    return flush(&batch);
}

/* Its answers are read to the end: a socket that is closed with input unread is reset, and what it
 * sent may be lost with it. */
static bool hear_out(const struct teller *teller, instant end)
{
    char ignored[4096];

    for (;;) {
        ssize_t bytes = recv(teller->fd, ignored, sizeof(ignored), 0);
        if (bytes == 0) {
            return true;
        }
        if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (bytes < 0 && !wait_for(teller, POLLIN, end)) {
            return false;
        }
    }
}

void teller_deliver(struct teller *teller)
{
    instant end = instant_add(clock_now(), SPAN_MS(DELIVERY_MAX_MS));

    while (has_words(teller) && instant_before(clock_now(), end)) {
        teller_connect(teller);
        if (teller->fd >= 0 && say_all(teller, end) && shutdown(teller->fd, SHUT_WR) == 0 &&
            hear_out(teller, end)) {
            break;
        }
        drop(teller);
        (void)poll(NULL, 0, RETRY_MS);
    }
    drop(teller);
}
