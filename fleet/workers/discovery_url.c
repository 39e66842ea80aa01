#include "fleet/workers/discovery_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *prefix; /* before the URL of a worker */
    enum discovery_kind kind;
} kinds[] = {{"dns+", DISCOVERY_ADDRESSES}, {"srv+", DISCOVERY_SERVICE}, {"", DISCOVERY_STATIC}};

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325;

    for (; *text != '\0'; text++) {
        sum = (sum ^ (uint8_t)*text) * 0x100000001b3;
    }
    return sum;
}

/* Letters, digits, "-_."; others become "-". Returns whether all were. */
static bool make_safe(char *text)
{
    bool is_safe = true;

    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char)*text) && strchr("-_.", *text) == NULL) {
            *text = '-';
            is_safe = false;
        }
    }
    return is_safe;
}

void discovery_id(const char *url, char ret[static DISCOVERY_ID_MAX])
{
    struct web_url web = {.port = 0};
    char id[sizeof(web.host) + 16];
    char suffix[20] = "";
    bool is_plain = web_url_parse(&web, url, NULL) == 0;

    (void)snprintf(id, sizeof(id), is_plain ? "%s-%d" : "worker", web.host, web.port);
    is_plain = is_plain && make_safe(id) && strcmp(web.target, "/") == 0;
    if (!is_plain || strlen(id) >= DISCOVERY_ID_MAX) {
        (void)snprintf(suffix, sizeof(suffix), "-%016" PRIx64, hash(url));
    }
    (void)snprintf(ret, DISCOVERY_ID_MAX, "%.*s%s", (int)(DISCOVERY_ID_MAX - 1 - strlen(suffix)),
                   id, suffix);
}

static int check(enum discovery_kind kind, const struct web_url *web, const char *text,
                 struct baton_error *reterr)
{
    if (!web->is_socket) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: a worker's URL begins with ws://, wss://, dns+ws://, srv+ws:// or "
                         "srv+wss://",
                         web->shown);
    }
    if (kind == DISCOVERY_ADDRESSES && web->is_tls) {
        return error_set(reterr, BATON_EINVAL,
                         "dns+%s: certificates are for names, and this finds addresses; use "
                         "srv+wss://, or name each worker",
                         web->shown);
    }
    if (strpbrk(text, "?#") != NULL) {
        return error_set(reterr, BATON_EINVAL, "%s: a worker's URL has no query and no fragment",
                         web->shown);
    }
    if (kind != DISCOVERY_STATIC && strcmp(web->target, "/") != 0) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: a name of several workers has no path; name each worker", web->shown);
    }
    return kind == DISCOVERY_STATIC && strlen(text) >= DISCOVERY_URL_MAX
               ? error_set(reterr, BATON_EINVAL, "%s: a worker's URL has at most %d bytes",
                           web->shown, DISCOVERY_URL_MAX - 1)
               : BATON_OK;
}

int discovery_url_parse(struct discovery_url *ret, const char *text, struct baton_error *reterr)
{
    struct web_url web;
    size_t i = 0;
    int code;

    while (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) != 0) {
        i++;
    }
    code = web_url_parse(&web, text + strlen(kinds[i].prefix), reterr);
    code = code ? code : check(kinds[i].kind, &web, text, reterr);
    if (code == BATON_OK) {
        *ret = (struct discovery_url){
            .kind = kinds[i].kind, .scheme = web.is_tls ? "wss" : "ws", .port = web.port};
        memcpy(ret->host, web.host, sizeof(ret->host));
    }
    return code;
}

int discovery_check(const char *url, struct baton_error *reterr)
{
    struct discovery_url parsed;

    return discovery_url_parse(&parsed, url, reterr);
}

bool discovery_found(struct discovered *ret, const char *scheme, const char *host, unsigned port)
{
    struct web_url web;
    bool is_ipv6 = strchr(host, ':') != NULL;
    int bytes = snprintf(ret->url, sizeof(ret->url), is_ipv6 ? "%s://[%s]:%u/" : "%s://%s:%u/",
                         scheme, host, port);

    ret->source = "dns";
    discovery_id(ret->url, ret->id);
    return bytes > 0 && (size_t)bytes < sizeof(ret->url) &&
           web_url_parse(&web, ret->url, NULL) == BATON_OK && strcmp(web.host, host) == 0;
}
