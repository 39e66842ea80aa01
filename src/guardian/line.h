/* A connection of the guardian's to one server, in the clear or in TLS, with a deadline for all of
 * it. Only one thread at a time.
 */
#ifndef GUARDIAN_LINE_H
#define GUARDIAN_LINE_H

#include "base/clock.h"
#include "guardian/secure.h"
#include "guardian/words.h"

struct line {
    const struct words_server *server;
    bool wants_tls;
    const struct secure *secure; /* NULL with wants_tls: nothing can be said */
    instant end;
    int fd; /* -1: not connected or under way */
    struct secure_session *session;
    struct buffer out; /* of TLS */
};

/* Begins to connect. -1: it failed at once. */
int line_dial(const struct words_server *server);

/* Connects, if that has not begun, and proves the server where it must be. False: it failed, or
 * there is no time left; then line_drop(). */
bool line_open(struct line *line);
bool line_say(struct line *line, const void *data, size_t bytes);
/* All is said: waits until the server has heard it, and has closed. */
bool line_end(struct line *line);
void line_drop(struct line *line);

#endif
