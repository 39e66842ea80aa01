#include "cli/cmd.h"

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

struct cmd {
    struct cmd_config config;
    pid_t pid; /* also the number of its process group */
    uv_poll_t news;
    uv_timer_t limit;
    instant kill_at;
    struct cmd_end end;
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

int cmd_check(const char *program, struct baton_error *reterr)
{
    int found = strchr(program, '/') ? check_file(program) : search(program);
    int code = found == ENOENT || found == ENOTDIR ? BATON_ENOENT : BATON_EINVAL;

    if (!*program) {
        return error_set(reterr, BATON_ENOENT, "CMD is an empty word");
    }
    return found == 0 ? 0 : error_set(reterr, code, "%s: %s", program, strerror(found));
}

enum exit_code cmd_exit_code(int code)
{
    return code == BATON_ENOENT   ? EXIT_NOT_FOUND
           : code == BATON_EINVAL ? EXIT_CANNOT_RUN
                                  : EXIT_REFUSED;
}

/* ---- CMD ------------------------------------------------------------------------------------- */

static bool is_over(const struct cmd *cmd)
{
    return uv_is_closing((const uv_handle_t *)&cmd->news);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cmd *cmd = handle->data;
    if (--cmd->open_handles == 0) {
        cmd->config.on_exit(cmd->config.userdata, &cmd->end);
        free(cmd);
    }
}

static void on_news(uv_poll_t *handle, int status, int events)
{
    struct cmd *cmd = handle->data;
    struct news news;
    (void)status;
    (void)events;
    supervise_hear_end(cmd->config.supervise, &news);
    cmd->end.is_overdue = news.is_overdue;
    cmd->end.exit_code =
        WIFSIGNALED(news.value) ? 128 + WTERMSIG(news.value) : WEXITSTATUS(news.value);
    uv_close((uv_handle_t *)&cmd->news, on_handle_closed);
    uv_close((uv_handle_t *)&cmd->limit, on_handle_closed);
}

static void on_limit(uv_timer_t *timer)
{
    cmd_kill(timer->data);
}

int cmd_start(struct cmd **ret, const struct cmd_config *config, struct baton_error *reterr)
{
    struct order order = {.type = ORDER_START, .epoch = config->epoch};
    struct cmd *cmd = calloc(1, sizeof(*cmd));
    if (!cmd) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)snprintf(order.node, sizeof(order.node), "%s", config->node);
    (void)snprintf(order.election, sizeof(order.election), "%s", config->election);
    cmd->config = *config;
    cmd->kill_at = INSTANT_NEVER;
    int code = supervise_start(config->supervise, &order, config->program, reterr);
    if (!code && uv_poll_init(config->loop, &cmd->news, config->supervise->orders) != 0) {
        supervise_kill(config->supervise);
        code = error_set(reterr, BATON_EIO, "%s: it cannot be watched", config->program);
    }
    if (code) {
        free(cmd);
        return code;
    }
    (void)uv_timer_init(config->loop, &cmd->limit);
    cmd->pid = config->supervise->victims.group;
    cmd->news.data = cmd->limit.data = cmd;
    cmd->open_handles = 2;
    (void)uv_poll_start(&cmd->news, UV_READABLE | UV_DISCONNECT, on_news);
    *ret = cmd;
    return 0;
}

pid_t cmd_pid(const struct cmd *cmd)
{
    return cmd->pid;
}

void cmd_signal(struct cmd *cmd, int number)
{
    if (!is_over(cmd)) {
        supervise_signal(cmd->config.supervise, number);
    }
}

void cmd_stop(struct cmd *cmd, instant kill_at)
{
    cmd_signal(cmd, SIGTERM);
    cmd_signal(cmd, SIGCONT); /* a stopped program does not handle SIGTERM */
    cmd_limit(cmd, kill_at);
}

void cmd_limit(struct cmd *cmd, instant kill_at)
{
    if (!is_over(cmd) && instant_before(kill_at, cmd->kill_at)) {
        int64_t left_ms = instant_since(kill_at, clock_now()).ns / 1000000;
        cmd->kill_at = kill_at;
        uv_update_time(cmd->config.loop);
        (void)uv_timer_start(&cmd->limit, on_limit, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
    }
}

void cmd_kill(struct cmd *cmd)
{
    if (!is_over(cmd)) {
        supervise_kill(cmd->config.supervise);
        /* The supervisor may be stopped before it obeys. */
        (void)uv_timer_start(&cmd->limit, on_limit, AGAIN_MS, AGAIN_MS);
    }
}
