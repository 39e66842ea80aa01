/* What those who listen to an election are told, and in which order. Nothing is decided here, and
 * nothing asked of the server.
 */
#include "provider/redis/client.h"

#include <string.h>

void seat_tell(struct seat *seat, const struct baton_event *event)
{
    struct baton_event stamped = *event;

    if (stamped.at_ns == 0) {
        stamped.at_ns = clock_now().ns;
    }
    if (!seat->is_stopped) {
        seat->is_stopped = event->type == BATON_EVENT_STOPPED;
        seat->on_event(seat->userdata, &stamped);
    }
}

void seat_error(struct seat *seat, const struct baton_error *error)
{
    struct baton_event event = {.type = BATON_EVENT_ERROR, .error = *error};

    seat_tell(seat, &event);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

enum { REFUSAL_AGAIN_S = 10 };

void seat_fault(const struct seat *seat, enum errand errand, const redisReply *reply,
                struct baton_error *ret)
{
    struct baton_error fault;

    (void)redis_fault_error(reply, &fault);
    (void)error_set(ret, fault.code, "election \"%s\", %s: %s", seat->name,
                    errand == ERRAND_LOCK ? "lock" : "registry", fault.message);
}

/* Not 0. The words behind a known fault name a script at times, and are not always the same. */
static uint32_t kind_of(const redisReply *reply)
{
    enum redis_fault fault = redis_fault_of(reply);
    uint32_t kind = 2166136261u; /* FNV-1a */

    for (size_t i = 0; fault == REDIS_OTHER && i < reply->len; i++) {
        kind = (kind ^ (unsigned char)reply->str[i]) * 16777619u;
    }
    return (kind + (uint32_t)fault) | 1u << 31;
}

static bool is_known(struct refusal *refusal, const redisReply *reply)
{
    struct refusal now = {.kind = kind_of(reply), .told = clock_now()};
    bool is = refusal->kind == now.kind &&
              instant_since(now.told, refusal->told).ns < SPAN_S(REFUSAL_AGAIN_S).ns;

    *refusal = is ? *refusal : now;
    return is;
}

void seat_refused(struct seat *seat, enum errand errand, const redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        seat_misunderstood(seat, errand, reply);
    }
}

void seat_understood(struct seat *seat, enum errand errand)
{
    seat->refusals[errand].kind = 0;
}

void seat_misunderstood(struct seat *seat, enum errand errand, const redisReply *reply)
{
    struct baton_error error;

    if (!reply || is_known(&seat->refusals[errand], reply)) {
        return;
    }
    seat_fault(seat, errand, reply, &error);
    if (seat->is_stopped) { /* nobody listens any more */
        log_warning(seat->client->logger, "redis-refused", LOG_STR("reason", error.message));
    } else {
        seat_error(seat, &error);
    }
}

/* ---- Who leads, and who contends ------------------------------------------------------------- */

static void tell_role(struct seat *seat, enum baton_role role)
{
    struct baton_event event = {.type = BATON_EVENT_ROLE, .role = role};

    if (seat->role != role) {
        seat->role = role;
        seat_tell(seat, &event);
    }
}

void seat_tell_leader(struct seat *seat)
{
    struct baton_event event = {.type = BATON_EVENT_LEADER, .epoch = seat->holder_epoch};

    if (seat->told == seat->holder && seat->told_leader == seat->holder_epoch) {
        return;
    }
    text_move(seat->client, &seat->told, seat_text(seat, text_of(seat->holder)));
    seat->told_leader = seat->holder_epoch;
    registry_describe(seat, text_of(seat->holder), &event.member);
    seat_tell(seat, &event);
    if (seat->holder) {
        event.type = BATON_EVENT_ELECTION_COMPLETED;
        seat_tell(seat, &event);
    }
}

static void tell_started(struct seat *seat)
{
    struct baton_event event = {.type = BATON_EVENT_ELECTION_STARTED};

    if (!seat->is_contending) {
        seat->is_contending = true;
        tell_role(seat, BATON_ROLE_CANDIDATE);
        seat_tell(seat, &event);
    }
}

static void tell_failed(struct seat *seat, const struct lease_input *reply)
{
    struct baton_event event = {.type = BATON_EVENT_ELECTION_FAILED};
    char beats[LAYOUT_KEY_MAX];

    layout_heartbeat_prefix(seat->client->layout, seat->name, beats);
    seat->is_contending = false;
    if (reply->reply.outcome == LEASE_NOT_YET) {
        event.lease_left_ns = reply->reply.left.ns;
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": the server may have forgotten a lease%s; it grants "
                        "none for another %.0f s",
                        seat->name, beats[0] ? ", or a peer may yet renew its lock" : "",
                        (double)event.lease_left_ns / 1e9);
    } else if (reply->reply.outcome == LEASE_NO_ANSWER && seat->client->cause) {
        event.error = *seat->client->cause;
    } else if (reply->reply.outcome == LEASE_NO_ANSWER) {
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": Redis did not answer, or not with what was asked for",
                        seat->name);
    }
    tell_role(seat, BATON_ROLE_FOLLOWER);
    seat_tell(seat, &event);
}

/* Whoever asks for a lock that somebody is known to have only looks whether that still holds. */
void seat_tell_contest(struct seat *seat, const struct lease_input *input,
                       const struct lease_update *update)
{
    if (seat->is_contending && input->type == LEASE_IN_REPLY && !update->held) {
        tell_failed(seat, input);
    }
    for (uint32_t i = 0; i < update->command_count; i++) {
        if (update->commands[i].type == LEASE_TAKE && !seat->holder) {
            tell_started(seat);
        }
    }
}

void seat_tell_change(struct seat *seat, const struct lease_event *from, instant at)
{
    static const enum baton_loss losses[] = {[LEASE_LOSS_EXPIRED] = BATON_LOSS_EXPIRED,
                                             [LEASE_LOSS_SUPERSEDED] = BATON_LOSS_SUPERSEDED,
                                             [LEASE_LOSS_RESIGNED] = BATON_LOSS_RESIGNED};
    struct baton_event event = {
        .epoch = from->epoch, .at_ns = at.ns, .lease_left_ns = from->left.ns};
    struct baton_error error;

    switch (from->type) {
    case LEASE_EV_ACQUIRED:
        tell_started(seat);
        seat->is_contending = false;
        tell_role(seat, BATON_ROLE_LEADER);
        event.type = BATON_EVENT_ACQUIRED;
        event.role = BATON_ROLE_LEADER;
        event.lease_left_ns = instant_since(seat->lease.end, clock_now()).ns;
        seat_tell(seat, &event);
        break;
    case LEASE_EV_LOST:
        event.type = BATON_EVENT_LOST;
        event.loss = seat->client->is_closing && from->loss == LEASE_LOSS_RESIGNED
                         ? BATON_LOSS_SHUTDOWN
                         : losses[from->loss];
        seat_tell(seat, &event);
        tell_role(seat, BATON_ROLE_FOLLOWER);
        break;
    case LEASE_EV_HOLDER: /* seat_tell_leader() comes at the end of each step */
        break;
    case LEASE_EV_JEOPARDY:
        event.type = BATON_EVENT_JEOPARDY;
        seat_tell(seat, &event);
        break;
    case LEASE_EV_STALE_EPOCH:
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": Redis granted epoch %llu, which is not above one seen "
                        "before; given back",
                        seat->name, (unsigned long long)from->epoch);
        seat_error(seat, &error);
        break;
    }
}
