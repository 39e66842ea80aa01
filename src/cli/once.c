/* `baton once`: one node runs CMD, and all nodes end with its result.
 *
 * The result is one key of the provider's state, "once/NAME":
 * {"exit_code":…,"node":…,"epoch":…,"at":…}. If the leader finds no result, it runs CMD and writes
 * the key, on condition that the key is absent. Every node watches the key and ends with its exit
 * code. Refused are a provider whose state ends with the process (memory:), since no other node
 * would see the result, and one without state.
 *
 * With raft: the members themselves are the quorum that holds the state, and a member that ends at
 * once could leave the others without it. So each member writes "once/NAME/seen/NODE" before it
 * ends, and the node that ran CMD waits for this key of every live member, and for a moment also of
 * those that are silent.
 *
 * When leadership is handed over (a signal to this process, or a request of the group), CMD gets
 * SIGTERM first; when leadership is lost or in doubt, CMD is killed at once. In both cases there is
 * no result, and another node runs CMD again.
 */
#include "base/json_load.h"
#include "base/json_text.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/participant.h"
#include "cli/supervise.h"
#include "member/feed.h"
#include "member/handover.h"
#include "member/members.h"
#include "member/store.h"
#include "options/program.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    KEY_BYTES = 160,
    SEEN_MAX = 64,
    LINGER_MS = 10000,
    ABSENT_MS = 2000, /* then a member that is silent is dead */
    LOOK_MS = 100,
    AGAIN_MS = 1000,
    SIGNALS = 6
};

struct once {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_timer_t patience;
    uv_timer_t linger;
    uv_timer_t again;     /* after a read that failed */
    uv_poll_t supervisor; /* readable: it is dead */
    int64_t linger_ms;    /* time left to wait for other nodes */
    const struct invocation *invocation;
    struct logger *logger;
    struct participant *participant;
    struct feed *results; /* watches `key` and the keys below it */
    struct cmd *cmd;
    char key[KEY_BYTES];
    bool is_leaving;
    bool is_asking;    /* a read is under way */
    bool has_news;     /* a failed result has come since the last read began */
    bool is_killed;    /* this process killed CMD, because leadership was lost or in doubt */
    bool is_stopped;   /* CMD was asked to end */
    bool is_storing;   /* this node's result is being written */
    int end_signal;    /* the signal that ends this process, or 0 */
    bool has_run;      /* the result is from this node's CMD */
    uint64_t replaced; /* revision of a failed result that is no longer kept; 0: none */
    bool is_known;     /* the result is known; other nodes may still need this one */
    char seen[SEEN_MAX][BATON_NAME_MAX];
    size_t seen_count;
    struct supervise supervise;
    int exit_code; /* of CMD, while the result is being written */
    int result;
};

static void on_closed(void *userdata)
{
    struct once *once = userdata;
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&once->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&once->patience, NULL);
    uv_close((uv_handle_t *)&once->linger, NULL);
    uv_close((uv_handle_t *)&once->again, NULL);
    uv_close((uv_handle_t *)&once->supervisor, NULL);
}

/* Leadership is given away only after CMD's end. */
static void leave(struct once *once, int result)
{
    if (once->is_leaving) {
        return;
    }
    once->is_leaving = true;
    once->result = result;
    if (once->cmd) {
        cmd_kill(once->cmd); /* on_command_end continues */
    } else {
        participant_close(once->participant, on_closed, once);
    }
}

static void fail(struct once *once, int code, const char *what)
{
    struct baton_error error;
    if (once->is_leaving) {
        return; /* the failure is a consequence of leaving */
    }
    error_set(&error, code, "%s: %s", what, baton_strerror(code));
    leave(once, command_fail(once->invocation, &error));
}

/* ---- Until the others know ------------------------------------------------------------------- */

/* Called by the watch. A query would need the quorum that is about to end. */
static void note_seen(struct once *once, const char *node)
{
    if (once->seen_count < SEEN_MAX) {
        (void)snprintf(once->seen[once->seen_count++], BATON_NAME_MAX, "%s", node);
    }
}

/* One that is silent may only be late, and would be left without the result for good. */
static bool has_seen(const struct once *once, const struct baton_member *member)
{
    bool is_dead = !member->is_alive && once->linger_ms <= LINGER_MS - ABSENT_MS;
    bool found = member->is_self || is_dead;
    for (size_t i = 0; i < once->seen_count && !found; i++) {
        found = strcmp(once->seen[i], member->name) == 0;
    }
    return found;
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct once *once = userdata;
    bool all = code == 0;
    for (size_t i = 0; i < count && all; i++) {
        all = has_seen(once, &members[i]);
    }
    if (all) {
        leave(once, once->result);
    }
}

static void leave_if_all_know(struct once *once)
{
    if (once->is_known && once->has_run && !once->is_leaving) {
        (void)members_list(participant_election(once->participant), on_members, once, NULL);
    }
}

static void on_linger(uv_timer_t *timer)
{
    struct once *once = timer->data;
    once->linger_ms -= LOOK_MS;
    if (once->linger_ms < 0) {
        leave(once, once->result);
    } else {
        leave_if_all_know(once); /* a node may have died */
    }
}

static void on_seen_written(void *userdata, int code, uint64_t revision,
                            const struct baton_error *error)
{
    struct once *once = userdata;
    (void)code; /* not stored: the node that ran CMD then lingers for LINGER_MS */
    (void)revision;
    (void)error;
    leave(once, once->result);
}

static void conclude(struct once *once, int result)
{
    struct member *member = participant_member(once->participant);
    char key[KEY_BYTES + 80];
    if (once->is_known || once->is_leaving) {
        return;
    }
    once->is_known = true;
    once->result = result;
    if (!member_has(member, PROVIDER_OPERATE)) {
        leave(once, result);
    } else if (once->has_run) {
        once->linger_ms = LINGER_MS;
        (void)uv_timer_start(&once->linger, on_linger, LOOK_MS, LOOK_MS);
        leave_if_all_know(once);
    } else {
        (void)snprintf(key, sizeof(key), "%s/seen/%s", once->key,
                       participant_node(once->participant));
        if (store_put(member, key, "", 0, PROVIDER_ANY_REVISION, SPAN_S(3600), on_seen_written,
                      once, NULL) != 0) {
            leave(once, result);
        }
    }
}

/* ---- The result ------------------------------------------------------------------------------ */

static int64_t seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

static bool is_failure(const struct provider_value *value)
{
    json_t *json = json_load_bytes(value->data, value->bytes, 0, NULL);
    bool has_failed = json_integer_value(json_object_get(json, "exit_code")) != 0;
    json_decref(json);
    return has_failed;
}

/* If a group lives only while `once` runs, its next start gives all keys a new lifetime. So the
 * result contains the time at which it was stored, by a clock that a reboot does not change. */
static bool is_spent(const struct once *once, const struct provider_value *value)
{
    json_t *json = json_load_bytes(value->data, value->bytes, 0, NULL);
    const json_t *at = json_object_get(json, "at");
    bool has_failed = is_failure(value);
    span keep = options_duration(once->invocation->options, has_failed ? "keep-failed" : "keep");
    bool is_over = keep.ns > 0 && json_is_integer(at) &&
                   seconds_now() - json_integer_value(at) > keep.ns / 1000000000;
    json_decref(json);
    return is_over;
}

static void take_result(struct once *once, const struct provider_value *value)
{
    json_t *json = json_load_bytes(value->data, value->bytes, 0, NULL);
    const json_t *code = json_object_get(json, "exit_code");
    if (!json_is_integer(code)) {
        fail(once, BATON_ECORRUPT, once->key);
    } else {
        log_notice(once->logger, "result-found",
                   LOG_STR("node", json_string_value(json_object_get(json, "node"))),
                   LOG_I64("exit_code", json_integer_value(code)));
        conclude(once, (int)json_integer_value(code) & 255);
    }
    json_decref(json);
}

static void look(struct once *once);

static void on_change(void *userdata, const struct provider_value *value)
{
    struct once *once = userdata;
    const char *rest = value->key + strlen(once->key); /* the watch is on the key's prefix */
    if (once->is_leaving || !value->data) {
        return;
    }
    if (*rest == '\0' && is_failure(value)) {
        once->has_news = true;
        look(once); /* a node that starts also gets results that were replaced since */
    } else if (*rest == '\0' && !is_spent(once, value)) {
        take_result(once, value);
    } else if (strncmp(rest, "/seen/", 6) == 0) {
        note_seen(once, rest + 6);
        leave_if_all_know(once);
    }
}

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct once *once = userdata;
    (void)revision;

    once->is_storing = false;
    handover_release(participant_election(once->participant));
    if (code == BATON_ECONFLICT) { /* another node's result is stored: the watch reports it */
        if (once->has_news) {
            look(once); /* it has */
        }
        return;
    }
    if (code) {
        fail(once, code, error && error->code ? error->message : "the result was not stored");
        return;
    }
    if (once->end_signal) {
        leave(once, EXIT_SIGNAL + once->end_signal);
        return;
    }
    conclude(once, once->exit_code);
}

static void lead_on(struct once *once);

static void store_result(struct once *once, uint64_t epoch)
{
    struct baton_error error = {0};
    struct member *member = participant_member(once->participant);
    json_t *json = json_pack("{s:i,s:s,s:I,s:I}", "exit_code", once->exit_code, "node",
                             participant_node(once->participant), "epoch", (json_int_t)epoch, "at",
                             (json_int_t)seconds_now());
    char *text = json ? json_text(json, JSON_COMPACT) : NULL;
    once->is_storing = true;
    once->has_run = true; /* set before the watch reports the result */
    int code = text ? store_put(member, once->key, text, strlen(text), once->replaced,
                                options_duration(once->invocation->options,
                                                 once->exit_code ? "keep-failed" : "keep"),
                                on_written, once, &error)
                    : BATON_ENOMEM;
    if (code) {
        once->is_storing = false;
        fail(once, code, "the result was not stored");
    }
    free(text);
    json_decref(json);
}

/* This process ended CMD. Another node runs it, and this one waits for the result; but if this node
 * still leads (the jeopardy is over, or the hand-over failed), it runs CMD again. */
static void abandon(struct once *once, int exit_code)
{
    log_warning(once->logger, "command-abandoned", LOG_I64("exit_code", exit_code));
    if (once->end_signal) {
        leave(once, EXIT_SIGNAL + once->end_signal);
        return;
    }
    handover_release(participant_election(once->participant));
    if (once->has_news) {
        look(once);
    } else {
        lead_on(once);
    }
}

static void on_command_end(void *userdata, const struct cmd_end *end)
{
    struct once *once = userdata;
    uint64_t epoch = 0;
    int exit_code = end->exit_code;
    bool is_ours = once->is_stopped || end->is_overdue ||
                   (once->is_killed && exit_code == EXIT_SIGNAL + SIGKILL);
    once->cmd = NULL;
    once->is_killed = false;
    once->is_stopped = false;
    member_set_victims(participant_member(once->participant),
                       &once->supervise.victims); /* the process group no longer exists */
    if (once->is_leaving) {
        participant_close(once->participant, on_closed, once);
        return;
    }
    if (is_ours || !participant_is_leader(once->participant, &epoch)) {
        abandon(once, exit_code);
    } else {
        once->exit_code = exit_code;
        store_result(once, epoch);
    }
}

/* ---- Running CMD ----------------------------------------------------------------------------- */

static void start(struct once *once, uint64_t epoch)
{
    struct baton_error error;
    struct cmd_config config = {.loop = &once->loop,
                                .supervise = &once->supervise,
                                .argv = once->invocation->argv + 1,
                                .node = participant_node(once->participant),
                                .election = election_name(participant_election(once->participant)),
                                .epoch = epoch,
                                .on_exit = on_command_end,
                                .userdata = once};
    (void)uv_timer_stop(&once->patience);
    /* First by the marker, before CMD starts; then also by the process group, once that has a
     * number. */
    member_set_victims(participant_member(once->participant), &once->supervise.victims);
    int code = cmd_start(&once->cmd, &config, &error);
    member_set_victims(participant_member(once->participant), &once->supervise.victims);
    if (code) {
        command_tell(once->invocation, &error);
        leave(once, cmd_exit_code(code));
    }
}

static void on_again(uv_timer_t *timer)
{
    look(timer->data);
}

/* A provider that does not answer now may do so later; --wait-timeout says how long to wait. */
static void note_unread(struct once *once, int code, const char *what)
{
    if (code == BATON_ETIMEDOUT || code == BATON_EUNAVAILABLE) {
        log_warning(once->logger, "result-not-read", LOG_STR("key", once->key),
                    LOG_STR("text", what));
        (void)uv_timer_start(&once->again, on_again, AGAIN_MS, 0);
    } else {
        fail(once, code, once->key);
    }
}

static void on_read(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct once *once = userdata;
    uint64_t epoch = 0;
    once->is_asking = false;
    if (once->is_leaving || once->is_known || once->cmd || once->is_storing) {
        return;
    }
    if (code && code != BATON_ENOENT) {
        note_unread(once, code, baton_strerror(code));
    } else if (!code && count > 0 && values[0].data && !is_spent(once, &values[0])) {
        take_result(once, &values[0]);
    } else if (once->has_news) {
        look(once);
    } else if (participant_is_leader(once->participant, &epoch)) {
        once->replaced = !code && count > 0 && values[0].data ? values[0].revision : 0;
        start(once, epoch);
    }
}

/* The leader reads the result, and runs CMD if there is none. While this node's own result is being
 * written it does not read: it would find nothing, and CMD would run again. */
static void look(struct once *once)
{
    struct baton_error error;
    if (once->is_asking || once->is_storing || once->cmd || once->is_leaving || once->is_known) {
        return;
    }
    once->is_asking = true;
    once->has_news = false;
    int code = store_get(participant_member(once->participant), once->key, on_read, once, &error);
    if (code) {
        once->is_asking = false;
        note_unread(once, code, error.message);
    }
}

static void lead_on(struct once *once)
{
    if (once->participant && !once->end_signal &&
        !handover_is_going(participant_election(once->participant)) &&
        participant_is_leader(once->participant, NULL)) {
        look(once);
    }
}

/* Sends the signal now, and SIGKILL at the limit or after --stop-timeout. */
static void stop(struct once *once, int number, instant limit)
{
    span patience = options_duration(once->invocation->options, "stop-timeout");
    once->is_stopped = true;
    cmd_signal(once->cmd, number);
    cmd_signal(once->cmd, SIGCONT); /* a stopped program does not handle SIGTERM */
    cmd_limit(once->cmd, instant_min(limit, instant_add(clock_now(), patience)));
}

/* The group asks for another leader. CMD is stopped first, and a result that is being written is
 * finished first. */
static void on_drain(struct once *once, instant deadline)
{
    if (once->cmd && !once->is_stopped) {
        stop(once, SIGTERM, deadline);
    }
    if (once->cmd || once->is_storing) {
        handover_hold(participant_election(once->participant));
    }
}

static void on_event(void *userdata, const struct baton_event *event)
{
    struct once *once = userdata;
    struct baton_error error;
    bool ends = event->type == BATON_EVENT_LOST || event->type == BATON_EVENT_JEOPARDY;
    if (event->type == BATON_EVENT_ACQUIRED && once->participant) {
        look(once);
    } else if (event->type == BATON_EVENT_DRAIN) {
        on_drain(once, instant_add(clock_now(), SPAN_NS(event->lease_left_ns)));
    } else if (ends && once->cmd) {
        once->is_killed = true;
        cmd_kill(once->cmd);
    } else if (participant_is_fatal(once->participant, event, &error)) {
        leave(once, command_fail(once->invocation, &error));
    } else if (event->type == BATON_EVENT_ERROR) {
        lead_on(once); /* perhaps the error of a hand-over that failed */
    } else if (event->type == BATON_EVENT_LEADER && once->is_known && !once->has_run) {
        leave(once, once->result); /* the node that ran CMD has left: every node has the result */
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct once *once = handle->data;
    bool is_waited_for = once->is_storing && !once->end_signal; /* a second signal ends the wait */
    bool ends = number != SIGUSR1 && number != SIGUSR2 && (number != SIGQUIT || !once->cmd);
    if (!ends) { /* only CMD handles these signals: a JVM writes its threads on SIGQUIT */
        if (once->cmd) {
            cmd_signal(once->cmd, number);
        }
        return;
    }
    once->end_signal = number;
    if (once->cmd) {
        stop(once, number, INSTANT_NEVER);
    } else if (!is_waited_for) {
        leave(once, EXIT_SIGNAL + number);
    }
}

/* While CMD lives, cmd.c notices this. Without CMD, this node could win and start nothing. */
static void on_supervisor_dead(uv_poll_t *handle, int status, int events)
{
    struct once *once = handle->data;
    (void)status;
    (void)events;
    if (!once->cmd) {
        (void)uv_poll_stop(handle);
        supervise_tell_dead(&once->supervise);
        leave(once, EXIT_REFUSED);
    }
}

static void on_patience(uv_timer_t *timer)
{
    struct once *once = timer->data;
    struct baton_error error;
    if (!once->cmd && !once->is_known && !once->is_leaving) {
        error_set(&error, BATON_ETIMEDOUT,
                  "--wait-timeout %s: no other node stored a result, and this node did not lead; "
                  "last reason: %s",
                  options_text(once->invocation->options, "wait-timeout"),
                  participant_obstacle(once->participant));
        leave(once, command_fail(once->invocation, &error));
    }
}

static void prepare(struct once *once)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    span wait = options_duration(once->invocation->options, "wait-timeout");
    int64_t wait_ms = (wait.ns + 999999) / 1000000; /* rounded up: 0 means for ever */
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&once->loop, &once->signals[i]);
        once->signals[i].data = once;
        if (!supervise_ignores(numbers[i])) {
            (void)uv_signal_start(&once->signals[i], on_signal, numbers[i]);
        }
    }
    (void)uv_timer_init(&once->loop, &once->patience);
    once->patience.data = once;
    (void)uv_timer_init(&once->loop, &once->linger);
    once->linger.data = once;
    (void)uv_timer_init(&once->loop, &once->again);
    once->again.data = once;
    command_watch(once->invocation, &once->loop, &once->supervisor, once->supervise.victims.process,
                  on_supervisor_dead, once);
    if (wait_ms > 0) {
        (void)uv_timer_start(&once->patience, on_patience, (uint64_t)wait_ms, 0);
    }
}

static int check_provider(const struct once *once, struct baton_error *reterr)
{
    const struct member *member = participant_member(once->participant);
    if (!member_has(member, PROVIDER_STATE) || strcmp(member_scheme(member), "memory") == 0) {
        return error_set(reterr, BATON_ENOTSUP,
                         "provider %s: keeps no state that other processes share, so a result "
                         "could not reach them",
                         member_scheme(member));
    }
    return 0;
}

static int run_all(struct once *once, struct baton_error *reterr)
{
    struct participant_config config = {.loop = &once->loop,
                                        .options = once->invocation->options,
                                        .logger = once->logger,
                                        .proofs = "guardian",
                                        .lease = once->supervise.lease,
                                        .on_event = on_event,
                                        .userdata = once};
    int code = participant_open(&once->participant, &config, reterr);
    if (code) {
        return code;
    }
    supervise_tell(&once->supervise);
    prepare(once);
    member_set_victims(participant_member(once->participant), &once->supervise.victims);
    code = check_provider(once, reterr);
    code = code ? code
                : feed_watch(&once->results, participant_member(once->participant), once->key,
                             on_change, once, reterr);
    if (code) {
        leave(once, EXIT_REFUSED);
    } else if (participant_is_leader(once->participant, NULL)) {
        look(once);
    }
    (void)uv_run(&once->loop, UV_RUN_DEFAULT);
    feed_stop(once->results);
    participant_free(once->participant);
    return code;
}

int once_main(const struct invocation *invocation)
{
    struct once once = {.invocation = invocation};
    struct baton_error error = {0};
    int written = snprintf(once.key, sizeof(once.key), "once/%s", invocation->argv[0]);
    if (!*invocation->argv[0]) { /* "$UNSET": all unset names would share one result */
        error_set(&error, BATON_EINVAL, "'': the name must not be empty");
        return command_fail(invocation, &error);
    }
    if (written < 0 || (size_t)written >= sizeof(once.key)) {
        error_set(&error, BATON_EINVAL, "'%.40s...': the name has %zu bytes; must have at most %zu",
                  invocation->argv[0], strlen(invocation->argv[0]),
                  sizeof(once.key) - sizeof("once/"));
        return command_fail(invocation, &error);
    }
    once.logger = program_logger(invocation->options);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    int code = cmd_check(invocation->argv[1], &error);
    if (code) {
        command_tell(invocation, &error);
        logger_free(once.logger);
        return cmd_exit_code(code);
    }
    code = supervise_begin(&once.supervise, invocation->options, once.logger, &error);
    code = code ? code : command_open_loop(&once.loop, &error);
    if (!code) {
        code = run_all(&once, &error);
        (void)uv_loop_close(&once.loop);
    }
    supervise_fini(&once.supervise);
    logger_free(once.logger);
    return code ? command_fail(invocation, &error) : once.result;
}
