/* A call of a function that takes `failure`, a struct baton_error *: it must not fail, or must fail
 * with that code and a message that says so. */
#ifndef TESTS_LIB_ASSERT_OK_H
#define TESTS_LIB_ASSERT_OK_H

#include "cmocka_all.h"

#include <baton/error.h>

#include <string.h>

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        struct baton_error failure_ = {0}, *failure = &failure_;                                   \
        if ((call) != BATON_OK) {                                                                  \
            fail_msg("%s: %s", #call, failure->message);                                           \
        }                                                                                          \
    } while (0)

#define ASSERT_FAILS(call, wanted, says)                                                           \
    do {                                                                                           \
        struct baton_error failure_ = {0}, *failure = &failure_;                                   \
        int code_ = (call);                                                                        \
        if (code_ != (wanted) || failure->code != code_ ||                                         \
            strstr(failure->message, (says)) == NULL) {                                            \
            fail_msg("%s: %d, %d, %s; not %d, %s", #call, code_, failure->code, failure->message,  \
                     (int)(wanted), (says));                                                       \
        }                                                                                          \
    } while (0)

#endif
