/* Heartbeats of a layout in which each process has its own: a leader whose heartbeat is stale while
 * its lock is kept alive is reported, and a new leader sweeps what others left behind. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long lifetime_ms(const struct seat *seat)
{
    const struct client *client = seat->client;

    return layout_heartbeat_lifetime(client->layout, client->settings.lease).ns / 1000000;
}

/* The seed lets such a leader be set aside by force, and so has two of them: somebody still renews
 * the lock. We ask on, and get it in the moment in which it ends. */
void heartbeats_judge(struct seat *seat, const struct lock_answer *answer)
{
    char beats[LAYOUT_KEY_MAX];
    long long age = answer->beat_age_ms;
    instant now = clock_now();
    struct baton_error error;

    layout_heartbeat_prefix(seat->client->layout, seat->name, beats);
    if (!beats[0]) {
        return;
    }
    if (answer->has_beat) {
        seat->beatless_since.ns = 0;
    } else { /* a new leader's first one may be still to come */
        seat->beatless_since = seat->beatless_since.ns ? seat->beatless_since : now;
        age = instant_since(now, seat->beatless_since).ns / 1000000;
    }
    if (age >= -lifetime_ms(seat) && age <= lifetime_ms(seat)) {
        seat->told_beat = BEAT_FINE;
    } else if (age < 0 && seat->told_beat != BEAT_AHEAD) {
        seat->told_beat = BEAT_AHEAD;
        (void)error_set(
            &error, BATON_EPROTO,
            "election \"%s\": the heartbeat %s%s is %lld s ahead of the server's clock: "
            "whether its process lives cannot be told by it",
            seat->name, beats, text_of(seat->holder), -age / 1000);
        seat_error(seat, &error);
    } else if (age > 0 && seat->told_beat != BEAT_STALE) {
        seat->told_beat = BEAT_STALE;
        (void)error_set(&error, BATON_EPROTO,
                        "election \"%s\": %s keeps the lock, but gave no heartbeat for %lld s; it "
                        "is followed when the lock ends",
                        seat->name, text_of(seat->holder), age / 1000);
        seat_error(seat, &error);
    }
}

/* ---- Sweeping -------------------------------------------------------------------------------- */

/* Signs that a pattern would take for its own are escaped. */
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

static void sweep_from(struct seat *seat, const char *cursor)
{
    char beats[LAYOUT_KEY_MAX];
    char quoted[2 * LAYOUT_KEY_MAX];
    char pattern[2 * LAYOUT_KEY_MAX + 1];
    char lifetime[24];

    layout_heartbeat_prefix(seat->client->layout, seat->name, beats);
    if (!beats[0]) {
        return;
    }
    quote(beats, quoted, sizeof(quoted));
    (void)snprintf(pattern, sizeof(pattern), "%s*", quoted);
    (void)snprintf(lifetime, sizeof(lifetime), "%lld", lifetime_ms(seat));
    const char *words[] = {cursor, pattern, lifetime};
    seat->references++;
    if (client_run(seat->client, SCRIPT_SWEEP, 0, 3, words, NULL, on_swept, seat, 0) != BATON_OK) {
        seat_unref(seat); /* their lifetimes end by themselves */
    }
}

static void on_swept(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct seat *seat = userdata;
    struct client *client = seat->client;
    char cursor[24];
    (void)tag;
    (void)sent;

    client_enter(client);
    seat_refused(seat, ERRAND_LOCK, reply);
    if (reply && parse_cursor(cursor, reply) && seat->lease.held && !seat->is_leaving) {
        sweep_from(seat, cursor);
    }
    seat_unref(seat);
    client_exit(client);
}

void heartbeats_sweep(struct seat *seat)
{
    sweep_from(seat, "0");
}
