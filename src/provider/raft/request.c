/* An operator's requests to the group: changes of membership. The leader makes them; any other node
 * sends them to it, and repeats them until the change is complete: a new leader accepts none yet,
 * and a change may be lost with its leader. Asking twice does no harm.
 *
 *   REQUEST  {"do":"add","peer":"NAME@HOST:PORT*WEIGHT^PRIORITY/KIND","replaces":…}
 *            {"do":"remove","peer":"NAME","taken_back":…}
 *   REPLY    {"code":0}, {"code":1}: under way, or {"code":-13,"error":"…"}
 */
#include "provider/raft/node.h"

#include "base/json_load.h"
#include "base/json_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { UNDER_WAY = 1, ASKED = 2 }; /* further results beside BATON_OK and the errors */
enum { ASK_AGAIN_MS = 20, TAKE_BACK_MS = 10000 };

/* ---- At the leader --------------------------------------------------------------------------- */

static int copy_without(struct raft_configuration *ret, const struct raft_configuration *now,
                        raft_id without, size_t room)
{
    struct raft_configuration wanted = {.group = now->group};

    wanted.members = calloc(now->count + room, sizeof(*wanted.members));
    if (!wanted.members) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < now->count; i++) {
        if (now->members[i].id != without && !now->members[i].is_leaving) {
            wanted.members[wanted.count] = now->members[i];
            wanted.members[wanted.count++].old_weight = 0;
        }
    }
    *ret = wanted;
    return BATON_OK;
}

static int when_settled(const struct node *node)
{
    struct raft_status status;

    raft_get_status(node->raft, &status);
    return status.is_changing ? UNDER_WAY : BATON_OK;
}

/* Proposes the present group without `without` and with `with` (or NULL). */
static int propose(struct node *node, raft_id without, const struct raft_member *with,
                   struct baton_error *reterr)
{
    struct raft_configuration wanted;
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};
    int r = copy_without(&wanted, raft_get_configuration(node->raft), without, 1);

    if (r != BATON_OK) {
        return error_set(reterr, r, "out of memory for the members");
    }
    if (with) {
        wanted.members[wanted.count++] = *with;
    }
    r = raft_configuration_normalise(&wanted, reterr);
    if (r == BATON_OK && (r = node_step(node, &input)) == BATON_EUNSAFE) {
        (void)raft_check_change(node->raft, &wanted,
                                reterr); /* names the members that do not answer */
    } else if (r < 0 && r != BATON_EINVAL) {
        (void)error_set(reterr, r, "change of members: %s",
                        r == BATON_EBUSY ? "another one is under way, or the leader is new"
                                         : baton_strerror(r));
    }
    raft_configuration_fini(&wanted);
    return r == BATON_OK ? UNDER_WAY : r; /* the repeated request will find it complete */
}

static bool is_same(const struct raft_member *a, const struct raft_member *b)
{
    return strcmp(a->address, b->address) == 0 && a->kind == b->kind && a->weight == b->weight &&
           a->priority == b->priority;
}

static bool has_caught_up(const struct node *node, raft_id id)
{
    struct raft_progress progress;

    return raft_get_progress(node->raft, id, &progress) && progress.is_caught_up;
}

/* Complete only when the member is connected: at its address there may be no process, or another.
 */
static int when_there(const struct node *node, const struct raft_member *member,
                      struct baton_error *reterr)
{
    const struct link *link = link_to(node, member->id);

    if (when_settled(node) != BATON_OK) {
        return UNDER_WAY;
    }
    if (member->id == node->id || connection_is_up(node, member->id)) {
        return BATON_OK;
    }
    if (link && link->refusal[0]) {
        return error_set(reterr, BATON_EEXIST, "member \"%s\": %s", member->name, link->refusal);
    }
    return error_set(reterr, BATON_EUNAVAILABLE,
                     "member \"%s\": is in the group, but no node answers at %s", member->name,
                     member->address);
}

/* A vote that is never given would count all the same: a new voter follows as a learner first. */
static int take_in(struct node *node, const struct raft_member *now, struct raft_member *member,
                   struct baton_error *reterr)
{
    bool votes = member->weight > 0;

    if (votes && now && now->weight == 0 && !has_caught_up(node, now->id)) {
        return UNDER_WAY;
    }
    if (votes && !now) {
        member->kind = RAFT_LEARNER;
        member->weight = 0;
    }
    return propose(node, now ? now->id : RAFT_NOBODY, member, reterr);
}

/* Only the newcomer itself can name the birth of its data directory. */
static int ask_newcomer(struct node *node, const struct raft_member *now,
                        struct raft_member *member, struct baton_error *reterr)
{
    struct link *link = link_prospect(node, member);
    const struct acquaintance *known = link ? acquaintance_of(node, link->id) : NULL;

    if (node->greeting.group == 0) {
        return error_set(reterr, BATON_EBUSY, "change of members: the group is being formed");
    }
    if (link && link->refusal[0]) {
        (void)error_set(reterr, BATON_EEXIST, "member \"%s\": %s", member->name, link->refusal);
        link->refusal[0] = '\0'; /* a repeated request asks again */
        return BATON_EEXIST;
    }
    if (!known || !connection_is_up(node, link->id)) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "member \"%s\": no node answers at %s; start it with join: yes",
                         member->name, member->address);
    }
    member->id = known->id;
    member->birth = known->seen.birth;
    if (now && now->id != member->id) { /* replaces a member that may be gone, in one change */
        return propose(node, now->id, member, reterr);
    }
    return take_in(node, now, member, reterr);
}

static int add(struct node *node, const struct node_change *change, struct baton_error *reterr)
{
    const struct raft_member *now =
        identity_member(raft_get_configuration(node->raft), change->member.name);
    struct raft_member member = change->member;
    int r;

    if (now && !now->is_leaving && is_same(now, &member)) {
        return when_there(node, now, reterr);
    }
    if (now && !now->is_leaving && !change->replaces && strcmp(now->address, member.address) != 0) {
        return error_set(
            reterr, BATON_EEXIST,
            "member \"%s\": is in the group already, at %s: --replace moves it, or choose "
            "another name",
            member.name, now->address);
    }
    r = raft_options_check_peer(&node->options, &member, reterr);
    if (r != BATON_OK) {
        return r;
    }
    if (now && now->id == node->id && strcmp(now->address, member.address) != 0) {
        return error_set(reterr, BATON_EEXIST,
                         "member \"%s\": leads, and cannot ask itself who is there at %s: hand "
                         "leadership over first (baton pass)",
                         member.name, member.address);
    }
    if (!now || strcmp(now->address, member.address) != 0) {
        return ask_newcomer(node, now, &member, reterr);
    }
    member.id = now->id;
    member.birth = now->birth;
    return take_in(node, now, &member, reterr);
}

static int take_out(struct node *node, const struct node_change *change, struct baton_error *reterr)
{
    const struct raft_member *now =
        identity_member(raft_get_configuration(node->raft), change->member.name);

    if (now && change->is_taken_back && now->weight > 0) {
        return BATON_OK; /* it became a voter in time */
    }
    if (now) {
        return now->is_leaving ? UNDER_WAY : propose(node, now->id, NULL, reterr);
    }
    return when_settled(node) == BATON_OK
               ? error_set(reterr, BATON_ENOENT, "member \"%s\": not in the group",
                           change->member.name)
               : error_set(reterr, BATON_EBUSY, "change of members: another one is under way");
}

static int carry_out(struct node *node, const struct node_change *change,
                     struct baton_error *reterr)
{
    return change->is_add ? add(node, change, reterr) : take_out(node, change, reterr);
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int parse(struct node_change *ret, bool is_add, const char *peer, struct baton_error *reterr)
{
    *ret = (struct node_change){.is_add = is_add};
    if (is_add) {
        return raft_options_parse_peer(&ret->member, peer, reterr);
    }
    (void)snprintf(ret->member.name, sizeof(ret->member.name), "%s", peer);
    return BATON_OK;
}

static void write_peer(const struct node_change *change, char *ret, size_t bytes)
{
    static const char *const kinds[] = {
        [RAFT_VOTER] = "voter", [RAFT_WITNESS] = "witness", [RAFT_LEARNER] = "learner"};
    const struct raft_member *member = &change->member;

    if (change->is_add) {
        (void)snprintf(ret, bytes, "%s@%s*%u^%d/%s", member->name, member->address, member->weight,
                       (int)member->priority, kinds[member->kind]);
    } else {
        (void)snprintf(ret, bytes, "%s", member->name);
    }
}

static int hand_on(struct node *node, raft_id leader, struct node_request *request,
                   struct baton_error *reterr)
{
    const struct node_change *change = &request->change;
    char peer[RAFT_NAME_MAX + RAFT_ADDRESS_MAX + 64];
    json_t *question;
    char *text;

    if (leader == RAFT_NOBODY || !connection_is_up(node, leader)) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "the group has no leader at the moment; try again when it has");
    }
    write_peer(change, peer, sizeof(peer));
    question =
        json_pack("{s:s,s:s,s:b,s:b}", "do", change->is_add ? "add" : "remove", "peer", peer,
                  "replaces", (int)change->replaces, "taken_back", (int)change->is_taken_back);
    text = question ? json_text(question, JSON_COMPACT) : NULL;
    request->asked = leader;
    if (text) {
        connection_send_text(node, leader, FRAME_REQUEST, request->id, text);
    }
    free(text);
    json_decref(question);
    return ASKED; /* the request is repeated soon */
}

/* ---- Until it is complete -------------------------------------------------------------------- */

static void finish(struct node *node, struct node_request *request, int code,
                   const struct baton_error *error)
{
    struct node_request **at = &node->requests;

    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    request->done(request->userdata, code, error);
    free(request);
}

void request_fail_all(struct node *node, int code)
{
    struct baton_error error;

    (void)error_set(&error, code, "request: %s", baton_strerror(code));
    while (node->requests) {
        finish(node, node->requests, code, &error);
    }
}

static int begin(struct node *node, const struct node_change *change, instant deadline,
                 const struct node_asker *asker, struct baton_error *reterr);

/* Whether this result is final. */
static bool is_final(struct node_request *request, int *code, const struct baton_error *error)
{
    switch (*code) {
    case BATON_ENOENT:
        *code = request->has_begun ? BATON_OK : BATON_ENOENT; /* the change is complete */
        return true;
    case UNDER_WAY:
        request->has_begun = true;
        return false;
    case BATON_EBUSY:
    case BATON_ENOTLEADER:
    case BATON_EUNAVAILABLE:
        request->error = *error;
        return false;
    default:
        return *code != ASKED;
    }
}

static void take_answer(struct node *node, struct node_request *request, int code,
                        const struct baton_error *error)
{
    if (is_final(request, &code, error)) {
        finish(node, request, code, error);
    }
}

static void ignore(void *userdata, int code, const struct baton_error *error)
{
    (void)userdata;
    (void)code;
    (void)error;
}

/* Removes a new member that has not caught up in time, and so is no voter yet. */
static void take_back(struct node *node, const struct node_request *late)
{
    static const struct node_asker nobody = {.done = ignore};
    struct node_change change = late->change;

    if (late->has_begun && late->change.is_add && !late->was_member) {
        change.is_add = false;
        change.is_taken_back = true;
        (void)begin(node, &change, instant_add(clock_now(), SPAN_MS(TAKE_BACK_MS)), &nobody, NULL);
    }
}

static void give_up(struct node *node, struct node_request *request)
{
    struct baton_error error = request->error;

    if (request->has_begun || error.code == BATON_OK) {
        (void)error_set(&error, BATON_ETIMEDOUT, "change of members: %s%s%s",
                        request->has_begun ? "not complete in time" : "no answer of the leader",
                        error.code != BATON_OK ? ": " : "", request->error.message);
    }
    take_back(node, request);
    finish(node, request, error.code, &error);
}

/* Whether this node knows the result: of its own removal, only the removed leader does. */
static bool is_ours_to_say(const struct node *node, const struct node_request *request,
                           const struct raft_status *status)
{
    return status->role == RAFT_LEADER ||
           (request->has_begun &&
            !raft_configuration_find(raft_get_configuration(node->raft), node->id));
}

static void ask(struct node *node, struct node_request *request)
{
    struct baton_error error = {0};
    struct raft_status status;
    int code;

    raft_get_status(node->raft, &status);
    code = is_ours_to_say(node, request, &status) ? carry_out(node, &request->change, &error)
                                                  : hand_on(node, status.leader, request, &error);
    take_answer(node, request, code, &error);
}

static struct node_request *next_of_round(const struct node *node)
{
    struct node_request *request = node->requests;

    while (request && request->round == node->request_round) {
        request = request->next;
    }
    return request;
}

static void ask_again(uv_timer_t *timer)
{
    struct node *node = timer->data;
    struct node_request *request;

    node->request_round++;
    while ((request = next_of_round(node))) { /* a reply may lead to another request */
        request->round = node->request_round;
        if (instant_before(clock_now(), request->deadline)) {
            ask(node, request);
        } else {
            give_up(node, request);
        }
    }
    if (!node->requests) {
        (void)uv_timer_stop(timer);
    }
}

static int begin(struct node *node, const struct node_change *change, instant deadline,
                 const struct node_asker *asker, struct baton_error *reterr)
{
    struct node_request *request;
    size_t waiting = 0;

    for (request = node->requests; request; request = request->next) {
        waiting++;
    }
    request = waiting < NODE_REQUESTS_MAX ? calloc(1, sizeof(*request)) : NULL;
    if (!request) {
        return error_set(reterr, BATON_EBUSY, "too many requests wait for the leader");
    }
    *request = (struct node_request){
        .id = ++node->next_request,
        .change = *change,
        .was_member = identity_member(raft_get_configuration(node->raft), change->member.name),
        .deadline = deadline,
        .round = node->request_round,
        .done = asker->done,
        .userdata = asker->userdata,
        .next = node->requests};
    node->requests = request;
    (void)uv_timer_start(&node->request_timer, ask_again, ASK_AGAIN_MS, ASK_AGAIN_MS);
    ask(node, request);
    return BATON_OK;
}

int request_add(struct node *node, const struct baton_member *member, bool replaces,
                instant deadline, const struct node_asker *asker, struct baton_error *reterr)
{
    char peer[BATON_NAME_MAX + BATON_ADDRESS_MAX + 64];
    struct node_change change;
    int r;

    (void)snprintf(peer, sizeof(peer), "%s@%s*%u^%d/%s", member->name, member->address,
                   member->weight, (int)member->priority, baton_member_kind_name(member->kind));
    r = parse(&change, true, peer, reterr);
    change.replaces = replaces;
    return r == BATON_OK ? begin(node, &change, deadline, asker, reterr) : r;
}

int request_remove(struct node *node, const char *name, instant deadline,
                   const struct node_asker *asker, struct baton_error *reterr)
{
    struct node_change change;
    int r = parse(&change, false, name, reterr);

    return r == BATON_OK ? begin(node, &change, deadline, asker, reterr) : r;
}

/* ---- From node to node ----------------------------------------------------------------------- */

/* Only members may change the group; a member that was just removed learns this from the log. The
 * knowledge of a node that does not lead may be old. */
static int check_asker(const struct node *node, raft_id from, struct baton_error *reterr)
{
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if (status.role != RAFT_LEADER) {
        return error_set(reterr, BATON_ENOTLEADER, "change of members: the leader has changed");
    }
    return raft_configuration_find(raft_get_configuration(node->raft), from)
               ? BATON_OK
               : error_set(reterr, BATON_EUNAVAILABLE,
                           "change of members: asked by a node that is no member");
}

static int carry_out_text(struct node *node, raft_id from, const json_t *request,
                          struct baton_error *reterr)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    const char *peer = json_string_value(json_object_get(request, "peer"));
    bool is_add = what && strcmp(what, "add") == 0;
    struct node_change change = {0};
    int r;

    if (!what || !peer || (!is_add && strcmp(what, "remove") != 0)) {
        return error_set(reterr, BATON_EINVAL, "request \"%.32s\": not known", what ? what : "");
    }
    r = check_asker(node, from, reterr);
    r = r == BATON_OK ? parse(&change, is_add, peer, reterr) : r;
    change.replaces = json_is_true(json_object_get(request, "replaces"));
    change.is_taken_back = json_is_true(json_object_get(request, "taken_back"));
    return r == BATON_OK ? carry_out(node, &change, reterr) : r;
}

void request_receive(struct node *node, raft_id from, const struct frame *frame)
{
    json_t *request = json_load_bytes(frame->text, frame->text_bytes, JSON_REJECT_DUPLICATES, NULL);
    struct baton_error error = {0};
    int code = carry_out_text(node, from, request, &error);
    json_t *reply = json_pack("{s:i,s:s}", "code", code, "error", error.message);
    char *text = reply ? json_text(reply, JSON_COMPACT) : NULL;

    if (text) {
        connection_send_text(node, from, FRAME_REPLY, frame->request_id, text);
    }
    free(text);
    json_decref(reply);
    json_decref(request);
}

void request_reply(struct node *node, raft_id from, const struct frame *frame)
{
    json_t *reply = json_load_bytes(frame->text, frame->text_bytes, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(reply, "error"));
    int code = (int)json_integer_value(json_object_get(reply, "code"));
    struct node_request *request = node->requests;
    struct baton_error error = {0};

    while (request && (request->id != frame->request_id || request->asked != from)) {
        request = request->next;
    }
    if (!reply || code > UNDER_WAY) {
        code = BATON_EPROTO;
        text = "the leader's answer is malformed";
    }
    if (request) {
        if (code < 0) {
            (void)error_set(&error, code, "%s", text ? text : "");
        }
        take_answer(node, request, code, &error);
    }
    json_decref(reply);
}
