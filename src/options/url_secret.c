#include "options/url_secret.h"

#include <string.h>

/* The next one from `at` on; its length, 0: none. An @ that should have been encoded belongs to the
 * password as well: rather too much than too little. */
static size_t next_secret(const char *url, const char *at, const char **ret)
{
    static const char key[] = "password=";
    const char *scheme = strstr(url, "://");
    const char *user = scheme ? scheme + 3 : url;
    const char *host = strrchr(user, '@');

    if (host && at <= user && host > user) {
        *ret = user;
        return (size_t)(host - user);
    }
    for (const char *found = at; (found = strstr(found, key)) != NULL;) {
        found += strlen(key);
        *ret = found;
        size_t length = strcspn(found, "&#");
        if (length > 0) {
            return length;
        }
    }
    return 0;
}

bool secret_is_in(const char *url)
{
    const char *found;

    return next_secret(url, url, &found) > 0;
}

bool secret_is_hidden(const char *url)
{
    const char *found;
    size_t length = next_secret(url, url, &found);

    return length > 0 && strspn(found, "*") >= length;
}

void secret_hide(char *url)
{
    const char *found = url;
    size_t length;

    for (const char *at = url; (length = next_secret(url, at, &found)) > 0; at = found + length) {
        memset(url + (found - url), '*', length);
    }
}

char *secret_hide_word(char *word)
{
    if (strstr(word, "://")) {
        secret_hide(word);
    }
    return word;
}

void secret_hide_path(char *url)
{
    char *scheme = strstr(url, "://");
    char *path = scheme ? scheme + 3 + strcspn(scheme + 3, "/?#") : url;

    memset(path, '*', strlen(path));
}
