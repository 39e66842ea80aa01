#include "cli/foreman.h"

#include "base/clock.h"
#include "cli/children.h"
#include "cli/words.h"
#include "guardian/victims.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    AGAIN_MS = 1,   /* interval between two checks for descendants, if no child ends before */
    STRAYS_MS = 100 /* limit of the search for what a service started */
};

/* From SIGKILL to the end of the lease, if the supervisor is stopped: a little less than it takes
 * itself (cli/supervisor.c), so that while it runs it is the one that ends the commands. A
 * thirteenth of the lease, and 38 ms at most. */
#define MARGIN_MAX SPAN_MS(38)
enum { MARGIN_SHARE = 13 };

/* A lease without an end gets one when the group grows. Only the supervisor gets a message then, so
 * the foreman looks each second. */
#define LOOK_AGAIN SPAN_S(1)

struct foreman {
    const struct foreman_config *config;
    pid_t command;   /* 0: none, or its exit status was taken */
    int status;      /* of the command that has ended */
    int starting;    /* pipe that the exec of the command closes; -1: none */
    int signals;     /* signalfd of SIGCHLD and FOREMAN_SIGNAL() */
    int alarm;       /* timerfd for the lease */
    span margin;     /* between the kill and the lease's end */
    int procs;       /* the cgroup's cgroup.procs; -1: none */
    bool is_ending;  /* all descendants are being killed */
    bool is_overdue; /* because the lease was about to end */
    bool is_leaving; /* the supervisor ends everything, and looks for the others itself */
    char cgroup[VICTIMS_PATH_MAX];   /* the command's own, in that of the run; "": none */
    char marker[VICTIMS_MARKER_MAX]; /* the command's own: that of the run, and a number */
    char progress[40];               /* its variable */
};

bool foreman_is_too_late(const struct lease_watch *lease)
{
    return lease && lease_watch_left(lease).ns <= 0;
}

void foreman_name_cgroup(char ret[VICTIMS_PATH_MAX], const char *run, uint32_t command)
{
    int length = snprintf(ret, VICTIMS_PATH_MAX, "%s/%" PRIu32, run, command);

    if (run[0] == '\0' || length >= VICTIMS_PATH_MAX) {
        ret[0] = '\0';
    }
}

void foreman_add_signals(sigset_t *set)
{
    for (int what = FOREMAN_LEAVE; what <= FOREMAN_MAX; what++) {
        (void)sigaddset(set, FOREMAN_SIGNAL(what));
    }
}

/* ---- News ------------------------------------------------------------------------------------ */

static void report(const struct foreman *foreman, enum news_type type, int value, bool is_overdue)
{
    struct news news = {.type = type,
                        .command = foreman->config->order->command,
                        .value = value,
                        .is_overdue = is_overdue};

    while (send(foreman->config->news, &news, sizeof(news), MSG_NOSIGNAL) < 0 &&
           order_may_pass_later(errno)) {
        (void)poll(NULL, 0, AGAIN_MS);
    }
}

/* ETIME: the lease ended first; reported as a command that was started and ended because of the
 * lease. */
_Noreturn static void leave_without_command(const struct foreman *foreman, int errnum)
{
    if (errnum != ETIME) {
        report(foreman, NEWS_REFUSED, errnum, false);
    } else {
        report(foreman, NEWS_STARTED, 0, true);
        report(foreman, NEWS_ENDED, SIGKILL, true);
    }
    victims_remove_cgroup(foreman->cgroup);
    _exit(EXIT_SUCCESS);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Without one the process tree suffices. */
static void make_cgroup(struct foreman *foreman)
{
    char procs[VICTIMS_PATH_MAX + 16];

    foreman_name_cgroup(foreman->cgroup, foreman->config->cgroup, foreman->config->order->command);
    if (foreman->cgroup[0] != '\0' && mkdir(foreman->cgroup, 0755) == 0) {
        (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", foreman->cgroup);
        foreman->procs = open(procs, O_WRONLY | O_CLOEXEC);
    } else {
        foreman->cgroup[0] = '\0';
    }
}

/* In a group of its own CMD would be stopped, for ever, as soon as it reads its terminal: it finds
 * the end of the input there instead. Commands with an output of their own share no input. */
static void read_nothing(const struct foreman *foreman)
{
    bool is_unfit = foreman->config->output >= 0 || tcgetpgrp(STDIN_FILENO) != -1;
    int nothing = is_unfit ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
    }
}

/* Nor has CMD the terminal by name: if it opens /dev/tty, as for a password, it hears that there
 * is none. */
static void leave_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (terminal >= 0) {
        (void)ioctl(terminal, TIOCNOTTY);
        (void)close(terminal);
    }
}

/* To its own process group and cgroup, its life bound to the foreman's. */
static bool enter(const struct foreman *foreman, pid_t parent)
{
    int output = foreman->config->output;

    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return false;
    }
    if (getppid() != parent) { /* it died before the kernel knew that we depend on it */
        errno = ESRCH;
        return false;
    }
    read_nothing(foreman);
    leave_terminal();
    (void)!(foreman->procs >= 0 && write(foreman->procs, "0", 1) == 1);
    (void)fcntl(foreman->config->progress, F_SETFD, 0);
    return output < 0 || (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0);
}

static void use_usual_signals(const sigset_t *ignored)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        if (sigismember(ignored, number) != 1) {
            (void)sigaction(number, &usual, NULL);
        }
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A failure is reported through `failure`; a successful exec closes it. */
_Noreturn static void become_command(const struct foreman *foreman, char *const *arguments,
                                     pid_t parent, int failure)
{
    use_usual_signals(foreman->config->ignored);
    if (enter(foreman, parent)) {
        if (!foreman_is_too_late(foreman->config->lease)) {
            (void)execvp(arguments[0], arguments);
        } else {
            errno = ETIME;
        }
    }
    int errnum = errno;
    (void)!write(failure, &errnum, sizeof(errnum));
    _exit(127);
}

/* The foreman's own environment is the command's. */
static int set_variables(struct foreman *foreman, char *const *variables)
{
    int errnum = 0;

    for (; *variables && errnum == 0; variables++) {
        errnum = putenv(*variables) == 0 ? 0 : errno;
    }
    (void)snprintf(foreman->progress, sizeof(foreman->progress), "BATON_PROGRESS=/dev/fd/%d",
                   foreman->config->progress);
    (void)unsetenv("BATON_PROGRESS"); /* of a command whose child this all is */
    if (errnum == 0 && foreman->config->progress >= 0) {
        errnum = putenv(foreman->progress) == 0 ? 0 : errno;
    }
    return errnum ? errnum : putenv(foreman->marker) == 0 ? 0 : errno;
}

/* Returns 0 or an errno. */
static int start(struct foreman *foreman)
{
    const struct foreman_config *config = foreman->config;
    struct words words = {config->words, config->order->arguments, config->order->variables};
    char **arguments, **variables;
    pid_t parent = getpid();
    int failure[2];
    int errnum = words_read(&arguments, &variables, &words);

    errnum = errnum ? errnum : set_variables(foreman, variables);
    if (errnum || pipe2(failure, O_CLOEXEC) != 0) {
        return errnum ? errnum : errno;
    }
    foreman->command = fork();
    if (foreman->command == 0) {
        become_command(foreman, arguments, parent, failure[1]);
    }
    errnum = errno;
    (void)close(failure[1]);
    if (foreman->command < 0) {
        return errnum;
    }
    (void)setpgid(foreman->command, foreman->command); /* as the child does: either may be first */
    foreman->starting = failure[0];
    return 0;
}

/* The exec has succeeded, or failed with an errno. */
static void note_exec(struct foreman *foreman)
{
    int errnum = 0;
    ssize_t bytes = read(foreman->starting, &errnum, sizeof(errnum));

    (void)close(foreman->starting);
    foreman->starting = -1;
    if (bytes == (ssize_t)sizeof(errnum)) {
        (void)waitpid(foreman->command, NULL, 0);
        leave_without_command(foreman, errnum);
    }
    report(foreman, NEWS_STARTED, foreman->command, false);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static bool is_command(const void *userdata, pid_t pid)
{
    const struct foreman *foreman = userdata;

    return pid == foreman->command;
}

/* Takes the exit statuses of adopted children, up to one that is the command. True: it has ended.
 */
static bool reap_adopted(const struct foreman *foreman)
{
    siginfo_t ended = {0};

    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           ended.si_pid != 0) {
        if (ended.si_pid == foreman->command) {
            return true;
        }
        (void)waitpid(ended.si_pid, NULL, WNOHANG | __WALL);
        ended.si_pid = 0;
    }
    return false;
}

static int kill_children(const struct foreman *foreman)
{
    int count = children_kill(is_command, foreman);

    if (count < 0) { /* /proc has no such list: by group and marker */
        struct victims strays = {.group = foreman->command};
        (void)snprintf(strays.marker, sizeof(strays.marker), "%s", foreman->marker);
        (void)victims_hunt(&strays, 0);
        (void)reap_adopted(foreman);
    }
    return count < 0 ? 0 : count;
}

/* Returns true when no descendant is left. The command's status is taken last: until then its
 * number, which is also the group's, is not used again. */
static bool end_all(struct foreman *foreman)
{
    victims_kill_cgroup(foreman->cgroup);
    if (foreman->command != 0) {
        (void)kill(-foreman->command, SIGKILL);
        (void)kill(foreman->command, SIGKILL); /* it may have no group yet, or have left it */
    }
    if (kill_children(foreman) > 0) {
        return false;
    }
    if (foreman->command != 0 &&
        waitpid(foreman->command, &foreman->status, WNOHANG | __WALL) == foreman->command) {
        foreman->command = 0;
    }
    return foreman->command == 0 && !children_are_left() &&
           victims_cgroup_is_empty(foreman->cgroup);
}

/* Ends processes that a service started with the command's environment: they are no children of
 * this process. */
static void end_marked(const struct foreman *foreman)
{
    struct victims strays = {0};

    (void)snprintf(strays.marker, sizeof(strays.marker), "%s", foreman->marker);
    (void)victims_hunt(&strays, STRAYS_MS);
}

_Noreturn static void leave(const struct foreman *foreman)
{
    if (!foreman->is_leaving) {
        end_marked(foreman);
    }
    if (foreman->starting >= 0) {
        report(foreman, NEWS_STARTED, 0, false); /* baton waits for this report */
    }
    report(foreman, NEWS_ENDED, foreman->status, foreman->is_overdue);
    if (!foreman->is_leaving) {
        victims_remove_cgroup(foreman->cgroup);
    }
    _exit(EXIT_SUCCESS);
}

/* The end of the command itself ends all; if its exec failed, note_exec() handles it. */
static void reap(struct foreman *foreman)
{
    if (!foreman->is_ending && reap_adopted(foreman)) {
        foreman->is_ending = foreman->starting < 0;
    }
}

/* ---- The lease ------------------------------------------------------------------------------- */

static void wake_in(const struct foreman *foreman, span left)
{
    int64_t at_ns = instant_add(clock_now(), left).ns;
    struct itimerspec alarm = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};

    (void)timerfd_settime(foreman->alarm, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* The supervisor ends the commands before the lease ends, and is told when that moves. It may be
 * stopped together with baton, and then nobody else does. Sets the timer, which fires once for each
 * lease, however often that is renewed, or ends the command. */
static void look_at_lease(struct foreman *foreman)
{
    const struct lease_watch *lease = foreman->config->lease;
    span left = lease ? lease_watch_left(lease) : SPAN_NS(0);
    int64_t share = left.ns / MARGIN_SHARE;

    if (!lease || foreman->is_ending) {
        return;
    }
    if (left.ns == INT64_MAX) {
        wake_in(foreman, LOOK_AGAIN);
        return;
    }
    share = share < MARGIN_MAX.ns ? share : MARGIN_MAX.ns;
    if (share > foreman->margin.ns) {
        foreman->margin = SPAN_NS(share);
    }
    if (left.ns <= foreman->margin.ns) {
        foreman->is_overdue = foreman->is_ending = true;
        return;
    }
    wake_in(foreman, SPAN_NS(left.ns - foreman->margin.ns));
}

static void take_alarm(struct foreman *foreman)
{
    uint64_t count;

    (void)!read(foreman->alarm, &count, sizeof(count));
    look_at_lease(foreman);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void take_signals(struct foreman *foreman)
{
    struct signalfd_siginfo taken;

    while (read(foreman->signals, &taken, sizeof(taken)) == (ssize_t)sizeof(taken)) {
        int what = (int)taken.ssi_signo - FOREMAN_SIGNAL(0);

        if (what > 0 && foreman->command != 0) {
            (void)kill(-foreman->command, what);
        } else if (what == FOREMAN_KILL || what == FOREMAN_LEAVE) {
            foreman->is_ending = true;
            foreman->is_leaving |= what == FOREMAN_LEAVE;
        }
    }
}

enum { STARTING, SIGNALS, ALARM, SOURCES };

static void wait_and_look(struct foreman *foreman)
{
    struct pollfd polls[SOURCES] = {
        [STARTING] = {.fd = foreman->starting, .events = POLLIN},
        [SIGNALS] = {.fd = foreman->signals, .events = POLLIN},
        [ALARM] = {.fd = foreman->alarm, .events = POLLIN},
    };

    (void)poll(polls, SOURCES, foreman->is_ending ? AGAIN_MS : -1);
    if (polls[STARTING].revents != 0) {
        note_exec(foreman);
    }
    if (polls[SIGNALS].revents != 0) {
        take_signals(foreman);
    }
    if (polls[ALARM].revents != 0) {
        take_alarm(foreman);
    }
    reap(foreman);
}

/* Returns 0 or an errno. */
static int prepare(struct foreman *foreman, pid_t parent)
{
    sigset_t set;
    int errnum;

    (void)prctl(PR_SET_NAME, "baton-foreman");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    foreman_add_signals(&set);
    foreman->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    foreman->alarm = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    errnum = foreman->signals < 0 || foreman->alarm < 0 ? errno : 0;
    (void)snprintf(foreman->marker, sizeof(foreman->marker), "%s-%" PRIu32, foreman->config->marker,
                   foreman->config->order->command);
    make_cgroup(foreman);
    return errnum;
}

_Noreturn void foreman_run(const struct foreman_config *config, pid_t parent)
{
    struct foreman foreman = {.config = config, .starting = -1, .procs = -1};

    int errnum = prepare(&foreman, parent);

    errnum = errnum ? errnum : start(&foreman);
    if (errnum != 0) {
        leave_without_command(&foreman, errnum);
    }
    (void)close(config->words);
    (void)close(config->output);
    (void)close(config->progress);
    look_at_lease(&foreman);
    for (;;) {
        wait_and_look(&foreman);
        if (foreman.is_ending && end_all(&foreman)) {
            leave(&foreman);
        }
    }
}
