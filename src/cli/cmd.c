#include "cli/cmd.h"

#include "cli/supervise.h"
#include "cli/watchdog.h"
#include "cli/words.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

enum { AGAIN_MS = 10, STAY_MS = 1000 };

struct cmd {
    struct cmd_config config;
    uint32_t number;
    pid_t pid; /* also the number of its process group */
    uv_timer_t limit;
    instant kill_at;
    uint64_t unsent;  /* signals that wait for memory, or until the supervisor reads: bits */
    instant stays_at; /* when to tell that it is still there, once it was killed */
    bool is_killed;
    struct cmd_end end;
    struct cmd *prev, *next;
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
    bool is_last = false; /* an empty folder is the current one, behind the last colon, too */
    while (result && !is_last) {
        char file[PATH_MAX];
        int bytes = (int)strcspn(path, ":");
        int written =
            snprintf(file, sizeof(file), "%.*s%s%s", bytes, path, bytes > 0 ? "/" : "", program);
        int found = written < (int)sizeof(file) ? check_file(file) : ENAMETOOLONG;
        result = found == 0 || found == EACCES ? found : result;
        is_last = path[bytes] == '\0';
        path += bytes + 1;
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

/* ---- News ------------------------------------------------------------------------------------ */

static bool is_over(const struct cmd *cmd)
{
    return uv_is_closing((const uv_handle_t *)&cmd->limit);
}

static void on_news_closed(uv_handle_t *handle)
{
    free(handle);
}

/* The guardian knows the process group of a command that runs alone. */
static void count_cmds(struct supervise *supervise)
{
    bool is_alone = supervise->cmd_count == 1;

    supervise->victims.group = is_alone ? supervise->cmds->pid : 0;
    if (supervise->cmd_count == 0 && supervise->news) {
        uv_close((uv_handle_t *)supervise->news, on_news_closed);
        supervise->news = NULL;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct cmd *cmd = handle->data;

    cmd->config.on_exit(cmd->config.userdata, &cmd->end);
    free(cmd);
}

static void take_end(struct supervise *supervise, const struct news *news)
{
    struct cmd *cmd;

    DL_SEARCH_SCALAR(supervise->cmds, cmd, number, news->command);
    if (news->type == NEWS_ENDED && cmd) {
        cmd->end.is_overdue = news->is_overdue;
        cmd->end.exit_code =
            WIFSIGNALED(news->value) ? 128 + WTERMSIG(news->value) : WEXITSTATUS(news->value);
        DL_DELETE(supervise->cmds, cmd);
        supervise->cmd_count--;
        uv_close((uv_handle_t *)&cmd->limit, on_closed);
    }
}

static void on_news(uv_poll_t *handle, int status, int events)
{
    struct supervise *supervise = handle->data;
    struct news news;
    (void)status;
    (void)events;
    while (supervise->news && supervise_hear(supervise, false, &news)) {
        take_end(supervise, &news);
        count_cmds(supervise);
    }
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* Fails only if there is no memory or no room for one more descriptor in the loop. */
static bool watch_news(struct supervise *supervise, uv_loop_t *loop)
{
    if (supervise->news) {
        return true;
    }
    uv_poll_t *news = malloc(sizeof(*news));
    if (!news || uv_poll_init(loop, news, supervise->orders) != 0) {
        free(news);
        return false;
    }
    news->data = supervise;
    (void)uv_poll_start(news, UV_READABLE | UV_DISCONNECT, on_news);
    supervise->news = news;
    return true;
}

enum { OWN_VARIABLES = 3 + WATCHDOG_VARIABLES };

/* Our variables, then those of the caller, in an array that the caller frees; `space` holds ours.
 */
static char **list_variables(const struct cmd_config *config, char space[][VARIABLE_BYTES])
{
    size_t count = 0, used = 3;
    char **ret;

    while (config->variables && config->variables[count]) {
        count++;
    }
    ret = calloc(OWN_VARIABLES + count + 1, sizeof(*ret));
    if (!ret) {
        return NULL;
    }
    (void)snprintf(space[0], VARIABLE_BYTES, "BATON_EPOCH=%" PRIu64, config->epoch);
    (void)snprintf(space[1], VARIABLE_BYTES, "BATON_ELECTION=%s", config->election);
    (void)snprintf(space[2], VARIABLE_BYTES, "BATON_NODE=%s", config->node);
    if (config->watchdog) {
        watchdog_variables(config->watchdog, space + used);
        used += WATCHDOG_VARIABLES;
    }
    for (size_t i = 0; i < used; i++) {
        ret[i] = space[i];
    }
    for (size_t i = 0; i < count; i++) {
        ret[used + i] = (char *)config->variables[i];
    }
    return ret;
}

/* Returns 0 or an errno. */
static int give_start(const struct cmd *cmd)
{
    const struct cmd_config *config = &cmd->config;
    char space[OWN_VARIABLES][VARIABLE_BYTES];
    char **variables = list_variables(config, space);
    struct words words;
    int errnum = variables ? words_write(&words, config->argv, variables) : ENOMEM;

    if (errnum == 0) {
        struct order order = {.type = ORDER_START,
                              .command = cmd->number,
                              .arguments = words.arguments,
                              .variables = words.variables,
                              .descriptors = config->progress > 0 ? ORDER_RIGHTS
                                             : config->output > 0 ? RIGHT_PROGRESS
                                                                  : RIGHT_OUTPUT};
        errnum = supervise_give(config->supervise, &order,
                                (const int[ORDER_RIGHTS]){[RIGHT_WORDS] = words.fd,
                                                          [RIGHT_OUTPUT] = config->output,
                                                          [RIGHT_PROGRESS] = config->progress});
        (void)close(words.fd);
    }
    free(variables);
    return errnum;
}

/* Returns 0 or an errno. Others may end meanwhile; the news are watched on, for this one. */
static int await_start(struct cmd *cmd)
{
    struct supervise *supervise = cmd->config.supervise;
    struct news news;

    while (supervise_hear(supervise, true, &news) && news.command != cmd->number) {
        take_end(supervise, &news);
    }
    cmd->pid = news.value;
    return news.type == NEWS_REFUSED ? news.value : 0;
}

static int refuse(const char *program, int errnum, struct baton_error *reterr)
{
    bool is_short = errnum == EAGAIN || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE ||
                    errnum == EFBIG;
    int code = errnum == ENOENT ? BATON_ENOENT : is_short ? BATON_EIO : BATON_EINVAL;
    const char *hint = errnum != ENOENT ? ""
                       : strchr(program, '/')
                           ? "; does this host have it, and the interpreter that its first line "
                             "names?"
                           : "; no folder of PATH has it";

    return error_set(reterr, code, "%s: %s%s", program, strerror(errnum), hint);
}

int cmd_start(struct cmd **ret, const struct cmd_config *config, struct baton_error *reterr)
{
    struct supervise *supervise = config->supervise;
    struct cmd *cmd = calloc(1, sizeof(*cmd));
    if (!cmd) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    cmd->config = *config;
    cmd->kill_at = cmd->stays_at = INSTANT_NEVER;
    cmd->number = ++supervise->last_command;
    int errnum = supervise->cmd_count >= CMD_MAX       ? EAGAIN
                 : watch_news(supervise, config->loop) ? give_start(cmd)
                                                       : ENOMEM;
    errnum = errnum ? errnum : await_start(cmd);
    if (errnum) {
        count_cmds(supervise);
        free(cmd);
        return refuse(config->argv[0], errnum, reterr);
    }
    (void)uv_timer_init(config->loop, &cmd->limit);
    cmd->limit.data = cmd;
    DL_APPEND(supervise->cmds, cmd);
    supervise->cmd_count++;
    count_cmds(supervise);
    *ret = cmd;
    return 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_limit(uv_timer_t *timer);

static void set_limit(struct cmd *cmd)
{
    int64_t left_ms = cmd->kill_at.ns == INSTANT_NEVER.ns
                          ? INT64_MAX
                          : instant_since(cmd->kill_at, clock_now()).ns / 1000000;

    left_ms = cmd->unsent && left_ms > AGAIN_MS ? AGAIN_MS : left_ms;
    uv_update_time(cmd->config.loop);
    (void)uv_timer_start(&cmd->limit, on_limit, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

static void send_signals(struct cmd *cmd)
{
    for (int number = 1; number <= SIGRTMAX && cmd->unsent; number++) {
        struct order order = {.type = ORDER_SIGNAL, .command = cmd->number, .number = number};
        uint64_t bit = (uint64_t)1 << (number - 1);

        if ((cmd->unsent & bit) && supervise_give(cmd->config.supervise, &order, NULL) == 0) {
            cmd->unsent &= ~bit;
        }
    }
}

static void on_limit(uv_timer_t *timer)
{
    struct cmd *cmd = timer->data;

    if (!cmd->is_killed && instant_before(clock_now(), cmd->kill_at)) {
        send_signals(cmd);
        set_limit(cmd);
        return;
    }
    cmd_kill(cmd);
    if (!instant_before(clock_now(), cmd->stays_at)) {
        cmd->stays_at = INSTANT_NEVER;
        cmd->config.on_stay(cmd->config.userdata);
    }
}

pid_t cmd_pid(const struct cmd *cmd)
{
    return cmd->pid;
}

void cmd_signal(struct cmd *cmd, int number)
{
    if (is_over(cmd)) {
        return;
    }
    number = number == SIGHUP ? SIGTERM : number;
    cmd->unsent |= (uint64_t)1 << (number - 1);
    send_signals(cmd);
    if (cmd->unsent && !cmd->is_killed) {
        set_limit(cmd);
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
        cmd->kill_at = kill_at;
        set_limit(cmd);
    }
}

void cmd_kill(struct cmd *cmd)
{
    if (!is_over(cmd)) {
        supervise_kill(cmd->config.supervise, cmd->number);
        if (cmd->config.on_stay && !cmd->is_killed) {
            cmd->stays_at = instant_add(clock_now(), SPAN_MS(STAY_MS));
        }
        cmd->is_killed = true;
        /* The supervisor may be stopped before it obeys. */
        (void)uv_timer_start(&cmd->limit, on_limit, AGAIN_MS, AGAIN_MS);
    }
}
