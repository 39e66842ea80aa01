/* Options from a URL's query or a list, and URLs that may be shown. */
#include "base/url.h"
#include "provider/provider.h"

#include <stdio.h>
#include <string.h>

const char *provider_option(const struct provider_config *config, const char *key, char *space,
                            size_t space_bytes)
{
    size_t key_length = strlen(key);
    const char *at = strchr(config->url, '?');

    for (size_t i = 0; i < config->option_count; i++) {
        if (strcmp(config->options[i].key, key) == 0) {
            const char *value = config->options[i].value ? config->options[i].value : "";
            return (size_t)snprintf(space, space_bytes, "%s", value) < space_bytes ? space : NULL;
        }
    }
    while (at && *at) {
        const char *start = at + 1;
        size_t length = strcspn(start, "&#");
        if (length >= key_length && strncmp(start, key, key_length) == 0 &&
            (length == key_length || start[key_length] == '=')) {
            const char *value = start + key_length + (length > key_length);
            return url_decode(space, space_bytes, value, length - (size_t)(value - start)) == 0
                       ? space
                       : NULL;
        }
        at = start[length] == '&' ? start + length : NULL;
    }
    return NULL;
}

static bool is_secret(const char *key, size_t length)
{
    static const char *const words[] = {"pass", "secret", "token", "key="};

    for (size_t i = 0; i + 1 < length; i++) {
        for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
            size_t word = strlen(words[j]);
            if (i + word <= length && strncasecmp(key + i, words[j], word) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void append(char *ret, size_t ret_bytes, const char *text, size_t length)
{
    size_t used = strlen(ret);
    if (used + 1 < ret_bytes) {
        size_t room = ret_bytes - used - 1;
        length = length < room ? length : room;
        memcpy(ret + used, text, length);
        ret[used + length] = '\0';
    }
}

/* user:password@ becomes user:***@; a secret-looking option keeps its name alone. */
void provider_mask_url(const char *url, char *ret, size_t ret_bytes)
{
    const char *host = strstr(url, "://");
    size_t authority;
    const char *at;
    const char *query;

    ret[0] = '\0';
    host = host ? host + 3 : url;
    append(ret, ret_bytes, url, (size_t)(host - url));
    authority = strcspn(host, "/?#");
    at = memrchr(host, '@', authority);
    if (at) {
        const char *colon = memchr(host, ':', (size_t)(at - host));
        append(ret, ret_bytes, host, (size_t)((colon ? colon : at) - host));
        append(ret, ret_bytes, ":***", 4);
        host = at;
    }
    query = strchr(host, '?');
    append(ret, ret_bytes, host, query ? (size_t)(query - host) : strlen(host));
    while (query && *query) {
        size_t length = strcspn(query + 1, "&");
        size_t name = strcspn(query + 1, "=&");
        bool hide = name < length && is_secret(query + 1, name + 1);
        append(ret, ret_bytes, query, 1 + (hide ? name + 1 : length));
        append(ret, ret_bytes, "***", hide ? 3 : 0);
        query += 1 + length;
    }
}

bool provider_option_flag(const struct provider_config *config, const char *key, bool *ret,
                          struct baton_error *reterr)
{
    static const char *const yes[] = {"on", "yes", "true", "1", ""};
    static const char *const no[] = {"off", "no", "false", "0"};
    char space[64];
    const char *text = provider_option(config, key, space, sizeof(space));

    for (size_t i = 0; text && i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcmp(text, yes[i]) == 0) {
            *ret = true;
            return true;
        }
    }
    for (size_t i = 0; text && i < sizeof(no) / sizeof(no[0]); i++) {
        if (strcmp(text, no[i]) == 0) {
            *ret = false;
            return true;
        }
    }
    if (text) {
        (void)error_set(reterr, BATON_EINVAL, "%s \"%s\": must be on or off", key, text);
    }
    return !text;
}
