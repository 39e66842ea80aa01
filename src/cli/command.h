/* The commands of `baton`: one row each, from which parsing, help, man pages and completions come.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "options/config.h"
#include "options/exit_code.h"

#include <uv.h>

/* The arguments of a command, borrowed from main(). */
struct invocation {
    const struct command *command;
    const struct options *options;
    int argc; /* number of arguments after the flags */
    char **argv;
};

struct command {
    const char *name;
    const char *arguments; /* "[--] CMD [ARG…]", or "" */
    const char *summary;   /* one line */
    const char *text;      /* paragraphs, separated by an empty line */
    const char *example;   /* one or more lines */
    const struct option_group *const *groups;
    int interspersed; /* how many arguments may stand among the flags; 0 for commands with CMD */
    int arguments_min;
    int arguments_max; /* -1: any number */
    int (*main)(const struct invocation *invocation);
};

/* All commands; a row without a name ends the table. */
extern const struct command commands[];

const struct command *command_find(const char *name); /* NULL: no such command */

/* Of the file of --config, which serves all commands. */
extern const struct config_rules command_file_rules;
/* Warns of BATON_… variables that are nearly the name of an option of any command. */
void command_warn_of_misspelt(const struct command *called);

/* Writes "baton NAME: message" to standard error. */
void command_tell(const struct invocation *invocation, const struct baton_error *error);
/* Does the same, with a hint for usage errors, and returns the exit code. */
int command_fail(const struct invocation *invocation, const struct baton_error *error);
/* Begins the command's event loop, which may need several descriptors. BATON_EIO: there are none;
 * then the loop must not be used. */
int command_open_loop(uv_loop_t *ret, struct baton_error *reterr);
/* Calls `on_readable` when `fd` is readable; `ret->data` is its argument. Where the kernel has no
 * room for one more it ends the process with the reason, as if it had died: nothing has begun. */
void command_watch(const struct invocation *invocation, uv_loop_t *loop, uv_poll_t *ret, int fd,
                   uv_poll_cb on_readable, void *userdata);

int agent_main(const struct invocation *invocation);
int elections_main(const struct invocation *invocation);
int work_main(const struct invocation *invocation);
int fleet_main(const struct invocation *invocation);
int worker_main(const struct invocation *invocation);
int explain_main(const struct invocation *invocation);
int node_main(const struct invocation *invocation);
int run_main(const struct invocation *invocation);
int once_main(const struct invocation *invocation);
int cron_main(const struct invocation *invocation);
int status_main(const struct invocation *invocation);
int members_main(const struct invocation *invocation);
int watch_main(const struct invocation *invocation);
int operate_main(const struct invocation *invocation); /* pass, cordon, uncordon, join, leave */
int state_main(const struct invocation *invocation);
int publish_main(const struct invocation *invocation);
int subscribe_main(const struct invocation *invocation);
int demo_main(const struct invocation *invocation);
int bench_main(const struct invocation *invocation);
int help_main(const struct invocation *invocation);

#endif
