#include "member/store.h"

#include "provider/get_each.h"

/* A timer may ask after the member was closed, and before it is freed. */
static int need(const struct member *member, unsigned features, const char *what,
                struct baton_error *reterr)
{
    return member_provider(member) ? member_need(member, features, what, reterr)
                                   : error_set(reterr, BATON_ECLOSED, "the member is closed");
}

int store_get(struct member *member, const char *key, provider_values_cb done, void *userdata,
              struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = need(member, PROVIDER_STATE, "state", reterr);

    return code ? code : provider->ops->get(provider, key, done, userdata, reterr);
}

int store_get_each(struct member *member, const char *const *keys, size_t count,
                   provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    int code = need(member, PROVIDER_STATE, "state", reterr);

    return code ? code
                : provider_get_each(member_provider(member), keys, count, done, userdata, reterr);
}

int store_list(struct member *member, const char *prefix, provider_values_cb done, void *userdata,
               struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = need(member, PROVIDER_STATE, "state", reterr);

    return code ? code : provider->ops->list(provider, prefix, done, userdata, reterr);
}

int store_put(struct member *member, const char *key, const void *data, size_t bytes,
              uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
              struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = need(member, PROVIDER_STATE, "state", reterr);

    return code ? code
                : provider->ops->put(provider, key, data, bytes, revision, lifetime, done, userdata,
                                     reterr);
}

int store_publish(struct member *member, const char *channel, const void *data, size_t bytes,
                  provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = need(member, PROVIDER_CHANNELS, "channels", reterr);

    return code ? code
                : provider->ops->publish(provider, channel, data, bytes, done, userdata, reterr);
}
