#include "member/member.h"

#include <jansson.h>
#include <stdlib.h>

struct member {
    struct provider *provider; /* NULL once closed */
    const struct provider_ops *ops;
    uv_loop_t *loop;
    uv_timer_t turn; /* once it is closing */
    void (*closed)(void *userdata);
    void *userdata;
};

int member_open(struct member **ret, const struct provider_config *config,
                struct baton_error *reterr)
{
    struct member *member = calloc(1, sizeof(*member));
    int code = member ? provider_open(&member->provider, config, reterr)
                      : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (code != BATON_OK) {
        free(member);
        return code;
    }
    member->ops = member->provider->ops;
    member->loop = config->loop;
    *ret = member;
    return BATON_OK;
}

int member_begin(struct member *member, struct baton_error *reterr)
{
    return member->ops->begin ? member->ops->begin(member->provider, reterr) : BATON_OK;
}

static void on_closed(void *userdata)
{
    struct member *member = userdata;

    member->provider = NULL;
    member->closed(member->userdata);
}

static void on_turn_closed(uv_handle_t *turn)
{
    struct member *member = turn->data;

    member->ops->close(member->provider, on_closed, member);
}

static void on_turn(uv_timer_t *turn)
{
    uv_close((uv_handle_t *)turn, on_turn_closed);
}

/* By the loop's next turn: a provider is not closed within an event (provider.h). */
void member_close(struct member *member, void (*closed)(void *userdata), void *userdata)
{
    member->closed = closed;
    member->userdata = userdata;
    member->turn.data = member;
    (void)uv_timer_init(member->loop, &member->turn); /* neither can fail */
    (void)uv_timer_start(&member->turn, on_turn, 0, 0);
}

void member_free(struct member *member)
{
    free(member);
}

uv_loop_t *member_loop(const struct member *member)
{
    return member->loop;
}

const char *member_scheme(const struct member *member)
{
    return member->ops->scheme;
}

bool member_has(const struct member *member, unsigned features)
{
    return (member->ops->features & features) == features;
}

int member_need(const struct member *member, unsigned features, const char *what,
                struct baton_error *reterr)
{
    return member_has(member, features)
               ? BATON_OK
               : error_set(reterr, BATON_ENOTSUP, "the provider %s: has no %s",
                           member_scheme(member), what);
}

struct json_t *member_provider_status(const struct member *member)
{
    return member->ops->status ? member->ops->status(member->provider) : NULL;
}

bool member_has_failed(const struct member *member)
{
    json_t *status = member_provider_status(member);
    bool has_failed = json_is_true(json_object_get(status, "storage_failed"));

    json_decref(status);
    return has_failed;
}

void member_set_victims(struct member *member, const struct victims *victims)
{
    if (member->ops->set_victims) {
        member->ops->set_victims(member->provider, victims);
    }
}

int member_reload(struct member *member, const char *url, provider_done_cb done, void *userdata,
                  struct baton_error *reterr)
{
    if (!member->ops->reload) {
        done(userdata, BATON_OK, NULL);
        return BATON_OK;
    }
    return member->ops->reload(member->provider, url, done, userdata, reterr);
}

struct provider *member_provider(const struct member *member)
{
    return member->provider;
}
