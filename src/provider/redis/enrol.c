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
    return write_out(json_pack("{s:s,s:s,s:s,s:s,s:b,s:I,s:o,s:s}", "processId", client->id,
                               "nodeId", client->id, "identifier", client->node, "role",
                               leads ? "master" : "slave", "observes", !seat->eligible, "maxLease",
                               (json_int_t)(client->max_lease.ns / 1000000), "capabilities",
                               metadata_of(seat), "lastSeen", now));
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

/* ---- Writing it ------------------------------------------------------------------------------ */

/* Elections of which the same is said in one script. */
struct roll {
    struct client *client;
    enum registering how;
    int count;
    struct seat *seats[];
};

static void on_enrolled(struct seat *seat, enum registering how, const struct registered *found)
{
    bool is_beat = how == REGISTER_AGAIN;
    bool reads = how == REGISTER_AND_READ;

    seat_understood(seat, ERRAND_ENTRY);
    /* Notices get lost, and whoever expires while another one reads is told of by nobody. A peer of
     * the seed has no lifetime here: its leader looks whether it is silent. */
    reads = reads || (is_beat && registry_is_behind(seat, found->count));
    reads = reads || (is_beat && seat->lease.held && found->dated < found->count);
    if (!seat->is_leaving) {
        seat_contenders(seat, found->count);
    }
    if (reads && (seat->entries || found->count != 1)) { /* who is alone has nobody to read of */
        registry_read(seat);
    }
}

/* Nobody can tell which of several was at fault, so each is sent by itself. The server may be
 * another one by now, without the commands of the one that was asked. */
static void on_refused(struct roll *roll, struct seat *seat, const redisReply *reply)
{
    roll->client->lifetimes[0] = '\0';
    if (roll->count > 1) {
        enrol_write(seat, roll->how);
    } else {
        seat_misunderstood(seat, ERRAND_ENTRY, reply);
    }
}

static void on_registered(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct roll *roll = userdata;
    struct client *client = roll->client;
    struct registered found[BEATS_AT_ONCE];
    bool is_answer =
        reply && parse_registered(found, (size_t)roll->count, client->lifetimes, reply);
    (void)tag;
    (void)sent;

    client_enter(client);
    for (int i = 0; i < roll->count; i++) {
        if (is_answer) {
            on_enrolled(roll->seats[i], roll->how, &found[i]);
        } else if (reply) {
            on_refused(roll, roll->seats[i], reply);
        }
        seat_unref(roll->seats[i]);
    }
    free(roll);
    client_exit(client);
}

/* Servers of a majority, and those of a cluster, may be of different versions: each is asked. */
static bool has_one_server(const struct client *client)
{
    return client->server_count == 1 && !client->cluster;
}

static void send_roll(struct roll *roll, const char *process, char *const *slaves)
{
    enum { WORDS_SHARED = 7, WORDS_MAX = BEATS_AT_ONCE * (REGISTRY_KEYS + 1) + WORDS_SHARED };
    _Static_assert((int)WORDS_MAX <= (int)REDIS_WORDS_MAX, "they fit into one call");
    struct client *client = roll->client;
    int count = roll->count * REGISTRY_KEYS;
    char keys[BEATS_AT_ONCE][REGISTRY_KEYS][KEY_MAX];
    const char *words[WORDS_MAX];
    char channel[80];
    char lifetime[24];

    for (int i = 0; i < count; i++) {
        if (i % REGISTRY_KEYS == 0) {
            registry_keys(roll->seats[i / REGISTRY_KEYS], keys[i / REGISTRY_KEYS]);
        }
        words[i] = keys[i / REGISTRY_KEYS][i % REGISTRY_KEYS];
    }
    (void)snprintf(channel, sizeof(channel), "worker:slave:%s", client->id);
    (void)snprintf(lifetime, sizeof(lifetime), "%lld",
                   (long long)(client->process_lifetime.ns / 1000000));
    const char *shared[WORDS_SHARED] = {client->id,
                                        lifetime,
                                        channel,
                                        roll->seats[0]->lease.held ? "master" : "slave",
                                        roll->how == REGISTER_AGAIN ? "again" : "",
                                        has_one_server(client) ? client->lifetimes : "",
                                        process};
    memcpy(&words[count], shared, sizeof(shared));
    count += WORDS_SHARED;
    for (int i = 0; i < roll->count; i++) {
        words[count++] = slaves[i];
        roll->seats[i]->references++;
    }
    if (client_run(client, SCRIPT_REGISTER, roll->count * REGISTRY_KEYS, count, words, NULL,
                   on_registered, roll, 0) != BATON_OK) {
        for (int i = 0; i < roll->count; i++) {
            seat_unref(roll->seats[i]);
        }
        free(roll);
    }
}

/* All of them say the same of this process, or there is but one. */
static void write_roll(struct seat *const *seats, int count, enum registering how)
{
    struct seat *first = seats[0];
    bool leads = first->lease.held;
    struct roll *roll = malloc(sizeof(*roll) + (size_t)count * sizeof(void *));
    char *own = first->metadata ? process_json(first, leads) : NULL;
    const char *process = first->metadata ? own : process_draft(first, leads);
    char *slaves[BEATS_AT_ONCE] = {NULL};
    bool is_whole = roll && process;

    for (int i = 0; i < count && is_whole; i++) {
        const char *draft = leads || first->metadata ? "" : slave_draft(seats[i]);
        slaves[i] = first->metadata && !leads ? slave_json(first) : draft ? strdup(draft) : NULL;
        is_whole = slaves[i];
    }
    if (is_whole) {
        *roll = (struct roll){.client = first->client, .how = how, .count = count};
        for (int i = 0; i < count; i++) {
            roll->seats[i] = seats[i];
        }
        send_roll(roll, process, slaves);
    } else {
        free(roll);
    }
    for (int i = 0; i < count; i++) {
        free(slaves[i]);
    }
    free(own);
}

void enrol_write(struct seat *seat, enum registering how)
{
    if (client_is_up(seat->client) && !seat->is_leaving) {
        write_roll(&seat, 1, how);
    }
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

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
    if (seat->metadata || !has_one_server(seat->client)) {
        enrol_write(seat, REGISTER_AGAIN);
        return;
    }
    seat->references++;
    seat->client->beating[seat->client->beating_count++] = seat;
    if (seat->client->beating_count == BEATS_AT_ONCE) {
        enrol_beat_now(seat->client);
    }
}

/* Some have changed since their turn came. */
void enrol_beat_now(struct client *client)
{
    for (int kind = 0; kind < 4; kind++) {
        struct seat *alike[BEATS_AT_ONCE];
        int count = 0;
        for (int i = 0; i < client->beating_count; i++) {
            struct seat *seat = client->beating[i];
            if (!seat->is_leaving && 2 * seat->lease.held + seat->eligible == kind) {
                alike[count++] = seat;
            }
        }
        if (count > 0 && client_is_up(client)) {
            write_roll(alike, count, REGISTER_AGAIN);
        }
    }
    while (client->beating_count > 0) {
        seat_unref(client->beating[--client->beating_count]);
    }
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
    char keys[REGISTRY_KEYS][KEY_MAX];

    registry_keys(seat, keys);
    const char *words[] = {keys[0], keys[1], keys[2], keys[3], keys[4], seat->client->id};
    seat->references++;
    if (client_run(seat->client, SCRIPT_LEAVE, 5, 6, words, NULL, on_left, seat, 0) != BATON_OK) {
        seat_unref(seat);
    }
}
