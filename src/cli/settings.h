/* From the options of a command to the settings of a provider.
 *
 *   --heartbeat-interval 50ms ─▶ options ─▶ settings_read ─▶ {"heartbeat-interval", "50ms"}
 *                                                                 │
 *              the core's settings ◀─ the provider's own table ◀──┘ provider_config
 *
 * An option whose spec has a provider_key goes to the provider unchanged; of a list, each item goes
 * by itself.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "net/local.h"
#include "options/option.h"
#include "provider/provider.h"

enum { SETTINGS_MAX = OPTION_LIST_MAX + 64, SETTINGS_URL_MAX = BATON_ADDRESS_MAX + 16 };

struct settings {
    struct provider_config config; /* url and options; the caller sets the rest */
    char *data;                    /* directory of the state and the control socket; NULL: none */
    char space[SETTINGS_URL_MAX];  /* holds the URL that is built from --listen */
    struct provider_option found[SETTINGS_MAX];
};

/* Reads the options, and makes the data directory. BATON_EINVAL names an option that is missing, or
 * that the provider does not have; and as settings_make_data(). The options outlive the result.
 * Call settings_fini() in any case. */
int settings_read(struct settings *ret, const struct options *options, struct baton_error *reterr);
void settings_fini(struct settings *settings);

/* Reads --config again. `space` gets its URL of the provider, or the URL of the start if another
 * source gave that. ret_changed lists the other options that differ from the start, as "--lease,
 * --peer"; they count after a restart. Errors as config_take_file(). */
int settings_read_again(char space[static OPTION_TEXT_MAX + 1], char *ret_changed,
                        size_t changed_bytes, const struct options *options,
                        struct baton_error *reterr);

/* Adds a setting of the command itself, if the provider has such a setting. Texts are borrowed. */
void settings_add(struct settings *settings, const char *key, const char *value);

/* Makes the data directory: of --data, of the provider's URL, or $STATE_DIRECTORY, whichever is
 * given first. NULL: none; the caller frees it. BATON_EINVAL: there can be none of this
 * name; BATON_EAUTH: this user may not write there; BATON_EIO, BATON_ENOMEM. */
int settings_make_data(char **ret, const struct options *options, struct baton_error *reterr);
/* The socket of the agent that takes part for this process; "": none does. BATON_EINVAL: the URL's
 * path is wrong. */
int settings_agent(char ret[static LOCAL_PATH_MAX], const struct options *options,
                   struct baton_error *reterr);
/* Returns the data directory of --data or $STATE_DIRECTORY; NULL: neither. */
const char *settings_data(const struct options *options);
/* The name of this node: of --node, or else in the URL of --provider; NULL: neither has one. */
const char *settings_node(char space[static BATON_NAME_MAX], const struct options *options);

#endif
