/* Waiting in tests that run nodes on a loop of their own, the variable `loop`. */
#ifndef TESTS_INTEGRATION_RAFT_AWAIT_H
#define TESTS_INTEGRATION_RAFT_AWAIT_H

#include "base/clock.h"
#include "cmocka_all.h"
#include "lib/patience.h"

#include <uv.h>

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        instant until_ = instant_add(clock_now(), SPAN_S(PATIENCE_S));                             \
        while (!(condition)) {                                                                     \
            assert_true(instant_before(clock_now(), until_));                                      \
            (void)uv_run(&loop, UV_RUN_ONCE);                                                      \
        }                                                                                          \
    } while (0)

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        struct baton_error failure_ = {0}, *failure = &failure_;                                   \
        if ((call) != BATON_OK) {                                                                  \
            fail_msg("%s: %s", #call, failure->message);                                           \
        }                                                                                          \
    } while (0)

#endif
