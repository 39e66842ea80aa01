/* TLS for last words. There are two of it: secure_tls.c, in the image baton-guardian-tls, and
 * secure_none.c, in baton-guardian, which links no TLS and so has nothing to say to a server that
 * wants it: never in the clear what was meant to be secret.
 */
#ifndef GUARDIAN_SECURE_H
#define GUARDIAN_SECURE_H

#include "base/buffer.h"
#include "guardian/words.h"

struct secure;         /* whom to trust, and who we are; any number of sessions, in any threads */
struct secure_session; /* one connection's */

/* NULL: a file cannot be read, or this image does not speak TLS. */
struct secure *secure_new(const struct words_tls *how);

/* NULL: out of memory, or the name is none. name "": whoever answers. */
struct secure_session *secure_begin(const struct secure *secure, const char *name);
void secure_end(struct secure_session *session); /* NULL allowed */

/* Takes what came from the wire (nothing, to begin with); what is to be sent is added to `out`.
 * False: the server is not who it should be, or talks no sense. */
bool secure_take(struct secure_session *session, const void *data, size_t bytes,
                 struct buffer *out);
/* The server has proved who it is: now may be spoken. */
bool secure_is_open(const struct secure_session *session);
bool secure_say(struct secure_session *session, const void *data, size_t bytes, struct buffer *out);

#endif
