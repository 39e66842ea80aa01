/* This process's own entry, in the JSON of the seed: it expires, and is written anew until then. */
#include "provider/redis/client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Times are the last that an entry has, so that those of a draft can be written over. */
enum { TIME_BYTES = 24, TIME_AT_END = TIME_BYTES + 2 };

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put_time(char ret[TIME_BYTES + 1], int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts = {0};

    (void)gmtime_r(&seconds, &parts);
    (void)snprintf(ret, TIME_BYTES + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                   (parts.tm_year + 1900) % 10000, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                   parts.tm_min, parts.tm_sec, (int)(unix_ms % 1000));
}

static json_t *metadata_of(const struct seat *seat)
{
    json_t *metadata = seat->metadata ? json_loads(seat->metadata, 0, NULL) : NULL;

    return json_is_object(metadata) ? metadata : json_object();
}

/* NULL when out of memory. */
static char *write_out(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object);
    return text;
}

static char *process_json(const struct seat *seat, bool leads)
{
    const struct client *client = seat->client;
    char now[TIME_BYTES + 1];

    put_time(now, wall_ms());
    return write_out(json_pack("{s:s,s:s,s:s,s:s,s:b,s:o,s:s}", "processId", client->id, "nodeId",
                               client->id, "identifier", client->node, "role",
                               leads ? "master" : "slave", "observes", !seat->eligible,
                               "capabilities", metadata_of(seat), "lastSeen", now));
}

static char *slave_json(const struct seat *seat)
{
    const struct client *client = seat->client;
    char registered[TIME_BYTES + 1];
    char now[TIME_BYTES + 1];

    put_time(registered, seat->registered_ms);
    put_time(now, wall_ms());
    return write_out(json_pack("{s:s,s:s,s:o,s:s,s:s}", "nodeId", client->id, "identifier",
                               client->node, "metadata", metadata_of(seat), "registeredAt",
                               registered, "lastSeen", now));
}

/* Ten thousand elections say the same of this process, but for the time. */
static const char *process_draft(struct seat *seat, bool leads)
{
    char **draft = &seat->client->drafts.processes[leads][seat->eligible];
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = process_json(seat, leads);
    } else {
        put_time(now, wall_ms());
        memcpy(*draft + strlen(*draft) - TIME_AT_END, now, TIME_BYTES);
    }
    return *draft;
}

static const char *slave_draft(struct seat *seat)
{
    static const char between[] = "\",\"lastSeen\":\"";
    char **draft = &seat->client->drafts.slave;
    char registered[TIME_BYTES + 1];
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = slave_json(seat);
    } else {
        char *last = *draft + strlen(*draft) - TIME_AT_END;
        put_time(registered, seat->registered_ms);
        put_time(now, wall_ms());
        memcpy(last, now, TIME_BYTES);
        memcpy(last - strlen(between) - TIME_BYTES, registered, TIME_BYTES);
    }
    return *draft;
}

void enrol_forget_drafts(struct client *client)
{
    struct drafts *drafts = &client->drafts;

    for (int i = 0; i < 4; i++) {
        free(drafts->processes[i / 2][i % 2]);
    }
    free(drafts->slave);
    *drafts = (struct drafts){.slave = NULL};
}

static void on_registered(void *userdata, uint64_t how, const redisReply *reply, instant sent)
{
    struct seat *seat = userdata;
    bool reads = how == REGISTER_AND_READ || (how == REGISTER_AGAIN && seat->lease.held);
    uint32_t count = 0; /* not known */
    (void)sent;

    if (!reply || !parse_registered(&count, seat->client->lifetimes, reply)) {
        seat_misunderstood(seat, ERRAND_ENTRY, reply);
    } else {
        seat_understood(seat, ERRAND_ENTRY);
        /* Notices get lost, and whoever expires while another one reads is told of by nobody. */
        reads = reads || (how == REGISTER_AGAIN && registry_is_behind(seat, count));
        if (!seat->is_leaving) {
            seat_contenders(seat, count);
        }
    }
    if (reply && reads && (seat->entries || count != 1)) { /* who is alone has nobody to read of */
        registry_read(seat);
    }
    seat_answered(seat);
}

static void send_entry(struct seat *seat, enum registering how, const char *process,
                       const char *slave)
{
    struct client *client = seat->client;
    char keys[6][KEY_MAX];
    char channel[80];
    char lifetime[24];

    registry_key(seat, "processes", keys[0]);
    registry_key(seat, "processes:expiry", keys[1]);
    registry_key(seat, "channels", keys[2]);
    seat_wake(seat, keys[3]);
    registry_key(seat, "slaves", keys[4]);
    registry_key(seat, "master_process", keys[5]);
    (void)snprintf(channel, sizeof(channel), "worker:slave:%s", client->id);
    (void)snprintf(lifetime, sizeof(lifetime), "%lld",
                   (long long)(client->process_lifetime.ns / 1000000));
    const char *words[] = {keys[0],
                           keys[1],
                           keys[2],
                           keys[3],
                           keys[4],
                           keys[5],
                           client->id,
                           process,
                           lifetime,
                           channel,
                           seat->lease.held ? "master" : "slave",
                           slave,
                           how == REGISTER_AGAIN ? "again" : ""};
    seat->references++;
    if (client_run(client, SCRIPT_REGISTER, 6, 13, words, NULL, on_registered, seat,
                   (uint64_t)how) != BATON_OK) {
        seat_unref(seat);
    }
}

void enrol_write(struct seat *seat, enum registering how)
{
    bool leads = seat->lease.held;
    char *process = NULL;
    char *slave = NULL;
    const char *texts[2] = {NULL, ""};

    if (!client_is_up(seat->client) || seat->is_leaving) {
        return;
    }
    if (seat->metadata) {
        texts[0] = process = process_json(seat, leads);
        texts[1] = leads ? "" : (slave = slave_json(seat));
    } else {
        texts[0] = process_draft(seat, leads);
        texts[1] = leads ? "" : slave_draft(seat);
    }
    if (texts[0] && texts[1]) {
        send_entry(seat, how, texts[0], texts[1]);
    }
    free(process);
    free(slave);
}

/* As often as the lock is renewed; but where that is a matter of milliseconds, an entry that lives
 * for 45 s need not follow. The seed takes who is silent for a third of that for gone. */
enum { BEATS_A_LIFETIME = 9, BEAT_SLOT_MS = 8, SOON_MS = 10 };

static span beat_interval(const struct client *client)
{
    int64_t every_ns = client->process_lifetime.ns / BEATS_A_LIFETIME;

    return every_ns > client->settings.renew_interval.ns ? SPAN_NS(every_ns)
                                                         : client->settings.renew_interval;
}

void enrol_begin(struct seat *seat)
{
    int64_t every_ns = beat_interval(seat->client).ns;

    seat->registered_ms = wall_ms();
    /* From the first on they are spread: the registry is as large as there are elections. */
    seat->beat = instant_add(
        clock_now(),
        SPAN_NS(every_ns - (int64_t)(client_chance(seat->client) % (uint64_t)(every_ns / 2 + 1))));
}

void enrol_beat(struct seat *seat)
{
    span every = beat_interval(seat->client);

    /* In the same moments as renewals, of which there are as many. */
    seat->beat = instant_add(clock_now(), every);
    seat->beat.ns -= every.ns >= SPAN_S(1).ns ? seat->beat.ns % SPAN_MS(BEAT_SLOT_MS).ns : 0;
    agenda_change(seat);
    enrol_write(seat, REGISTER_AGAIN);
}

void enrol_soon(struct seat *seat)
{
    seat->beat = instant_min(seat->beat, instant_add(clock_now(), SPAN_MS(SOON_MS)));
    agenda_change(seat);
}

static void on_left(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)tag;
    (void)sent;
    seat_refused(userdata, ERRAND_ENTRY, reply); /* lost or refused: the entry expires */
    seat_answered(userdata);
}

void enrol_leave(struct seat *seat)
{
    char keys[4][KEY_MAX];
    char wake[KEY_MAX];

    seat_wake(seat, wake);
    registry_key(seat, "processes", keys[0]);
    registry_key(seat, "processes:expiry", keys[1]);
    registry_key(seat, "channels", keys[2]);
    registry_key(seat, "slaves", keys[3]);
    const char *words[] = {keys[0], keys[1], keys[2], wake, keys[3], seat->client->id};
    seat->references++;
    if (client_run(seat->client, SCRIPT_LEAVE, 5, 6, words, NULL, on_left, seat, 0) != BATON_OK) {
        seat_unref(seat);
    }
}
