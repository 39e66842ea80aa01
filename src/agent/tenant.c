/* A process that takes part: its hello, its lease, its end. */
#include "agent/agent_int.h"

#include "base/json_text.h"
#include "guardian/victims.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum { VERSION = 1, RENEWALS = 6, STAT_BYTES = 1024, STAT_START = 19 };

/* ---- The lease ------------------------------------------------------------------------------- */

instant tenant_promise(struct tenant *tenant)
{
    instant end = instant_add(tenant->heard, tenant->agent->config.client_lease);
    bool leads = false;

    for (struct part *part = tenant->parts; part; part = part->hh.next) {
        if (part->epoch != 0) {
            end = instant_min(end, part_end(part));
            leads = true;
        }
    }
    if (!leads) {
        return INSTANT_PAST;
    }
    tenant->promised = instant_max(tenant->promised, end);
    return end;
}

void tenant_renew(struct client *client, const json_t *message)
{
    instant now = clock_now(), end = tenant_promise(client->tenant);
    span left = instant_since(end, now);

    client_reply(client, request_id(message),
                 left.ns > 0 ? json_pack("{s:I, s:f}", "end_ns", (json_int_t)end.ns, "left_ms",
                                         (double)left.ns / 1e6)
                             : json_pack("{s:I, s:i}", "end_ns", (json_int_t)now.ns, "left_ms", 0));
}

/* ---- The end --------------------------------------------------------------------------------- */

static void let_go(struct tenant *tenant)
{
    struct agent *agent = tenant->agent;

    if (--tenant->holds > 0) {
        return;
    }
    if (tenant->peer.pidfd >= 0) {
        (void)close(tenant->peer.pidfd);
    }
    if (tenant->container_fd >= 0) {
        (void)close(tenant->container_fd);
    }
    DL_DELETE(agent->tenants, tenant);
    agent->tenant_count--;
    OPENSSL_cleanse(tenant->secret, sizeof(tenant->secret));
    free(tenant->metadata);
    free(tenant->marker);
    free(tenant->token);
    free(tenant);
    agent_finish(agent);
}

static void on_handle_closed(void *userdata)
{
    let_go(userdata);
}

static void on_poll_closed(uv_handle_t *poll)
{
    let_go(poll->data);
}

static void unwatch(struct tenant *tenant)
{
    if (tenant->is_watched) {
        tenant->is_watched = false;
        uv_close((uv_handle_t *)&tenant->death, on_poll_closed);
    }
    if (tenant->container_fd >= 0 && !uv_is_closing((uv_handle_t *)&tenant->container)) {
        uv_close((uv_handle_t *)&tenant->container, on_poll_closed);
    }
}

static void leave_client(struct tenant *tenant)
{
    struct client *client = tenant->client;

    tenant->client = NULL;
    if (client) {
        client->tenant = NULL;
        local_close(client->local);
    }
}

static void end_by(struct tenant *tenant, const char *why,
                   void (*end)(struct provider *, void (*)(void *), void *))
{
    struct provider *handle = tenant->handle;

    if (!handle) {
        return;
    }
    log_info(tenant->agent->config.logger, "session-ends", LOG_STR("process", tenant->name),
             LOG_I64("pid", tenant->peer.pid), LOG_STR("reason", why));
    tenant->handle = NULL;
    tenant->is_ending = true;
    leave_client(tenant);
    unwatch(tenant);
    end(handle, on_handle_closed, tenant);
}

void tenant_end(struct tenant *tenant, const char *why)
{
    if (tenant->handle) {
        end_by(tenant, why, tenant->handle->ops->close);
    }
}

/* Without sessions the handle stays until nobody can act by it any more. */
void tenant_detach(struct tenant *tenant)
{
    if (tenant->has_session_events) {
        end_by(tenant, "the agent ends", provider_detach);
        return;
    }
    for (struct part *part = tenant->parts; part; part = part->hh.next) {
        if (part->epoch != 0) {
            client_send(tenant->client,
                        json_pack("{s:s, s:s, s:I, s:s}", "event", "leadership-lost", "election",
                                  part->name, "epoch", (json_int_t)part->epoch, "reason",
                                  baton_loss_name(BATON_LOSS_SHUTDOWN)));
        }
    }
    leave_client(tenant);
    if (tenant->promised.ns <= clock_now().ns) {
        tenant_end(tenant, "the agent ends");
    }
}

void tenant_sweep(struct agent *agent)
{
    instant now = clock_now();
    struct tenant *next;

    for (struct tenant *tenant = agent->tenants; tenant; tenant = next) {
        instant end = agent->is_closing ? tenant->promised
                                        : instant_add(tenant->heard, agent->config.client_lease);
        next = tenant->next;
        if (tenant->handle && !instant_before(now, end)) {
            tenant_end(tenant, agent->is_closing ? "the agent ends"
                               : tenant->is_dead ? "its lease is over"
                                                 : "it was silent");
        }
    }
}

void tenant_bye(struct client *client, const json_t *message)
{
    client_reply(client, request_id(message), NULL);
    tenant_end(client->tenant, "it said goodbye");
}

/* ---- Death ----------------------------------------------------------------------------------- */

/* Of the dead process none acts any more, as far as can be known: else its lease decides. */
static void end_if_over(struct tenant *tenant)
{
    if (tenant->is_dead && !tenant->is_hunted_for && !tenant->has_survivors &&
        (!tenant->token || tenant->is_gone)) {
        tenant_end(tenant, tenant->marker || tenant->token ? "it has died, and what acted for it"
                                                           : "it has died");
    }
}

void tenant_hunted(struct tenant *tenant, bool has_survivors)
{
    tenant->is_hunted_for = false;
    tenant->has_survivors = has_survivors;
    if (has_survivors) { /* they may act until the end that was promised */
        log_warning(tenant->agent->config.logger, "survivors", LOG_STR("process", tenant->name),
                    LOG_STR("text", "what acts for it could not be killed: its lease decides"));
    }
    end_if_over(tenant);
    let_go(tenant);
}

/* Its pidfd is readable: it has died. What acts for it dies first. */
static void on_death(uv_poll_t *poll, int status, int events)
{
    struct tenant *tenant = poll->data;
    (void)status;
    (void)events;

    (void)uv_poll_stop(poll);
    tenant->is_dead = true;
    if (tenant->marker) {
        hunt_begin(tenant);
    } else {
        end_if_over(tenant);
    }
}

static void watch(struct tenant *tenant)
{
    uv_loop_t *loop = tenant->agent->config.loop;

    if (tenant->peer.pidfd >= 0 && uv_poll_init(loop, &tenant->death, tenant->peer.pidfd) == 0) {
        tenant->death.data = tenant;
        tenant->is_watched = true;
        tenant->holds++;
        (void)uv_poll_start(&tenant->death, UV_READABLE, on_death);
    }
}

/* Nothing of a container outlives its process 1, a supervisor included. */
static void on_container_end(uv_poll_t *poll, int status, int events)
{
    struct tenant *tenant = poll->data;
    (void)status;
    (void)events;

    (void)uv_poll_stop(poll);
    tenant->is_gone = true;
    end_if_over(tenant);
}

void tenant_take_container(struct tenant *tenant, int pidfd)
{
    uv_loop_t *loop = tenant->agent->config.loop;

    if (tenant->container_fd >= 0 || !tenant->is_watched ||
        uv_poll_init(loop, &tenant->container, pidfd) != 0) {
        (void)close(pidfd);
        return;
    }
    tenant->container_fd = pidfd;
    tenant->container.data = tenant;
    tenant->holds++;
    (void)uv_poll_start(&tenant->container, UV_READABLE, on_container_end);
}

/* NULL: both are right. */
static const char *check_acting(const char *marker, const char *token)
{
    if (marker[0] && (!strchr(marker, '=') || strlen(marker) >= VICTIMS_MARKER_MAX)) {
        return "\"marker\": must be NAME=value of at most 63 bytes, or empty";
    }
    if (token[0] && strlen(token) != VICTIMS_TOKEN_MAX - 1) {
        return "\"token\": must have 64 digits, or be empty";
    }
    return NULL;
}

void tenant_acting(struct client *client, const json_t *message)
{
    const char *marker = request_text(client, message, "marker");
    const char *token = json_string_value(json_object_get(message, "token"));
    struct tenant *tenant = client->tenant;
    const char *fault;
    char *copies[2];

    if (!marker) {
        return;
    }
    token = token ? token : "";
    fault = check_acting(marker, token);
    if (fault) {
        client_fail(client, request_id(message), BATON_EINVAL, fault);
        return;
    }
    if (marker[0] && geteuid() != 0 && geteuid() != client->peer.uid) {
        client_fail(client, request_id(message), BATON_EAUTH,
                    "this agent runs as another user, and could not kill what acts for you; run it "
                    "as root, or as your user");
        return;
    }
    if (marker[0] && client->peer.pid <= 0) {
        client_fail(client, request_id(message), BATON_EAUTH,
                    "this agent is in another PID namespace, and could not find what acts for you");
        return;
    }
    copies[0] = marker[0] ? strdup(marker) : NULL;
    copies[1] = token[0] ? strdup(token) : NULL;
    if ((marker[0] && !copies[0]) || (token[0] && !copies[1])) {
        free(copies[0]);
        free(copies[1]);
        client_fail(client, request_id(message), BATON_ENOMEM, "out of memory");
        return;
    }
    free(tenant->marker);
    free(tenant->token);
    tenant->marker = copies[0];
    tenant->token = copies[1];
    tenant->is_gone = false;
    client_reply(client, request_id(message), NULL);
}

/* The word of a supervisor, which no other process can give: nobody else knows the token. */
void tenant_gone(struct client *client, const json_t *message)
{
    const char *token = request_text(client, message, "token");
    struct tenant *tenant = token ? client->agent->tenants : NULL;

    while (tenant && (!tenant->token || strlen(token) != VICTIMS_TOKEN_MAX - 1 ||
                      CRYPTO_memcmp(tenant->token, token, VICTIMS_TOKEN_MAX - 1) != 0)) {
        tenant = tenant->next;
    }
    if (!tenant && token) {
        client_fail(client, request_id(message), BATON_ENOENT, "no process has named this token");
    } else if (tenant) {
        tenant->is_gone = true;
        client_reply(client, request_id(message), NULL);
        end_if_over(tenant);
    }
}

/* ---- Hello ----------------------------------------------------------------------------------- */

static int nibble(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool read_secret(uint8_t ret[static PROVIDER_SECRET_BYTES], const char *text)
{
    if (strlen(text) != 2 * (size_t)PROVIDER_SECRET_BYTES) {
        return false;
    }
    for (size_t i = 0; i < PROVIDER_SECRET_BYTES; i++) {
        int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The clock tick in which the process began; 0: unknown. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[STAT_BYTES] = "", *rest = NULL, *field;
    FILE *file;
    size_t bytes;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    text[bytes] = '\0';
    field = strrchr(text, ')');
    field = field ? strtok_r(field + 1, " ", &rest) : NULL;
    for (int i = 0; field && i < STAT_START; i++) {
        field = strtok_r(NULL, " ", &rest);
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

struct hello {
    const char *name;
    uint8_t secret[PROVIDER_SECRET_BYTES];
    bool has_secret;
    uint64_t session;
    const char *token; /* as of `acting`; "": none */
    char own_name[BATON_NAME_MAX];
};

/* By the host and the process's number; further connections of one process get a number besides. */
static void make_name(char ret[static BATON_NAME_MAX], const struct client *client)
{
    const struct agent *agent = client->agent;

    (void)snprintf(ret, BATON_NAME_MAX, "%.40s.%d", agent->config.name, (int)client->peer.pid);
    for (const struct tenant *tenant = agent->tenants; tenant; tenant = tenant->next) {
        if (strcmp(tenant->name, ret) == 0) {
            (void)snprintf(ret, BATON_NAME_MAX, "%.32s.%d.%llu", agent->config.name,
                           (int)client->peer.pid, (unsigned long long)client->number);
            return;
        }
    }
}

/* NULL: all is well; else what is wrong. */
static const char *read_hello(struct hello *ret, const struct client *client, const json_t *message)
{
    const json_t *name = json_object_get(message, "name");
    const json_t *secret = json_object_get(message, "secret");
    const json_t *session = json_object_get(message, "session");
    const json_t *metadata = json_object_get(message, "metadata");
    json_int_t start = json_integer_value(json_object_get(message, "start"));

    *ret = (struct hello){.name = json_string_value(name)};
    if (!name || json_is_null(name)) {
        make_name(ret->own_name, client);
        ret->name = ret->own_name;
    }
    if (!ret->name || !ret->name[0] ||
        strlen(ret->name) !=
            (name && !json_is_null(name) ? json_string_length(name) : strlen(ret->name)) ||
        strlen(ret->name) >= BATON_NAME_MAX) {
        return "\"name\": must be a text of 1 to 63 bytes";
    }
    ret->has_secret = secret && !json_is_null(secret);
    if (ret->has_secret &&
        (!json_is_string(secret) || !read_secret(ret->secret, json_string_value(secret)))) {
        return "\"secret\": must be a text of 64 digits, 0 to 9 and a to f";
    }
    if (session && !json_is_null(session)) {
        ret->session = json_is_string(session) ? strtoull(json_string_value(session), NULL, 10) : 0;
    }
    if (metadata && !json_is_null(metadata) && !json_is_object(metadata)) {
        return "\"metadata\": must be an object";
    }
    ret->token = json_string_value(json_object_get(message, "token"));
    ret->token = ret->token ? ret->token : "";
    if (check_acting("", ret->token)) {
        return check_acting("", ret->token);
    }
    if (start > 0 && client->peer.pid > 0 && !client->peer.is_exact &&
        start_of(client->peer.pid) != (uint64_t)start) {
        return "\"start\": the process that connected has ended";
    }
    return NULL;
}

/* Whether only the process that has it knows the secret, is not for the time it takes to tell. */
static bool is_same(const struct tenant *tenant, const struct hello *hello)
{
    return hello->session != 0 && tenant->session == hello->session && tenant->has_secret &&
           hello->has_secret &&
           CRYPTO_memcmp(tenant->secret, hello->secret, sizeof(hello->secret)) == 0;
}

static struct tenant *find(struct agent *agent, const struct client *client,
                           const struct hello *hello)
{

    for (struct tenant *tenant = agent->tenants; tenant; tenant = tenant->next) {
        if (tenant->handle && is_same(tenant, hello) &&
            local_peer_is(&tenant->peer, &client->peer)) {
            return tenant;
        }
    }
    return NULL;
}

static json_t *features(const struct agent *agent)
{
    unsigned has = agent->config.provider->ops->features;
    json_t *list = json_pack("[s]", "elections");

    if (list && (has & PROVIDER_MEMBERS) != 0) {
        (void)json_array_append_new(list, json_string("members"));
    }
    if (list && (has & PROVIDER_CHANNELS) != 0) {
        (void)json_array_append_new(list, json_string("channels"));
    }
    if (list && (has & PROVIDER_STATE) != 0) {
        (void)json_array_append_new(list, json_string("state"));
    }
    return list;
}

/* A promise ends no later than the lease of the provider. */
static span longest_promise(const struct agent *agent)
{
    const struct provider *provider = agent->config.provider;
    span most = agent->config.client_lease;
    span lease = provider->ops->lease ? provider->ops->lease(provider) : most;

    return lease.ns < most.ns ? lease : most;
}

static void greet(struct client *client, int64_t id)
{
    const struct agent *agent = client->agent;
    double lease_ms = (double)longest_promise(agent).ns / 1e6;

    client_reply(client, id,
                 json_pack("{s:i, s:s, s:s, s:s, s:f, s:f, s:I, s:o, s:b}", "version", VERSION,
                           "agent", agent->config.name, "provider",
                           agent->config.provider->ops->scheme, "name", client->tenant->name,
                           "lifetime_ms", lease_ms, "renew_ms", lease_ms / RENEWALS, "now_ns",
                           (json_int_t)clock_now().ns, "features", features(agent), "reads_raw",
                           1));
}

static void say_session(struct tenant *tenant)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)tenant->session);
    client_send(tenant->client, json_pack("{s:s, s:s?}", "event", "session", "session",
                                          tenant->session != 0 ? text : NULL));
}

static void on_session(void *userdata, uint64_t session)
{
    struct tenant *tenant = userdata;

    tenant->session = session;
    if (tenant->client) {
        say_session(tenant);
    }
}

static int attach(struct tenant *tenant, const struct hello *hello, struct baton_error *reterr)
{
    struct agent *agent = tenant->agent;
    const struct provider_process about = {.name = tenant->name,
                                           .metadata = tenant->metadata,
                                           .secret = hello->has_secret ? tenant->secret : NULL,
                                           .session = hello->session,
                                           .on_session = on_session,
                                           .userdata = tenant};

    tenant->has_session_events = agent->config.provider->ops->attach != NULL;
    if (!tenant->has_session_events) { /* an id of its own, by which it may connect again */
        (void)RAND_bytes((unsigned char *)&tenant->session, sizeof(tenant->session));
        tenant->session = tenant->session >> 11 | 1;
    }
    return provider_attach(&tenant->handle, agent->config.provider, &agent->attach_config, &about,
                           reterr);
}

static bool has_room(const struct agent *agent, const struct client *client)
{
    size_t own = 0;

    for (const struct tenant *tenant = agent->tenants; tenant; tenant = tenant->next) {
        own += tenant->peer.uid == client->peer.uid;
    }
    return client_has_room(client, agent->tenant_count, own);
}

static int open_tenant(struct client *client, const struct hello *hello, const json_t *metadata,
                       struct baton_error *reterr)
{
    struct agent *agent = client->agent;
    struct tenant *tenant = calloc(1, sizeof(*tenant));
    int code;

    if (!tenant) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (!has_room(agent, client)) {
        free(tenant);
        return error_set(reterr, BATON_EBUSY,
                         "this agent has as many processes as it may have, or of your user");
    }
    tenant->agent = agent;
    tenant->peer.uid = client->peer.uid;
    tenant->peer.pidfd = tenant->container_fd = -1;
    tenant->heard = clock_now();
    tenant->promised = INSTANT_PAST;
    tenant->has_secret = hello->has_secret;
    memcpy(tenant->secret, hello->secret, sizeof(tenant->secret));
    (void)snprintf(tenant->name, sizeof(tenant->name), "%s", hello->name);
    tenant->metadata = json_is_object(metadata) ? json_text(metadata, JSON_COMPACT) : NULL;
    tenant->token = hello->token[0] ? strdup(hello->token) : NULL;
    if (hello->token[0] && !tenant->token) {
        free(tenant->metadata);
        free(tenant);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    tenant->holds = 1;
    DL_APPEND(agent->tenants, tenant);
    agent->tenant_count++;
    code = attach(tenant, hello, reterr);
    if (code != BATON_OK) {
        tenant->handle = NULL;
        let_go(tenant);
        return code;
    }
    tenant->peer = client->peer;
    client->peer.pidfd = -1;
    watch(tenant);
    client->tenant = tenant;
    tenant->client = client;
    return BATON_OK;
}

static void take_over(struct client *client, struct tenant *tenant)
{
    leave_client(tenant);
    tenant->heard = clock_now();
    tenant->client = client;
    client->tenant = tenant;
}

static void turn_away(struct client *client, int64_t id, int code, const char *text)
{
    client_fail(client, id, code, text);
    local_close(client->local);
}

void tenant_hello(struct client *client, const json_t *message)
{
    const char *verb = json_string_value(json_object_get(message, "do"));
    int64_t id = request_id(message);
    struct baton_error error = {0};
    struct tenant *tenant;
    struct hello hello;
    const char *fault;

    if (strcmp(verb, "hello") != 0) {
        turn_away(client, id, BATON_EPROTO, "the first request must be hello");
        return;
    }
    if (json_integer_value(json_object_get(message, "version")) != VERSION) {
        turn_away(client, id, BATON_EPROTO, "\"version\": this agent speaks version 1");
        return;
    }
    fault = read_hello(&hello, client, message);
    if (fault) {
        turn_away(client, id, BATON_EINVAL, fault);
        return;
    }
    tenant = find(client->agent, client, &hello);
    if (tenant) {
        take_over(client, tenant);
    } else if (open_tenant(client, &hello, json_object_get(message, "metadata"), &error) != 0) {
        turn_away(client, id, error.code, error.message);
        return;
    }
    OPENSSL_cleanse(&hello, sizeof(hello));
    if (json_is_true(json_object_get(message, "reads_raw"))) {
        local_send_raw(client->local);
    }
    greet(client, id);
    if (client->tenant->session != 0) {
        say_session(client->tenant);
    }
}
