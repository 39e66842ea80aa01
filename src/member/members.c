#include "member/members.h"

#include "base/json_load.h"
#include "member/state.h"

#include <jansson.h>

int members_list(struct election *election, provider_members_cb done, void *userdata,
                 struct baton_error *reterr)
{
    int code = election_check(election, reterr);

    code = code ? code : member_need(election->member, PROVIDER_MEMBERS, "list of members", reterr);
    return code ? code
                : election->provider->ops->members(election->provider, done, userdata, reterr);
}

int members_check_metadata(const char *metadata, struct baton_error *reterr)
{
    json_error_t problem = {.text = ""};
    json_t *parsed;
    bool is_object;

    if (!metadata) {
        return BATON_OK;
    }
    parsed = json_load_text(metadata, JSON_REJECT_DUPLICATES, &problem);
    is_object = json_is_object(parsed);
    json_decref(parsed);
    return is_object ? BATON_OK
                     : error_set(reterr, BATON_EINVAL, "metadata \"%.60s\": is no JSON object%s%s",
                                 metadata, problem.text[0] ? ": " : "", problem.text);
}

int members_set_metadata(struct election *election, const char *metadata,
                         struct baton_error *reterr)
{
    const struct provider_ops *ops;
    int code = members_check_metadata(metadata, reterr);

    code = code ? code : election_check(election, reterr);
    if (code != BATON_OK) {
        return code;
    }
    ops = election->provider->ops;
    return ops->set_metadata
               ? ops->set_metadata(election->provider, metadata, reterr)
               : error_set(reterr, BATON_ENOTSUP,
                           "metadata: provider %s cannot change it; set it at the start",
                           ops->scheme);
}

int members_check_change(const struct election *election, struct baton_error *reterr)
{
    int code = election_check(election, reterr);

    if (code == BATON_OK && !member_has(election->member, PROVIDER_OPERATE)) {
        code =
            error_set(reterr, BATON_ENOTSUP,
                      "%s: members of this provider join when they start, and leave when they end",
                      member_scheme(election->member));
    }
    return code;
}

int members_add(struct election *election, const struct baton_member *member, bool replaces,
                instant deadline, provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct provider_election *provider = election->provider;
    int code = members_check_change(election, reterr);

    return code ? code
                : provider->ops->member_add(provider, member, replaces, deadline, done, userdata,
                                            reterr);
}

int members_remove(struct election *election, const char *id, instant deadline,
                   provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct provider_election *provider = election->provider;
    int code = members_check_change(election, reterr);

    return code ? code
                : provider->ops->member_remove(provider, id, deadline, done, userdata, reterr);
}
