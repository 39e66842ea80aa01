/* The table of providers: a new one is one folder and one line here. */
#include "provider/memory/memory_provider.h"
#include "provider/provider.h"
#include "provider/raft/raft_provider.h"
#include "provider/redis/redis_provider.h"
#include "provider/setting.h"

#include <stdio.h>
#include <string.h>

static const struct provider_ops *const table[] = {
    &raft_provider_ops,
    &redis_provider_ops,
    &memory_provider_ops,
    NULL,
};

const struct provider_ops *const *provider_table(void)
{
    return table;
}

static bool has_word(const char *words, const char *word, size_t length)
{
    while (words) {
        if (strncmp(words, word, length) == 0 && (words[length] == ' ' || !words[length])) {
            return true;
        }
        words = strchr(words, ' ');
        words += words != NULL;
    }
    return false;
}

/* Appends each scheme, with its colon. */
static void list_words(char *ret, size_t ret_bytes, const char *words)
{
    while (words) {
        size_t used = strlen(ret);
        size_t length = strcspn(words, " ");

        (void)snprintf(ret + used, ret_bytes - used, "%s%.*s:", used > 0 ? ", " : "", (int)length,
                       words);
        words = words[length] ? words + length + 1 : NULL;
    }
}

static void list_schemes(char *ret, size_t ret_bytes)
{
    ret[0] = '\0';
    for (size_t i = 0; table[i]; i++) {
        list_words(ret, ret_bytes, table[i]->scheme);
        list_words(ret, ret_bytes, table[i]->others);
    }
}

/* NULL: no provider has the scheme. */
static const struct provider_ops *find(const char *url)
{
    size_t length = strcspn(url, ":");

    for (size_t i = 0; url[length] == ':' && table[i]; i++) {
        if (has_word(table[i]->scheme, url, length) || has_word(table[i]->others, url, length)) {
            return table[i];
        }
    }
    return NULL;
}

bool provider_has_setting(const char *url, const char *key)
{
    const struct provider_ops *ops = find(url);

    return !ops || provider_setting_find(ops->settings, key);
}

int provider_open(struct provider **ret, const struct provider_config *config,
                  struct baton_error *reterr)
{
    const struct provider_ops *ops = find(config->url);
    size_t length = strcspn(config->url, ":");
    char known[128];

    if (ops) {
        return ops->open(ret, config, reterr);
    }
    list_schemes(known, sizeof(known));
    return error_set(reterr, BATON_EINVAL, "URL \"%.*s…\": no such provider; there are %s",
                     (int)(length < 32 ? length : 32), config->url, known);
}
