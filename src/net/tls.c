/* OpenSSL over memory buffers, so that one loop and one kind of stream carry it. */
#include "net/tls_int.h"

#include "base/secret.h"
#include "net/digest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_BYTES_MIN = 16, KEY_BYTES_MAX = 4096, NAME_MAX_BYTES = 256 };

static const char psk_identity[] = "baton";

struct tls {
    SSL_CTX *context;
    bool is_foreign; /* the server is not of the group: its certificate may have many names */
    bool has_key;
    uint8_t key[32]; /* SHA-256 of the shared key's file */
};

struct tls_session {
    SSL *ssl;
    BIO *from_wire;
    BIO *to_wire;
    bool is_open;
    char wanted[NAME_MAX_BYTES]; /* within a group: the name that the certificate must have; "": any
                                  */
    char problem[NAME_MAX_BYTES + 80];
};

static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    return text ? text : "TLS failed";
}

/* Why a file could not be used: OpenSSL's first error says it, the last one "system lib". */
static const char *file_reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *text = ERR_SYSTEM_ERROR(code) ? strerror((int)ERR_GET_REASON(code))
                                              : ERR_reason_error_string(code);
    return text ? text : "TLS failed";
}

/* ---- The shared key -------------------------------------------------------------------------- */

static SSL_SESSION *psk_session(SSL *ssl)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();

    if (!session || !cipher || !SSL_SESSION_set1_master_key(session, tls->key, sizeof(tls->key)) ||
        !SSL_SESSION_set_cipher(session, cipher) ||
        !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int use_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
                   SSL_SESSION **ret)
{
    (void)md;
    *id = (const unsigned char *)psk_identity;
    *id_bytes = sizeof(psk_identity) - 1;
    *ret = psk_session(ssl);
    return *ret != NULL;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **ret)
{
    *ret = NULL;
    if (id_bytes == sizeof(psk_identity) - 1 && memcmp(id, psk_identity, id_bytes) == 0) {
        *ret = psk_session(ssl);
    }
    return 1;
}

static int check_secret(const char *what, const char *path, const struct stat *about,
                        struct baton_error *reterr)
{
    if (!secret_is_private(about)) {
        return error_set(reterr, BATON_EAUTH, "%s %s: others may read it (mode %04o); chmod 600 it",
                         what, path, (unsigned)about->st_mode & 07777u);
    }
    if (!secret_has_own_path(path)) {
        return error_set(reterr, BATON_EAUTH,
                         "%s %s: a symbolic link of another user; give the file's own path", what,
                         path);
    }
    return BATON_OK;
}

static int read_shared_key(struct tls *tls, const char *path, struct baton_error *reterr)
{
    struct stat info;
    uint8_t raw[KEY_BYTES_MAX];
    size_t bytes;
    FILE *file = fopen(path, "re");

    if (!file || fstat(fileno(file), &info) != 0) {
        int r =
            error_set(reterr, error_from_errno(errno), "cluster key %s: %s", path, strerror(errno));
        if (file) {
            (void)fclose(file);
        }
        return r;
    }
    bytes = fread(raw, 1, sizeof(raw), file);
    if (ferror(file)) {
        (void)error_set(reterr, BATON_EINVAL, "cluster key %s: %s", path, strerror(errno));
        (void)fclose(file);
        return BATON_EINVAL;
    }
    (void)fclose(file);
    if (check_secret("cluster key", path, &info, reterr) != BATON_OK) {
        OPENSSL_cleanse(raw, sizeof(raw));
        return BATON_EAUTH;
    }
    if (bytes < KEY_BYTES_MIN || bytes == sizeof(raw)) {
        return error_set(reterr, BATON_EINVAL, "cluster key %s: %zu bytes, must be %d to %d", path,
                         bytes, KEY_BYTES_MIN, KEY_BYTES_MAX - 1);
    }
    digest_sha256(tls->key, raw, bytes);
    OPENSSL_cleanse(raw, sizeof(raw));
    tls->has_key = true;
    /* The key is bound to one hash; a server that preferred another could not use it. */
    (void)SSL_CTX_set_ciphersuites(tls->context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_psk_use_session_callback(tls->context, use_psk);
    SSL_CTX_set_psk_find_session_callback(tls->context, find_psk);
    return BATON_OK;
}

/* ---- Certificates ---------------------------------------------------------------------------- */

static int load_own(struct tls *tls, const char *certificate_file, const char *key_file,
                    struct baton_error *reterr)
{
    struct stat info;

    if (stat(key_file, &info) == 0 && check_secret("TLS key", key_file, &info, reterr) != 0) {
        return BATON_EAUTH;
    }
    if (SSL_CTX_use_certificate_chain_file(tls->context, certificate_file) != 1) {
        return error_set(reterr, BATON_EINVAL, "TLS certificate %s: %s; it must be a PEM file",
                         certificate_file, file_reason());
    }
    if (SSL_CTX_use_PrivateKey_file(tls->context, key_file, SSL_FILETYPE_PEM) != 1) {
        return error_set(reterr, BATON_EINVAL, "TLS key %s: %s; it must be a PEM file", key_file,
                         file_reason());
    }
    return BATON_OK;
}

static int load_ca(struct tls *tls, const char *ca_file, struct baton_error *reterr)
{
    if (SSL_CTX_load_verify_file(tls->context, ca_file) != 1) {
        return error_set(reterr, BATON_EINVAL, "TLS CA %s: %s; it must be a PEM file", ca_file,
                         file_reason());
    }
    return BATON_OK;
}

static int load_certificates(struct tls *tls, const struct tls_options *options,
                             struct baton_error *reterr)
{
    int r;

    if (!options->certificate_file || !options->key_file || !options->ca_file) {
        return error_set(reterr, BATON_EINVAL,
                         "TLS: a certificate, its key and the CA go together; %s is missing",
                         !options->certificate_file ? "the certificate"
                         : !options->key_file       ? "the key"
                                                    : "the CA");
    }
    r = load_own(tls, options->certificate_file, options->key_file, reterr);
    if (r == BATON_OK) {
        r = load_ca(tls, options->ca_file, reterr);
    }
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return r;
}

static struct tls *allocate(const SSL_METHOD *method, struct baton_error *reterr)
{
    struct tls *tls = calloc(1, sizeof(*tls));

    if (tls) {
        tls->context = SSL_CTX_new(method);
    }
    if (!tls || !tls->context) {
        tls_free(tls);
        (void)error_set(reterr, BATON_ENOMEM, "out of memory for TLS");
        return NULL;
    }
    SSL_CTX_set_app_data(tls->context, tls);
    ERR_clear_error(); /* so that a later reason is not of an earlier error */
    return tls;
}

int tls_new(struct tls **ret, const struct tls_options *options, struct baton_error *reterr)
{
    bool has_files = options->certificate_file || options->key_file || options->ca_file;
    struct tls *tls;
    int r;

    if (!has_files && !options->shared_key_file) {
        *ret = NULL;
        return BATON_OK;
    }
    if (has_files && options->shared_key_file) {
        return error_set(reterr, BATON_EINVAL,
                         "TLS: certificates or a cluster key, not both: which one is to count?");
    }
    tls = allocate(TLS_method(), reterr);
    if (!tls) {
        return BATON_ENOMEM;
    }
    (void)SSL_CTX_set_min_proto_version(tls->context, TLS1_3_VERSION);
    (void)SSL_CTX_set_num_tickets(tls->context, 0);
    r = has_files ? load_certificates(tls, options, reterr)
                  : read_shared_key(tls, options->shared_key_file, reterr);
    if (r != BATON_OK) {
        tls_free(tls);
        return r;
    }
    *ret = tls;
    return BATON_OK;
}

static int load_client(struct tls *tls, const struct tls_client_options *options,
                       struct baton_error *reterr)
{
    int r = BATON_OK;

    if (!options->certificate_file != !options->key_file) {
        return error_set(reterr, BATON_EINVAL,
                         "TLS: a certificate and its key go together; %s is missing",
                         options->key_file ? "the certificate" : "the key");
    }
    if (options->certificate_file) {
        r = load_own(tls, options->certificate_file, options->key_file, reterr);
    }
    if (r == BATON_OK && options->ca_file) {
        r = load_ca(tls, options->ca_file, reterr);
    } else if (r == BATON_OK && SSL_CTX_set_default_verify_paths(tls->context) != 1) {
        r = error_set(reterr, BATON_EINVAL, "TLS: the system's own CAs: %s", reason());
    }
    SSL_CTX_set_verify(tls->context, options->trusts_anybody ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       NULL);
    return r;
}

int tls_new_client(struct tls **ret, const struct tls_client_options *options,
                   struct baton_error *reterr)
{
    struct tls *tls = allocate(TLS_client_method(), reterr);
    int r;

    if (!tls) {
        return BATON_ENOMEM;
    }
    (void)SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    r = load_client(tls, options, reterr);
    if (r != BATON_OK) {
        tls_free(tls);
        return r;
    }
    tls->is_foreign = true;
    *ret = tls;
    return BATON_OK;
}

/* Of the protocols that a client offers above TLS only HTTP/1.1 is spoken. */
static int choose_http_1(SSL *ssl, const unsigned char **ret, unsigned char *ret_bytes,
                         const unsigned char *offered, unsigned bytes, void *userdata)
{
    static const unsigned char http_1[] = "\x08http/1.1";

    (void)ssl;
    (void)userdata;
    return SSL_select_next_proto((unsigned char **)ret, ret_bytes, http_1, sizeof(http_1) - 1,
                                 offered, bytes) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

int tls_new_server(struct tls **ret, const char *certificate_file, const char *key_file,
                   struct baton_error *reterr)
{
    struct tls *tls = allocate(TLS_server_method(), reterr);
    const char *file = certificate_file, *option = "--tls-cert";
    bool is_bad;

    if (!tls) {
        return BATON_ENOMEM;
    }
    (void)SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_alpn_select_cb(tls->context, choose_http_1, NULL);
    is_bad = SSL_CTX_use_certificate_chain_file(tls->context, certificate_file) != 1;
    if (!is_bad && SSL_CTX_use_PrivateKey_file(tls->context, key_file, SSL_FILETYPE_PEM) != 1) {
        is_bad = true;
        file = key_file;
        option = "--tls-key";
    }
    if (is_bad) {
        tls_free(tls);
        return error_set(reterr, BATON_EINVAL,
                         "%s %s: cannot be used: %s; it must be a readable PEM file, and the key "
                         "that of the certificate",
                         option, file, file_reason());
    }
    tls->is_foreign = true;
    *ret = tls;
    return BATON_OK;
}

void tls_free(struct tls *tls)
{
    if (tls) {
        SSL_CTX_free(tls->context);
        OPENSSL_cleanse(tls->key, sizeof(tls->key));
        free(tls);
    }
}

int tls_check_own(const struct tls *tls, const char *name, const char *certificate_file,
                  struct baton_error *reterr)
{
    const X509 *own = SSL_CTX_get0_certificate(tls->context);
    const char *fault = !tls_certificate_is_of(own, name)                     ? "it is not for"
                        : X509_cmp_current_time(X509_get0_notAfter(own)) <= 0 ? "it has expired:"
                        : X509_cmp_current_time(X509_get0_notBefore(own)) >= 0
                            ? "it is not valid yet:"
                            : NULL;

    return fault ? error_set(reterr, BATON_EINVAL,
                             "TLS certificate %s: %s \"%s\"; the other nodes would refuse it",
                             certificate_file, fault, name)
                 : BATON_OK;
}

void tls_adopt(struct tls *tls, struct tls *fresh)
{
    SSL_CTX *old = tls->context; /* open sessions have references of their own */

    tls->context = fresh->context;
    fresh->context = old;
    SSL_CTX_set_app_data(tls->context, tls);
    memcpy(tls->key, fresh->key, sizeof(tls->key));
    tls_free(fresh);
}

bool tls_proves_names(const struct tls *tls)
{
    return tls && !tls->has_key;
}

/* ---- A session ------------------------------------------------------------------------------- */

/* The name that a foreign server's certificate must have: an address among its addresses, any other
 * among its host names. SNI names hosts only. */
static bool demand(SSL *ssl, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_address =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;

    if (is_address) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct tls_session *tls_session_new(const struct tls *tls, bool is_client, const char *peer_name)
{
    struct tls_session *session = calloc(1, sizeof(*session));

    if (!session) {
        return NULL;
    }
    session->ssl = SSL_new(tls->context);
    session->from_wire = BIO_new(BIO_s_mem());
    session->to_wire = BIO_new(BIO_s_mem());
    if (!session->ssl || !session->from_wire || !session->to_wire) {
        BIO_free(session->from_wire);
        BIO_free(session->to_wire);
        SSL_free(session->ssl);
        free(session);
        return NULL;
    }
    SSL_set_bio(session->ssl, session->from_wire, session->to_wire);
    if (is_client) {
        SSL_set_connect_state(session->ssl);
    } else {
        SSL_set_accept_state(session->ssl);
    }
    if (peer_name && tls->is_foreign && !demand(session->ssl, peer_name)) {
        tls_session_free(session);
        return NULL;
    }
    if (peer_name && tls_proves_names(tls) && !tls->is_foreign) {
        (void)snprintf(session->wanted, sizeof(session->wanted), "%s", peer_name);
    }
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (session) {
        SSL_free(session->ssl);
        free(session);
    }
}

static void drain(struct tls_session *session, struct buffer *out)
{
    char *data;
    long bytes = BIO_get_mem_data(session->to_wire, &data);

    if (bytes > 0) {
        buffer_put(out, data, (size_t)bytes);
        (void)BIO_reset(session->to_wire);
    }
}

static int go_on(struct tls_session *session, int result)
{
    int error = SSL_get_error(session->ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ||
                   error == SSL_ERROR_ZERO_RETURN
               ? BATON_OK
               : BATON_EAUTH;
}

/* Returns a text that an operator can act on: for a refused certificate, its fault. */
static const char *explain(struct tls_session *session)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(session->ssl));
    unsigned long code = ERR_peek_last_error();
    long result;

    if (session->problem[0]) {
        return session->problem;
    }
    if (ERR_GET_LIB(code) != ERR_LIB_SSL) {
        return reason();
    }
    switch (ERR_GET_REASON(code)) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        break;
    case SSL_R_WRONG_VERSION_NUMBER:
        return "wrong version number: the other side seems to speak no TLS";
    case SSL_R_BINDER_DOES_NOT_VERIFY: /* found here; or by the peer, which sends an alert */
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
        return tls->has_key ? "other cluster key; give both nodes the same key-file" : reason();
    default:
        return reason();
    }
    result = SSL_get_verify_result(session->ssl);
    (void)snprintf(session->problem, sizeof(session->problem), "certificate refused: %s%s",
                   X509_verify_cert_error_string(result),
                   result == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                           result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                           result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
                       ? "; give the certificate of its authority as the CA"
                       : "");
    return session->problem;
}

static int handshake(struct tls_session *session)
{
    int result = SSL_do_handshake(session->ssl);

    if (result != 1) {
        return go_on(session, result);
    }
    if (session->wanted[0] && !tls_session_proves(session, session->wanted)) {
        (void)snprintf(session->problem, sizeof(session->problem),
                       "certificate refused: it is not for \"%s\"; give it that DNS name",
                       session->wanted);
        return BATON_EAUTH;
    }
    session->is_open = true;
    return BATON_OK;
}

static int read_clear(struct tls_session *session, struct buffer *in)
{
    for (;;) {
        uint8_t chunk[16384];
        int result = SSL_read(session->ssl, chunk, sizeof(chunk));
        if (result <= 0) {
            return go_on(session, result);
        }
        buffer_put(in, chunk, (size_t)result);
    }
}

int tls_session_receive(struct tls_session *session, const void *data, size_t bytes,
                        struct buffer *in, struct buffer *out, const char **ret_reason)
{
    int r = BATON_OK;

    ERR_clear_error();
    if (bytes > 0) {
        (void)BIO_write(session->from_wire, data, (int)bytes);
    }
    if (!session->is_open) {
        r = handshake(session);
    }
    if (r == BATON_OK && session->is_open) {
        r = read_clear(session, in);
    }
    if (r != BATON_OK) {
        *ret_reason = explain(session);
    }
    drain(session, out);
    return r;
}

int tls_session_send(struct tls_session *session, const void *data, size_t bytes,
                     struct buffer *out)
{
    ERR_clear_error();
    if (SSL_write(session->ssl, data, (int)bytes) != (int)bytes) {
        return BATON_EIO;
    }
    drain(session, out);
    return BATON_OK;
}

void tls_session_end(struct tls_session *session, struct buffer *out)
{
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl); /* 0: the peer's own end is not waited for */
    drain(session, out);
}

bool tls_session_is_open(const struct tls_session *session)
{
    return session->is_open;
}

bool tls_session_proves(const struct tls_session *session, const char *name)
{
    X509 *certificate = SSL_get1_peer_certificate(session->ssl);
    bool is_of = certificate && tls_certificate_is_of(certificate, name);

    X509_free(certificate);
    return is_of;
}
