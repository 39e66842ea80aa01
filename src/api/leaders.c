#include "api/leaders.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

struct leader {
    UT_hash_handle hh; /* by id */
    struct baton_member member;
    unsigned references;
    bool is_superseded; /* not in the table any more */
};

static bool is_same(const struct baton_member *a, const struct baton_member *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->address, b->address) == 0 && a->kind == b->kind && a->role == b->role &&
           a->weight == b->weight && a->priority == b->priority && a->is_alive == b->is_alive &&
           a->is_self == b->is_self && a->is_cordoned == b->is_cordoned;
}

static struct leader *leader_new(const struct baton_member *member)
{
    struct leader *leader = calloc(1, sizeof(*leader));

    if (leader) {
        leader->member = *member;
        leader->member.metadata = NULL;
    }
    return leader;
}

struct leader *leader_get_locked(struct baton *baton, const struct baton_member *member)
{
    struct leader *leader;
    struct leader *before;

    HASH_FIND_STR(baton->leaders, member->id, before);
    if (before && is_same(&before->member, member)) {
        before->references++;
        return before;
    }
    leader = leader_new(member);
    if (!leader) {
        return NULL;
    }
    if (before) {
        HASH_DEL(baton->leaders, before);
        before->is_superseded = true;
    }
    HASH_ADD_STR(baton->leaders, member.id, leader);
    leader->is_superseded = !leader->hh.tbl; /* no memory for the table: it is not shared */
    leader->references = 1;
    return leader;
}

void leader_drop_locked(struct baton *baton, struct leader *leader)
{
    if (leader && --leader->references == 0) {
        if (!leader->is_superseded) {
            HASH_DEL(baton->leaders, leader);
        }
        free(leader);
    }
}

const struct baton_member *leader_member(const struct leader *leader)
{
    return &leader->member;
}
