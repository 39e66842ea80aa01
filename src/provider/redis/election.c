/* An election on the server: the lease core's commands as scripts, and their answers as its input.
 */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long who is not the heir holds back: where somebody chose it, and where one of many was named
 * only so that they do not all ask at once, and wait for each other's answers. */
enum { HELD_BACK_MS = 500, OFFERED_FIRST_MS = 2 };

static struct seat *seat_of(struct provider_election *election)
{
    return (struct seat *)election;
}

static void step(struct seat *seat, const struct lease_input *input);

/* ---- Events ---------------------------------------------------------------------------------- */

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

/* An id as a text: at most what a name may have of it. "": NULL. */
static struct text *hold(struct seat *seat, const char *id)
{
    size_t bytes = strlen(id);

    bytes = bytes < BATON_NAME_MAX ? bytes : BATON_NAME_MAX - 1;
    return bytes > 0 ? text_get(seat->client, id, bytes) : NULL;
}

static void tell_leader(struct seat *seat)
{
    struct baton_event event = {.type = BATON_EVENT_LEADER, .epoch = seat->holder_epoch};

    if (seat->told == seat->holder && seat->told_leader == seat->holder_epoch) {
        return;
    }
    text_move(seat->client, &seat->told, hold(seat, text_of(seat->holder)));
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
        (void)error_set(
            &event.error, BATON_EUNAVAILABLE,
            "election \"%s\": Redis may have forgotten a lease, and gives none for %g s",
            seat->name, (double)reply->reply.left.ns / 1e9);
    } else if (reply->reply.outcome == LEASE_NO_ANSWER) {
        (void)error_set(&event.error, BATON_EUNAVAILABLE,
                        "election \"%s\": Redis did not answer, or not with what was asked for",
                        seat->name);
    }
    tell_role(seat, BATON_ROLE_FOLLOWER);
    seat_tell(seat, &event);
}

/* Whoever asks for a lock that somebody is known to have only looks whether that still holds. */
static void tell_contest(struct seat *seat, const struct lease_input *input,
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

static void tell(struct seat *seat, const struct lease_event *from, instant at)
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
        text_move(seat->client, &seat->holder, hold(seat, seat->client->id));
        seat->holder_epoch = from->epoch;
        tell_role(seat, BATON_ROLE_LEADER);
        event.type = BATON_EVENT_ACQUIRED;
        event.role = BATON_ROLE_LEADER;
        event.lease_left_ns = instant_since(seat->lease.end, clock_now()).ns;
        seat_tell(seat, &event);
        registry_register(seat, REGISTER_AND_READ);
        heartbeats_sweep(seat);
        break;
    case LEASE_EV_LOST:
        event.type = BATON_EVENT_LOST;
        event.loss = seat->client->is_closing && from->loss == LEASE_LOSS_RESIGNED
                         ? BATON_LOSS_SHUTDOWN
                         : losses[from->loss];
        seat_tell(seat, &event);
        tell_role(seat, BATON_ROLE_FOLLOWER);
        if (from->loss == LEASE_LOSS_RESIGNED) {
            registry_soon(seat);
        } else {
            registry_register(seat, REGISTER);
        }
        break;
    case LEASE_EV_HOLDER:
        if (from->epoch == 0) {
            text_move(seat->client, &seat->holder, NULL);
            seat->holder_epoch = 0;
        }
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

/* ---- Commands and answers -------------------------------------------------------------------- */

void seat_take_holder(struct seat *seat, const char *id, uint64_t epoch)
{
    text_move(seat->client, &seat->holder, hold(seat, id));
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
    bool has_led = seat->lease.held; /* then it was a renewal; the core counts the lease itself */

    if (reply && !parse_lock(&answer, reply)) {
        seat_misunderstood(seat, reply);
    } else if (reply) {
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
    seat_refused(seat, reply); /* if it was lost or refused, the lock ends by its lifetime */
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

static bool has_started(const struct seat *seat)
{
    return !instant_before(clock_now(), seat->starts);
}

static void rearm(struct seat *seat, instant deadline)
{
    seat->deadline = deadline;
    agenda_change(seat);
}

static void publish(struct seat *seat, const struct lease_update *update)
{
    redis_ward_publish(seat, update);
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
    if (has_started(seat)) {
        rearm(seat, update.deadline);
    }
    if (seat->is_urgent) {
        flush(seat);
    }
    for (uint32_t i = 0; i < update.event_count; i++) {
        tell(seat, &update.events[i], now);
    }
    tell_contest(seat, input, &update);
    tell_leader(seat);
    seat_unref(seat);
    client_exit(client);
}

void seat_step(struct seat *seat, const struct lease_input *input)
{
    step(seat, input);
}

static void start(struct seat *seat)
{
    struct lease_input up = {.type = LEASE_IN_UP};

    seat->is_starting = !has_started(seat);
    if (seat->is_starting) {
        rearm(seat, seat->starts);
    } else if (client_is_up(seat->client)) {
        step(seat, &up);
    }
}

void seat_due(struct seat *seat, instant now)
{
    struct lease_input tick = {.type = LEASE_IN_TICK};

    seat->references++;
    if (!instant_before(now, seat->deadline)) {
        rearm(seat, INSTANT_NEVER); /* until the step says otherwise */
        if (seat->is_starting) {
            start(seat);
        } else {
            step(seat, &tick);
        }
    }
    if (!instant_before(now, seat->beat) && !seat->is_leaving) {
        registry_beat(seat);
    }
    seat_unref(seat);
}

void seat_connection(struct seat *seat, bool is_up)
{
    struct lease_input down = {.type = LEASE_IN_DOWN};

    if (is_up) {
        start(seat);
    } else {
        step(seat, &down);
    }
    if (is_up) {
        registry_register(seat, REGISTER_AND_READ);
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
    if (is_for_us) { /* no spread */
        input.type = LEASE_IN_UP;
        seat->is_urgent = true;
    } else if (notice->heir[0]) {
        input.wait = SPAN_MS(notice->is_offer ? OFFERED_FIRST_MS : HELD_BACK_MS);
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
        step(seat, &taken);
        break;
    case NOTICE_MEMBERS:
        if (strcmp(notice.by, seat->client->id) != 0) { /* of our own coming nobody has to tell */
            registry_read(seat);
        }
        break;
    }
}

/* ---- Functions of the provider --------------------------------------------------------------- */

void seat_wake(const struct seat *seat, char ret[KEY_MAX])
{
    const char *parts[] = {seat->name, WAKE, NULL};

    layout_join(ret, KEY_MAX, parts);
}

struct seat *seat_find(const struct client *client, const char *name, size_t bytes)
{
    struct seat *seat;

    HASH_FIND(hh, client->seats, name, bytes, seat);
    return seat;
}

void seat_unref(struct seat *seat)
{
    if (--seat->references == 0) {
        seat->next_unused = seat->client->unused;
        seat->client->unused = seat;
    }
}

/* The client's own end may hang on the last of them. */
void seats_bury(struct client *client)
{
    struct seat *seat = client->unused;

    client->unused = NULL;
    while (seat) {
        struct seat *next = seat->next_unused;
        registry_free(seat);
        quorum_end(seat);
        text_drop(client, seat->holder);
        text_drop(client, seat->told);
        free(seat->metadata);
        free(seat);
        client_release(client);
        seat = next;
    }
}

static int check(const struct client *client, const struct provider_campaign *campaign,
                 struct baton_error *reterr)
{
    size_t bytes = strlen(campaign->election);

    if (client->is_closing) {
        return error_set(reterr, BATON_ECLOSED, "the provider is closing");
    }
    if (bytes == 0 || bytes >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         campaign->election, BATON_NAME_MAX - 1);
    }
    return seat_find(client, campaign->election, bytes)
               ? error_set(reterr, BATON_EEXIST, "election \"%s\": taken part in already",
                           campaign->election)
               : BATON_OK;
}

static struct seat *make(struct client *client, const struct provider_campaign *campaign)
{
    size_t name_bytes = strlen(campaign->election) + 1;
    struct seat *seat = calloc(1, sizeof(*seat) + name_bytes);

    if (!seat || (campaign->metadata && !(seat->metadata = strdup(campaign->metadata)))) {
        free(seat);
        return NULL;
    }
    seat->base = (struct provider_election){.ops = &redis_provider_ops, .provider = &client->base};
    seat->client = client;
    memcpy(seat->name, campaign->election, name_bytes);
    seat->cell = campaign->cell;
    seat->on_event = campaign->on_event;
    seat->userdata = campaign->userdata;
    seat->eligible = campaign->eligible;
    lease_init(&seat->lease, campaign->eligible, 0);
    seat->deadline = INSTANT_NEVER;
    seat->starts = clock_now();
    if (client->start_delay.ns > 0) { /* those who are begun together do not all ask at once */
        seat->starts.ns += (int64_t)(client_random() % (uint64_t)client->start_delay.ns);
    }
    registry_begin(seat);
    seat->references = 1; /* the table's */
    client->open_handles++;
    return seat;
}

/* Into the client's table, its agenda and the server's channels: all of them or none. */
static int take_place(struct seat *seat)
{
    struct client *client = seat->client;
    char wake[KEY_MAX];

    HASH_ADD_KEYPTR(hh, client->seats, seat->name, strlen(seat->name), seat);
    if (!seat->hh.tbl) {
        return BATON_ENOMEM;
    }
    seat_wake(seat, wake);
    if (agenda_add(seat) != BATON_OK || quorum_begin(seat) != BATON_OK ||
        client_subscribe(client, wake) != BATON_OK) {
        agenda_remove(seat);
        HASH_DEL(client->seats, seat);
        return BATON_ENOMEM;
    }
    redis_ward_seat_begin(seat);
    return BATON_OK;
}

int seat_campaign(struct provider_election **ret, struct provider *provider,
                  const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct seat *seat;
    int r = check(client, campaign, reterr);

    if (r != BATON_OK) {
        return r;
    }
    seat = make(client, campaign);
    if (!seat || take_place(seat) != BATON_OK) {
        if (seat) {
            client_enter(client);
            seat_unref(seat);
            client_exit(client);
        }
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         campaign->election);
    }
    *ret = &seat->base;
    if (client_is_up(client)) {
        /* The first events come from the loop: the answer to this takes a turn. */
        start(seat);
        registry_register(seat, REGISTER_AND_READ);
    }
    return BATON_OK;
}

int seat_resign(struct provider_election *election, const char *to, instant deadline,
                struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    struct lease_input input = {.type = LEASE_IN_RESIGN};
    const struct entry *heir = to ? registry_find(seat, to) : NULL;
    (void)deadline;

    if (!seat->lease.held || !instant_before(clock_now(), seat->lease.end)) {
        return error_set(reterr, BATON_ENOTLEADER, "node \"%s\" does not lead", seat->client->node);
    }
    if (to && !heir) {
        return error_set(reterr, BATON_EINVAL,
                         "node \"%s\": not a member that may lead, or this one itself", to);
    }
    seat->is_offer = !heir && seat->entries;
    heir = heir ? heir : seat->entries;
    seat->heir = heir ? heir->id : NULL; /* the notice is made within the step */
    seat->is_urgent = true;
    step(seat, &input);
    seat->heir = NULL;
    seat->is_offer = false;
    return BATON_OK;
}

int seat_set_eligible(struct provider_election *election, bool eligible, struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    struct lease_input input = {.type = LEASE_IN_ELIGIBLE, .eligible = eligible};
    (void)reterr;

    seat->eligible = eligible;
    step(seat, &input);
    registry_register(seat, REGISTER);
    return BATON_OK;
}

int seat_set_metadata(struct provider_election *election, const char *metadata,
                      struct baton_error *reterr)
{
    struct seat *seat = seat_of(election);
    char *copy = metadata ? strdup(metadata) : NULL;

    if (metadata && !copy) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", seat->name);
    }
    free(seat->metadata);
    seat->metadata = copy;
    registry_register(seat, REGISTER);
    return BATON_OK;
}

/* Void and released first; then the registry; then the last event. */
void seat_end(struct seat *seat)
{
    struct client *client = seat->client;
    struct lease_input leave = {.type = LEASE_IN_LEAVE};
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED};
    char wake[KEY_MAX];

    if (seat->is_leaving) {
        return;
    }
    client_enter(client);
    seat->is_leaving = true;
    HASH_DEL(client->seats, seat);
    agenda_remove(seat);
    step(seat, &leave);
    registry_leave(seat);
    redis_ward_seat_end(seat);
    if (!client->is_closing) { /* the connection itself is about to end */
        seat_wake(seat, wake);
        client_unsubscribe(client, wake);
    }
    seat->cell = NULL;
    seat_tell(seat, &stopped);
    seat_unref(seat);
    client_exit(client);
}

void seat_leave(struct provider_election *election)
{
    seat_end(seat_of(election));
}

void seat_leader(struct provider_election *election, struct baton_member *ret, uint64_t *ret_epoch)
{
    struct seat *seat = seat_of(election);

    registry_describe(seat, text_of(seat->holder), ret);
    *ret_epoch = seat->holder_epoch;
}
