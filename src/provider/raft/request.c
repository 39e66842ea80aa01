/* What an operator asks of the group: changes of membership. Done by the leader; any other node
 * hands the request on and passes the answer back.
 *
 *   REQUEST  {"do":"add","name":…,"address":…,"kind":…,"weight":…,"priority":…}
 *            {"do":"remove","name":…}
 *   REPLY    {"code":0} or {"code":-13,"error":"…"}
 */
#include "provider/raft/node.h"

#include <stdlib.h>
#include <string.h>

static int copy_without(struct raft_configuration *ret, const struct raft_configuration *now,
                        raft_id without, size_t room)
{
    struct raft_configuration wanted = {0};

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

static int propose(struct node *node, struct raft_configuration *wanted, struct baton_error *reterr)
{
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = wanted};
    int r = raft_configuration_normalise(wanted, reterr);

    if (r == BATON_OK && (r = node_step(node, &input)) != BATON_OK) {
        (void)error_set(reterr, r, "change of members: %s",
                        r == BATON_EBUSY ? "another one is under way; try again in a moment"
                                         : baton_strerror(r));
    }
    raft_configuration_fini(wanted);
    return r;
}

static int add(struct node *node, const json_t *request, struct baton_error *reterr)
{
    const char *name = "";
    const char *address = "";
    const char *kind = "voter";
    int weight = 1;
    int priority = 0;
    char text[RAFT_NAME_MAX + RAFT_ADDRESS_MAX + 64];
    struct raft_configuration wanted;
    struct raft_member member;
    int r;

    if (json_unpack((json_t *)request, "{s:s,s:s,s?s,s?i,s?i}", "name", &name, "address", &address,
                    "kind", &kind, "weight", &weight, "priority", &priority) != 0) {
        return error_set(reterr, BATON_EINVAL, "a member needs a name and an address");
    }
    if ((size_t)snprintf(text, sizeof(text), "%s@%s*%d^%d/%s", name, address, weight, priority,
                         kind) >= sizeof(text)) {
        return error_set(reterr, BATON_ETOOBIG, "member \"%.40s…\": too long", name);
    }
    r = raft_options_parse_peer(&member, text, reterr);
    if (r != BATON_OK) {
        return r;
    }
    r = copy_without(&wanted, raft_get_configuration(node->raft), member.id, 1);
    if (r != BATON_OK) {
        return error_set(reterr, r, "out of memory for the members");
    }
    wanted.members[wanted.count++] = member;
    return propose(node, &wanted, reterr);
}

static int take_out(struct node *node, const json_t *request, struct baton_error *reterr)
{
    const char *name = json_string_value(json_object_get(request, "name"));
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    struct raft_configuration wanted;
    int r;

    if (!name || !raft_configuration_find(now, raft_id_of(name))) {
        return error_set(reterr, BATON_ENOENT, "member \"%s\": not in the group", name ? name : "");
    }
    r = copy_without(&wanted, now, raft_id_of(name), 1);
    return r == BATON_OK ? propose(node, &wanted, reterr)
                         : error_set(reterr, r, "out of memory for the members");
}

static int carry_out(struct node *node, const json_t *request, struct baton_error *reterr)
{
    const char *what = json_string_value(json_object_get(request, "do"));

    if (what && strcmp(what, "add") == 0) {
        return add(node, request, reterr);
    }
    if (what && strcmp(what, "remove") == 0) {
        return take_out(node, request, reterr);
    }
    return error_set(reterr, BATON_EINVAL, "request \"%.32s\": not known", what ? what : "");
}

/* ---- On its way to the leader ---------------------------------------------------------------- */

static void finish(struct node_request *request, int code, const struct baton_error *error)
{
    request->done(request->userdata, code, error);
    free(request);
}

void request_fail_all(struct node *node, int code)
{
    struct baton_error error;

    (void)error_set(&error, code, "request: %s", baton_strerror(code));
    while (node->requests) {
        struct node_request *request = node->requests;
        node->requests = request->next;
        finish(request, code, &error);
    }
}

static int hand_on(struct node *node, raft_id leader, const char *text, provider_done_cb done,
                   void *userdata, struct baton_error *reterr)
{
    struct node_request *request;
    size_t waiting = 0;

    for (request = node->requests; request; request = request->next) {
        waiting++;
    }
    if (leader == RAFT_NOBODY || !connection_is_up(node, leader)) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "the group has no leader at the moment; try again when it has");
    }
    request = waiting < NODE_REQUESTS_MAX ? calloc(1, sizeof(*request)) : NULL;
    if (!request) {
        return error_set(reterr, BATON_EBUSY, "too many requests wait for the leader");
    }
    *request = (struct node_request){
        .id = ++node->next_request, .done = done, .userdata = userdata, .next = node->requests};
    node->requests = request;
    connection_send_text(node, leader, FRAME_REQUEST, request->id, text);
    return BATON_OK;
}

int request_operate(struct node *node, const char *what, const struct baton_member *member,
                    provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct raft_status status;
    json_t *request =
        json_pack("{s:s,s:s,s:s,s:s,s:i,s:i}", "do", what, "name", member->name, "address",
                  member->address, "kind", baton_member_kind_name(member->kind), "weight",
                  (int)member->weight, "priority", (int)member->priority);
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    int r = BATON_ENOMEM;

    if (!text) {
        (void)error_set(reterr, r, "out of memory for a request");
    } else {
        raft_get_status(node->raft, &status);
        if (status.role == RAFT_LEADER) {
            struct baton_error error = {0};
            done(userdata, carry_out(node, request, &error), &error);
            r = BATON_OK;
        } else {
            r = hand_on(node, status.leader, text, done, userdata, reterr);
        }
    }
    free(text);
    json_decref(request);
    return r;
}

/* ---- At the leader, and back ----------------------------------------------------------------- */

void request_receive(struct node *node, raft_id from, const struct frame *frame)
{
    json_t *request = json_loadb(frame->text, frame->text_bytes, JSON_REJECT_DUPLICATES, NULL);
    struct baton_error error = {0};
    int code = carry_out(node, request, &error);
    json_t *reply = json_pack("{s:i,s:s}", "code", code, "error", error.message);
    char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

    if (text) {
        connection_send_text(node, from, FRAME_REPLY, frame->request_id, text);
    }
    free(text);
    json_decref(reply);
    json_decref(request);
}

void request_reply(struct node *node, const struct frame *frame)
{
    json_t *reply = json_loadb(frame->text, frame->text_bytes, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(reply, "error"));
    int code = (int)json_integer_value(json_object_get(reply, "code"));
    struct baton_error error = {0};

    for (struct node_request **at = &node->requests; *at; at = &(*at)->next) {
        if ((*at)->id == frame->request_id) {
            struct node_request *request = *at;
            *at = request->next;
            (void)error_set(&error, reply ? code : BATON_EPROTO, "%s",
                            text ? text : "the leader's answer makes no sense");
            finish(request, error.code, &error);
            break;
        }
    }
    json_decref(reply);
}
