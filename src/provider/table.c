/* The table of providers: a new one is one folder and one line here. */
#include "provider/agent/agent_provider.h"
#include "provider/memory/memory_provider.h"
#include "provider/provider.h"
#include "provider/raft/raft_provider.h"
#include "provider/redis/redis_provider.h"
#include "provider/setting.h"

#include <stdio.h>
#include <string.h>

static const struct provider_ops *const table[] = {
    &raft_provider_ops, &redis_provider_ops, &memory_provider_ops, &agent_provider_ops, NULL,
};

const struct provider_ops *const *provider_table(void)
{
    return table;
}

static bool has_scheme(const char *schemes, const char *scheme, size_t length)
{
    while (schemes) {
        if (strncmp(schemes, scheme, length) == 0 && (schemes[length] == ' ' || !schemes[length])) {
            return true;
        }
        const char *blank = strchr(schemes, ' ');
        schemes = blank ? blank + 1 : NULL;
    }
    return false;
}

/* Appends each scheme, with its colon. */
static void append_schemes(char *ret, size_t ret_bytes, const char *schemes)
{
    while (schemes) {
        size_t used = strlen(ret);
        size_t length = strcspn(schemes, " ");

        (void)snprintf(ret + used, ret_bytes - used, "%s%.*s:", used > 0 ? ", " : "", (int)length,
                       schemes);
        schemes = schemes[length] ? schemes + length + 1 : NULL;
    }
}

static void list_schemes(char *ret, size_t ret_bytes)
{
    ret[0] = '\0';
    for (size_t i = 0; table[i]; i++) {
        append_schemes(ret, ret_bytes, table[i]->scheme);
        append_schemes(ret, ret_bytes, table[i]->others);
    }
}

/* NULL: no provider has the scheme. */
static const struct provider_ops *find(const char *url)
{
    size_t length = strcspn(url, ":");

    for (size_t i = 0; url[length] == ':' && table[i]; i++) {
        if (has_scheme(table[i]->scheme, url, length) ||
            has_scheme(table[i]->others, url, length)) {
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

int provider_attach(struct provider **ret, struct provider *provider,
                    const struct provider_config *config, const struct provider_process *process,
                    struct baton_error *reterr)
{
    struct provider_config own;

    if (provider->ops->attach) {
        return provider->ops->attach(ret, provider, process, reterr);
    }
    own = *config;
    own.node = process->name;
    own.alive_ns = NULL; /* that is this process's, and not the other's */
    return provider_open(ret, &own, reterr);
}

void provider_detach(struct provider *handle, void (*closed)(void *userdata), void *userdata)
{
    (handle->ops->detach ? handle->ops->detach : handle->ops->close)(handle, closed, userdata);
}
