#include "detector/model/address.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool host_fits(const char *host, const char *allowed)
{
    size_t bytes = strlen(host), tail = strlen(allowed);

    if (allowed[0] != '.') {
        return strcasecmp(host, allowed) == 0;
    }
    return strcasecmp(host, allowed + 1) == 0 ||
           (bytes > tail && strcasecmp(host + bytes - tail, allowed) == 0);
}

static int check_host(const struct address *address, const char *text, const char *const *hosts,
                      struct baton_error *reterr)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    bool is_allowed = hosts == NULL;

    if (parts == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    if (curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
        for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
            is_allowed = is_allowed || host_fits(host, hosts[i]);
        }
    }
    curl_free(host);
    curl_url_cleanup(parts);
    return is_allowed ? 0
                      : error_set(reterr, BATON_EAUTH,
                                  "model from %s: the host is not among those that models may "
                                  "come from",
                                  address->url.masked);
}

int address_parse(struct address *ret, const char *text, const char *const *hosts,
                  struct baton_error *reterr)
{
    struct address address = {0};
    int rc;

    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c <= 0x20 || *c == 0x7f) {
            return error_set(reterr, BATON_EINVAL,
                             "model URL: it holds a space or a control character; percent-encode "
                             "them");
        }
    }
    if (url_parse(&address.url, text, NULL) != 0 || strncmp(address.url.scheme, "http", 4) != 0) {
        return error_set(reterr, BATON_EINVAL,
                         "model URL: must be http or https with a host; special characters in "
                         "name and password are percent-encoded (@ is %%40)");
    }
    address.is_https = strcmp(address.url.scheme, "https") == 0;
    rc = check_host(&address, text, hosts, reterr);
    if (rc == 0) {
        *ret = address;
    }
    return rc;
}

int address_identity(char **ret, int64_t model_id, const char *text, struct baton_error *reterr)
{
    CURLU *parts = curl_url();
    char *bare = NULL, *identity = NULL;
    int rc = 0;

    if (parts == NULL || curl_url_set(parts, CURLUPART_URL, text, 0) != CURLUE_OK) {
        curl_url_cleanup(parts);
        return error_set(reterr, parts != NULL ? BATON_EINVAL : BATON_ENOMEM,
                         "model URL: it cannot be read");
    }
    (void)curl_url_set(parts, CURLUPART_QUERY, NULL, 0);
    (void)curl_url_set(parts, CURLUPART_FRAGMENT, NULL, 0);
    (void)curl_url_set(parts, CURLUPART_USER, NULL, 0);
    (void)curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0);
    if (curl_url_get(parts, CURLUPART_URL, &bare, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        asprintf(&identity, "%lld %s", (long long)model_id, bare) < 0) {
        identity = NULL;
        rc = error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    curl_free(bare);
    curl_url_cleanup(parts);
    if (rc == 0) {
        *ret = identity;
    }
    return rc;
}
