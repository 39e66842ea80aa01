/* This process and its guardian: the commands that the guardian sends to the servers after our
 * death, so that no lease of ours has to run out. */
#include "guardian/guardian.h"
#include "guardian/commands.h"
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_warning(void *userdata, const struct baton_error *error)
{
    struct client *client = userdata;

    log_warning(client->logger, "guardian", LOG_STR("problem", error->message));
}

/* Without a guardian everything works, but a crash costs the rest of the lease: so a failure is a
 * warning. */
void redis_guardian_begin(struct client *client)
{
    struct guardian_options options = {.loop = client->loop,
                                       .kills_outliving = client->kills_outliving,
                                       .hang = client->hang,
                                       .alive_ns = client->alive_ns,
                                       .speaks_tls = client->address.is_tls,
                                       .release_slots = COMMANDS_SLOTS_MAX,
                                       .on_warning = on_warning,
                                       .userdata = client};
    struct baton_error error;

    if (!client->wants_guardian) {
        return;
    }
    if (guardian_start(&client->guardian, &options, &error) == BATON_OK) {
        return;
    }
    client->guardian = NULL;
    log_warning(client->logger, "no-guardian", LOG_STR("reason", error.message),
                LOG_STR("lost", "when this process dies, its leases are not released at once but "
                                "run out"));
    options.speaks_tls = false; /* this guardian sends no commands, but kills the victims */
    if (client->address.is_tls && guardian_start(&client->guardian, &options, &error) != BATON_OK) {
        client->guardian = NULL;
    }
}

/* The servers to send to, and the names that their certificates must have. */
struct targets {
    size_t count;
    const char *addresses[COMMANDS_SERVERS_MAX];
    const char *names[COMMANDS_SERVERS_MAX];
    struct redis_host hosts[COMMANDS_SERVERS_MAX];
};

static void add_target(struct targets *targets, const struct client *client, const char *address,
                       const struct redis *redis)
{
    const struct redis_tls *tls = &client->address.tls;
    size_t at = targets->count++;

    redis_where(redis, &targets->hosts[at]);
    targets->addresses[at] = address;
    targets->names[at] = tls->is_unverified ? ""
                         : tls->name[0]     ? tls->name
                                            : targets->hosts[at].host;
}

/* In a cluster all nodes that are in use: the node of an election obeys, the others refuse. Of
 * independent servers all, at the addresses at which they were reached last. */
static void find_targets(struct targets *targets, struct client *client)
{
    const struct redis *nodes[COMMANDS_SERVERS_MAX];
    int count = 0;

    targets->count = 0;
    if (client->cluster) {
        count = redis_cluster_nodes(client->cluster, nodes, COMMANDS_SERVERS_MAX);
        for (int i = 0; i < count; i++) {
            add_target(targets, client, redis_peer_address(nodes[i]), nodes[i]);
        }
        return;
    }
    for (int i = 0; i < client->server_count; i++) {
        struct server *server = &client->servers[i];
        if (redis_is_up(server->commands)) {
            (void)snprintf(server->peer, sizeof(server->peer), "%s",
                           redis_peer_address(server->commands));
        }
        if (server->peer[0] && !server->is_double) {
            add_target(targets, client, server->peer, server->commands);
        }
    }
}

/* Prepares the servers and the commands; the servers know the scripts by now. Several servers have
 * an epoch each, so there the release names no epoch: the id alone suffices, since no process uses
 * it again. */
void redis_guardian_connected(struct client *client)
{
    const char *epoch = client->server_count > 1 ? "0" : "\2";
    char lock[LAYOUT_KEY_MAX];
    char heartbeat[LAYOUT_KEY_MAX];
    const char *release[] = {"EVALSHA", client->scripts[SCRIPT_RELEASE].sha,
                             "4",       lock,
                             heartbeat, "\1:epoch",
                             "\1:wake", client->id,
                             epoch,     NULL};
    const char *leave[] = {"EVALSHA",
                           client->scripts[SCRIPT_LEAVE].sha,
                           "5",
                           "\1:processes",
                           "\1:processes:expiry",
                           "\1:channels",
                           "\1:wake",
                           "\1:slaves",
                           client->id};
    const struct redis_tls *tls = &client->address.tls;
    const struct guardian_tls secured = {.ca = tls->ca,
                                         .certificate = tls->certificate,
                                         .key = tls->key,
                                         .is_unverified = tls->is_unverified};
    struct targets targets;
    char notice[ID_MAX + 16];
    char *greeting = NULL;
    size_t bytes = 0;
    struct baton_error error;

    if (!client->guardian) {
        return;
    }
    find_targets(&targets, client);
    layout_lock_key(client->layout, "\1", lock);
    layout_heartbeat_key(client->layout, "\1", client->id, heartbeat);
    (void)snprintf(notice, sizeof(notice), "released %s ", client->id);
    release[9] = notice;
    struct guardian_commands commands = {
        .addresses = targets.addresses,
        .address_count = targets.count,
        .tls = client->address.is_tls ? &secured : NULL,
        .names = targets.names,
        .release = release,
        .release_count = sizeof(release) / sizeof(release[0]),
        .leave = leave,
        .leave_count = sizeof(leave) / sizeof(leave[0]),
    };
    int r = redis_greeting(&client->address, &greeting, &bytes);
    if (r == BATON_OK) {
        commands.greeting = greeting ? greeting : ""; /* NULL: no AUTH and no SELECT */
        commands.greeting_bytes = bytes;
        r = guardian_set_commands(client->guardian, &commands, &error);
        if (greeting) {
            explicit_bzero(greeting, bytes);
        }
    } else {
        (void)error_set(&error, r, "out of memory");
    }
    free(greeting);
    if (r != BATON_OK) {
        log_warning(client->logger, "guardian", LOG_STR("problem", error.message));
    }
}

void redis_guardian_slot_begin(struct registration *registration)
{
    registration->slot =
        registration->client->guardian
            ? guardian_open_slot(registration->client->guardian, registration->name)
            : GUARDIAN_NO_SLOT;
}

void redis_guardian_slot_end(struct registration *registration)
{
    if (registration->client->guardian) {
        guardian_close_slot(registration->client->guardian, registration->slot);
    }
    registration->slot = GUARDIAN_NO_SLOT;
}

/* The first end of several leases, at which the victims are killed. */
static instant first_end(const struct client *client)
{
    instant end = INSTANT_NEVER;

    for (const struct registration *registration = client->registrations; registration;
         registration = registration->hh.next) {
        if (registration->lease.held) {
            end = instant_min(end, registration->lease.end);
        }
    }
    return end.ns == INSTANT_NEVER.ns ? (instant){0} : end;
}

void redis_guardian_publish(struct registration *registration, const struct lease_update *update)
{
    struct client *client = registration->client;

    if (!client->guardian) {
        return;
    }
    guardian_set_epoch(client->guardian, registration->slot, update->held ? update->epoch : 0);
    if (client->kills_outliving || client->hang.ns > 0 || client->has_victims) {
        guardian_publish(client->guardian, first_end(client));
    }
}

void redis_guardian_set_victims(struct provider *provider, const struct victims *victims)
{
    struct client *client = (struct client *)provider;

    client->has_victims = victims != NULL;
    if (client->guardian) {
        guardian_set_victims(client->guardian, victims);
    }
}

static void on_stopped(void *userdata)
{
    client_release(userdata);
}

void redis_guardian_end(struct client *client)
{
    struct guardian *guardian = client->guardian;

    if (guardian) {
        client->guardian = NULL;
        client->open_handles++;
        guardian_stop(guardian, on_stopped, client);
    }
}
