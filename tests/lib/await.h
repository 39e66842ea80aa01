/* Waiting in tests that run a loop of their own, until a condition holds. */
#ifndef TESTS_LIB_AWAIT_H
#define TESTS_LIB_AWAIT_H

#include "base/clock.h"
#include "lib/assert_ok.h"
#include "lib/patience.h"

#include <uv.h>

#define AWAIT_ON(loop, condition)                                                                  \
    do {                                                                                           \
        instant until_ = instant_add(clock_now(), SPAN_S(PATIENCE_S));                             \
        while (!(condition)) {                                                                     \
            if (!instant_before(clock_now(), until_)) {                                            \
                fail_msg("not in time: %s", #condition);                                           \
            }                                                                                      \
            (void)uv_run(&(loop), UV_RUN_ONCE);                                                    \
        }                                                                                          \
    } while (0)

/* With the variable `loop`. */
#define AWAIT(condition) AWAIT_ON(loop, condition)

#endif
