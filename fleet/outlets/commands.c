#include "fleet/outlets/commands.h"

#include "base/error.h"
#include "member/feed.h"

#include <stdlib.h>
#include <string.h>

static const char channel[] = "worker:commands";

enum {
    PULSE_MS = 250,
    STOPPED_MS = 1500, /* without a pulse: longer than a busy machine takes */
    WAITED_MS = 1000,  /* then so long, what is read may have waited */
};

struct commands {
    struct commands_config config;
    struct commands_counters counters;
    struct feed *feed;
    uv_timer_t pulse;
    instant pulsed, late_until;
    unsigned holds; /* the opener, the timer, and changes under way */
    bool is_closed;
};

static void release(struct commands *commands)
{
    if (--commands->holds == 0) {
        free(commands);
    }
}

static void refuse(struct commands *commands, const struct baton_error *error)
{
    commands->counters.refused++;
    if (commands->config.on_refused != NULL && !commands->is_closed) {
        commands->config.on_refused(commands->config.userdata, error);
    }
}

/* ---- Late ones ------------------------------------------------------------------------------- */

static void beat(struct commands *commands, instant now)
{
    if (instant_before(instant_add(commands->pulsed, SPAN_MS(STOPPED_MS)), now)) {
        commands->late_until = instant_add(now, SPAN_MS(WAITED_MS));
    }
    commands->pulsed = now;
}

static void on_pulse(uv_timer_t *pulse)
{
    beat(pulse->data, clock_now());
}

static bool is_for_others(struct commands *commands)
{
    const struct commands_config *config = &commands->config;
    instant now = clock_now();

    beat(commands, now);
    return instant_before(now, commands->late_until) && config->leads != NULL &&
           !config->leads(config->userdata);
}

/* ---- Each ------------------------------------------------------------------------------------ */

static void on_done(void *userdata, int code, const struct baton_error *error)
{
    struct commands *commands = userdata;

    if (code == BATON_OK) {
        commands->counters.taken++;
    } else {
        refuse(commands, error);
    }
    release(commands);
}

static void carry_out(struct commands *commands, const struct command *command)
{
    struct displays *displays = commands->config.displays;
    struct baton_error error;
    int code;

    commands->holds++;
    code = command->type == COMMAND_SET_SESSION_ID
               ? displays_set_session(displays, command->display, command->session, on_done,
                                      commands, &error)
               : displays_set_stage(displays, command->display, command->stage, on_done, commands,
                                    &error);
    if (code != BATON_OK) {
        refuse(commands, &error);
        commands->holds--; /* not the last: on_message() has one */
    }
}

static void take(struct commands *commands, const char *line, size_t bytes)
{
    struct command command;
    struct baton_error error;

    if (command_parse(line, bytes, sizeof(struct subscription), &command, &error) != BATON_OK) {
        refuse(commands, &error);
        return;
    }
    if (command.type != COMMAND_SET_SESSION_ID && command.type != COMMAND_SET_PROGRESSION_STAGE) {
        commands->counters.passed_over++;
    } else if (is_for_others(commands)) {
        commands->counters.late++;
    } else {
        carry_out(commands, &command);
    }
    command_fini(&command);
}

static void on_message(void *userdata, const char *name, const void *data, size_t bytes)
{
    struct commands *commands = userdata;
    const char *line = data, *after = line + bytes;
    (void)name;

    commands->holds++;
    while (line < after && !commands->is_closed) {
        const char *newline = memchr(line, '\n', (size_t)(after - line));
        const char *line_end = newline != NULL ? newline : after;

        if (line_end > line) {
            take(commands, line, (size_t)(line_end - line));
        }
        line = newline != NULL ? newline + 1 : after;
    }
    release(commands);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_pulse_closed(uv_handle_t *pulse)
{
    release(pulse->data);
}

void commands_close(struct commands *commands)
{
    if (commands != NULL) {
        commands->is_closed = true;
        feed_stop(commands->feed);
        uv_close((uv_handle_t *)&commands->pulse, on_pulse_closed);
        release(commands);
    }
}

int commands_open(struct commands **ret, const struct commands_config *config,
                  struct baton_error *reterr)
{
    struct commands *commands = calloc(1, sizeof(*commands));
    int code;

    if (commands == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for commands");
    }
    commands->config = *config;
    commands->holds = 2;
    commands->pulsed = clock_now();
    commands->late_until = INSTANT_PAST;
    (void)uv_timer_init(member_loop(config->member), &commands->pulse); /* cannot fail */
    commands->pulse.data = commands;
    (void)uv_timer_start(&commands->pulse, on_pulse, PULSE_MS, PULSE_MS);
    code = feed_subscribe(&commands->feed, config->member, channel, on_message, commands, reterr);
    if (code != BATON_OK) {
        commands_close(commands);
        return code;
    }
    *ret = commands;
    return BATON_OK;
}

const struct commands_counters *commands_counters(const struct commands *commands)
{
    return &commands->counters;
}
