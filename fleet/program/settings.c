/* Options to settings. */
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

static const char *const *list_of(const struct options *options, const char *name)
{
    static const char *const none[] = {NULL};
    const char *const *list = options_list(options, name);

    return list ? list : none;
}

static int read_tokens(struct program_settings *ret, const struct options *options,
                       struct baton_error *reterr)
{
    const struct {
        const char **token;
        char *space;
        const char *name;
    } files[] = {{&ret->engine.read_token, ret->read_token, "read-token-file"},
                 {&ret->engine.change_token, ret->change_token, "change-token-file"},
                 {&ret->engine.webhook_secret, ret->webhook_secret, "webhook-secret-file"},
                 {&ret->engine.worker_token, ret->worker_token, "worker-token-file"}};
    int code = BATON_OK;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !code; i++) {
        code = program_token(files[i].token, files[i].space, PROGRAM_TOKEN_MAX, options,
                             files[i].name, reterr);
    }
    return code;
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
                   .workers = list_of(options, "worker"),
                   .resolve_every = options_duration(options, "resolve-every"),
                   .grace = options_duration(options, "grace"),
                   .silence = options_duration(options, "silence"),
                   .worker_ca = options_text(options, "worker-ca"),
                   .subscriptions_max = (unsigned)options_number(options, "subscriptions-max"),
                   .hysteresis_permille = (unsigned)options_number(options, "hysteresis"),
                   .http_host = ret->host,
                   .http_hosts = list_of(options, "http-host"),
                   .tls_cert = options_text(options, "tls-cert"),
                   .tls_key = options_text(options, "tls-key"),
                   .is_insecure = options_flag(options, "insecure"),
                   .s3_endpoint = options_text(options, "s3-endpoint"),
                   .s3_region = options_text(options, "s3-region"),
                   .s3_credentials = options_text(options, "s3-credentials"),
                   .webhooks = list_of(options, "webhook"),
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
    code = code ? code : read_tokens(ret, options, reterr);
    return code ? code : check(&ret->engine, reterr);
}
