/* A group of members of one provider, in this process, through the public interface. */
#ifndef TESTS_PROVIDER_GROUP_H
#define TESTS_PROVIDER_GROUP_H

#include "cmocka_all.h"
#include "lib/patience.h"

#include <baton.h>

enum { GROUP_NODES = 3 };

/* A provider as the suite sees it: one row of the table in providers.c. */
struct tested_provider {
    const char *name;
    /* Begins a fresh group; returns its own state, for the functions below. */
    void *(*begin)(void);
    /* The URL by which member `number` (from 0) takes part. */
    void (*url)(void *group, int number, char *ret, size_t ret_bytes);
    void (*end)(void *group);
    bool keeps_state;        /* when all members end */
    bool has_many_elections; /* in one open provider */
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
/* Opens all members, and waits until one of them leads. */
void group_open_all(struct group *group);

/* Waits until a member leads, checks that no other does, and returns its number. */
int group_leader(struct group *group);
/* The same, for another member than `other`. */
int group_leader_but(struct group *group, int other);
/* Checks that at most one member leads, in three readings. */
void group_check_one(struct group *group);

/* Sleeps a moment between two looks at a condition; the test fails when patience runs out. */
#define GROUP_AWAIT(condition)                                                                     \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            assert_true(looks_++ < PATIENCE_MS);                                                   \
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
