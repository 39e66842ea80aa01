/* The name that a certificate is for: sessions over memory, with certificates of one authority. */
#include "cmocka_all.h"
#include "net/tls_int.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 4, FAR_IN_S = 86400, TURNS_MAX = 10 };

static char directory[] = "/tmp/baton-names-XXXXXX";
static char files[FILES][64]; /* the authority, the key of all, n1's certificate, the tested one */
static EVP_PKEY *key;
static X509 *authority;

struct subject {
    const char *common_name;
    int bytes; /* of it; -1: all */
    const char *alternatives;
};

static void extend(X509 *one, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

    assert_non_null(extension);
    assert_true(X509_add_ext(one, extension, -1));
    X509_EXTENSION_free(extension);
}

static X509 *issue(const struct subject *subject, const X509 *issuer)
{
    X509 *one = X509_new();
    X509_NAME *name = X509_get_subject_name(one);

    (void)X509_set_version(one, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(one), 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(one), -FAR_IN_S);
    (void)X509_gmtime_adj(X509_getm_notAfter(one), FAR_IN_S);
    (void)X509_set_pubkey(one, key);
    assert_true(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                           (const unsigned char *)subject->common_name,
                                           subject->bytes, -1, 0));
    (void)X509_set_issuer_name(one, X509_get_subject_name(issuer ? issuer : one));
    if (!issuer) {
        extend(one, NID_basic_constraints, "critical,CA:TRUE");
    }
    if (subject->alternatives) {
        extend(one, NID_subject_alt_name, subject->alternatives);
    }
    assert_true(X509_sign(one, key, EVP_sha256()) > 0);
    return one;
}

static void save(int number, const X509 *certificate)
{
    FILE *file = fopen(files[number], "we");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_true(certificate ? PEM_write_X509(file, certificate)
                            : PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
    (void)fclose(file);
}

static int begin(void **state)
{
    const struct subject n1 = {"n1", -1, "DNS:n1"};
    X509 *one;

    assert_non_null(mkdtemp(directory));
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(files[i], sizeof(files[i]), "%s/%d", directory, i);
    }
    key = EVP_EC_gen("P-256");
    authority = issue(&(struct subject){"authority", -1, NULL}, NULL);
    one = issue(&n1, authority);
    save(0, authority);
    save(1, NULL);
    save(2, one);
    X509_free(one);
    return 0;
}

static int end(void **state)
{
    for (int i = 0; i < FILES; i++) {
        (void)unlink(files[i]);
    }
    X509_free(authority);
    EVP_PKEY_free(key);
    return rmdir(directory);
}

static struct tls *tls_of(int number)
{
    const struct tls_options options = {
        .certificate_file = files[number], .key_file = files[1], .ca_file = files[0]};
    struct baton_error error = {0};
    struct tls *tls = NULL;

    if (tls_new(&tls, &options, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return tls;
}

struct outcome {
    bool is_open;          /* as the client sees it */
    bool client_is_proved; /* as the name that is asked about */
    char reason[400];
};

/* What the client demands of the server, and what the server then knows of the client. */
static struct outcome meet(int client_number, int server_number, const char *demanded,
                           const char *asked)
{
    struct tls *tls[2] = {tls_of(client_number), tls_of(server_number)};
    struct tls_session *sessions[2] = {tls_session_new(tls[0], true, demanded),
                                       tls_session_new(tls[1], false, NULL)};
    struct buffer wire[2]; /* from the client, from the server */
    struct buffer clear;
    struct outcome outcome = {0};
    int r = BATON_OK;

    buffer_init(&wire[0], 65536);
    buffer_init(&wire[1], 65536);
    buffer_init(&clear, 65536);
    for (int turn = 0; turn < TURNS_MAX && r == BATON_OK; turn++) {
        struct buffer *in = &wire[1 - turn % 2];
        const char *reason = "";
        r = tls_session_receive(sessions[turn % 2], in->data, in->bytes, &clear, &wire[turn % 2],
                                &reason);
        (void)snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
        buffer_clear(in);
    }
    outcome.is_open = tls_session_is_open(sessions[0]);
    outcome.client_is_proved = tls_session_proves(sessions[1], asked);
    for (int i = 0; i < 2; i++) {
        tls_session_free(sessions[i]);
        tls_free(tls[i]);
        buffer_fini(&wire[i]);
    }
    buffer_fini(&clear);
    return outcome;
}

static void a_certificate_is_for_its_names_and_for_no_others(void **state)
{
    static const struct {
        struct subject subject;
        bool is_n3;
    } cases[] = {
        {{"n3", -1, "DNS:n3"}, true},
        {{"n3", -1, NULL}, true},
        {{"else", -1, "DNS:n2,DNS:n3"}, true},
        {{"n3", -1, "DNS:n2"}, false},
        {{"n3", -1, "email:n3@example.com"}, false},
        {{"n3", -1, "IP:10.0.0.3"}, false},
        {{"n3\0.evil.com", 12, NULL}, false},
        /* DNS: n3, NUL, .evil.com */
        {{"else", -1, "DER:30:0e:82:0c:6e:33:00:2e:65:76:69:6c:2e:63:6f:6d"}, false},
        {{"n33", -1, NULL}, false},
        {{"N3", -1, "DNS:N3"}, false},
        {{"*", -1, "DNS:*"}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        X509 *one = issue(&cases[i].subject, authority);
        save(3, one);
        X509_free(one);
        if (meet(3, 2, "n1", "n3").client_is_proved != cases[i].is_n3) {
            fail_msg("case %zu, shown by a client", i);
        }
        if (meet(2, 3, "n3", "n1").is_open != cases[i].is_n3) {
            fail_msg("case %zu, shown by a server", i);
        }
    }
}

static void a_refusal_says_whose_it_is_not(void **state)
{
    struct outcome outcome;

    outcome = meet(2, 2, "n3", "n1");
    assert_false(outcome.is_open);
    assert_string_equal(outcome.reason,
                        "certificate refused: it is not for \"n3\"; give it that DNS name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_for_its_names_and_for_no_others),
        cmocka_unit_test(a_refusal_says_whose_it_is_not),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
