/* From the options of the command line to an open provider. */
#include "cli/member_internal.h"

#include "base/buffer.h"
#include "base/invariant.h"
#include "base/url.h"
#include "cli/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { URL_MAX = BATON_ADDRESS_MAX + 16 }; /* of the embedded provider at --listen */

struct gathering {
    const struct options *options;
    const char *url; /* of the provider they are for */
    struct provider_option found[MEMBER_OPTIONS_MAX];
    char *owned[MEMBER_OPTIONS_MAX]; /* joined lists */
    size_t count;
    bool failed;
};

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

static void add_option(struct gathering *gathering, const char *key, const char *value)
{
    INVARIANT(gathering->count < MEMBER_OPTIONS_MAX);
    gathering->found[gathering->count++] = (struct provider_option){key, value};
}

/* Of the provider's own, but for the data directory: the control socket is there, too. */
static bool is_for_provider(const struct gathering *gathering, const struct option_spec *spec)
{
    bool is_given = spec->provider_key && options_find(gathering->options, spec->name) &&
                    options_is_set(gathering->options, spec->name);
    return is_given && (strcmp(spec->name, "data") != 0 ||
                        provider_has_setting(gathering->url, spec->provider_key));
}

static int refuse(const struct gathering *gathering, const char *name, struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL, "--%s: means nothing to the provider %.*s:", name,
                     (int)strcspn(gathering->url, ":"), gathering->url);
}

static int gather(struct gathering *gathering, const struct option_group *group,
                  struct baton_error *reterr)
{
    for (const struct option_spec *spec = group->specs; spec->name; spec++) {
        if (!is_for_provider(gathering, spec)) {
            continue;
        }
        if (!provider_has_setting(gathering->url, spec->provider_key)) {
            return refuse(gathering, spec->name, reterr);
        }
        if (spec->type == OPTION_LIST) {
            char *joined = join_list(gathering->options, spec->name);
            gathering->failed |= !joined;
            gathering->owned[gathering->count] = joined;
            add_option(gathering, spec->provider_key, joined);
        } else if (spec->type == OPTION_FLAG) {
            bool flag = options_flag(gathering->options, spec->name);
            add_option(gathering, spec->provider_key, flag ? "yes" : "no");
        } else {
            add_option(gathering, spec->provider_key, options_text(gathering->options, spec->name));
        }
    }
    return 0;
}

/* What the command wants, where the provider has it. */
static void add_own(struct gathering *gathering, const struct participant *member)
{
    if (member->config.proofs && !options_is_set(gathering->options, "proofs") &&
        provider_has_setting(gathering->url, "proofs")) {
        add_option(gathering, "proofs", member->config.proofs);
    }
    if (member->config.kills_outliving && provider_has_setting(gathering->url, "kill-outliving")) {
        add_option(gathering, "kill-outliving", "yes");
    }
}

static int gather_all(struct gathering *gathering, const struct participant *member,
                      struct baton_error *reterr)
{
    const struct options *options = gathering->options;
    if (options_text(options, "provider") && options_is_set(options, "listen")) {
        return error_set(reterr, BATON_EINVAL, "--listen: --provider says where, already");
    }
    int code = gather(gathering, &group_peers, reterr);
    code = code ? code : gather(gathering, &group_timing, reterr);
    add_own(gathering, member);
    return code;
}

const char *participant_data(const struct options *options)
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
static const char *url_of(const struct options *options, char space[static URL_MAX])
{
    const char *url = options_text(options, "provider");
    (void)snprintf(space, URL_MAX, "raft://%s", options_text(options, "listen"));
    return url ? url : space;
}

int participant_make_data(char **ret, const struct options *options, struct baton_error *reterr)
{
    char space[URL_MAX];
    const char *url = url_of(options, space), *given = participant_data(options);
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

static int open_provider(struct participant *member, const char *url, struct baton_error *reterr)
{
    struct gathering gathering = {.options = member->config.options, .url = url};
    int code = gather_all(&gathering, member, reterr);
    if (!code && member->data && !options_is_set(gathering.options, "data") &&
        provider_has_setting(url, "data")) {
        add_option(&gathering, "data", member->data);
    }
    if (!code && gathering.failed) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    struct provider_config config = {.loop = member->config.loop,
                                     .logger = member->config.logger,
                                     .url = url,
                                     .node = member->node,
                                     .options = gathering.found,
                                     .option_count = gathering.count};
    code = code ? code : provider_open(&member->provider, &config, reterr);
    for (size_t i = 0; i < gathering.count; i++) {
        free(gathering.owned[i]);
    }
    return code;
}

int member_provider_open(struct participant *member, struct baton_error *reterr)
{
    const struct options *options = member->config.options;
    char space[URL_MAX];
    const char *url = url_of(options, space);
    int code = participant_make_data(&member->data, options, reterr);
    if (!code && url == space && !member->data) {
        code = error_set(reterr, BATON_EINVAL,
                         "--data: is needed, a directory for the state of this node");
    }
    return code ? code : open_provider(member, url, reterr);
}

void participant_set_victims(struct participant *member, const struct victims *victims)
{
    if (member->provider->ops->set_victims) {
        member->provider->ops->set_victims(member->provider, victims);
    }
}
