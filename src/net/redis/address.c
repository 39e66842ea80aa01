/* Parses the URLs of Redis servers. */
#include "net/redis/redis.h"

#include "base/url.h"

#include <stdio.h>
#include <string.h>

enum { REDIS_VALUE_MAX = 1024 }; /* bytes of a value in the query, mostly a path */

/* Percent-decodes. False: the result does not fit or contains a NUL. */
static bool take(char *ret, size_t ret_bytes, const char *text, size_t length)
{
    return url_decode(ret, ret_bytes, text, length) == BATON_OK;
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
    int number = 0;
    bool is_number = length > 0;

    for (size_t i = 0; is_number && i < length; i++) {
        is_number = text[i] >= '0' && text[i] <= '9';
        number = number * 10 + (text[i] - '0');
        is_number = is_number && number <= most;
    }
    if (!is_number) { /* the message does not quote it: without its @, USER:PASSWORD looks like
                         HOST:PORT */
        return error_set(reterr, BATON_EINVAL, "Redis URL: the %s must be a number from 0 to %d",
                         what, most);
    }
    *ret = number;
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
    if (!bracket && rest < text + length &&
        memchr(rest + 1, ':', (size_t)(text + length - rest - 1))) {
        return error_set(reterr, BATON_EINVAL, "Redis URL: write an IPv6 address as [ADDR]:PORT");
    }
    if (!ret->host[0]) {
        return error_set(
            reterr, BATON_EINVAL,
            "Redis URL: the host is missing; this machine's server is localhost, as in "
            "redis://localhost");
    }
    if (rest < text + length) {
        if (*rest != ':') {
            return error_set(reterr, BATON_EINVAL,
                             "Redis URL: behind the host comes :PORT or nothing");
        }
        return take_number(&ret->port, rest + 1, (size_t)(text + length - rest - 1), 65535, "port",
                           reterr);
    }
    return BATON_OK;
}

/* HOST[:PORT],HOST[:PORT],… */
static int take_hosts(struct redis_host *ret, int *ret_count, int most, int port, const char *text,
                      size_t length, struct baton_error *reterr)
{
    const char *end = text + length;
    int r = BATON_OK;

    while (r == BATON_OK && text <= end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t bytes = (size_t)((comma ? comma : end) - text);
        struct redis_address one = {.port = port};
        if (*ret_count == most) {
            return error_set(reterr, BATON_ETOOBIG, "Redis URL: more than %d hosts", most);
        }
        r = take_host(&one, text, bytes, reterr);
        struct redis_host *host = &ret[(*ret_count)++];
        memcpy(host->host, one.host, sizeof(host->host));
        host->port = one.port;
        text += bytes + 1;
    }
    return r;
}

static int take_path(struct redis_address *ret, const char *text, size_t length,
                     struct baton_error *reterr)
{
    if (length == 0 || text[0] != '/') {
        return error_set(reterr, BATON_EINVAL,
                         "Redis URL: unix:// is followed by a whole path, as in "
                         "unix:///run/redis/redis.sock");
    }
    if (!take(ret->path, sizeof(ret->path), text, length)) {
        return error_set(reterr, BATON_ETOOBIG, "Redis URL: a socket's path has at most %d bytes",
                         REDIS_PATH_MAX - 1);
    }
    return BATON_OK;
}

/* ---- The query ------------------------------------------------------------------------------- */

static int set_text(char *ret, size_t ret_bytes, const char *key, const char *value,
                    struct baton_error *reterr)
{
    if ((size_t)snprintf(ret, ret_bytes, "%s", value) >= ret_bytes) {
        return error_set(reterr, BATON_ETOOBIG, "Redis: %s has at most %zu bytes", key,
                         ret_bytes - 1);
    }
    return BATON_OK;
}

static int set_verify(struct redis_tls *tls, const char *value, struct baton_error *reterr)
{
    bool is_off = strcmp(value, "off") == 0;

    if (!is_off && strcmp(value, "on") != 0) {
        return error_set(reterr, BATON_EINVAL, "Redis: verify \"%.20s\": must be on or off", value);
    }
    tls->is_unverified = is_off;
    return BATON_OK;
}

static int set_tls(struct redis_address *address, const char *key, const char *value,
                   struct baton_error *reterr)
{
    struct redis_tls *tls = &address->tls;
    const struct {
        const char *key;
        char *ret;
        size_t ret_bytes;
    } texts[] = {
        {"ca", tls->ca, sizeof(tls->ca)},
        {"cert", tls->certificate, sizeof(tls->certificate)},
        {"key", tls->key, sizeof(tls->key)},
        {"sni", tls->name, sizeof(tls->name)},
        {"verify", NULL, 0},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(key, texts[i].key) != 0) {
            continue;
        }
        if (!address->is_tls) { /* the user expects an encrypted connection */
            return error_set(reterr, BATON_EINVAL,
                             "Redis: %s is for TLS only; begin the URL with rediss://", key);
        }
        return texts[i].ret ? set_text(texts[i].ret, texts[i].ret_bytes, key, value, reterr)
                            : set_verify(tls, value, reterr);
    }
    return BATON_OK;
}

int redis_address_set(struct redis_address *address, const char *key, const char *value,
                      struct baton_error *reterr)
{
    if (strcmp(key, "db") == 0) {
        return take_number(&address->database, value, strlen(value), 65535, "db", reterr) == 0
                   ? BATON_OK
                   : error_set(reterr, BATON_EINVAL, "Redis: db \"%.20s\": must be 0 to 65535",
                               value);
    }
    if (strcmp(key, "quorum") == 0) {
        address->wants_majority = strcmp(value, "majority") == 0;
        return address->wants_majority
                   ? BATON_OK
                   : error_set(reterr, BATON_EINVAL, "Redis: quorum \"%.20s\": must be majority",
                               value);
    }
    if (strcmp(key, "sentinel-user") == 0) {
        return set_text(address->sentinel_user, REDIS_SECRET_MAX, key, value, reterr);
    }
    if (strcmp(key, "sentinel-password") == 0) {
        return set_text(address->sentinel_password, REDIS_SECRET_MAX, key, value, reterr);
    }
    return set_tls(address, key, value, reterr);
}

/* Ignores a key that is longer than any of ours. */
static int take_pair(struct redis_address *ret, const struct url_pair *pair,
                     struct baton_error *reterr)
{
    char key[32];
    char value[REDIS_VALUE_MAX];

    if (!take(key, sizeof(key), pair->key, pair->key_bytes)) {
        return BATON_OK;
    }
    if (!take(value, sizeof(value), pair->value, pair->value_bytes)) {
        value[0] = '\0'; /* a value of a foreign key may have any length */
    }
    int r = redis_address_set(ret, key, value, reterr);
    explicit_bzero(value, sizeof(value));
    return r;
}

static int take_query(struct redis_address *ret, const char *text, struct baton_error *reterr)
{
    const char *query = url_query(text);
    struct url_pair pair;
    int r = BATON_OK;

    while (r == BATON_OK && url_next(&query, &pair)) {
        r = take_pair(ret, &pair, reterr);
    }
    return r;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool begins(const char **url, const char *scheme)
{
    size_t length = strlen(scheme);
    bool is = strncmp(*url, scheme, length) == 0;

    *url += is ? length : 0;
    return is;
}

/* Parses USER:PASSWORD@, if it is there; `length` bytes at *text remain. */
static int take_authority(struct redis_address *ret, const char **text, size_t *length,
                          struct baton_error *reterr)
{
    const char *at = memrchr(*text, '@', *length);
    int r = at ? take_user(ret, *text, (size_t)(at - *text), reterr) : BATON_OK;

    if (at) {
        *length -= (size_t)(at + 1 - *text);
        *text = at + 1;
    }
    return r;
}

static int take_database(struct redis_address *ret, const char **text, struct baton_error *reterr)
{
    size_t length;
    int r = BATON_OK;

    if (**text == '/') {
        length = strcspn(*text + 1, "?#");
        r = length == 0 ? BATON_OK
                        : take_number(&ret->database, *text + 1, length, 65535, "database", reterr);
        *text += 1 + length;
    }
    return r;
}

static int take_server(struct redis_address *ret, const char **text, struct baton_error *reterr)
{
    size_t length = strcspn(*text, "/?#");
    int r = take_authority(ret, text, &length, reterr);

    if (r == BATON_OK && memchr(*text, ',', length)) {
        r = take_hosts(ret->servers, &ret->server_count, REDIS_SERVERS_MAX, 6379, *text, length,
                       reterr);
        memcpy(ret->host, ret->servers[0].host, sizeof(ret->host));
        ret->port = ret->servers[0].port;
    } else if (r == BATON_OK) {
        r = take_host(ret, *text, length, reterr);
    }
    *text += length;
    return r == BATON_OK ? take_database(ret, text, reterr) : r;
}

static int take_service(struct redis_address *ret, const char **text, struct baton_error *reterr)
{
    size_t length = strcspn(*text, "/?#");
    int r = take_authority(ret, text, &length, reterr);

    if (r == BATON_OK) {
        r = take_hosts(ret->sentinels, &ret->sentinel_count, REDIS_SENTINELS_MAX, 26379, *text,
                       length, reterr);
    }
    if (r != BATON_OK) {
        return r;
    }
    *text += length;
    *text += **text == '/';
    length = strcspn(*text, "/?#");
    if (length == 0 || !take(ret->service, sizeof(ret->service), *text, length)) {
        return error_set(reterr, BATON_EINVAL,
                         "Redis URL: the Sentinels are followed by the service's name of 1 to %d "
                         "bytes, as in redis+sentinel://a,b,c/NAME",
                         REDIS_SERVICE_MAX - 1);
    }
    *text += length;
    return take_database(ret, text, reterr);
}

static int take_socket(struct redis_address *ret, const char **text, struct baton_error *reterr)
{
    size_t length = strcspn(*text, "/?#");
    int r = take_authority(ret, text, &length, reterr);

    if (r == BATON_OK && length > 0) {
        r = error_set(reterr, BATON_EINVAL,
                      "Redis URL: what follows unix:// is no whole path: unix:///…");
    }
    if (r == BATON_OK) {
        length = strcspn(*text, "?#");
        r = take_path(ret, *text, length, reterr);
        *text += length;
    }
    return r;
}

/* Refuses redis://me:s3/cret@host, which would otherwise be host "me" with port "s3". */
static int check_authority(const char *url, struct baton_error *reterr)
{
    const char *authority = strstr(url, "://");
    size_t length = authority ? strcspn(authority + 3, "/?#") : 0;

    if (length > 0 && strchr(authority + 3 + length, '@')) {
        return error_set(
            reterr, BATON_EINVAL,
            "Redis URL: an @ stands behind a /, ? or #; in a password they are written "
            "%%2F, %%3F and %%23, and an @ behind the host %%40");
    }
    return BATON_OK;
}

int redis_address_parse(struct redis_address *ret, const char *url, struct baton_error *reterr)
{
    struct redis_address address = {.port = 6379};
    int r = check_authority(url, reterr);

    if (r != BATON_OK) {
        return r;
    }
    address.is_tls = begins(&url, "rediss://");
    if (address.is_tls || begins(&url, "redis://")) {
        r = take_server(&address, &url, reterr);
    } else if (begins(&url, "unix://") || begins(&url, "redis+unix://")) {
        r = take_socket(&address, &url, reterr);
    } else if (begins(&url, "redis+sentinel://")) {
        r = take_service(&address, &url, reterr);
    } else {
        r = error_set(reterr, BATON_EINVAL,
                      "Redis URL: must begin with redis://, rediss://, unix:// or "
                      "redis+sentinel://");
    }
    if (r == BATON_OK) {
        r = take_query(&address, url, reterr);
    }
    if (r == BATON_OK) {
        *ret = address;
    }
    explicit_bzero(address.password, sizeof(address.password));
    explicit_bzero(address.sentinel_password, sizeof(address.sentinel_password));
    return r;
}

int redis_address_check(const struct redis_address *address, struct baton_error *reterr)
{
    if (address->server_count > 0 && !address->wants_majority) {
        return error_set(reterr, BATON_EINVAL,
                         "Redis URL: with several independent servers ?quorum=majority says that "
                         "a lock counts when more than half of them grant it");
    }
    if (address->wants_majority && address->server_count < 3) {
        return error_set(reterr, BATON_EINVAL,
                         "Redis: quorum=majority needs at least 3 servers, as in "
                         "redis://a,b,c?quorum=majority; with two, no server could be lost");
    }
    for (int i = 0; i < address->server_count; i++) {
        for (int j = i + 1; j < address->server_count; j++) {
            if (strcmp(address->servers[i].host, address->servers[j].host) == 0 &&
                address->servers[i].port == address->servers[j].port) {
                return error_set(reterr, BATON_EINVAL,
                                 "Redis URL: %.200s:%d is given twice; leave one out",
                                 address->servers[i].host, address->servers[i].port);
            }
        }
    }
    return BATON_OK;
}

void redis_address_of_sentinel(const struct redis_address *address, struct redis_address *ret)
{
    *ret = (struct redis_address){.port = address->sentinels[0].port};
    memcpy(ret->host, address->sentinels[0].host, sizeof(ret->host));
    memcpy(ret->user, address->sentinel_user, sizeof(ret->user));
    memcpy(ret->password, address->sentinel_password, sizeof(ret->password));
}

void redis_address_name(const struct redis_address *address, char *ret, size_t ret_bytes)
{
    if (address->path[0]) {
        (void)snprintf(ret, ret_bytes, "%s", address->path);
    } else if (!address->host[0]) {
        (void)snprintf(ret, ret_bytes, "service \"%s\"", address->service);
    } else {
        (void)snprintf(ret, ret_bytes, "%.200s:%d", address->host, address->port);
    }
}
