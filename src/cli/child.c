#include "cli/child.h"
#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    struct child_config config;
    pid_t pid; /* and group */
    int pidfd;
    uv_poll_t end;
    uv_timer_t limit;
    uv_signal_t orphans; /* SIGCHLD: adopted ones end */
    instant kill_at;
    int exit_code;
    int open_handles;
};

/* ---- Environment ----------------------------------------------------------------------------- */

enum { OWN_VARIABLES = 4 };

/* What CMD left behind is killed while the loop waits: this long at most. */
enum { REST_LIMIT_MS = 200 };

static bool is_own(const char *entry)
{
    return strncmp(entry, "BATON_EPOCH=", 12) == 0 || strncmp(entry, "BATON_ELECTION=", 15) == 0 ||
           strncmp(entry, "BATON_NODE=", 11) == 0 || strncmp(entry, "BATON_RUN=", 10) == 0;
}

/* environ with our variables in front; the array is malloc'ed, and `space` holds ours. */
static char **make_environment(const struct child_config *config,
                               char space[static OWN_VARIABLES][192])
{
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    char **ret = calloc(count + OWN_VARIABLES + 1, sizeof(*ret));
    size_t used = OWN_VARIABLES;
    if (!ret) {
        return NULL;
    }
    (void)snprintf(space[0], sizeof(space[0]), "BATON_EPOCH=%" PRIu64, config->epoch);
    (void)snprintf(space[1], sizeof(space[1]), "BATON_ELECTION=%s", config->election);
    (void)snprintf(space[2], sizeof(space[2]), "BATON_NODE=%s", config->node);
    (void)snprintf(space[3], sizeof(space[3]), "%s", supervise_variable(config->supervise));
    for (size_t i = 0; i < OWN_VARIABLES; i++) {
        ret[i] = space[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_own(environ[i])) {
            ret[used++] = environ[i];
        }
    }
    return ret;
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* After fork: async-signal-safe calls alone. What fails is told through `report`. */
static void become_child(const struct child_config *config, char *const *environment, pid_t parent,
                         int report)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &usual, NULL);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (supervise_enter(config->supervise, parent)) {
        (void)execvpe(config->argv[0], config->argv, environment);
    }
    int errnum = errno;
    (void)!write(report, &errnum, sizeof(errnum));
    _exit(127);
}

/* 0 once the program runs; else the errno of what kept it from it. */
static int wait_exec(int report)
{
    int errnum = 0;
    ssize_t count;
    while ((count = read(report, &errnum, sizeof(errnum))) < 0 && errno == EINTR) {
    }
    return count == (ssize_t)sizeof(errnum) ? errnum : 0;
}

static int spawn(struct child *child, struct baton_error *reterr)
{
    char space[OWN_VARIABLES][192];
    int report[2];
    const struct child_config *config = &child->config;
    char **environment = make_environment(config, space);
    if (!environment || pipe2(report, O_CLOEXEC) != 0) {
        free(environment);
        return error_set(reterr, BATON_ENOMEM, "cannot start %s", config->argv[0]);
    }
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0) {
        become_child(config, environment, parent, report[1]);
    }
    int errnum = child->pid < 0 ? errno : 0;
    free(environment);
    close(report[1]);
    if (child->pid > 0) {
        supervise_track(config->supervise, child->pid);
        errnum = wait_exec(report[0]);
    }
    close(report[0]);
    if (errnum == 0) {
        return 0;
    }
    if (child->pid > 0) {
        (void)waitpid(child->pid, NULL, 0);
    }
    int code = errnum == ENOENT ? BATON_ENOENT : child->pid > 0 ? BATON_EINVAL : BATON_EIO;
    return error_set(reterr, code, "%s: %s", config->argv[0], strerror(errnum));
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;
    if (--child->open_handles > 0) {
        return;
    }
    close(child->pidfd);
    child->config.on_exit(child->config.userdata, child->exit_code);
    free(child);
}

static void close_handles(struct child *child)
{
    uv_close((uv_handle_t *)&child->end, on_handle_closed);
    uv_close((uv_handle_t *)&child->limit, on_handle_closed);
    uv_close((uv_handle_t *)&child->orphans, on_handle_closed);
}

static void on_end(uv_poll_t *handle, int status, int events)
{
    struct child *child = handle->data;
    int wait_status = 0;
    (void)status;
    (void)events;
    if (waitpid(child->pid, &wait_status, WNOHANG) != child->pid) {
        return;
    }
    (void)supervise_kill(child->config.supervise, REST_LIMIT_MS); /* those that it left behind */
    child->config.supervise->victims.group = 0; /* the number may be given to another from now on */
    supervise_reap(child->config.supervise);
    child->exit_code =
        WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    close_handles(child);
}

static void on_orphan(uv_signal_t *handle, int number)
{
    struct child *child = handle->data;
    (void)number;
    supervise_reap(child->config.supervise);
}

static void on_limit(uv_timer_t *timer)
{
    child_kill(timer->data);
}

int child_start(struct child **ret, const struct child_config *config, struct baton_error *reterr)
{
    struct child *child = calloc(1, sizeof(*child));
    if (!child) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    child->config = *config;
    child->kill_at = INSTANT_NEVER;
    int code = spawn(child, reterr);
    if (code) {
        free(child);
        return code;
    }
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd < 0 || uv_poll_init(config->loop, &child->end, child->pidfd) != 0) {
        code = error_set(reterr, BATON_EIO, "%s: no pidfd: %s", config->argv[0], strerror(errno));
        (void)kill(-child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
        free(child);
        return code;
    }
    (void)uv_timer_init(config->loop, &child->limit);
    (void)uv_signal_init(config->loop, &child->orphans);
    child->end.data = child->limit.data = child->orphans.data = child;
    child->open_handles = 3;
    (void)uv_signal_start(&child->orphans, on_orphan, SIGCHLD);
    uv_unref((uv_handle_t *)&child->orphans);
    (void)uv_poll_start(&child->end, UV_READABLE, on_end);
    *ret = child;
    return 0;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

void child_signal(struct child *child, int number)
{
    if (!uv_is_closing((uv_handle_t *)&child->end)) {
        (void)kill(-child->pid, number);
    }
}

void child_stop(struct child *child, instant kill_at)
{
    if (uv_is_closing((uv_handle_t *)&child->end)) {
        return;
    }
    child_signal(child, SIGTERM);
    child_signal(child, SIGCONT); /* a stopped program hears nothing */
    child_limit(child, kill_at);
}

void child_limit(struct child *child, instant kill_at)
{
    if (uv_is_closing((uv_handle_t *)&child->end)) {
        return;
    }
    if (instant_before(kill_at, child->kill_at)) {
        int64_t left_ms = instant_since(kill_at, clock_now()).ns / 1000000;
        child->kill_at = kill_at;
        uv_update_time(child->config.loop);
        (void)uv_timer_start(&child->limit, on_limit, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
    }
}

void child_kill(struct child *child)
{
    if (!uv_is_closing((uv_handle_t *)&child->end)) {
        struct victims all = child->config.supervise->victims;
        all.parent = getpid();
        (void)victims_signal(&all, SIGKILL); /* on_end looks whether it was enough */
    }
}
