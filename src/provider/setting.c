#include "provider/setting.h"

#include "base/invariant.h"
#include "base/text.h"
#include "base/url.h"
#include "base/value.h"

#include <stdio.h>
#include <string.h>

/* ---- The value, or values, of one setting ---------------------------------------------------- */

struct reading {
    const struct provider_config *config;
    const struct provider_setting *setting;
    bool is_in_options; /* overrides the URL */
    size_t option;      /* the next one to read */
    const char *query;
};

static bool is_key(const struct provider_setting *setting, const char *key)
{
    return strcmp(key, setting->key) == 0 || (setting->alias && strcmp(key, setting->alias) == 0);
}

static bool is_key_of(const struct provider_setting *setting, const struct url_pair *pair)
{
    char key[SETTING_KEY_MAX];

    return url_decode(key, sizeof(key), pair->key, pair->key_bytes) == BATON_OK &&
           is_key(setting, key);
}

static struct reading read_setting(const struct provider_setting *setting,
                                   const struct provider_config *config)
{
    struct reading reading = {
        .config = config, .setting = setting, .query = url_query(config->url)};

    for (size_t i = 0; i < config->option_count && !reading.is_in_options; i++) {
        reading.is_in_options = is_key(setting, config->options[i].key);
    }
    return reading;
}

static bool next_option(struct reading *reading, struct url_pair *ret)
{
    while (reading->option < reading->config->option_count) {
        const struct provider_option *option = &reading->config->options[reading->option++];
        if (is_key(reading->setting, option->key)) {
            ret->value = option->value ? option->value : "";
            ret->value_bytes = strlen(ret->value);
            return true;
        }
    }
    return false;
}

static bool next_value(struct reading *reading, struct url_pair *ret)
{
    if (reading->is_in_options) {
        return next_option(reading, ret);
    }
    while (url_next(&reading->query, ret)) {
        if (is_key_of(reading->setting, ret)) {
            return true;
        }
    }
    return false;
}

static int decode(const struct reading *reading, const struct url_pair *value, char *ret,
                  size_t ret_bytes, size_t room, struct baton_error *reterr)
{
    const char *key = reading->setting->key;
    int r = BATON_OK;

    if (!reading->is_in_options) {
        r = url_decode(ret, room, value->value, value->value_bytes);
    } else if (value->value_bytes >= room) {
        r = BATON_ETOOBIG;
    } else {
        memcpy(ret, value->value, value->value_bytes + 1);
    }
    if (r == BATON_ETOOBIG) {
        return error_set(reterr, BATON_EINVAL, "%s: is longer than %zu bytes", key, ret_bytes - 1);
    }
    return r == BATON_OK ? r : error_set(reterr, BATON_EINVAL, "%s: has %%00 in it", key);
}

/* Reads the whole text. If it is not given, *ret_is_given is false and nothing else is written. */
static int read_text(const struct provider_setting *setting, const struct provider_config *config,
                     char *ret, size_t ret_bytes, bool *ret_is_given, struct baton_error *reterr)
{
    struct reading reading = read_setting(setting, config);
    struct url_pair value;
    size_t used = 0;

    *ret_is_given = false;
    while (next_value(&reading, &value)) {
        if (*ret_is_given && setting->kind != SETTING_LIST) {
            return error_set(reterr, BATON_EINVAL, "%s: is given twice", setting->key);
        }
        if (value.value_bytes == 0 && setting->kind != SETTING_FLAG) {
            return error_set(reterr, BATON_EINVAL, "%s: is empty; leave it out, or say what it is",
                             setting->key);
        }
        if (*ret_is_given && used + 1 < ret_bytes) {
            ret[used++] = ',';
        }
        int r = decode(&reading, &value, ret + used, ret_bytes, ret_bytes - used, reterr);
        if (r != BATON_OK) {
            return r;
        }
        used += strlen(ret + used);
        *ret_is_given = true;
    }
    return BATON_OK;
}

/* ---- From text to target --------------------------------------------------------------------- */

static int take_flag(bool *ret, const char *text, struct baton_error *reterr)
{
    if (!*text) { /* a key alone */
        *ret = true;
        return BATON_OK;
    }
    return value_flag(text, ret, reterr);
}

static int take_number(const struct provider_setting *setting, void *ret, const char *text,
                       struct baton_error *reterr)
{
    int64_t number;
    int r = value_number(text, setting->min, setting->max, &number, reterr);

    if (r == BATON_OK) {
        const uint32_t word = (uint32_t)number;
        memcpy(ret, &word, sizeof(word));
    }
    return r;
}

static int take_value(void *target, const struct provider_setting *setting, const char *text,
                      struct baton_error *reterr)
{
    void *ret = (char *)target + setting->offset;
    int r = BATON_OK;

    switch (setting->kind) {
    case SETTING_FLAG:
        r = take_flag(ret, text, reterr);
        break;
    case SETTING_SPAN:
        r = value_duration(text, ret, reterr);
        break;
    case SETTING_NUMBER:
        r = take_number(setting, ret, text, reterr);
        break;
    case SETTING_OWN:
        return setting->take(target, setting->key, text, reterr);
    case SETTING_TEXT:
    case SETTING_LIST:
        INVARIANT(!"read where they belong");
    }
    return r == BATON_OK ? r : error_wrap(reterr, "%s", setting->key);
}

static int take_setting(void *target, const struct provider_setting *setting,
                        const struct provider_config *config, struct baton_error *reterr)
{
    char space[SETTING_OWN_MAX] = "";
    bool is_given;
    int r;

    if (setting->kind == SETTING_TEXT || setting->kind == SETTING_LIST) {
        return read_text(setting, config, (char *)target + setting->offset, setting->bytes,
                         &is_given, reterr);
    }
    r = read_text(setting, config, space, sizeof(space), &is_given, reterr);
    if (r == BATON_OK && is_given) {
        r = take_value(target, setting, space, reterr);
    }
    explicit_bzero(space, sizeof(space)); /* it may be a password */
    return r;
}

/* ---- Keys that are none ---------------------------------------------------------------------- */

const struct provider_setting *provider_setting_find(const struct provider_setting *table,
                                                     const char *key)
{
    for (; table->key; table++) {
        if (is_key(table, key)) {
            return table;
        }
    }
    return NULL;
}

/* NULL: no key is similar. */
static const char *nearest(const struct provider_setting *table, const char *key)
{
    size_t length = strlen(key);
    size_t best = length / 3 + 1; /* with more edits it would be another name */
    const char *found = NULL;

    for (; table->key; table++) {
        size_t changes = text_distance(key, table->key);
        INVARIANT(strlen(table->key) < SETTING_KEY_MAX);
        if (length >= 3 && strncmp(table->key, key, length) == 0) {
            return table->key;
        }
        if (changes < best || (changes == best && !found)) {
            best = changes;
            found = table->key;
        }
    }
    return found;
}

static int refuse(const struct provider_setting *table, const char *url, const char *key,
                  struct baton_error *reterr)
{
    const char *meant = nearest(table, key);
    int scheme = (int)strcspn(url, ":");
    char all[400] = "";
    size_t used = 0;

    if (meant) {
        return error_set(reterr, BATON_EINVAL,
                         "\"%s\": %.*s: has no such setting; is \"%s\" meant?", key, scheme, url,
                         meant);
    }
    for (; table->key && used < sizeof(all); table++) {
        used +=
            (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", table->key);
    }
    return error_set(reterr, BATON_EINVAL, "\"%s\": %.*s: has no such setting; it has %s", key,
                     scheme, url, all);
}

static int check_key(const struct provider_setting *table, const char *url, const char *key,
                     struct baton_error *reterr)
{
    return provider_setting_find(table, key) ? BATON_OK : refuse(table, url, key, reterr);
}

static int check_query(const struct provider_setting *table, const char *url,
                       struct baton_error *reterr)
{
    const char *query = url_query(url);
    struct url_pair pair;
    int r = BATON_OK;

    while (r == BATON_OK && url_next(&query, &pair)) {
        char key[SETTING_KEY_MAX];
        if (url_decode(key, sizeof(key), pair.key, pair.key_bytes) != BATON_OK) {
            return error_set(reterr, BATON_EINVAL, "\"%.*s…\": no setting has so long a name",
                             SETTING_KEY_MAX / 2, pair.key);
        }
        r = check_key(table, url, key, reterr);
    }
    return r;
}

static int check_keys(const struct provider_setting *table, const struct provider_config *config,
                      struct baton_error *reterr)
{
    int r = BATON_OK;

    if (strchr(config->url, '#')) { /* the text behind it would be ignored */
        return error_set(reterr, BATON_EINVAL, "URL: a # in it is written %%23");
    }
    for (size_t i = 0; r == BATON_OK && i < config->option_count; i++) {
        const char *key = config->options[i].key ? config->options[i].key : "";
        r = strlen(key) < SETTING_KEY_MAX
                ? check_key(table, config->url, key, reterr)
                : error_set(reterr, BATON_EINVAL, "\"%.*s…\": no setting has so long a name",
                            SETTING_KEY_MAX / 2, key);
    }
    return r == BATON_OK ? check_query(table, config->url, reterr) : r;
}

int provider_settings_take(void *target, const struct provider_setting *table,
                           const struct provider_config *config, struct baton_error *reterr)
{
    int r = check_keys(table, config, reterr);

    for (; r == BATON_OK && table->key; table++) {
        r = take_setting(target, table, config, reterr);
    }
    return r;
}
