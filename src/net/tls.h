/* Who may talk: among our own, mutual TLS 1.3 with certificates or with a key that the group
 * shares; to a server of somebody else's, TLS 1.2 or 1.3 as its certificate proves it. */
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

/* Whether peers of the group would accept our own certificate from a process of this name, now.
 * BATON_EINVAL: it is for other names, or its time has not come or is over. */
int tls_check_own(const struct tls *tls, const char *name, const char *certificate_file,
                  struct baton_error *reterr);
/* Exchanges what `tls` holds for what `fresh` holds, and frees `fresh`, which must be of the same
 * kind. Streams that are open, or in their handshake, keep what they began with. */
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

/* A server of HTTP/1.1 for anybody: PEM files, the certificate with its chain, and its key.
 * BATON_EINVAL: the message names the file; BATON_ENOMEM. */
int tls_new_server(struct tls **ret, const char *certificate_file, const char *key_file,
                   struct baton_error *reterr);

/* Certificates prove names; a shared key proves only that the peer belongs to the group. */
bool tls_proves_names(const struct tls *tls);

#endif
