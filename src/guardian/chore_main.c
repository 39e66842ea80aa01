/* The runner of a chore: see chore.h. */
#include "guardian/chore.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 1000 }; /* poll() does not count the time asleep, and the limit does */

static _Noreturn void become(const char *command)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the runner be killed */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)close(CHORE_FD_REPORT);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execl(command, command, (char *)NULL);
    _exit(127);
}

/* True: it has ended. False: the limit is over, or nobody waits for the report any more. */
static bool await(int child, instant limit)
{
    struct pollfd polls[2] = {{.fd = child, .events = POLLIN}, {.fd = CHORE_FD_REPORT}};

    for (;;) {
        int64_t left_ms = instant_since(limit, clock_now()).ns / 1000000;
        int wait_ms = left_ms < LOOK_EVERY_MS ? (int)left_ms : LOOK_EVERY_MS;
        if (left_ms <= 0) {
            return false;
        }
        (void)poll(polls, 2, wait_ms + 1);
        if (polls[0].revents != 0) {
            return true;
        }
        if (polls[1].revents != 0) {
            return false;
        }
    }
}

static struct chore_report run(const char *command, instant limit)
{
    struct chore_report report = {.exit_code = -1};
    pid_t child = fork();
    siginfo_t how = {0};
    int child_fd;

    if (child == 0) {
        become(command);
    }
    if (child < 0) {
        return report;
    }
    (void)setpgid(child, child); /* whichever of the two comes first */
    (void)close(STDIN_FILENO);
    child_fd = pidfd_open(child, 0);
    report.was_in_time = child_fd >= 0 && await(child_fd, limit);
    (void)kill(-child, SIGKILL); /* before it is reaped: its number is still its own */
    if (waitid(P_PID, (id_t)child, &how, WEXITED) == 0 && how.si_code == CLD_EXITED) {
        report.exit_code = how.si_status;
    }
    return report;
}

int chore_main(const char *limit_ms, const char *command)
{
    instant limit = instant_add(clock_now(), SPAN_MS(strtoll(limit_ms, NULL, 10)));
    struct chore_report report;
    pid_t child = fork();

    if (child != 0) { /* the caller waits for this process, and meets the next one never */
        _exit(child < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    (void)setsid(); /* cannot fail after a fork */
    (void)signal(SIGPIPE, SIG_IGN);
    report = run(command, limit);
    return write(CHORE_FD_REPORT, &report, sizeof(report)) == sizeof(report) ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE;
}
