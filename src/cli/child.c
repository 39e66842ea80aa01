#include "cli/child.h"

#include "cli/supervise.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGAIN_MS = 10 };

struct child {
    struct child_config config;
    pid_t pid; /* and group */
    uv_poll_t news;
    uv_timer_t limit;
    instant kill_at;
    struct child_end end;
    int open_handles;
};

/* ---- Before the election --------------------------------------------------------------------- */

static int check_file(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        return errno;
    }
    return S_ISDIR(about.st_mode) ? EACCES : access(path, X_OK) == 0 ? 0 : errno;
}

static int search(const char *program)
{
    const char *path = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
    int result = ENOENT;
    while (result && *path) {
        char file[PATH_MAX];
        int bytes = (int)strcspn(path, ":");
        int written =
            snprintf(file, sizeof(file), "%.*s%s%s", bytes, path, bytes > 0 ? "/" : "", program);
        int found = written < (int)sizeof(file) ? check_file(file) : ENAMETOOLONG;
        result = found == 0 || found == EACCES ? found : result;
        path += bytes + (path[bytes] == ':');
    }
    return result;
}

int child_check(const char *program, struct baton_error *reterr)
{
    int found = strchr(program, '/') ? check_file(program) : search(program);
    return found == 0 ? 0
                      : error_set(reterr,
                                  found == ENOENT || found == ENOTDIR ? BATON_ENOENT : BATON_EINVAL,
                                  "%s: %s", program, strerror(found));
}

enum exit_code child_exit_code(int code)
{
    return code == BATON_ENOENT   ? EXIT_NOT_FOUND
           : code == BATON_EINVAL ? EXIT_CANNOT_RUN
                                  : EXIT_REFUSED;
}

/* ---- CMD ------------------------------------------------------------------------------------- */

static bool is_over(const struct child *child)
{
    return uv_is_closing((const uv_handle_t *)&child->news);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;
    if (--child->open_handles == 0) {
        child->config.on_exit(child->config.userdata, &child->end);
        free(child);
    }
}

static void on_news(uv_poll_t *handle, int status, int events)
{
    struct child *child = handle->data;
    struct news news;
    (void)status;
    (void)events;
    supervise_hear_end(child->config.supervise, &news);
    child->end.is_overdue = news.is_overdue;
    child->end.exit_code =
        WIFSIGNALED(news.value) ? 128 + WTERMSIG(news.value) : WEXITSTATUS(news.value);
    uv_close((uv_handle_t *)&child->news, on_handle_closed);
    uv_close((uv_handle_t *)&child->limit, on_handle_closed);
}

static void on_limit(uv_timer_t *timer)
{
    child_kill(timer->data);
}

int child_start(struct child **ret, const struct child_config *config, struct baton_error *reterr)
{
    struct order order = {.type = ORDER_START, .epoch = config->epoch};
    struct child *child = calloc(1, sizeof(*child));
    if (!child) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)snprintf(order.node, sizeof(order.node), "%s", config->node);
    (void)snprintf(order.election, sizeof(order.election), "%s", config->election);
    child->config = *config;
    child->kill_at = INSTANT_NEVER;
    int code = supervise_start(config->supervise, &order, config->program, reterr);
    if (!code && uv_poll_init(config->loop, &child->news, config->supervise->orders) != 0) {
        supervise_kill(config->supervise);
        code = error_set(reterr, BATON_EIO, "%s: it cannot be watched", config->program);
    }
    if (code) {
        free(child);
        return code;
    }
    (void)uv_timer_init(config->loop, &child->limit);
    child->pid = config->supervise->victims.group;
    child->news.data = child->limit.data = child;
    child->open_handles = 2;
    (void)uv_poll_start(&child->news, UV_READABLE | UV_DISCONNECT, on_news);
    *ret = child;
    return 0;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

void child_signal(struct child *child, int number)
{
    if (!is_over(child)) {
        supervise_signal(child->config.supervise, number);
    }
}

void child_stop(struct child *child, instant kill_at)
{
    child_signal(child, SIGTERM);
    child_signal(child, SIGCONT); /* a stopped program hears nothing */
    child_limit(child, kill_at);
}

void child_limit(struct child *child, instant kill_at)
{
    if (!is_over(child) && instant_before(kill_at, child->kill_at)) {
        int64_t left_ms = instant_since(kill_at, clock_now()).ns / 1000000;
        child->kill_at = kill_at;
        uv_update_time(child->config.loop);
        (void)uv_timer_start(&child->limit, on_limit, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
    }
}

void child_kill(struct child *child)
{
    if (!is_over(child)) {
        supervise_kill(child->config.supervise);
        /* The supervisor may be stopped before it obeys. */
        (void)uv_timer_start(&child->limit, on_limit, AGAIN_MS, AGAIN_MS);
    }
}
