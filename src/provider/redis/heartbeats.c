/* Heartbeats of a layout in which each process has its own: reports a leader whose heartbeat is
 * stale while its lock is renewed, and lets a new leader delete stale heartbeats of others. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long lifetime_ms(const struct registration *registration)
{
    const struct client *client = registration->client;

    return layout_heartbeat_lifetime(client->layout, client->settings.lease).ns / 1000000;
}

/* The seed deposes such a leader by force, and so has two leaders: some process still renews the
 * lock. We keep asking, and get the lock when it ends. */
void heartbeats_check(struct registration *registration, const struct lock_answer *answer)
{
    char beats[LAYOUT_KEY_MAX];
    long long age = answer->beat_age_ms;
    instant now = clock_now();
    struct baton_error error;

    layout_heartbeat_prefix(registration->client->layout, registration->name, beats);
    if (!beats[0]) {
        return;
    }
    if (answer->has_beat) {
        registration->beatless_since.ns = 0;
    } else { /* a new leader's first heartbeat may be missing yet */
        registration->beatless_since =
            registration->beatless_since.ns ? registration->beatless_since : now;
        age = instant_since(now, registration->beatless_since).ns / 1000000;
    }
    if (age >= -lifetime_ms(registration) && age <= lifetime_ms(registration)) {
        registration->reported_beat = BEAT_FINE;
    } else if (age < 0 && registration->reported_beat != BEAT_AHEAD) {
        registration->reported_beat = BEAT_AHEAD;
        (void)error_set(
            &error, BATON_EPROTO,
            "election \"%s\": the heartbeat %s%s is %lld s ahead of the server's clock: "
            "it does not show whether its process lives",
            registration->name, beats, text_of(registration->holder), -age / 1000);
        registration_error(registration, &error);
    } else if (age > 0 && registration->reported_beat != BEAT_STALE) {
        registration->reported_beat = BEAT_STALE;
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": %s keeps the lock, but gave no heartbeat for %lld s; it "
                        "is followed when the lock ends",
                        registration->name, text_of(registration->holder), age / 1000);
        registration_error(registration, &error);
    }
}

/* ---- Sweeping -------------------------------------------------------------------------------- */

/* Escapes the characters that are special in a pattern. */
static void quote(const char *text, char *ret, size_t ret_bytes)
{
    size_t used = 0;

    for (; *text && used + 3 < ret_bytes; text++) {
        if (strchr("*?[]\\", *text)) {
            ret[used++] = '\\';
        }
        ret[used++] = *text;
    }
    ret[used] = '\0';
}

static void on_swept(void *userdata, uint64_t tag, const redisReply *reply, instant sent);

static void sweep_from(struct registration *registration, const char *cursor)
{
    char beats[LAYOUT_KEY_MAX];
    char quoted[2 * LAYOUT_KEY_MAX];
    char pattern[2 * LAYOUT_KEY_MAX + 1];
    char lifetime[24];

    layout_heartbeat_prefix(registration->client->layout, registration->name, beats);
    if (!beats[0]) {
        return;
    }
    quote(beats, quoted, sizeof(quoted));
    (void)snprintf(pattern, sizeof(pattern), "%s*", quoted);
    (void)snprintf(lifetime, sizeof(lifetime), "%lld", lifetime_ms(registration));
    const char *arguments[] = {cursor, pattern, lifetime};
    registration->references++;
    if (client_run(registration->client, SCRIPT_SWEEP, 0, 3, arguments, NULL, on_swept,
                   registration, 0) != BATON_OK) {
        registration_unref(registration); /* stale heartbeats expire by themselves */
    }
}

static void on_swept(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct registration *registration = userdata;
    struct client *client = registration->client;
    char cursor[24];
    (void)tag;
    (void)sent;

    client_enter(client);
    registration_refused(registration, REQUEST_LOCK, reply);
    if (reply && parse_cursor(cursor, reply) && registration->lease.held &&
        !registration->is_leaving) {
        sweep_from(registration, cursor);
    }
    registration_unref(registration);
    client_exit(client);
}

void heartbeats_sweep(struct registration *registration)
{
    sweep_from(registration, "0");
}
