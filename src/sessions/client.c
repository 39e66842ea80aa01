#include "sessions/client.h"

#include "base/invariant.h"
#include "sessions/client_int.h"
#include "sessions/mutants.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { PAUSES_EACH_TIMEOUT = 50 };

struct session_client *session_client_new(const struct session_client_options *options)
{
    struct session_client *client = calloc(1, sizeof(*client));

    if (!client) {
        return NULL;
    }
    client->options = *options;
    client->options.metadata = NULL;
    client->requests = OWN_REQUESTS;
    client->update = (struct lease_update){.end = INSTANT_PAST, .deadline = INSTANT_NEVER};
    client->paused_until = client->kept_until = INSTANT_PAST;
    names_init(&client->names, offsetof(struct claim, name));
    lease_init(&client->lease, true, 0);
    if (options->metadata && !(client->metadata = strdup(options->metadata))) {
        session_client_free(client);
        return NULL;
    }
    return client;
}

/* No reply comes any more, or it has come. */
static void settle(struct session_client *client, struct errand *errand)
{
    DL_DELETE(client->waiting, errand);
    client->under_way--;
    errand->claim->has_errand = false;
    free(errand);
}

static void settle_all(struct session_client *client)
{
    while (client->waiting) {
        settle(client, client->waiting);
    }
}

void session_claim_free(struct session_client *client, struct claim *claim)
{
    INVARIANT(!claim->has_errand);
    if (claim->is_ready) {
        DL_DELETE2(client->ready, claim, former, latter);
    }
    if (claim->given_up > client->given_up) {
        client->given_up = claim->given_up;
    }
    names_remove(&client->names, claim);
    DL_DELETE(client->claims, claim);
    free(claim);
}

void session_client_free(struct session_client *client)
{
    if (!client) {
        return;
    }
    settle_all(client);
    for (struct claim *at = client->claims, *next; at; at = next) {
        next = at->next;
        session_claim_free(client, at);
    }
    names_fini(&client->names);
    free(client->metadata);
    free(client);
}

struct claim *session_claim_find(const struct session_client *client, const char *election)
{
    return names_find(&client->names, election);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void tell(struct session_client *client, struct claim *claim, unsigned what)
{
    if (!claim->is_telling) {
        *(client->telling ? &client->told_last->later : &client->telling) = claim;
        client->told_last = claim;
        claim->later = NULL;
        claim->is_telling = true;
    }
    claim->tells |= what & TELL_ALL;
}

static void lose(struct session_client *client, struct claim *claim, enum lease_loss loss)
{
    if (claim->epoch == 0) {
        return;
    }
    if (claim->tells & TELL_ACQUIRED) { /* not taken yet, so nobody knows of it */
        claim->tells &= TELL_ALL & ~(unsigned)(TELL_ACQUIRED | TELL_ASKED);
    } else {
        claim->lost = claim->epoch;
        claim->loss = loss & 3;
        tell(client, claim, TELL_LOST);
    }
    claim->epoch = 0;
}

static void tell_of_session(struct session_client *client, const struct session_event *event)
{
    INVARIANT(client->event_count < EVENTS_MAX);
    client->events[client->event_count++] = *event;
}

/* ---- Which order a claim needs --------------------------------------------------------------- */

enum session_order_type session_claim_need(const struct claim *claim)
{
    if (claim->name[0] == '\0') {
        return claim->is_confirmed ? (enum session_order_type)0 : SESSION_DESCRIBE;
    }
    if (!claim->is_wanted) {
        return claim->may_be_in && !claim->is_kept ? SESSION_WITHDRAW : (enum session_order_type)0;
    }
    if (!claim->is_confirmed) {
        return SESSION_ENTER;
    }
    return claim->granted != 0 && claim->granted <= claim->given_up ? SESSION_RESIGN
                                                                    : (enum session_order_type)0;
}

/* To be called whenever a claim may need another order. What is under way comes first. */
static void review(struct session_client *client, struct claim *claim)
{
    bool needs_order = session_claim_need(claim) != 0;

    if (claim->has_errand) {
        return;
    }
    if (needs_order && !claim->is_ready) {
        DL_APPEND2(client->ready, claim, former, latter);
    } else if (!needs_order && claim->is_ready) {
        DL_DELETE2(client->ready, claim, former, latter);
    }
    claim->is_ready = needs_order;
    if (!needs_order && !claim->is_wanted && !claim->is_kept && claim->name[0] != '\0') {
        tell(client, claim, TELL_ENDED);
    }
}

/* The order may have been carried out, or may be yet. */
static void repeat(struct session_client *client, struct errand *errand)
{
    enum session_order_type asked = errand->type;
    struct claim *claim = errand->claim;

    settle(client, errand);
    if (asked == SESSION_ENTER || asked == SESSION_DESCRIBE) {
        claim->is_confirmed = SESSION_MUTANT(LOST_ENTRY_FORGOTTEN);
    }
    review(client, claim);
}

/* The process stops acting first. */
static void give_up(struct session_client *client, struct claim *claim, bool is_late)
{
    claim->given_up = claim->granted > claim->given_up ? claim->granted : claim->given_up;
    if (!is_late) {
        lose(client, claim, LEASE_LOSS_RESIGNED);
    }
}

/* ---- What the user wants --------------------------------------------------------------------- */

static struct claim *claim_of(struct session_client *client, const char *election)
{
    struct claim *claim = session_claim_find(client, election);
    size_t bytes = strlen(election) + 1;

    if (claim || !(claim = calloc(1, offsetof(struct claim, name) + bytes))) {
        return claim;
    }
    memcpy(claim->name, election, bytes);
    claim->given_up = SESSION_MUTANT(GIVEN_UP_FORGOTTEN) ? 0 : client->given_up;
    if (names_add(&client->names, claim) != BATON_OK) {
        free(claim);
        return NULL;
    }
    DL_APPEND(client->claims, claim);
    return claim;
}

/* Acts in the epoch that the session holds, unless that one was given up. */
static void take_up(struct session_client *client, struct claim *claim)
{
    if (claim->granted > claim->given_up || SESSION_MUTANT(GIVEN_UP_TAKEN_AGAIN)) {
        lose(client, claim, LEASE_LOSS_SUPERSEDED);
        claim->epoch = claim->granted;
        tell(client, claim, TELL_ACQUIRED);
    }
}

static void hear_asked(struct session_client *client, struct claim *claim, uint64_t epoch)
{
    if (claim->epoch == epoch && epoch > claim->given_up) {
        tell(client, claim, TELL_ASKED);
    }
}

/* What a resumed session holds has waited for this. */
static void claim_kept(struct session_client *client, struct claim *claim)
{
    claim->is_kept = false;
    if (claim->granted != 0 && claim->is_eligible && !SESSION_MUTANT(REPORT_NOT_TAKEN)) {
        take_up(client, claim);
        hear_asked(client, claim, claim->asked_to_pass);
    }
}

int session_client_recall(struct session_client *client, const char *election, uint64_t epoch,
                          bool acts)
{
    struct claim *claim = claim_of(client, election);

    if (!claim) {
        return BATON_ENOMEM;
    }
    if (acts && !claim->is_wanted) { /* whatever was given up later, of other elections */
        claim->given_up = epoch - 1;
    } else if (epoch > claim->given_up && !SESSION_MUTANT(RECALLS_NOTHING)) {
        claim->given_up = epoch;
    }
    return BATON_OK;
}

int session_client_enter(struct session_client *client, const char *election, int32_t priority,
                         bool is_eligible, void *userdata)
{
    struct claim *claim;

    if (client->has_left || election[0] == '\0' || strlen(election) >= SESSION_NAME_MAX) {
        return BATON_EINVAL;
    }
    if (!(claim = claim_of(client, election))) {
        return BATON_ENOMEM;
    }
    claim->userdata = userdata;
    claim->is_wanted = true;
    claim->priority = priority;
    claim->is_eligible = is_eligible;
    claim->is_confirmed = false;
    if (!is_eligible) {
        give_up(client, claim, false);
    }
    if (claim->is_kept) {
        claim_kept(client, claim);
    }
    review(client, claim);
    return BATON_OK;
}

void *session_client_userdata(const struct session_client *client, const char *election)
{
    const struct claim *claim = session_claim_find(client, election);

    return claim && claim->is_wanted ? claim->userdata : NULL;
}

void session_client_withdraw(struct session_client *client, const char *election)
{
    struct claim *claim = session_claim_find(client, election);

    if (claim && claim->is_wanted) {
        claim->is_wanted = false;
        give_up(client, claim, SESSION_MUTANT(WITHDRAWS_BEFORE_VOID));
        review(client, claim);
    }
}

void session_client_disown(struct session_client *client, const char *election)
{
    struct claim *claim = session_claim_find(client, election);

    if (claim) {
        claim->userdata = NULL;
    }
}

int session_client_resign(struct session_client *client, const char *election, uint64_t epoch,
                          uint64_t to)
{
    struct claim *claim = session_claim_find(client, election);

    if (!claim || claim->epoch == 0 || claim->epoch != epoch || epoch <= claim->given_up) {
        return BATON_ENOTLEADER;
    }
    claim->to = to;
    give_up(client, claim, SESSION_MUTANT(RESIGNS_BEFORE_VOID));
    review(client, claim);
    return BATON_OK;
}

void session_client_widen_drift(struct session_client *client, uint32_t drift_ppm)
{
    if (drift_ppm > client->options.lease.clock_drift_ppm) {
        client->options.lease.clock_drift_ppm = drift_ppm;
    }
}

int session_client_describe(struct session_client *client, const char *metadata)
{
    char *copy = metadata ? strdup(metadata) : NULL;
    struct claim *claim = claim_of(client, "");

    if (!claim || (metadata && !copy)) {
        free(copy);
        return BATON_ENOMEM;
    }
    free(client->metadata);
    client->metadata = copy;
    claim->is_wanted = true;
    claim->is_confirmed = false;
    review(client, claim);
    return BATON_OK;
}

/* ---- The session and its lease --------------------------------------------------------------- */

/* What was asked of an earlier session has no meaning for the new one. */
static void begin_session(struct session_client *client)
{
    settle_all(client);
    for (struct claim *at = client->claims; at; at = at->next) {
        at->granted = 0;
        at->may_be_in = at->is_kept = false;
        if (at->name[0] != '\0' && !SESSION_MUTANT(NOT_ENTERED_AGAIN)) {
            at->is_confirmed = false; /* OPEN had the metadata, but no elections */
        }
        review(client, at);
    }
}

static void end_session(struct session_client *client, const struct lease_event *event)
{
    client->kept_until = INSTANT_PAST;
    for (struct claim *at = client->claims; at && !SESSION_MUTANT(HOLDS_WITHOUT_SESSION);
         at = at->next) {
        at->is_kept = SESSION_MUTANT(KEPT_BEYOND_SESSION) && at->is_kept;
        lose(client, at, event->loss);
    }
}

static void command(struct session_client *client, const struct lease_command *command)
{
    INVARIANT(client->command_count < COMMANDS_MAX);
    client->commands[client->command_count++] = *command;
}

static void note(struct session_client *client, const struct lease_event *event)
{
    switch (event->type) {
    case LEASE_EV_LOST:
        end_session(client, event);
        if (event->loss == LEASE_LOSS_EXPIRED) { /* it acts no more: others need not wait */
            command(client, &(struct lease_command){.type = LEASE_RELEASE, .epoch = event->epoch});
        }
        break;
    case LEASE_EV_ACQUIRED:
        client->options.resume = 0;
        begin_session(client);
        tell_of_session(client,
                        &(struct session_event){.type = SESSION_EV_OPENED, .epoch = event->epoch});
        break;
    case LEASE_EV_JEOPARDY:
        tell_of_session(client,
                        &(struct session_event){.type = SESSION_EV_JEOPARDY, .left = event->left});
        break;
    case LEASE_EV_HOLDER:
    case LEASE_EV_STALE_EPOCH:
        break;
    }
}

static void step_lease(struct session_client *client, const struct lease_input *input, instant now,
                       uint64_t random)
{
    lease_step(&client->lease, &client->options.lease, input, now, random, &client->update);
    for (uint32_t i = 0; i < client->update.event_count; i++) {
        note(client, &client->update.events[i]);
    }
    for (uint32_t i = 0; i < client->update.command_count; i++) {
        command(client, &client->update.commands[i]);
    }
}

/* Asks at once whether the session still is. */
static void doubt_session(struct session_client *client, instant now, uint64_t random)
{
    step_lease(client, &(struct lease_input){.type = LEASE_IN_TAKEN, .epoch = UINT64_MAX}, now,
               random);
}

void session_client_leave(struct session_client *client, instant now, uint64_t random)
{
    client->has_left = true;
    step_lease(client, &(struct lease_input){.type = LEASE_IN_LEAVE}, now, random);
    settle_all(client);
    for (struct claim *at = client->claims; at; at = at->next) {
        at->is_wanted = false;
        at->is_confirmed = true;
        at->may_be_in = at->is_kept = false;
        review(client, at);
    }
}

/* ---- Replies to orders ----------------------------------------------------------------------- */

void session_client_hold_back(struct session_client *client, instant now)
{
    client->paused_until =
        instant_add(now, SPAN_NS(client->options.lease.answer_timeout.ns / PAUSES_EACH_TIMEOUT));
}

static void take_entered(struct session_client *client, struct claim *claim, int code)
{
    claim->is_confirmed = claim->is_confirmed && code == BATON_OK;
    claim->may_be_in = code == BATON_OK;
    review(client, claim);
}

static void take_given_up(struct session_client *client, const struct errand *errand, int code,
                          instant now)
{
    struct claim *claim = errand->claim;

    if (claim->granted == errand->epoch) {
        claim->granted = 0;
    }
    claim->to = 0;
    if (errand->type == SESSION_RESIGN && code == BATON_ENOENT) {
        claim->is_confirmed = false;
    } else if (errand->type == SESSION_WITHDRAW && code == BATON_ECONFLICT) {
        /* it holds the election in another epoch: that is reported */
        session_client_hold_back(client, now);
    } else if (errand->type == SESSION_WITHDRAW) {
        claim->may_be_in = false;
        claim->is_confirmed = false;
    }
    if ((SESSION_MUTANT(RESIGNS_BEFORE_VOID) || SESSION_MUTANT(WITHDRAWS_BEFORE_VOID)) &&
        claim->epoch != 0 && claim->epoch <= claim->given_up) {
        lose(client, claim, LEASE_LOSS_RESIGNED);
    }
    review(client, claim);
}

static void take_order_reply(struct session_client *client, const struct session_input *input,
                             instant now, uint64_t random)
{
    struct errand *found;
    struct errand errand;
    struct claim *claim;

    DL_SEARCH_SCALAR(client->waiting, found, request, input->request);
    if (!found) {
        return;
    }
    errand = *found;
    claim = errand.claim;
    if (input->code != BATON_OK && input->code != BATON_ENOENT && input->code != BATON_ECONFLICT) {
        claim->code = (int16_t)input->code;
        tell(client, claim, TELL_REFUSED);
        repeat(client, found);
        session_client_hold_back(client, now);
        return;
    }
    settle(client, found);
    if (errand.type == SESSION_RESIGN || errand.type == SESSION_WITHDRAW) {
        take_given_up(client, &errand, input->code, now);
        return;
    }
    take_entered(client, claim, input->code);
    if (input->code == BATON_ENOENT) {
        doubt_session(client, now, random);
        session_client_hold_back(client, now);
    }
}

/* ---- Changes that the agent reports ---------------------------------------------------------- */

static void hear_held(struct session_client *client, struct claim *claim, uint64_t epoch)
{
    claim->may_be_in = true;
    if (epoch <= claim->granted) {
        return;
    }
    claim->granted = epoch;
    if (!claim->is_kept && (!claim->is_wanted || !claim->is_eligible)) {
        give_up(client, claim, false);
    } else if (!claim->is_kept) {
        take_up(client, claim);
    }
    review(client, claim);
}

static void hear_of(struct session_client *client, struct claim *claim,
                    const struct session_change *change)
{
    claim->is_reported = true;
    switch (change->type) {
    case SESSION_ENTERED:
        claim->may_be_in = true;
        review(client, claim);
        break;
    case SESSION_LEFT: /* by an order that came late */
        claim->may_be_in = false;
        claim->is_confirmed = SESSION_MUTANT(LATE_WITHDRAWAL_NOT_HEARD) && claim->is_confirmed;
        review(client, claim);
        break;
    case SESSION_HELD:
        hear_held(client, claim, change->epoch);
        break;
    case SESSION_ASKED:
        claim->asked_to_pass = change->epoch;
        hear_asked(client, claim, change->epoch);
        break;
    default:
        break;
    }
}

static bool is_ours(const struct session_client *client, uint64_t session)
{
    return client->update.held &&
           (session == client->update.epoch || SESSION_MUTANT(OLD_SESSION_HOLDS));
}

static void take_change(struct session_client *client, const struct session_change *change,
                        instant now, uint64_t random)
{
    struct claim *claim;

    if (!is_ours(client, change->session)) {
        return;
    }
    if (change->type == SESSION_ENDED) {
        doubt_session(client, now, random);
        return;
    }
    claim = change->election ? session_claim_find(client, change->election) : NULL;
    if (!claim && (change->type == SESSION_ENTERED || change->type == SESSION_HELD) &&
        !SESSION_MUTANT(LATE_ENTRY_KEPT)) {
        claim = claim_of(client, change->election); /* an ENTER came late: withdraws */
        if (claim) {
            claim->is_kept =
                instant_before(now, client->kept_until) && !SESSION_MUTANT(UNCLAIMED_GIVEN_UP);
        }
    }
    if (claim) {
        hear_of(client, claim, change);
    }
}

/* The present agent knows only of the elections that it has reported. */
static void take_report(struct session_client *client)
{
    for (struct claim *at = client->claims; at; at = at->next) {
        if (!at->is_reported && at->name[0] != '\0') {
            at->is_confirmed = false;
            review(client, at);
        }
    }
}

/* ---- Resuming a session ---------------------------------------------------------------------- */

/* Its process claims no more of what the session holds: every earlier lease has ended. */
static void keep_no_more(struct session_client *client)
{
    client->kept_until = INSTANT_PAST;
    for (struct claim *at = client->claims, *next; at; at = next) {
        next = at->next;
        if (at->is_kept) {
            at->is_kept = false;
            at->given_up = at->granted > at->given_up ? at->granted : at->given_up;
            review(client, at);
        }
    }
}

/* The lifetime is as the session was opened: an earlier agent had other settings, maybe. */
static void take_lifetime(struct session_client *client, span lifetime)
{
    struct lease_settings *lease = &client->options.lease;

    if (lifetime.ns > 0 && lifetime.ns < lease->lease.ns) {
        lease->renew_interval =
            SPAN_NS(lifetime.ns / 1000 * (lease->renew_interval.ns / (lease->lease.ns / 1000 + 1)));
    }
    if (lifetime.ns > 0 && !SESSION_MUTANT(RESUMES_WITH_ITS_OWN_LIFETIME)) {
        lease->lease = lifetime;
    }
}

/* Each reply of this session has the index of a resumption, and the latest one counts. */
static void note_resumed(struct session_client *client, const struct session_input *input)
{
    client->resumed = input->session;
    client->attached = input->index > client->attached ? input->index : client->attached;
}

static void refuse_resumption(struct session_client *client)
{
    const struct lease_command again = {.type = LEASE_TAKE, .request = client->resuming};

    client->options.resume = 0;
    client->resuming = 0;
    command(client, &again);
}

/* The lease core waits for the reply. */
static bool is_asked(const struct session_client *client)
{
    return (client->lease.is_waiting && client->lease.asked_request == client->resuming) ||
           SESSION_MUTANT(LATE_RESUMPTION_ENDS);
}

/* The lease core hears of a resumption, once, as of a session that was opened. Where it is refused,
 * a session is opened by the same request. False: the lease core is not concerned. */
static bool take_resumption(struct session_client *client, const struct session_input *input,
                            instant now)
{
    bool is_awaited = client->options.resume != 0 && input->request == client->resuming;

    if (input->type != SESSION_IN_REPLY || input->request == 0 ||
        input->request > client->resuming) {
        return true;
    }
    if (input->code == BATON_OK) {
        note_resumed(client, input);
    }
    if (is_awaited && input->code == BATON_OK && !is_asked(client) && !client->has_left) {
        return false; /* it is asked again */
    }
    if (is_awaited && input->code == BATON_OK) {
        take_lifetime(client, input->lifetime);
        client->kept_until = instant_add(now, client->options.lease.lease);
    } else if (is_awaited && (input->code == BATON_ENOENT || input->code == BATON_EAUTH)) {
        refuse_resumption(client);
        return false;
    }
    return is_awaited;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void disconnect(struct session_client *client)
{
    client->is_up = false;
    while (client->waiting) {
        repeat(client, client->waiting);
    }
    for (struct claim *at = client->claims; at; at = at->next) {
        at->is_reported = false;
    }
}

static enum lease_outcome outcome_of(const struct session_input *input)
{
    return input->code == BATON_OK                                            ? LEASE_GRANTED
           : input->type == SESSION_IN_RENEWED && input->code == BATON_ENOENT ? LEASE_FREE
                                                                              : LEASE_NO_ANSWER;
}

static struct lease_input for_lease(const struct session_input *input)
{
    struct lease_input ret = {.type = LEASE_IN_TICK};

    if (input->type == SESSION_IN_UP || input->type == SESSION_IN_DOWN) {
        ret.type = input->type == SESSION_IN_UP ? LEASE_IN_UP : LEASE_IN_DOWN;
    } else if (input->type == SESSION_IN_RENEWED ||
               (input->type == SESSION_IN_REPLY && input->request <= OWN_REQUESTS)) {
        ret.type = LEASE_IN_REPLY;
        ret.reply.request = (uint32_t)input->request;
        ret.reply.outcome = outcome_of(input);
        ret.reply.epoch = input->session;
    }
    return ret;
}

static bool is_overdue(const struct session_client *client, const struct errand *errand,
                       instant now)
{
    return !instant_before(now, instant_add(errand->sent, client->options.lease.answer_timeout));
}

void session_client_step(struct session_client *client, const struct session_input *input,
                         instant now, uint64_t random)
{
    struct lease_input lease_input = for_lease(input);

    if (!take_resumption(client, input, now)) {
        lease_input = (struct lease_input){.type = LEASE_IN_TICK};
    }
    step_lease(client, &lease_input, now, random);
    switch (input->type) {
    case SESSION_IN_UP:
        client->is_up = true;
        client->paused_until = INSTANT_PAST;
        break;
    case SESSION_IN_DOWN:
        disconnect(client);
        break;
    case SESSION_IN_REPORTED:
        take_report(client);
        break;
    case SESSION_IN_REPLY:
        take_order_reply(client, input, now, random);
        break;
    case SESSION_IN_CHANGE:
        take_change(client, &input->change, now, random);
        break;
    case SESSION_IN_TICK:
    case SESSION_IN_RENEWED:
        break;
    }
    while (client->waiting && is_overdue(client, client->waiting, now) &&
           !SESSION_MUTANT(WAITS_FOR_A_LOST_REPLY)) {
        repeat(client, client->waiting);
    }
    if (client->kept_until.ns != INSTANT_PAST.ns && !instant_before(now, client->kept_until)) {
        keep_no_more(client);
    }
}
