/* A member that is to join, as an operator names it: NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]. */
#ifndef MEMBER_ADDITION_H
#define MEMBER_ADDITION_H

#include "base/error.h"

#include <baton/types.h>

struct addition {
    struct baton_member member;
    bool has_kind, has_weight, has_priority; /* given: others stay, or are the default */
};

/* BATON_EINVAL names the part that is wrong. */
int addition_parse(const char *text, struct addition *ret, struct baton_error *reterr);

/* A provider_members_cb with the addition for userdata: what is not given stays as the group has it
 * of the member of this name. But a learner of which nothing is given becomes a voter: it is left
 * from a join that was interrupted, which the same command completes. */
void addition_keep(void *userdata, int code, const struct baton_member *members, size_t count);

#endif
