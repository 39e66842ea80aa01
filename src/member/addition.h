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

/* A provider_members_cb; userdata is the addition. If the group has a member of this name, its
 * kind, weight and priority stay where the addition gives none. But a learner for which none of
 * them is given becomes a voter: it was left by an interrupted join, which the same command
 * completes. */
void addition_keep(void *userdata, int code, const struct baton_member *members, size_t count);

#endif
