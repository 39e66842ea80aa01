/* Finds the member that a certificate is for. Names are compared byte by byte with their lengths,
 * so one with a NUL inside is another name. If a certificate has alternative names (hosts,
 * addresses, e-mails), only its host names count; without any, the subject's common name counts. */
#include "net/tls_int.h"

#include <openssl/x509v3.h>
#include <string.h>

static bool is_same(const ASN1_STRING *text, const char *name)
{
    size_t bytes = (size_t)ASN1_STRING_length(text);

    return bytes == strlen(name) && memcmp(ASN1_STRING_get0_data(text), name, bytes) == 0;
}

static bool has_common_name(const X509 *certificate, const char *name)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);

    for (int at = -1;;) {
        unsigned char *utf8 = NULL;
        bool found;
        int bytes;

        at = X509_NAME_get_index_by_NID(subject, NID_commonName, at);
        if (at < 0) {
            return false;
        }
        bytes =
            ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        found =
            bytes >= 0 && (size_t)bytes == strlen(name) && memcmp(utf8, name, strlen(name)) == 0;
        OPENSSL_free(utf8);
        if (found) {
            return true;
        }
    }
}

bool tls_certificate_is_of(const X509 *certificate, const char *name)
{
    GENERAL_NAMES *names;
    bool found = false;

    if (X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) < 0) {
        return has_common_name(certificate, name);
    }
    names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found;
         i++) { /* -1 for a damaged certificate */
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, i);
        found = one->type == GEN_DNS && is_same(one->d.dNSName, name);
    }
    GENERAL_NAMES_free(names);
    return found;
}
