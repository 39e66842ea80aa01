#include "fleet/objects/url.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SCHEME_SHOWN_MAX = 16, PORT_DIGITS_MAX = 5, PORT_MAX = 65535, SCHEMES_MAX = 7 };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

static const struct {
    const char *schemes[SCHEMES_MAX]; /* ends with NULL */
    const char *allowed;
} uses[] = {
    [FLEET_URL_STREAM] = {{"rtsp", "rtsps"}, "rtsp:// or rtsps://"},
    [FLEET_URL_PICTURE] = {{"http", "https"}, "http:// or https://"},
    [FLEET_URL_MODEL] = {{"http", "https", "s3"}, "http://, https:// or s3://BUCKET/KEY"},
    [FLEET_URL_WORKER] = {{"ws", "wss", "dns+ws", "dns+wss", "srv+ws", "srv+wss"},
                          "ws://HOST:PORT, dns+ws://NAME:PORT or srv+ws://NAME, or wss in place of "
                          "ws"},
};

/* ---- Parts ----------------------------------------------------------------------------------- */

struct parts {
    size_t scheme_bytes; /* 0: it has none */
    const char *user;    /* the authority begins here */
    const char *host;    /* behind its last @ */
    const char *path;    /* "", or begins with / ? or # */
};

static struct parts parts_of(const char *url)
{
    size_t bytes = strspn(url, LETTERS DIGITS "+-.");
    struct parts parts = {.scheme_bytes = strncmp(url + bytes, "://", 3) == 0 ? bytes : 0};

    parts.user = parts.scheme_bytes > 0 ? url + bytes + 3 : url;
    parts.path = parts.user + strcspn(parts.user, "/?#");
    parts.host = parts.user;
    for (const char *at = parts.user; at < parts.path; at++) {
        parts.host = *at == '@' ? at + 1 : parts.host;
    }
    return parts;
}

/* NULL: its bracket does not close. */
static const char *host_end_of(const struct parts *parts)
{
    size_t bytes = (size_t)(parts->path - parts->host);
    bool is_bracketed = bytes > 0 && parts->host[0] == '[';
    const char *end = memchr(parts->host, is_bracketed ? ']' : ':', bytes);

    if (is_bracketed) {
        return end ? end + 1 : NULL;
    }
    return end ? end : parts->path;
}

static bool has_scheme(const char *url, size_t bytes, const char *scheme)
{
    return strlen(scheme) == bytes && strncasecmp(url, scheme, bytes) == 0;
}

static bool is_allowed(const char *url, size_t bytes, enum fleet_url_use use)
{
    for (const char *const *scheme = uses[use].schemes; *scheme; scheme++) {
        if (has_scheme(url, bytes, *scheme)) {
            return true;
        }
    }
    return false;
}

/* ---- Checking -------------------------------------------------------------------------------- */

static int refuse_scheme(const char *url, size_t bytes, enum fleet_url_use use, const char *field,
                         struct baton_error *reterr)
{
    const char *way_out = "";

    if (use == FLEET_URL_STREAM && (has_scheme(url, bytes, "http") || /* a frequent mistake */
                                    has_scheme(url, bytes, "https"))) {
        way_out = "; what a camera shows under http is its snapshotUrl";
    } else if (use == FLEET_URL_PICTURE &&
               (has_scheme(url, bytes, "rtsp") || has_scheme(url, bytes, "rtsps"))) {
        way_out = "; a stream is the camera's rtspUrl";
    }
    if (bytes > 0 && bytes <= SCHEME_SHOWN_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s: begins with %.*s://: must be %s%s", field,
                         (int)bytes, url, uses[use].allowed, way_out);
    }
    return error_set(reterr, BATON_EINVAL, "%s: has no scheme: must be %s%s", field,
                     uses[use].allowed, way_out);
}

static const char *fault_of_port(const char *port, const char *end)
{
    size_t digits = strspn(port, DIGITS);
    unsigned long number = digits <= PORT_DIGITS_MAX ? strtoul(port, NULL, 10) : 0;

    return digits > 0 && port + digits == end && number > 0 && number <= PORT_MAX
               ? NULL
               : "its port is no number from 1 to 65535; in a name or password / is written %2F, ? "
                 "%3F, # %23 and : %3A";
}

static const char *fault_of_host(const struct parts *parts)
{
    const char *host = parts->host, *end = parts->path, *name_end = host_end_of(parts);

    if (parts->host > parts->user &&
        memchr(parts->user, '@', (size_t)(parts->host - 1 - parts->user))) {
        return "it has more than one @ before its path; in a name or password @ is written %40";
    }
    if (!name_end || (host < end && host[0] == '[' &&
                      strspn(host + 1, DIGITS "abcdefABCDEF:.%") < (size_t)(name_end - host - 2))) {
        return "its host in brackets is no address of IPv6";
    }
    if (name_end == host) {
        return "its host is missing";
    }
    if (name_end == end) {
        return NULL;
    }
    return *name_end == ':' ? fault_of_port(name_end + 1, end) : "something stands behind its host";
}

static const char *fault_of_bucket(const struct parts *parts)
{
    static const char allowed[] = LETTERS DIGITS ".-_";
    size_t bytes = (size_t)(parts->path - parts->user);

    if (parts->host != parts->user) {
        return "an s3:// URL has no user and password: they are options of the program";
    }
    if (bytes == 0 || strspn(parts->user, allowed) != bytes) {
        return "its bucket must be of letters, digits, dots and hyphens";
    }
    return parts->path[0] == '/' && parts->path[1] != '\0' ? NULL : "its key is missing";
}

/* What a name or an address may not hold: it would be read differently by the next reader. */
static const char *fault_of_bytes(const char *url)
{
    for (const unsigned char *at = (const unsigned char *)url; *at; at++) {
        if (*at <= 0x20 || *at == 0x7f) {
            return "it holds a blank or a control character; a blank is written %20";
        }
        if (strchr("\"<>\\^`{|}", *at)) {
            return "it holds one of \"<>\\^`{|}, which are written %22 %3C %3E %5C %5E %60 %7B %7C "
                   "%7D";
        }
    }
    return NULL;
}

static const char *fault_of_worker(const struct parts *parts)
{
    if (parts->host != parts->user) {
        return "a worker's URL has no user and password: the workers' token is an option";
    }
    return strchr(parts->user, '?') || strchr(parts->user, '#') ? "it has a query or a fragment"
                                                                : NULL;
}

int fleet_url_check(const char *url, enum fleet_url_use use, const char *field,
                    struct baton_error *reterr)
{
    struct parts parts = parts_of(url);
    const char *fault;

    if (!is_allowed(url, parts.scheme_bytes, use)) {
        return refuse_scheme(url, parts.scheme_bytes, use, field, reterr);
    }
    if (strstr(url, FLEET_MASK)) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: holds " FLEET_MASK
                         ", which masks what is secret: give the whole URL, "
                         "or leave %s out of a patch",
                         field, field);
    }
    fault = fault_of_bytes(url);
    if (!fault) {
        fault = has_scheme(url, parts.scheme_bytes, "s3") ? fault_of_bucket(&parts)
                                                          : fault_of_host(&parts);
    }
    if (!fault && use == FLEET_URL_WORKER) {
        fault = fault_of_worker(&parts);
    }
    return fault ? error_set(reterr, BATON_EINVAL, "%s: %s", field, fault) : BATON_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* 0: it is neither named nor that of a worker's scheme. */
static unsigned long port_of(const char *url, const struct parts *parts, const char *host_end)
{
    if (host_end < parts->path) {
        return strtoul(host_end + 1, NULL, 10);
    }
    return has_scheme(url, parts->scheme_bytes, "ws")    ? 80
           : has_scheme(url, parts->scheme_bytes, "wss") ? 443
                                                         : 0;
}

static bool is_same_text(const char *a, const char *a_end, const char *b, const char *b_end)
{
    return a_end - a == b_end - b && strncasecmp(a, b, (size_t)(a_end - a)) == 0;
}

bool fleet_url_is_same(const char *a, const char *b)
{
    struct parts one = parts_of(a), other = parts_of(b);
    const char *one_end = host_end_of(&one), *other_end = host_end_of(&other);
    const char *one_path = strcmp(one.path, "/") == 0 ? "" : one.path;
    const char *other_path = strcmp(other.path, "/") == 0 ? "" : other.path;

    return one_end && other_end &&
           is_same_text(a, a + one.scheme_bytes, b, b + other.scheme_bytes) &&
           is_same_text(one.host, one_end, other.host, other_end) &&
           port_of(a, &one, one_end) == port_of(b, &other, other_end) &&
           strcmp(one_path, other_path) == 0;
}

/* ---- Masking --------------------------------------------------------------------------------- */

/* A password with a / in it ends the authority early: what stands before a later @ is masked too.
 */
static const char *host_of(const struct parts *parts)
{
    const char *at = strrchr(parts->user, '@');

    return at ? at + 1 : parts->user;
}

char *fleet_url_masked(const char *url, enum fleet_url_use use)
{
    struct parts parts = parts_of(url);
    const char *host = host_of(&parts), *path = host + strcspn(host, "/?#");
    size_t room = strlen(url) + 3 * sizeof(FLEET_MASK) + 1;
    char *ret = malloc(room);
    int shown; /* bytes of the path */

    if (!ret) {
        return NULL;
    }
    if (parts.scheme_bytes == 0) {
        (void)snprintf(ret, room, "%s", FLEET_MASK);
        return ret;
    }
    shown = use == FLEET_URL_MODEL || use == FLEET_URL_WORKER ? (int)strcspn(path, "?#")
            : path[0] == '/'                                  ? 1
                                                              : 0;
    (void)snprintf(ret, room, "%.*s%s%.*s%.*s%s", (int)(parts.user - url), url,
                   host > parts.user ? FLEET_MASK "@" : "", (int)(path - host), host, shown, path,
                   path[shown] == '\0'  ? ""
                   : path[shown] == '?' ? "?" FLEET_MASK
                                        : FLEET_MASK);
    return ret;
}

const char *fleet_text_shown(const char *text, char ret[static FLEET_SHOWN_MAX])
{
    bool may_be_url = strstr(text, "://") || (strchr(text, ':') && strchr(text, '@'));

    (void)text_clean(ret, FLEET_SHOWN_MAX, may_be_url ? FLEET_MASK : text,
                     may_be_url ? strlen(FLEET_MASK) : strlen(text));
    return ret;
}

bool fleet_url_has_password(const char *url)
{
    struct parts parts = parts_of(url);

    return parts.scheme_bytes > 0 &&
           memchr(parts.user, ':', (size_t)(parts.host - parts.user)) != NULL;
}
