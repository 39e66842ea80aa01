/* TLS for the commands to servers, in two versions: secure_tls.c, in baton-guardian-tls, and
 * secure_none.c, in baton-guardian, which links no TLS. That one sends nothing to a server that
 * requires TLS: it never sends a secret in clear text.
 */
#ifndef GUARDIAN_SECURE_H
#define GUARDIAN_SECURE_H

#include "base/buffer.h"
#include "guardian/commands.h"

struct secure;         /* authorities and our certificate; any number of sessions, in any threads */
struct secure_session; /* of one connection */

/* NULL: a file cannot be read, or this program has no TLS. */
struct secure *secure_new(const struct commands_tls *how);

/* NULL: out of memory, or the name is invalid. name "": any server. */
struct secure_session *secure_begin(const struct secure *secure, const char *name);
void secure_end(struct secure_session *session); /* NULL allowed */

/* Takes received bytes (none, to begin with) and appends the bytes to send to `out`. False: the
 * server does not have the right certificate, or its bytes are invalid. */
bool secure_receive(struct secure_session *session, const void *data, size_t bytes,
                    struct buffer *out);
/* The server is authenticated: data may be sent. */
bool secure_is_open(const struct secure_session *session);
bool secure_send(struct secure_session *session, const void *data, size_t bytes,
                 struct buffer *out);

#endif
