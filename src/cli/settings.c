#include "cli/settings.h"

#include "base/invariant.h"
#include "base/url.h"
#include "cli/command.h"
#include "options/config.h"

#include <errno.h>
#include <libgen.h>
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

/* Returns the directory that the URL names; NULL: none. */
static char *data_in_url(const char *url)
{
    char path[OPTION_TEXT_MAX + 1];

    return url_find(path, sizeof(path), url, "data") ? strdup(path) : NULL;
}

const char *settings_node(char space[static BATON_NAME_MAX], const struct options *options)
{
    const char *name = options_text(options, "node");
    const char *url = options_text(options, "provider");

    return name || !url || !url_find(space, BATON_NAME_MAX, url, "node") ? name : space;
}

/* Whether the agent of this host takes part for this process: nothing is said of a group of its
 * own, and the agent is there. */
static bool is_agents(const struct options *options)
{
    static const char *const own[] = {"listen", "peer", "data", "group", "key-file", "tls-cert"};
    const char *election = options_find(options, "election") ? "election" : NULL;
    char path[LOCAL_PATH_MAX];

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (options_find(options, own[i]) && options_is_set(options, own[i])) {
            return false;
        }
    }
    local_agent_path(path, NULL, false);
    return election && !settings_data(options) && access(path, F_OK) == 0;
}

/* Returns the URL of --provider, or one that is built in `space`. */
static const char *url_of(const struct options *options, char space[static SETTINGS_URL_MAX])
{
    const char *url = options_text(options, "provider");

    if (!url && is_agents(options)) {
        return "agent:";
    }
    (void)snprintf(space, SETTINGS_URL_MAX, "raft://%s", options_text(options, "listen"));
    return url ? url : space;
}

int settings_agent(char ret[static LOCAL_PATH_MAX], const struct options *options,
                   struct baton_error *reterr)
{
    char space[SETTINGS_URL_MAX];
    const char *url = url_of(options, space);

    ret[0] = '\0';
    return strncmp(url, "agent:", 6) == 0 ? local_agent_url(ret, url, reterr) : BATON_OK;
}

static bool has_above(const char *path)
{
    char *copy = strdup(path);
    bool has = !copy || access(dirname(copy), F_OK) == 0;

    free(copy);
    return has;
}

/* Before anything is written there, since a later error would name the file and not the flag. */
static int make_directory(const char *path, struct baton_error *reterr)
{
    struct stat about;
    int errnum = mkdir(path, 0700) == 0 ? 0 : errno;

    if (!errnum) {
        return BATON_OK;
    }
    if (errnum == ENOENT && !has_above(path)) {
        return error_set(reterr, BATON_EINVAL,
                         "--data %s: the directory above it does not exist; create that one", path);
    }
    if (errnum != EEXIST) {
        return error_set(reterr, errnum == EACCES ? BATON_EAUTH : BATON_EIO,
                         "--data %s: it cannot be made: %s", path, strerror(errnum));
    }
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        return error_set(reterr, BATON_EINVAL, "--data %s: is no directory", path);
    }
    if (access(path, W_OK | X_OK) != 0) {
        return error_set(reterr, errno == EACCES ? BATON_EAUTH : BATON_EIO,
                         "--data %s: %s; the user of this process (uid %u) must be able to write "
                         "there",
                         path, strerror(errno), (unsigned)geteuid());
    }
    return BATON_OK;
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
    int code = data ? make_directory(data, reterr) : BATON_OK;
    if (code) {
        free(data);
        return code;
    }
    *ret = data;
    return 0;
}

/* ---- The provider's settings ----------------------------------------------------------------- */

void settings_add(struct settings *settings, const char *key, const char *value)
{
    if (provider_has_setting(settings->config.url, key)) {
        INVARIANT(settings->config.option_count < SETTINGS_MAX);
        settings->found[settings->config.option_count++] = (struct provider_option){key, value};
    }
}

/* The data directory holds the control socket as well, so every provider accepts --data. */
static int take_given(struct settings *settings, const struct options *options,
                      struct baton_error *reterr)
{
    struct option_cursor given = {0};

    while (options_next(options, &given)) {
        const char *key = given.spec->provider_key;
        if (key && strcmp(key, "data") != 0 && !provider_has_setting(settings->config.url, key)) {
            return error_set(reterr, BATON_EINVAL, "--%s: the provider %.*s: has no such option",
                             given.spec->name, (int)strcspn(settings->config.url, ":"),
                             settings->config.url);
        }
        if (key) {
            settings_add(settings, key, given.text);
        }
    }
    return 0;
}

int settings_read(struct settings *ret, const struct options *options, struct baton_error *reterr)
{
    int code;

    *ret = (struct settings){.data = NULL};
    ret->config.options = ret->found;
    ret->config.url = url_of(options, ret->space);
    code = settings_make_data(&ret->data, options, reterr);
    if (!code && ret->config.url == ret->space && !ret->data) {
        code = error_set(reterr, BATON_EINVAL,
                         "--data is missing: name a directory for the state of this node%s",
                         options_find(options, "election")
                             ? ", or start `baton agent`, which takes part for this process"
                             : "");
    }
    if (!code && options_text(options, "provider") && options_is_set(options, "listen")) {
        code = error_set(reterr, BATON_EINVAL,
                         "--listen: --provider gives the address already; leave one of them out");
    }
    code = code ? code : take_given(ret, options, reterr);
    if (!code && ret->data && !options_is_set(options, "data")) {
        settings_add(ret, "data", ret->data);
    }
    return code;
}

void settings_fini(struct settings *settings)
{
    free(settings->data);
}

/* ---- Again, while the process runs ------------------------------------------------------------
 */

static void list_changes(char *ret, size_t bytes, const struct options *options,
                         const struct options *now)
{
    const struct option_spec *spec;

    for (size_t i = 0; (spec = options_spec(options, i)); i++) {
        size_t used = strlen(ret);
        if (!spec->is_secret && options_source(options, spec->name) <= OPTION_CONFIG &&
            !options_agree(options, now, spec->name)) {
            (void)snprintf(ret + used, bytes - used, "%s--%s", used ? ", " : "", spec->name);
        }
    }
}

int settings_read_again(char space[static OPTION_TEXT_MAX + 1], char *ret_changed,
                        size_t changed_bytes, const struct options *options,
                        struct baton_error *reterr)
{
    const char *file = options_text(options, "config");
    const char *url = options_text(options, "provider");
    bool is_from_file = options_source(options, "provider") == OPTION_CONFIG;
    struct options *now = file ? options_like(options) : NULL;
    int code = 0;

    *ret_changed = '\0';
    if (file) {
        code = now ? config_take_file(now, file, &command_file_rules, reterr)
                   : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (!code && now) {
        list_changes(ret_changed, changed_bytes, options, now);
        url = is_from_file ? options_text(now, "provider") : url;
    }
    if (!code && is_from_file && !url) {
        code = error_set(reterr, BATON_EINVAL,
                         "--config %s: provider is missing, which it gave at the start", file);
    }
    if (!code) {
        (void)snprintf(space, OPTION_TEXT_MAX + 1, "%s", url ? url : "");
    }
    options_free(now);
    return code;
}
