/* What a member does for those who call on its control socket. */
#include "cli/member_internal.h"

#include "base/value.h"
#ifdef BATON_PROVIDER_RAFT
#include "provider/raft/raft_provider.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that is answered later. */
struct call {
    struct participant *member;
    uint64_t client;
    bool wants_members; /* only */
};

static struct call *call_new(struct participant *member, uint64_t client)
{
    struct call *call = calloc(1, sizeof(*call));
    if (call) {
        call->member = member;
        call->client = client;
    }
    return call;
}

static void answer(struct participant *member, uint64_t client, json_t *json)
{
    if (member->control) {
        control_server_answer(member->control, client, json);
    } else {
        json_decref(json);
    }
}

static void answer_code(struct participant *member, uint64_t client, int code,
                        const struct baton_error *error)
{
    if (code) {
        const char *text = error && error->code ? error->message : baton_strerror(code);
        answer(member, client, member_error_json(code, text));
    } else {
        answer(member, client, json_pack("{s:b}", "ok", 1));
    }
}

static void on_refreshed(void *userdata, int code)
{
    struct call *call = userdata;
    struct participant *member = call->member;
    if (code) {
        answer_code(member, call->client, code, NULL);
    } else if (call->wants_members) {
        answer(member, call->client, json_pack("{s:b,s:O}", "ok", 1, "members", member->members));
    } else {
        answer(member, call->client, member_status_json(member));
    }
    free(call);
}

static int do_status(struct participant *member, uint64_t client, const json_t *request,
                     struct baton_error *reterr)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    struct call *call = call_new(member, client);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    call->wants_members = strcmp(what, "members") == 0;
    int code = member_refresh(member, on_refreshed, call, reterr);
    if (code) {
        free(call);
    }
    return code;
}

static int do_watch(struct participant *member, uint64_t client, const json_t *request,
                    struct baton_error *reterr)
{
    (void)request;
    (void)reterr;
    control_server_subscribe(member->control, client);
    return 0;
}

static int set_cordoned(struct participant *member, bool is_cordoned, struct baton_error *reterr)
{
    bool leads = participant_is_leader(member, NULL);
    member->hands_over |= is_cordoned && leads;
    int code = member->provider->ops->set_eligible(member->election, !is_cordoned, reterr);
    if (!code) {
        member->is_cordoned = is_cordoned;
    }
    member->hands_over &= !code && is_cordoned;
    return code;
}

static bool must_drain(struct participant *member, instant deadline)
{
    return member->config.drain && member->config.drain(member->config.userdata, deadline);
}

static int refuse_pass(struct participant *member, struct baton_error *reterr)
{
    struct baton_member leader = {0};
    uint64_t epoch = 0;
    if (member->pass.client) {
        return error_set(reterr, BATON_EBUSY, "leadership is being given away already");
    }
    member->provider->ops->leader(member->election, &leader, &epoch);
    return error_set(reterr, BATON_ENOTLEADER, "%s does not lead, %s does; ask there", member->node,
                     leader.id[0] ? leader.name : "nobody known to it");
}

static int resign_now(struct participant *member, struct baton_error *reterr)
{
    const char *to = member->pass.to[0] ? member->pass.to : NULL;
    member->hands_over = true;
    int code = member->provider->ops->resign(member->election, to, member->pass.deadline, reterr);
    member->hands_over &= !code;
    return code;
}

static int do_pass(struct participant *member, uint64_t client, const json_t *request,
                   struct baton_error *reterr)
{
    const char *to = json_string_value(json_object_get(request, "to"));
    json_int_t timeout_ms = json_integer_value(json_object_get(request, "timeout_ms"));
    if (member->pass.client || !participant_is_leader(member, NULL)) {
        return refuse_pass(member, reterr);
    }
    if (to && strlen(to) >= sizeof(member->pass.to)) {
        return error_set(reterr, BATON_EINVAL, "'%s': no such node", to);
    }
    int code = to ? member->provider->ops->check_heir(member->election, to, reterr) : 0;
    if (code) {
        return code;
    }
    timeout_ms = timeout_ms < 1 || timeout_ms > 3600000 ? 30000 : timeout_ms;
    (void)snprintf(member->pass.to, sizeof(member->pass.to), "%s", to ? to : "");
    member->pass.deadline = instant_add(clock_now(), SPAN_MS(timeout_ms));
    member->pass.is_cordon = false;
    member->pass.client = client;
    member->pass.is_draining = must_drain(member, member->pass.deadline);
    code = member->pass.is_draining ? 0 : resign_now(member, reterr);
    if (code) {
        member->pass.client = 0;
        return code;
    }
    (void)uv_timer_start(&member->pass.timer, member_on_pass_timeout, (uint64_t)timeout_ms, 0);
    return 0;
}

bool participant_hands_over(const struct participant *member)
{
    return member->hands_over;
}

/* The group wants another leader. */
static void drained_for_group(struct participant *member)
{
    member->drains_for_group = false;
    member->hands_over = true;
    member->provider->ops->drained(member->election);
}

void member_drain_watch(struct participant *member, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_DRAIN) {
        member->drains_for_group = true;
        if (!must_drain(member, instant_add(clock_now(), SPAN_NS(event->lease_left_ns)))) {
            drained_for_group(member);
        }
    } else if (event->type == BATON_EVENT_LOST ||
               (event->type == BATON_EVENT_ERROR && event->error.code == BATON_ETIMEDOUT)) {
        member->drains_for_group = false;
        member->hands_over = false;
    }
}

/* What waited for the end of the program under the lease. */
void participant_drained(struct participant *member)
{
    struct baton_error error = {0};
    uint64_t client = member->pass.client;
    if (member->drains_for_group) {
        drained_for_group(member);
    }
    if (!client || !member->pass.is_draining) {
        return;
    }
    member->pass.is_draining = false;
    if (member->pass.is_cordon) {
        member->pass.client = 0;
        answer_code(member, client, set_cordoned(member, true, &error), &error);
        return;
    }
    int code = resign_now(member, &error);
    if (code) {
        member->pass.client = 0;
        (void)uv_timer_stop(&member->pass.timer);
        answer_code(member, client, code, &error);
    }
}

void member_on_pass_timeout(uv_timer_t *timer)
{
    struct participant *member = timer->data;
    answer(member, member->pass.client,
           member_error_json(BATON_ETIMEDOUT, "no other node has taken over in time"));
    member->pass.client = 0;
    member->pass.is_draining = false;
}

void member_pass_watch(struct participant *member, const struct baton_event *event)
{
    bool is_taken =
        (event->type == BATON_EVENT_LEADER || event->type == BATON_EVENT_ELECTION_COMPLETED) &&
        event->member.id[0] && strcmp(event->member.name, member->node) != 0;
    bool is_back = event->type == BATON_EVENT_ACQUIRED;
    if (!member->pass.client || member->pass.is_draining || (!is_taken && !is_back)) {
        return;
    }
    json_t *json =
        is_taken ? json_pack("{s:b,s:s,s:s,s:I}", "ok", 1, "leader", event->member.id, "name",
                             event->member.name, "epoch", (json_int_t)event->epoch)
                 : member_error_json(BATON_ECONFLICT, "nobody took over: this node leads again");
    answer(member, member->pass.client, json);
    member->pass.client = 0;
    (void)uv_timer_stop(&member->pass.timer);
}

static int do_cordon(struct participant *member, uint64_t client, const json_t *request,
                     struct baton_error *reterr)
{
    (void)request;
    if (member->pass.client) {
        return refuse_pass(member, reterr);
    }
    if (participant_is_leader(member, NULL) &&
        must_drain(member, instant_add(clock_now(), participant_lease_left(member)))) {
        member->pass.client = client;
        member->pass.is_cordon = true;
        member->pass.is_draining = true;
        return 0;
    }
    int code = set_cordoned(member, true, reterr);
    if (!code) {
        answer_code(member, client, 0, NULL);
    }
    return code;
}

static int do_uncordon(struct participant *member, uint64_t client, const json_t *request,
                       struct baton_error *reterr)
{
    (void)request;
    int code = set_cordoned(member, false, reterr);
    if (!code) {
        answer_code(member, client, 0, NULL);
    }
    return code;
}

static void on_operated(void *userdata, int code, const struct baton_error *error)
{
    struct call *call = userdata;
    answer_code(call->member, call->client, code, error);
    free(call);
}

static instant deadline_of(const json_t *request)
{
    json_int_t timeout_ms = json_integer_value(json_object_get(request, "timeout_ms"));
    timeout_ms = timeout_ms < 1 || timeout_ms > 3600000 ? 30000 : timeout_ms;
    return instant_add(clock_now(), SPAN_MS(timeout_ms));
}

struct addition {
    struct baton_member member;
    bool has_kind, has_weight, has_priority; /* what is not said stays, or is the default */
};

/* A join that was interrupted leaves a learner behind, and the same command completes it. */
static bool is_interrupted(const struct addition *added, const struct baton_member *now)
{
    return now->kind == BATON_MEMBER_LEARNER && !added->has_kind && !added->has_weight &&
           !added->has_priority;
}

/* What the group has of it already, but the address and what is said anew. */
static void keep_vote(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct addition *added = userdata;
    struct baton_member *ret = &added->member;
    for (size_t i = 0; !code && i < count; i++) {
        const struct baton_member *now = &members[i];
        if (strcmp(now->name, ret->name) == 0) {
            bool voted = now->kind != BATON_MEMBER_LEARNER;
            ret->kind = added->has_kind || is_interrupted(added, now) ? ret->kind : now->kind;
            bool votes = ret->kind != BATON_MEMBER_LEARNER;
            ret->weight = added->has_weight || votes != voted ? ret->weight : now->weight;
            ret->priority = added->has_priority ? ret->priority : now->priority;
        }
    }
}

static int take_kind(const char *word, enum baton_member_kind *ret, struct baton_error *reterr)
{
    for (int kind = BATON_MEMBER_VOTER; kind <= BATON_MEMBER_LEARNER; kind++) {
        if (strcmp(word, baton_member_kind_name((enum baton_member_kind)kind)) == 0) {
            *ret = (enum baton_member_kind)kind;
            return 0;
        }
    }
    return error_set(reterr, BATON_EINVAL, "'/%s': must be /voter, /witness or /learner", word);
}

/* One of *WEIGHT, ^PRIORITY and /KIND. */
static int take_mark(struct addition *added, char mark, const char *word,
                     struct baton_error *reterr)
{
    struct baton_member *member = &added->member;
    int64_t number = 0;
    bool *has = mark == '*'   ? &added->has_weight
                : mark == '^' ? &added->has_priority
                              : &added->has_kind;
    if (*has) {
        return error_set(reterr, BATON_EINVAL, "'%c%s': %c is given twice", mark, word, mark);
    }
    *has = true;
    if (mark == '/') {
        return take_kind(word, &member->kind, reterr);
    }
    int64_t limit = 1000000;
    int code = value_number(word, mark == '*' ? 0 : -limit, limit, &number, reterr);
    if (!code && mark == '*') {
        member->weight = (uint32_t)number;
    } else if (!code) {
        member->priority = (int32_t)number;
    }
    return code ? error_wrap(reterr, mark == '*' ? "weight" : "priority") : 0;
}

/* The same marks as behind a --peer. */
static int take_marks(struct addition *added, const char *at, struct baton_error *reterr)
{
    int code = 0;
    while (*at && !code) {
        char word[32] = "";
        size_t length = strcspn(at + 1, "*^/");
        if (length >= sizeof(word)) {
            return error_set(reterr, BATON_EINVAL, "'%.32s…': neither a number nor a kind", at);
        }
        memcpy(word, at + 1, length);
        code = take_mark(added, *at, word, reterr);
        at += 1 + length;
    }
    if (!added->has_weight && added->member.kind == BATON_MEMBER_LEARNER) {
        added->member.weight = 0;
    }
    return code;
}

/* NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND] */
static int parse_member(const char *text, struct addition *ret, struct baton_error *reterr)
{
    const char *equals = strchr(text, '=');
    const char *address = equals ? equals + 1 : "";
    size_t length = strcspn(address, "*^/");
    char host[BATON_ADDRESS_MAX];
    int port;
    if (!equals || equals == text || equals - text >= BATON_NAME_MAX ||
        length >= BATON_ADDRESS_MAX) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s': must be NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]", text);
    }
    *ret = (struct addition){.member.weight = 1};
    memcpy(ret->member.name, text, (size_t)(equals - text));
    memcpy(ret->member.id, ret->member.name, sizeof(ret->member.id));
    memcpy(ret->member.address, address, length);
    int code = value_address(ret->member.address, false, host, sizeof(host), &port, reterr);
    return code ? code : take_marks(ret, address + length, reterr);
}

static int do_join(struct participant *member, uint64_t client, const json_t *request,
                   struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(request, "member"));
    struct addition added;
    if (!(member->provider->ops->features & PROVIDER_OPERATE)) {
        return error_set(reterr, BATON_ENOTSUP,
                         "%s: members of this provider come and go by "
                         "themselves",
                         member->provider->ops->scheme);
    }
    int code = parse_member(text ? text : "", &added, reterr);
    struct call *call = code ? NULL : call_new(member, client);
    if (!call) {
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    /* This provider tells its members at once. */
    (void)member->provider->ops->members(member->election, keep_vote, &added, NULL);
    code = member->provider->ops->member_add(member->election, &added.member,
                                             json_is_true(json_object_get(request, "replace")),
                                             deadline_of(request), on_operated, call, reterr);
    if (code) {
        free(call);
    }
    return code;
}

static int do_leave(struct participant *member, uint64_t client, const json_t *request,
                    struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(request, "member"));
    if (!(member->provider->ops->features & PROVIDER_OPERATE)) {
        return error_set(reterr, BATON_ENOTSUP,
                         "%s: members of this provider come and go by "
                         "themselves",
                         member->provider->ops->scheme);
    }
    struct call *call = text ? call_new(member, client) : NULL;
    if (!call) {
        return error_set(reterr, BATON_EINVAL, "the member's name is missing");
    }
    int code = member->provider->ops->member_remove(member->election, text, deadline_of(request),
                                                    on_operated, call, reterr);
    if (code) {
        free(call);
    }
    return code;
}

static int do_isolate(struct participant *member, uint64_t client, const json_t *request,
                      struct baton_error *reterr)
{
    const struct options *options = member->config.options;
    if (!options_find(options, "test-switches") || !options_flag(options, "test-switches")) {
        return error_set(reterr, BATON_EAUTH, "this node was not started for tests");
    }
#ifdef BATON_PROVIDER_RAFT
    if (strcmp(member->provider->ops->scheme, "raft") == 0) {
        raft_provider_isolate(member->provider, json_is_true(json_object_get(request, "on")));
        answer_code(member, client, 0, NULL);
        return 0;
    }
#endif
    (void)client;
    (void)request;
    return error_set(reterr, BATON_ENOTSUP, "only nodes of the raft provider can be cut off");
}

static const struct {
    const char *name;
    int (*act)(struct participant *member, uint64_t client, const json_t *request,
               struct baton_error *reterr);
} requests[] = {
    {"status", do_status}, {"members", do_status}, {"watch", do_watch},
    {"pass", do_pass},     {"cordon", do_cordon},  {"uncordon", do_uncordon},
    {"join", do_join},     {"leave", do_leave},    {"isolate", do_isolate},
};

void member_on_control(void *userdata, uint64_t client, const json_t *request)
{
    struct participant *member = userdata;
    struct baton_error error = {0};
    const char *what = json_string_value(json_object_get(request, "do"));
    for (size_t i = 0; what && i < sizeof(requests) / sizeof(requests[0]); i++) {
        if (strcmp(requests[i].name, what) == 0) {
            int code = requests[i].act(member, client, request, &error);
            if (code) {
                answer_code(member, client, code, &error);
            }
            return;
        }
    }
    error_set(&error, BATON_EINVAL, "'%s': no such request", what ? what : "");
    answer_code(member, client, BATON_EINVAL, &error);
}
