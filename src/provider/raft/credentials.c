/* Certificates or the cluster key: read at the start, and again where an operator asks for it.
 *
 * They only decide which new connections are accepted, so a reload changes no vote, promise or
 * lease. A connection keeps what it began with: after each node has read a new cluster key, or the
 * certificates of a new authority, no connection needs to have been closed.
 */
#include "provider/raft/node.h"

static const char *file(const char *name)
{
    return name[0] ? name : NULL;
}

int credentials_read(struct tls **ret, const struct raft_options *options,
                     struct baton_error *reterr)
{
    struct tls_options files = {.certificate_file = file(options->tls_certificate),
                                .key_file = file(options->tls_key),
                                .ca_file = file(options->tls_ca),
                                .shared_key_file = file(options->cluster_key)};

    return tls_new(ret, &files, reterr);
}

int credentials_reload(struct provider *provider, const char *url, provider_done_cb done,
                       void *userdata, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    struct tls *fresh = NULL;
    int r = credentials_read(&fresh, &node->options, reterr);
    (void)url; /* it has no password */

    if (r == BATON_OK && tls_proves_names(fresh)) {
        r = tls_check_own(fresh, node->options.node, node->options.tls_certificate, reterr);
    }
    if (r != BATON_OK) {
        tls_free(fresh);
        return r;
    }
    if (fresh) {
        tls_adopt(node->tls, fresh);
    }
    done(userdata, BATON_OK, NULL);
    return BATON_OK;
}
