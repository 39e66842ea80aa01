/* CMD of `baton run` and `baton once`: it and its offspring never outlive this process.
 *
 * The child gets a process group of its own, and SIGKILL from the kernel when its parent dies; what
 * it starts is kept track of by supervise.h. Its end is seen through its pidfd, on the loop, and
 * whoever is left is killed then.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/clock.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct child; /* opaque */
struct supervise;

struct child_config {
    uv_loop_t *loop;
    struct supervise *supervise; /* initialised; outlives the child */
    char *const *argv;           /* ended by NULL; found through PATH */
    const char *node;            /* BATON_NODE */
    const char *election;
    uint64_t epoch;
    /* It is dead: exit_code is its own, or 128 + the signal's number. The child is freed after the
     * call and must not be touched any more. */
    void (*on_exit)(void *userdata, int exit_code);
    void *userdata;
};

/* BATON_ENOENT: no such program; BATON_EINVAL: it cannot be run; BATON_EIO: the system refused. */
int child_start(struct child **ret, const struct child_config *config, struct baton_error *reterr);

pid_t child_pid(const struct child *child);

/* To the whole group. */
void child_signal(struct child *child, int number);
/* SIGTERM and SIGCONT now, SIGKILL at `kill_at`; an earlier limit replaces a later one. */
void child_stop(struct child *child, instant kill_at);
/* SIGKILL at `kill_at`, and no SIGTERM before it. */
void child_limit(struct child *child, instant kill_at);
void child_kill(struct child *child);

#endif
