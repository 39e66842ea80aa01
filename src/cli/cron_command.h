/* The command of one fire: started with its output in a pipe, whose lines go to the log, and whose
 * end is kept.
 */
#ifndef CLI_CRON_COMMAND_H
#define CLI_CRON_COMMAND_H

#include "base/log.h"
#include "cli/cmd.h"
#include "cron/crontab.h"
#include "cron/record.h"

struct cron_command; /* opaque */

struct cron_command_config {
    uv_loop_t *loop;
    struct supervise *supervise;
    struct logger *logger;
    const char *election;
    const struct crontab *crontab; /* borrowed during the call, as `line` and `run` are */
    const struct cron_line *line;
    const struct cron_run *run;
    /* It has ended, with all of its descendants. `output`: the end of what it wrote, UTF-8. The
     * command is freed when this returns. */
    void (*on_end)(void *userdata, const struct cmd_end *end, const char *output);
    void *userdata;
};

/* Errors as cmd_start(). */
int cron_command_start(struct cron_command **ret, const struct cron_command_config *config,
                       struct baton_error *reterr);

struct cmd *cron_command_cmd(const struct cron_command *command);

#endif
