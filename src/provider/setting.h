/* What a provider may be told: one table, from which all of it is read and checked.
 *
 *   raft://127.0.0.1:7001?data=/d&lease=5s     the URL's query, percent-encoded
 *   {"lease", "5s"}                            provider_config.options: of a key that is there,
 *                                              nothing in the URL counts
 *
 * Whatever is in neither the table nor its place is refused, by name: a group whose `peers` were
 * passed over would have a leader on every machine.
 */
#ifndef PROVIDER_SETTING_H
#define PROVIDER_SETTING_H

#include "provider/provider.h"

enum setting_kind {
    SETTING_TEXT,   /* char[bytes], never empty */
    SETTING_LIST,   /* the same; given more than once, a comma stands between two */
    SETTING_FLAG,   /* bool: yes, on, true, 1 or the key alone, and their opposites */
    SETTING_SPAN,   /* span: "15ms", "2m" */
    SETTING_NUMBER, /* int32_t or uint32_t: min to max */
    SETTING_OWN,    /* what `take` makes of a text that is not empty */
};

enum { SETTING_OWN_MAX = 1024, SETTING_KEY_MAX = 32 }; /* bytes, with the NUL */

/* A table of these ends with a key of NULL. They are taken in its order. */
struct provider_setting {
    const char *key;
    const char *alias; /* as good; or NULL */
    enum setting_kind kind;
    size_t offset; /* of what it sets, in the target */
    size_t bytes;  /* of a text or list */
    int64_t min, max;
    int (*take)(void *target, const char *key, const char *value, struct baton_error *reterr);
};

/* Reads all that the config gives into `target`; what is not given stays as it is there.
 * BATON_EINVAL names the key: unknown (with the one that is meant, or all), twice, empty, too long
 * or no such value. What `take` fails with. */
int provider_settings_take(void *target, const struct provider_setting *table,
                           const struct provider_config *config, struct baton_error *reterr);

/* NULL: not in the table. */
const struct provider_setting *provider_setting_find(const struct provider_setting *table,
                                                     const char *key);

#endif
