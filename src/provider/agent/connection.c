/* The connection: it is made and made again, greets, renews, and carries requests. */
#include "provider/agent/remote.h"

#include "base/json_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { VERSION = 1, START_FIELD = 19, STAT_BYTES = 1024 };

#define BACKOFF_FIRST SPAN_MS(10)
#define BACKOFF_MOST  SPAN_MS(500)
#define REPLY_LIMIT   SPAN_S(30)
#define REPORT_EVERY  SPAN_S(5)
#define MEMBERS_EVERY SPAN_MS(500)

/* ---- Callbacks ------------------------------------------------------------------------------- */

void remote_enter_callback(struct remote *remote)
{
    remote->depth++;
}

void remote_leave_callback(struct remote *remote)
{
    if (--remote->depth == 0) {
        contests_sweep(remote);
        feeds_sweep(remote);
    }
}

/* ---- Requests -------------------------------------------------------------------------------- */

int remote_code(const json_t *reply, struct baton_error *reterr)
{
    const char *code = json_string_value(json_object_get(reply, "code"));
    const char *text = json_string_value(json_object_get(reply, "error"));

    if (json_is_true(json_object_get(reply, "ok"))) {
        return BATON_OK;
    }
    return error_set(reterr, code ? local_code(code) : BATON_EPROTO, "%s",
                     text ? text : "the agent's reply has no \"ok\"");
}

/* Its one end; frees it. */
static void finish(struct remote *remote, struct call *call, int code, const json_t *reply)
{
    HASH_DEL(remote->calls, call);
    remote->sent -= call->is_sent;
    remote->own_waiting -= call->is_own && !call->is_sent;
    remote->bytes -= call->bytes;
    remote_enter_callback(remote);
    if (call->done) {
        call->done(call, code, reply);
    }
    json_decref(call->message);
    listing_fini(&call->parts);
    free(call);
    remote_leave_callback(remote);
}

struct call *remote_call(struct remote *remote, json_t *message,
                         void (*done)(struct call *call, int code, const json_t *reply))
{
    struct call *call = message ? calloc(1, sizeof(*call)) : NULL;

    if (!call || json_object_set_new(message, "id", json_integer(remote->last_id + 1)) != 0) {
        free(call);
        json_decref(message);
        return NULL;
    }
    call->id = ++remote->last_id;
    call->done = done;
    call->message = message;
    call->is_own = true;
    call->deadline = INSTANT_NEVER;
    HASH_ADD(hh, remote->calls, id, sizeof(call->id), call);
    if (!call->hh.tbl) {
        free(call);
        json_decref(message);
        return NULL;
    }
    remote->own_waiting++;
    return call;
}

void remote_limit(struct remote *remote, struct call *call, instant deadline)
{
    call->deadline = deadline;
    remote->expires_at = instant_min(remote->expires_at, deadline);
}

int remote_ask(struct call **ret, struct remote *remote, json_t *message,
               void (*done)(struct call *call, int code, const json_t *reply), void *userdata,
               struct baton_error *reterr)
{
    size_t bytes = local_bytes_taken(message);
    struct call *call;

    if (remote->bytes + bytes > REMOTE_BYTES_MAX) {
        json_decref(message);
        return error_set(reterr, BATON_EBUSY,
                         "agent %s: values and messages of %d MiB wait for it: write on when some "
                         "are written",
                         remote->path, REMOTE_BYTES_MAX >> 20);
    }
    if (HASH_COUNT(remote->calls) >= REMOTE_CALLS_MAX) {
        json_decref(message);
        return error_set(reterr, BATON_EBUSY,
                         "agent %s: %d requests wait for it: ask on when some are answered",
                         remote->path, REMOTE_CALLS_MAX);
    }
    call = remote_call(remote, message, done);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "agent %s: no memory for a request", remote->path);
    }
    call->is_own = false;
    remote->own_waiting--;
    call->bytes = bytes;
    remote->bytes += bytes;
    remote_limit(remote, call, instant_add(clock_now(), REPLY_LIMIT));
    call->userdata = userdata;
    *ret = call;
    return BATON_OK;
}

void remote_forget(struct remote *remote, const void *owner)
{
    for (struct call *call = remote->calls; call; call = call->hh.next) {
        if (call->owner == owner) {
            call->owner = NULL;
            call->done = NULL;
        }
    }
}

static void transmit(struct remote *remote, struct call *call)
{
    call->is_sent = true;
    remote->own_waiting -= call->is_own;
    call->sent = clock_now();
    remote->sent++;
    (void)local_send(remote->local, call->message); /* on_close comes if it failed */
}

/* An agent that has to read much first gets the rest later: the connection's queue has a limit. */
static bool may_send(const struct remote *remote)
{
    return remote->sent < REMOTE_SENT_MAX && local_backlog(remote->local) <= REMOTE_BACKLOG_MAX;
}

static void send_waiting(struct remote *remote, bool is_own)
{
    for (struct call *call = remote->calls; call && may_send(remote); call = call->hh.next) {
        if (!call->is_sent && call->is_own == is_own) {
            transmit(remote, call);
        }
    }
}

/* Requests of the connection go first, as they make the user's meaningful. Tens of thousands of the
 * user's may wait, so nothing here looks at all of them for each. */
static void pump(struct remote *remote)
{
    if (remote->is_ready && remote->own_waiting > 0) {
        send_waiting(remote, true);
    }
    if (remote->is_ready) {
        send_waiting(remote, false);
    }
}

/* Of the connection that is lost: what it was to do, a new one does anew. */
static void fail_calls(struct remote *remote, bool fails_all)
{
    struct call *call = remote->calls;
    int code = fails_all ? BATON_ECLOSED : BATON_EUNAVAILABLE;

    while (call) {
        if (fails_all || call->is_own || call->is_sent) { /* NOLINT(clang-analyzer-unix.Malloc) */
            finish(remote, call, code, NULL);             /* NOLINT(clang-analyzer-unix.Malloc) */
            call = remote->calls; /* a callback may have made and ended others */
        } else {
            call = call->hh.next;
        }
    }
}

static instant expire_calls(struct remote *remote, instant now)
{
    instant next = INSTANT_NEVER;
    struct call *call = remote->calls;

    if (instant_before(now, remote->expires_at)) {
        return remote->expires_at;
    }
    while (call) {
        if (!instant_before(now, call->deadline)) { /* NOLINT(clang-analyzer-unix.Malloc) */
            call->deadline = INSTANT_NEVER;
            finish(remote, call, BATON_ETIMEDOUT, NULL);
            call = remote->calls;
            next = INSTANT_NEVER;
        } else {
            next = instant_min(next, call->deadline);
            call = call->hh.next;
        }
    }
    remote->expires_at = next;
    return next;
}

/* ---- Renewing -------------------------------------------------------------------------------- */

static void on_renewed(struct call *call, int code, const json_t *reply)
{
    struct remote *remote = call->owner;
    double left_ms = json_number_value(json_object_get(reply, "left_ms"));
    span left = SPAN_NS(left_ms > 0 && left_ms < 1e12 ? left_ms * 1e6 : 0);

    remote->renewals--;
    if (code != BATON_OK || !json_is_true(json_object_get(reply, "ok"))) {
        return;
    }
    left = left.ns < remote->lifetime.ns ? left : remote->lifetime;
    /* From when it was made: a reply that comes late is worth less, never too much. */
    contests_renewed(remote, call->id, instant_add(call->sent, left));
}

/* Sent at once, so that the time of its making is that of its sending. */
static void renew(struct remote *remote)
{
    struct call *call = remote_call(remote, json_pack("{s:s}", "do", "renew"), on_renewed);

    if (call) {
        call->owner = remote;
        remote->renewals++;
        remote->has_grants = false;
        transmit(remote, call);
    }
    remote->renew_at = instant_add(clock_now(), remote->interval);
}

/* ---- Hello ----------------------------------------------------------------------------------- */

/* The clock tick in which this process began; 0: unknown. */
static json_int_t own_start(void)
{
    char text[STAT_BYTES] = "", *rest = NULL, *field;
    FILE *file = fopen("/proc/self/stat", "re");
    size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    if (file) {
        (void)fclose(file);
    }
    text[bytes] = '\0';
    field = strrchr(text, ')');
    field = field ? strtok_r(field + 1, " ", &rest) : NULL;
    for (int i = 0; field && i < START_FIELD; i++) {
        field = strtok_r(NULL, " ", &rest);
    }
    return field ? (json_int_t)strtoull(field, NULL, 10) : 0;
}

/* What the agent asks no end of: the process is the one that connected, and no other. */
static json_t *hello(const struct remote *remote)
{
    json_t *metadata = remote->metadata ? json_load_text(remote->metadata, 0, NULL) : NULL;

    return json_pack("{s:s, s:i, s:s, s:i, s:I, s:b, s:s*, s:s*, s:s*, s:o*}", "do", "hello",
                     "version", VERSION, "secret", remote->secret, "pid", (int)getpid(), "start",
                     own_start(), "reads_raw", 1, "name", remote->node[0] ? remote->node : NULL,
                     "session", remote->session[0] ? remote->session : NULL, "token",
                     remote->token[0] ? remote->token : NULL, "metadata", metadata);
}

/* Again from time to time: a listener may have come since. */
static void report_away(struct remote *remote, int code, const char *why)
{
    instant now = clock_now();
    struct baton_error error = {0};

    if (remote->is_closing || (remote->is_reported && instant_before(now, remote->report_at))) {
        return;
    }
    if (!remote->is_reported) {
        log_warning(remote->logger, "agent-away", LOG_STR("path", remote->path),
                    LOG_STR("reason", why));
    }
    remote->is_reported = true;
    remote->report_at = instant_add(now, REPORT_EVERY);
    (void)error_set(&error, code, "agent at %s: %s", remote->path, why);
    contests_report_error(remote, &error);
}

/* An agent that does not know the supervisor would take this process's death for the end of all
 * that acts: then rather none. */
static void on_acting(struct call *call, int code, const json_t *reply)
{
    struct remote *remote = call->owner;
    struct baton_error error = {0};

    if (reply && (code = remote_code(reply, &error)) != BATON_OK) {
        report_away(remote, code, error.message);
        contests_lose_all(remote, BATON_LOSS_EXPIRED);
        local_close(remote->local);
    }
}

/* Nothing of this PID namespace outlives its process 1, a supervisor included. */
static void pass_container(struct remote *remote)
{
    int pidfd = pidfd_open(1, 0);

    if (pidfd >= 0) {
        (void)local_pass_pidfd(remote->local, pidfd);
        (void)close(pidfd);
    }
}

void remote_say_acting(struct remote *remote)
{
    pass_container(remote);
    struct call *call = remote_call(
        remote, json_pack("{s:s, s:s, s:s}", "do", "acting", "marker", "", "token", remote->token),
        on_acting);

    if (call) {
        call->owner = remote;
    } else {
        local_close(remote->local);
    }
}

static void take_session(struct remote *remote, const char *session)
{
    if (remote->session[0] && strcmp(remote->session, session) != 0) {
        contests_lose_all(remote, BATON_LOSS_EXPIRED);
    }
    (void)snprintf(remote->session, sizeof(remote->session), "%s", session);
}

static void on_greeted(struct call *call, int code, const json_t *reply)
{
    struct remote *remote = call->owner;
    double lifetime_ms = json_number_value(json_object_get(reply, "lifetime_ms"));
    double renew_ms = json_number_value(json_object_get(reply, "renew_ms"));
    const char *name = json_string_value(json_object_get(reply, "name"));
    struct baton_error error = {0};

    if (!reply) {
        return;
    }
    code = remote_code(reply, &error);
    if (code == BATON_OK && !(renew_ms > 0 && renew_ms <= lifetime_ms && lifetime_ms < 1e12)) {
        code = error_set(&error, BATON_EPROTO, "its hello has no valid lifetime_ms and renew_ms");
    }
    if (code != BATON_OK) {
        if (code == BATON_ENOENT || code == BATON_EAUTH) {
            take_session(remote, ""); /* the next attempt opens another one */
        }
        report_away(remote, code, error.message);
        local_close(remote->local);
        return;
    }
    if (json_is_true(json_object_get(reply, "reads_raw"))) {
        local_send_raw(remote->local);
    }
    json_decref(remote->about);
    remote->about = json_deep_copy(reply);
    if (name && !remote->node[0]) {
        (void)snprintf(remote->node, sizeof(remote->node), "%s", name);
    }
    remote->lifetime = SPAN_NS(lifetime_ms * 1e6);
    remote->interval = SPAN_NS(renew_ms * 1e6);
    remote->backoff = BACKOFF_FIRST;
    remote->is_ready = true;
    if (remote->is_reported) {
        remote->is_reported = false;
        log_info(remote->logger, "agent-back", LOG_STR("path", remote->path));
    }
    renew(remote);
    if (remote->token[0]) {
        remote_say_acting(remote);
    }
    contests_enter(remote);
    feeds_enter(remote);
}

/* ---- What is received ------------------------------------------------------------------------ */

static void take_event(struct remote *remote, const char *event, const json_t *message)
{
    const json_t *session = json_object_get(message, "session");

    if (strcmp(event, "session") == 0) {
        const char *id = json_string_value(session);
        take_session(remote, id && strcmp(id, "0") != 0 ? id : "");
    } else if (json_object_get(message, "election")) {
        contest_take(remote, event, message);
    } else {
        feeds_take(remote, event, message);
    }
}

static void take_reply(struct remote *remote, struct call *call, const json_t *reply)
{
    bool has_more = json_is_true(json_object_get(reply, "more"));
    int code = has_more ? call_take_part(call, reply) : BATON_OK;

    if (code != BATON_OK || !has_more) {
        finish(remote, call, code, code == BATON_OK ? reply : NULL);
    }
}

static void on_message(struct local *local, json_t *message, void *userdata)
{
    struct remote *remote = userdata;
    const char *event = json_string_value(json_object_get(message, "event"));
    int64_t id = json_integer_value(json_object_get(message, "id"));
    struct baton_error error = {0};
    struct call *call = NULL;

    if (local != remote->local) {
        return;
    }
    remote_enter_callback(remote);
    (void)contests_expire(remote);
    HASH_FIND(hh, remote->calls, &id, sizeof(id), call);
    if (event) {
        take_event(remote, event, message);
    } else if (call && call->is_sent) {
        take_reply(remote, call, message);
    } else if (!json_object_get(message, "id")) { /* what the agent says before it closes */
        report_away(remote, remote_code(message, &error), error.message);
    }
    /* One renewal for all grants: with its reply they may be acted upon. */
    if (remote->is_ready && remote->has_grants && remote->renewals < 2) {
        renew(remote);
    }
    remote_leave_callback(remote);
    remote_step(remote);
}

static void on_open(struct local *local, void *userdata)
{
    struct remote *remote = userdata;
    struct call *call;

    if (local != remote->local || !(call = remote_call(remote, hello(remote), on_greeted))) {
        local_close(local);
        return;
    }
    call->owner = remote;
    transmit(remote, call);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void try_later(struct remote *remote)
{
    remote->connect_at = instant_add(clock_now(), remote->backoff);
    remote->backoff.ns *= 2;
    if (remote->backoff.ns > BACKOFF_MOST.ns) {
        remote->backoff = BACKOFF_MOST;
    }
}

static void end_connection(struct remote *remote, int code, const char *reason)
{
    remote->local = NULL;
    remote->is_ready = false;
    remote->has_grants = false;
    remote_enter_callback(remote);
    fail_calls(remote, remote->is_ending);
    feeds_leave(remote);
    if (!remote->is_ending) {
        report_away(remote, code == BATON_ECANCELED || code == BATON_OK ? BATON_EUNAVAILABLE : code,
                    reason && *reason ? reason : "it closed the connection");
        try_later(remote);
    }
    remote_leave_callback(remote);
    remote_step(remote);
}

static void on_close(struct local *local, int code, const char *reason, void *userdata)
{
    struct remote *remote = userdata;

    if (local == remote->local) {
        end_connection(remote, code, reason);
    }
    remote_release(remote);
}

static void on_drain(struct local *local, void *userdata)
{
    struct remote *remote = userdata;

    if (local == remote->local) {
        remote_step(remote);
    }
}

void remote_connect(struct remote *remote)
{
    static const struct local_callbacks callbacks = {
        .on_open = on_open, .on_message = on_message, .on_close = on_close, .on_drain = on_drain};
    struct baton_error error = {0};
    int code;

    remote->connect_at = INSTANT_NEVER;
    code = local_connect(&remote->local, remote->loop, remote->path, &callbacks, remote, &error);
    if (code != BATON_OK) {
        end_connection(remote, code, error.message);
    } else {
        remote->holds++;
    }
}

void remote_disconnect(struct remote *remote)
{
    struct local *local = remote->local;

    if (local) {
        end_connection(remote, BATON_ECANCELED, NULL);
        local_close(local);
        return;
    }
    remote_enter_callback(remote);
    fail_calls(remote, true); /* no agent will answer them */
    remote_leave_callback(remote);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer)
{
    remote_step(timer->data);
}

static void arm(struct remote *remote, instant at)
{
    span left = instant_since(at, clock_now());
    uint64_t ms = left.ns <= 0 ? 0 : (uint64_t)(left.ns + 999999) / 1000000;

    if (at.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&remote->timer);
    } else {
        uv_update_time(remote->loop);
        (void)uv_timer_start(&remote->timer, on_timer, ms, 0);
    }
}

/* Returns when they are to be asked for again. */
static instant ask_members(struct remote *remote, instant now)
{
    if (remote->is_ready && !instant_before(now, remote->members_at)) {
        remote->members_at =
            contests_ask_members(remote) ? instant_add(now, MEMBERS_EVERY) : INSTANT_PAST;
    }
    return remote->is_ready && remote->members_at.ns != INSTANT_PAST.ns ? remote->members_at
                                                                        : INSTANT_NEVER;
}

void remote_step(struct remote *remote)
{
    instant now = clock_now(), next;

    if (remote->is_ending) {
        return;
    }
    remote_enter_callback(remote);
    next = contests_expire(remote);
    next = instant_min(next, expire_calls(remote, now));
    next = instant_min(next, contests_enter_again(remote));
    if (!remote->local && !instant_before(now, remote->connect_at)) {
        remote_connect(remote);
    }
    if (remote->is_ready && remote->renewals == 0 && !instant_before(now, remote->renew_at)) {
        contests_settle(remote);
        renew(remote);
    }
    next = instant_min(next, ask_members(remote, now));
    pump(remote);
    if (remote->is_ready && remote->renewals == 0) {
        next = instant_min(next, remote->renew_at);
    }
    if (!remote->local) {
        next = instant_min(next, remote->connect_at);
    }
    arm(remote, next);
    remote_leave_callback(remote);
}
