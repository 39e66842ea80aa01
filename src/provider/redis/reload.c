/* A new password, and TLS files that are read again, for a client that goes on.
 *
 *   reload ─▶ files right? ─▶ AUTH on each connection that is up ─▶ all accept it ─▶ adopt
 *                                                               └▶ one refuses it: nothing changes
 *
 * The connections stay open in any case, so no lease is at risk: a server accepts AUTH, or refuses
 * it and leaves the connection as it was. The new password is then that of the next connections and
 * of the guardian. */
#include "provider/redis/client.h"

#include <stdlib.h>
#include <string.h>

struct reload {
    struct client *client;
    struct redis_address address;
    int waiting;              /* servers that have not answered, and one for the beginning */
    struct baton_error error; /* of the first that refused */
    provider_done_cb done;
    void *userdata;
};

static bool is_same_host(const struct redis_host *left, const struct redis_host *right)
{
    return strcmp(left->host, right->host) == 0 && left->port == right->port;
}

/* Whether only passwords and files differ: another user may lack permissions, and another server
 * has other leases. */
static bool is_same_place(const struct redis_address *left, const struct redis_address *right)
{
    bool is_same = strcmp(left->host, right->host) == 0 && left->port == right->port &&
                   strcmp(left->path, right->path) == 0 && left->database == right->database &&
                   strcmp(left->user, right->user) == 0 && left->is_tls == right->is_tls &&
                   strcmp(left->service, right->service) == 0 &&
                   strcmp(left->sentinel_user, right->sentinel_user) == 0 &&
                   left->sentinel_count == right->sentinel_count &&
                   left->server_count == right->server_count;

    for (int i = 0; is_same && i < left->sentinel_count; i++) {
        is_same = is_same_host(&left->sentinels[i], &right->sentinels[i]);
    }
    for (int i = 0; is_same && i < left->server_count; i++) {
        is_same = is_same_host(&left->servers[i], &right->servers[i]);
    }
    return is_same;
}

static int take_address(struct redis_address *ret, const struct client *client, const char *url,
                        struct baton_error *reterr)
{
    int r = redis_address_parse(ret, url, reterr);

    if (r == BATON_OK && !is_same_place(ret, &client->address)) {
        r = error_set(reterr, BATON_EINVAL,
                      "Redis URL: names another server, database or user than at the start; only "
                      "its passwords are read again: restart this process");
    }
    if (r == BATON_OK) {
        ret->tls = client->address.tls; /* the names of the files; their content is read again */
        r = redis_check_files(ret, reterr);
    }
    return r;
}

static void adopt(struct client *client, const struct redis_address *address)
{
    struct redis_address *ours = &client->address;
    bool is_new = strcmp(ours->password, address->password) != 0 ||
                  strcmp(ours->sentinel_password, address->sentinel_password) != 0;

    memcpy(ours->password, address->password, sizeof(ours->password));
    memcpy(ours->sentinel_password, address->sentinel_password, sizeof(ours->sentinel_password));
    for (int i = 0; i < client->server_count; i++) { /* the files were right a moment ago */
        (void)redis_renew(client->servers[i].commands, ours, NULL);
        (void)redis_renew(client->servers[i].notices, ours, NULL);
    }
    if (client->sentinel) {
        sentinel_renew(client->sentinel, ours);
    }
    if (client->cluster) {
        redis_cluster_renew(client->cluster);
    }
    if (is_new && client_is_up(client)) {
        redis_guardian_connected(client); /* else when the client is up again */
    }
    if (is_new) {
        log_notice(client->logger, "redis-password",
                   LOG_STR("text", "the password that was read again is used from now on"));
    }
}

static void answered(struct reload *reload)
{
    struct client *client = reload->client;
    int code = client->is_closing ? BATON_ECANCELED : reload->error.code;

    if (--reload->waiting > 0) {
        return;
    }
    client->is_reloading = false;
    if (code == BATON_OK) {
        adopt(client, &reload->address);
    }
    reload->done(reload->userdata, code, code == BATON_OK ? NULL : &reload->error);
    explicit_bzero(&reload->address, sizeof(reload->address));
    free(reload);
}

/* No reply: the connection ended, and the next one shows whether the password is right. */
static void on_auth(void *userdata, uint64_t number, const redisReply *reply, instant sent)
{
    struct reload *reload = userdata;
    struct redis_host host;
    (void)sent;

    if (reply && reply->type == REDIS_REPLY_ERROR && reload->error.code == BATON_OK) {
        (void)redis_fault_error(reply, &reload->error);
        redis_where(reload->client->servers[number].commands, &host);
        (void)error_wrap(&reload->error, "the new password at Redis %.120s:%d", host.host,
                         host.port);
    }
    answered(reload);
}

static void ask_servers(struct reload *reload)
{
    const struct redis_address *address = &reload->address;
    const char *arguments[] = {"AUTH", address->user[0] ? address->user : address->password,
                               address->password};

    for (int i = 0; i < reload->client->server_count; i++) {
        reload->waiting++;
        if (redis_command(reload->client->servers[i].commands, address->user[0] ? 3 : 2, arguments,
                          NULL, on_auth, reload, (uint64_t)i) != BATON_OK) {
            reload->waiting--; /* not up: as without a reply */
        }
    }
}

int redis_provider_reload(struct provider *provider, const char *url, provider_done_cb done,
                          void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct reload *reload;
    int r;

    if (client->is_closing || client->is_reloading) {
        return error_set(reterr, client->is_closing ? BATON_ECLOSED : BATON_EBUSY,
                         client->is_closing ? "Redis: closing" : "Redis: a reload is under way");
    }
    reload = calloc(1, sizeof(*reload));
    if (!reload) {
        return error_set(reterr, BATON_ENOMEM, "Redis: out of memory");
    }
    r = take_address(&reload->address, client, url, reterr);
    if (r != BATON_OK) {
        explicit_bzero(&reload->address, sizeof(reload->address));
        free(reload);
        return r;
    }
    reload->client = client;
    reload->done = done;
    reload->userdata = userdata;
    reload->waiting = 1;
    client->is_reloading = true;
    if (reload->address.password[0] &&
        strcmp(reload->address.password, client->address.password) != 0) {
        ask_servers(reload);
    }
    answered(reload);
    return BATON_OK;
}
