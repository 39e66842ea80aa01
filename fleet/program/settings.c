/* Options to settings. */
#include "base/bearer.h"
#include "base/host.h"
#include "base/text.h"
#include "base/url.h"
#include "base/value.h"
#include "fleet/program/program.h"
#include "fleet/state/state.h"
#include "fleet/workers/discovery.h"

#include <string.h>
#include <unistd.h>

/* ---- The texts ------------------------------------------------------------------------------- */

static int name_node(char ret[static BATON_NAME_MAX], const char *given, struct baton_error *reterr)
{
    char host[256] = "";

    (void)gethostname(host, sizeof(host) - 1);
    given = given ? given : host;
    if (!text_clean(ret, BATON_NAME_MAX, given, strnlen(given, BATON_NAME_MAX - 1)) &&
        strlen(given) < BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL,
                         "--node %s: must be UTF-8 without control characters", ret);
    }
    if (!*given || strlen(given) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "--node %s: must have 1 to %d bytes", ret,
                         BATON_NAME_MAX - 1);
    }
    return BATON_OK;
}

static int read_list(const char **ret, const struct options *options, const char *name,
                     struct baton_error *reterr)
{
    size_t count = options_count(options, name);

    if (count > PROGRAM_LIST_MAX) {
        return error_set(reterr, BATON_EINVAL, "--%s: given %zu times; at most %d are allowed",
                         name, count, PROGRAM_LIST_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = options_item(options, name, i);
    }
    ret[count] = NULL;
    return BATON_OK;
}

/* *ret: `space`, or NULL if the option is not given. */
static int read_token(const char **ret, char space[static PROGRAM_TOKEN_MAX],
                      const struct options *options, const char *name, struct baton_error *reterr)
{
    const char *path = options_text(options, name);
    int code = path ? bearer_read(space, PROGRAM_TOKEN_MAX, path, reterr) : BATON_OK;

    *ret = path ? space : NULL;
    return code == BATON_OK ? BATON_OK : error_wrap(reterr, "--%s", name);
}

static int read_tokens(struct program_settings *ret, const struct options *options,
                       struct baton_error *reterr)
{
    struct engine_config *engine = &ret->engine;
    int code = read_token(&engine->read_token, ret->read_token, options, "read-token-file", reterr);

    code = code ? code
                : read_token(&engine->change_token, ret->change_token, options, "change-token-file",
                             reterr);
    code = code ? code
                : read_token(&engine->webhook_secret, ret->webhook_secret, options,
                             "webhook-secret-file", reterr);
    return code ? code
                : read_token(&engine->worker_token, ret->worker_token, options, "worker-token-file",
                             reterr);
}

/* ---- The checks ------------------------------------------------------------------------------ */

static int check_name(const char *name, struct baton_error *reterr)
{
    return fleet_name_check(name, reterr) == BATON_OK ? BATON_OK : error_wrap(reterr, "--name");
}

/* The parts that use the URLs open when the state is loaded, too late to refuse them. */
static int check_workers(const char *const *urls, struct baton_error *reterr)
{
    for (; *urls; urls++) {
        if (discovery_check(*urls, reterr) != BATON_OK) {
            return error_wrap(reterr, "--worker");
        }
    }
    return BATON_OK;
}

static int check_http(const struct engine_config *engine, struct baton_error *reterr)
{
    if (!engine->tls_cert != !engine->tls_key) {
        return error_set(reterr, BATON_EINVAL, "--tls-cert and --tls-key: one needs the other");
    }
    if (engine->read_token && !engine->change_token) {
        return error_set(reterr, BATON_EINVAL,
                         "--read-token-file without --change-token-file: everybody might change "
                         "what only some may read");
    }
    if (!host_is_loopback(engine->http_host) && !engine->change_token && !engine->is_insecure) {
        return error_set(reterr, BATON_EINVAL,
                         "--http %s: others reach this address: give --change-token-file, or "
                         "--insecure if everybody there may change all",
                         engine->http_host);
    }
    return BATON_OK;
}

static int check(const struct engine_config *engine, struct baton_error *reterr)
{
    int code = check_name(engine->name, reterr);

    code = code ? code : check_workers(engine->workers, reterr);
    if (code == BATON_OK && engine->grace.ns < 100000000) {
        code = error_set(reterr, BATON_EINVAL, "--grace: must be at least 100ms");
    }
    if (code == BATON_OK && engine->silence.ns < 1000000000) {
        code = error_set(reterr, BATON_EINVAL, "--silence: must be at least 1s");
    }
    if (code == BATON_OK && engine->resolve_every.ns < 100000000) {
        code = error_set(reterr, BATON_EINVAL, "--resolve-every: must be at least 100ms");
    }
    return code ? code : check_http(engine, reterr);
}

int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr)
{
    char space[BATON_NAME_MAX];
    const char *name;
    int code;

    *ret = (struct program_settings){
        .engine = {.provider = options_text(options, "provider"),
                   .node = ret->node,
                   .name = options_text(options, "name"),
                   .workers = ret->workers,
                   .resolve_every = options_duration(options, "resolve-every"),
                   .grace = options_duration(options, "grace"),
                   .silence = options_duration(options, "silence"),
                   .worker_ca = options_text(options, "worker-ca"),
                   .subscriptions_max = (unsigned)options_number(options, "subscriptions-max"),
                   .hysteresis_permille = (unsigned)options_number(options, "hysteresis"),
                   .http_host = ret->host,
                   .http_hosts = ret->hosts,
                   .tls_cert = options_text(options, "tls-cert"),
                   .tls_key = options_text(options, "tls-key"),
                   .is_insecure = options_flag(options, "insecure"),
                   .s3_endpoint = options_text(options, "s3-endpoint"),
                   .s3_region = options_text(options, "s3-region"),
                   .s3_credentials = options_text(options, "s3-credentials"),
                   .webhooks = ret->webhooks,
                   .webhook_events = options_text(options, "webhook-events"),
                   .mqtt = options_text(options, "mqtt"),
                   .mqtt_topic = options_text(options, "mqtt-topic"),
                   .mqtt_events = options_text(options, "mqtt-events")},
        .config = options_text(options, "config"),
    };
    name = options_text(options, "node");
    if (!name && url_find(space, sizeof(space), ret->engine.provider, "node")) {
        name = space;
    }
    code = name_node(ret->node, name, reterr);
    code = code ? code
                : value_address(options_text(options, "http"), true, ret->host, sizeof(ret->host),
                                &ret->engine.http_port, reterr);
    code = code ? code : read_list(ret->workers, options, "worker", reterr);
    code = code ? code : read_list(ret->hosts, options, "http-host", reterr);
    code = code ? code : read_list(ret->webhooks, options, "webhook", reterr);
    code = code ? code : read_tokens(ret, options, reterr);
    return code ? code : check(&ret->engine, reterr);
}
