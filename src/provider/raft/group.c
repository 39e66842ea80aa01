/* The group that this node belongs to: learned from the log, and written there by the leader. */
#include "provider/raft/node.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is stored, against what is configured ---------------------------------------------- */

enum { LIST_BYTES = 512 };

static void list(char ret[LIST_BYTES], const struct raft_configuration *members)
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < members->count && used < LIST_BYTES; i++) {
        const struct raft_member *member = &members->members[i];
        int more = snprintf(ret + used, LIST_BYTES - used, "%s%s=%s", i > 0 ? ", " : "",
                            member->name, member->address);
        used += more > 0 ? (size_t)more : 0;
    }
}

static size_t count_missing(const struct raft_configuration *from,
                            const struct raft_configuration *in)
{
    size_t missing = 0;

    for (size_t i = 0; i < from->count; i++) {
        missing += identity_member(in, from->members[i].name) == NULL;
    }
    return missing;
}

static size_t count_moved(const struct raft_configuration *stored,
                          const struct raft_configuration *configured)
{
    size_t moved = 0;

    for (size_t i = 0; i < configured->count; i++) {
        const struct raft_member *member = identity_member(stored, configured->members[i].name);
        moved += member && strcmp(member->address, configured->members[i].address) != 0;
    }
    return moved;
}

int group_check(struct node *node, struct baton_error *reterr)
{
    const struct raft_configuration *stored = raft_get_configuration(node->raft);
    const struct raft_configuration *configured = &node->options.members;
    size_t unknown = count_missing(configured, stored);
    char stored_names[LIST_BYTES];
    char configured_names[LIST_BYTES];

    list(stored_names, stored);
    if (node->options.is_joining && node->greeting.founders != 0 &&
        identity_is_quorum(stored, node->id)) {
        return error_set(
            reterr, BATON_EUNSAFE,
            "data directory %s: it is to join a group, but has founded one, of %s, in which this "
            "node leads alone. To keep that group, leave out join; to join another, empty the "
            "directory first",
            node->options.data, stored_names);
    }
    if (node->options.is_joining || (unknown == 0 && count_missing(stored, configured) == 0 &&
                                     count_moved(stored, configured) == 0)) {
        return BATON_OK;
    }
    list(configured_names, configured);
    if (unknown > 0 && configured->count > 1 &&
        (identity_is_quorum(stored, node->id) || unknown + 1 >= configured->count)) {
        return error_set(
            reterr, BATON_EUNSAFE,
            "data directory %s: its group is of %s, but peer names %s: two groups of one name have "
            "two leaders. To keep the stored group, leave out peer and add the others with `baton "
            "join`; to join theirs or to found one anew (without its keys, from epoch 1), empty "
            "the directory first",
            node->options.data, stored_names[0] ? stored_names : "nobody", configured_names);
    }
    log_warning(node->logger, "members-differ", LOG_STR("stored", stored_names),
                LOG_STR("configured", configured_names),
                LOG_STR("text", "the stored ones count; they change by baton join and baton leave, "
                                "and an address by baton join --replace. Where a stored address "
                                "does not answer, the configured one is tried"));
    return BATON_OK;
}

/* ---- What a person should know of the members ------------------------------------------------ */

static void log_weights(const struct node *node, const struct raft_configuration *members)
{
    for (size_t i = 0; i < members->count && members->count > 1; i++) {
        if (identity_is_quorum(members, members->members[i].id)) {
            log_warning(node->logger, "weight-of-majority",
                        LOG_STR("member", members->members[i].name),
                        LOG_STR("text", "this member's vote alone is a quorum: while it is down "
                                        "no other member can lead; give it less "
                                        "weight"));
        }
    }
}

void group_log_members(struct node *node)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    bool is_in = raft_configuration_find(members, node->id) != NULL;
    char names[LIST_BYTES];

    list(names, members);
    log_notice(node->logger, "members", LOG_STR("members", names[0] ? names : "none"));
    log_weights(node, members);
    if (!is_in && node->options.is_joining && members->count == 0) {
        log_notice(node->logger, "waits-to-join",
                   LOG_STR("text", "to take this node in: `baton join` on a member, with this "
                                   "node's name and address"));
    } else if (!is_in && node->was_member) {
        log_warning(node->logger, "removed",
                    LOG_STR("text", "the group has removed this node, which may be stopped"));
    }
    node->was_member = is_in;
}

/* ---- The group's identity -------------------------------------------------------------------- */

static uint64_t birth_of(const struct node *node, raft_id id)
{
    const struct acquaintance *known = acquaintance_of(node, id);

    if (id == node->id) {
        return node->greeting.birth;
    }
    return known && known->has_greeted ? known->seen.birth : 0;
}

/* Whether a missing value was known and filled in. */
static bool fill_in(const struct node *node, struct raft_configuration *members)
{
    bool is_new = members->group == 0;

    if (is_new) {
        members->group = identity_draw();
    }
    for (size_t i = 0; i < members->count; i++) {
        struct raft_member *member = &members->members[i];
        if (member->birth == 0) {
            member->birth = birth_of(node, member->id);
            is_new |= member->birth != 0;
        }
    }
    return is_new;
}

static void pin(struct node *node)
{
    struct raft_configuration wanted;
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};

    if (raft_configuration_copy(&wanted, raft_get_configuration(node->raft)) != BATON_OK) {
        return; /* the next step retries */
    }
    node->is_pinning = false;
    if (fill_in(node, &wanted)) {
        node->is_pinning = node_step(node, &input) != BATON_OK;
    }
    raft_configuration_fini(&wanted);
}

static void learn(struct node *node, uint64_t group)
{
    struct baton_error error = {0};

    node->greeting.group = group;
    if (storage_set_group(node->storage, group, &error) != BATON_OK) {
        node_fail_storage(node, error.code, &error);
    }
}

void group_follow(struct node *node)
{
    uint64_t group = raft_get_configuration(node->raft)->group;
    bool is_unknown = node->greeting.group == 0 && group != 0;
    struct raft_status status;

    if (node->depth > 0 || node->is_closing || (!is_unknown && !node->is_pinning)) {
        return;
    }
    raft_get_status(node->raft, &status);
    if (status.is_changing) {
        return;
    }
    if (is_unknown) {
        learn(node, group);
    }
    if (node->is_pinning && node->published.held) {
        pin(node);
    }
}

void group_cast_out(struct node *node, const char *why, bool for_good)
{
    struct raft_input failed = {.type = RAFT_IN_STORAGE_FAILED};
    struct baton_error error = {0};
    struct baton_error ignored;

    if (node->is_cast_out) {
        return;
    }
    node->is_cast_out = true;
    (void)error_set(&error, BATON_EUNSAFE, "data directory %s: %s", node->options.data, why);
    log_error(node->logger, "cast-out", LOG_STR("error", error.message));
    if (for_good) {
        (void)storage_cast_out(node->storage, why,
                               &ignored); /* else the group refuses it once more */
    }
    node->depth++; /* leadership is lost before the reason is reported */
    (void)node_step(node, &failed);
    node->depth--;
    event_error(node, BATON_EUNSAFE, &error);
    event_deliver(node);
}
