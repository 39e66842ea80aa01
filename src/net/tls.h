/* Who may talk: mutual TLS 1.3 with certificates, or with a key that the group shares. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/error.h"

#include <stdbool.h>

struct tls; /* opaque: a configuration, shared by many streams */

struct tls_options {
    const char *certificate_file; /* PEM, with its chain; all three together */
    const char *key_file;
    const char *ca_file;
    const char *shared_key_file; /* or this alone: at least 16 bytes, readable by the owner only */
};

/* BATON_EINVAL, BATON_ENOENT, BATON_EAUTH (a key that others may read): the message names the file.
 * Options without any file: *ret is NULL. */
int tls_new(struct tls **ret, const struct tls_options *options, struct baton_error *reterr);
void tls_free(struct tls *tls); /* NULL allowed */

/* Certificates prove names; a shared key proves only that the peer belongs to the group. */
bool tls_proves_names(const struct tls *tls);

#endif
