#include "base/url.h"

#include <ctype.h>
#include <string.h>

/* -1: none. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_escape(const char *text, size_t length)
{
    return length >= 3 && text[0] == '%' && hex_digit(text[1]) >= 0 && hex_digit(text[2]) >= 0;
}

int url_decode(char *ret, size_t ret_bytes, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (is_escape(text + i, length - i)) {
            c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        }
        if (c == '\0') {
            return BATON_EINVAL;
        }
        if (used + 1 >= ret_bytes) {
            return BATON_ETOOBIG;
        }
        ret[used++] = c;
    }
    ret[used] = '\0';
    return BATON_OK;
}

const char *url_query(const char *url)
{
    url += strcspn(url, "?#");
    return *url == '?' ? url + 1 : "";
}

bool url_next(const char **query, struct url_pair *ret)
{
    const char *text = *query + strspn(*query, "&");
    size_t length = strcspn(text, "&#");
    const char *equals = memchr(text, '=', length);

    *query = text + length;
    if (length == 0) {
        return false;
    }
    ret->key = text;
    ret->key_bytes = equals ? (size_t)(equals - text) : length;
    ret->value = equals ? equals + 1 : text + length;
    ret->value_bytes = (size_t)(text + length - ret->value);
    return true;
}

bool url_find(char *ret, size_t ret_bytes, const char *url, const char *key)
{
    const char *query = url_query(url);
    struct url_pair pair;

    while (url_next(&query, &pair)) {
        if (pair.key_bytes == strlen(key) && strncmp(pair.key, key, pair.key_bytes) == 0 &&
            pair.value_bytes > 0 &&
            url_decode(ret, ret_bytes, pair.value, pair.value_bytes) == BATON_OK) {
            return true;
        }
    }
    return false;
}
