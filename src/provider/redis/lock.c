/* The lock's scripts: their arguments, and the meaning of their replies. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct arguments {
    char keys[3][LAYOUT_KEY_MAX]; /* lock, heartbeat, epoch */
    char wake[KEY_MAX];
    char beats[LAYOUT_KEY_MAX];
    const char *ttl;
    const char *beat_ttl;
    char epoch[24];
    char least[24];
};

static void fill(struct arguments *ret, const struct registration *registration,
                 const struct majority_order *order)
{
    const struct client *client = registration->client;
    const char *record[] = {registration->name, ":epoch", NULL};

    registration_wake(registration, ret->wake);
    layout_lock_key(client->layout, registration->name, ret->keys[0]);
    layout_heartbeat_key(client->layout, registration->name, client->id, ret->keys[1]);
    layout_heartbeat_prefix(client->layout, registration->name, ret->beats);
    layout_join(ret->keys[2], LAYOUT_KEY_MAX, record);
    ret->beat_ttl = client->beat_ms;
    ret->ttl = client->lease_ms;
    (void)snprintf(ret->epoch, sizeof(ret->epoch), "%llu", (unsigned long long)order->epoch);
    (void)snprintf(ret->least, sizeof(ret->least), "%llu", (unsigned long long)order->least);
}

/* The history that a renewal sends; "": it is not known which server will get the renewal. */
static const char *history_of(const struct client *client, int server, const char *key)
{
    const struct redis *redis =
        server >= 0 ? client->servers[server].commands : client_server_of(client, key);

    return redis ? redis_identity_of(redis)->history : "";
}

struct script_call {
    enum script_name script;
    int key_count;
    int count;
    const char *arguments[14];
};

int registration_send(struct registration *registration, int server,
                      const struct majority_order *order, redis_reply_cb on_reply, void *userdata,
                      uint64_t tag)
{
    struct client *client = registration->client;
    char notice[2 * BATON_NAME_MAX + 16];
    struct arguments a;
    struct script_call call;

    fill(&a, registration, order);
    switch (order->type) {
    case MAJORITY_TAKE:
        call = (struct script_call){SCRIPT_TAKE,
                                    4,
                                    14,
                                    {a.keys[0], a.keys[1], a.keys[2], a.wake, client->id, a.ttl,
                                     a.epoch, a.beat_ttl, a.beats, a.least,
                                     server >= 0 ? "quiet" : "", client->max_lease_ms,
                                     client->longest_ms, a.beats[0] ? client->interval_ms : "0"}};
        break;
    case MAJORITY_LOOK:
        call = (struct script_call){SCRIPT_LOOK, 2, 3, {a.keys[0], a.keys[2], a.beats}};
        break;
    case MAJORITY_RENEW:
        call = (struct script_call){SCRIPT_RENEW,
                                    3,
                                    10,
                                    {a.keys[0], a.keys[1], a.keys[2], client->id, a.ttl, a.epoch,
                                     history_of(client, server, a.keys[0]), a.beat_ttl, a.beats,
                                     client->max_lease_ms}};
        break;
    case MAJORITY_RAISE:
        call = (struct script_call){
            SCRIPT_RAISE, 2, 5, {a.keys[0], a.keys[2], client->id, a.epoch, a.least}};
        break;
    case MAJORITY_RELEASE:
    case MAJORITY_RETURN:
        (void)snprintf(notice, sizeof(notice), "%s %s %s",
                       registration->is_offer ? "offered" : "released", client->id,
                       text_of(registration->heir));
        notice[0] = order->type == MAJORITY_RETURN ? '\0' : notice[0];
        call = (struct script_call){
            SCRIPT_RELEASE,
            4,
            7,
            {a.keys[0], a.keys[1], a.keys[2], a.wake, client->id, a.epoch, notice}};
        break;
    }
    return server >= 0 ? client_run_at(client, server, call.script, call.key_count, call.count,
                                       call.arguments, on_reply, userdata, tag)
                       : client_run(client, call.script, call.key_count, call.count, call.arguments,
                                    NULL, on_reply, userdata, tag);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* A foreign process may set the lock and its lifetime in two commands: only a lock that is seen
 * twice without a lifetime is endless. */
static void check_lifetime(struct registration *registration, const struct lock_answer *answer)
{
    char key[LAYOUT_KEY_MAX];
    struct baton_error error;

    if (answer->is_endless && registration->lease.endless > 0 && !registration->knows_endless) {
        layout_lock_key(registration->client->layout, registration->name, key);
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": %s has no lifetime, and \"%s\" holds it: nobody else "
                        "can lead until DEL %s or PEXPIRE",
                        registration->name, key, answer->holder, key);
        registration_error(registration, &error);
        registration->knows_endless = true;
    }
    registration->knows_endless = registration->knows_endless && answer->is_endless;
}

/* After a loss of data we wait for the longest lease that any process may have: our own setting may
 * be shorter than another's. */
void lock_check_max_lease(struct registration *registration, const char *rank, const char *id,
                          span theirs, bool is_known)
{
    struct client *client = registration->client;
    struct baton_error error;

    if (theirs.ns > client->longest.ns) {
        client->longest = theirs;
        (void)snprintf(client->longest_ms, sizeof(client->longest_ms), "%lld",
                       (long long)(theirs.ns / 1000000));
    }
    if (theirs.ns > 0 && theirs.ns != client->max_lease.ns && !is_known) {
        (void)error_set(&error, BATON_EINVAL,
                        "election \"%s\": its %s %s has max-lease=%gs and this process "
                        "max-lease=%gs: give all the same, or two may lead after Redis loses its "
                        "data",
                        registration->name, rank, id, (double)theirs.ns / 1e9,
                        (double)client->max_lease.ns / 1e9);
        registration_error(registration, &error);
    }
}

static void check_leaders_max_lease(struct registration *registration,
                                    const struct lock_answer *answer)
{
    span theirs = answer->max_lease;

    lock_check_max_lease(registration, "leader", answer->holder, theirs,
                         registration->knows_difference);
    registration->knows_difference = theirs.ns > 0 ? theirs.ns != registration->client->max_lease.ns
                                                   : registration->knows_difference;
}

enum { CLOCKS_APART_MS = 1000 }; /* clocks may differ by this */

/* A new epoch is the server's time, or above. If that time is wrong and is set right later, epochs
 * go back if the server loses its data meanwhile and no process is left that has seen the last. */
static void check_epoch(struct registration *registration, const struct lock_answer *answer)
{
    int64_t longest_ms = registration->client->longest.ns / 1000000;
    int64_t most_ms = longest_ms > CLOCKS_APART_MS ? longest_ms : CLOCKS_APART_MS;
    struct timespec now;
    struct baton_error error;
    int64_t ahead_ms;

    if (answer->reply.outcome != LEASE_GRANTED || registration->lease.held ||
        registration->knows_clock) {
        return; /* a renewal's epoch is as old as the leadership */
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    ahead_ms = (int64_t)answer->reply.epoch - (int64_t)now.tv_sec * 1000 - now.tv_nsec / 1000000;
    if (ahead_ms > -most_ms && ahead_ms < most_ms) {
        return;
    }
    (void)error_set(&error, BATON_EPROTO,
                    "election \"%s\": the new epoch %llu is %lld s %s this process's clock: the "
                    "server's clock is or was wrong. Set it right while %s:epoch is kept; without "
                    "it, epochs may go back",
                    registration->name, (unsigned long long)answer->reply.epoch,
                    (long long)(ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000,
                    ahead_ms < 0 ? "behind" : "ahead of", registration->name);
    registration_error(registration, &error);
    registration->knows_clock = true;
}

void lock_check(struct registration *registration, const struct lock_answer *answer)
{
    char key[LAYOUT_KEY_MAX];
    struct baton_error error;

    if (answer->spoiled[0]) {
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": %s:epoch held \"%s\", which is no epoch; epochs continue "
                        "from the server's time",
                        registration->name, registration->name, answer->spoiled);
        registration_error(registration, &error);
    }
    if (answer->is_odd && !registration->knows_odd) {
        layout_lock_key(registration->client->layout, registration->name, key);
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": \"%s\" is no process's id, but holds %s: another process "
                        "can lead when that lock ends, or at once after DEL",
                        registration->name, answer->holder, key);
        registration_error(registration, &error);
    }
    registration->knows_odd = answer->is_odd;
    check_lifetime(registration, answer);
    check_leaders_max_lease(registration, answer);
    check_epoch(registration, answer);
}
