/* A call of a function that takes `failure`, a struct baton_error *: it must not fail. */
#ifndef TESTS_LIB_ASSERT_OK_H
#define TESTS_LIB_ASSERT_OK_H

#include "cmocka_all.h"

#include <baton/error.h>

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        struct baton_error failure_ = {0}, *failure = &failure_;                                   \
        if ((call) != BATON_OK) {                                                                  \
            fail_msg("%s: %s", #call, failure->message);                                           \
        }                                                                                          \
    } while (0)

#endif
