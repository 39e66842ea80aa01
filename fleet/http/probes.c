/* How this process is: for people, for load balancers, and for what restarts it. */
#include "fleet/http/events.h"
#include "fleet/http/handlers.h"

#include "base/json_read.h"
#include "member/handover.h"
#include "member/members.h"

#include <math.h>
#include <string.h>

enum { PASS_WITHIN_S = 20 };

void health_get(struct call *call)
{
    call_json(call, 200, json_pack("{s:b}", "ok", 1), 0);
}

void ready_get(struct call *call)
{
    bool is_ready = call->http->has_begun && !call->http->is_closing;

    call_json(call, is_ready ? 200 : 503, json_pack("{s:b}", "ready", (int)is_ready), 0);
}

static json_t *leader_json(const struct fleet_http *http, bool *ret_leads)
{
    const struct election *election = master_election(http->parts.master);
    struct baton_member leader;
    uint64_t epoch;

    election_leader(election, &leader, &epoch);
    *ret_leads = master_leads(http->parts.master, NULL);
    return json_pack("{s:b, s:s, s:I}", "isLeader", (int)*ret_leads, "leader", leader.name, "epoch",
                     (json_int_t)epoch);
}

/* 200 only at the process that leads. */
void leader_get(struct call *call)
{
    bool leads;
    json_t *json = leader_json(call->http, &leads);

    call_json(call, leads ? 200 : 503, json, 0);
}

/* ---- Status ---------------------------------------------------------------------------------- */

static json_t *counts_json(const struct fleet_state *state)
{
    json_t *json = json_object();

    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        (void)json_object_set_new(
            json, fleet_kind_plural((enum fleet_kind)kind),
            json_integer((json_int_t)fleet_state_count(state, (enum fleet_kind)kind)));
    }
    return json;
}

static json_t *workers_json(const struct fleet_http *http)
{
    const struct fleet_worker *worker = NULL;
    size_t total = 0, online = 0, in_sync = 0, cordoned = 0, draining = 0;

    while ((worker = fleet_state_next_worker(http->parts.state, worker)) != NULL) {
        const struct worker_live *live = worker_table_find(http->parts.table, worker->id);
        total++;
        online += live != NULL && live->is_online;
        in_sync += live != NULL && live->is_online && live->is_in_sync;
        cordoned += worker->is_cordoned;
        draining += worker->is_draining;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "total", (json_int_t)total, "online",
                     (json_int_t)online, "inSync", (json_int_t)in_sync, "cordoned",
                     (json_int_t)cordoned, "draining", (json_int_t)draining, "ownedHere",
                     (json_int_t)owners_count(http->parts.owners));
}

static json_t *foreign_json(const struct fleet_state *state)
{
    const struct fleet_foreign *foreign = NULL;
    json_t *list = json_array();

    while ((foreign = fleet_state_next_foreign(state, foreign)) != NULL &&
           json_array_size(list) < LIST_MAX) {
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s}", "key", foreign->key, "reason", foreign->reason));
    }
    return list;
}

void status_get(struct call *call)
{
    const struct fleet_http *http = call->http;
    const struct fleet_state *state = http->parts.state;
    const struct election *election = master_election(http->parts.master);
    span left = election_lease_left(election);
    bool leads;
    json_t *leader = leader_json(http, &leads);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:b, s:f, s:o, s:o, s:o, s:I, s:I, s:o}", "fleet",
                  fleet_state_name(state), "process", http->parts.process, "version",
                  http->parts.version, "ready", (int)fleet_state_is_ready(state), "uptimeS",
                  (double)instant_since(clock_now(), http->started).ns / 1e9, "leader", leader,
                  "objects", counts_json(state), "workers", workers_json(http), "unplaced",
                  (json_int_t)fleet_state_unplaced_count(state), "followers",
                  (json_int_t)events_followers(http->events), "foreign", foreign_json(state));

    if (json != NULL && leads && left.ns != INT64_MAX) {
        (void)json_object_set_new(json, "leaseLeftMs", json_real((double)left.ns / 1e6));
    }
    call_json(call, 200, json, 0);
}

/* ---- Passing ----------------------------------------------------------------------------------
 */

static void on_passed(void *userdata, int code, const struct baton_error *error)
{
    struct call *call = userdata;

    if (code != BATON_OK) {
        call_fail_write(call, code, error, false);
    } else {
        call_nothing(call);
    }
}

/* Only the process that leads can hand over. */
void leader_pass(struct call *call)
{
    struct election *election = master_election(call->http->parts.master);
    struct handover_request request = {.kind = HANDOVER_RESIGN,
                                       .needs_heir = true,
                                       .deadline = instant_add(clock_now(), SPAN_S(PASS_WITHIN_S)),
                                       .done = on_passed,
                                       .userdata = call};
    struct baton_member leader;
    struct baton_error error;
    uint64_t epoch;

    if (!call_body(call)) {
        return;
    }
    if (json_read_text(call->body, "", "to", false, BATON_NAME_MAX - 1, &request.to, &error)) {
        call_fail(call, &error);
        return;
    }
    election_leader(election, &leader, &epoch);
    if (!master_leads(call->http->parts.master, NULL)) {
        call_refuse(call, 409, NULL, "this process does not lead; \"%s\" does: ask that one",
                    leader.name);
    } else if (handover_begin(election, &request, &error) != BATON_OK) {
        call_fail(call, &error);
    }
}
