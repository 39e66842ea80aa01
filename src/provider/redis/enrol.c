/* This process's entry in the registry, in the seed's JSON: it expires unless it is renewed. */
#include "provider/redis/client.h"

#include "base/json_load.h"
#include "base/json_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The times are an entry's last fields, so that those of a draft can be overwritten. */
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

static json_t *metadata_of(const struct registration *registration)
{
    json_t *metadata =
        registration->metadata ? json_load_text(registration->metadata, 0, NULL) : NULL;

    return json_is_object(metadata) ? metadata : json_object();
}

/* NULL when out of memory. */
static char *write_out(json_t *object)
{
    char *text = object ? json_text(object, JSON_COMPACT) : NULL;

    json_decref(object);
    return text;
}

static char *process_json(const struct registration *registration, bool leads)
{
    const struct client *client = registration->client;
    char now[TIME_BYTES + 1];

    put_time(now, wall_ms());
    return write_out(json_pack("{s:s,s:s,s:s,s:s,s:b,s:I,s:o,s:s}", "processId", client->id,
                               "nodeId", client->id, "identifier", client->node, "role",
                               leads ? "master" : "slave", "observes", !registration->eligible,
                               "maxLease", (json_int_t)(client->max_lease.ns / 1000000),
                               "capabilities", metadata_of(registration), "lastSeen", now));
}

static char *slave_json(const struct registration *registration)
{
    const struct client *client = registration->client;
    char registered[TIME_BYTES + 1];
    char now[TIME_BYTES + 1];

    put_time(registered, registration->registered_ms);
    put_time(now, wall_ms());
    return write_out(json_pack("{s:s,s:s,s:o,s:s,s:s}", "nodeId", client->id, "identifier",
                               client->node, "metadata", metadata_of(registration), "registeredAt",
                               registered, "lastSeen", now));
}

/* Ten thousand elections share one entry of this process, except for its time. */
static const char *process_draft(struct registration *registration, bool leads)
{
    char **draft = &registration->client->drafts.processes[leads][registration->eligible];
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = process_json(registration, leads);
    } else {
        put_time(now, wall_ms());
        memcpy(*draft + strlen(*draft) - TIME_AT_END, now, TIME_BYTES);
    }
    return *draft;
}

static const char *slave_draft(struct registration *registration)
{
    static const char between[] = "\",\"lastSeen\":\"";
    char **draft = &registration->client->drafts.slave;
    char registered[TIME_BYTES + 1];
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = slave_json(registration);
    } else {
        char *last = *draft + strlen(*draft) - TIME_AT_END;
        put_time(registered, registration->registered_ms);
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

/* Elections whose entries one script writes. */
struct roll {
    struct client *client;
    enum registering how;
    int count;
    struct registration *registrations[];
};

static void on_enrolled(struct registration *registration, enum registering how,
                        const struct registered *found)
{
    bool is_beat = how == REGISTER_AGAIN;
    bool reads = how == REGISTER_AND_READ;

    registration_understood(registration, REQUEST_ENTRY);
    /* Notices get lost, and expiry during another member's read sends no notice. A peer of the seed
     * has no lifetime here: our leader checks whether it is silent. */
    reads = reads || (is_beat && registry_is_behind(registration, found->count));
    reads = reads || (is_beat && registration->lease.held && found->dated < found->count);
    if (!registration->is_leaving) {
        registration_contenders(registration, found->count);
    }
    if (reads && (registration->entries ||
                  found->count != 1)) { /* skip the read if we are the only member */
        registry_read(registration);
    }
}

/* A shared script does not show which of its elections failed, so each is sent by itself. The
 * server may be another one by now, without the commands of the earlier one. */
static void on_refused(struct roll *roll, struct registration *registration,
                       const redisReply *reply)
{
    roll->client->lifetimes[0] = '\0';
    if (roll->count > 1) {
        enrol_write(registration, roll->how);
    } else {
        registration_misunderstood(registration, REQUEST_ENTRY, reply);
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
            on_enrolled(roll->registrations[i], roll->how, &found[i]);
        } else if (reply) {
            on_refused(roll, roll->registrations[i], reply);
        }
        registration_unref(roll->registrations[i]);
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
    enum {
        ARGUMENTS_SHARED = 7,
        ARGUMENTS_MAX = BEATS_AT_ONCE * (REGISTRY_KEYS + 1) + ARGUMENTS_SHARED
    };
    _Static_assert((int)ARGUMENTS_MAX <= (int)REDIS_ARGUMENTS_MAX, "they fit into one call");
    struct client *client = roll->client;
    int count = roll->count * REGISTRY_KEYS;
    char keys[BEATS_AT_ONCE][REGISTRY_KEYS][KEY_MAX];
    const char *arguments[ARGUMENTS_MAX];
    char channel[80];
    char lifetime[24];

    for (int i = 0; i < count; i++) {
        if (i % REGISTRY_KEYS == 0) {
            registry_keys(roll->registrations[i / REGISTRY_KEYS], keys[i / REGISTRY_KEYS]);
        }
        arguments[i] = keys[i / REGISTRY_KEYS][i % REGISTRY_KEYS];
    }
    (void)snprintf(channel, sizeof(channel), "worker:slave:%s", client->id);
    (void)snprintf(lifetime, sizeof(lifetime), "%lld",
                   (long long)(client->process_lifetime.ns / 1000000));
    const char *shared[ARGUMENTS_SHARED] = {client->id,
                                            lifetime,
                                            channel,
                                            roll->registrations[0]->lease.held ? "master" : "slave",
                                            roll->how == REGISTER_AGAIN ? "again" : "",
                                            has_one_server(client) ? client->lifetimes : "",
                                            process};
    memcpy(&arguments[count], shared, sizeof(shared));
    count += ARGUMENTS_SHARED;
    for (int i = 0; i < roll->count; i++) {
        arguments[count++] = slaves[i];
        roll->registrations[i]->references++;
    }
    if (client_run(client, SCRIPT_REGISTER, roll->count * REGISTRY_KEYS, count, arguments, NULL,
                   on_registered, roll, 0) != BATON_OK) {
        for (int i = 0; i < roll->count; i++) {
            registration_unref(roll->registrations[i]);
        }
        free(roll);
    }
}

/* All of them have the same entry of this process, or there is only one. */
static void write_roll(struct registration *const *registrations, int count, enum registering how)
{
    struct registration *first = registrations[0];
    bool leads = first->lease.held;
    struct roll *roll = malloc(sizeof(*roll) + (size_t)count * sizeof(void *));
    char *own = first->metadata ? process_json(first, leads) : NULL;
    const char *process = first->metadata ? own : process_draft(first, leads);
    char *slaves[BEATS_AT_ONCE] = {NULL};
    bool is_whole = roll && process;

    for (int i = 0; i < count && is_whole; i++) {
        const char *draft = leads || first->metadata ? "" : slave_draft(registrations[i]);
        slaves[i] = first->metadata && !leads ? slave_json(first) : draft ? strdup(draft) : NULL;
        is_whole = slaves[i];
    }
    if (is_whole) {
        *roll = (struct roll){.client = first->client, .how = how, .count = count};
        for (int i = 0; i < count; i++) {
            roll->registrations[i] = registrations[i];
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

void enrol_write(struct registration *registration, enum registering how)
{
    if (client_is_up(registration->client) && !registration->is_leaving) {
        write_roll(&registration, 1, how);
    }
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

/* As often as the lock is renewed, but not every few milliseconds for an entry that lives 45 s. A
 * program of the seed presumes a process dead after a third of that without a heartbeat. */
enum { BEATS_A_LIFETIME = 9, BEAT_SLOT_MS = 8, SOON_MS = 10 };

static span beat_interval(const struct client *client)
{
    int64_t every_ns = client->process_lifetime.ns / BEATS_A_LIFETIME;

    return every_ns > client->settings.renew_interval.ns ? SPAN_NS(every_ns)
                                                         : client->settings.renew_interval;
}

void enrol_begin(struct registration *registration)
{
    int64_t every_ns = beat_interval(registration->client).ns;

    registration->registered_ms = wall_ms();
    /* Spreads the first heartbeats too: the registry is as large as the number of elections. */
    registration->beat =
        instant_add(clock_now(), SPAN_NS(every_ns - (int64_t)(client_chance(registration->client) %
                                                              (uint64_t)(every_ns / 2 + 1))));
}

void enrol_beat(struct registration *registration)
{
    span every = beat_interval(registration->client);

    /* At the same moments as renewals, which are as many. */
    registration->beat = instant_add(clock_now(), every);
    registration->beat.ns -=
        every.ns >= SPAN_S(1).ns ? registration->beat.ns % SPAN_MS(BEAT_SLOT_MS).ns : 0;
    agenda_change(registration);
    if (registration->metadata || !has_one_server(registration->client)) {
        enrol_write(registration, REGISTER_AGAIN);
        return;
    }
    registration->references++;
    registration->client->beating[registration->client->beating_count++] = registration;
    if (registration->client->beating_count == BEATS_AT_ONCE) {
        enrol_beat_now(registration->client);
    }
}

/* Some registrations have changed since they were queued. */
void enrol_beat_now(struct client *client)
{
    for (int kind = 0; kind < 4; kind++) {
        struct registration *alike[BEATS_AT_ONCE];
        int count = 0;
        for (int i = 0; i < client->beating_count; i++) {
            struct registration *registration = client->beating[i];
            if (!registration->is_leaving &&
                2 * registration->lease.held + registration->eligible == kind) {
                alike[count++] = registration;
            }
        }
        if (count > 0 && client_is_up(client)) {
            write_roll(alike, count, REGISTER_AGAIN);
        }
    }
    while (client->beating_count > 0) {
        registration_unref(client->beating[--client->beating_count]);
    }
}

void enrol_soon(struct registration *registration)
{
    registration->beat =
        instant_min(registration->beat, instant_add(clock_now(), SPAN_MS(SOON_MS)));
    agenda_change(registration);
}

static void on_left(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)tag;
    (void)sent;
    registration_refused(userdata, REQUEST_ENTRY, reply); /* lost or refused: the entry expires */
    registration_answered(userdata);
}

void enrol_leave(struct registration *registration)
{
    char keys[REGISTRY_KEYS][KEY_MAX];

    registry_keys(registration, keys);
    const char *arguments[] = {keys[0], keys[1], keys[2],
                               keys[3], keys[4], registration->client->id};
    registration->references++;
    if (client_run(registration->client, SCRIPT_LEAVE, 5, 6, arguments, NULL, on_left, registration,
                   0) != BATON_OK) {
        registration_unref(registration);
    }
}
