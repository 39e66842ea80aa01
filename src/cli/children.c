#include "cli/children.h"

#include "guardian/victims.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { PASSES_MAX = 64 };

/* Counts in *ret_found the children that were there, and returns how many of them are left. */
static int kill_once(FILE *children, children_spares_cb *spares, const void *userdata,
                     int *ret_found)
{
    int left = 0, pid;

    *ret_found = 0;
    while (fscanf(children, "%d", &pid) == 1) {
        if (!spares || !spares(userdata, (pid_t)pid)) {
            (void)kill((pid_t)pid, SIGKILL);
            left += waitpid((pid_t)pid, NULL, WNOHANG | __WALL) == pid ? 0 : 1;
            ++*ret_found;
        }
    }
    return left;
}

/* A child whose status is taken may have left children of its own, so a pass that found none is the
 * last one. */
int children_kill(children_spares_cb *spares, const void *userdata)
{
    int found = 1, left = 0;

    if (!victims_has_proc()) {
        return -1;
    }
    for (int i = 0; i < PASSES_MAX && found > 0 && left == 0; i++) {
        FILE *children = fopen("/proc/thread-self/children", "re");
        if (children == NULL) {
            return -1;
        }
        left = kill_once(children, spares, userdata, &found);
        (void)fclose(children);
    }
    return left > 0 ? left : found;
}

bool children_are_left(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}
