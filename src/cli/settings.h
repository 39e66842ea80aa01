/* From the options of a command to the settings of a provider.
 *
 *   --heartbeat-interval 50ms ─▶ options ─▶ settings_read ─▶ {"heartbeat-interval", "50ms"}
 *                                                                 │
 *              the core's settings ◀─ the provider's own table ◀──┘ provider_config
 *
 * An option whose spec has a provider_key is for the provider, and goes there as it was given; of a
 * list, each item by itself.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "base/log.h"
#include "options/option.h"
#include "provider/provider.h"

enum { SETTINGS_MAX = OPTION_LIST_MAX + 64, SETTINGS_URL_MAX = BATON_ADDRESS_MAX + 16 };

struct settings {
    struct provider_config config; /* url and options; the rest is the caller's to fill in */
    char *data;                    /* directory of the state and the control socket; NULL: none */
    char space[SETTINGS_URL_MAX];  /* of the URL of the embedded provider at --listen */
    struct provider_option found[SETTINGS_MAX];
};

/* Reads all that is given, and makes the data directory. BATON_EINVAL names an option that means
 * nothing to the provider, or is missing; BATON_EIO, BATON_ENOMEM. The options outlive the result,
 * which settings_fini() ends in any case. */
int settings_read(struct settings *ret, const struct options *options, struct baton_error *reterr);
void settings_fini(struct settings *settings);

/* The provider's URL as --config has it now, in `space`; as at the start if something else gave it.
 * What else the file has otherwise than at the start is listed in ret_changed, as "--lease,
 * --peer", and does not count before a restart. Errors as config_take_file(). */
int settings_read_again(char space[static OPTION_TEXT_MAX + 1], char *ret_changed,
                        size_t changed_bytes, const struct options *options,
                        struct baton_error *reterr);

/* What the command itself wants, where the provider has such a setting. Texts are borrowed. */
void settings_add(struct settings *settings, const char *key, const char *value);

/* Makes the data directory, of --data, the provider's URL or $STATE_DIRECTORY the first that there
 * is. NULL: none; the caller frees it. BATON_EIO, BATON_ENOMEM. */
int settings_make_data(char **ret, const struct options *options, struct baton_error *reterr);
/* The data directory of --data or $STATE_DIRECTORY; NULL: neither. */
const char *settings_data(const struct options *options);

/* What stands in --http-token-file. BATON_EINVAL, BATON_EAUTH: it is not private. */
int settings_token(char *ret, size_t bytes, const char *path, struct baton_error *reterr);

/* A logger as --log-level and --log-json want it, on standard error; NULL when out of memory. */
struct logger *settings_logger(const struct options *options);

#endif
