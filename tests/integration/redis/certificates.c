#include "certificates.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

/* Where they are written to. */
static const char *folder;

static void path_of(char *ret, size_t ret_bytes, const char *name, const char *end)
{
    snprintf(ret, ret_bytes, "%s/%s.%s", folder, name, end);
}

static void write_down(const char *name, const struct identity *identity)
{
    char path[256];
    FILE *file;

    path_of(path, sizeof(path), name, "crt");
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, identity->certificate), 1);
    fclose(file);
    path_of(path, sizeof(path), name, "key");
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static void add(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* names: as in "DNS:a,IP:127.0.0.1"; NULL: an authority. It is valid from now - 2 d to now + days.
 */
static struct identity make(const char *name, const struct identity *by, const char *names,
                            int days)
{
    static long serial;
    struct identity made = {EVP_EC_gen("P-256"), X509_new()};
    X509_NAME *subject = X509_get_subject_name(made.certificate);

    assert_non_null(made.key);
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), -2L * 86400);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), days * 86400L);
    X509_set_pubkey(made.certificate, made.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(made.certificate, by ? X509_get_subject_name(by->certificate) : subject);
    add(made.certificate, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
    if (names) {
        add(made.certificate, NID_subject_alt_name, names);
    }
    assert_true(X509_sign(made.certificate, by ? by->key : made.key, EVP_sha256()) > 0);
    write_down(name, &made);
    return made;
}

static void forget(struct identity identity)
{
    EVP_PKEY_free(identity.key);
    X509_free(identity.certificate);
}

void certificates_make(char *ret_folder, size_t ret_bytes)
{
    struct identity ca;
    struct identity other_ca;

    process_make_folder(ret_folder, ret_bytes);
    folder = ret_folder;
    ca = make("ca", NULL, NULL, 30);
    other_ca = make("other-ca", NULL, NULL, 30);
    forget(make("right", &ca, "DNS:localhost,DNS:redis.test,IP:127.0.0.1", 30));
    forget(make("elsewhere", &ca, "DNS:elsewhere.test,IP:127.0.0.9", 30));
    forget(make("expired", &ca, "DNS:localhost,IP:127.0.0.1", -1));
    forget(make("client", &ca, "DNS:client.test", 30));
    forget(make("stranger", &other_ca, "DNS:client.test", 30));
    forget(ca);
    forget(other_ca);
}

int certificates_serve(struct server *server, const char *folder_of_them, const char *name,
                       const char *wants_clients)
{
    int port = process_free_port();
    char text[256];

    folder = folder_of_them;
    snprintf(text, sizeof(text), "%d", port);
    server_set(server, "tls-port", text);
    path_of(text, sizeof(text), name, "crt");
    server_set(server, "tls-cert-file", text);
    path_of(text, sizeof(text), name, "key");
    server_set(server, "tls-key-file", text);
    path_of(text, sizeof(text), "ca", "crt");
    server_set(server, "tls-ca-cert-file", text);
    server_set(server, "tls-auth-clients", wants_clients);
    return port;
}
