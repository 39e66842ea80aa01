#include "detector/camera/url.h"

#include "base/crc32c.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LOGIN_MAX = 127 }; /* FFmpeg would send less of it, as another password */

static const struct {
    const char *name;
    uint16_t port;
} schemes[] = {{"rtsp", 554}, {"rtsps", 322}, {"http", 80}, {"https", 443}};

static const char no_port[] = "its port is no number from 1 to 65535; a / # or ? in a name or "
                              "password is percent-encoded (/ is %2F, # is %23, ? is %3F)";
static const char no_host[] =
    "its host is none; special characters in name and password are percent-encoded";

/* Returns the length of "scheme://", or 0 if there is none. */
static size_t scheme_bytes(const char *text)
{
    size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return bytes > 0 && strncmp(text + bytes, "://", 3) == 0 ? bytes + 3 : 0;
}

/* Returns the port of a scheme, or 0 if it is no camera's. */
static uint16_t port_of_scheme(const char *scheme, size_t bytes)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (bytes == strlen(schemes[i].name) && strncasecmp(scheme, schemes[i].name, bytes) == 0) {
            return schemes[i].port;
        }
    }
    return 0;
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

/* Returns what is wrong before the path, or NULL; libcurl would take the first part of the path for
 * a missing host, and says less. */
static const char *find_fault(const char *text)
{
    size_t scheme = scheme_bytes(text);
    size_t end = scheme + strcspn(text + scheme, "/?#");
    const char *at = memchr(text + scheme, '@', end - scheme);

    if (scheme == 0) {
        return "it has no scheme";
    }
    if (port_of_scheme(text, scheme - 3) == 0) {
        return "its scheme is another";
    }
    if (has_blank(text)) {
        return "it holds a space or control character; a space is written %20";
    }
    if (at != NULL && memchr(at + 1, '@', (size_t)(text + end - at - 1)) != NULL) {
        return "it has more than one @ before the path: in a name or password, @ is written %40";
    }
    return end == scheme || at == text + end - 1 ? "its host is missing" : NULL;
}

void url_without_tls(char *ret, size_t bytes, const struct url *url, const char *text)
{
    bool is_rtsps = strcmp(url->scheme, "rtsps") == 0;
    const char *host = text + strlen(url->scheme) + strlen("://");
    const char *end = host + strcspn(host, "/?#");
    const char *stop = end - (end[-1] == ':'); /* FFmpeg would take an empty port for 0 */
    const char *port = memrchr(host, ':', (size_t)(stop - host));
    bool has_port = port != NULL && port + strcspn(port, "]@/?#") == end;

    (void)snprintf(ret, bytes, "%s://%.*s%s%s", is_rtsps ? "rtsp" : url->scheme, (int)(stop - host),
                   host, is_rtsps && !has_port ? ":322" : "", end);
}

/* Returns what is wrong, or NULL; so does the next one. */
static const char *fill(struct url *url, const char *scheme, const char *host, const char *port)
{
    unsigned long number =
        port != NULL ? strtoul(port, NULL, 10) : port_of_scheme(scheme, strlen(scheme));
    bool is_v6 = host[0] == '[';
    int length;

    if (number == 0 || number > UINT16_MAX) {
        return no_port;
    }
    if (strlen(host) >= sizeof(url->host)) {
        return no_host;
    }
    url->port = (uint16_t)number;
    (void)snprintf(url->scheme, sizeof(url->scheme), "%s", scheme);
    (void)snprintf(url->host, sizeof(url->host), "%.*s", (int)strlen(host) - 2 * is_v6,
                   host + is_v6);
    length = snprintf(url->masked, sizeof(url->masked), "%s://%s:%u/…", scheme, host,
                      (unsigned)url->port);
    return (size_t)length < sizeof(url->masked) ? NULL : no_host;
}

static const char *read_login(struct url *url, CURLU *parts)
{
    static const CURLUPart secrets[] = {CURLUPART_USER, CURLUPART_PASSWORD};
    char *text = NULL;
    size_t bytes = 0;

    url->login = crc32c(0, url->host, sizeof(url->host));
    for (int i = 0; i < 2; i++) {
        if (curl_url_get(parts, secrets[i], &text, 0) == CURLUE_OK) {
            url->has_user = true;
            bytes += strlen(text) + (bytes > 0);
            url->login = crc32c(url->login, text, strlen(text) + 1);
            explicit_bzero(text, strlen(text));
            curl_free(text);
        }
    }
    return bytes > LOGIN_MAX && strncmp(url->scheme, "rtsp", 4) == 0
               ? "name and password are above 127 bytes as they are written"
               : NULL;
}

int url_parse(struct url *ret, const char *text, struct baton_error *reterr)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    const char *fault = find_fault(text);
    struct url url = {0};
    CURLUcode code;

    if (parts == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    }
    code = curl_url_set(parts, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
    code = code ? code : curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0); /* in lower case */
    code = code ? code : curl_url_get(parts, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(parts, CURLUPART_PORT, &port, 0); /* none: the scheme's */
    if (fault == NULL && code != CURLUE_OK) {
        fault = code == CURLUE_BAD_PORT_NUMBER ? no_port : no_host;
    }
    fault = fault ? fault : fill(&url, scheme, host, port);
    fault = fault ? fault : read_login(&url, parts);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    if (fault != NULL) {
        return error_set(
            reterr, BATON_EINVAL,
            "camera URL: %s; it must be rtsp://, rtsps://, http:// or https:// with a host", fault);
    }
    *ret = url;
    return 0;
}
