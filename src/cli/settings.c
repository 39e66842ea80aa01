#include "cli/settings.h"

#include "base/bearer.h"
#include "base/buffer.h"
#include "base/invariant.h"
#include "base/url.h"
#include "cli/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The data directory ---------------------------------------------------------------------- */

const char *settings_data(const struct options *options)
{
    const char *data = options_find(options, "data") ? options_text(options, "data") : NULL;
    const char *state = getenv("STATE_DIRECTORY");
    return data ? data : state && *state ? state : NULL;
}

/* The directory that the URL names; NULL: none. */
static char *data_in_url(const char *url)
{
    const char *query = url_query(url);
    struct url_pair pair;
    char path[OPTION_TEXT_MAX + 1];
    while (url_next(&query, &pair)) {
        if (pair.key_bytes == 4 && strncmp(pair.key, "data", 4) == 0 && pair.value_bytes > 0 &&
            url_decode(path, sizeof(path), pair.value, pair.value_bytes) == 0) {
            return strdup(path);
        }
    }
    return NULL;
}

/* Of --provider, or what stands for it; `space` is for the latter. */
static const char *url_of(const struct options *options, char space[static SETTINGS_URL_MAX])
{
    const char *url = options_text(options, "provider");
    (void)snprintf(space, SETTINGS_URL_MAX, "raft://%s", options_text(options, "listen"));
    return url ? url : space;
}

int settings_make_data(char **ret, const struct options *options, struct baton_error *reterr)
{
    char space[SETTINGS_URL_MAX];
    const char *url = url_of(options, space), *given = settings_data(options);
    bool is_flag = options_is_set(options, "data");
    char *data = is_flag || !provider_has_setting(url, "data") ? NULL : data_in_url(url);
    if (!data && given && !(data = strdup(given))) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (data && mkdir(data, 0700) != 0 && errno != EEXIST) {
        (void)error_set(reterr, BATON_EIO, "--data %s: %s", data, strerror(errno));
        free(data);
        return BATON_EIO;
    }
    *ret = data;
    return 0;
}

/* ---- The provider's settings ----------------------------------------------------------------- */

static char *join_list(const struct options *options, const char *name)
{
    struct buffer joined;
    buffer_init(&joined, (size_t)OPTION_LIST_MAX * OPTION_TEXT_MAX);
    for (size_t i = 0; i < options_count(options, name); i++) {
        buffer_put_text(&joined, i ? "," : "");
        buffer_put_text(&joined, options_item(options, name, i));
    }
    const char *text = buffer_text(&joined);
    char *copy = text ? strdup(text) : NULL;
    buffer_fini(&joined);
    return copy;
}

void settings_add(struct settings *settings, const char *key, const char *value)
{
    if (provider_has_setting(settings->url, key)) {
        INVARIANT(settings->count < SETTINGS_MAX);
        settings->found[settings->count++] = (struct provider_option){key, value};
    }
}

/* As text; of a list and NULL, the memory is missing. */
static const char *text_of(struct settings *settings, const struct options *options,
                           const struct option_spec *spec)
{
    switch (spec->type) {
    case OPTION_LIST:
        return settings->owned[settings->count] = join_list(options, spec->name);
    case OPTION_FLAG:
        return options_flag(options, spec->name) ? "yes" : "no";
    default:
        return options_text(options, spec->name);
    }
}

/* The data directory is ours as well: the control socket is there. */
static int take(struct settings *settings, const struct options *options,
                const struct option_spec *spec, struct baton_error *reterr)
{
    const char *text;

    if (!spec->provider_key || !options_find(options, spec->name) ||
        !options_is_set(options, spec->name)) {
        return 0;
    }
    if (!provider_has_setting(settings->url, spec->provider_key)) {
        return strcmp(spec->name, "data") == 0
                   ? 0
                   : error_set(reterr, BATON_EINVAL,
                               "--%s: means nothing to the provider %.*s:", spec->name,
                               (int)strcspn(settings->url, ":"), settings->url);
    }
    text = text_of(settings, options, spec);
    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    settings_add(settings, spec->provider_key, text);
    return 0;
}

static int take_all(struct settings *settings, const struct options *options,
                    struct baton_error *reterr)
{
    const struct option_group *const groups[] = {&group_peers, &group_timing};
    int code = 0;

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const struct option_spec *spec = groups[i]->specs;
        for (; spec->name && !code; spec++) {
            code = take(settings, options, spec, reterr);
        }
    }
    return code;
}

int settings_read(struct settings *ret, const struct options *options, struct baton_error *reterr)
{
    int code;

    *ret = (struct settings){.url = NULL};
    ret->url = url_of(options, ret->space);
    code = settings_make_data(&ret->data, options, reterr);
    if (!code && ret->url == ret->space && !ret->data) {
        code = error_set(reterr, BATON_EINVAL,
                         "--data: is needed, a directory for the state of this node");
    }
    if (!code && options_text(options, "provider") && options_is_set(options, "listen")) {
        code = error_set(reterr, BATON_EINVAL, "--listen: --provider says where, already");
    }
    code = code ? code : take_all(ret, options, reterr);
    if (!code && ret->data && !options_is_set(options, "data")) {
        settings_add(ret, "data", ret->data);
    }
    return code;
}

void settings_fini(struct settings *settings)
{
    for (size_t i = 0; i < SETTINGS_MAX; i++) {
        free(settings->owned[i]);
    }
    free(settings->data);
}

/* ---- Others ---------------------------------------------------------------------------------- */

int settings_token(char *ret, size_t bytes, const char *path, struct baton_error *reterr)
{
    int code = bearer_read(ret, bytes, path, reterr);
    if (code == BATON_EIO) { /* rather a name that is wrong than a disk that fails */
        reterr->code = BATON_EINVAL;
    }
    return code ? error_wrap(reterr, "--http-token-file") : 0;
}

struct logger *settings_logger(const struct options *options)
{
    int level = log_level_parse(options_text(options, "log-level"));
    enum log_format format = log_format_for(STDERR_FILENO, options_flag(options, "log-json"));
    return logger_new(STDERR_FILENO, format, (enum log_level)level);
}
