/* Checks behind fences. No fence can be taken down again, so each runs in a process of its own;
 * what fails there may not be told: it is the process's exit status. */
#ifndef TESTS_DETECTOR_CAMERA_FENCED_H
#define TESTS_DETECTOR_CAMERA_FENCED_H

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
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

static inline struct sockaddr_in at(const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    (void)inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

/* 0 or the errno. */
static inline int dial(int type, const void *address, socklen_t bytes)
{
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    int error = connect(fd, address, bytes) == 0 ? 0 : errno;

    (void)close(fd);
    return error;
}

static inline int dial_at(int type, const char *host, uint16_t port)
{
    struct sockaddr_in address = at(host, port);

    return dial(type, &address, sizeof(address));
}

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
