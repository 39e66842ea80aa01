/* The rules that every provider must keep, in parts: test_conformance.c runs them all for one
 * provider. */
#ifndef TESTS_PROVIDER_CONFORMANCE_H
#define TESTS_PROVIDER_CONFORMANCE_H

#include "provider/group.h"

extern const struct tested_provider *tested;

/* Each test has its own group, which has no members yet. */
int conformance_set_up(void **state);
int conformance_tear_down(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, conformance_set_up, conformance_tear_down)

/* How many tests fail. */
int conformance_listening(void);
int conformance_revisions(void);
int conformance_state(void);
int conformance_stopping(void);
int conformance_work(void);

#endif
