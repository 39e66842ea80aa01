/* Elections: what clients ask for, and the provider's events. */
#include "agent/agent_int.h"

#include "base/json_load.h"
#include "base/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The end of a lease ---------------------------------------------------------------------- */

instant part_end(const struct part *part)
{
    instant now = clock_now(); /* read first: the end is rather too early than too late */
    span left = lease_cell_remaining(part->cell);
    instant end = left.ns == INT64_MAX ? INSTANT_NEVER : instant_add(now, left);

    return left.ns > 0 ? end : INSTANT_PAST;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static double left_ms(instant end)
{
    int64_t left_ns = instant_since(end, clock_now()).ns;

    return left_ns > 0 ? (double)left_ns / 1e6 : 0;
}

static void tell(const struct part *part, const char *event, json_t *more)
{
    struct client *client = part->tenant->client;
    json_t *message = json_pack("{s:s, s:s}", "event", event, "election", part->name);

    if (message && more && json_object_update(message, more) != 0) {
        json_decref(message);
        message = NULL;
    }
    json_decref(more);
    client_send(client, message);
}

/* Not before the promise counts it. */
static void tell_acquired(struct part *part, uint64_t epoch)
{
    instant end;

    part->epoch = part->held = epoch;
    end = tenant_promise(part->tenant);
    tell(part, "leadership-acquired",
         json_pack("{s:I, s:I, s:f}", "epoch", (json_int_t)epoch, "end_ns",
                   (json_int_t)(end.ns > 0 ? end.ns : 0), "left_ms", left_ms(end)));
}

static void tell_lost(struct part *part, uint64_t epoch, const char *reason)
{
    if (part->held == epoch) {
        part->epoch = part->held = 0;
        part->is_asked = false;
    }
    tell(part, "leadership-lost",
         json_pack("{s:I, s:s}", "epoch", (json_int_t)epoch, "reason", reason));
}

static void tell_drain(struct part *part)
{
    part->is_asked = true;
    tell(part, "drain", json_pack("{s:f}", "left_ms", left_ms(part_end(part))));
}

static json_t *error_json(const struct baton_error *error)
{
    return json_pack("{s:s, s:s}", "code", local_code_name(error->code), "error", error->message);
}

/* Of a failure that lasts. Others need no words, or the provider reports the error. */
static void tell_failed(struct part *part, const struct baton_event *event)
{
    json_t *more = event->lease_left_ns > 0 ? error_json(&event->error) : NULL;

    if (more) {
        (void)json_object_set_new(more, "left_ms", json_real((double)event->lease_left_ns / 1e6));
        tell(part, "election-failed", more);
    }
}

static void on_event(void *userdata, const struct baton_event *event)
{
    struct part *part = userdata;

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        tell_acquired(part, event->epoch);
        break;
    case BATON_EVENT_LOST:
        tell_lost(part, event->epoch, baton_loss_name(event->loss));
        break;
    case BATON_EVENT_DRAIN:
        tell_drain(part);
        break;
    case BATON_EVENT_LEADER:
        tell(part, "leader-changed",
             json_pack("{s:s?, s:I}", "leader", event->member.id[0] ? event->member.name : NULL,
                       "epoch", (json_int_t)event->epoch));
        break;
    case BATON_EVENT_ELECTION_FAILED:
        tell_failed(part, event);
        break;
    case BATON_EVENT_ERROR:
        tell(part, "error", error_json(&event->error));
        break;
    case BATON_EVENT_STOPPED:
        tell(part, "stopped", NULL);
        part_free(part);
        break;
    default:
        break;
    }
}

/* ---- Taking part ----------------------------------------------------------------------------- */

static struct part *part_new(struct tenant *tenant, const char *name)
{
    struct part *part = calloc(1, sizeof(*part));

    if (!part || !(part->cell = lease_cell_new())) {
        free(part);
        return NULL;
    }
    part->tenant = tenant;
    memcpy(part->name, name, strlen(name) + 1);
    HASH_ADD_STR(tenant->parts, name, part);
    if (!part->hh.tbl) {
        lease_cell_free(part->cell);
        free(part);
        return NULL;
    }
    return part;
}

void part_free(struct part *part)
{
    HASH_DEL(part->tenant->parts, part);
    lease_cell_free(part->cell);
    free(part);
}

/* NULL, and the client was refused: the process takes no part in it. */
static struct part *part_of(struct client *client, const json_t *message)
{
    const char *name = request_text(client, message, "election");
    struct part *part = NULL;

    if (name) {
        HASH_FIND_STR(client->tenant->parts, name, part);
        if (!part || !part->election || part->is_leaving) {
            client_fail(client, request_id(message), BATON_ENOENT,
                        "this process takes no part in the election: campaign first");
            part = NULL;
        }
    }
    return part;
}

/* False: the client was refused. */
static bool is_allowed(struct client *client, const json_t *message, const char *election)
{
    const struct agent_config *config = &client->agent->config;
    char text[BATON_NAME_MAX + 96];

    if (access_allows(config->access, election, client->local, &client->peer)) {
        return true;
    }
    (void)snprintf(text, sizeof(text),
                   "election \"%.*s\": user %u may not: --allow of the agent says who",
                   BATON_NAME_MAX, election, (unsigned)client->peer.uid);
    log_warning(config->logger, "not-allowed", LOG_STR("election", election),
                LOG_I64("uid", client->peer.uid), LOG_I64("pid", client->peer.pid));
    client_fail(client, request_id(message), BATON_EAUTH, text);
    return false;
}

static void answer(struct client *client, const json_t *message, int code,
                   const struct baton_error *error)
{
    if (code == BATON_OK) {
        client_reply(client, request_id(message), NULL);
    } else {
        client_fail(client, request_id(message), code, error->message);
    }
}

/* A process that connects again asks for what it takes part in already. `acts`: in which epoch. */
static void go_on(struct client *client, struct part *part, const json_t *message)
{
    uint64_t known = (uint64_t)json_integer_value(json_object_get(message, "known_epoch"));
    bool acts = json_is_true(json_object_get(message, "acts"));
    struct baton_error error;

    client_reply(client, request_id(message), NULL);
    if (part->held != 0 && (part->held > known || acts)) {
        tell_acquired(part, part->held);
    } else if (part->held != 0) { /* it gave this one up while it was not connected */
        part->epoch = 0;
        (void)part->tenant->handle->ops->resign(part->election, NULL, clock_now(), &error);
    }
    if (acts && part->held != known) {
        tell(part, "leadership-lost",
             json_pack("{s:I, s:s}", "epoch", (json_int_t)known, "reason",
                       baton_loss_name(BATON_LOSS_EXPIRED)));
    }
}

static int begin(struct client *client, struct part *part, const json_t *message,
                 struct baton_error *reterr)
{
    struct tenant *tenant = client->tenant;
    const json_t *eligible = json_object_get(message, "eligible");
    json_int_t priority = json_integer_value(json_object_get(message, "priority"));
    const struct provider_campaign campaign = {
        .election = part->name,
        .eligible = !json_is_false(eligible),
        .metadata = tenant->metadata,
        .cell = part->cell,
        .on_event = on_event,
        .userdata = part,
        .known_epoch = (uint64_t)json_integer_value(json_object_get(message, "known_epoch")),
        .acts = json_is_true(json_object_get(message, "acts")),
        .priority = priority > INT16_MAX   ? INT16_MAX
                    : priority < INT16_MIN ? INT16_MIN
                                           : (int32_t)priority};

    return tenant->handle->ops->campaign(&part->election, tenant->handle, &campaign, reterr);
}

void part_campaign(struct client *client, const json_t *message)
{
    const char *name = request_text(client, message, "election");
    struct tenant *tenant = client->tenant;
    struct baton_error error = {0};
    struct part *part = NULL;
    int code;

    if (!name || !is_allowed(client, message, name)) {
        return;
    }
    HASH_FIND_STR(tenant->parts, name, part);
    if (part && !part->is_leaving) {
        go_on(client, part, message);
        return;
    }
    if (part || strlen(name) >= BATON_NAME_MAX || !*name ||
        HASH_COUNT(tenant->parts) >= AGENT_ELECTIONS_MAX) {
        client_fail(client, request_id(message), part ? BATON_EBUSY : BATON_EINVAL,
                    part ? "the process is leaving this election: wait for \"stopped\""
                         : "\"election\": has 1 to 63 bytes, and a process at most 16384 of them");
        return;
    }
    part = part_new(tenant, name);
    if (!part) {
        client_fail(client, request_id(message), BATON_ENOMEM, "out of memory");
        return;
    }
    client_reply(client, request_id(message), NULL);
    code = begin(client, part, message, &error);
    if (code != BATON_OK) { /* as an event: the reply is out, before what the campaign causes */
        tell(part, "error", error_json(&error));
        tell(part, "stopped", NULL);
        part_free(part);
    }
}

void part_resign(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);
    const struct provider_ops *ops = client->tenant->handle->ops;
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(message, "epoch"));
    const char *to = json_string_value(json_object_get(message, "to"));
    struct baton_error error = {0};
    int code;

    if (!part) {
        return;
    }
    if (part->held == 0 || (epoch != 0 && epoch != part->held)) {
        client_fail(client, request_id(message), BATON_ENOTLEADER,
                    "this process does not lead the election, or not in this epoch");
        return;
    }
    code = to ? ops->check_heir(part->election, to, &error) : BATON_OK;
    if (code == BATON_OK) {
        part->epoch = 0; /* it acts no more */
        code = ops->resign(part->election, to, request_deadline(message), &error);
    }
    answer(client, message, code, &error);
}

void part_drained(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);
    const struct provider_ops *ops = client->tenant->handle->ops;
    struct baton_error error = {0};

    if (!part) {
        return;
    }
    if (ops->drained == NULL || !part->is_asked) {
        part_resign(client, message);
        return;
    }
    part->epoch = 0;
    part->is_asked = false;
    answer(client, message, BATON_OK, &error);
    ops->drained(part->election);
}

void part_leave(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);

    if (part) {
        part->is_leaving = true;
        part->epoch = 0;
        client_reply(client, request_id(message), NULL);
        client->tenant->handle->ops->leave(part->election);
    }
}

void part_eligible(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);
    const json_t *eligible = json_object_get(message, "eligible");
    struct baton_error error = {0};

    if (!part) {
        return;
    }
    if (!json_is_boolean(eligible)) {
        client_fail(client, request_id(message), BATON_EINVAL, "\"eligible\": must be a boolean");
        return;
    }
    if (json_is_false(eligible) && part->epoch != 0) { /* it would hand over, and the client acts */
        client_fail(client, request_id(message), BATON_EBUSY,
                    "this process leads the election: resign first");
        return;
    }
    answer(
        client, message,
        client->tenant->handle->ops->set_eligible(part->election, json_is_true(eligible), &error),
        &error);
}

void part_metadata(struct client *client, const json_t *message)
{
    const json_t *metadata = json_object_get(message, "metadata");
    struct tenant *tenant = client->tenant;
    const struct provider_ops *ops = tenant->handle->ops;
    struct baton_error error = {0};
    char *text = json_is_object(metadata) ? json_text(metadata, JSON_COMPACT) : NULL;
    int code = BATON_OK;

    if (metadata && !json_is_null(metadata) && !text) {
        client_fail(client, request_id(message), BATON_EINVAL, "\"metadata\": must be an object");
        return;
    }
    free(tenant->metadata);
    tenant->metadata = text;
    for (struct part *part = tenant->parts; part && ops->set_metadata; part = part->hh.next) {
        if (part->election && !part->is_leaving && code == BATON_OK) {
            code = ops->set_metadata(part->election, text, &error);
        }
    }
    answer(client, message, code, &error);
}

/* ---- Questions ------------------------------------------------------------------------------- */

void part_leader(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);
    struct baton_member leader = {.id = ""};
    uint64_t epoch = 0;

    if (part) {
        client->tenant->handle->ops->leader(part->election, &leader, &epoch);
        client_reply(client, request_id(message),
                     json_pack("{s:s?, s:I}", "leader", leader.id[0] ? leader.name : NULL, "epoch",
                               (json_int_t)epoch));
    }
}

static json_t *member_json(const struct baton_member *member)
{
    json_t *metadata = member->metadata ? json_load_text(member->metadata, 0, NULL) : NULL;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:o*}", "id", member->id,
                     "name", member->name, "address", member->address, "kind",
                     baton_member_kind_name(member->kind), "role", baton_role_name(member->role),
                     "priority", (int)member->priority, "alive", (int)member->is_alive, "self",
                     (int)member->is_self, "cordoned", (int)member->is_cordoned, "metadata",
                     metadata);
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    int64_t id;
    struct client *client = client_settle(userdata, &id);
    json_t *list = json_array();

    for (size_t i = 0; i < count && code == BATON_OK && list; i++) {
        (void)json_array_append_new(list, member_json(&members[i]));
    }
    if (client && code == BATON_OK) {
        client_reply(client, id, json_pack("{s:O}", "members", list));
    } else if (client) {
        client_fail(client, id, code, baton_strerror(code));
    }
    json_decref(list);
}

static void fail_pending(struct pending *pending, int code, const struct baton_error *error)
{
    if (code != BATON_OK) {
        client_done(pending, code, error);
    }
}

void part_members(struct client *client, const json_t *message)
{
    struct part *part = part_of(client, message);
    const struct provider_ops *ops = client->tenant->handle->ops;
    struct baton_error error = {0};
    struct pending *pending;

    if (part && (ops->features & PROVIDER_MEMBERS) == 0) {
        client_fail(client, request_id(message), BATON_ENOTSUP, "the provider lists no members");
    } else if (part && (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending, ops->members(part->election, on_members, pending, &error), &error);
    }
}

static json_t *state_json(const struct provider_election_state *state)
{
    json_t *json = json_pack("{s:s, s:s?, s:I, s:I}", "election", state->name, "leader",
                             state->leader[0] ? state->leader : NULL, "epoch",
                             (json_int_t)state->epoch, "waiting", (json_int_t)state->waiting);

    if (json && state->left.ns >= 0) {
        (void)json_object_set_new(json, "left_ms", json_real((double)state->left.ns / 1e6));
    }
    return json;
}

static void on_elections(void *userdata, int code, const struct provider_election_state *elections,
                         size_t count)
{
    int64_t id;
    struct client *client = client_settle(userdata, &id);
    json_t *list = json_array();

    for (size_t i = 0; i < count && code == BATON_OK && list; i++) {
        (void)json_array_append_new(list, state_json(&elections[i]));
    }
    if (client && code == BATON_OK) {
        client_reply(client, id, json_pack("{s:O}", "elections", list));
    } else if (client) {
        client_fail(client, id, code, baton_strerror(code));
    }
    json_decref(list);
}

static bool refuse_missing(struct client *client, const json_t *message, bool is_there)
{
    if (!is_there) {
        client_fail(client, request_id(message), BATON_ENOTSUP,
                    "this agent's provider knows only the elections of its own process; it takes a "
                    "group: raft:…?group=NAME");
    }
    return !is_there;
}

void part_list(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    struct baton_error error = {0};
    struct pending *pending;

    if (!refuse_missing(client, message, base->ops->elections != NULL) &&
        (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending, base->ops->elections(base, on_elections, pending, &error), &error);
    }
}

void part_pass(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    const char *to = json_string_value(json_object_get(message, "to"));
    struct baton_error error = {0};
    struct pending *pending;
    const char *name;

    if (!refuse_missing(client, message, base->ops->ask_pass != NULL) &&
        (name = request_text(client, message, "election")) && is_allowed(client, message, name) &&
        (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending,
                     base->ops->ask_pass(base, name, to, request_deadline(message), client_done,
                                         pending, &error),
                     &error);
    }
}

void part_cordon(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    bool is_eligible = json_is_true(json_object_get(message, "eligible"));
    struct baton_error error = {0};
    struct pending *pending;
    const char *name, *tenant;

    if (!refuse_missing(client, message, base->ops->ask_eligible != NULL) &&
        (name = request_text(client, message, "election")) && is_allowed(client, message, name) &&
        (tenant = request_text(client, message, "process")) &&
        (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending,
                     base->ops->ask_eligible(base, name, tenant, is_eligible,
                                             request_deadline(message), client_done, pending,
                                             &error),
                     &error);
    }
}
