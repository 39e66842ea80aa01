#include "detector/model/address.h"

#include "detector/camera/dial.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
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

int address_parse(struct url *ret, const char *text, const char *const *hosts,
                  struct baton_error *reterr)
{
    struct url url = {0};
    bool is_allowed = hosts == NULL;

    if (url_parse(&url, text, NULL) != 0 || strncmp(url.scheme, "http", 4) != 0) {
        return error_set(reterr, BATON_EINVAL,
                         "model URL: must be http or https with a host; spaces, and special "
                         "characters in name and password, are percent-encoded (@ is %%40)");
    }
    for (; hosts != NULL && *hosts != NULL; hosts++) {
        is_allowed = is_allowed || host_fits(url.host, *hosts);
    }
    if (!is_allowed) {
        return error_set(reterr, BATON_EAUTH,
                         "model from %s: the host is not among those that models may come from",
                         url.masked);
    }
    *ret = url;
    return 0;
}

int address_identity(char **ret, int64_t model_id, const char *text, struct baton_error *reterr)
{
    static const CURLUPart changing[] = {CURLUPART_QUERY, CURLUPART_FRAGMENT, CURLUPART_USER,
                                         CURLUPART_PASSWORD};
    CURLU *parts = curl_url();
    bool is_read = parts != NULL && curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK;
    char *bare = NULL;
    int rc = 0;

    for (size_t i = 0; is_read && i < sizeof(changing) / sizeof(changing[0]); i++) {
        (void)curl_url_set(parts, changing[i], NULL, 0);
    }
    if (!is_read || curl_url_get(parts, CURLUPART_URL, &bare, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        asprintf(ret, "%lld %s", (long long)model_id, bare) < 0) {
        rc = error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    curl_free(bare);
    curl_url_cleanup(parts);
    return rc;
}

static bool is_private_v4(const uint8_t at[4])
{
    return at[0] == 10 || at[0] == 127 || (at[0] == 100 && at[1] >> 6 == 1) ||
           (at[0] == 172 && at[1] >> 4 == 1) || (at[0] == 192 && at[1] == 168);
}

bool address_is_private(const struct sockaddr *address)
{
    struct in6_addr host;
    const uint8_t *v4;

    if (!dial_host(&host, address, sizeof(struct sockaddr_in6))) {
        return true;
    }
    v4 = dial_v4(&host);
    return v4 != NULL ? is_private_v4(v4)
                      : IN6_IS_ADDR_LOOPBACK(&host) || host.s6_addr[0] >> 1 == 0xfc >> 1;
}
