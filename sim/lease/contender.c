/* A process around one lease core. It keeps the driver's contract of lease.h as src/provider/redis
 * does: publish, void first; send; come back at the deadline. Its commands may leave late, since a
 * process can be stopped between any two of its instructions.
 *
 * A paused process takes no input: its events wait until it wakes. Its lease counts as held until
 * its own clock has passed the end. */
#include "sim/lease/contender.h"

#include "sim/lease/checks.h"
#include "sim/lease/profile.h"
#include "sim/lease/trace.h"
#include "sim/lease/wire.h"

enum { MS = 1000000, RECONNECT_MIN_MS = 20, HELD_BACK_MS = 500 };

static struct contest_event *push_for(struct contest *contest, struct contender *who,
                                      enum contest_event_kind kind, int64_t at)
{
    struct contest_event *event = contest_push(contest, kind, at);

    event->who = who;
    event->id = who->id;
    event->connection = who->connection;
    event->boot = who->boot;
    return event;
}

static int64_t late(struct contest *contest)
{
    return random_between(&contest->random, 0, contest->profile.lateness);
}

static uint64_t id_of(const struct contender *who)
{
    return CONTEST_MUTANT(ID_KEPT) ? who->number : who->id;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void send(struct contest *contest, struct contender *who,
                 const struct lease_command *command)
{
    static const char *const texts[] = {[LEASE_TAKE] = "take",
                                        [LEASE_LOOK] = "look",
                                        [LEASE_RENEW] = "renew",
                                        [LEASE_RELEASE] = "release"};
    bool is_release = command->type == LEASE_RELEASE;
    int64_t at;

    who->sent_at[command->request % CONTEST_REQUESTS_KEPT] = contest->now;
    if (!who->is_connected ||
        (is_release && command->epoch == LEASE_EPOCH_UNKNOWN && !who->is_leaving)) {
        return; /* no reply comes; the core's own timeout ends the wait */
    }
    if (!is_release) {
        who->outstanding = command->request;
        who->is_asking_for_it = command->type == LEASE_TAKE;
        if (contest->profile.hangs_up) {
            span wait = who->settings.answer_timeout;
            instant due = instant_add(drift_local(&who->clock, contest->now), wait);
            push_for(contest, who, CONTEST_OVERDUE, drift_true(&who->clock, due) + MS)->number =
                command->request;
        }
    }
    at = contest_out(contest, who);
    contest_say(contest, who, "%s %u, epoch %llu%s", texts[command->type], command->request,
                (unsigned long long)command->epoch, at == INT64_MAX ? ", lost" : "");
    if (at != INT64_MAX) {
        at += late(contest);
        who->last_out = at > who->last_out ? at : who->last_out;
        push_for(contest, who, CONTEST_REQUEST, at)->request =
            (struct contest_request){.type = command->type,
                                     .request = command->request,
                                     .epoch = command->epoch,
                                     .id = id_of(who),
                                     .history = who->history,
                                     .heir = who->heir,
                                     .ttl_ms = who->settings.lease.ns / MS,
                                     .most_ms = who->max_lease.ns / MS,
                                     .interval_ms = contest->profile.visitor_interval / MS};
    }
}

static void rearm(struct contest *contest, struct contender *who)
{
    int64_t at = drift_true(&who->clock, who->update.deadline);

    who->tick++;
    if (at != INT64_MAX) {
        push_for(contest, who, CONTEST_TICK, at + late(contest))->number = who->tick;
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void tell(struct contest *contest, struct contender *who, const struct lease_event *event)
{
    static const char *const losses[] = {[LEASE_LOSS_EXPIRED] = "expired",
                                         [LEASE_LOSS_SUPERSEDED] = "superseded",
                                         [LEASE_LOSS_RESIGNED] = "resigned"};

    switch (event->type) {
    case LEASE_EV_ACQUIRED:
        contest->result.counts[CONTEST_COUNT_ACQUIRED]++;
        contest_say(
            contest, who, "LEADS, epoch %llu, for %.3f ms", (unsigned long long)event->epoch,
            (double)instant_since(who->update.end, drift_local(&who->clock, contest->now)).ns /
                1e6);
        break;
    case LEASE_EV_LOST:
        contest->losses++;
        contest_say(contest, who, "leads no more: %s", losses[event->loss]);
        break;
    case LEASE_EV_STALE_EPOCH:
        contest_say(contest, who, "gives back epoch %llu: not above all seen",
                    (unsigned long long)event->epoch);
        break;
    case LEASE_EV_HOLDER:
    case LEASE_EV_JEOPARDY:
        break;
    }
}

void contender_step(struct contest *contest, struct contender *who, const struct lease_input *input)
{
    struct lease_update before = who->update;
    struct lease had = who->lease;

    if (input->type == LEASE_IN_REPLY) {
        contest_check_answered(contest, who, input);
    }
    lease_step(&who->lease, &who->settings, input, drift_local(&who->clock, contest->now),
               random_next(&contest->random), &who->update);
    for (uint32_t i = 0; i < who->update.event_count; i++) {
        tell(contest, who, &who->update.events[i]);
    }
    contest_check_step(contest, who, &before, &had, input);
    if (input->type != LEASE_IN_REPLY && input->type != LEASE_IN_TICK) {
        who->asks = 0; /* another input was the cause */
    } else if (who->lease.is_waiting && who->update.command_count > 0) {
        contest_check_asked(contest, who);
    }
    for (uint32_t i = 0; i < who->update.command_count; i++) {
        send(contest, who, &who->update.commands[i]);
    }
    rearm(contest, who);
}

static void step(struct contest *contest, struct contender *who, enum lease_input_type type)
{
    struct lease_input input = {.type = type};

    contender_step(contest, who, &input);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static void connect(struct contest *contest, struct contender *who, int64_t pause)
{
    who->connection = ++contest->connections;
    who->is_connected = false;
    who->last_in = who->last_out = 0;
    push_for(contest, who, CONTEST_CONNECT, contest->now + pause + contest_way(contest));
}

static void come_up(struct contest *contest, struct contender *who,
                    const struct contest_event *event)
{
    who->is_connected = true;
    who->boot = event->boot;
    who->history = event->number;
    who->pause = RECONNECT_MIN_MS * (int64_t)MS;
    if (event->boot != contest->server.boot) { /* the server has died meanwhile */
        push_for(contest, who, CONTEST_DOWN, contest->now + contest_way(contest));
    }
    step(contest, who, LEASE_IN_UP);
}

/* Replies NO_ANSWER to the command under way, and then reports that the connection is down. */
static void hang_up(struct contest *contest, struct contender *who)
{
    struct lease_input nothing = {
        .type = LEASE_IN_REPLY,
        .reply = {.request = (uint32_t)who->outstanding, .outcome = LEASE_NO_ANSWER}};

    who->is_connected = false;
    if (who->outstanding) {
        who->outstanding = 0;
        contender_step(contest, who, &nothing);
    }
    contest_say(contest, who, "its connection is down");
    step(contest, who, LEASE_IN_DOWN);
    connect(contest, who, random_between(&contest->random, who->pause / 2, who->pause));
}

/* ---- Life of a process ----------------------------------------------------------------------- */

void contender_start(struct contest *contest, struct contender *who)
{
    struct lease_input contenders = {.type = LEASE_IN_CONTENDERS,
                                     .contenders = (uint32_t)contest->profile.contenders};

    *who = (struct contender){
        .number = who->number, .clock = who->clock, .tick = who->tick, .is_up = true};
    who->id = ++contest->ids;
    who->update.end = INSTANT_PAST;
    who->pause = RECONNECT_MIN_MS * (int64_t)MS;
    contest_draw_life(contest, who);
    contest_say(contest, who, "starts, lease %.3f ms, max-lease %.3f ms",
                (double)who->settings.lease.ns / 1e6, (double)who->max_lease.ns / 1e6);
    lease_init(&who->lease, true, 0);
    contender_step(contest, who, &contenders);
    connect(contest, who, 0);
}

/* The guardian releases by the id and epoch that were published last. */
void contender_speak_for(struct contest *contest, const struct contender *who)
{
    int64_t at = contest->now + contest_way(contest) + late(contest);

    if (who->update.held) {
        contest_say(contest, who, "its guardian releases epoch %llu",
                    (unsigned long long)who->update.epoch);
        struct contest_event *event = contest_push(contest, CONTEST_GUARDIAN, at);
        event->who = &contest->contenders[who->number - 1];
        event->id = who->id;
        event->request = (struct contest_request){
            .type = LEASE_RELEASE, .epoch = who->update.epoch, .id = id_of(who)};
    }
}

static void end(struct contest *contest, struct contender *who)
{
    int64_t most = contest->profile.down_time;

    who->is_up = false;
    push_for(contest, who, CONTEST_START, contest->now + random_between(&contest->random, 0, most));
}

void contender_crash(struct contest *contest, struct contender *who, bool has_guardian)
{
    contest_say(contest, who, "is killed");
    contest->result.counts[CONTEST_COUNT_CRASHES]++;
    if (has_guardian) {
        contender_speak_for(contest, who);
    }
    end(contest, who);
}

void contender_leave(struct contest *contest, struct contender *who)
{
    contest_say(contest, who, "leaves");
    who->is_leaving = true;
    step(contest, who, LEASE_IN_LEAVE);
    end(contest, who);
}

void contender_set_rate(struct contest *contest, struct contender *who)
{
    drift_set_rate(&who->clock, contest->now, contest_draw_rate(contest));
    contest_say(contest, who, "clock runs at %+lld ppm", (long long)who->clock.ppm);
    if (who->is_up) {
        rearm(contest, who);
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* "released BY FOR", as registration_notice() of the provider takes it. */
static void hear_release(struct contest *contest, struct contender *who,
                         const struct contest_event *event)
{
    instant held_back = instant_add(drift_local(&who->clock, contest->now), SPAN_MS(HELD_BACK_MS));

    if (event->number == id_of(who)) {
        return;
    }
    contest_say(contest, who, "hears of a release");
    if (event->heir != NOBODY && event->heir != who->id) {
        who->lease.next = instant_max(who->lease.next, held_back);
        return;
    }
    step(contest, who, event->heir == who->id ? LEASE_IN_UP : LEASE_IN_RELEASED);
}

static void take(struct contest *contest, struct contender *who, const struct contest_event *event)
{
    struct lease_input taken = {.type = LEASE_IN_TAKEN, .epoch = event->number};
    bool is_of_connection = event->connection == who->connection;

    switch (event->kind) {
    case CONTEST_TICK:
        if (event->number == who->tick) {
            step(contest, who, LEASE_IN_TICK);
        }
        break;
    case CONTEST_UP:
        if (is_of_connection) {
            come_up(contest, who, event);
        }
        break;
    case CONTEST_DOWN:
        if (is_of_connection && who->is_connected) {
            hang_up(contest, who);
        }
        break;
    case CONTEST_OVERDUE:
        if (is_of_connection && who->is_connected && event->number == who->outstanding) {
            hang_up(contest, who);
        }
        break;
    case CONTEST_REPLY:
        if (is_of_connection && who->is_connected) {
            if (event->input.reply.request == who->outstanding) {
                who->outstanding = 0;
            }
            contender_step(contest, who, &event->input);
        }
        break;
    case CONTEST_RELEASED:
        hear_release(contest, who, event);
        break;
    case CONTEST_TAKEN:
        contender_step(contest, who, &taken);
        break;
    default:
        break;
    }
}

void contender_happen(struct contest *contest, struct contender *who,
                      const struct contest_event *event)
{
    if (event->kind == CONTEST_START) {
        if (!who->is_up && who->id == event->id) {
            contender_start(contest, who);
        }
        return;
    }
    if (!who->is_up || who->id != event->id) {
        return;
    }
    if (contest->now < who->paused_until) {
        struct contest_event *later = contest_push(contest, event->kind, who->paused_until);
        int64_t until = later->at;
        uint64_t order = later->order;
        *later = *event;
        later->at = until;
        later->order = order;
        return;
    }
    take(contest, who, event);
}
