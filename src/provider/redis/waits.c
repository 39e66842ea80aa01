/* wait-replicas=N: what the server grants counts once N replicas have it.
 *
 *   TAKE, RENEW ──▶ granted ──▶ asked for ──▶ WAIT N ──▶ N or more: the core hears of the grant
 *                      │           ▲                └──▶ fewer: it hears of no answer, and what
 *                      └─ waits ───┘                     was taken is given back
 *
 * WAIT speaks of what its own connection has written, and the connection answers nothing else
 * meanwhile. So there is one WAIT at a time, for all that was granted before it; what is granted
 * until its answer has the next one. A connection that is lost answers it, with NULL: whatever
 * waits was written on that one, and has failed.
 */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>

/* A grant that does not count yet. */
struct waiting {
    struct waiting *next;
    struct registration *registration; /* a reference */
    struct lease_input grant;
    span took; /* until the server had granted it */
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
    /* Its own, one that is under way before it, and the command itself. */
    if (client->settings.answer_timeout.ns < 3 * waits->timeout.ns) {
        return error_set(
            reterr, BATON_EINVAL, "answer-timeout >= 3 x wait-timeout fails: %g s < 3 x %g s",
            (double)client->settings.answer_timeout.ns / 1e9, (double)waits->timeout.ns / 1e9);
    }
    return BATON_OK;
}

/* ---- Fewer than N ---------------------------------------------------------------------------- */

/* As the core does with a grant that it does not want: unless another command is under way, which
 * is answered with the same lock. No notice is sent, since the next process would fare no better.
 */
static void give_back(struct registration *registration, const struct lease_input *grant)
{
    struct lease *lease = &registration->lease;

    if (lease->held || (lease->is_waiting && lease->asked_request != grant->reply.request)) {
        return;
    }
    if (lease->highest < grant->reply.epoch) { /* it may arrive late: it is never taken again */
        lease->highest = grant->reply.epoch;
    }
    registration_give_back(registration, grant->reply.epoch);
}

static void tell_too_few(struct waiting *waiting, long long count)
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
            tell_too_few(waiting, reply->integer);
        } else {
            registration_refused(registration, ERRAND_LOCK, reply);
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
    if (!reply) { /* what has come since was written on the connection that is lost, too */
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
    const char *words[] = {"WAIT", replicas, timeout_ms};

    if (!waits->queued || waits->asked) {
        return;
    }
    (void)snprintf(replicas, sizeof(replicas), "%d", waits->replicas);
    (void)snprintf(timeout_ms, sizeof(timeout_ms), "%lld",
                   (long long)(waits->timeout.ns / 1000000));
    waits->asked = waits->queued;
    waits->queued = NULL;
    if (redis_command(client->commands, 3, words, NULL, on_waited, client, 0) != BATON_OK) {
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
    if (client->cluster) { /* whose WAIT would have to go where the grant came from */
        refuse(registration, grant, is_take);
        return true;
    }
    waiting = calloc(1, sizeof(*waiting));
    if (!waiting) { /* no answer: a take is found to be ours by the next one */
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
