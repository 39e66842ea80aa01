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

#endif
