/* From the options of the command line to an open provider. */
#include "cli/member_internal.h"

#include "base/buffer.h"
#include "base/invariant.h"
#include "cli/groups.h"
#ifdef BATON_PROVIDER_RAFT
#include "provider/raft/raft_provider.h"
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gathering {
    const struct options *options;
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

static void gather(struct gathering *gathering, const struct option_group *group)
{
    for (const struct option_spec *spec = group->specs; spec->name; spec++) {
        if (!spec->provider_key || !options_find(gathering->options, spec->name) ||
            !options_is_set(gathering->options, spec->name)) {
            continue;
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
}

const char *member_data(const struct options *options)
{
    const char *data = options_find(options, "data") ? options_text(options, "data") : NULL;
    const char *state = getenv("STATE_DIRECTORY");
    return data ? data : state && *state ? state : NULL;
}

static int make_data(const char *data, struct baton_error *reterr)
{
    if (!data) {
        return error_set(reterr, BATON_EINVAL,
                         "--data: is needed, a directory for the state of this node");
    }
    if (mkdir(data, 0700) != 0 && errno != EEXIST) {
        return error_set(reterr, BATON_EIO, "--data %s: %s", data, strerror(errno));
    }
    return 0;
}

static bool is_raft(const char *url)
{
    return !url || strncmp(url, "raft:", 5) == 0;
}

int member_provider_open(struct member *member, struct baton_error *reterr)
{

    const struct options *options = member->config.options;
    const char *url = options_text(options, "provider");
    struct gathering gathering = {.options = options};
    char own_url[BATON_ADDRESS_MAX + 16];
    bool wants_data = is_raft(url) || member_data(options); /* or for the control socket alone */
    int code = wants_data ? make_data(member_data(options), reterr) : 0;
    if (code) {
        return code;
    }
    (void)snprintf(own_url, sizeof(own_url), "raft://%s", options_text(options, "listen"));
    if (is_raft(url)) {
        gather(&gathering, &group_peers);
        gather(&gathering, &group_timing);
        if (!options_is_set(options, "data")) {
            add_option(&gathering, "data", member_data(options));
        }
    }
    if (member->config.proofs && !options_is_set(options, "proofs")) {
        add_option(&gathering, "proofs", member->config.proofs);
    }
    if (member->config.kills_outliving) {
        add_option(&gathering, "kill-outliving", "yes");
    }
    struct provider_config config = {.loop = member->config.loop,
                                     .logger = member->config.logger,
                                     .url = url ? url : own_url,
                                     .node = member->node,
                                     .options = gathering.found,
                                     .option_count = gathering.count};
    code = gathering.failed ? error_set(reterr, BATON_ENOMEM, "out of memory")
                            : provider_open(&member->provider, &config, reterr);
    for (size_t i = 0; i < gathering.count; i++) {
        free(gathering.owned[i]);
    }
    return code;
}

void member_set_victims(struct member *member, const struct victims *victims)
{
    if (member->provider->ops->set_victims) {
        member->provider->ops->set_victims(member->provider, victims);
    }
}
