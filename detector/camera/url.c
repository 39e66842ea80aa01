#include "detector/camera/url.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint16_t port;
} schemes[] = {{"rtsp", 554}, {"rtsps", 322}, {"http", 80}, {"https", 443}};

/* Returns the length of "scheme://", or 0 if there is none. */
static size_t scheme_bytes(const char *text)
{
    size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return bytes > 0 && strncmp(text + bytes, "://", 3) == 0 ? bytes + 3 : 0;
}

static bool is_known_scheme(const char *text, size_t bytes)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (bytes == strlen(schemes[i].name) + 3 &&
            strncasecmp(text, schemes[i].name, bytes - 3) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_blank(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

/* From `begin` to `end` there is "user:password@host:port". */
static const char *find_fault_of_host(const char *begin, const char *end)
{
    const char *at = memchr(begin, '@', (size_t)(end - begin));
    const char *host = at != NULL ? at + 1 : begin;
    const char *bracket =
        host < end && *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
    const char *colon = memchr(bracket != NULL ? bracket : host, ':',
                               (size_t)(end - (bracket != NULL ? bracket : host)));
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;

    if (memchr(host, '@', (size_t)(end - host)) != NULL) {
        return "it has more than one @ before the path: in a name or password, @ is written %40";
    }
    if (host == end || host == colon) {
        return "its host is missing";
    }
    if (colon != NULL &&
        (digits == 0 || colon + 1 + digits != end || digits > 5 ||
         strtoul(colon + 1, NULL, 10) == 0 || strtoul(colon + 1, NULL, 10) > UINT16_MAX)) {
        return "its port is no number from 1 to 65535; a / # or ? in a name or password is "
               "percent-encoded (/ is %2F, # is %23, ? is %3F)";
    }
    return "its host is none; special characters in name and password are percent-encoded";
}

static const char *find_fault(const char *text)
{
    size_t scheme = scheme_bytes(text);

    if (scheme == 0) {
        return "it has no scheme";
    }
    if (!is_known_scheme(text, scheme)) {
        return "its scheme is another";
    }
    if (has_blank(text)) {
        return "it holds a space or control character; a space is written %20";
    }
    return find_fault_of_host(text + scheme, text + scheme + strcspn(text + scheme, "/?#"));
}

static int refuse(const char *text, struct baton_error *reterr)
{
    return error_set(
        reterr, BATON_EINVAL,
        "camera URL: %s; it must be rtsp://, rtsps://, http:// or https:// with a host",
        find_fault(text));
}

bool url_is_same(const char *one, const char *other)
{
    size_t scheme = scheme_bytes(one);

    return strncasecmp(one, other, scheme) == 0 && strcmp(one + scheme, other + scheme) == 0;
}

void url_lower_scheme(char *url)
{
    for (size_t i = 0; i < scheme_bytes(url); i++) {
        url[i] = (char)(url[i] | 0x20); /* : and / have that bit already */
    }
}

void url_without_tls(char *ret, size_t bytes, const char *text)
{
    const char *host = text + strlen("rtsps://");
    const char *end, *at, *port;

    if (strncmp(text, "rtsps://", strlen("rtsps://")) != 0) {
        (void)snprintf(ret, bytes, "%s", text);
        return;
    }
    end = host + strcspn(host, "/?#");
    at = memchr(host, '@', (size_t)(end - host));
    port = memrchr(at != NULL ? at : host, ':', (size_t)(end - (at != NULL ? at : host)));
    (void)snprintf(ret, bytes, "rtsp://%.*s%s%s", (int)(end - host), host,
                   port != NULL && memchr(port, ']', (size_t)(end - port)) == NULL ? "" : ":322",
                   end);
}

static bool copy_host(struct url *url, const char *host)
{
    size_t bytes = strlen(host);

    if (host[0] == '[') {
        host++;
        bytes -= 2;
    }
    return snprintf(url->host, sizeof(url->host), "%.*s", (int)bytes, host) <
           (int)sizeof(url->host);
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
            return length > 0 && (size_t)length < sizeof(url->masked) && copy_host(url, host) ? 0
                                                                                              : -1;
        }
    }
    return -1;
}

int url_parse(struct url *ret, const char *text, struct baton_error *reterr)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    struct url url = {0};
    char *user = NULL;
    int rc = -1;

    if (parts == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    /* Without a host libcurl would take the first part of the path for one. */
    if (strstr(text, ":///") == NULL &&
        curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0') {
        (void)curl_url_get(parts, CURLUPART_PORT, &port, 0); /* none: the scheme's */
        rc = fill(&url, scheme, host, port);
        url.has_user = curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK;
    }
    curl_free(user);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    if (rc != 0) {
        return refuse(text, reterr);
    }
    *ret = url;
    return 0;
}
