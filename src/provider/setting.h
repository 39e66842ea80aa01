/* The settings of a provider: one table, by which all of them are read and checked.
 *
 *   raft://127.0.0.1:7001?data=/d&lease=5s     the URL's query, percent-encoded
 *   {"lease", "5s"}                            provider_config.options: override the URL's values
 *                                              of the same key
 *
 * An unknown key is refused by name: a group whose `peers` were ignored would have a leader on
 * every machine.
 */
#ifndef PROVIDER_SETTING_H
#define PROVIDER_SETTING_H

#include "provider/provider.h"

enum setting_kind {
    SETTING_TEXT,   /* char[bytes], never empty */
    SETTING_LIST,   /* the same; several values are joined by commas */
    SETTING_FLAG,   /* bool: yes, on, true, 1 or the key alone, and their opposites */
    SETTING_SPAN,   /* span: "15ms", "2m" */
    SETTING_NUMBER, /* int32_t or uint32_t: min to max */
    SETTING_OWN,    /* a text that `take` parses, not empty */
};

enum { SETTING_OWN_MAX = 1024, SETTING_KEY_MAX = 32 }; /* bytes, with the NUL */

/* A row of the table, which ends with a NULL key. Settings are read in its order. */
struct provider_setting {
    const char *key;
    const char *alias; /* another key for it; or NULL */
    enum setting_kind kind;
    size_t offset; /* of the field in the target */
    size_t bytes;  /* of a text or list */
    int64_t min, max;
    int (*take)(void *target, const char *key, const char *value, struct baton_error *reterr);
};

/* Reads all given settings into `target`; other fields stay. BATON_EINVAL names the key: unknown
 * (with a similar one, or all), given twice, empty, too long, or invalid. Also the errors of
 * `take`. */
int provider_settings_take(void *target, const struct provider_setting *table,
                           const struct provider_config *config, struct baton_error *reterr);

/* NULL: not in the table. */
const struct provider_setting *provider_setting_find(const struct provider_setting *table,
                                                     const char *key);

#endif
