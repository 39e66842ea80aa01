/* A group of members of one provider, in this process, through the public interface. */
#ifndef TESTS_PROVIDER_GROUP_H
#define TESTS_PROVIDER_GROUP_H

#include "cmocka_all.h"

#include <baton.h>

enum { GROUP_NODES = 3, GROUP_PATIENCE_MS = 60000 };

/* What the suite must know of a provider: one line in the table of providers.c. */
struct tested_provider {
    const char *name;
    /* Begins a fresh group; returns its own state, for the functions below. */
    void *(*begin)(void);
    /* The URL by which member `number` (from 0) takes part. */
    void (*url)(void *group, int number, char *ret, size_t ret_bytes);
    void (*end)(void *group);
    bool has_state;
    bool keeps_state; /* when all members end */
    bool has_channels;
    bool has_many_elections; /* in one open provider */
    bool has_metadata;       /* that can change while a member campaigns */
};

extern const struct tested_provider tested_providers[]; /* ends with a NULL name */

struct member {
    struct baton *baton;
    struct baton_election *election;
    char node[BATON_NAME_MAX];
};

struct group {
    const struct tested_provider *provider;
    void *own;
    struct member members[GROUP_NODES];
};

/* Opens member `number`; campaigns in "race" unless `campaigns` is false. */
void group_open(struct group *group, int number, bool campaigns, bool observes);
void group_close(struct group *group, int number);
/* All members open and one of them leads. */
void group_open_all(struct group *group);

/* The number of the member that leads; waits until one does, and checks that no other does. */
int group_leader(struct group *group);
/* The same, but not `other`. */
int group_leader_but(struct group *group, int other);
/* Never two at one instant, as far as three readings in a row can tell. */
void group_check_one(struct group *group);

/* Sleeps a moment between two looks at a condition; the test fails when patience runs out. */
#define GROUP_AWAIT(condition)                                                                     \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            assert_true(looks_++ < GROUP_PATIENCE_MS);                                             \
            group_pause();                                                                         \
        }                                                                                          \
    } while (0)
void group_pause(void); /* 1 ms */

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        struct baton_error failure_ = {0};                                                         \
        struct baton_error *failure = &failure_;                                                   \
        int code_ = (call);                                                                        \
        if (code_ != BATON_OK) {                                                                   \
            fail_msg("%s: %d %s", #call, code_, failure->message);                                 \
        }                                                                                          \
    } while (0)

#endif
