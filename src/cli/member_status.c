/* What a member knows, as JSON for people and programs, and as metrics for Prometheus. */
#include "cli/member_internal.h"

#include "cli/help.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *member_member_json(const struct baton_member *member)
{
    json_t *json = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:i,s:b,s:b,s:b}", "id", member->id, "name",
                             member->name, "address", member->address, "kind",
                             baton_member_kind_name(member->kind), "role",
                             baton_role_name(member->role), "weight", (json_int_t)member->weight,
                             "priority", (int)member->priority, "alive", (int)member->is_alive,
                             "self", (int)member->is_self, "cordoned", (int)member->is_cordoned);
    json_t *metadata = member->metadata ? json_loads(member->metadata, 0, NULL) : NULL;
    if (json && metadata) {
        (void)json_object_set(json, "metadata", metadata);
    }
    json_decref(metadata);
    return json;
}

json_t *member_error_json(int code, const char *text)
{
    return json_pack("{s:b,s:i,s:s}", "ok", 0, "code", code, "error", text);
}

/* The lease of a member that is a quorum by itself has no end. */
static bool is_endless(int64_t left_ns)
{
    return left_ns == INT64_MAX;
}

/* In milliseconds; null: it has no end. */
static json_t *left_json(int64_t left_ns)
{
    return is_endless(left_ns) ? json_null() : json_real((double)left_ns / 1e6);
}

json_t *member_event_json(const struct baton_event *event)
{
    json_t *json = json_pack("{s:s,s:I}", "event", baton_event_name(event->type), "at_ns",
                             (json_int_t)event->at_ns);
    if (!json) {
        return NULL;
    }
    if (event->type == BATON_EVENT_ROLE) {
        (void)json_object_set_new(json, "role", json_string(baton_role_name(event->role)));
    }
    if (event->type == BATON_EVENT_LOST) {
        (void)json_object_set_new(json, "loss", json_string(baton_loss_name(event->loss)));
    }
    if (event->epoch) {
        (void)json_object_set_new(json, "epoch", json_integer((json_int_t)event->epoch));
    }
    if (event->lease_left_ns) {
        (void)json_object_set_new(json, "lease_left_ms", left_json(event->lease_left_ns));
    }
    if (event->count) {
        (void)json_object_set_new(json, "count", json_integer(event->count));
    }
    if (event->member.id[0]) {
        (void)json_object_set_new(json, "member", json_string(event->member.id));
    }
    if (event->error.code) {
        (void)json_object_set_new(json, "error", json_string(event->error.message));
    }
    if (event->text) {
        (void)json_object_set_new(json, "text", json_string(event->text));
    }
    return json;
}

static const char *role_of(const struct participant *member, bool leads)
{
    const char *role = leads ? "leader" : "follower";
    size_t index;
    json_t *one;
    json_array_foreach(member->members, index, one)
    {
        if (json_is_true(json_object_get(one, "self")) && !leads) {
            role = json_string_value(json_object_get(one, "role"));
        }
    }
    return role && (leads || strcmp(role, "leader") != 0) ? role : "follower";
}

json_t *member_status_json(struct participant *member)
{
    struct baton_member leader = {0};
    uint64_t leader_epoch = 0;
    uint64_t epoch = 0;
    bool leads = participant_is_leader(member, &epoch);
    const struct provider_ops *ops = member->provider->ops;
    ops->leader(member->election, &leader, &leader_epoch);
    span left = leads ? participant_lease_left(member) : SPAN_NS(0);
    json_t *json = json_pack(
        "{s:b,s:s,s:s,s:s,s:s,s:s,s:b,s:I,s:o,s:b,s:{s:s,s:s,s:s},s:f,s:I,s:O}", "ok", 1, "version",
        BATON_VERSION_TEXT, "node", member->node, "election", participant_election(member),
        "provider", ops->scheme, "role", role_of(member, leads), "is_leader", (int)leads, "epoch",
        (json_int_t)(leads ? epoch : leader_epoch), "lease_left_ms", left_json(left.ns), "cordoned",
        (int)member->is_cordoned, "leader", "id", leader.id, "name", leader.name, "address",
        leader.address, "uptime_s", (double)instant_since(clock_now(), member->started).ns / 1e9,
        "elections_won", (json_int_t)member->elections_won, "members", member->members);
    if (json && member->http) {
        (void)json_object_set_new(json, "http_port", json_integer(http_server_port(member->http)));
    }
    if (json && ops->status) {
        (void)json_object_set_new(json, ops->scheme, ops->status(member->provider));
    }
    return json;
}

struct refreshing {
    struct participant *member;
    void (*done)(void *userdata, int code);
    void *userdata;
};

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct refreshing *refreshing = userdata;
    json_t *list = code ? NULL : json_array();
    for (size_t i = 0; list && i < count; i++) {
        (void)json_array_append_new(list, member_member_json(&members[i]));
    }
    if (list) {
        json_decref(refreshing->member->members);
        refreshing->member->members = list;
    }
    refreshing->done(refreshing->userdata, code);
    free(refreshing);
}

int member_refresh(struct participant *member, void (*done)(void *userdata, int code),
                   void *userdata, struct baton_error *reterr)
{
    const struct provider_ops *ops = member->provider->ops;
    if (!(ops->features & PROVIDER_MEMBERS)) {
        done(userdata, 0);
        return 0;
    }
    struct refreshing *refreshing = malloc(sizeof(*refreshing));
    if (!refreshing) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *refreshing = (struct refreshing){member, done, userdata};
    int code = ops->members(member->election, on_members, refreshing, reterr);
    if (code) {
        free(refreshing);
    }
    return code;
}

static void metric(struct buffer *ret, const char *name, const char *type, const char *help,
                   double value)
{
    buffer_printf(ret, "# HELP baton_%s %s\n# TYPE baton_%s %s\nbaton_%s ", name, help, name, type,
                  name);
    buffer_printf(ret, isinf(value) ? "+Inf\n" : "%.17g\n", value);
}

void member_metrics(struct participant *member, struct buffer *ret)
{
    struct baton_member leader = {0};
    uint64_t epoch = 0;
    bool leads = participant_is_leader(member, NULL);
    span left = leads ? participant_lease_left(member) : SPAN_NS(0);
    member->provider->ops->leader(member->election, &leader, &epoch);
    metric(ret, "is_leader", "gauge", "1 while this node leads.", leads);
    metric(ret, "has_leader", "gauge", "1 while this node knows a leader.", leader.id[0] != '\0');
    metric(ret, "epoch", "gauge", "Epoch of the latest leadership that this node knows.",
           (double)epoch);
    metric(ret, "lease_left_seconds", "gauge", "Time that is left of this node's lease.",
           is_endless(left.ns) ? INFINITY : (double)left.ns / 1e9);
    metric(ret, "cordoned", "gauge", "1 while this node is kept from leading.",
           member->is_cordoned);
    metric(ret, "members", "gauge", "Members of the group, as this node knows them.",
           (double)json_array_size(member->members));
    metric(ret, "elections_won_total", "counter", "Leaderships that this node acquired.",
           (double)member->elections_won);
    metric(ret, "leaderships_lost_total", "counter", "Leaderships that this node lost.",
           (double)member->leaderships_lost);
    metric(ret, "leader_changes_total", "counter", "Changes of the leader that this node saw.",
           (double)member->leader_changes);
    metric(ret, "events_total", "counter", "Events of the election.", (double)member->events);
    metric(ret, "uptime_seconds", "gauge", "Time since this process took part.",
           (double)instant_since(clock_now(), member->started).ns / 1e9);
}
