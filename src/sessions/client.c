/* Out of memory, an element has no table, in place of the process's end. */
#define HASH_NONFATAL_OOM 1
#include "sessions/client.h"

#include "base/invariant.h"
#include "sessions/mutants.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Numbers of orders about elections; those up to it are the lease core's. */
#define OWN_REQUESTS UINT32_MAX

enum { COMMANDS_MAX = 8, EVENTS_MAX = 8, PAUSES_EACH_TIMEOUT = 50 };

enum { TELL_LOST = 1, TELL_ACQUIRED = 2, TELL_ASKED = 4, TELL_REFUSED = 8, TELL_ENDED = 16 };

/* What the process wants of an election, and what it knows of it. The name "" stands for the
 * session itself: DESCRIBE. */
struct claim {
    void *userdata;
    bool is_wanted;
    bool is_eligible; /* wanted */
    int32_t priority;
    bool is_confirmed; /* priority and eligibility are those of the log, or an order says so */
    bool may_be_in;    /* the line, as far as known */
    bool is_reported;  /* by the present agent */
    uint64_t granted;  /* the epoch in which the session holds it, as far as known; 0: none */
    uint64_t epoch;    /* in which the process acts; 0: it does not */
    uint64_t given_up; /* the latest that was */
    uint64_t to;       /* the heir of the present resignation, or 0 */

    uint64_t request; /* of the order under way; 0: none */
    enum session_order_type asked;
    uint64_t asked_epoch;
    instant sent;

    unsigned tells; /* events to come */
    uint64_t lost, asked_to_pass;
    enum lease_loss loss;
    int code;

    bool is_ready;               /* in `ready`; with a request it is in `waiting` */
    struct claim *prev, *next;   /* of these lists */
    struct claim *prior, *later; /* of those with events to come */
    UT_hash_handle hh;
    char name[];
};

struct session_client {
    struct session_client_options options;
    char *metadata;
    struct lease lease;
    struct lease_update update;
    struct lease_command commands[COMMANDS_MAX];
    size_t command_count;
    struct session_event events[EVENTS_MAX]; /* of the session */
    size_t event_count;
    struct claim *claims;  /* by name */
    struct claim *ready;   /* need an order */
    struct claim *waiting; /* for the reply to one, in the order in which they were sent */
    struct claim *telling; /* have events to come */
    size_t under_way;
    uint64_t requests;
    uint64_t given_up; /* the latest epoch that a claim which is gone gave up */
    bool is_up;
    bool has_left;
    instant paused_until; /* after a failure */
};

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
    client->paused_until = INSTANT_PAST;
    lease_init(&client->lease, true, 0);
    if (options->metadata && !(client->metadata = strdup(options->metadata))) {
        session_client_free(client);
        return NULL;
    }
    return client;
}

/* The analyzer does not see that the table and the lists link the neighbours anew. */
static void free_claim(struct session_client *client, struct claim *claim)
{
    if (claim->request != 0) {
        client->under_way--;
    }
    if (claim->is_ready) {
        DL_DELETE(client->ready, claim);
    } else if (claim->request != 0) {
        DL_DELETE(client->waiting, claim);
    }
    if (claim->tells != 0) {
        DL_DELETE2(client->telling, claim, prior, later);
    }
    if (claim->given_up > client->given_up) {
        client->given_up = claim->given_up;
    }
    HASH_DEL(client->claims, claim); /* NOLINT(clang-analyzer-unix.Malloc) */
    free(claim);
}

void session_client_free(struct session_client *client)
{
    if (!client) {
        return;
    }
    for (struct claim *at = client->claims, *next; at; at = next) {
        next = at->hh.next;
        free_claim(client, at);
    }
    free(client->metadata);
    free(client);
}

static struct claim *find(const struct session_client *client, const char *election)
{
    struct claim *claim;

    HASH_FIND_STR(client->claims, election, claim);
    return claim;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void tell(struct session_client *client, struct claim *claim, unsigned what)
{
    if (claim->tells == 0) {
        DL_APPEND2(client->telling, claim, prior, later);
    }
    claim->tells |= what;
}

static void lose(struct session_client *client, struct claim *claim, enum lease_loss loss)
{
    if (claim->epoch == 0) {
        return;
    }
    if (claim->tells & TELL_ACQUIRED) { /* not taken yet, so nobody knows of it */
        claim->tells &= ~(unsigned)(TELL_ACQUIRED | TELL_ASKED);
    } else {
        claim->lost = claim->epoch;
        claim->loss = loss;
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

static enum session_order_type need_of(const struct claim *claim)
{
    if (claim->name[0] == '\0') {
        return claim->is_confirmed ? (enum session_order_type)0 : SESSION_DESCRIBE;
    }
    if (!claim->is_wanted) {
        return claim->may_be_in ? SESSION_WITHDRAW : (enum session_order_type)0;
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
    bool needs_order = need_of(claim) != 0;

    if (claim->request != 0) {
        return;
    }
    if (needs_order && !claim->is_ready) {
        DL_APPEND(client->ready, claim);
    } else if (!needs_order && claim->is_ready) {
        DL_DELETE(client->ready, claim);
    }
    claim->is_ready = needs_order;
    if (!needs_order && !claim->is_wanted && claim->name[0] != '\0') {
        tell(client, claim, TELL_ENDED);
    }
}

/* No reply comes to its order any more, or it has come. */
static void settle(struct session_client *client, struct claim *claim)
{
    DL_DELETE(client->waiting, claim);
    client->under_way--;
    claim->request = 0;
}

/* The order may have been carried out, or may be yet. */
static void repeat(struct session_client *client, struct claim *claim)
{
    settle(client, claim);
    if (claim->asked == SESSION_ENTER || claim->asked == SESSION_DESCRIBE) {
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
    struct claim *claim = find(client, election);
    size_t bytes = strlen(election) + 1;

    if (claim || !(claim = calloc(1, sizeof(*claim) + bytes))) {
        return claim;
    }
    memcpy(claim->name, election, bytes);
    claim->given_up = SESSION_MUTANT(GIVEN_UP_FORGOTTEN) ? 0 : client->given_up;
    HASH_ADD_STR(client->claims, name, claim);
    if (!claim->hh.tbl) {
        free(claim);
        return NULL;
    }
    return claim;
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
    review(client, claim);
    return BATON_OK;
}

void session_client_withdraw(struct session_client *client, const char *election)
{
    struct claim *claim = find(client, election);

    if (claim && claim->is_wanted) {
        claim->is_wanted = false;
        give_up(client, claim, SESSION_MUTANT(WITHDRAWS_BEFORE_VOID));
        review(client, claim);
    }
}

void session_client_disown(struct session_client *client, const char *election)
{
    struct claim *claim = find(client, election);

    if (claim) {
        claim->userdata = NULL;
    }
}

int session_client_resign(struct session_client *client, const char *election, uint64_t epoch,
                          uint64_t to)
{
    struct claim *claim = find(client, election);

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
    for (struct claim *at = client->claims; at; at = at->hh.next) {
        if (at->request != 0) {
            settle(client, at);
        }
        at->granted = 0;
        at->may_be_in = false;
        if (at->name[0] != '\0' && !SESSION_MUTANT(NOT_ENTERED_AGAIN)) {
            at->is_confirmed = false; /* OPEN had the metadata, but no elections */
        }
        review(client, at);
    }
}

static void end_session(struct session_client *client, const struct lease_event *event)
{
    for (struct claim *at = client->claims; at && !SESSION_MUTANT(HOLDS_WITHOUT_SESSION);
         at = at->hh.next) {
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
    for (struct claim *at = client->claims; at; at = at->hh.next) {
        if (at->request != 0) {
            settle(client, at);
        }
        at->is_wanted = false;
        at->is_confirmed = true;
        at->may_be_in = false;
        review(client, at);
    }
}

/* ---- Replies to orders ----------------------------------------------------------------------- */

static void hold_back(struct session_client *client, instant now)
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

static void take_given_up(struct session_client *client, struct claim *claim, int code, instant now)
{
    if (claim->granted == claim->asked_epoch) {
        claim->granted = 0;
    }
    claim->to = 0;
    if (claim->asked == SESSION_RESIGN && code == BATON_ENOENT) {
        claim->is_confirmed = false;
    } else if (claim->asked == SESSION_WITHDRAW && code == BATON_ECONFLICT) {
        hold_back(client, now); /* it holds the election in another epoch: that is reported */
    } else if (claim->asked == SESSION_WITHDRAW) {
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
    struct claim *claim;

    DL_SEARCH_SCALAR(client->waiting, claim, request, input->request);
    if (!claim) {
        return;
    }
    if (input->code != BATON_OK && input->code != BATON_ENOENT && input->code != BATON_ECONFLICT) {
        claim->code = input->code;
        tell(client, claim, TELL_REFUSED);
        repeat(client, claim);
        hold_back(client, now);
        return;
    }
    settle(client, claim);
    if (claim->asked == SESSION_RESIGN || claim->asked == SESSION_WITHDRAW) {
        take_given_up(client, claim, input->code, now);
        return;
    }
    take_entered(client, claim, input->code);
    if (input->code == BATON_ENOENT) {
        doubt_session(client, now, random);
        hold_back(client, now);
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
    if (!claim->is_wanted || !claim->is_eligible) {
        claim->given_up = epoch;
    } else if (epoch > claim->given_up || SESSION_MUTANT(GIVEN_UP_TAKEN_AGAIN)) {
        lose(client, claim, LEASE_LOSS_SUPERSEDED);
        claim->epoch = epoch;
        tell(client, claim, TELL_ACQUIRED);
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
        if (claim->epoch == change->epoch && claim->epoch > claim->given_up) {
            claim->asked_to_pass = change->epoch;
            tell(client, claim, TELL_ASKED);
        }
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
    claim = change->election ? find(client, change->election) : NULL;
    if (!claim && (change->type == SESSION_ENTERED || change->type == SESSION_HELD) &&
        !SESSION_MUTANT(LATE_ENTRY_KEPT)) {
        claim = claim_of(client, change->election); /* an ENTER came late: withdraws */
    }
    if (claim) {
        hear_of(client, claim, change);
    }
}

/* The present agent knows only of the elections that it has reported. */
static void take_report(struct session_client *client)
{
    for (struct claim *at = client->claims; at; at = at->hh.next) {
        if (!at->is_reported && at->name[0] != '\0') {
            at->is_confirmed = false;
            review(client, at);
        }
    }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void disconnect(struct session_client *client)
{
    client->is_up = false;
    while (client->waiting) {
        repeat(client, client->waiting);
    }
    for (struct claim *at = client->claims; at; at = at->hh.next) {
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

static bool is_overdue(const struct session_client *client, const struct claim *claim, instant now)
{
    return !instant_before(now, instant_add(claim->sent, client->options.lease.answer_timeout));
}

void session_client_step(struct session_client *client, const struct session_input *input,
                         instant now, uint64_t random)
{
    struct lease_input lease_input = for_lease(input);

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
}

/* ---- What comes of it ------------------------------------------------------------------------ */

struct session_client_lease session_client_lease(const struct session_client *client)
{
    return (struct session_client_lease){client->update.held, client->update.end,
                                         client->update.held ? client->update.epoch : 0};
}

uint64_t session_client_epoch(const struct session_client *client, const char *election)
{
    const struct claim *claim = find(client, election);

    return claim ? claim->epoch : 0;
}

static unsigned first_of(unsigned tells)
{
    return tells & -tells;
}

static void describe_event(const struct claim *claim, unsigned what, struct session_event *ret)
{
    static const enum session_event_type types[] = {
        [TELL_LOST] = SESSION_EV_LOST,   [TELL_ACQUIRED] = SESSION_EV_ACQUIRED,
        [TELL_ASKED] = SESSION_EV_ASKED, [TELL_REFUSED] = SESSION_EV_REFUSED,
        [TELL_ENDED] = SESSION_EV_ENDED,
    };

    *ret = (struct session_event){.type = types[what],
                                  .userdata = claim->userdata,
                                  .epoch = what == TELL_LOST    ? claim->lost
                                           : what == TELL_ASKED ? claim->asked_to_pass
                                                                : claim->epoch,
                                  .loss = claim->loss,
                                  .code = claim->code};
}

bool session_client_next_event(struct session_client *client, struct session_event *ret)
{
    struct claim *claim;
    unsigned what;

    if (client->event_count > 0) {
        *ret = client->events[0];
        memmove(client->events, client->events + 1,
                --client->event_count * sizeof(client->events[0]));
        return true;
    }
    while ((claim = client->telling)) {
        what = first_of(claim->tells);
        claim->tells &= ~what;
        describe_event(claim, what, ret);
        if (claim->tells == 0) {
            DL_DELETE2(client->telling, claim, prior, later);
        }
        if (what == TELL_ENDED && claim->is_wanted) {
            continue; /* it was entered again meanwhile */
        }
        if (what == TELL_ENDED) {
            free_claim(client, claim);
        }
        if (ret->userdata) {
            return true;
        }
    }
    return false;
}

static bool take_command(struct session_client *client, bool is_renewal, struct lease_command *ret)
{
    for (size_t i = 0; i < client->command_count; i++) {
        if ((client->commands[i].type == LEASE_RENEW) == is_renewal) {
            *ret = client->commands[i];
            client->command_count--;
            memmove(&client->commands[i], &client->commands[i + 1],
                    (client->command_count - i) * sizeof(*ret));
            return true;
        }
    }
    return false;
}

bool session_client_next_renewal(struct session_client *client, uint64_t *ret_session,
                                 uint64_t *ret_request)
{
    struct lease_command renewal;

    if (!take_command(client, true, &renewal)) {
        return false;
    }
    *ret_session = renewal.epoch;
    *ret_request = renewal.request;
    return true;
}

static void describe_process(const struct session_client *client, struct session_order *order)
{
    order->metadata = client->metadata;
    order->metadata_bytes = client->metadata ? strlen(client->metadata) : 0;
}

/* OPEN or END; false: there is none. */
static bool next_of_session(struct session_client *client, struct session_order *ret)
{
    struct lease_command taken;

    *ret = (struct session_order){0};
    do {
        if (!take_command(client, false, &taken)) {
            return false;
        }
    } while (taken.type == LEASE_RELEASE && taken.epoch == LEASE_EPOCH_UNKNOWN);
    if (taken.type == LEASE_RELEASE) {
        ret->type = SESSION_END;
        ret->session = taken.epoch;
        ret->end = SESSION_END_LEFT;
        return true;
    }
    ret->type = SESSION_OPEN;
    ret->request = taken.request;
    ret->lifetime = client->options.lease.lease;
    ret->incarnation = client->options.incarnation;
    memcpy(ret->secret, client->options.secret, sizeof(ret->secret));
    memcpy(ret->name, client->options.name, sizeof(ret->name));
    describe_process(client, ret);
    return true;
}

static void prepare(const struct session_client *client, struct claim *claim,
                    struct session_order *ret)
{
    *ret = (struct session_order){
        .type = need_of(claim), .request = claim->request, .session = client->update.epoch};
    memcpy(ret->name, claim->name, strlen(claim->name) + 1);
    switch (ret->type) {
    case SESSION_ENTER:
        ret->priority = claim->priority;
        ret->is_eligible = claim->is_eligible;
        claim->is_confirmed = true; /* until the user or the reply says otherwise */
        claim->may_be_in = true;
        break;
    case SESSION_DESCRIBE:
        describe_process(client, ret);
        claim->is_confirmed = true;
        break;
    case SESSION_RESIGN:
        ret->epoch = claim->granted;
        ret->to = claim->to;
        break;
    default:
        ret->epoch = claim->granted;
        break;
    }
    claim->asked = ret->type;
    claim->asked_epoch = ret->epoch;
}

static bool may_order(const struct session_client *client)
{
    return client->ready && client->is_up && client->update.held && !client->has_left &&
           client->under_way < SESSION_ORDERS_UNDER_WAY_MAX;
}

bool session_client_next_order(struct session_client *client, instant now,
                               struct session_order *ret)
{
    struct claim *claim = client->ready;

    if (next_of_session(client, ret)) {
        return true;
    }
    if (!may_order(client) || instant_before(now, client->paused_until)) {
        return false;
    }
    DL_DELETE(client->ready, claim);
    claim->is_ready = false;
    claim->request = ++client->requests;
    claim->sent = now;
    DL_APPEND(client->waiting, claim);
    client->under_way++;
    prepare(client, claim, ret);
    return true;
}

instant session_client_deadline(const struct session_client *client)
{
    instant at = client->update.deadline;

    if (client->waiting) {
        at = instant_min(at,
                         instant_add(client->waiting->sent, client->options.lease.answer_timeout));
    }
    return may_order(client) ? instant_min(at, client->paused_until) : at;
}
