#include "cli/init.h"

#include "base/clock.h"
#include "options/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HELPERS_LIMIT_MS = 15000, /* the guardian's own limits, for CMD's end and for sending */
    LOOK_AGAIN_NS = 20000000,
};

/* The guardian and the supervisor call themselves so, see /proc/PID/comm. */
#define HELPER_NAME "baton"

/* ---- The helpers that finish after the elector ------------------------------------------------
 */

static bool is_helper(int pid)
{
    char path[64], name[sizeof(HELPER_NAME)] = "";
    ssize_t bytes;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    bytes = fd >= 0 ? read(fd, name, strlen(HELPER_NAME)) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return bytes > 0 && strcmp(name, HELPER_NAME) == 0;
}

/* Without a list of children any child may be a helper. */
static bool has_any_child(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool has_helpers(void)
{
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[512];
    bool has = list < 0 && has_any_child();
    int pid = 0;
    ssize_t bytes;

    while (list >= 0 && !has && (bytes = read(list, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < bytes && !has; i++) {
            bool is_digit = text[i] >= '0' && text[i] <= '9';
            has = !is_digit && pid > 0 && is_helper(pid);
            pid = is_digit ? pid * 10 + (text[i] - '0') : 0;
        }
    }
    if (list >= 0) {
        (void)close(list);
    }
    return has;
}

/* ---- Process 1 ------------------------------------------------------------------------------- */

/* Takes the exit statuses of all dead children. True: the elector is one of them. */
static bool reap(pid_t elector, int *ret_status)
{
    bool is_over = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == elector) {
            is_over = true;
            *ret_status = status;
        }
    }
    return is_over;
}

/* The terminal sends its signals to the elector, too; only that of a hang-up goes to the session's
 * leader alone. */
static bool has_reached_elector(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && info->si_signo != SIGHUP;
}

static int await_elector(pid_t elector, const sigset_t *all)
{
    siginfo_t info;
    int status = 0;

    for (;;) {
        int number = sigwaitinfo(all, &info);
        if (number == SIGCHLD && reap(elector, &status)) {
            return status;
        }
        if (number > 0 && number != SIGCHLD && !has_reached_elector(&info)) {
            (void)kill(elector, number);
        }
    }
}

/* When process 1 ends, the kernel kills the guardian: it must have sent its certificate by then. */
static void await_helpers(const sigset_t *all)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
    instant limit = instant_add(clock_now(), SPAN_MS(HELPERS_LIMIT_MS));
    int ignored;

    while (has_helpers() && instant_before(clock_now(), limit)) {
        (void)sigtimedwait(all, NULL, &pause);
        (void)reap(0, &ignored);
    }
}

/* Measures that may fail without harm. */
static void harden(void)
{
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (score >= 0) {
        (void)!write(score, "-900", 4); /* fails without privilege */
        (void)close(score);
    }
    (void)prctl(PR_SET_NAME, "baton-init");
    (void)prctl(PR_SET_DUMPABLE, 0); /* CMD has the same user, and must not read our passwords */
}

static _Noreturn void serve(pid_t elector, const sigset_t *all)
{
    int status;

    harden();
    status = await_elector(elector, all);
    await_helpers(all);
    _exit(WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status));
}

/* ---- Entering -------------------------------------------------------------------------------- */

static bool is_wanted(const struct options *options)
{
    const char *init = options_text(options, "init");

    return strcmp(init, "on") == 0 || (strcmp(init, "auto") == 0 && getpid() == 1);
}

/* A process 1 that was forced outside a namespace can be killed: the elector dies with it. */
static void begin_elector(pid_t parent, const sigset_t *before)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_SIGNAL + SIGKILL);
    }
    (void)sigprocmask(SIG_SETMASK, before, NULL);
}

int init_enter(const struct options *options, struct baton_error *reterr)
{
    sigset_t all, before;
    pid_t parent = getpid(), elector;

    if (!is_wanted(options)) {
        return 0;
    }
    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, exit statuses would be lost */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* process 1 is one anyway */
    elector = fork();
    if (elector > 0) {
        serve(elector, &all);
    }
    if (elector == 0) {
        begin_elector(parent, &before);
        return 0;
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return error_set(reterr, BATON_EIO, "--init: no process for the elector: %s", strerror(errno));
}
