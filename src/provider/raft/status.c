/* Describes a node for operators and dashboards. */
#include "provider/raft/fencing.h"
#include "provider/raft/metadata.h"
#include "provider/raft/node.h"
#include "provider/raft/raft_provider.h"

static json_t *peer_json(const struct node *node, const struct raft_member *member)
{
    const struct acquaintance *known = acquaintance_of(node, member->id);
    const struct link *link = link_to(node, member->id);
    struct raft_progress progress = {0};
    bool has_progress = raft_get_progress(node->raft, member->id, &progress);
    json_t *peer =
        json_pack("{s:s,s:s,s:I,s:i,s:b,s:b}", "name", member->name, "address", member->address,
                  "weight", (json_int_t)member->weight, "priority", (int)member->priority,
                  "connected", (int)(member->id == node->id || connection_is_up(node, member->id)),
                  "leaving", (int)member->is_leaving);

    if (peer && has_progress) {
        (void)json_object_set_new(peer, "match_index",
                                  json_integer((json_int_t)progress.match_index));
        (void)json_object_set_new(peer, "active", json_boolean(progress.is_active));
        (void)json_object_set_new(peer, "round_trip_us",
                                  json_real((double)progress.round_trip.ns / 1e3));
    }
    if (peer && known && known->settings[0]) {
        (void)json_object_set_new(peer, "settings", json_string(known->settings));
    }
    if (peer && link && link->refusal[0]) {
        (void)json_object_set_new(peer, "refused", json_string(link->refusal));
    }
    return peer;
}

static const char *name_of(const struct node *node, raft_id id)
{
    const struct raft_member *member =
        raft_configuration_find(raft_get_configuration(node->raft), id);
    return member ? member->name : "";
}

static double left_ms(instant until)
{
    span left = instant_since(until, clock_now());
    return left.ns > 0 ? (double)left.ns / 1e6 : 0;
}

json_t *raft_provider_status(struct provider *provider)
{
    struct node *node = (struct node *)provider;
    const struct raft_configuration *members;
    struct raft_status status;
    char group[17], absent[BATON_ERROR_MESSAGE_MAX];
    json_t *peers = json_array();
    json_t *counters = json_object();
    json_t *json;

    if (!node->raft) {
        json_decref(peers);
        json_decref(counters);
        return json_object();
    }
    raft_get_status(node->raft, &status);
    members = raft_get_configuration(node->raft);
    for (size_t i = 0; i < members->count; i++) {
        (void)json_array_append_new(peers, peer_json(node, &members->members[i]));
    }
#define COUNTER_TO_JSON(field, name)                                                               \
    (void)json_object_set_new(counters, (name), json_integer((json_int_t)node->counters.field));
    NODE_COUNTERS(COUNTER_TO_JSON)
#undef COUNTER_TO_JSON
    (void)snprintf(group, sizeof(group), "%016llx", (unsigned long long)node->greeting.group);
    json = json_pack(
        "{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:f,s:f,s:b,s:f,s:I,s:b,s:b,s:b,s:I,s:o,s:o,"
        "s:o}",
        "cluster", node->options.cluster, "group", group, "role", raft_role_name(status.role),
        "term", (json_int_t)status.term, "incarnation", (json_int_t)node->incarnation,
        "first_index", (json_int_t)status.first_index, "last_index", (json_int_t)status.last_index,
        "commit_index", (json_int_t)status.commit_index, "applied_index",
        (json_int_t)status.applied_index, "heir", name_of(node, status.heir), "promised_to",
        name_of(node, status.promised_to), "promise_left_ms", left_ms(status.promised_until),
        "silence_left_ms", left_ms(status.silent_until), "guardian", node->guardian != NULL,
        "hang_ms", (double)node->hang.ns / 1e6, "hang_kills", (json_int_t)node->hang_kills, "joint",
        (int)members->is_joint, "storage_failed", (int)status.storage_failed, "isolated",
        (int)node->is_isolated, "elections_last_hour", (json_int_t)status.elections_last_hour,
        "fence", fencing_status(node), "peers", peers, "counters", counters);
    if (json && muster_lacks_quorum(node, absent, sizeof(absent))) {
        (void)json_object_set_new(json, "no_quorum", json_string(absent));
    }
    return json;
}

void raft_provider_isolate(struct provider *provider, bool on)
{
    struct node *node = (struct node *)provider;

    node->is_isolated = on;
    if (!on) {
        metadata_send_to_all(node); /* they may have changed */
    }
}
