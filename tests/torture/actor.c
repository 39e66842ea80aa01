/* The program that `make torture` lets `baton run` start: it acts as the leader, and records
 * when (acts.h).
 *
 *   baton_actor KIND RECORDS STORE
 *
 * KIND says which process acts, joined by '+':
 *   plain      the program itself
 *   setuid     the program itself, as another user, so that it has no parent-death signal any more
 *   daemon     a worker in a session of its own, whose parent has ended
 *   opaque     its environment and descriptors cannot be read by an unprivileged process
 *   forks      the program and two children
 *   moves      a process that leaves its cgroup for the topmost one
 *   stubborn   SIGTERM is ignored
 */
#include "acts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { OTHER_USER = 61999, CHILDREN = 2 };

static bool is_kind(const char *kinds, const char *kind)
{
    return strstr(kinds, kind) != NULL;
}

static _Noreturn void act(void)
{
    for (;;) {
        acts_act(acts_clock());
        acts_rest();
    }
}

/* Becomes a process of its own session whose parent has ended; the program itself only waits. */
static void daemonize(void)
{
    pid_t middle = fork();
    if (middle < 0) {
        exit(1);
    }
    if (middle > 0) {
        for (;;) {
            (void)pause();
        }
    }
    (void)setsid();
    if (fork() != 0) {
        _exit(0);
    }
}

/* As `systemd-run --scope` and container engines do it. Where it is not allowed, it stays. */
static void move_to_top_cgroup(void)
{
    static const char *const paths[] = {"/sys/fs/cgroup/cgroup.procs",
                                        "/sys/fs/cgroup/unified/cgroup.procs"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!write(fd, "0", 1);
            (void)close(fd);
        }
    }
}

static void become_other_user(void)
{
    if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0) {
        perror("setuid");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *epoch = getenv("BATON_EPOCH");
    const char *node = getenv("BATON_NODE");
    if (argc != 4 || !epoch || !node) {
        (void)fprintf(stderr, "usage: BATON_EPOCH=N BATON_NODE=NAME %s KIND RECORDS STORE\n",
                      argv[0]);
        return 64;
    }
    const char *kinds = argv[1];
    acts_open(argv[2], argv[3], node);
    if (is_kind(kinds, "stubborn")) {
        (void)signal(SIGTERM, SIG_IGN);
    }
    if (is_kind(kinds, "moves")) {
        move_to_top_cgroup();
    }
    if (is_kind(kinds, "setuid")) {
        become_other_user();
    }
    if (is_kind(kinds, "opaque")) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    if (is_kind(kinds, "daemon")) {
        daemonize();
    }
    acts_begin(strtoull(epoch, NULL, 10));
    for (int i = 0; is_kind(kinds, "forks") && i < CHILDREN; i++) {
        if (fork() == 0) {
            acts_inherit();
            act();
        }
    }
    act();
}
