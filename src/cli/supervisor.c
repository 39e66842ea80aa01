#include "cli/supervisor.h"

#include "base/clock.h"
#include "cli/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OWN_VARIABLES = 4,
    VARIABLES_MAX = OWN_VARIABLES + WATCHDOG_VARIABLES,
    AGAIN_MS = 1, /* interval between two checks for descendants, if no child ends before */
};

/* From SIGKILL to the end of the lease: the kernel needs a moment to end a process. A tenth of the
 * lease, and 50 ms at most. */
#define MARGIN_MAX SPAN_MS(50)

struct keeper {
    const struct supervisor *config;
    pid_t command;   /* 0: none, or its exit status was taken */
    int status;      /* of the command that ended last */
    int starting;    /* pipe that the exec of the command closes; -1: none */
    bool is_running; /* a command was started and its end is not reported yet */
    bool is_ending;  /* all descendants are being killed */
    bool is_overdue; /* because the lease was about to end */
    bool is_last;    /* no other command will be started */
    int children;    /* signalfd of SIGCHLD */
    int alarm;       /* timerfd for the lease */
    span margin;     /* between the kill and the lease's end */
};

/* ---- Starting -------------------------------------------------------------------------------- */

static bool is_own(const char *entry)
{
    return strncmp(entry, "BATON_EPOCH=", 12) == 0 || strncmp(entry, "BATON_ELECTION=", 15) == 0 ||
           strncmp(entry, "BATON_NODE=", 11) == 0 || strncmp(entry, "BATON_RUN=", 10) == 0;
}

/* Those of another watchdog would mislead CMD. */
static bool is_replaced(const struct supervisor *config, const char *entry)
{
    return is_own(entry) || (config->watchdog && watchdog_is_variable(entry));
}

/* Returns environ with our variables in front; the array is malloc'ed, and `space` holds the
 * variables. */
static char **make_environment(const struct supervisor *config, const struct order *order,
                               char space[static VARIABLES_MAX][VARIABLE_BYTES])
{
    size_t count = 0, used = OWN_VARIABLES;
    char **ret;

    while (environ[count]) {
        count++;
    }
    ret = calloc(count + VARIABLES_MAX + 1, sizeof(*ret));
    if (ret == NULL) {
        return NULL;
    }
    (void)snprintf(space[0], VARIABLE_BYTES, "BATON_EPOCH=%" PRIu64, order->epoch);
    (void)snprintf(space[1], VARIABLE_BYTES, "BATON_ELECTION=%s", order->election);
    (void)snprintf(space[2], VARIABLE_BYTES, "BATON_NODE=%s", order->node);
    (void)snprintf(space[3], VARIABLE_BYTES, "%s", config->marker);
    if (config->watchdog) {
        watchdog_variables(config->watchdog, space + OWN_VARIABLES);
        used = VARIABLES_MAX;
    }
    for (size_t i = 0; i < used; i++) {
        ret[i] = space[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_replaced(config, environ[i])) {
            ret[used++] = environ[i];
        }
    }
    return ret;
}

static span lease_left(const struct supervisor *config)
{
    int64_t end_ns = atomic_load(&config->lease->end_ns);

    return end_ns == INSTANT_NEVER.ns ? SPAN_NS(INT64_MAX)
                                      : instant_since((instant){end_ns}, clock_now());
}

/* The lease may have ended while this process was delayed, before the command starts. */
static bool is_too_late(const struct supervisor *config)
{
    return config->guards_lease && lease_left(config).ns <= 0;
}

/* To its own process group and cgroup, its life bound to the supervisor's. */
/* In a group of its own CMD would be stopped, for ever, as soon as it reads its terminal: it finds
 * the end of the input there instead. */
static void read_no_terminal(void)
{
    int nothing = tcgetpgrp(STDIN_FILENO) != -1 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
    }
}

static bool enter(const struct supervisor *config, pid_t parent)
{
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return false;
    }
    if (getppid() != parent) { /* it died before the kernel knew that we depend on it */
        errno = ESRCH;
        return false;
    }
    read_no_terminal();
    /* The cgroup is an additional means: without it (its folder was removed) the process tree
     * suffices. */
    (void)!(config->procs_fd >= 0 && write(config->procs_fd, "0", 1) == 1);
    return true;
}

/* A failure is reported through `report`; a successful exec closes it. */
_Noreturn static void become_command(const struct supervisor *config, char *const *environment,
                                     pid_t parent, int report)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&config->ignored, number) != 1) {
            (void)sigaction(number, &usual, NULL);
        }
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (enter(config, parent)) {
        if (!is_too_late(config)) {
            (void)execvpe(config->argv[0], config->argv, environment);
        } else {
            errno = ETIME;
        }
    }
    int errnum = errno;
    (void)!write(report, &errnum, sizeof(errnum));
    _exit(127);
}

/* Returns 0 or an errno. */
static int fork_command(struct keeper *keeper, const struct order *order)
{
    char space[VARIABLES_MAX][VARIABLE_BYTES];
    char **environment = make_environment(keeper->config, order, space);
    pid_t parent = getpid();
    int report[2];

    if (environment == NULL || pipe2(report, O_CLOEXEC) != 0) {
        int errnum = errno;
        free(environment);
        return errnum;
    }
    keeper->command = fork();
    if (keeper->command == 0) {
        become_command(keeper->config, environment, parent, report[1]);
    }
    int errnum = keeper->command < 0 ? errno : 0;
    free(environment);
    (void)close(report[1]);
    if (errnum != 0) {
        keeper->command = 0;
        (void)close(report[0]);
        return errnum;
    }
    (void)setpgid(keeper->command, keeper->command); /* as the child does: either may be first */
    keeper->starting = report[0];
    return 0;
}

/* ---- News ------------------------------------------------------------------------------------ */

static void report(const struct keeper *keeper, enum news_type type, int value)
{
    struct news news = {.type = type, .value = value, .is_overdue = keeper->is_overdue};

    (void)!send(keeper->config->orders, &news, sizeof(news), MSG_NOSIGNAL); /* it may be dead */
}

/* ETIME: the lease ended first; reported as a command that was started and ended because of the
 * lease. */
static void report_not_started(struct keeper *keeper, int errnum)
{
    keeper->is_running = false;
    if (errnum != ETIME) {
        report(keeper, NEWS_REFUSED, errnum);
        return;
    }
    keeper->is_overdue = true;
    report(keeper, NEWS_STARTED, 0);
    report(keeper, NEWS_ENDED, SIGKILL);
    keeper->is_overdue = false;
}

/* The exec has succeeded, or failed with an errno. */
static void note_exec(struct keeper *keeper)
{
    int errnum = 0;
    ssize_t bytes = read(keeper->starting, &errnum, sizeof(errnum));

    (void)close(keeper->starting);
    keeper->starting = -1;
    if (bytes == (ssize_t)sizeof(errnum)) {
        (void)waitpid(keeper->command, NULL, 0);
        keeper->command = 0;
        report_not_started(keeper, errnum);
    } else {
        report(keeper, NEWS_STARTED, keeper->command);
    }
}

/* ---- The lease ------------------------------------------------------------------------------- */

/* Sets the timer, or ends the command if the lease is about to end. The timer fires once per lease,
 * however often the lease is renewed. */
static void look_at_lease(struct keeper *keeper)
{
    span left = lease_left(keeper->config);
    int64_t tenth = left.ns / 10;
    struct itimerspec alarm = {0};

    if (!keeper->config->guards_lease || !keeper->is_running || keeper->is_ending) {
        return;
    }
    if (tenth > MARGIN_MAX.ns) {
        tenth = MARGIN_MAX.ns;
    }
    if (tenth > keeper->margin.ns) {
        keeper->margin = SPAN_NS(tenth);
    }
    if (left.ns <= keeper->margin.ns) {
        keeper->is_overdue = keeper->is_ending = true;
        return;
    }
    if (left.ns != INT64_MAX) {
        int64_t at_ns = atomic_load(&keeper->config->lease->end_ns) - keeper->margin.ns;
        alarm.it_value.tv_sec = at_ns / 1000000000;
        alarm.it_value.tv_nsec = at_ns % 1000000000;
    }
    (void)timerfd_settime(keeper->alarm, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

int supervisor_kill_children(pid_t spared)
{
    FILE *children = fopen("/proc/thread-self/children", "re");
    int count = 0, pid;

    if (children == NULL) {
        return -1;
    }
    while (fscanf(children, "%d", &pid) == 1) {
        if (pid != spared) {
            (void)kill((pid_t)pid, SIGKILL);
            count += waitpid((pid_t)pid, NULL, WNOHANG | __WALL) == pid ? 0 : 1;
        }
    }
    (void)fclose(children);
    return count;
}

static int kill_children(const struct keeper *keeper)
{
    int count = supervisor_kill_children(keeper->command);

    if (count < 0) { /* the kernel has no such list: by group and marker */
        struct victims strays = {.group = keeper->command};
        (void)snprintf(strays.marker, sizeof(strays.marker), "%s", keeper->config->marker);
        (void)victims_hunt(&strays, 0);
    }
    return count < 0 ? 0 : count;
}

static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

/* Returns true when no descendant is left. The command's status is taken last: until then its
 * number, which is also the group's, is not used again. */
static bool end_all(struct keeper *keeper)
{
    const char *cgroup = keeper->config->cgroup;

    victims_kill_cgroup(cgroup);
    if (keeper->command != 0) {
        (void)kill(-keeper->command, SIGKILL);
        (void)kill(keeper->command, SIGKILL); /* it may have no group yet, or have left it */
    }
    if (kill_children(keeper) > 0) {
        return false;
    }
    if (keeper->command != 0 &&
        waitpid(keeper->command, &keeper->status, WNOHANG | __WALL) == keeper->command) {
        keeper->command = 0;
    }
    return keeper->command == 0 && !has_children() && victims_cgroup_is_empty(cgroup);
}

static void note_ended(struct keeper *keeper)
{
    if (keeper->starting >= 0) {
        (void)close(keeper->starting);
        keeper->starting = -1;
        report(keeper, NEWS_STARTED, 0); /* the wrapper waits for this report */
    }
    if (keeper->is_running) {
        report(keeper, NEWS_ENDED, keeper->status);
    }
    keeper->is_running = keeper->is_ending = keeper->is_overdue = false;
}

/* Takes the exit statuses of adopted children. The end of the command itself ends all. */
static void reap(struct keeper *keeper)
{
    struct signalfd_siginfo ignored;
    siginfo_t ended = {0};

    (void)!read(keeper->children, &ignored, sizeof(ignored));
    while (!keeper->is_ending &&
           waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           ended.si_pid != 0) {
        if (ended.si_pid == keeper->command && keeper->starting < 0) {
            keeper->is_ending = true;
        } else if (ended.si_pid == keeper->command) {
            break; /* the exec failed: note_exec handles it */
        } else {
            (void)waitpid(ended.si_pid, NULL, WNOHANG | __WALL);
        }
        ended.si_pid = 0;
    }
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void start(struct keeper *keeper, const struct order *order)
{
    int errnum;

    if (keeper->is_running || keeper->is_ending) {
        report(keeper, NEWS_REFUSED, EBUSY);
        return;
    }
    /* Before is_too_late(), since the disk may stall. */
    record_note_lease(keeper->config->record, lease_left(keeper->config));
    errnum = is_too_late(keeper->config) ? ETIME : fork_command(keeper, order);
    if (errnum != 0) {
        report_not_started(keeper, errnum);
        return;
    }
    keeper->is_running = true;
    keeper->margin = SPAN_NS(0);
    look_at_lease(keeper);
}

static void take_orders(struct keeper *keeper)
{
    struct order order;
    ssize_t bytes = recv(keeper->config->orders, &order, sizeof(order), MSG_DONTWAIT);

    if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) {
        keeper->is_last = true; /* baton run has ended, or is about to */
    } else if (bytes == (ssize_t)sizeof(order) && order.type == ORDER_START) {
        start(keeper, &order);
    } else if (bytes == (ssize_t)sizeof(order) && order.type == ORDER_KILL) {
        keeper->is_ending |= keeper->is_running;
    } else if (bytes == (ssize_t)sizeof(order) && keeper->command != 0) {
        (void)kill(-keeper->command, order.number);
    }
}

static void listen_to_guardian(struct keeper *keeper)
{
    char byte = 0;

    if (recv(keeper->config->guardian, &byte, 1, MSG_DONTWAIT) == 1 && byte == VICTIMS_END) {
        keeper->is_last = true;
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

enum { ORDERS, GUARDIAN, WRAPPER, STARTING, CHILDREN, ALARM, WAKE, SOURCES };

static void wait_and_look(struct keeper *keeper)
{
    const struct supervisor *config = keeper->config;
    uint64_t count;
    struct pollfd polls[SOURCES] = {
        [ORDERS] = {.fd = keeper->is_last ? -1 : config->orders, .events = POLLIN},
        [GUARDIAN] = {.fd = keeper->is_last ? -1 : config->guardian, .events = POLLIN},
        [WRAPPER] = {.fd = keeper->is_last ? -1 : config->wrapper, .events = POLLIN},
        [STARTING] = {.fd = keeper->starting, .events = POLLIN},
        [CHILDREN] = {.fd = keeper->children, .events = POLLIN},
        [ALARM] = {.fd = keeper->alarm, .events = POLLIN},
        [WAKE] = {.fd = config->lease->wake_fd, .events = POLLIN},
    };

    (void)poll(polls, SOURCES, keeper->is_ending ? AGAIN_MS : -1);
    if (polls[STARTING].revents != 0) {
        note_exec(keeper);
    }
    if (polls[STARTING].revents != 0 || polls[CHILDREN].revents != 0) {
        reap(keeper);
    }
    if (polls[ORDERS].revents != 0) {
        take_orders(keeper);
    }
    if (polls[GUARDIAN].revents != 0) {
        listen_to_guardian(keeper);
    }
    keeper->is_last |= polls[WRAPPER].revents != 0;
    if (polls[ALARM].revents != 0) {
        (void)!read(keeper->alarm, &count, sizeof(count));
    }
    if (polls[WAKE].revents != 0) {
        (void)!read(config->lease->wake_fd, &count, sizeof(count));
    }
    if (polls[ALARM].revents != 0 || polls[WAKE].revents != 0) {
        look_at_lease(keeper);
    }
    keeper->is_ending |= keeper->is_last;
}

/* Ignores signals of the terminal and the service manager: the supervisor ends when no descendant
 * is left. */
static void prepare(struct keeper *keeper)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGUSR1, SIGUSR2, SIGALRM, SIGTTIN, SIGTTOU};
    sigset_t child;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "baton-supervise");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* there since Linux 3.4 */
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, exit statuses would be lost */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &child, NULL);
    keeper->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->alarm = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* Ends processes that a service started with the command's environment: they are no children of
 * this process. If the guardian asked, the guardian itself looks for them; an agent does not. */
static void end_marked(const struct keeper *keeper)
{
    enum { LIMIT_MS = 100 };
    struct victims strays = {0};

    if (!keeper->is_last || keeper->config->agent) {
        (void)snprintf(strays.marker, sizeof(strays.marker), "%s", keeper->config->marker);
        (void)victims_hunt(&strays, LIMIT_MS);
    }
}

/* The agent waits for it before the death of `baton run` counts. */
static void report_to_agent(const struct supervisor *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = 1};
    char line[2 * VICTIMS_TOKEN_MAX];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bytes = snprintf(line, sizeof(line), "{\"id\":1,\"do\":\"gone\",\"token\":\"%s\"}\n",
                         config->token);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", config->agent);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        (void)!(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                send(fd, line, (size_t)bytes, MSG_NOSIGNAL) == bytes);
        (void)close(fd);
    }
}

_Noreturn void supervisor_run(const struct supervisor *supervisor)
{
    struct keeper keeper = {.config = supervisor, .starting = -1};
    char byte = VICTIMS_NONE_LEFT;

    prepare(&keeper);
    while (!keeper.is_last || keeper.is_ending) {
        wait_and_look(&keeper);
        if (keeper.is_ending && end_all(&keeper)) {
            end_marked(&keeper);
            note_ended(&keeper);
        }
    }
    (void)!send(supervisor->guardian, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (supervisor->agent) {
        report_to_agent(supervisor);
    }
    victims_remove_cgroup(supervisor->cgroup);
    record_clear(supervisor->record);
    _exit(EXIT_SUCCESS);
}
