/* The members of elections, and what is asked of any election. */
#include "base/json_text.h"
#include "provider/agent/remote.h"
#include "provider/heirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Heirs ----------------------------------------------------------------------------------- */

static void read_member(struct baton_member *ret, const json_t *json)
{
    const char *text[] = {json_string_value(json_object_get(json, "id")),
                          json_string_value(json_object_get(json, "name")),
                          json_string_value(json_object_get(json, "address")),
                          json_string_value(json_object_get(json, "kind")),
                          json_string_value(json_object_get(json, "role"))};

    *ret = (struct baton_member){.weight = 1,
                                 .priority =
                                     (int32_t)json_integer_value(json_object_get(json, "priority")),
                                 .is_alive = json_is_true(json_object_get(json, "alive")),
                                 .is_self = json_is_true(json_object_get(json, "self")),
                                 .is_cordoned = json_is_true(json_object_get(json, "cordoned"))};
    (void)snprintf(ret->id, sizeof(ret->id), "%s", text[0] ? text[0] : "");
    (void)snprintf(ret->name, sizeof(ret->name), "%s", text[1] ? text[1] : "");
    (void)snprintf(ret->address, sizeof(ret->address), "%s", text[2] ? text[2] : "");
    for (enum baton_member_kind kind = BATON_MEMBER_VOTER; text[3] && kind <= BATON_MEMBER_LEARNER;
         kind++) {
        ret->kind = strcmp(text[3], baton_member_kind_name(kind)) == 0 ? kind : ret->kind;
    }
    for (enum baton_role role = BATON_ROLE_FOLLOWER; text[4] && role <= BATON_ROLE_LEADER; role++) {
        ret->role = strcmp(text[4], baton_role_name(role)) == 0 ? role : ret->role;
    }
}

/* NULL: out of memory. */
static struct baton_member *read_members(const json_t *reply, size_t *ret_count)
{
    const json_t *list = json_object_get(reply, "members");
    size_t count = json_array_size(list);
    struct baton_member *members = calloc(count + 1, sizeof(*members));

    for (size_t i = 0; members && i < count; i++) {
        read_member(&members[i], json_array_get(list, i));
    }
    *ret_count = members ? count : 0;
    return members;
}

static void on_heirs(struct call *call, int code, const json_t *reply)
{
    struct contest *contest = call->owner;

    if (code == BATON_OK && json_is_true(json_object_get(reply, "ok"))) {
        free(contest->members);
        contest->members = read_members(reply, &contest->member_count);
    }
}

static void ask_members(struct contest *contest)
{
    struct remote *remote = contest->remote;
    struct call *call =
        remote->is_ready
            ? remote_call(remote,
                          json_pack("{s:s, s:s}", "do", "members", "election", contest->name),
                          on_heirs)
            : NULL;

    if (call) {
        call->owner = contest;
    }
}

bool contests_ask_members(struct remote *remote)
{
    size_t asked = 0;

    for (struct contest *at = remote->contests; at && asked < REMOTE_HEIRS_MAX; at = at->hh.next) {
        if (at->acts) {
            ask_members(at);
            asked++;
        }
    }
    return asked > 0;
}

static bool may_lead(const struct baton_member *member)
{
    return !member->is_self && !member->is_cordoned && member->is_alive;
}

int contest_check_heir(struct provider_election *election, const char *to,
                       struct baton_error *reterr)
{
    struct contest *contest = (struct contest *)election;
    struct heirs heirs = {.bytes = 0};
    size_t count = 0;

    for (size_t i = 0; i < contest->member_count; i++) {
        const struct baton_member *at = &contest->members[i];
        if (!may_lead(at)) {
            continue;
        }
        if (to && (strcmp(at->name, to) == 0 || strcmp(at->id, to) == 0)) {
            return BATON_OK;
        }
        heirs_add(&heirs, at->name);
        count++;
    }
    ask_members(contest); /* for the next attempt */
    remote_step(contest->remote);
    if (to) {
        return heirs_refuse(&heirs, to, reterr);
    }
    return count > 0 || !contest->members
               ? BATON_OK
               : error_set(reterr, BATON_EBUSY,
                           "nobody can take over now: no other process that answers may lead "
                           "\"%s\"; this one goes on leading",
                           contest->name);
}

/* ---- The list of members --------------------------------------------------------------------- */

static void on_members(struct call *call, int code, const json_t *reply)
{
    struct baton_error error = {0};
    struct baton_member *members = NULL;
    size_t count = 0;

    if (reply && (code = remote_code(reply, &error)) == BATON_OK) {
        members = read_members(reply, &count);
        code = members ? BATON_OK : BATON_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *metadata =
            json_object_get(json_array_get(json_object_get(reply, "members"), i), "metadata");
        members[i].metadata = json_is_object(metadata) ? json_text(metadata, JSON_COMPACT) : NULL;
    }
    call->then.members(call->userdata, code, members, count);
    for (size_t i = 0; i < count; i++) {
        free((char *)members[i].metadata);
    }
    free(members);
}

int contest_members(struct provider_election *election, provider_members_cb done, void *userdata,
                    struct baton_error *reterr)
{
    struct contest *contest = (struct contest *)election;
    struct call *call;
    int code = remote_ask(&call, contest->remote,
                          json_pack("{s:s, s:s}", "do", "members", "election", contest->name),
                          on_members, userdata, reterr);

    if (code == BATON_OK) {
        call->then.members = done;
        remote_step(contest->remote);
    }
    return code;
}

/* ---- Of any election ------------------------------------------------------------------------- */

static void read_election(struct provider_election_state *ret, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "election"));
    const char *leader = json_string_value(json_object_get(json, "leader"));
    const json_t *left = json_object_get(json, "left_ms");

    *ret = (struct provider_election_state){
        .name = name ? name : "",
        .leader = leader ? leader : "",
        .epoch = (uint64_t)json_integer_value(json_object_get(json, "epoch")),
        .waiting = (size_t)json_integer_value(json_object_get(json, "waiting")),
        .left = json_is_number(left) ? SPAN_NS(json_number_value(left) * 1e6) : SPAN_NS(-1)};
}

static void on_elections(struct call *call, int code, const json_t *reply)
{
    const json_t *list = json_object_get(reply, "elections");
    size_t count = json_array_size(list);
    struct provider_election_state *states = calloc(count + 1, sizeof(*states));
    struct baton_error error = {0};

    if (reply) {
        code = states ? remote_code(reply, &error) : BATON_ENOMEM;
    }
    for (size_t i = 0; states && i < count; i++) {
        read_election(&states[i], json_array_get(list, i));
    }
    call->then.elections(call->userdata, code, states, code == BATON_OK ? count : 0);
    free(states);
}

int remote_elections(struct provider *provider, provider_elections_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct remote *remote = (struct remote *)provider;
    struct call *call;
    int code = remote_ask(&call, remote, json_pack("{s:s}", "do", "elections"), on_elections,
                          userdata, reterr);

    if (code == BATON_OK) {
        call->then.elections = done;
        remote_step(remote);
    }
    return code;
}

static void on_done(struct call *call, int code, const json_t *reply)
{
    struct baton_error error = {0};

    if (reply) {
        code = remote_code(reply, &error);
    } else if (code != BATON_OK) {
        (void)error_set(&error, code, "the agent went away, or did not reply in time");
    }
    call->then.done(call->userdata, code, &error);
}

static int ask(struct remote *remote, json_t *message, instant deadline, provider_done_cb done,
               void *userdata, struct baton_error *reterr)
{
    struct call *call;
    int code = remote_ask(&call, remote, message, on_done, userdata, reterr);

    if (code == BATON_OK) {
        call->then.done = done;
        remote_limit(remote, call, instant_add(deadline, SPAN_S(1))); /* the agent says so first */
        remote_step(remote);
    }
    return code;
}

static json_int_t ms_until(instant deadline)
{
    int64_t ms = instant_since(deadline, clock_now()).ns / 1000000;

    return ms > 0 ? ms : 0;
}

int remote_ask_pass(struct provider *provider, const char *election, const char *to,
                    instant deadline, provider_done_cb done, void *userdata,
                    struct baton_error *reterr)
{
    return ask((struct remote *)provider,
               json_pack("{s:s, s:s, s:I, s:s*}", "do", "pass", "election", election, "timeout_ms",
                         ms_until(deadline), "to", to),
               deadline, done, userdata, reterr);
}

int remote_ask_eligible(struct provider *provider, const char *election, const char *process,
                        bool eligible, instant deadline, provider_done_cb done, void *userdata,
                        struct baton_error *reterr)
{
    return ask((struct remote *)provider,
               json_pack("{s:s, s:s, s:s, s:b, s:I}", "do", "cordon", "election", election,
                         "process", process, "eligible", (int)eligible, "timeout_ms",
                         ms_until(deadline)),
               deadline, done, userdata, reterr);
}
