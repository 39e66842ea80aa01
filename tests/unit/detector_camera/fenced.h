/* Checks behind fences. No fence can be taken down again, so each runs in a process of its own;
 * what fails there may not be told: it is the process's exit status. */
#ifndef TESTS_DETECTOR_CAMERA_FENCED_H
#define TESTS_DETECTOR_CAMERA_FENCED_H

#include "cmocka_all.h"

#include <sys/wait.h>
#include <unistd.h>

enum { FENCES_FAILED = 255 };

/* Returns the line, as a status that is neither 0 nor FENCES_FAILED. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__ % 254 + 1;                                                             \
        }                                                                                          \
    } while (0)

/* Runs `body` in a process in which `set_up` returned 0. Returns 0, the line that failed, or a
 * signal below 0. */
static inline int run_fenced(int (*set_up)(void), int (*body)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        _exit(set_up() != 0 ? FENCES_FAILED : body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

struct fenced {
    int (*set_up)(void), (*body)(void);
    int end;
};

static inline void run_fenced_test(void **state)
{
    const struct fenced *fenced = *state;

    assert_int_equal(run_fenced(fenced->set_up, fenced->body), fenced->end);
}

/* The test of that body, which ends so behind what `set_up` begins. */
#define FENCED(body, set_up, end)                                                                  \
    {                                                                                              \
        .name = #body, .test_func = run_fenced_test, .initial_state = &(struct fenced)             \
        {                                                                                          \
            (set_up), (body), (end)                                                                \
        }                                                                                          \
    }

#endif
