/* One TLS session over memory: bytes in, bytes out, no socket. For stream.c, and for
 * the guardian, which has no loop. */
#ifndef NET_TLS_INT_H
#define NET_TLS_INT_H

#include "base/buffer.h"
#include "net/tls.h"

#include <openssl/x509.h>
#include <stddef.h>

struct tls_session; /* opaque */

/* peer_name: the name that the server's certificate must have; NULL: any name of the group. */
struct tls_session *tls_session_new(const struct tls *tls, bool is_client, const char *peer_name);
void tls_session_free(struct tls_session *session);

/* Takes bytes that were received (none, to begin a handshake). Appends bytes to send to `out`, and
 * received plain text to `in`. 0, or BATON_EAUTH with the reason. */
int tls_session_receive(struct tls_session *session, const void *data, size_t bytes,
                        struct buffer *in, struct buffer *out, const char **ret_reason);
int tls_session_send(struct tls_session *session, const void *data, size_t bytes,
                     struct buffer *out);
/* Says the peer that nothing more comes. */
void tls_session_end(struct tls_session *session, struct buffer *out);
bool tls_session_is_open(const struct tls_session *session);
/* The peer has shown a certificate for this name. */
bool tls_session_proves(const struct tls_session *session, const char *name);

bool tls_certificate_is_of(const X509 *certificate, const char *name); /* tls_name.c */

#endif
