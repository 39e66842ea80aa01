/* redis:// addresses. */
#include "net/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Percent-decodes; false: no room, or a NUL within. */
static bool take(char *ret, size_t ret_bytes, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%' && i + 2 < length && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        }
        if (used + 1 >= ret_bytes || c == '\0') {
            return false;
        }
        ret[used++] = c;
    }
    ret[used] = '\0';
    return true;
}

static int take_user(struct redis_address *ret, const char *text, size_t length,
                     struct baton_error *reterr)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon ? (size_t)(colon - text) : length;

    if (!take(ret->user, sizeof(ret->user), text, user) ||
        (colon && !take(ret->password, sizeof(ret->password), colon + 1, length - user - 1))) {
        return error_set(reterr, BATON_ETOOBIG,
                         "Redis URL: user and password have at most %d bytes each, none of them 0",
                         REDIS_SECRET_MAX - 1);
    }
    return BATON_OK;
}

static int take_number(int *ret, const char *text, size_t length, int most, const char *what,
                       struct baton_error *reterr)
{
    char digits[8];
    char *end;
    long number;

    if (length == 0 || length >= sizeof(digits)) {
        return error_set(reterr, BATON_EINVAL, "Redis URL: %s \"%.*s\" is no number up to %d", what,
                         (int)(length < 20 ? length : 20), text, most);
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    number = strtol(digits, &end, 10);
    if (*end || digits[0] < '0' || digits[0] > '9' || number > most) {
        return error_set(reterr, BATON_EINVAL, "Redis URL: %s \"%s\" is no number up to %d", what,
                         digits, most);
    }
    *ret = (int)number;
    return BATON_OK;
}

static int take_host(struct redis_address *ret, const char *text, size_t length,
                     struct baton_error *reterr)
{
    const char *bracket = length > 0 && text[0] == '[' ? memchr(text, ']', length) : NULL;
    const char *host = bracket ? text + 1 : text;
    size_t host_bytes = bracket ? (size_t)(bracket - host) : strcspn(text, ":/?#");
    const char *rest;

    host_bytes = bracket || host_bytes < length ? host_bytes : length;
    rest = host + host_bytes + (bracket != NULL);
    if (!take(ret->host, sizeof(ret->host), host, host_bytes)) {
        return error_set(reterr, BATON_ETOOBIG, "Redis URL: a host has at most %d bytes",
                         REDIS_HOST_MAX - 1);
    }
    if (!ret->host[0]) {
        (void)snprintf(ret->host, sizeof(ret->host), "127.0.0.1");
    }
    if (rest < text + length) {
        if (*rest != ':') {
            return error_set(reterr, BATON_EINVAL, "Redis URL: \"%.20s\" after the host", rest);
        }
        return take_number(&ret->port, rest + 1, (size_t)(text + length - rest - 1), 65535, "port",
                           reterr);
    }
    return BATON_OK;
}

int redis_address_parse(struct redis_address *ret, const char *url, struct baton_error *reterr)
{
    static const char scheme[] = "redis://";
    struct redis_address address = {.port = 6379};
    const char *start = url + sizeof(scheme) - 1;
    const char *at;
    size_t length;
    int r = BATON_OK;

    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
        return error_set(reterr, BATON_EINVAL, "Redis URL: must begin with %s", scheme);
    }
    length = strcspn(start, "/?#");
    at = memrchr(start, '@', length);
    if (at) {
        r = take_user(&address, start, (size_t)(at - start), reterr);
        length -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    if (r == BATON_OK) {
        r = take_host(&address, start, length, reterr);
    }
    start += length;
    if (r == BATON_OK && *start == '/' && start[1] && !strchr("?#", start[1])) {
        r = take_number(&address.database, start + 1, strcspn(start + 1, "?#"), 65535, "database",
                        reterr);
    }
    if (r == BATON_OK) {
        *ret = address;
    }
    return r;
}
