/* `baton cron run`: fires the lines of a crontab while this node leads.
 *
 *            acquired               drain: nothing fires, what runs may end
 *   FOLLOWS ─────────▶ LEADS ◀───────────────────────────────────▶ DRAINS ─▶ handed over
 *      ▲                  │           the hand-over has failed
 *      └──────────────────┘ lost: SIGKILL at once
 *
 * The book (cli/cron_book.h) decides what fires and keeps the records; this file has the clock, the
 * commands and leadership. All commands are ended by the supervisor before the lease ends, so a
 * jeopardy by itself ends none: most pass.
 *
 * A draining waits for the commands that run until --stop-timeout before its deadline; then they
 * get SIGTERM, and SIGKILL at the deadline. SIGTERM and SIGINT to this process do the same at once,
 * and end it.
 */
#include "cli/cron.h"
#include "cli/cron_book.h"
#include "cli/cron_command.h"
#include "cli/participant.h"
#include "cli/reload.h"
#include "cli/supervise.h"
#include "member/handover.h"
#include "options/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

enum {
    SIGNALS = 3,
    RELIEF_MS = 500,     /* interval of the checks whether a hand-over has failed */
    CLOCK_SET_MS = 2500, /* by so much at least; NTP slews by less in SLEEP_MAX_S */
    SLEEP_MAX_S = 3600,
    LATE_MS = 1000, /* for the last writes, when all commands are dead */
};

struct running {
    struct cron *cron;
    struct cron_fire *fire;
    struct cron_command *command;
    bool was_stopped; /* by this process, which ends or hands over */
    struct running *prev, *next;
};

struct cron {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_poll_t supervisor; /* readable: it is dead */
    uv_poll_t alarm;      /* a timerfd of the wall clock, which also says when that was set */
    uv_timer_t stopping;  /* when it fires, the commands get SIGTERM */
    uv_timer_t relief;
    int alarm_fd;
    int64_t clocks_ms; /* the wall clock less the other one, when it was looked at last */
    const struct invocation *invocation;
    struct logger *logger;
    struct participant *participant;
    struct supervise supervise;
    struct book *book;
    struct running *running;
    bool is_draining;
    bool is_holding; /* the hand-over waits for this process */
    bool is_ending;  /* a signal asked this process to end */
    bool is_late;    /* and it does not wait for the state any more */
    bool is_leaving;
    instant deadline; /* of the draining or ending */
    int result;
};

/* The wall clock and the other one, read together. */
static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Leaving --------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct cron *cron = userdata;

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&cron->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&cron->supervisor, NULL);
    uv_close((uv_handle_t *)&cron->alarm, NULL);
    uv_close((uv_handle_t *)&cron->stopping, NULL);
    uv_close((uv_handle_t *)&cron->relief, NULL);
    book_close(cron->book);
}

/* Hands leadership over, and ends with `result`. */
static void leave(struct cron *cron, int result)
{
    if (!cron->is_leaving) {
        cron->is_leaving = true;
        cron->result = result;
        participant_close(cron->participant, on_member_closed, cron);
    }
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void arm(struct cron *cron)
{
    int64_t now_s = wall_ms() / 1000, due_s = book_due(cron->book);
    struct itimerspec alarm = {0};

    alarm.it_value.tv_sec = due_s < now_s + SLEEP_MAX_S ? due_s : now_s + SLEEP_MAX_S;
    alarm.it_value.tv_nsec = 1; /* 0 would disarm it */
    (void)timerfd_settime(cron->alarm_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &alarm,
                          NULL);
}

static void settle(struct cron *cron);

static void on_alarm(uv_poll_t *handle, int status, int events)
{
    struct cron *cron = handle->data;
    int64_t clocks_ms = wall_ms() - clock_now().ns / 1000000;
    int64_t set_ms = clocks_ms - cron->clocks_ms;
    uint64_t count;
    bool was_set = read(cron->alarm_fd, &count, sizeof(count)) < 0 && errno == ECANCELED;

    (void)status;
    (void)events;
    was_set |= set_ms > CLOCK_SET_MS || set_ms < -CLOCK_SET_MS;
    if (was_set) {
        log_notice(cron->logger, "wall-clock-set", LOG_I64("by_ms", set_ms));
    }
    cron->clocks_ms = clocks_ms;
    book_tick(cron->book, was_set);
    settle(cron);
}

/* ---- Commands -------------------------------------------------------------------------------- */

static enum cron_state state_of(const struct running *running, const struct cmd_end *end)
{
    bool is_ours = end->is_overdue || running->was_stopped;

    return is_ours && end->exit_code != 0 ? CRON_INTERRUPTED
           : end->exit_code == 0          ? CRON_DONE
                                          : CRON_FAILED;
}

static void lead_on(struct cron *cron);

static void on_command_end(void *userdata, const struct cmd_end *end, const char *output)
{
    struct running *running = userdata;
    struct cron *cron = running->cron;

    book_end(cron->book, running->fire, state_of(running, end), end->exit_code & 255, output);
    DL_DELETE(cron->running, running);
    free(running);
    lead_on(cron);
    settle(cron);
}

/* Its end is a failure, and the record has the reason. */
static void fail(struct cron *cron, struct cron_fire *fire, int code,
                 const struct baton_error *error)
{
    log_error(cron->logger, "cron-not-started", LOG_STR("line", fire->page->id),
              LOG_STR("text", error->message));
    book_end(cron->book, fire, CRON_FAILED, cmd_exit_code(code), error->message);
}

/* If the line has left the file meanwhile, its fire has no command any more. */
static void run_fire(void *userdata, struct cron_fire *fire, const struct crontab *crontab,
                     const struct cron_line *line)
{
    struct cron *cron = userdata;
    struct running *running = line ? calloc(1, sizeof(*running)) : NULL;
    struct baton_error error = {0};
    struct cron_command_config config = {.loop = &cron->loop,
                                         .supervise = &cron->supervise,
                                         .logger = cron->logger,
                                         .election =
                                             election_name(participant_election(cron->participant)),
                                         .crontab = crontab,
                                         .line = line,
                                         .run = &fire->run,
                                         .on_end = on_command_end,
                                         .userdata = running};
    int code = BATON_ENOMEM;

    if (!line) {
        book_end(cron->book, fire, CRON_INTERRUPTED, 0, "");
        return;
    }
    if (running) {
        *running = (struct running){.cron = cron, .fire = fire};
        code = cron_command_start(&running->command, &config, &error);
    }
    if (code) {
        free(running);
        fail(cron, fire, code, &error);
        return;
    }
    DL_APPEND(cron->running, running);
}

/* Sends SIGTERM now, and SIGKILL at the limit. */
static void stop_commands(struct cron *cron, instant limit)
{
    for (struct running *running = cron->running; running; running = running->next) {
        struct cmd *cmd = cron_command_cmd(running->command);
        if (cmd && !running->was_stopped) {
            running->was_stopped = true;
            cmd_stop(cmd, limit);
        } else if (cmd) {
            cmd_limit(cmd, limit);
        }
    }
}

static void kill_commands(struct cron *cron)
{
    for (struct running *running = cron->running; running; running = running->next) {
        struct cmd *cmd = cron_command_cmd(running->command);
        running->was_stopped = true;
        if (cmd) {
            cmd_kill(cmd);
        }
    }
}

/* ---- Leading --------------------------------------------------------------------------------- */

/* Begins to lead, or goes on with it, if this node leads and nothing of before is left. */
static void lead(struct cron *cron, uint64_t epoch)
{
    if (!cron->running && !cron->is_ending) {
        cron->is_draining = cron->is_holding = false;
        book_hold(cron->book, false);
        book_lead(cron->book, epoch);
    }
}

/* The end of the last command of an earlier leadership was waited for. */
static void lead_on(struct cron *cron)
{
    uint64_t epoch = 0;

    if (!cron->is_leaving && !cron->running && !book_leads(cron->book) &&
        participant_is_leader(cron->participant, &epoch)) {
        lead(cron, epoch);
    }
}

static void on_lost(struct cron *cron)
{
    cron->is_draining = cron->is_holding = false;
    if (!cron->is_ending) {
        (void)uv_timer_stop(&cron->stopping);
    }
    (void)uv_timer_stop(&cron->relief);
    kill_commands(cron);
    book_follow(cron->book);
}

static void on_stopping(uv_timer_t *timer)
{
    struct cron *cron = timer->data;

    stop_commands(cron, cron->deadline);
}

/* The commands get SIGTERM so early that they have --stop-timeout until the deadline. */
static void stop_in_time(struct cron *cron, instant deadline)
{
    span patience = options_duration(cron->invocation->options, "stop-timeout");
    span wait = instant_since(instant_add(deadline, SPAN_NS(-patience.ns)), clock_now());

    cron->deadline = deadline;
    if (wait.ns <= 0) {
        stop_commands(cron, instant_min(deadline, instant_add(clock_now(), patience)));
    } else if (deadline.ns != INSTANT_NEVER.ns) {
        (void)uv_timer_start(&cron->stopping, on_stopping, (uint64_t)(wait.ns / 1000000), 0);
    }
}

/* The hand-over has failed, and this node goes on leading. */
static void resume(struct cron *cron)
{
    (void)uv_timer_stop(&cron->stopping);
    (void)uv_timer_stop(&cron->relief);
    cron->is_draining = cron->is_holding = false;
    log_notice(cron->logger, "leads-on");
    book_hold(cron->book, false);
    settle(cron);
}

static void on_relief(uv_timer_t *timer)
{
    struct cron *cron = timer->data;

    if (cron->is_draining && !cron->is_holding && !cron->is_ending &&
        !handover_is_going(participant_election(cron->participant)) &&
        participant_is_leader(cron->participant, NULL)) {
        resume(cron);
    }
}

static void on_drain(struct cron *cron, instant deadline)
{
    cron->is_draining = true;
    book_hold(cron->book, true);
    if (!book_is_idle(cron->book)) {
        cron->is_holding = true;
        handover_hold(participant_election(cron->participant));
        stop_in_time(cron, deadline);
    }
    (void)uv_timer_start(&cron->relief, on_relief, RELIEF_MS, RELIEF_MS);
}

/* After everything that may change what is due, or end a wait. */
static void settle(struct cron *cron)
{
    bool is_idle = book_is_idle(cron->book) && !cron->running;

    if (cron->is_ending && !cron->running && (is_idle || cron->is_late)) {
        leave(cron, EXIT_OK);
    } else if (is_idle && cron->is_holding) {
        cron->is_holding = false;
        if (!cron->is_ending) {
            (void)uv_timer_stop(&cron->stopping);
        }
        handover_release(participant_election(cron->participant));
    }
    if (!cron->is_leaving) {
        arm(cron);
    }
}

static void on_changed(void *userdata)
{
    settle(userdata);
}

static void on_error(struct cron *cron, const struct baton_event *event)
{
    struct baton_error error;

    if (participant_is_fatal(cron->participant, event, &error)) {
        kill_commands(cron);
        leave(cron, command_fail(cron->invocation, &error));
    } else if (cron->is_draining && !cron->is_ending && event->error.code == BATON_ETIMEDOUT &&
               participant_is_leader(cron->participant, NULL)) {
        resume(cron);
    }
}

static void on_event(void *userdata, const struct baton_event *event)
{
    struct cron *cron = userdata;

    if (!cron->book || cron->is_leaving) {
        return;
    }
    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        lead(cron, event->epoch);
        break;
    case BATON_EVENT_LOST:
        on_lost(cron);
        break;
    case BATON_EVENT_DRAIN:
        on_drain(cron, instant_add(clock_now(), SPAN_NS(event->lease_left_ns)));
        break;
    case BATON_EVENT_ERROR:
        on_error(cron, event);
        break;
    default:
        return;
    }
    settle(cron);
}

/* ---- Signals --------------------------------------------------------------------------------- */

/* A bad file keeps the crontab that there is. */
static void reload(struct cron *cron)
{
    struct crontab *crontab;
    struct baton_error error = {0};

    participant_reload(cron->participant);
    if (cron_read_file(&crontab, cron->invocation->options, &error)) {
        log_error(cron->logger, "crontab-refused", LOG_STR("text", error.message),
                  LOG_STR("keeps", "the lines of before"));
        return;
    }
    log_notice(cron->logger, "crontab-read", LOG_U64("lines", crontab->count));
    book_replace(cron->book, crontab);
    settle(cron);
}

/* What is not written by now, without a quorum perhaps, the next leader finds interrupted. */
static void on_late(uv_timer_t *timer)
{
    struct cron *cron = timer->data;

    cron->is_late = true;
    kill_commands(cron);
    settle(cron);
}

/* A second signal does not wait for anything. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct cron *cron = handle->data;
    span patience = options_duration(cron->invocation->options, "stop-timeout");

    if (number == SIGHUP) {
        reload(cron);
        return;
    }
    book_hold(cron->book, true);
    if (cron->is_ending) {
        on_late(&cron->stopping);
        return;
    }
    cron->is_ending = true;
    stop_commands(cron, instant_add(clock_now(), patience));
    (void)uv_timer_start(&cron->stopping, on_late, (uint64_t)(patience.ns / 1000000) + LATE_MS, 0);
    settle(cron);
}

/* While a command lives, cmd.c notices this. Without one, this node could win and start nothing. */
static void on_supervisor_dead(uv_poll_t *handle, int status, int events)
{
    struct cron *cron = handle->data;

    (void)status;
    (void)events;
    if (!cron->running) {
        (void)uv_poll_stop(handle);
        supervise_tell_dead(&cron->supervise);
        leave(cron, EXIT_REFUSED);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void prepare(struct cron *cron)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&cron->loop, &cron->signals[i]);
        cron->signals[i].data = cron;
        (void)uv_signal_start(&cron->signals[i], on_signal, numbers[i]);
    }
    command_watch(cron->invocation, &cron->loop, &cron->supervisor, cron->supervise.victims.process,
                  on_supervisor_dead, cron);
    command_watch(cron->invocation, &cron->loop, &cron->alarm, cron->alarm_fd, on_alarm, cron);
    (void)uv_timer_init(&cron->loop, &cron->stopping);
    (void)uv_timer_init(&cron->loop, &cron->relief);
    cron->stopping.data = cron->relief.data = cron;
    cron->clocks_ms = wall_ms() - clock_now().ns / 1000000;
}

static int open_book(struct cron *cron, struct crontab *crontab, struct baton_error *reterr)
{
    struct member *member = participant_member(cron->participant);
    struct cron_page_config config = {.member = member,
                                      .election =
                                          election_name(participant_election(cron->participant)),
                                      .node = participant_node(cron->participant),
                                      .logger = cron->logger,
                                      .now_ms = wall_ms,
                                      .run = run_fire,
                                      .changed = on_changed,
                                      .userdata = cron};
    int code = member_need(member, PROVIDER_STATE, "state, where the fires are kept", reterr);

    return code ? code : book_open(&cron->book, &config, crontab, reterr);
}

static int run_all(struct cron *cron, struct crontab *crontab, struct baton_error *reterr)
{
    uint64_t epoch = 0;
    struct participant_config config = {.loop = &cron->loop,
                                        .options = cron->invocation->options,
                                        .logger = cron->logger,
                                        .proofs = "guardian",
                                        .lease = cron->supervise.lease,
                                        .has_endpoints = true,
                                        .on_event = on_event,
                                        .userdata = cron};
    int code = participant_open(&cron->participant, &config, reterr);

    if (code) {
        crontab_free(crontab);
        return code;
    }
    supervise_tell(&cron->supervise);
    prepare(cron);
    member_set_victims(participant_member(cron->participant), &cron->supervise.victims);
    code = open_book(cron, crontab, reterr);
    if (code) {
        crontab_free(crontab);
        leave(cron, EXIT_REFUSED);
    } else {
        log_notice(cron->logger, "crontab-read", LOG_U64("lines", crontab->count));
        participant_release_reload(cron->participant);
        if (participant_is_leader(cron->participant, &epoch)) {
            lead(cron, epoch); /* a quorum by itself: it leads at once */
        }
        settle(cron);
    }
    (void)uv_run(&cron->loop, UV_RUN_DEFAULT);
    book_free(cron->book);
    participant_free(cron->participant);
    return code;
}

int cron_run_main(const struct invocation *invocation)
{
    struct cron cron = {.invocation = invocation, .supervise = {.orders = -1}};
    struct crontab *crontab;
    struct baton_error error = {0};
    int code = cron_read_file(&crontab, invocation->options, &error);

    if (code) {
        return command_fail(invocation, &error);
    }
    cron.logger = program_logger(invocation->options);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    reload_hold();
    code = supervise_begin(&cron.supervise, invocation->options, cron.logger, &error);
    cron.alarm_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    code = code ? code : command_open_loop(&cron.loop, &error);
    if (code) {
        crontab_free(crontab);
    } else {
        code = run_all(&cron, crontab, &error);
        (void)uv_loop_close(&cron.loop);
    }
    supervise_fini(&cron.supervise);
    (void)close(cron.alarm_fd);
    logger_free(cron.logger);
    return code ? command_fail(invocation, &error) : cron.result;
}
