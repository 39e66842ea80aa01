#include "cli/cron_command.h"

#include "base/text.h"
#include "cli/job_output.h"
#include "cli/supervise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 1024, /* of a line in the log; a longer one is cut in several */
    OWN_VARIABLES = 3,
    VARIABLE_MAX = 128,
};

struct cron_command {
    struct cron_command_config config;
    struct cmd *cmd; /* NULL: has ended */
    struct job_output *output;
    char id[CRON_ID_MAX];
    char line[LINE_MAX_BYTES]; /* not yet in the log */
    size_t line_bytes;
};

/* ---- Output ---------------------------------------------------------------------------------- */

/* A tab would be shown as a control character. */
static char shown(uint8_t byte)
{
    return (char)(byte == '\t' ? ' ' : byte);
}

static void log_line(struct cron_command *command)
{
    char text[LINE_MAX_BYTES + 1];

    (void)text_clean(text, sizeof(text), command->line, command->line_bytes);
    if (command->line_bytes > 0) {
        log_notice(command->config.logger, "cron-output", LOG_STR("line", command->id),
                   LOG_STR("text", text));
    }
    command->line_bytes = 0;
}

static void on_data(void *userdata, const uint8_t *data, size_t bytes)
{
    struct cron_command *command = userdata;

    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != '\n') {
            command->line[command->line_bytes++] = shown(data[i]);
        }
        if (data[i] == '\n' || command->line_bytes == LINE_MAX_BYTES) {
            log_line(command);
        }
    }
}

/* The end of the output, each line made UTF-8 without control characters. */
static void take_tail(struct cron_command *command, char ret[CRON_OUTPUT_MAX + 1])
{
    uint8_t *tail;
    size_t bytes, used = 0;

    job_output_take(command->output, &tail, &bytes);
    for (size_t i = 0; i < bytes; i++) {
        tail[i] = (uint8_t)shown(tail[i]);
    }
    for (size_t at = bytes > CRON_OUTPUT_MAX ? bytes - CRON_OUTPUT_MAX : 0; at < bytes;) {
        const char *line = (const char *)tail + at;
        const char *newline = memchr(line, '\n', bytes - at);
        size_t count = newline ? (size_t)(newline - line) : bytes - at;
        (void)text_clean(ret + used, CRON_OUTPUT_MAX + 1 - used, line, count);
        used += strlen(ret + used);
        if (newline && used < CRON_OUTPUT_MAX) {
            ret[used++] = '\n';
        }
        at += count + 1;
    }
    ret[used] = '\0';
    free(tail);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void on_exit_of(void *userdata, const struct cmd_end *end)
{
    struct cron_command *command = userdata;
    char tail[CRON_OUTPUT_MAX + 1];

    command->cmd = NULL;
    take_tail(command, tail);
    log_line(command);
    job_output_close(command->output);
    command->config.on_end(command->config.userdata, end, tail);
    free(command);
}

/* ---- The beginning --------------------------------------------------------------------------- */

static void name_fire(char ret[OWN_VARIABLES][VARIABLE_MAX],
                      const struct cron_command_config *config)
{
    char text[CALENDAR_TEXT_BYTES];

    (void)snprintf(ret[0], VARIABLE_MAX, "BATON_CRON_LINE=%s", config->line->id);
    (void)snprintf(ret[1], VARIABLE_MAX, "BATON_CRON_FIRE=%s",
                   calendar_text(text, config->run->fire_s));
    (void)snprintf(ret[2], VARIABLE_MAX, "BATON_CRON_ATTEMPT=%" PRId64, config->run->attempt);
}

static int start(struct cron_command *command, int output, struct baton_error *reterr)
{
    const struct cron_command_config *config = &command->config;
    const char *shell = crontab_variable(config->crontab, config->line, "SHELL");
    char *argv[] = {(char *)(shell ? shell : "/bin/sh"), (char *)"-c", config->line->command, NULL};
    size_t count = config->line->variables;
    const char **variables = calloc(count + OWN_VARIABLES + 1, sizeof(*variables));
    char own[OWN_VARIABLES][VARIABLE_MAX];
    struct cmd_config cmd = {.loop = config->loop,
                             .supervise = config->supervise,
                             .argv = argv,
                             .node = config->run->node,
                             .election = config->election,
                             .epoch = config->run->epoch,
                             .variables = variables,
                             .output = output,
                             .on_exit = on_exit_of,
                             .userdata = command};

    if (!variables) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    memcpy(variables, config->crontab->variables, count * sizeof(*variables));
    name_fire(own, config);
    for (size_t i = 0; i < OWN_VARIABLES; i++) {
        variables[count + i] = own[i];
    }
    int code = cmd_start(&command->cmd, &cmd, reterr);
    free(variables);
    return code;
}

int cron_command_start(struct cron_command **ret, const struct cron_command_config *config,
                       struct baton_error *reterr)
{
    struct cron_command *command = calloc(1, sizeof(*command));
    int write_end;

    if (!command) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    command->config = *config;
    (void)snprintf(command->id, sizeof(command->id), "%s", config->line->id);
    int code = job_output_open(&command->output, config->loop, &write_end, reterr);
    if (code == BATON_OK) {
        job_output_listen(command->output, on_data, command);
        code = start(command, write_end, reterr);
        job_output_started(command->output);
    }
    if (code) {
        job_output_close(command->output);
        free(command);
        return code;
    }
    *ret = command;
    return BATON_OK;
}

struct cmd *cron_command_cmd(const struct cron_command *command)
{
    return command->cmd;
}
