#include "web/url.h"

#include <http_parser.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int port;
    bool is_tls, is_socket;
} schemes[] = {{"http", 80, false, false},
               {"https", 443, true, false},
               {"ws", 80, false, true},
               {"wss", 443, true, true}};

enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

/* Secrets are in front of an at sign, and in the query. */
static void show(char *ret, size_t bytes, const char *text)
{
    const char *host = strstr(text, "://"), *at = strrchr(text, '@');
    int scheme_bytes = host != NULL ? (int)(host - text) + 3 : 0;
    int shown_bytes;

    host = host != NULL ? host + 3 : text;
    at = at != NULL && at >= host ? at + 1 : host;
    shown_bytes = (int)strcspn(at, "?#");
    (void)snprintf(ret, bytes, "%.*s%s%.*s", scheme_bytes < 16 ? scheme_bytes : 0, text,
                   at != host ? "***@" : "", shown_bytes, at);
}

/* A field of the URL; "" if there is none. False: it has no room. */
static bool copy(char *ret, size_t bytes, const char *text, const struct http_parser_url *parts,
                 enum http_parser_url_fields field)
{
    bool is_set = (parts->field_set & 1U << field) != 0;
    size_t length = is_set ? parts->field_data[field].len : 0;

    if (length >= bytes) {
        return false;
    }
    memcpy(ret, text + (is_set ? parts->field_data[field].off : 0), length);
    ret[length] = '\0';
    return true;
}

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text >= 0x7f) {
            return false;
        }
    }
    return true;
}

static bool take_scheme(struct web_url *url, const char *name)
{
    for (size_t i = 0; i < SCHEMES; i++) {
        if (strcasecmp(name, schemes[i].name) == 0) {
            url->is_tls = schemes[i].is_tls;
            url->is_socket = schemes[i].is_socket;
            url->port = schemes[i].port;
            return true;
        }
    }
    return false;
}

static void put_authority(struct web_url *url, unsigned port)
{
    bool is_v6 = strchr(url->host, ':') != NULL;
    bool is_usual = port == 0 || (int)port == url->port;
    char suffix[8] = "";

    if (!is_usual) {
        (void)snprintf(suffix, sizeof(suffix), ":%u", port);
        url->port = (int)port;
    }
    (void)snprintf(url->authority, sizeof(url->authority), is_v6 ? "[%s]%s" : "%s%s", url->host,
                   suffix);
}

static const char *parse(struct web_url *ret, const char *text)
{
    struct http_parser_url parts;
    char scheme[8], path[WEB_URL_MAX + 1], query[WEB_URL_MAX + 1];

    http_parser_url_init(&parts);
    if (strlen(text) > WEB_URL_MAX || !is_visible(text) ||
        http_parser_parse_url(text, strlen(text), 0, &parts) != 0 ||
        !copy(scheme, sizeof(scheme), text, &parts, UF_SCHEMA) ||
        !copy(path, sizeof(path), text, &parts, UF_PATH) ||
        !copy(query, sizeof(query), text, &parts, UF_QUERY)) {
        return "is no URL: SCHEME://HOST[:PORT]/PATH, without blanks";
    }
    if (!take_scheme(ret, scheme)) {
        return "the scheme must be http, https, ws or wss";
    }
    if (!copy(ret->host, sizeof(ret->host), text, &parts, UF_HOST) || ret->host[0] == '\0') {
        return "the host is missing or too long";
    }
    if ((parts.field_set & 1U << UF_USERINFO) != 0) {
        return "a URL with a user is refused; send a token in a header";
    }
    if ((parts.field_set & 1U << UF_PORT) != 0 && parts.port == 0) {
        return "port 0 is none";
    }
    put_authority(ret, parts.port);
    (void)snprintf(ret->target, sizeof(ret->target), "%s%s%s", path[0] != '\0' ? path : "/",
                   query[0] != '\0' ? "?" : "", query);
    return NULL;
}

int web_url_parse(struct web_url *ret, const char *text, struct baton_error *reterr)
{
    char shown[sizeof(ret->shown)];
    struct web_url url = {.port = 0};
    const char *fault;

    show(shown, sizeof(shown), text);
    fault = parse(&url, text);
    if (fault != NULL) {
        return error_set(reterr, BATON_EINVAL, "%s: %s", shown, fault);
    }
    (void)snprintf(url.shown, sizeof(url.shown), "%s", shown);
    *ret = url;
    return BATON_OK;
}
