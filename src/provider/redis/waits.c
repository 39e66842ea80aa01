/* wait-replicas=N: a grant counts once N replicas have it.
 *
 *   TAKE, RENEW ──▶ granted ──▶ asked for ──▶ WAIT N ──▶ N or more: the core gets the grant
 *                      │           ▲                └──▶ fewer: the core gets a lost reply, and a
 *                      └─ waits ───┘                     lock that was taken is released
 *
 * WAIT covers the earlier writes of its own connection, which sends no other reply meanwhile. So
 * one WAIT is under way at a time, for all earlier grants; later grants wait for the next one. A
 * lost connection ends the WAIT with NULL: all waiting grants came on that connection, and have
 * failed.
 */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>

/* A grant that does not count yet. */
struct waiting {
    struct waiting *next;
    struct registration *registration; /* a reference */
    struct lease_input grant;
    span took; /* from the request to the grant */
    instant granted;
    bool is_take;
};

static void ask(struct client *client);

int waits_check(const struct client *client, struct baton_error *reterr)
{
    const struct waits *waits = &client->waits;

    if (waits->replicas == 0) {
        return BATON_OK;
    }
    if (client->address.server_count > 0) {
        return error_set(reterr, BATON_EINVAL,
                         "wait-replicas=%d: not with quorum=majority, whose servers have none",
                         waits->replicas);
    }
    if (waits->timeout.ns < SPAN_MS(1).ns) {
        return error_set(reterr, BATON_EINVAL, "wait-timeout: must be 1ms at least");
    }
    /* for its own WAIT, another one before it, and the command */
    if (client->settings.answer_timeout.ns < 3 * waits->timeout.ns) {
        return error_set(
            reterr, BATON_EINVAL, "answer-timeout >= 3 x wait-timeout fails: %g s < 3 x %g s",
            (double)client->settings.answer_timeout.ns / 1e9, (double)waits->timeout.ns / 1e9);
    }
    return BATON_OK;
}

/* ---- Fewer than N ---------------------------------------------------------------------------- */

/* Releases a grant, as the core does with an unwanted one, unless another command is under way,
 * whose reply has the same lock. Sends no notice, since the next process would fare no better.
 */
static void give_back(struct registration *registration, const struct lease_input *grant)
{
    struct lease *lease = &registration->lease;

    if (lease->held || (lease->is_waiting && lease->asked_request != grant->reply.request)) {
        return;
    }
    if (lease->highest < grant->reply.epoch) { /* never used again, as the release may be late */
        lease->highest = grant->reply.epoch;
    }
    registration_give_back(registration, grant->reply.epoch);
}

static void report_too_few(struct waiting *waiting, long long count)
{
    const struct waits *waits = &waiting->registration->client->waits;
    struct baton_error error;

    (void)error_set(&error, BATON_EUNAVAILABLE,
                    "election \"%s\": %lld of wait-replicas=%d had the %s within %g ms: %s",
                    waiting->registration->name, count, waits->replicas,
                    waiting->is_take ? "lock" : "renewal", (double)waits->timeout.ns / 1e6,
                    waiting->is_take ? "given back" : "it does not count");
    registration_error(waiting->registration, &error);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void finish(struct waiting *waiting, const redisReply *reply)
{
    struct registration *registration = waiting->registration;
    struct client *client = registration->client;
    bool is_number = reply && reply->type == REDIS_REPLY_INTEGER;

    if (is_number && reply->integer >= client->waits.replicas) {
        if (client->on_renewed && !waiting->is_take) {
            span took = SPAN_NS(waiting->took.ns + instant_since(clock_now(), waiting->granted).ns);
            client->on_renewed(client->renewed_userdata, took);
        }
        registration_step(registration, &waiting->grant);
    } else {
        if (is_number) {
            report_too_few(waiting, reply->integer);
        } else {
            registration_refused(registration, REQUEST_LOCK, reply);
        }
        if (waiting->is_take) {
            give_back(registration, &waiting->grant);
        }
        waiting->grant.reply.outcome = LEASE_NO_ANSWER;
        registration_step(registration, &waiting->grant);
    }
    registration_unref(registration);
    free(waiting);
}

static void finish_all(struct waiting *waiting, const redisReply *reply)
{
    while (waiting) {
        struct waiting *next = waiting->next;
        finish(waiting, reply);
        waiting = next;
    }
}

static void on_waited(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct client *client = userdata;
    struct waiting *asked = client->waits.asked;
    (void)tag;
    (void)sent;

    client_enter(client);
    client->waits.asked = NULL;
    if (!reply) { /* later grants came on the lost connection, too */
        struct waiting *queued = client->waits.queued;
        client->waits.queued = NULL;
        finish_all(asked, NULL);
        finish_all(queued, NULL);
    } else {
        ask(client);
        finish_all(asked, reply);
    }
    client_exit(client);
}

static void ask(struct client *client)
{
    struct waits *waits = &client->waits;
    char replicas[16];
    char timeout_ms[24];
    const char *arguments[] = {"WAIT", replicas, timeout_ms};

    if (!waits->queued || waits->asked) {
        return;
    }
    (void)snprintf(replicas, sizeof(replicas), "%d", waits->replicas);
    (void)snprintf(timeout_ms, sizeof(timeout_ms), "%lld",
                   (long long)(waits->timeout.ns / 1000000));
    waits->asked = waits->queued;
    waits->queued = NULL;
    if (redis_command(client->commands, 3, arguments, NULL, on_waited, client, 0) != BATON_OK) {
        struct waiting *asked = waits->asked;
        waits->asked = NULL;
        finish_all(asked, NULL);
    }
}

/* ---- A grant --------------------------------------------------------------------------------- */

static void refuse(struct registration *registration, const struct lease_input *grant, bool is_take)
{
    struct lease_input none = *grant;
    struct baton_error error;

    (void)error_set(&error, BATON_ENOTSUP,
                    "election \"%s\": wait-replicas is not for a Redis Cluster: leave it out",
                    registration->name);
    registration_error(registration, &error);
    if (is_take) {
        give_back(registration, grant);
    }
    none.reply.outcome = LEASE_NO_ANSWER;
    registration_step(registration, &none);
}

bool waits_take(struct registration *registration, const struct lease_input *grant, bool is_take,
                instant sent)
{
    struct client *client = registration->client;
    struct waiting *waiting;

    if (client->waits.replicas == 0) {
        return false;
    }
    if (client->cluster) { /* a WAIT would have to go to the grant's node */
        refuse(registration, grant, is_take);
        return true;
    }
    waiting = calloc(1, sizeof(*waiting));
    if (!waiting) { /* a lost reply: the next TAKE finds that the lock is ours */
        struct lease_input none = *grant;
        none.reply.outcome = LEASE_NO_ANSWER;
        registration_step(registration, &none);
        return true;
    }
    *waiting = (struct waiting){.registration = registration,
                                .grant = *grant,
                                .granted = clock_now(),
                                .is_take = is_take,
                                .next = client->waits.queued};
    waiting->took = instant_since(waiting->granted, sent);
    client->waits.queued = waiting;
    registration->references++;
    ask(client);
    return true;
}
