#include "fleet/outlets/mqtt_url.h"

#include "base/url.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_CLEAR = 1883, PORT_TLS = 8883, PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

/* After the scheme; NULL: it is another one. */
static const char *take_scheme(struct mqtt_url *url, const char *text)
{
    static const char clear[] = "mqtt://", tls[] = "mqtts://";

    url->is_tls = strncmp(text, tls, sizeof(tls) - 1) == 0;
    url->port = url->is_tls ? PORT_TLS : PORT_CLEAR;
    if (url->is_tls) {
        return text + sizeof(tls) - 1;
    }
    return strncmp(text, clear, sizeof(clear) - 1) == 0 ? text + sizeof(clear) - 1 : NULL;
}

static bool take_user(struct mqtt_url *url, const char *text, size_t bytes)
{
    const char *colon = memchr(text, ':', bytes);
    size_t user_bytes = colon != NULL ? (size_t)(colon - text) : bytes;

    return user_bytes > 0 &&
           url_decode(url->user, sizeof(url->user), text, user_bytes) == BATON_OK &&
           (colon == NULL || url_decode(url->password, sizeof(url->password), colon + 1,
                                        bytes - user_bytes - 1) == BATON_OK);
}

static bool take_port(struct mqtt_url *url, const char *text)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > PORT_DIGITS_MAX || text[digits] != '\0') {
        return false;
    }
    url->port = (int)strtol(text, NULL, 10);
    return url->port >= 1 && url->port <= PORT_MAX;
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT. */
static bool take_host(struct mqtt_url *url, const char *text)
{
    bool is_bracketed = text[0] == '[';
    const char *host = text + is_bracketed;
    size_t bytes = strcspn(host, is_bracketed ? "]" : ":/?#[]@ ");
    const char *after = host + bytes;

    if (bytes == 0 || bytes >= sizeof(url->host) || (is_bracketed && *after++ != ']')) {
        return false;
    }
    memcpy(url->host, host, bytes);
    url->host[bytes] = '\0';
    return *after == '\0' || (*after == ':' && take_port(url, after + 1));
}

int mqtt_url_parse(struct mqtt_url *ret, const char *text, struct baton_error *reterr)
{
    struct mqtt_url url = {.port = 0};
    const char *rest = take_scheme(&url, text);
    const char *at = rest != NULL ? strrchr(rest, '@') : NULL;
    bool is_good = rest != NULL && (at == NULL || take_user(&url, rest, (size_t)(at - rest))) &&
                   take_host(&url, at != NULL ? at + 1 : rest);

    if (is_good) {
        *ret = url;
    }
    explicit_bzero(&url, sizeof(url));
    return is_good ? BATON_OK
                   : error_set(reterr, BATON_EINVAL,
                               "the URL must be mqtt://[USER:PASSWORD@]HOST[:PORT] or mqtts://…; "
                               "in a user or password, '@', ':' and '/' are written %%40, %%3A, "
                               "%%2F");
}
