/* `baton run`: CMD lives only while this node leads.
 *
 *            acquired               jeopardy, drain
 *   WAITING ─────────▶ RUNNING ─────────────────────▶ STOPPING     leadership lost: SIGKILL at once
 *      ▲                  │ CMD ends by itself            │ CMD ends
 *      │                  ▼                               ▼
 *      │               LEAVING ◀── --on-loss exit ──── (decide)
 *      └──────────────────────────── restart ─────────────┘
 *
 * on_acquired, stop, on_lost and on_command_end are the arrows. The lease is the hard limit:
 * SIGTERM comes at jeopardy, and SIGKILL at the latest KILL_MARGIN before the end, so that CMD is
 * dead by then. A jeopardy is reported once only, so CMD does not start again before it is over.
 */
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/participant.h"
#include "cli/reload.h"
#include "cli/supervise.h"
#include "cli/watchdog.h"
#include "member/handover.h"
#include "options/program.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORWARDED = 6 };

/* From SIGKILL to the end of the lease: the kernel needs a moment to end a process. A tenth of what
 * is left, and 50 ms at most. */
#define KILL_MARGIN_MAX SPAN_MS(50)

enum { RELIEF_MS = 20 }; /* interval of the checks whether a lease in jeopardy was renewed */

enum run_state { WAITING, RUNNING, STOPPING, LEAVING };

struct run {
    uv_loop_t loop;
    uv_signal_t signals[FORWARDED];
    uv_timer_t patience;  /* of --wait-timeout */
    uv_poll_t supervisor; /* readable: it is dead */
    uv_poll_t notices;    /* of CMD to its watchdog */
    uv_timer_t relief;    /* active while CMD has stopped in jeopardy and this node still leads */
    instant doubted_end;  /* of the lease that was in jeopardy last; CMD starts no earlier */
    const struct invocation *invocation;
    struct logger *logger;
    struct participant *participant;
    struct cmd *cmd; /* NULL: CMD does not run */
    struct supervise supervise;
    struct watchdog watchdog;
    bool has_watchdog;
    enum run_state state;
    bool is_ending;    /* a signal asked baton to end */
    bool has_terminal; /* SIGHUP may mean that the terminal was closed */
    int fatal;         /* exit code of a fatal error, for the time when CMD has ended; 0: none */
    int result;
};

static void on_member_closed(void *userdata)
{
    struct run *run = userdata;
    for (size_t i = 0; i < FORWARDED; i++) {
        uv_close((uv_handle_t *)&run->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&run->patience, NULL);
    uv_close((uv_handle_t *)&run->relief, NULL);
    uv_close((uv_handle_t *)&run->supervisor, NULL);
    if (run->has_watchdog) {
        uv_close((uv_handle_t *)&run->notices, NULL);
    }
}

/* Ends baton itself with `result`, and hands leadership over. */
static void leave(struct run *run, int result)
{
    if (run->state != LEAVING) {
        run->state = LEAVING;
        run->result = result;
        participant_close(run->participant, on_member_closed, run);
    }
}

/* ---- CMD ------------------------------------------------------------------------------------- */

static void start(struct run *run, uint64_t epoch);

static bool says(const struct run *run, const char *on_loss)
{
    return strcmp(options_text(run->invocation->options, "on-loss"), on_loss) == 0;
}

/* Notes the end of the lease that is in jeopardy; the noted end is never too early. */
static void doubt(struct run *run)
{
    span left = participant_lease_left(run->participant);
    run->doubted_end = instant_add(clock_now(), left);
}

static bool is_in_jeopardy(const struct run *run)
{
    instant now = clock_now(); /* read first, so that the end is never too late */
    return !instant_before(run->doubted_end,
                           instant_add(now, participant_lease_left(run->participant)));
}

static void on_relief(uv_timer_t *timer);

/* After CMD has ended this node campaigns again. False: not yet. */
static bool is_able(struct run *run)
{
    struct baton_error error = {0};
    int code = BATON_OK;
    if (run->state == WAITING && !run->cmd && run->participant) {
        code = handover_set_able(participant_election(run->participant), true, &error);
    }
    if (code == BATON_OK || code == BATON_ECLOSED) {
        return true;
    }
    if (!uv_is_active((uv_handle_t *)&run->relief)) {
        log_warning(run->logger, "campaigns-not", LOG_STR("reason", error.message),
                    LOG_STR("advice", "it is tried again"));
    }
    return false;
}

/* Starts CMD again if its reason to stop is over and this node still leads: a hand-over failed, or
 * a jeopardy passed. */
static void lead_on(struct run *run)
{
    bool is_unable = !is_able(run); /* first: it may make this node lead at once */
    uint64_t epoch = 0;
    bool leads = run->state == WAITING && run->participant &&
                 !handover_is_going(participant_election(run->participant)) &&
                 participant_is_leader(run->participant, &epoch);
    bool is_early = leads && is_in_jeopardy(run);
    if ((is_early || is_unable) && !uv_is_active((uv_handle_t *)&run->relief)) {
        (void)uv_timer_start(&run->relief, on_relief, RELIEF_MS, RELIEF_MS);
    } else if (!is_early && !is_unable) {
        (void)uv_timer_stop(&run->relief);
    }
    if (leads && !is_early) {
        log_notice(run->logger, "leads-on", LOG_U64("epoch", epoch));
        start(run, epoch);
    }
}

static void on_relief(uv_timer_t *timer)
{
    lead_on(timer->data);
}

static void on_command_end(void *userdata, const struct cmd_end *end)
{
    struct run *run = userdata;
    enum run_state was = run->state == RUNNING && end->is_overdue ? STOPPING : run->state;
    int exit_code = end->exit_code;
    run->cmd = NULL;
    if (run->has_watchdog) {
        watchdog_forget(&run->watchdog);
    }
    member_set_victims(participant_member(run->participant),
                       &run->supervise.victims); /* the process group no longer exists */
    log_notice(run->logger, "command-ended", LOG_I64("exit_code", exit_code),
               LOG_STR("reason", end->is_overdue ? "the lease was about to end" : NULL));
    if (run->fatal) {
        leave(run, run->fatal);
    } else if (was == RUNNING || run->is_ending) {
        leave(run, exit_code);
    } else if (was == STOPPING && says(run, "exit")) {
        leave(run, EXIT_LOST);
    } else if (was == STOPPING) {
        run->state = WAITING;
        handover_release(participant_election(run->participant));
        lead_on(run);
    }
}

static void on_command_stay(void *userdata)
{
    const struct run *run = userdata;
    log_warning(run->logger, "command-stays", LOG_I64("pid", cmd_pid(run->cmd)),
                LOG_STR("advice", "it was killed, and it or a process of its has not ended: see "
                                  "whether one waits for a disk, or is another user's; until then "
                                  "this node begins nothing"));
}

static void start(struct run *run, uint64_t epoch)
{
    struct baton_error error;
    struct cmd_config config = {.loop = &run->loop,
                                .supervise = &run->supervise,
                                .argv = run->invocation->argv,
                                .watchdog = run->has_watchdog ? &run->watchdog : NULL,
                                .node = participant_node(run->participant),
                                .election = election_name(participant_election(run->participant)),
                                .epoch = epoch,
                                .on_exit = on_command_end,
                                .on_stay = on_command_stay,
                                .userdata = run};
    (void)uv_timer_stop(&run->patience);
    int code = cmd_start(&run->cmd, &config, &error);
    if (code) {
        command_tell(run->invocation, &error);
        leave(run, cmd_exit_code(code));
        return;
    }
    run->state = RUNNING;
    member_set_victims(participant_member(run->participant),
                       &run->supervise.victims); /* now with its process group */
    if (cmd_pid(run->cmd) > 0) { /* 0: the lease ended before CMD could be started */
        log_notice(run->logger, "command-started", LOG_I64("pid", cmd_pid(run->cmd)),
                   LOG_U64("epoch", epoch));
    }
}

/* Sends SIGTERM now, and SIGKILL after --stop-timeout or at the lease's end or the deadline,
 * whichever is first. */
static void stop(struct run *run, instant deadline)
{
    instant now = clock_now();
    span left = participant_lease_left(run->participant);
    span margin = {left.ns / 10 < KILL_MARGIN_MAX.ns ? left.ns / 10 : KILL_MARGIN_MAX.ns};
    instant lease_limit = instant_add(now, SPAN_NS(left.ns - margin.ns));
    instant own = instant_add(now, options_duration(run->invocation->options, "stop-timeout"));
    run->state = STOPPING;
    cmd_stop(run->cmd, instant_min(instant_min(own, lease_limit), deadline));
}

/* ---- What happens ---------------------------------------------------------------------------- */

static void on_acquired(struct run *run, uint64_t epoch)
{
    if (run->state == WAITING && !run->cmd && run->participant) {
        start(run, epoch);
    }
}

static void on_jeopardy(struct run *run)
{
    doubt(run);
    if (run->state != RUNNING) {
        return;
    }
    if (says(run, "kill")) {
        run->state = STOPPING;
        cmd_kill(run->cmd);
    } else {
        stop(run, INSTANT_NEVER);
    }
}

/* The lease is over: CMD must not act any more. */
static void on_lost(struct run *run)
{
    if (run->cmd) {
        run->state = run->state == RUNNING ? STOPPING : run->state;
        cmd_kill(run->cmd);
        (void)handover_set_able(participant_election(run->participant), false,
                                NULL); /* until it has ended */
    }
}

static void on_error(struct run *run, const struct baton_event *event)
{
    struct baton_error error;
    if (!participant_is_fatal(run->participant, event, &error)) {
        lead_on(run); /* perhaps the error of a hand-over that failed */
        return;
    }
    run->fatal = exit_code_of_error(error.code);
    command_tell(run->invocation, &error);
    if (run->cmd) {
        cmd_kill(run->cmd);
    } else {
        leave(run, run->fatal);
    }
}

/* Leadership is handed over once CMD has ended. */
static void on_drain(struct run *run, instant deadline)
{
    if (run->state == RUNNING) {
        stop(run, deadline);
    }
    if (run->cmd) {
        handover_hold(participant_election(run->participant));
    }
}

static void on_event(void *userdata, const struct baton_event *event)
{
    struct run *run = userdata;
    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        on_acquired(run, event->epoch);
        break;
    case BATON_EVENT_JEOPARDY:
        on_jeopardy(run);
        break;
    case BATON_EVENT_ERROR:
        on_error(run, event);
        break;
    case BATON_EVENT_LOST:
        on_lost(run);
        break;
    case BATON_EVENT_DRAIN:
        on_drain(run, instant_add(clock_now(), SPAN_NS(event->lease_left_ns)));
        break;
    default:
        break;
    }
}

/* Forwards the signal to CMD; without CMD, ends baton. SIGHUP without a terminal is not forwarded:
 * it reloads. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;
    if (number == SIGHUP && !run->has_terminal) {
        participant_reload(run->participant);
        return;
    }
    bool ends = number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
    run->is_ending |= ends && (number != SIGQUIT || !run->cmd); /* a JVM only writes its threads */
    if (run->cmd && ends && number != SIGQUIT) {
        instant limit =
            instant_add(clock_now(), options_duration(run->invocation->options, "stop-timeout"));
        cmd_signal(run->cmd, number);
        cmd_signal(run->cmd, SIGCONT); /* a stopped program does not handle the signal */
        cmd_limit(run->cmd, limit);
    } else if (run->cmd) {
        cmd_signal(run->cmd, number);
    } else if (ends) {
        leave(run, EXIT_SIGNAL + number);
    }
}

/* While CMD lives, cmd.c notices this. Without CMD, this node could win and start nothing. */
static void on_supervisor_dead(uv_poll_t *handle, int status, int events)
{
    struct run *run = handle->data;
    (void)status;
    (void)events;
    if (!run->cmd) {
        (void)uv_poll_stop(handle);
        supervise_tell_dead(&run->supervise);
        leave(run, EXIT_REFUSED);
    }
}

static void on_notices(uv_poll_t *handle, int status, int events)
{
    struct run *run = handle->data;
    (void)status;
    (void)events;
    watchdog_hear(&run->watchdog, run->cmd != NULL);
}

static void on_patience(uv_timer_t *timer)
{
    struct run *run = timer->data;
    struct baton_error error;
    if (run->state == WAITING && !run->cmd) {
        error_set(&error, BATON_ETIMEDOUT,
                  "--wait-timeout %s: leadership was not won in this time; last reason: %s",
                  options_text(run->invocation->options, "wait-timeout"),
                  participant_obstacle(run->participant));
        leave(run, command_fail(run->invocation, &error));
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void prepare(struct run *run)
{
    static const int numbers[FORWARDED] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    span wait = options_duration(run->invocation->options, "wait-timeout");
    int64_t wait_ms = (wait.ns + 999999) / 1000000; /* rounded up: 0 means for ever */
    for (size_t i = 0; i < FORWARDED; i++) {
        (void)uv_signal_init(&run->loop, &run->signals[i]);
        run->signals[i].data = run;
        if (!supervise_ignores(numbers[i])) {
            (void)uv_signal_start(&run->signals[i], on_signal, numbers[i]);
        }
    }
    (void)uv_timer_init(&run->loop, &run->patience);
    run->patience.data = run;
    (void)uv_timer_init(&run->loop, &run->relief);
    run->relief.data = run;
    command_watch(run->invocation, &run->loop, &run->supervisor, run->supervise.victims.process,
                  on_supervisor_dead, run);
    if (run->has_watchdog) {
        command_watch(run->invocation, &run->loop, &run->notices, run->watchdog.fd, on_notices,
                      run);
    }
    if (wait_ms > 0) {
        (void)uv_timer_start(&run->patience, on_patience, (uint64_t)wait_ms, 0);
    }
}

static int run_all(struct run *run, struct baton_error *reterr)
{
    uint64_t epoch = 0;
    struct participant_config config = {.loop = &run->loop,
                                        .options = run->invocation->options,
                                        .logger = run->logger,
                                        .proofs = "guardian",
                                        .kills_outliving = says(run, "kill"),
                                        .lease = run->supervise.lease,
                                        .alive_ns = &run->watchdog.alive_ns,
                                        .has_endpoints = true,
                                        .on_event = on_event,
                                        .userdata = run};
    int code = participant_open(&run->participant, &config, reterr);
    if (code) {
        return code;
    }
    supervise_tell(&run->supervise);
    prepare(run);
    participant_release_reload(run->participant);
    member_set_victims(participant_member(run->participant), &run->supervise.victims);
    if (participant_is_leader(run->participant,
                              &epoch)) { /* a quorum by itself: it leads at once */
        on_acquired(run, epoch);
    }
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    participant_free(run->participant);
    return 0;
}

int run_main(const struct invocation *invocation)
{
    struct run run = {.invocation = invocation,
                      .logger = program_logger(invocation->options),
                      .supervise = {.orders = -1},
                      .has_terminal = reload_has_terminal()};
    struct baton_error error = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    if (!run.has_terminal && !supervise_ignores(SIGHUP)) {
        reload_hold();
    }
    int code = cmd_check(invocation->argv[0], &error);
    if (code) {
        command_tell(invocation, &error);
        logger_free(run.logger);
        return cmd_exit_code(code);
    }
    run.has_watchdog = options_flag(invocation->options, "watchdog");
    if (run.has_watchdog) {
        code = watchdog_open(&run.watchdog, options_duration(invocation->options, "hang"), &error);
    }
    code = code ? code : supervise_begin(&run.supervise, invocation->options, run.logger, &error);
    code = code ? code : command_open_loop(&run.loop, &error);
    if (!code) {
        code = run_all(&run, &error);
        (void)uv_loop_close(&run.loop);
    }
    supervise_fini(&run.supervise);
    watchdog_close(&run.watchdog);
    logger_free(run.logger);
    return code ? command_fail(invocation, &error) : run.result;
}
