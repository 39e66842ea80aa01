/* The provider's status for operators: its current server, its settings and its faults. */
#include "guardian/guardian.h"
#include "provider/redis/client.h"

#include <jansson.h>

/* Another member's max-lease that differs from ours; 0: none known. */
static long long other_max_lease_ms(const struct client *client)
{
    long long ours = client->max_lease.ns / 1000000;

    for (const struct registration *registration = client->registrations; registration;
         registration = registration->hh.next) {
        for (const struct entry *entry = registration->entries; entry; entry = entry->next) {
            if (entry->max_lease_ms > 0 && entry->max_lease_ms != ours) {
                return entry->max_lease_ms;
            }
        }
    }
    return 0;
}

json_t *redis_provider_status(struct provider *provider)
{
    struct client *client = (struct client *)provider;
    const struct redis_identity *server = redis_identity_of(client->commands);
    bool is_up = redis_is_up(client->commands);
    long long other_ms = other_max_lease_ms(client);
    json_t *json = json_pack(
        "{s:b,s:s,s:s,s:s,s:b,s:s,s:f,s:I,s:I,s:b,s:f}", "connected", (int)client_is_up(client),
        "server", is_up ? redis_peer_address(client->commands) : "", "server_version",
        is_up ? server->version : "", "history", is_up ? server->history : "", "cluster",
        (int)(is_up && server->is_cluster), "layout", layout_name(client->layout), "lease_ms",
        (double)client->settings.lease.ns / 1e6, "elections",
        (json_int_t)HASH_COUNT(client->registrations), "guardian_pid",
        (json_int_t)(client->guardian ? guardian_pid(client->guardian) : 0), "guardian",
        client->guardian != NULL, "hang_ms", (double)client->hang.ns / 1e6);

    if (json && client->lifetimes[0]) {
        (void)json_object_set_new(json, "entries_end_by", json_string(client->lifetimes));
    }
    if (json && other_ms > 0) {
        (void)json_object_set_new(json, "other_max_lease_ms", json_integer(other_ms));
    }
    if (json && client->waits.replicas > 0) {
        (void)json_object_set_new(json, "wait_replicas", json_integer(client->waits.replicas));
    }
    for (int i = 0; json && i < client->server_count; i++) {
        if (client->servers[i].trouble[0]) {
            (void)json_object_set_new(json, "trouble", json_string(client->servers[i].trouble));
        }
    }
    return json;
}
