/* A connection of the guardian to one server, with or without TLS, with one deadline for all of it.
 * One thread at a time.
 */
#ifndef GUARDIAN_LINE_H
#define GUARDIAN_LINE_H

#include "base/clock.h"
#include "guardian/commands.h"
#include "guardian/secure.h"

struct line {
    const struct commands_server *server;
    bool wants_tls;
    const struct secure *secure; /* NULL with wants_tls: no data can be sent */
    instant end;
    int fd; /* -1: neither connected nor connecting */
    struct secure_session *session;
    struct buffer out; /* TLS records to send */
};

/* Begins to connect, and returns the descriptor; -1: it failed at once. */
int line_dial(const struct commands_server *server);

/* Connects, unless that has begun, and with TLS authenticates the server. False: it failed, or the
 * time is over; then call line_drop(). */
bool line_open(struct line *line);
bool line_send(struct line *line, const void *data, size_t bytes);
/* Ends sending, and waits until the server has read everything and closed. */
bool line_end(struct line *line);
void line_drop(struct line *line);

#endif
