#include "detector/camera/url.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint16_t port;
} schemes[] = {{"rtsp", 554}, {"rtsps", 322}, {"http", 80}, {"https", 443}};

static int refuse(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL,
                     "camera URL: must be rtsp, rtsps, http or https with a host; special "
                     "characters in name and password are percent-encoded (@ is %%40)");
}

static int fill(struct url *url, const char *scheme, const char *host, const char *port)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strcasecmp(scheme, schemes[i].name) == 0) {
            unsigned long number = port != NULL ? strtoul(port, NULL, 10) : schemes[i].port;
            int length;
            if (number == 0 || number > UINT16_MAX) {
                return -1;
            }
            url->port = (uint16_t)number;
            (void)snprintf(url->scheme, sizeof(url->scheme), "%s", schemes[i].name);
            length = snprintf(url->masked, sizeof(url->masked), "%s://%s:%u/…", schemes[i].name,
                              host, (unsigned)url->port);
            return length > 0 && (size_t)length < sizeof(url->masked) ? 0 : -1;
        }
    }
    return -1;
}

int url_parse(struct url *ret, const char *text, struct baton_error *reterr)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    struct url url = {0};
    int rc = -1;

    if (parts == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    /* libcurl takes the first word of a path for the host where there is none. */
    if (strstr(text, ":///") == NULL &&
        curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0') {
        (void)curl_url_get(parts, CURLUPART_PORT, &port, 0); /* none: the scheme's */
        rc = fill(&url, scheme, host, port);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    if (rc != 0) {
        return refuse(reterr);
    }
    *ret = url;
    return 0;
}
