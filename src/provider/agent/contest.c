/* Elections: what this process wants of each, and what it holds.
 *
 *            leadership-acquired        a later renewal's reply       lost, resigned, over
 *   waits ─────────────────────▶ granted ────────────────────▶ acts ─────────────────────▶ waits
 *
 * What was given up is owed to the agent, which learns of it before it may grant it to another, and
 * is told again until it confirms.
 */
#include "base/json_load.h"
#include "provider/agent/agent_provider.h"
#include "provider/agent/remote.h"
#include "provider/lease_cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTER_AGAIN SPAN_MS(500) /* after a refusal */

enum {
    DOUBTED_SHARE = 3,      /* of a lease: left when it is reported to be in jeopardy */
    LEFT_MAX_MS = 86400000, /* of another's lease, as an agent reports it */
};

static struct contest *contest_of(struct provider_election *election)
{
    return (struct contest *)election;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void deliver(struct contest *contest, struct baton_event event)
{
    event.at_ns = clock_now().ns;
    if (!contest->is_leaving) {
        contest->on_event(contest->userdata, &event);
    }
}

static void deliver_role(struct contest *contest, enum baton_role role)
{
    deliver(contest, (struct baton_event){.type = BATON_EVENT_ROLE, .role = role});
}

static void deliver_error(struct contest *contest, int code, const char *text)
{
    struct baton_event event = {.type = BATON_EVENT_ERROR};

    (void)error_set(&event.error, code, "%s", text);
    deliver(contest, event);
}

/* ---- Gaining and losing ---------------------------------------------------------------------- */

/* No reader of the cell says yes any more, before anybody is told. */
static void lose(struct contest *contest, enum baton_loss loss)
{
    uint64_t epoch = contest->epoch;
    bool acted = contest->acts;

    if (epoch == 0) {
        return;
    }
    lease_cell_void(contest->cell);
    contest->epoch = 0;
    contest->acts = contest->is_drained = false;
    contest->remote->acting -= acted;
    if (acted) {
        deliver(contest,
                (struct baton_event){.type = BATON_EVENT_LOST, .epoch = epoch, .loss = loss});
        deliver_role(contest, BATON_ROLE_FOLLOWER);
    }
}

static void give_up(struct contest *contest, enum baton_loss loss)
{
    contest->owed = contest->known;
    lose(contest, loss);
}

static void on_resigned(struct call *call, int code, const json_t *reply)
{
    struct contest *contest = call->owner;
    struct baton_error error = {0};

    contest->is_resigning = false;
    if (!reply) {
        return;
    }
    code = remote_code(reply, &error);
    if ((code == BATON_OK || code == BATON_ENOTLEADER || code == BATON_ENOENT) &&
        contest->owed == call->then.epoch) {
        contest->owed = 0;
    } else if (code != BATON_OK) { /* the one that was named cannot: then any */
        deliver_error(contest, code, error.message);
    }
}

/* Takes the reference of `message`. */
static void send_resignation(struct contest *contest, json_t *message)
{
    struct call *call = remote_call(contest->remote, message, on_resigned);

    if (call) {
        call->owner = contest;
        call->then.epoch = contest->owed;
        contest->is_resigning = true;
    }
}

static void settle(struct contest *contest)
{
    if (contest->owed != 0 && !contest->is_resigning) {
        send_resignation(contest, json_pack("{s:s, s:s, s:I}", "do", "resign", "election",
                                            contest->name, "epoch", (json_int_t)contest->owed));
    }
}

static void grant(struct contest *contest, uint64_t epoch)
{
    contest->is_refused = false;
    if (contest->is_leaving || epoch == 0 || epoch == contest->epoch) {
        return; /* the last: it goes on, by another agent */
    }
    if (epoch <= contest->known) { /* was given up: never acted in again */
        contest->owed = contest->known;
        settle(contest);
        return;
    }
    lose(contest, BATON_LOSS_SUPERSEDED);
    contest->known = contest->epoch = epoch;
    contest->owed = 0;
    contest->end = INSTANT_PAST;
    contest->granted_at = contest->remote->last_id;
    contest->remote->has_grants = true;
}

static void report_leader(struct contest *contest, const char *name, uint64_t epoch)
{
    struct baton_event event = {.type = BATON_EVENT_LEADER, .epoch = epoch};

    if (epoch == contest->leader_epoch && strcmp(name ? name : "", contest->leader.name) == 0) {
        return;
    }
    contest->leader = (struct baton_member){
        .role = BATON_ROLE_LEADER,
        .weight = 1,
        .is_alive = true,
        .is_self = name && strcmp(name, contest->remote->node) == 0,
    };
    (void)snprintf(contest->leader.id, sizeof(contest->leader.id), "%s", name ? name : "");
    (void)snprintf(contest->leader.name, sizeof(contest->leader.name), "%s", name ? name : "");
    contest->leader_epoch = name ? epoch : 0;
    event.member = name ? contest->leader : (struct baton_member){.id = ""};
    deliver(contest, event);
    if (name) {
        event.type = BATON_EVENT_ELECTION_COMPLETED;
        deliver(contest, event);
    }
}

static void act(struct contest *contest)
{
    uint64_t epoch = contest->epoch;

    contest->remote->acting += !contest->acts;
    contest->acts = true;
    contest->is_doubted = false;
    deliver_role(contest, BATON_ROLE_LEADER);
    if (contest->epoch == epoch && contest->acts) { /* a listener may have resigned */
        deliver(contest,
                (struct baton_event){.type = BATON_EVENT_ACQUIRED,
                                     .role = BATON_ROLE_LEADER,
                                     .epoch = epoch,
                                     .lease_left_ns = lease_cell_remaining(contest->cell).ns});
    }
    if (contest->epoch == epoch && contest->acts) {
        report_leader(contest, contest->remote->node, epoch);
    }
}

/* So late that an agent which is replaced is back by then, and so early that work can stop. */
static instant doubt_at(const struct contest *contest)
{
    return instant_add(contest->end, SPAN_NS(-contest->remote->lifetime.ns / DOUBTED_SHARE));
}

void contests_renewed(struct remote *remote, int64_t id, instant end)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        if (at->epoch == 0 || id <= at->granted_at || !instant_before(at->end, end)) {
            continue;
        }
        at->end = end; /* a promise is never taken back */
        at->is_doubted = at->is_doubted && !instant_before(clock_now(), doubt_at(at));
        lease_cell_publish(at->cell, at->epoch, end);
        if (!at->acts && instant_before(clock_now(), end)) {
            act(at);
        }
    }
}

static void doubt(struct contest *contest)
{
    contest->is_doubted = true;
    deliver(contest, (struct baton_event){.type = BATON_EVENT_JEOPARDY,
                                          .epoch = contest->epoch,
                                          .lease_left_ns = lease_cell_remaining(contest->cell).ns});
}

instant contests_expire(struct remote *remote)
{
    instant next = INSTANT_NEVER, now = clock_now();
    size_t acting = remote->acting; /* often few of many */

    for (struct contest *at = remote->contests; at && acting > 0; at = at->hh.next) {
        acting -= at->acts;
        if (at->acts && !instant_before(now, at->end)) {
            give_up(at, BATON_LOSS_EXPIRED);
        } else if (at->acts && !at->is_doubted && !instant_before(now, doubt_at(at))) {
            doubt(at);
        }
        if (at->acts) {
            next = instant_min(next, at->is_doubted ? at->end : doubt_at(at));
        }
    }
    return next;
}

void contests_lose_all(struct remote *remote, enum baton_loss loss)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        at->owed = 0; /* the session's end gave everything up */
        lose(at, loss);
    }
}

void contests_settle(struct remote *remote)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        settle(at);
    }
}

/* ---- Entering and leaving -------------------------------------------------------------------- */

static void on_refused(struct contest *contest, int code, const char *text)
{
    lose(contest, BATON_LOSS_EXPIRED);
    if (!contest->is_refused) {
        contest->is_refused = true;
        deliver_error(contest, code, text);
    }
}

static void enter_later(struct contest *contest)
{
    contest->is_out = true;
    contest->enter_at = instant_add(clock_now(), ENTER_AGAIN);
}

static void on_entered(struct call *call, int code, const json_t *reply)
{
    struct baton_error error = {0};

    if (reply && (code = remote_code(reply, &error)) != BATON_OK) {
        if (code == BATON_ENOMEM || code == BATON_EBUSY) { /* for now */
            enter_later(call->owner);
        }
        on_refused(call->owner, code, error.message);
    }
}

static void leaves(struct contest *contest)
{
    contest->has_left = contest->remote->has_leavers = true;
}

static void on_left(struct call *call, int code, const json_t *reply)
{
    struct contest *contest = call->owner;
    struct baton_error error = {0};
    (void)code;

    if (reply && remote_code(reply, &error) != BATON_OK) {
        leaves(contest); /* else the event "stopped" comes, the last of it */
    }
}

static void send_leave(struct contest *contest)
{
    struct call *call =
        remote_call(contest->remote,
                    json_pack("{s:s, s:s}", "do", "leave", "election", contest->name), on_left);

    if (call) {
        call->owner = contest;
    } else if (contest->remote->local) { /* no memory: the next connection leaves */
        local_close(contest->remote->local);
    }
}

static void send_eligible(struct contest *contest)
{
    (void)remote_call(contest->remote,
                      json_pack("{s:s, s:s, s:b}", "do", "eligible", "election", contest->name,
                                "eligible", (int)contest->is_eligible),
                      NULL);
}

static void on_leader(struct call *call, int code, const json_t *reply)
{
    if (code == BATON_OK && json_is_true(json_object_get(reply, "ok"))) {
        contest_take(((struct contest *)call->owner)->remote, "leader-changed", reply);
    }
}

/* What changed while no agent was there. */
static void ask_leader(struct contest *contest)
{
    struct call *call =
        remote_call(contest->remote,
                    json_pack("{s:s, s:s}", "do", "leader", "election", contest->name), on_leader);

    if (call) {
        call->owner = contest;
    }
}

static void enter(struct contest *contest)
{
    struct call *call = remote_call(
        contest->remote,
        json_pack("{s:s, s:s, s:b, s:i, s:I, s:b}", "do", "campaign", "election", contest->name,
                  "eligible", (int)contest->is_eligible, "priority", (int)contest->priority,
                  "known_epoch", (json_int_t)contest->known, "acts", (int)(contest->epoch != 0)),
        on_entered);

    if (call) {
        call->owner = contest;
    } else {
        enter_later(contest);
    }
    if (contest->is_leaving) {
        send_leave(contest);
    }
}

void contests_enter(struct remote *remote)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        bool is_known = at->leader_epoch != 0 || at->known != 0;
        at->is_refused = at->is_out = false;
        enter(at);
        if (is_known && !at->is_leaving) { /* the agent may know it from before */
            send_eligible(at);
            ask_leader(at);
        }
        settle(at);
    }
}

instant contests_enter_again(struct remote *remote)
{
    instant next = INSTANT_NEVER, now = clock_now();

    for (struct contest *at = remote->contests; at && remote->is_ready; at = at->hh.next) {
        if (!at->is_out || at->is_leaving) {
            continue;
        }
        if (instant_before(now, at->enter_at)) {
            next = instant_min(next, at->enter_at);
        } else {
            at->is_out = false;
            enter(at);
        }
    }
    return next;
}

static int check_name(struct remote *remote, const char *name, struct baton_error *reterr)
{
    struct contest *same = NULL;

    if (!name[0] || strlen(name) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes", name,
                         BATON_NAME_MAX - 1);
    }
    HASH_FIND_STR(remote->contests, name, same);
    if (same && same->is_leaving) {
        return error_set(reterr, BATON_EBUSY,
                         "election \"%s\": the agent has not confirmed yet that it was left", name);
    }
    return same ? error_set(reterr, BATON_EEXIST,
                            "election \"%s\": this process takes part in it already", name)
                : BATON_OK;
}

int contest_campaign(struct provider_election **ret, struct provider *provider,
                     const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct remote *remote = (struct remote *)provider;
    char *metadata = campaign->metadata ? strdup(campaign->metadata) : NULL;
    struct contest *contest = calloc(1, sizeof(*contest));
    int code = contest && (metadata || !campaign->metadata)
                   ? check_name(remote, campaign->election, reterr)
                   : error_set(reterr, BATON_ENOMEM, "out of memory for an election");

    if (code != BATON_OK) {
        free(metadata);
        free(contest);
        return code;
    }
    contest->base = (struct provider_election){.ops = &agent_provider_ops, .provider = provider};
    contest->remote = remote;
    contest->cell = campaign->cell;
    contest->on_event = campaign->on_event;
    contest->userdata = campaign->userdata;
    contest->is_eligible = campaign->eligible;
    contest->priority = campaign->priority;
    memcpy(contest->name, campaign->election, strlen(campaign->election) + 1);
    HASH_ADD_STR(remote->contests, name, contest);
    if (!contest->hh.tbl) {
        free(metadata);
        free(contest);
        return error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    lease_cell_bind(contest->cell);
    if (metadata) {
        (void)contest_set_metadata(&contest->base, metadata, reterr);
        free(metadata);
    }
    if (remote->is_ready) {
        enter(contest);
    }
    remote_step(remote);
    *ret = &contest->base;
    return BATON_OK;
}

/* Its user hears no more; the agent learns of it, by the next connection if need be. */
static void stop(struct contest *contest, enum baton_loss loss)
{
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED, .at_ns = clock_now().ns};

    give_up(contest, loss);
    if (contest->is_leaving) { /* a listener has left */
        return;
    }
    contest->is_leaving = true;
    remote_forget(contest->remote, contest);
    contest->is_resigning = false;
    contest->on_event(contest->userdata, &stopped);
}

void contest_leave(struct provider_election *election)
{
    struct contest *contest = contest_of(election);
    struct remote *remote = contest->remote;

    if (contest->is_leaving) {
        return;
    }
    remote_enter_callback(remote);
    stop(contest, BATON_LOSS_RESIGNED);
    if (contest->is_refused) {
        leaves(contest);
    } else if (remote->is_ready) {
        send_leave(contest);
    }
    remote_leave_callback(remote);
    remote_step(remote);
}

void contests_stop_all(struct remote *remote)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        if (!at->is_leaving) {
            stop(at, BATON_LOSS_SHUTDOWN);
        }
        leaves(at);
    }
}

void contests_sweep(struct remote *remote)
{
    struct contest *contest = remote->has_leavers ? remote->contests : NULL;

    remote->has_leavers = false;
    while (contest) {
        struct contest *next = contest->hh.next;
        if (contest->has_left) {
            HASH_DEL(remote->contests, contest);
            remote_forget(remote, contest);
            free(contest->members);
            free(contest);
        }
        contest = next;
    }
}

/* ---- What the agent says --------------------------------------------------------------------- */

static enum baton_loss loss_of(const char *reason)
{
    static const enum baton_loss losses[] = {BATON_LOSS_SUPERSEDED, BATON_LOSS_RESIGNED,
                                             BATON_LOSS_LOST_QUORUM, BATON_LOSS_STORAGE,
                                             BATON_LOSS_SHUTDOWN};

    for (size_t i = 0; reason && i < sizeof(losses) / sizeof(losses[0]); i++) {
        if (strcmp(reason, baton_loss_name(losses[i])) == 0) {
            return losses[i];
        }
    }
    return BATON_LOSS_EXPIRED;
}

static void take_lost(struct contest *contest, uint64_t epoch, const char *reason)
{
    if (contest->owed <= epoch) {
        contest->owed = 0;
    }
    if (contest->epoch != 0 && contest->epoch <= epoch) {
        lose(contest, loss_of(reason));
    }
}

/* Of this process itself, act() reports it: whoever is told may ask at once whether it leads. */
static void take_leader(struct contest *contest, const char *name, uint64_t epoch)
{
    bool is_self = name && strcmp(name, contest->remote->node) == 0;

    contest->is_refused = false;
    if (!is_self || contest->acts || epoch < contest->known) {
        report_leader(contest, name, epoch);
    }
}

static void take_drain(struct contest *contest)
{
    if (contest->epoch == 0 || contest->is_drained) {
        return;
    }
    if (!contest->acts) {
        give_up(contest, BATON_LOSS_RESIGNED);
        settle(contest);
        return;
    }
    contest->is_drained = true;
    deliver(contest, (struct baton_event){.type = BATON_EVENT_DRAIN,
                                          .epoch = contest->epoch,
                                          .lease_left_ns = lease_cell_remaining(contest->cell).ns});
}

/* Of an agent that refuses again and again, one error is enough. */
static void take_error(struct contest *contest, const json_t *message)
{
    struct baton_error error = {0};
    int code = remote_code(message, &error);

    if (!contest->is_refused) {
        deliver_error(contest, code, error.message);
    }
}

static void take_failed(struct contest *contest, const json_t *message)
{
    double left_ms = json_number_value(json_object_get(message, "left_ms"));
    struct baton_event event = {.type = BATON_EVENT_ELECTION_FAILED};

    (void)remote_code(message, &event.error);
    if (left_ms > 0 && left_ms < LEFT_MAX_MS) {
        event.lease_left_ns = (int64_t)(left_ms * 1e6);
    }
    if (contest->epoch == 0) {
        deliver(contest, event);
    }
}

void contest_take(struct remote *remote, const char *event, const json_t *message)
{
    const char *name = json_string_value(json_object_get(message, "election"));
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(message, "epoch"));
    struct contest *contest = NULL;

    if (name) {
        HASH_FIND_STR(remote->contests, name, contest);
    }
    if (!contest) {
        return;
    }
    if (strcmp(event, "leadership-acquired") == 0) {
        grant(contest, epoch);
    } else if (strcmp(event, "leadership-lost") == 0) {
        take_lost(contest, epoch, json_string_value(json_object_get(message, "reason")));
    } else if (strcmp(event, "leader-changed") == 0) {
        take_leader(contest, json_string_value(json_object_get(message, "leader")), epoch);
    } else if (strcmp(event, "drain") == 0) {
        take_drain(contest);
    } else if (strcmp(event, "stopped") == 0 && contest->is_leaving) {
        leaves(contest);
    } else if (strcmp(event, "error") == 0) {
        take_error(contest, message);
    } else if (strcmp(event, "election-failed") == 0) {
        take_failed(contest, message);
    } else if (strcmp(event, "stopped") == 0) {
        enter_later(contest);
        on_refused(contest, BATON_EUNAVAILABLE, "the agent ended the process's part in it");
    }
}

void contests_report_error(struct remote *remote, const struct baton_error *error)
{
    for (struct contest *at = remote->contests; at; at = at->hh.next) {
        deliver_error(at, error->code, error->message);
    }
}

/* ---- What the user asks ---------------------------------------------------------------------- */

int contest_resign(struct provider_election *election, const char *to, instant deadline,
                   struct baton_error *reterr)
{
    struct contest *contest = contest_of(election);
    struct remote *remote = contest->remote;
    int64_t left_ms = instant_since(deadline, clock_now()).ns / 1000000;
    int code = to ? contest_check_heir(election, to, reterr) : BATON_OK;

    if (!contest->acts) {
        return error_set(reterr, BATON_ENOTLEADER, "this process does not lead \"%s\"",
                         contest->name);
    }
    if (code != BATON_OK) {
        return code;
    }
    remote_enter_callback(remote);
    give_up(contest, BATON_LOSS_RESIGNED);
    if (remote->is_ready && contest->owed != 0 && !contest->is_resigning) {
        send_resignation(contest,
                         json_pack("{s:s, s:s, s:I, s:I, s:s*}", "do", "resign", "election",
                                   contest->name, "epoch", (json_int_t)contest->owed, "timeout_ms",
                                   (json_int_t)(left_ms > 0 ? left_ms : 0), "to", to));
    }
    remote_leave_callback(remote);
    remote_step(remote);
    return BATON_OK;
}

void contest_drained(struct provider_election *election)
{
    struct contest *contest = contest_of(election);
    struct remote *remote = contest->remote;

    if (!contest->is_drained) {
        return;
    }
    remote_enter_callback(remote);
    give_up(contest, BATON_LOSS_RESIGNED);
    if (remote->is_ready && contest->owed != 0 && !contest->is_resigning) {
        send_resignation(contest,
                         json_pack("{s:s, s:s}", "do", "drained", "election", contest->name));
    }
    remote_leave_callback(remote);
    remote_step(remote);
}

int contest_set_eligible(struct provider_election *election, bool eligible,
                         struct baton_error *reterr)
{
    struct contest *contest = contest_of(election);
    struct remote *remote = contest->remote;
    (void)reterr;

    contest->is_eligible = eligible;
    remote_enter_callback(remote);
    if (!eligible && contest->epoch != 0) {
        give_up(contest, BATON_LOSS_RESIGNED);
        settle(contest);
    }
    if (remote->is_ready) {
        send_eligible(contest);
    }
    remote_leave_callback(remote);
    remote_step(remote);
    return BATON_OK;
}

void contest_leader(struct provider_election *election, struct baton_member *ret,
                    uint64_t *ret_epoch)
{
    const struct contest *contest = contest_of(election);

    *ret = contest->leader;
    *ret_epoch = contest->leader_epoch;
}

/* The agent knows one for the process. */
int contest_set_metadata(struct provider_election *election, const char *metadata,
                         struct baton_error *reterr)
{
    struct remote *remote = contest_of(election)->remote;
    char *copy = metadata ? strdup(metadata) : NULL;

    if (metadata && !copy) {
        return error_set(reterr, BATON_ENOMEM, "no memory for the metadata");
    }
    free(remote->metadata);
    remote->metadata = copy;
    if (remote->is_ready) {
        (void)remote_call(remote,
                          json_pack("{s:s, s:o?}", "do", "metadata", "metadata",
                                    copy ? json_load_text(copy, 0, NULL) : NULL),
                          NULL);
        remote_step(remote);
    }
    return BATON_OK;
}
