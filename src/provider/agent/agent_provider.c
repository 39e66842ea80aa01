#include "provider/agent/agent_provider.h"
#include "provider/agent/remote.h"
#include "provider/setting_rows.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAREWELL SPAN_S(1) /* how long the agent's reply to bye is waited for */

/* ---- Settings -------------------------------------------------------------------------------- */

#define TARGET struct remote

static const struct provider_setting agent_settings[] = {
    TEXT("node", node),
    END,
};

static int take_node(struct remote *remote, const char *node, struct baton_error *reterr)
{
    if (node && (!node[0] || strlen(node) >= sizeof(remote->node))) {
        return error_set(reterr, BATON_EINVAL, "node \"%.40s\": must have 1 to %d bytes", node,
                         BATON_NAME_MAX - 1);
    }
    if (node) {
        memcpy(remote->node, node, strlen(node) + 1);
    }
    return BATON_OK;
}

static int make_secret(struct remote *remote, struct baton_error *reterr)
{
    unsigned char secret[PROVIDER_SECRET_BYTES];

    if (RAND_bytes(secret, sizeof(secret)) != 1) {
        return error_set(reterr, BATON_EIO, "agent: no random bytes for a secret");
    }
    for (size_t i = 0; i < sizeof(secret); i++) {
        (void)snprintf(remote->secret + 2 * i, 3, "%02x", secret[i]);
    }
    OPENSSL_cleanse(secret, sizeof(secret));
    return BATON_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void remote_release(struct remote *remote)
{
    void (*closed)(void *) = remote->closed;
    void *userdata = remote->closed_userdata;

    if (--remote->holds > 0) {
        return;
    }
    contests_sweep(remote);
    feeds_free(remote);
    json_decref(remote->about);
    free(remote->metadata);
    OPENSSL_cleanse(remote->secret, sizeof(remote->secret));
    OPENSSL_cleanse(remote->token, sizeof(remote->token));
    free(remote);
    if (closed) {
        closed(userdata);
    }
}

static int agent_provider_open(struct provider **ret, const struct provider_config *config,
                               struct baton_error *reterr)
{
    struct remote *remote = calloc(1, sizeof(*remote));
    int code;

    if (!remote) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = provider_settings_take(remote, agent_settings, config, reterr);
    if (code == BATON_OK) {
        code = local_agent_url(remote->path, config->url, reterr);
    }
    if (code == BATON_OK) {
        code = take_node(remote, config->node, reterr);
    }
    if (code == BATON_OK) {
        code = make_secret(remote, reterr);
    }
    if (code != BATON_OK) {
        free(remote);
        return code;
    }
    remote->base.ops = &agent_provider_ops;
    remote->loop = config->loop;
    remote->logger = config->logger;
    remote->holds = 1;
    remote->backoff = SPAN_MS(10);
    remote->connect_at = remote->members_at = INSTANT_PAST;
    (void)uv_timer_init(remote->loop, &remote->timer);
    remote->timer.data = remote;
    remote_step(remote);
    *ret = &remote->base;
    return BATON_OK;
}

static void on_timer_closed(uv_handle_t *timer)
{
    remote_release(timer->data);
}

/* The agent has heard it, or is not waited for any longer. */
static void end(struct remote *remote)
{
    if (!remote->is_ending) {
        remote->is_ending = true;
        remote_disconnect(remote);
        uv_close((uv_handle_t *)&remote->timer, on_timer_closed);
    }
}

static void on_bye(struct call *call, int code, const json_t *reply)
{
    (void)code;
    (void)reply;
    end(call->owner);
}

static void on_farewell_over(uv_timer_t *timer)
{
    end(timer->data);
}

/* All is given up here before the agent hears of it, and by its reply it hands all on. */
static void agent_provider_close(struct provider *provider, void (*closed)(void *userdata),
                                 void *userdata)
{
    struct remote *remote = (struct remote *)provider;
    struct call *bye;

    if (remote->is_closing) {
        return;
    }
    remote->is_closing = true;
    remote->closed = closed;
    remote->closed_userdata = userdata;
    remote_enter_callback(remote);
    contests_stop_all(remote);
    remote_leave_callback(remote);
    bye = remote->is_ready ? remote_call(remote, json_pack("{s:s}", "do", "bye"), on_bye) : NULL;
    if (!bye) {
        end(remote);
        return;
    }
    bye->owner = remote;
    remote_step(remote);
    (void)uv_timer_start(&remote->timer, on_farewell_over, (uint64_t)(FAREWELL.ns / 1000000), 0);
}

/* ---- The rest -------------------------------------------------------------------------------- */

static json_t *agent_provider_status(struct provider *provider)
{
    const struct remote *remote = (const struct remote *)provider;

    return json_pack("{s:s, s:s, s:b, s:s*, s:s*, s:O*}", "provider", "agent", "path", remote->path,
                     "connected", (int)remote->is_ready, "name",
                     remote->node[0] ? remote->node : NULL, "session",
                     remote->session[0] ? remote->session : NULL, "agent",
                     json_object_get(remote->about, "agent"));
}

/* Their supervisor kills them, and says to the agent when none is left. */
static void agent_provider_set_victims(struct provider *provider, const struct victims *victims)
{
    struct remote *remote = (struct remote *)provider;

    (void)snprintf(remote->token, sizeof(remote->token), "%s", victims ? victims->token : "");
    if (remote->is_ready) {
        remote_say_acting(remote);
        remote_step(remote);
    }
}

const struct provider_ops agent_provider_ops = {
    .scheme = "agent",
    .summary = "the agent of this host: agent: or agent:/run/baton/agent.sock",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_STATE | PROVIDER_MANY_ELECTIONS,
    .settings = agent_settings,
    .open = agent_provider_open,
    .close = agent_provider_close,
    .campaign = contest_campaign,
    .check_heir = contest_check_heir,
    .resign = contest_resign,
    .drained = contest_drained,
    .set_eligible = contest_set_eligible,
    .leave = contest_leave,
    .leader = contest_leader,
    .status = agent_provider_status,
    .members = contest_members,
    .set_metadata = contest_set_metadata,
    .publish = remote_publish,
    .subscribe = remote_subscribe,
    .unsubscribe = remote_unsubscribe,
    .get = remote_get,
    .get_each = remote_get_each,
    .list = remote_list,
    .put = remote_put,
    .watch = remote_watch,
    .unwatch = remote_unwatch,
    .set_victims = agent_provider_set_victims,
    .elections = remote_elections,
    .ask_pass = remote_ask_pass,
    .ask_eligible = remote_ask_eligible,
};
