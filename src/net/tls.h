/* TLS: between members of a group mutual TLS 1.3, with certificates or with a shared key; to any
 * other server TLS 1.2 or 1.3, with a check of the server's certificate. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/error.h"

#include <stdbool.h>

struct tls; /* opaque: a configuration, shared by many streams */

struct tls_options {
    const char *certificate_file; /* PEM, with its chain; all three together */
    const char *key_file;
    const char *ca_file;
    const char *shared_key_file; /* or this alone: at least 16 bytes; see base/secret.h */
};

/* BATON_EINVAL, BATON_ENOENT, BATON_EAUTH (a key that others may read): the message names the file.
 * Options without any file: *ret is NULL. */
int tls_new(struct tls **ret, const struct tls_options *options, struct baton_error *reterr);
void tls_free(struct tls *tls); /* NULL allowed */

/* Whether peers of the group would accept this process's certificate for `name` now. BATON_EINVAL:
 * it is for other names, not yet valid, or expired. */
int tls_check_own(const struct tls *tls, const char *name, const char *certificate_file,
                  struct baton_error *reterr);
/* Replaces the content of `tls` by that of `fresh`, which must be of the same kind, and frees
 * `fresh`. Streams that are open or in their handshake keep the old content. */
void tls_adopt(struct tls *tls, struct tls *fresh);

/* A client of a foreign server (Redis). */
struct tls_client_options {
    const char *ca_file;          /* PEM; NULL: those that the system trusts */
    const char *certificate_file; /* ours, with its chain, and its key; or both NULL */
    const char *key_file;
    bool trusts_anybody; /* the server's certificate is not looked at: only if a user says so */
};

/* BATON_EINVAL: the message names the file; BATON_ENOMEM. A stream's peer_name is then the name
 * that is asked for (SNI) and that the certificate must have, as a host name or as an address. */
int tls_new_client(struct tls **ret, const struct tls_client_options *options,
                   struct baton_error *reterr);

/* Makes the configuration of an HTTP/1.1 server without client certificates, from PEM files: the
 * certificate with its chain, and its key. BATON_EINVAL: the message names the file; BATON_ENOMEM.
 */
int tls_new_server(struct tls **ret, const char *certificate_file, const char *key_file,
                   struct baton_error *reterr);

/* Certificates prove names; a shared key proves only that the peer belongs to the group. */
bool tls_proves_names(const struct tls *tls);

#endif
