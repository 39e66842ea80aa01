/* Opening, the sweep for silent processes, closing. */
#include "agent/agent_int.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 10, SWEEP_MAX_MS = 1000 }; /* in one lease of a client; between two of them */
enum { BACKLOG = 4096 };                   /* a whole host may connect at once */

static void on_connection(int fd, void *userdata)
{
    client_accept(userdata, fd);
}

static span sweep_interval(const struct agent *agent)
{
    int64_t share_ns = agent->config.client_lease.ns / SWEEPS, most_ns = SPAN_MS(SWEEP_MAX_MS).ns;

    return SPAN_NS(share_ns < most_ns ? share_ns : most_ns);
}

/* After a stop of this process (SIGSTOP, a busy machine) the clients' messages may wait unread:
 * they are read before anybody is called silent. */
static void on_sweep(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    instant now = clock_now();
    bool is_late = instant_since(now, agent->swept).ns > 3 * sweep_interval(agent).ns;

    agent->swept = now;
    if (!is_late) {
        tenant_sweep(agent);
        lists_sweep(agent, now);
    }
    agent_finish(agent);
}

/* Other processes' handles, where each is a provider of its own, have no guardian: it would hand on
 * what they lead when this process dies, and they act on. */
static int make_attach_config(struct agent *agent, struct baton_error *reterr)
{
    const struct provider_config *base = agent->config.provider_config;
    size_t count = base->option_count;
    struct provider_option *options = calloc(count + 1, sizeof(*options));

    if (!options) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (count > 0) {
        memcpy(options, base->options, count * sizeof(*options));
    }
    if (provider_has_setting(base->url, "guardian")) {
        options[count++] = (struct provider_option){"guardian", "no"};
    }
    agent->attach_options = options;
    agent->attach_config = *base;
    agent->attach_config.on_failed = NULL; /* a client's handle is not the agent */
    agent->attach_config.options = options;
    agent->attach_config.option_count = count;
    return BATON_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct agent *agent = handle->data;

    if (agent->closed) {
        agent->closed(agent->userdata);
    }
}

static void on_swept(uv_handle_t *handle)
{
    struct agent *agent = handle->data;

    uv_close((uv_handle_t *)&agent->turns, on_closed);
}

void agent_finish(struct agent *agent)
{
    if (agent->is_closing && !agent->tenants && !agent->clients &&
        !uv_is_closing((uv_handle_t *)&agent->sweep)) {
        uv_close((uv_handle_t *)&agent->sweep, on_swept);
    }
}

void agent_free(struct agent *agent)
{
    if (agent) {
        if (agent->attach_url) {
            explicit_bzero(agent->attach_url, strlen(agent->attach_url));
        }
        free(agent->attach_url);
        free(agent->attach_options);
        free(agent);
    }
}

/* ---- Reloading ------------------------------------------------------------------------------- */

static void on_reloaded(void *userdata, int code, const struct baton_error *error)
{
    const struct agent *agent = userdata;

    if (code && code != BATON_ECANCELED) {
        log_error(agent->config.logger, "reload-refused", LOG_STR("reason", error->message),
                  LOG_STR("text", "nothing changes for a client"));
    }
}

void agent_reload(struct agent *agent, const char *url)
{
    const struct provider_ops *ops = agent->config.provider->ops;
    char *copy = ops->attach || !ops->reload ? NULL : strdup(url);
    struct baton_error error;

    if (!copy) {
        return;
    }
    if (agent->attach_url) {
        explicit_bzero(agent->attach_url, strlen(agent->attach_url));
    }
    free(agent->attach_url);
    agent->attach_config.url = agent->attach_url = copy;
    for (const struct tenant *tenant = agent->tenants; tenant; tenant = tenant->next) {
        int code =
            tenant->handle ? ops->reload(tenant->handle, url, on_reloaded, agent, &error) : 0;
        if (code) {
            on_reloaded(agent, code, &error);
        }
    }
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void on_failed(uv_handle_t *handle)
{
    agent_free(handle->data);
}

static void on_sweep_failed(uv_handle_t *handle)
{
    struct agent *agent = handle->data;

    uv_close((uv_handle_t *)&agent->turns, on_failed);
}

/* The group needs this host's vote, and its programs the state, before the first of them leads. */
static int begin(struct provider *provider, struct baton_error *reterr)
{
    return provider->ops->begin ? provider->ops->begin(provider, reterr) : BATON_OK;
}

int agent_open(struct agent **ret, const struct agent_config *config, struct baton_error *reterr)
{
    struct listener_options options = {.loop = config->loop,
                                       .logger = config->logger,
                                       .backlog = BACKLOG,
                                       .on_connection = on_connection};
    struct agent *agent;
    uint64_t every_ms;
    int code;

    if ((config->provider->ops->features & PROVIDER_MANY_ELECTIONS) == 0) {
        return error_set(reterr, BATON_ENOTSUP,
                         "this group is one election by itself; an agent needs a group of many: "
                         "--group NAME");
    }
    agent = calloc(1, sizeof(*agent));
    if (!agent) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    agent->config = *config;
    options.userdata = agent;
    (void)uv_timer_init(config->loop, &agent->sweep);
    (void)uv_idle_init(config->loop, &agent->turns);
    agent->sweep.data = agent->turns.data = agent;
    agent->swept = clock_now();
    code = make_attach_config(agent, reterr);
    code = code ? code : begin(config->provider, reterr);
    code = code ? code : listener_open_unix(&agent->listener, &options, &config->place, reterr);
    if (code) {
        uv_close((uv_handle_t *)&agent->sweep, on_sweep_failed);
        return code;
    }
    every_ms = (uint64_t)(sweep_interval(agent).ns / 1000000);
    (void)uv_timer_start(&agent->sweep, on_sweep, every_ms, every_ms > 0 ? every_ms : 1);
    *ret = agent;
    return BATON_OK;
}

void agent_close(struct agent *agent, void (*closed)(void *userdata), void *userdata)
{
    struct tenant *tenant, *next;
    struct client *client, *other;

    agent->is_closing = true;
    agent->closed = closed;
    agent->userdata = userdata;
    listener_end(agent->listener);
    for (tenant = agent->tenants; tenant; tenant = next) {
        next = tenant->next;
        tenant_detach(tenant);
    }
    for (client = agent->clients; client; client = other) {
        other = client->hh.next;
        local_close(client->local);
    }
}
