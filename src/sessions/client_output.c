/* What comes of the client's steps: its lease, events, renewals and orders. */
#include "sessions/client_int.h"
#include "sessions/mutants.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct session_client_lease session_client_lease(const struct session_client *client)
{
    return (struct session_client_lease){client->update.held, client->update.end,
                                         client->update.held ? client->update.epoch : 0};
}

uint64_t session_client_epoch(const struct session_client *client, const char *election)
{
    const struct claim *claim = session_claim_find(client, election);

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
                                  .loss = (enum lease_loss)claim->loss,
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
        claim->tells &= TELL_ALL & ~what;
        if (claim->tells == 0) {
            client->telling = claim->later;
            claim->is_telling = false;
        }
        if (what == 0 || (what == TELL_ENDED && claim->is_wanted)) {
            continue; /* it was lost, or entered again, meanwhile */
        }
        describe_event(claim, what, ret);
        if (what == TELL_ENDED) {
            session_claim_free(client, claim);
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

/* The lease core gives back, and never takes again, what it was granted too late. But the process
 * may act by a session that this client has not taken up: that one ends by its lifetime. */
static bool is_kept(struct session_client *client, const struct lease_command *release)
{
    bool is_resumed = release->epoch == client->options.resume && !client->has_left &&
                      !SESSION_MUTANT(LATE_RESUMPTION_ENDS);

    if (is_resumed) {
        client->options.resume = 0;
    }
    return is_resumed || release->epoch == LEASE_EPOCH_UNKNOWN;
}

/* OPEN, RESUME or END; false: there is none. */
static bool next_of_session(struct session_client *client, struct session_order *ret)
{
    struct lease_command taken;

    *ret = (struct session_order){0};
    do {
        if (!take_command(client, false, &taken)) {
            return false;
        }
    } while (taken.type == LEASE_RELEASE && is_kept(client, &taken));
    if (taken.type == LEASE_RELEASE) {
        ret->type = SESSION_END;
        ret->session = taken.epoch;
        ret->epoch = taken.epoch == client->resumed ? client->attached : taken.epoch;
        ret->end = SESSION_END_LEFT;
        return true;
    }
    memcpy(ret->secret, client->options.secret, sizeof(ret->secret));
    if (client->options.resume != 0) {
        ret->type = SESSION_RESUME;
        ret->request = client->resuming = taken.request;
        ret->session = client->options.resume;
        return true;
    }
    ret->type = SESSION_OPEN;
    ret->request = taken.request;
    ret->lifetime = client->options.lease.lease;
    ret->incarnation = client->options.incarnation;
    memcpy(ret->name, client->options.name, sizeof(ret->name));
    describe_process(client, ret);
    return true;
}

static void prepare(const struct session_client *client, struct errand *errand,
                    struct session_order *ret)
{
    struct claim *claim = errand->claim;

    *ret = (struct session_order){.type = session_claim_need(claim),
                                  .request = errand->request,
                                  .session = client->update.epoch};
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
    errand->type = ret->type;
    errand->epoch = ret->epoch;
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
    struct errand *errand;

    if (next_of_session(client, ret)) {
        return true;
    }
    if (!may_order(client) || instant_before(now, client->paused_until)) {
        return false;
    }
    if (!(errand = malloc(sizeof(*errand)))) {
        session_client_hold_back(client, now);
        return false;
    }
    *errand = (struct errand){.claim = claim, .request = ++client->requests, .sent = now};
    DL_DELETE2(client->ready, claim, former, latter);
    claim->is_ready = false;
    claim->has_errand = true;
    DL_APPEND(client->waiting, errand);
    client->under_way++;
    prepare(client, errand, ret);
    return true;
}

instant session_client_deadline(const struct session_client *client)
{
    instant at = client->update.deadline;

    if (client->waiting) {
        at = instant_min(at,
                         instant_add(client->waiting->sent, client->options.lease.answer_timeout));
    }
    if (client->kept_until.ns != INSTANT_PAST.ns) {
        at = instant_min(at, client->kept_until);
    }
    return may_order(client) ? instant_min(at, client->paused_until) : at;
}
