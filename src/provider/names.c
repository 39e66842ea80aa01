/* The names of the enumerators of <baton/types.h>. */
#include <baton/types.h>

const char *baton_role_name(enum baton_role role)
{
    switch (role) {
    case BATON_ROLE_FOLLOWER:
        return "follower";
    case BATON_ROLE_CANDIDATE:
        return "candidate";
    case BATON_ROLE_LEADER:
        return "leader";
    }
    return "unknown";
}

const char *baton_loss_name(enum baton_loss loss)
{
    switch (loss) {
#define NAME_OF_LOSS(symbol, name)                                                                 \
    case symbol:                                                                                   \
        return (name);
        BATON_LOSSES(NAME_OF_LOSS)
#undef NAME_OF_LOSS
    }
    return "unknown";
}

const char *baton_event_name(enum baton_event_type type)
{
    switch (type) {
#define NAME_OF_EVENT(symbol, bit, name)                                                           \
    case symbol:                                                                                   \
        return (name);
        BATON_EVENTS(NAME_OF_EVENT)
#undef NAME_OF_EVENT
    }
    return "unknown";
}

const char *baton_member_kind_name(enum baton_member_kind kind)
{
    switch (kind) {
    case BATON_MEMBER_VOTER:
        return "voter";
    case BATON_MEMBER_WITNESS:
        return "witness";
    case BATON_MEMBER_LEARNER:
        return "learner";
    }
    return "unknown";
}
