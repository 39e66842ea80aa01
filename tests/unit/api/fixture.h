/* What the tests of <baton.h> share: members of one memory: provider, and waiting. */
#ifndef TESTS_UNIT_API_FIXTURE_H
#define TESTS_UNIT_API_FIXTURE_H

#include <baton.h>
#include <stdatomic.h>

void pause_a_moment(void);
/* Waits until the number is at least `least`. */
void await(const atomic_int *number, int least);
/* Each fails the test, unless it succeeds. */
struct baton *open_memory(const char *node);
struct baton_election *campaign(struct baton *baton, const char *name);
struct baton_election *lead(struct baton *baton, const char *name);
/* A listener that counts its calls in the atomic_int of `userdata`. */
void count(struct baton_election *election, const struct baton_event *event, void *userdata);
/* Dispatches until a listener was called. */
void dispatch_one(struct baton *baton);

#endif
