/* The events for an election's listeners, and their order. This file decides nothing, and sends
 * nothing to the server.
 */
#include "provider/redis/client.h"

#include <stdlib.h>
#include <string.h>

void registration_deliver(struct registration *registration, const struct baton_event *event)
{
    struct baton_event stamped = *event;

    if (stamped.at_ns == 0) {
        stamped.at_ns = clock_now().ns;
    }
    if (!registration->is_stopped) {
        registration->is_stopped = event->type == BATON_EVENT_STOPPED;
        registration->on_event(registration->userdata, &stamped);
    }
}

void registration_error(struct registration *registration, const struct baton_error *error)
{
    struct baton_event event = {.type = BATON_EVENT_ERROR, .error = *error};

    registration_deliver(registration, &event);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

enum { REFUSAL_AGAIN_S = 10 };

void registration_fault(const struct registration *registration, enum request_kind request,
                        const redisReply *reply, struct baton_error *ret)
{
    struct baton_error fault;

    (void)redis_fault_error(reply, &fault);
    (void)error_set(ret, fault.code, "election \"%s\", %s: %s", registration->name,
                    request == REQUEST_LOCK ? "lock" : "registry", fault.message);
}

/* Not 0. The text after a known error code may name a script, and so may vary. */
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
    struct refusal now = {.kind = kind_of(reply),
                          .reported_s = (uint32_t)(clock_now().ns / SPAN_S(1).ns)};
    bool is = refusal->kind == now.kind && now.reported_s - refusal->reported_s < REFUSAL_AGAIN_S;

    *refusal = is ? *refusal : now;
    return is;
}

void registration_refused(struct registration *registration, enum request_kind request,
                          const redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        registration_misunderstood(registration, request, reply);
    }
}

void registration_understood(struct registration *registration, enum request_kind request)
{
    registration->refusals[request].kind = 0;
}

void registration_misunderstood(struct registration *registration, enum request_kind request,
                                const redisReply *reply)
{
    struct baton_error error;

    if (!reply || is_known(&registration->refusals[request], reply)) {
        return;
    }
    registration_fault(registration, request, reply, &error);
    if (registration->is_stopped) { /* there are no listeners any more */
        log_warning(registration->client->logger, "redis-refused",
                    LOG_STR("reason", error.message));
    } else {
        registration_error(registration, &error);
    }
}

/* ---- Leader and attempts --------------------------------------------------------------------- */

static void report_role(struct registration *registration, enum baton_role role)
{
    struct baton_event event = {.type = BATON_EVENT_ROLE, .role = role};

    if (registration->role != role) {
        registration->role = role;
        registration_deliver(registration, &event);
    }
}

/* Again, if its lock was seen before its entry in the registry: only that has its name. */
void registration_report_leader(struct registration *registration)
{
    struct baton_event event = {.type = BATON_EVENT_LEADER, .epoch = registration->holder_epoch};
    bool is_reported = registration->reported_leader == registration->holder &&
                       registration->reported_epoch == registration->holder_epoch;
    bool is_listed = registration->holder == registration->client->self ||
                     registry_find(registration, text_of(registration->holder)) != NULL;
    char *own = NULL;

    if (is_reported && (!registration->holder || registration->is_leader_listed || !is_listed)) {
        return;
    }
    registration->is_leader_listed = is_listed;
    text_move(registration->client, &registration->reported_leader,
              registration_text(registration, text_of(registration->holder)));
    registration->reported_epoch = registration->holder_epoch;
    registry_describe(registration, text_of(registration->holder), &event.member);
    if (event.member.is_self && event.member.metadata) { /* a listener may set other metadata */
        event.member.metadata = own = strdup(event.member.metadata);
    }
    registration_deliver(registration, &event);
    if (registration->holder && !is_reported) {
        event.type = BATON_EVENT_ELECTION_COMPLETED;
        registration_deliver(registration, &event);
    }
    free(own);
}

static void report_started(struct registration *registration)
{
    struct baton_event event = {.type = BATON_EVENT_ELECTION_STARTED};

    if (!registration->is_contending) {
        registration->is_contending = true;
        report_role(registration, BATON_ROLE_CANDIDATE);
        registration_deliver(registration, &event);
    }
}

static void report_failed(struct registration *registration, const struct lease_input *reply)
{
    struct baton_event event = {.type = BATON_EVENT_ELECTION_FAILED};
    char beats[LAYOUT_KEY_MAX];

    layout_heartbeat_prefix(registration->client->layout, registration->name, beats);
    registration->is_contending = false;
    if (reply->reply.outcome == LEASE_NOT_YET) {
        event.lease_left_ns = reply->reply.left.ns;
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": the server may have forgotten a lease%s; it grants "
                        "none for another %.0f s",
                        registration->name, beats[0] ? ", or a peer may yet renew its lock" : "",
                        (double)event.lease_left_ns / 1e9);
    } else if (reply->reply.outcome == LEASE_NO_ANSWER && registration->client->cause) {
        event.error = *registration->client->cause;
    } else if (reply->reply.outcome == LEASE_NO_ANSWER) {
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": Redis gave no answer, or an unexpected one",
                        registration->name);
    }
    report_role(registration, BATON_ROLE_FOLLOWER);
    registration_deliver(registration, &event);
}

/* A request for a lock with a known holder only checks whether that still holds. */
void registration_report_attempt(struct registration *registration, const struct lease_input *input,
                                 const struct lease_update *update)
{
    if (registration->is_contending && input->type == LEASE_IN_REPLY && !update->held) {
        report_failed(registration, input);
    }
    for (uint32_t i = 0; i < update->command_count; i++) {
        if (update->commands[i].type == LEASE_TAKE && !registration->holder) {
            report_started(registration);
        }
    }
}

void registration_report_change(struct registration *registration, const struct lease_event *from,
                                instant at)
{
    static const enum baton_loss losses[] = {[LEASE_LOSS_EXPIRED] = BATON_LOSS_EXPIRED,
                                             [LEASE_LOSS_SUPERSEDED] = BATON_LOSS_SUPERSEDED,
                                             [LEASE_LOSS_RESIGNED] = BATON_LOSS_RESIGNED};
    struct baton_event event = {
        .epoch = from->epoch, .at_ns = at.ns, .lease_left_ns = from->left.ns};
    struct baton_error error;

    switch (from->type) {
    case LEASE_EV_ACQUIRED:
        report_started(registration);
        registration->is_contending = false;
        report_role(registration, BATON_ROLE_LEADER);
        event.type = BATON_EVENT_ACQUIRED;
        event.role = BATON_ROLE_LEADER;
        event.lease_left_ns = instant_since(registration->lease.end, clock_now()).ns;
        registration_deliver(registration, &event);
        break;
    case LEASE_EV_LOST:
        event.type = BATON_EVENT_LOST;
        event.loss = registration->client->is_closing && from->loss == LEASE_LOSS_RESIGNED
                         ? BATON_LOSS_SHUTDOWN
                         : losses[from->loss];
        registration_deliver(registration, &event);
        report_role(registration, BATON_ROLE_FOLLOWER);
        break;
    case LEASE_EV_HOLDER: /* registration_report_leader() comes at the end of each step */
        break;
    case LEASE_EV_JEOPARDY:
        event.type = BATON_EVENT_JEOPARDY;
        registration_deliver(registration, &event);
        break;
    case LEASE_EV_STALE_EPOCH:
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": Redis granted epoch %llu, which is not above one seen "
                        "before; given back",
                        registration->name, (unsigned long long)from->epoch);
        registration_error(registration, &error);
        break;
    }
}
