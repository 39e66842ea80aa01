/* The lease core's steps: its commands as scripts, their answers, notices and the clock as its
 * input.
 */
#include "provider/redis/client.h"

#include <string.h>

/* How long who is not the heir holds back: where somebody chose it, and where one of many was named
 * only so that they do not all ask at once, and wait for each other's answers. */
enum { HELD_BACK_MS = 500, OFFERED_FIRST_MS = 2 };

static void step(struct seat *seat, const struct lease_input *input);

/* ---- Commands and answers -------------------------------------------------------------------- */

/* An id as a text: at most what a name may have of it. "": NULL. */
struct text *seat_text(struct seat *seat, const char *id)
{
    size_t bytes = strlen(id);

    bytes = bytes < BATON_NAME_MAX ? bytes : BATON_NAME_MAX - 1;
    return bytes > 0 ? text_get(seat->client, id, bytes) : NULL;
}

void seat_take_holder(struct seat *seat, const char *id, uint64_t epoch)
{
    text_move(seat->client, &seat->holder, seat_text(seat, id));
    seat->holder_epoch = epoch;
}

static void on_answer(void *userdata, uint64_t request, const redisReply *reply, instant sent)
{
    struct seat *seat = userdata;
    struct client *client = seat->client;
    struct lease_input input = {
        .type = LEASE_IN_REPLY,
        .reply = {.request = (uint32_t)request, .outcome = LEASE_NO_ANSWER}};
    struct lock_answer answer;
    struct baton_error cause;
    bool has_led = seat->lease.held; /* then it was a renewal; the core counts the lease itself */

    if (reply && !parse_lock(&answer, reply)) {
        seat_misunderstood(seat, ERRAND_LOCK, reply);
        seat_fault(seat, ERRAND_LOCK, reply, &cause);
        client->cause = &cause;
    } else if (reply) {
        seat_understood(seat, ERRAND_LOCK);
        input.reply.outcome = answer.reply.outcome;
        input.reply.epoch = answer.reply.epoch;
        input.reply.left = answer.reply.left;
        lock_judge(seat, &answer);
    }
    if (input.reply.outcome == LEASE_HELD) {
        seat_take_holder(seat, answer.holder, answer.reply.epoch);
        heartbeats_judge(seat, &answer);
    }
    client_enter(client);
    if (input.reply.outcome != LEASE_GRANTED || !waits_take(seat, &input, !has_led, sent)) {
        if (client->on_renewed && has_led && input.reply.outcome == LEASE_GRANTED) {
            client->on_renewed(client->renewed_userdata, instant_since(clock_now(), sent));
        }
        step(seat, &input);
    }
    client->cause = NULL;
    seat_unref(seat);
    client_exit(client);
}

static void on_released(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct seat *seat = userdata;
    struct client *client = seat->client;
    (void)tag;
    (void)sent;

    client_enter(client);
    seat_refused(seat, ERRAND_LOCK,
                 reply); /* if it was lost or refused, the lock ends by its lifetime */
    seat_unref(seat);
    client_exit(client);
}

void seat_give_back(struct seat *seat, uint64_t epoch)
{
    struct majority_order order = {.type = MAJORITY_RETURN, .epoch = epoch};

    seat->references++;
    if (seat_send(seat, -1, &order, on_released, seat, 0) != BATON_OK) {
        seat_unref(seat);
    }
}

static int run(struct seat *seat, const struct lease_command *command)
{
    static const enum majority_order_type types[] = {[LEASE_TAKE] = MAJORITY_TAKE,
                                                     [LEASE_LOOK] = MAJORITY_LOOK,
                                                     [LEASE_RENEW] = MAJORITY_RENEW,
                                                     [LEASE_RELEASE] = MAJORITY_RELEASE};
    struct majority_order order = {.type = types[command->type], .epoch = command->epoch};
    bool is_release = command->type == LEASE_RELEASE;
    int r;

    if (is_release && command->epoch == LEASE_EPOCH_UNKNOWN && !seat->client->is_closing) {
        return BATON_ECANCELED; /* the late answer says what is to be given back */
    }
    if (seat->quorum) {
        return quorum_run(seat, command);
    }
    seat->references++;
    r = seat_send(seat, -1, &order, is_release ? on_released : on_answer, seat, command->request);
    if (r != BATON_OK) {
        seat_unref(seat);
    }
    return r;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void rearm(struct seat *seat, instant deadline)
{
    seat->deadline = seat->offered.ns > 0 ? instant_min(deadline, seat->offered) : deadline;
    agenda_change(seat);
}

static void publish(struct seat *seat, const struct lease_update *update)
{
    redis_guardian_publish(seat, update);
    if (!seat->cell) {
        return;
    }
    if (update->held) {
        lease_cell_publish(seat->cell, update->epoch, update->end);
    } else {
        lease_cell_void(seat->cell);
    }
}

enum { MANY_SEATS = 64, SLOT_MS = 8, SLOTTED_FROM_MS = 1000 };

/* Many that were taken in one burst shall not be renewed in one for ever: each renews for the first
 * time at a moment of its own, and goes on from there. But those of the same few milliseconds go
 * together, in one write: what a renewal costs is the system calls. Always earlier, never later. */
static void plan_renewal(struct seat *seat, instant now, struct lease_update *update)
{
    int64_t interval = seat->client->settings.renew_interval.ns;
    instant *next = &seat->lease.next;
    bool is_new = false;

    if (HASH_COUNT(seat->client->seats) < MANY_SEATS || !update->held ||
        !instant_before(now, *next)) {
        return;
    }
    for (uint32_t i = 0; i < update->event_count; i++) {
        is_new |= update->events[i].type == LEASE_EV_ACQUIRED;
    }
    if (is_new) {
        next->ns -= (int64_t)(client_chance(seat->client) % (uint64_t)(interval / 2 + 1));
    }
    if (interval >= SPAN_MS(SLOTTED_FROM_MS).ns) {
        next->ns -= next->ns % SPAN_MS(SLOT_MS).ns;
    }
    update->deadline = instant_min(update->deadline, *next);
}

/* Before anybody is told anything: somebody else waits for this to lead, or to know that he may.
 * Of many at once each would cost a system call of its own; those leave together. */
static void flush(struct seat *seat)
{
    struct client *client = seat->client;
    char key[LAYOUT_KEY_MAX];

    seat->is_urgent = false;
    if (HASH_COUNT(client->seats) < MANY_SEATS) {
        layout_lock_key(client->layout, seat->name, key);
        client_flush(client, key);
    }
}

/* Those who listen come first: a command that is run under the lease is what it is for. */
static void take_event(struct seat *seat, const struct lease_event *event, instant at)
{
    if (event->type == LEASE_EV_ACQUIRED) {
        seat_take_holder(seat, seat->client->id, event->epoch);
    } else if (event->type == LEASE_EV_HOLDER && event->epoch == 0) {
        seat_take_holder(seat, "", 0);
    }
    seat_tell_change(seat, event, at);
    if (event->type == LEASE_EV_ACQUIRED) {
        enrol_write(seat, REGISTER_AND_READ);
        heartbeats_sweep(seat);
    } else if (event->type == LEASE_EV_LOST && event->loss == LEASE_LOSS_RESIGNED) {
        enrol_soon(seat);
    } else if (event->type == LEASE_EV_LOST) {
        enrol_write(seat, REGISTER);
    }
}

/* Callbacks may step again: what is still to be done is a copy. */
static void step(struct seat *seat, const struct lease_input *input)
{
    struct client *client = seat->client;
    struct lease_update update;
    instant now = clock_now();

    lease_step(&seat->lease, &client->settings, input, now, client_chance(client), &update);
    plan_renewal(seat, now, &update);
    publish(seat, &update);
    client_enter(client);
    seat->references++;
    for (uint32_t i = 0; i < update.command_count; i++) {
        (void)run(seat, &update.commands[i]); /* the core's own timeout is an answer too */
    }
    if (!seat->is_starting) { /* until then the start is what it waits for */
        rearm(seat, update.deadline);
    }
    if (seat->is_urgent) {
        flush(seat);
    }
    for (uint32_t i = 0; i < update.event_count; i++) {
        take_event(seat, &update.events[i], now);
    }
    seat_tell_contest(seat, input, &update);
    seat_tell_leader(seat);
    seat_unref(seat);
    client_exit(client);
}

void seat_step(struct seat *seat, const struct lease_input *input)
{
    step(seat, input);
}

void seat_start(struct seat *seat)
{
    struct lease_input up = {.type = LEASE_IN_UP};

    seat->is_starting = instant_before(clock_now(), seat->starts);
    if (seat->is_starting) {
        rearm(seat, seat->starts);
    } else if (client_is_up(seat->client)) {
        step(seat, &up);
    }
}

/* Who was not meant does nothing at first, and as a rule nothing at all: all of them work on one
 * machine at times, and whoever was meant is not to wait for that. */
static void take_up_offer(struct seat *seat, instant now)
{
    struct lease_input released = {.type = LEASE_IN_RELEASED};

    if (seat->offered.ns > 0 && !instant_before(now, seat->offered)) {
        seat->offered = (instant){0};
        step(seat, &released);
    }
}

void seat_due(struct seat *seat, instant now)
{
    struct lease_input tick = {.type = LEASE_IN_TICK};

    seat->references++;
    take_up_offer(seat, now);
    if (!instant_before(now, seat->deadline)) {
        rearm(seat, INSTANT_NEVER); /* until the step says otherwise */
        if (seat->is_starting) {
            seat_start(seat);
        } else {
            step(seat, &tick);
        }
    }
    if (!instant_before(now, seat->beat) && !seat->is_leaving) {
        enrol_beat(seat);
    }
    seat_unref(seat);
}

void seat_connection(struct seat *seat, bool is_up)
{
    struct lease_input down = {.type = LEASE_IN_DOWN};

    if (is_up) {
        seat_start(seat);
    } else {
        step(seat, &down);
    }
    if (is_up) {
        enrol_write(seat, REGISTER_AND_READ);
    }
}

void seat_contenders(struct seat *seat, uint32_t count)
{
    struct lease_input input = {.type = LEASE_IN_CONTENDERS, .contenders = count};

    step(seat, &input);
}

/* Who gave the lock up lets the others go first; who is not its heir, the heir. */
static void on_released_by(struct seat *seat, const struct notice *notice)
{
    struct lease_input input = {.type = LEASE_IN_RELEASED};
    bool is_for_us = strcmp(notice->heir, seat->client->id) == 0;

    if (strcmp(notice->by, seat->client->id) == 0) {
        return;
    }
    if (notice->epoch > 0 && notice->epoch < seat->lease.highest) {
        return; /* it comes late: somebody has had it since, and gave it up perhaps */
    }
    if (is_for_us) { /* no spread */
        input.type = LEASE_IN_UP;
        seat->is_starting = false;
        seat->is_urgent = true;
        if (strcmp(text_of(seat->holder), notice->by) == 0) {
            seat_take_holder(seat, "", 0); /* told while the answer is awaited, and not after it */
        }
    } else if (notice->is_offer) {
        seat->offered = instant_add(clock_now(), SPAN_MS(OFFERED_FIRST_MS));
        rearm(seat, seat->deadline);
        return;
    } else if (notice->heir[0]) {
        input.wait = SPAN_MS(HELD_BACK_MS);
    }
    step(seat, &input);
}

void seat_notice(struct seat *seat, const char *text, size_t bytes)
{
    struct lease_input taken = {.type = LEASE_IN_TAKEN};
    struct notice notice;

    if (!parse_notice(&notice, text, bytes)) {
        return;
    }
    switch (notice.type) {
    case NOTICE_RELEASED:
        on_released_by(seat, &notice);
        break;
    case NOTICE_TAKEN:
        taken.epoch = notice.epoch;
        seat->offered = (instant){0};
        step(seat, &taken);
        break;
    case NOTICE_MEMBERS:
        if (strcmp(notice.by, seat->client->id) != 0) { /* of our own coming nobody has to tell */
            registry_read(seat);
        }
        break;
    }
}
