#include "member/status.h"

#include "base/json_load.h"
#include "base/version.h"
#include "member/deaths.h"
#include "member/members.h"
#include "web/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status {
    struct member *member;
    struct election *election;
    struct observer observer;
    char node[BATON_NAME_MAX];
    instant started;
    json_t *members; /* as last listed */
    int http_port;   /* 0: none */
    uint64_t elections_won;
    uint64_t leaderships_lost;
    uint64_t leader_changes;
    uint64_t events;
};

static json_t *member_json(const struct baton_member *member)
{
    json_t *json = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:i,s:b,s:b,s:b}", "id", member->id, "name",
                             member->name, "address", member->address, "kind",
                             baton_member_kind_name(member->kind), "role",
                             baton_role_name(member->role), "weight", (json_int_t)member->weight,
                             "priority", (int)member->priority, "alive", (int)member->is_alive,
                             "self", (int)member->is_self, "cordoned", (int)member->is_cordoned);
    json_t *metadata = member->metadata ? json_load_text(member->metadata, 0, NULL) : NULL;
    if (json && metadata) {
        (void)json_object_set(json, "metadata", metadata);
    }
    json_decref(metadata);
    return json;
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

json_t *status_event_json(const struct baton_event *event)
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

static const char *role_of(const struct status *status, bool leads)
{
    const char *role = leads ? "leader" : "follower";
    size_t index;
    json_t *one;
    json_array_foreach(status->members, index, one)
    {
        if (json_is_true(json_object_get(one, "self")) && !leads) {
            role = json_string_value(json_object_get(one, "role"));
        }
    }
    return role && (leads || strcmp(role, "leader") != 0) ? role : "follower";
}

/* `more`: the provider's own status. */
static json_t *deaths_json(const json_t *more)
{
    const char *provider = json_string_value(json_object_get(more, "provider"));
    struct deaths deaths = provider && strcmp(provider, "agent") == 0
                               ? deaths_by_agent()
                               : deaths_here(json_is_true(json_object_get(more, "guardian")),
                                             json_number_value(json_object_get(more, "hang_ms")));

    return json_pack("{s:s,s:s}", "at_once", deaths.at_once, "by_lease", deaths.by_lease);
}

json_t *status_json(struct status *status)
{
    struct baton_member leader;
    uint64_t leader_epoch;
    uint64_t epoch = 0;
    bool leads = election_is_leader(status->election, &epoch);
    span left = leads ? election_lease_left(status->election) : SPAN_NS(0);
    const char *scheme = member_scheme(status->member);
    election_leader(status->election, &leader, &leader_epoch);
    json_t *json = json_pack(
        "{s:b,s:s,s:s,s:s,s:s,s:s,s:b,s:I,s:o,s:b,s:{s:s,s:s,s:s},s:f,s:I,s:O}", "ok", 1, "version",
        BATON_VERSION_TEXT, "node", status->node, "election", election_name(status->election),
        "provider", scheme, "role", role_of(status, leads), "is_leader", (int)leads, "epoch",
        (json_int_t)(leads ? epoch : leader_epoch), "lease_left_ms", left_json(left.ns), "cordoned",
        (int)election_is_cordoned(status->election), "leader", "id", leader.id, "name", leader.name,
        "address", leader.address, "uptime_s",
        (double)instant_since(clock_now(), status->started).ns / 1e9, "elections_won",
        (json_int_t)status->elections_won, "members", status->members);
    json_t *more = json ? member_provider_status(status->member) : NULL;
    if (json) {
        (void)json_object_set_new(json, "deaths", deaths_json(more));
    }
    if (json && status->http_port) {
        (void)json_object_set_new(json, "http_port", json_integer(status->http_port));
    }
    if (more) {
        (void)json_object_set_new(json, scheme, more);
    }
    return json;
}

struct refreshing {
    struct status *status;
    void (*done)(void *userdata, int code);
    void *userdata;
};

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct refreshing *refreshing = userdata;
    json_t *list = code ? NULL : json_array();
    for (size_t i = 0; list && i < count; i++) {
        (void)json_array_append_new(list, member_json(&members[i]));
    }
    if (list) {
        json_decref(refreshing->status->members);
        refreshing->status->members = list;
    }
    refreshing->done(refreshing->userdata, code);
    free(refreshing);
}

int status_refresh(struct status *status, void (*done)(void *userdata, int code), void *userdata,
                   struct baton_error *reterr)
{
    if (!member_has(status->member, PROVIDER_MEMBERS)) {
        done(userdata, 0);
        return 0;
    }
    struct refreshing *refreshing = malloc(sizeof(*refreshing));
    if (!refreshing) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *refreshing = (struct refreshing){status, done, userdata};
    int code = members_list(status->election, on_members, refreshing, reterr);
    if (code) {
        free(refreshing);
    }
    return code;
}

/* Only of a provider that can fence, where that is on. */
static void fence_metrics(const struct status *status, struct buffer *ret)
{
    json_t *more = member_provider_status(status->member);
    const json_t *counters = json_object_get(more, "counters");

    if (json_is_object(json_object_get(more, "fence"))) {
        exposition_single(ret, "baton_fences_total", "counter",
                          "Fence commands that this node has begun.",
                          json_number_value(json_object_get(counters, "fences")));
        exposition_single(ret, "baton_fences_failed_total", "counter",
                          "Fence commands that proved nothing.",
                          json_number_value(json_object_get(counters, "fences_failed")));
    }
    json_decref(more);
}

void status_metrics(const struct status *status, struct buffer *ret)
{
    struct baton_member leader;
    uint64_t epoch;
    bool leads = election_is_leader(status->election, NULL);
    span left = leads ? election_lease_left(status->election) : SPAN_NS(0);
    election_leader(status->election, &leader, &epoch);
    exposition_single(ret, "baton_is_leader", "gauge", "1 while this node leads.", leads);
    exposition_single(ret, "baton_has_leader", "gauge", "1 while this node knows a leader.",
                      leader.id[0] != '\0');
    exposition_single(ret, "baton_epoch", "gauge",
                      "Epoch of the latest leadership that this node knows.", (double)epoch);
    exposition_single(ret, "baton_lease_left_seconds", "gauge",
                      "Time that is left of this node's lease.",
                      is_endless(left.ns) ? INFINITY : (double)left.ns / 1e9);
    exposition_single(ret, "baton_cordoned", "gauge", "1 while this node is kept from leading.",
                      election_is_cordoned(status->election));
    exposition_single(ret, "baton_members", "gauge",
                      "Members of the group, as this node knows them.",
                      (double)json_array_size(status->members));
    exposition_single(ret, "baton_elections_won_total", "counter",
                      "Leaderships that this node acquired.", (double)status->elections_won);
    exposition_single(ret, "baton_leaderships_lost_total", "counter",
                      "Leaderships that this node lost.", (double)status->leaderships_lost);
    exposition_single(ret, "baton_leader_changes_total", "counter",
                      "Changes of the leader that this node saw.", (double)status->leader_changes);
    exposition_single(ret, "baton_events_total", "counter", "Events of the election.",
                      (double)status->events);
    exposition_single(ret, "baton_uptime_seconds", "gauge", "Time since this process took part.",
                      (double)instant_since(clock_now(), status->started).ns / 1e9);
    fence_metrics(status, ret);
}

/* ---- Its life -------------------------------------------------------------------------------- */

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct status *status = OBSERVER_OF(struct status, observer);
    status->events++;
    status->elections_won += event->type == BATON_EVENT_ACQUIRED;
    status->leaderships_lost += event->type == BATON_EVENT_LOST;
    status->leader_changes += event->type == BATON_EVENT_LEADER;
}

struct status *status_new(struct member *member, struct election *election, const char *node)
{
    struct status *status = calloc(1, sizeof(*status));
    if (!status || !(status->members = json_array())) {
        free(status);
        return NULL;
    }
    status->member = member;
    status->election = election;
    status->started = clock_now();
    (void)snprintf(status->node, sizeof(status->node), "%s", node);
    status->observer.on_event = on_event;
    election_observe(election, &status->observer);
    return status;
}

void status_free(struct status *status)
{
    if (status) {
        json_decref(status->members);
        free(status);
    }
}

const char *status_node(const struct status *status)
{
    return status->node;
}

json_t *status_members(const struct status *status)
{
    return status->members;
}

void status_set_http_port(struct status *status, int port)
{
    status->http_port = port;
}

const struct election *status_election(const struct status *status)
{
    return status->election;
}
