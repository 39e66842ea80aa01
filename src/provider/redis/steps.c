/* Drives the lease core: its commands become scripts; replies, notices and the clock are its input.
 */
#include "provider/redis/client.h"

#include <string.h>

/* How long a process waits that is not the heir: after a chosen heir, and after an heir that was
 * named only so that not all processes ask at once. */
enum { HELD_BACK_MS = 500, OFFERED_FIRST_MS = 2 };

static void step(struct registration *registration, const struct lease_input *input);

/* ---- Commands and answers -------------------------------------------------------------------- */

/* An id as a text, truncated to a name's length. "": NULL. */
struct text *registration_text(struct registration *registration, const char *id)
{
    size_t bytes = strlen(id);

    bytes = bytes < BATON_NAME_MAX ? bytes : BATON_NAME_MAX - 1;
    return bytes > 0 ? text_get(registration->client, id, bytes) : NULL;
}

void registration_take_holder(struct registration *registration, const char *id, uint64_t epoch)
{
    text_move(registration->client, &registration->holder, registration_text(registration, id));
    registration->holder_epoch = epoch;
}

static void on_answer(void *userdata, uint64_t request, const redisReply *reply, instant sent)
{
    struct registration *registration = userdata;
    struct client *client = registration->client;
    struct lease_input input = {
        .type = LEASE_IN_REPLY,
        .reply = {.request = (uint32_t)request, .outcome = LEASE_NO_ANSWER}};
    struct lock_answer answer;
    struct baton_error cause;
    bool has_led =
        registration->lease.held; /* if so it is a renewal, and the core counts the lease itself */

    if (reply && !parse_lock(&answer, reply)) {
        registration_misunderstood(registration, REQUEST_LOCK, reply);
        registration_fault(registration, REQUEST_LOCK, reply, &cause);
        client->cause = &cause;
    } else if (reply) {
        registration_understood(registration, REQUEST_LOCK);
        input.reply.outcome = answer.reply.outcome;
        input.reply.epoch = answer.reply.epoch;
        input.reply.left = answer.reply.left;
        lock_check(registration, &answer);
    }
    if (input.reply.outcome == LEASE_HELD) {
        registration_take_holder(registration, answer.holder, answer.reply.epoch);
        heartbeats_check(registration, &answer);
    }
    client_enter(client);
    if (input.reply.outcome != LEASE_GRANTED || !waits_take(registration, &input, !has_led, sent)) {
        if (client->on_renewed && has_led && input.reply.outcome == LEASE_GRANTED) {
            client->on_renewed(client->renewed_userdata, instant_since(clock_now(), sent));
        }
        step(registration, &input);
    }
    client->cause = NULL;
    registration_unref(registration);
    client_exit(client);
}

static void on_released(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct registration *registration = userdata;
    struct client *client = registration->client;
    (void)tag;
    (void)sent;

    client_enter(client);
    registration_refused(registration, REQUEST_LOCK,
                         reply); /* if it was lost or refused, the lock ends by its lifetime */
    registration_unref(registration);
    client_exit(client);
}

void registration_give_back(struct registration *registration, uint64_t epoch)
{
    struct majority_order order = {.type = MAJORITY_RETURN, .epoch = epoch};

    registration->references++;
    if (registration_send(registration, -1, &order, on_released, registration, 0) != BATON_OK) {
        registration_unref(registration);
    }
}

static int run(struct registration *registration, const struct lease_command *command)
{
    static const enum majority_order_type types[] = {[LEASE_TAKE] = MAJORITY_TAKE,
                                                     [LEASE_LOOK] = MAJORITY_LOOK,
                                                     [LEASE_RENEW] = MAJORITY_RENEW,
                                                     [LEASE_RELEASE] = MAJORITY_RELEASE};
    struct majority_order order = {.type = types[command->type], .epoch = command->epoch};
    bool is_release = command->type == LEASE_RELEASE;
    int r;

    if (is_release && command->epoch == LEASE_EPOCH_UNKNOWN && !registration->client->is_closing) {
        return BATON_ECANCELED; /* the late reply shows which grant to give back */
    }
    if (registration->quorum) {
        return quorum_run(registration, command);
    }
    registration->references++;
    r = registration_send(registration, -1, &order, is_release ? on_released : on_answer,
                          registration, command->request);
    if (r != BATON_OK) {
        registration_unref(registration);
    }
    return r;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void rearm(struct registration *registration, instant deadline)
{
    registration->deadline =
        registration->offered.ns > 0 ? instant_min(deadline, registration->offered) : deadline;
    agenda_change(registration);
}

static void publish(struct registration *registration, const struct lease_update *update)
{
    redis_guardian_publish(registration, update);
    if (!registration->cell) {
        return;
    }
    if (update->held) {
        lease_cell_publish(registration->cell, update->epoch, update->end);
    } else {
        lease_cell_void(registration->cell);
    }
}

enum { MANY_ELECTIONS = 64, SLOT_MS = 8, SLOTTED_FROM_MS = 1000 };

/* Leases that were taken in one burst must not be renewed in one for ever: each is first renewed at
 * a moment of its own and keeps that phase. But renewals of the same few milliseconds share one
 * write, since system calls are the cost of a renewal. Renewals move earlier, never later. */
static void plan_renewal(struct registration *registration, instant now,
                         struct lease_update *update)
{
    int64_t interval = registration->client->settings.renew_interval.ns;
    instant *next = &registration->lease.next;
    bool is_new = false;

    if (HASH_COUNT(registration->client->registrations) < MANY_ELECTIONS || !update->held ||
        !instant_before(now, *next)) {
        return;
    }
    for (uint32_t i = 0; i < update->event_count; i++) {
        is_new |= update->events[i].type == LEASE_EV_ACQUIRED;
    }
    if (is_new) {
        next->ns -= (int64_t)(client_chance(registration->client) % (uint64_t)(interval / 2 + 1));
    }
    if (interval >= SPAN_MS(SLOTTED_FROM_MS).ns) {
        next->ns -= next->ns % SPAN_MS(SLOT_MS).ns;
    }
    update->deadline = instant_min(update->deadline, *next);
}

/* Sends before any listener is called: another process waits for this to lead, or to learn that it
 * may. With many elections each send would cost a system call; those leave together. */
static void flush(struct registration *registration)
{
    struct client *client = registration->client;
    char key[LAYOUT_KEY_MAX];

    registration->is_urgent = false;
    if (HASH_COUNT(client->registrations) < MANY_ELECTIONS) {
        layout_lock_key(client->layout, registration->name, key);
        client_flush(client, key);
    }
}

/* Listeners come first: the lease is for the program that they start. */
static void take_event(struct registration *registration, const struct lease_event *event,
                       instant at)
{
    if (event->type == LEASE_EV_ACQUIRED) {
        registration_take_holder(registration, registration->client->id, event->epoch);
    } else if (event->type == LEASE_EV_HOLDER && event->epoch == 0) {
        registration_take_holder(registration, "", 0);
    }
    registration_report_change(registration, event, at);
    if (event->type == LEASE_EV_ACQUIRED) {
        enrol_write(registration, REGISTER_AND_READ);
        heartbeats_sweep(registration);
    } else if (event->type == LEASE_EV_LOST && event->loss == LEASE_LOSS_RESIGNED) {
        enrol_soon(registration);
    } else if (event->type == LEASE_EV_LOST) {
        enrol_write(registration, REGISTER);
    }
}

/* Copies the update, since callbacks may step again. */
static void step(struct registration *registration, const struct lease_input *input)
{
    struct client *client = registration->client;
    struct lease_update update;
    instant now = clock_now();

    lease_step(&registration->lease, &client->settings, input, now, client_chance(client), &update);
    plan_renewal(registration, now, &update);
    publish(registration, &update);
    client_enter(client);
    registration->references++;
    for (uint32_t i = 0; i < update.command_count; i++) {
        (void)run(registration, &update.commands[i]); /* the core's own timeout is an answer too */
    }
    if (!registration->is_starting) { /* before the start, the timer waits for that */
        rearm(registration, update.deadline);
    }
    if (registration->is_urgent) {
        flush(registration);
    }
    for (uint32_t i = 0; i < update.event_count; i++) {
        take_event(registration, &update.events[i], now);
    }
    registration_report_attempt(registration, input, &update);
    registration_report_leader(registration);
    registration_unref(registration);
    client_exit(client);
}

void registration_step(struct registration *registration, const struct lease_input *input)
{
    step(registration, input);
}

void registration_start(struct registration *registration)
{
    struct lease_input up = {.type = LEASE_IN_UP};

    registration->is_starting = instant_before(clock_now(), registration->starts);
    if (registration->is_starting) {
        rearm(registration, registration->starts);
    } else if (client_is_up(registration->client)) {
        step(registration, &up);
    }
}

/* A process that is not the heir does nothing at first, and as a rule nothing at all: the processes
 * may share a machine, and their work must not delay the heir. */
static void take_up_offer(struct registration *registration, instant now)
{
    struct lease_input released = {.type = LEASE_IN_RELEASED};

    if (registration->offered.ns > 0 && !instant_before(now, registration->offered)) {
        registration->offered = (instant){0};
        step(registration, &released);
    }
}

void registration_due(struct registration *registration, instant now)
{
    struct lease_input tick = {.type = LEASE_IN_TICK};

    registration->references++;
    take_up_offer(registration, now);
    if (!instant_before(now, registration->deadline)) {
        rearm(registration, INSTANT_NEVER); /* until the step says otherwise */
        if (registration->is_starting) {
            registration_start(registration);
        } else {
            step(registration, &tick);
        }
    }
    if (!instant_before(now, registration->beat) && !registration->is_leaving) {
        enrol_beat(registration);
    }
    registration_unref(registration);
}

void registration_connection(struct registration *registration, bool is_up)
{
    struct lease_input down = {.type = LEASE_IN_DOWN};

    if (is_up) {
        registration_start(registration);
    } else {
        step(registration, &down);
    }
    if (is_up) {
        enrol_write(registration, REGISTER_AND_READ);
    }
}

void registration_contenders(struct registration *registration, uint32_t count)
{
    struct lease_input input = {.type = LEASE_IN_CONTENDERS, .contenders = count};

    step(registration, &input);
}

/* The process that released the lock asks last; all others let the heir ask first. */
static void on_released_by(struct registration *registration, const struct notice *notice)
{
    struct lease_input input = {.type = LEASE_IN_RELEASED};
    bool is_for_us = strcmp(notice->heir, registration->client->id) == 0;

    if (strcmp(notice->by, registration->client->id) == 0) {
        return;
    }
    if (notice->epoch > 0 && notice->epoch < registration->lease.highest) {
        return; /* it comes late: another process has had the lock since */
    }
    if (is_for_us) { /* no random delay */
        input.type = LEASE_IN_UP;
        registration->is_starting = false;
        registration->is_urgent = true;
        if (strcmp(text_of(registration->holder), notice->by) == 0) {
            registration_take_holder(registration, "",
                                     0); /* reported while the reply is awaited, not after it */
        }
    } else if (notice->is_offer) {
        registration->offered = instant_add(clock_now(), SPAN_MS(OFFERED_FIRST_MS));
        rearm(registration, registration->deadline);
        return;
    } else if (notice->heir[0]) {
        input.wait = SPAN_MS(HELD_BACK_MS);
    }
    step(registration, &input);
}

void registration_notice(struct registration *registration, const char *text, size_t bytes)
{
    struct lease_input taken = {.type = LEASE_IN_TAKEN};
    struct notice notice;

    if (!parse_notice(&notice, text, bytes)) {
        return;
    }
    switch (notice.type) {
    case NOTICE_RELEASED:
        on_released_by(registration, &notice);
        break;
    case NOTICE_TAKEN:
        taken.epoch = notice.epoch;
        registration->offered = (instant){0};
        step(registration, &taken);
        break;
    case NOTICE_MEMBERS:
        if (strcmp(notice.by, registration->client->id) != 0) { /* our own entry needs no event */
            registry_read(registration);
        }
        break;
    }
}
