#include "guardian/teller.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { DELIVERY_MAX_MS = 5000, RETRY_MS = 25, STACK_BYTES = 256 * 1024 };

/* One server, and the thread that tells it. */
struct line {
    const struct teller *teller;
    const struct words_server *server;
    int fd; /* -1: not connected or under way */
    instant end;
    pthread_t thread;
    bool has_thread;
};

void teller_init(struct teller *teller)
{
    *teller = (struct teller){0};
    for (size_t i = 0; i < WORDS_SERVERS_MAX; i++) {
        teller->fds[i] = -1;
    }
}

/* How many there are to be told. What the process wrote may be damaged, or even change: each number
 * is read once, and then looked at. */
static uint32_t servers_of(const struct teller *teller)
{
    const struct words *words = teller->words;
    uint32_t count = words && atomic_load(&words->is_whole) == 1 ? words->server_count : 0;

    return count <= WORDS_SERVERS_MAX ? count : 0;
}

/* -1: it failed at once. */
static int dial(const struct words_server *server)
{
    const struct words_server at = *server;
    int one = 1;
    int fd = -1;

    if (at.address_bytes > 0 && at.address_bytes <= sizeof(at.address)) {
        fd = socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only for speed */
    if (connect(fd, (const struct sockaddr *)&at.address, at.address_bytes) != 0 &&
        errno != EINPROGRESS) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

void teller_connect(struct teller *teller)
{
    uint32_t count = servers_of(teller);

    for (uint32_t i = 0; i < count; i++) {
        if (teller->fds[i] < 0) {
            teller->fds[i] = dial(&teller->words->servers[i]);
        }
    }
}

/* Waits for the socket, while there is time. False: not before its end, or it failed. */
static bool wait_for(const struct line *line, short events)
{
    struct pollfd look = {.fd = line->fd, .events = events};
    int64_t left_ms = (instant_since(line->end, clock_now()).ns + 999999) / 1000000;

    return left_ms > 0 && poll(&look, 1, (int)left_ms) == 1 && look.revents & events;
}

static bool send_all(const struct line *line, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(line->fd, data, bytes, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            bytes -= (size_t)sent;
        } else {
            bool may_come = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
            if (!may_come || !wait_for(line, POLLOUT)) {
                return false;
            }
        }
    }
    return true;
}

/* Requests gathered into few writes. */
struct batch {
    const struct line *line;
    size_t used;
    char bytes[4 * WORDS_RENDERED_MAX];
};

static bool flush(struct batch *batch)
{
    bool sent = send_all(batch->line, batch->bytes, batch->used);
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

static bool say_all(const struct line *line)
{
    const struct teller *teller = line->teller;
    const struct words *words = teller->words;
    uint32_t count = atomic_load(&words->slot_count);
    struct batch batch = {.line = line, .used = words->greeting_bytes};

    if (batch.used > sizeof(words->greeting)) {
        return false;
    }
    memcpy(batch.bytes, words->greeting, batch.used);
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
static bool hear_out(const struct line *line)
{
    char ignored[4096];

    for (;;) {
        ssize_t bytes = recv(line->fd, ignored, sizeof(ignored), 0);
        if (bytes == 0) {
            return true;
        }
        if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (bytes < 0 && !wait_for(line, POLLIN)) {
            return false;
        }
    }
}

static void drop(struct line *line)
{
    if (line->fd >= 0) {
        (void)close(line->fd);
    }
    line->fd = -1;
}

static void *deliver(void *argument)
{
    struct line *line = argument;

    while (instant_before(clock_now(), line->end)) {
        line->fd = line->fd >= 0 ? line->fd : dial(line->server);
        if (line->fd >= 0 && say_all(line) && shutdown(line->fd, SHUT_WR) == 0 && hear_out(line)) {
            break;
        }
        drop(line);
        (void)poll(NULL, 0, RETRY_MS);
    }
    drop(line);
    return NULL;
}

/* The last one is told by this thread, and so is whoever gets none of its own. */
void teller_deliver(struct teller *teller)
{
    struct line lines[WORDS_SERVERS_MAX];
    instant end = instant_add(clock_now(), SPAN_MS(DELIVERY_MAX_MS));
    uint32_t count = servers_of(teller);
    pthread_attr_t attributes;
    bool may_part = pthread_attr_init(&attributes) == 0;

    may_part = may_part && pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    for (uint32_t i = 0; i < count; i++) {
        lines[i] = (struct line){.teller = teller,
                                 .server = &teller->words->servers[i],
                                 .fd = teller->fds[i],
                                 .end = end};
        teller->fds[i] = -1;
        lines[i].has_thread =
            may_part && i + 1 < count &&
            pthread_create(&lines[i].thread, &attributes, deliver, &lines[i]) == 0;
    }
    for (uint32_t i = count; i > 0; i--) {
        if (!lines[i - 1].has_thread) {
            (void)deliver(&lines[i - 1]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (lines[i].has_thread) {
            (void)pthread_join(lines[i].thread, NULL);
        }
    }
}
