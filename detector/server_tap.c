/* What comes over our connections, as it was sent.
 *
 * libwebsockets shows a request only when it has taken it apart, and keeps nothing of what it
 * changed (0022). It reads by recv() or, under TLS, by SSL_read(), through the dynamic linker,
 * which finds the ones defined here first; they read on behalf of everybody, and show what came to
 * whoever asked for that descriptor.
 *
 * Each thread asks for itself: nobody else's reading is looked at, and nothing is locked.
 */
#undef _FORTIFY_SOURCE /* it would make recv() inline, and so invisible for libraries */
#include "detector/server_int.h"

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

#define VISIBLE __attribute__((visibility("default")))

static _Thread_local struct {
    struct incoming **of; /* by descriptor; NULL: nobody asked */
    size_t room, used;
} taps;

static bool has_room(size_t fd)
{
    size_t room = fd + 64;
    struct incoming **of;

    if (fd < taps.room) {
        return true;
    }
    of = realloc(taps.of, room * sizeof(struct incoming *));
    if (of == NULL) {
        return false;
    }
    for (size_t i = taps.room; i < room; i++) {
        of[i] = NULL;
    }
    taps.of = of;
    taps.room = room;
    return true;
}

bool server_tap_begin(int fd, struct incoming *incoming)
{
    if (fd < 0 || !has_room((size_t)fd)) {
        return false;
    }
    taps.used += taps.of[fd] == NULL;
    taps.of[fd] = incoming;
    return true;
}

void server_tap_end(int fd, const struct incoming *incoming)
{
    if (fd < 0 || (size_t)fd >= taps.room || taps.of[fd] != incoming) {
        return;
    }
    taps.of[fd] = NULL;
    if (--taps.used == 0) {
        free(taps.of);
        taps.of = NULL;
        taps.room = 0;
    }
}

static void show(int fd, const void *bytes, size_t count)
{
    if (fd >= 0 && (size_t)fd < taps.room && taps.of[fd] != NULL) {
        size_t heads = request_lines_read(&taps.of[fd]->lines, bytes, count);
        frame_heads_read(&taps.of[fd]->frames, (const char *)bytes + heads, count - heads);
    }
}

VISIBLE ssize_t recv(int fd, void *bytes, size_t room, int flags);
VISIBLE int SSL_read(SSL *ssl, void *bytes, int room);

ssize_t recv(int fd, void *bytes, size_t room, int flags)
{
    ssize_t count = recvfrom(fd, bytes, room, flags, NULL, NULL);

    if (count > 0 && (flags & MSG_PEEK) == 0) {
        show(fd, bytes, (size_t)count);
    }
    return count;
}

int SSL_read(SSL *ssl, void *bytes, int room)
{
    static _Thread_local int (*real)(SSL *, void *, int);
    int count;

    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "SSL_read");
    }
    count = real != NULL ? real(ssl, bytes, room) : -1;
    if (count > 0) {
        show(SSL_get_fd(ssl), bytes, (size_t)count);
    }
    return count;
}
