/* The group: its members, and its changes. */
#include "member/members.h"
#include "api/perform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What a member says of itself ------------------------------------------------------------ */

struct metadata_call {
    struct call base;
    struct baton_election *election;
    char *metadata; /* or NULL */
};

static void drop_metadata(struct call *base)
{
    free(((struct metadata_call *)base)->metadata);
}

static void run_metadata(struct call *base)
{
    struct metadata_call *call = (struct metadata_call *)base;
    struct baton_error error = {0};
    int code = members_set_metadata(part_of(call->election), call->metadata, &error);

    call_finish(base, code, &error);
}

int baton_set_metadata(struct baton_election *election, const char *metadata,
                       struct baton_error *reterr)
{
    struct metadata_call *call;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_metadata);
    if (!call || (metadata && !(call->metadata = strdup(metadata)))) {
        if (call) {
            call_unref(&call->base);
        }
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         baton_election_name(election));
    }
    call->base.drop = drop_metadata;
    call->election = election;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct members_call {
    struct call base;
    struct baton_election *election;
    struct baton_member *members;
    size_t count;
};

static void drop_members(struct call *base)
{
    free(((struct members_call *)base)->members);
}

/* One block: the members, then their metadata. */
static struct baton_member *copy_members(const struct baton_member *members, size_t count)
{
    size_t bytes = (count + 1) * sizeof(*members);
    struct baton_member *copy;
    char *space;

    for (size_t i = 0; i < count; i++) {
        bytes += members[i].metadata ? strlen(members[i].metadata) + 1 : 0;
    }
    copy = calloc(1, bytes);
    if (!copy) {
        return NULL;
    }
    space = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = members[i];
        if (members[i].metadata) {
            size_t length = strlen(members[i].metadata) + 1;
            copy[i].metadata = memcpy(space, members[i].metadata, length);
            space += length;
        }
    }
    return copy;
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct members_call *call = userdata;

    if (code == BATON_OK) {
        call->members = copy_members(members, count);
        call->count = count;
        code = call->members ? BATON_OK : BATON_ENOMEM;
    }
    call_finish(&call->base, code, NULL);
}

static void run_members(struct call *base)
{
    struct members_call *call = (struct members_call *)base;
    struct baton_error error = {0};
    int code = members_list(part_of(call->election), on_members, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

int baton_members(struct baton_election *election, struct baton_member **ret, size_t *ret_count,
                  struct baton_error *reterr)
{
    struct members_call *call;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_members);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "members: out of memory");
    }
    call->base.drop = drop_members;
    call->election = election;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_EDEADLK, reterr);
    if (code == BATON_OK) {
        *ret = call->members;
        *ret_count = call->count;
        call->members = NULL;
    }
    call_unref(&call->base);
    return code;
}

void baton_members_free(struct baton_member *members)
{
    free(members);
}

/* ---- Changing -------------------------------------------------------------------------------- */

struct change_call {
    struct call base;
    struct baton_election *election;
    struct baton_member member;
    instant deadline;
    bool is_add;
};

static void run_change(struct call *base)
{
    struct change_call *call = (struct change_call *)base;
    struct election *part = part_of(call->election);
    struct baton_error error = {0};
    int code =
        call->is_add
            ? members_add(part, &call->member, false, call->deadline, call_done, call, &error)
            : members_remove(part, call->member.id, call->deadline, call_done, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static int change(struct baton_election *election, const struct baton_member *member, bool is_add,
                  int64_t timeout_ms, struct baton_error *reterr)
{
    struct change_call *call;
    int code = check_owner(election->baton, reterr);

    if (code == BATON_OK && on_loop(election->baton)) {
        code = perform_refuse(reterr); /* before it begins: the result could not be returned */
    }
    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_change);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "change of members: out of memory");
    }
    call->election = election;
    call->member = *member;
    call->member.metadata = NULL;
    call->is_add = is_add;
    call->deadline = perform_deadline(timeout_ms);
    code = perform(&call->base, perform_and_a_turn(timeout_ms), BATON_EDEADLK, reterr);
    call_unref(&call->base);
    return code;
}

int baton_member_add(struct baton_election *election, const struct baton_member *member,
                     int64_t timeout_ms, struct baton_error *reterr)
{
    return change(election, member, true, timeout_ms, reterr);
}

int baton_member_remove(struct baton_election *election, const char *id, int64_t timeout_ms,
                        struct baton_error *reterr)
{
    struct baton_member member = {.id = ""};

    if (!id[0] || strlen(id) >= sizeof(member.id)) {
        return error_set(reterr, BATON_EINVAL, "member \"%.40s\": must have 1 to %d bytes", id,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(member.id, sizeof(member.id), "%s", id);
    return change(election, &member, false, timeout_ms, reterr);
}
