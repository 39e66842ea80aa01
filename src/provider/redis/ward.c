/* This process as the ward of its guardian: what that one says to the server when we are dead, so
 * that no lease of ours has to run out. */
#include "guardian/guardian.h"
#include "guardian/words.h"
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
void redis_ward_begin(struct client *client)
{
    struct guardian_options options = {.loop = client->loop,
                                       .kills_outliving = client->kills_outliving,
                                       .speaks_tls = client->address.is_tls,
                                       .words_slots = WORDS_SLOTS_MAX,
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
    options.speaks_tls = false; /* it says nothing then, but kills whoever is to be killed */
    if (client->address.is_tls && guardian_start(&client->guardian, &options, &error) != BATON_OK) {
        client->guardian = NULL;
    }
}

/* Who is to be told, and by which names they prove who they are. */
struct hearers {
    size_t count;
    const char *addresses[WORDS_SERVERS_MAX];
    const char *names[WORDS_SERVERS_MAX];
    struct redis_host hosts[WORDS_SERVERS_MAX];
};

static void add_hearer(struct hearers *hearers, const struct client *client, const char *address,
                       const struct redis *redis)
{
    const struct redis_tls *tls = &client->address.tls;
    size_t at = hearers->count++;

    redis_where(redis, &hearers->hosts[at]);
    hearers->addresses[at] = address;
    hearers->names[at] = tls->is_unverified ? ""
                         : tls->name[0]     ? tls->name
                                            : hearers->hosts[at].host;
}

/* In a cluster all nodes that are in use: that of an election has it done, the others refuse. Of
 * independent servers all, as each was reached last. */
static void find_hearers(struct hearers *hearers, struct client *client)
{
    const struct redis *nodes[WORDS_SERVERS_MAX];
    int count = 0;

    hearers->count = 0;
    if (client->cluster) {
        count = redis_cluster_nodes(client->cluster, nodes, WORDS_SERVERS_MAX);
        for (int i = 0; i < count; i++) {
            add_hearer(hearers, client, redis_peer_address(nodes[i]), nodes[i]);
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
            add_hearer(hearers, client, server->peer, server->commands);
        }
    }
}

/* To whom, and in which words: the scripts are known to the server by now. Of several servers each
 * has an epoch of its own, which was at most raised to the one that counts: there it is whichever
 * it is, which can be no other lock, since nobody asks under this id again. */
void redis_ward_connected(struct client *client)
{
    const char *epoch = client->server_count > 1 ? "0" : "\2";
    char lock[LAYOUT_KEY_MAX];
    char heartbeat[LAYOUT_KEY_MAX];
    const char *lease[] = {"EVALSHA", client->scripts[SCRIPT_RELEASE].sha,
                           "4",       lock,
                           heartbeat, "\1:epoch",
                           "\1:wake", client->id,
                           epoch,     NULL};
    const char *seat[] = {"EVALSHA",
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
    struct hearers hearers;
    char notice[ID_MAX + 16];
    char *greeting = NULL;
    size_t bytes = 0;
    struct baton_error error;

    if (!client->guardian) {
        return;
    }
    find_hearers(&hearers, client);
    layout_lock_key(client->layout, "\1", lock);
    layout_heartbeat_key(client->layout, "\1", client->id, heartbeat);
    (void)snprintf(notice, sizeof(notice), "released %s ", client->id);
    lease[9] = notice;
    struct guardian_words words = {
        .addresses = hearers.addresses,
        .address_count = hearers.count,
        .tls = client->address.is_tls ? &secured : NULL,
        .names = hearers.names,
        .lease = lease,
        .lease_count = sizeof(lease) / sizeof(lease[0]),
        .seat = seat,
        .seat_count = sizeof(seat) / sizeof(seat[0]),
    };
    int r = redis_greeting(&client->address, &greeting, &bytes);
    if (r == BATON_OK) {
        words.greeting = greeting ? greeting : ""; /* there may be nothing to say */
        words.greeting_bytes = bytes;
        r = guardian_set_words(client->guardian, &words, &error);
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

void redis_ward_seat_begin(struct seat *seat)
{
    seat->slot = seat->client->guardian ? guardian_open_slot(seat->client->guardian, seat->name)
                                        : GUARDIAN_NO_SLOT;
}

void redis_ward_seat_end(struct seat *seat)
{
    if (seat->client->guardian) {
        guardian_close_slot(seat->client->guardian, seat->slot);
    }
    seat->slot = GUARDIAN_NO_SLOT;
}

/* Who is to be killed when the first of several leases is over: only asked for with one. */
static instant first_end(const struct client *client)
{
    instant end = INSTANT_NEVER;

    for (const struct seat *seat = client->seats; seat; seat = seat->hh.next) {
        if (seat->lease.held) {
            end = instant_min(end, seat->lease.end);
        }
    }
    return end.ns == INSTANT_NEVER.ns ? (instant){0} : end;
}

void redis_ward_publish(struct seat *seat, const struct lease_update *update)
{
    struct client *client = seat->client;

    if (!client->guardian) {
        return;
    }
    guardian_set_epoch(client->guardian, seat->slot, update->held ? update->epoch : 0);
    if (client->kills_outliving || client->has_victims) {
        guardian_publish(client->guardian, first_end(client));
    }
}

void redis_ward_set_victims(struct provider *provider, const struct victims *victims)
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

void redis_ward_end(struct client *client)
{
    struct guardian *guardian = client->guardian;

    if (guardian) {
        client->guardian = NULL;
        client->open_handles++;
        guardian_stop(guardian, on_stopped, client);
    }
}
