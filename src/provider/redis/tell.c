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

void seat_refused(struct seat *seat, const redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        seat_misunderstood(seat, reply);
    }
}

void seat_misunderstood(struct seat *seat, const redisReply *reply)
{
    struct baton_error error;

    if (!reply) {
        return;
    }
    (void)redis_fault_error(reply, &error);
    if (seat->is_stopped) { /* nobody listens any more */
        log_warning(seat->client->logger, "redis-refused", LOG_STR("election", seat->name),
                    LOG_STR("reason", error.message));
    } else {
        seat_error(seat, &error);
    }
}

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

    seat->is_contending = false;
    if (reply->reply.outcome == LEASE_NOT_YET) {
        event.lease_left_ns = reply->reply.left.ns;
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": the server may have forgotten a lease; it grants none "
                        "for another %.0f s",
                        seat->name, (double)event.lease_left_ns / 1e9);
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
