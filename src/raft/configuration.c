/* A configuration by itself: copies, look-ups and checks. */
#include "raft/configuration.h"

#include <stdlib.h>
#include <string.h>

int raft_configuration_copy(struct raft_configuration *ret, const struct raft_configuration *from)
{
    struct raft_member *members = calloc(from->count + 1, sizeof(*members));
    if (!members) {
        return BATON_ENOMEM;
    }
    if (from->count > 0) {
        memcpy(members, from->members, from->count * sizeof(*members));
    }
    *ret = (struct raft_configuration){
        .group = from->group, .members = members, .count = from->count, .is_joint = from->is_joint};
    return BATON_OK;
}

void raft_configuration_fini(struct raft_configuration *configuration)
{
    free(configuration->members);
    *configuration = (struct raft_configuration){0};
}

const struct raft_member *raft_configuration_find(const struct raft_configuration *configuration,
                                                  raft_id id)
{
    for (size_t i = 0; i < configuration->count; i++) {
        if (configuration->members[i].id == id) {
            return &configuration->members[i];
        }
    }
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    const struct raft_member *x = a;
    const struct raft_member *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int check_member(const struct raft_member *member, struct baton_error *reterr)
{
    if (member->id == RAFT_NOBODY) {
        return error_set(reterr, BATON_EINVAL, "member \"%.*s\": its id is 0, which is nobody's",
                         RAFT_NAME_MAX, member->name);
    }
    if (!memchr(member->name, '\0', RAFT_NAME_MAX) ||
        !memchr(member->address, '\0', RAFT_ADDRESS_MAX)) {
        return error_set(reterr, BATON_EINVAL, "member %llx: its name or address is too long",
                         (unsigned long long)member->id);
    }
    if (member->kind == RAFT_LEARNER && member->weight > 0) {
        return error_set(reterr, BATON_EINVAL,
                         "member \"%s\": a learner does not vote, its weight must be 0, not %u",
                         member->name, member->weight);
    }
    return BATON_OK;
}

/* A member that leaves may have the name of the one that takes its place. */
static bool has_namesake_before(const struct raft_configuration *configuration, size_t index)
{
    const struct raft_member *member = &configuration->members[index];

    for (size_t i = 0; i < index && member->name[0] && !member->is_leaving; i++) {
        if (!configuration->members[i].is_leaving &&
            strcmp(configuration->members[i].name, member->name) == 0) {
            return true;
        }
    }
    return false;
}

int raft_configuration_normalise(struct raft_configuration *configuration,
                                 struct baton_error *reterr)
{
    uint64_t weight = 0;
    bool may_lead = false;

    if (configuration->count > RAFT_MEMBERS_MAX) {
        return error_set(reterr, BATON_EINVAL, "%zu members: at most %d", configuration->count,
                         RAFT_MEMBERS_MAX);
    }
    if (configuration->count > 0) {
        qsort(configuration->members, configuration->count, sizeof(*configuration->members), by_id);
    }
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        int r = check_member(member, reterr);
        if (r != BATON_OK) {
            return r;
        }
        if (i > 0 && member[-1].id == member->id) {
            return error_set(reterr, BATON_EINVAL, "members \"%s\" and \"%s\" have one id",
                             member[-1].name, member->name);
        }
        if (has_namesake_before(configuration, i)) {
            return error_set(reterr, BATON_EINVAL, "member \"%s\" is listed twice", member->name);
        }
        weight += member->is_leaving ? 0 : member->weight;
        may_lead |= !member->is_leaving && member->kind == RAFT_VOTER && member->weight > 0;
    }
    if (weight == 0) {
        return error_set(reterr, BATON_EINVAL, "nobody votes: the sum of the weights is 0");
    }
    if (!may_lead) {
        return error_set(reterr, BATON_EINVAL,
                         "nobody may lead: there is no voter with a weight but witnesses");
    }
    return BATON_OK;
}

static bool somebody_leads(const struct raft_configuration *configuration)
{
    uint64_t old_weight = 0;
    bool may_lead = false;

    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        may_lead |= member->kind == RAFT_VOTER && member->weight > 0 && !member->is_leaving;
        old_weight += member->old_weight;
    }
    return may_lead && (old_weight > 0 || !configuration->is_joint);
}

bool configuration_is_sane(const struct raft_configuration *configuration)
{
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        if (check_member(member, NULL) != BATON_OK || (i > 0 && member[-1].id >= member->id)) {
            return false;
        }
    }
    return configuration->count <= RAFT_MEMBERS_MAX && somebody_leads(configuration);
}
