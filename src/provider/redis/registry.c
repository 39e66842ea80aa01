/* Who takes part: entries that expire, in the JSON of the seed. */
#include "provider/redis/client.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Writing --------------------------------------------------------------------------------- */

/* Times are the last that an entry has, so that those of a draft can be written over. */
enum { TIME_BYTES = 24, TIME_AT_END = TIME_BYTES + 2 };

static void put_time(char ret[TIME_BYTES + 1])
{
    struct timespec now;
    struct tm parts = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)snprintf(ret, TIME_BYTES + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                   (parts.tm_year + 1900) % 10000, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                   parts.tm_min, parts.tm_sec, (int)(now.tv_nsec / 1000000));
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

    put_time(now);
    return write_out(json_pack("{s:s,s:s,s:s,s:s,s:b,s:o,s:s}", "processId", client->id, "nodeId",
                               client->id, "identifier", client->node, "role",
                               leads ? "master" : "slave", "observes", !seat->eligible,
                               "capabilities", metadata_of(seat), "lastSeen", now));
}

static char *slave_json(const struct seat *seat)
{
    const struct client *client = seat->client;
    char now[TIME_BYTES + 1];

    put_time(now);
    return write_out(json_pack("{s:s,s:s,s:o,s:s,s:s}", "nodeId", client->id, "identifier",
                               client->node, "metadata", metadata_of(seat), "registeredAt", now,
                               "lastSeen", now));
}

/* Ten thousand elections say the same of this process, but for the time. */
static const char *process_draft(struct seat *seat, bool leads)
{
    char **draft = &seat->client->drafts.processes[leads][seat->eligible];
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = process_json(seat, leads);
    } else {
        put_time(now);
        memcpy(*draft + strlen(*draft) - TIME_AT_END, now, TIME_BYTES);
    }
    return *draft;
}

static const char *slave_draft(struct seat *seat)
{
    static const char between[] = "\",\"lastSeen\":\"";
    char **draft = &seat->client->drafts.slave;
    char now[TIME_BYTES + 1];

    if (!*draft) {
        *draft = slave_json(seat);
    } else {
        char *last = *draft + strlen(*draft) - TIME_AT_END;
        put_time(now);
        memcpy(last, now, TIME_BYTES);
        memcpy(last - strlen(between) - TIME_BYTES, now, TIME_BYTES);
    }
    return *draft;
}

void registry_forget_drafts(struct client *client)
{
    struct drafts *drafts = &client->drafts;

    for (int i = 0; i < 4; i++) {
        free(drafts->processes[i / 2][i % 2]);
    }
    free(drafts->slave);
    *drafts = (struct drafts){.slave = NULL};
}

static void key_of(const struct seat *seat, const char *part, char ret[KEY_MAX])
{
    const char *parts[] = {seat->name, ":", part, NULL};

    layout_join(ret, KEY_MAX, parts);
}

/* An answer that came needs its seat no more. */
static void done_with(struct seat *seat)
{
    struct client *client = seat->client;

    client_enter(client);
    seat_unref(seat);
    client_exit(client);
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
        if (!seat->is_leaving) {
            seat_contenders(seat, count);
        }
    }
    if (reply && reads && (seat->entries || count != 1)) { /* who is alone has nobody to read of */
        registry_read(seat);
    }
    done_with(seat);
}

static void send_entry(struct seat *seat, enum registering how, const char *process,
                       const char *slave)
{
    struct client *client = seat->client;
    char keys[6][KEY_MAX];
    char channel[80];
    char lifetime[24];

    key_of(seat, "processes", keys[0]);
    key_of(seat, "processes:expiry", keys[1]);
    key_of(seat, "channels", keys[2]);
    seat_wake(seat, keys[3]);
    key_of(seat, "slaves", keys[4]);
    key_of(seat, "master_process", keys[5]);
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

void registry_register(struct seat *seat, enum registering how)
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

void registry_begin(struct seat *seat)
{
    int64_t every_ns = beat_interval(seat->client).ns;

    /* From the first on they are spread: the registry is as large as there are elections. */
    seat->beat = instant_add(
        clock_now(),
        SPAN_NS(every_ns - (int64_t)(client_chance(seat->client) % (uint64_t)(every_ns / 2 + 1))));
}

void registry_beat(struct seat *seat)
{
    span every = beat_interval(seat->client);

    /* In the same moments as renewals, of which there are as many. */
    seat->beat = instant_add(clock_now(), every);
    seat->beat.ns -= every.ns >= SPAN_S(1).ns ? seat->beat.ns % SPAN_MS(BEAT_SLOT_MS).ns : 0;
    agenda_change(seat);
    registry_register(seat, REGISTER_AGAIN);
}

void registry_soon(struct seat *seat)
{
    seat->beat = instant_min(seat->beat, instant_add(clock_now(), SPAN_MS(SOON_MS)));
    agenda_change(seat);
}

static void on_left(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)tag;
    (void)sent;
    seat_refused(userdata, ERRAND_ENTRY, reply); /* lost or refused: the entry expires */
    done_with(userdata);
}

void registry_leave(struct seat *seat)
{
    char keys[4][KEY_MAX];
    char wake[KEY_MAX];

    seat_wake(seat, wake);
    key_of(seat, "processes", keys[0]);
    key_of(seat, "processes:expiry", keys[1]);
    key_of(seat, "channels", keys[2]);
    key_of(seat, "slaves", keys[3]);
    const char *words[] = {keys[0], keys[1], keys[2], wake, keys[3], seat->client->id};
    seat->references++;
    if (client_run(seat->client, SCRIPT_LEAVE, 5, 6, words, NULL, on_left, seat, 0) != BATON_OK) {
        seat_unref(seat);
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum { ENTRIES_MAX = 4096 }; /* others of one election that are known */

static void entry_free(struct seat *seat, struct entry *entry)
{
    text_drop(seat->client, entry->id);
    text_drop(seat->client, entry->name);
    text_drop(seat->client, entry->metadata);
    free(entry);
}

void registry_free(struct seat *seat)
{
    while (seat->entries) {
        struct entry *entry = seat->entries;
        seat->entries = entry->next;
        entry_free(seat, entry);
    }
}

static void describe(const struct seat *seat, const char *id, const struct entry *entry,
                     struct baton_member *ret);

static void tell_member(struct seat *seat, enum baton_event_type type, const struct entry *entry)
{
    struct baton_event event = {.type = type};

    describe(seat, text_of(entry->id), entry, &event.member);
    seat_tell(seat, &event);
}

/* A reading names them in the order of the one before, as a rule: who comes next is looked at
 * first. */
static struct entry *entry_after(const struct seat *seat, const struct entry *last,
                                 const struct text *id)
{
    struct entry *entry = last ? last->next : NULL;

    if (!entry || entry->id != id) {
        for (entry = seat->entries; entry && entry->id != id; entry = entry->next) {
        }
    }
    return entry;
}

/* The place of the last one, or of NULL. */
static struct entry *add(struct seat *seat, struct text *id)
{
    struct entry **at = &seat->entries;
    size_t count = 0;
    struct entry *entry = calloc(1, sizeof(*entry));

    for (; *at; at = &(*at)->next) {
        count++;
    }
    if (!entry || count >= ENTRIES_MAX) {
        free(entry);
        text_drop(seat->client, id);
        return NULL; /* it is found at the next reading, if there is room then */
    }
    entry->id = id;
    *at = entry;
    return entry;
}

/* Names what another process wrote and no process of ours would have, once. */
static void tell_fault(struct seat *seat, const struct parsed_member *member)
{
    static const char *const faults[] = {
        [MEMBER_NAMELESS] = "is no process's id",
        [MEMBER_TOO_LONG] = "says more of itself than is read",
        [MEMBER_NO_JSON] = "is no JSON object",
        [MEMBER_ODD] = "has a field of another type than it should",
        [MEMBER_AHEAD] = "was last seen in the future: a clock is wrong",
    };
    struct baton_error error;

    (void)error_set(&error, BATON_EPROTO,
                    "election \"%s\": the entry \"%s\" in %s:processes %s; HDEL removes it",
                    seat->name, member->id, seat->name, faults[member->fault]);
    seat_error(seat, &error);
}

static void fill_entry(struct seat *seat, struct entry *entry, const struct parsed_member *member)
{
    struct client *client = seat->client;
    const char *metadata = member->metadata;

    text_move(client, &entry->name, text_get(client, member->name, strlen(member->name)));
    text_move(client, &entry->metadata,
              metadata ? text_get(client, metadata, strlen(metadata)) : NULL);
    entry->is_there = true;
    entry->is_cordoned = member->is_cordoned;
    if (member->fault != entry->fault && member->fault != MEMBER_FINE) {
        tell_fault(seat, member);
    }
    entry->fault = member->fault;
}

/* The entry's place, or that of the last one if it has none. */
static struct entry *take_entry(struct seat *seat, struct entry *last,
                                const struct parsed_member *member)
{
    struct text *text = text_get(seat->client, member->id, strlen(member->id));
    struct entry *entry;

    if (!text) {
        return last;
    }
    if (text == seat->client->self) {
        seat->is_listed = true;
        text_drop(seat->client, text);
        return last;
    }
    entry = entry_after(seat, last, text);
    if (entry) {
        text_drop(seat->client, text);
        fill_entry(seat, entry, member);
        return entry;
    }
    entry = add(seat, text);
    if (!entry) {
        return last;
    }
    fill_entry(seat, entry, member);
    tell_member(seat, BATON_EVENT_MEMBER_JOINED, entry);
    return entry;
}

enum { AHEAD_MS = 24 * 60 * 60 * 1000 }; /* a clock may be wrong by an hour or so, or a zone */

static void take_entries(struct seat *seat, const redisReply *list)
{
    struct parsed_member member;
    struct entry *last = NULL;
    bool is_nameless = false;
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        parse_member(&member, list->element[i], list->element[i + 1],
                     (int64_t)now.tv_sec * 1000 + AHEAD_MS);
        if (member.fault != MEMBER_NAMELESS) {
            last = take_entry(seat, last, &member);
        } else {
            if (!seat->knows_nameless && !is_nameless) {
                tell_fault(seat, &member);
            }
            is_nameless = true;
        }
        parsed_member_fini(&member);
    }
    seat->knows_nameless = is_nameless;
}

static void take_list(struct seat *seat, const redisReply *list)
{
    seat->is_listed = false;
    for (struct entry *entry = seat->entries; entry; entry = entry->next) {
        entry->is_there = false;
    }
    take_entries(seat, list);
    for (struct entry **at = &seat->entries; *at;) {
        struct entry *entry = *at;
        if (entry->is_there) {
            at = &entry->next;
        } else {
            *at = entry->next;
            tell_member(seat, BATON_EVENT_MEMBER_LEFT, entry);
            entry_free(seat, entry);
        }
    }
}

static void on_members(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct seat *seat = userdata;
    (void)tag;
    (void)sent;

    seat->is_reading = false;
    if (!reply || !parse_members(reply)) {
        seat_misunderstood(seat, ERRAND_LIST, reply);
    } else if (!seat->is_stopped) {
        seat_understood(seat, ERRAND_LIST);
        take_list(seat, reply);
    }
    if (seat->reads_again) {
        registry_read(seat);
    }
    done_with(seat);
}

static int read_with(struct seat *seat, redis_reply_cb on_reply, void *userdata)
{
    char keys[4][KEY_MAX];

    key_of(seat, "processes", keys[0]);
    key_of(seat, "processes:expiry", keys[1]);
    key_of(seat, "channels", keys[2]);
    key_of(seat, "slaves", keys[3]);
    const char *words[] = {keys[0], keys[1], keys[2], keys[3]};
    return client_run(seat->client, SCRIPT_MEMBERS, 4, 4, words, NULL, on_reply, userdata, 0);
}

/* One reading at a time; what changes meanwhile is read by the next. */
void registry_read(struct seat *seat)
{
    seat->reads_again = seat->is_reading;
    if (seat->is_reading || seat->is_leaving) {
        return;
    }
    seat->references++;
    seat->is_reading = read_with(seat, on_members, seat) == BATON_OK;
    if (!seat->is_reading) {
        seat_unref(seat);
    }
}

const struct entry *registry_find(const struct seat *seat, const char *id_or_name)
{
    const struct entry *entry = seat->entries;

    while (entry && strcmp(text_of(entry->id), id_or_name) != 0 &&
           strcmp(text_of(entry->name), id_or_name) != 0) {
        entry = entry->next;
    }
    return entry;
}

static void describe(const struct seat *seat, const char *id, const struct entry *entry,
                     struct baton_member *ret)
{
    const struct client *client = seat->client;

    *ret = (struct baton_member){.kind = BATON_MEMBER_VOTER, .weight = 1};
    if (!id[0]) {
        return;
    }
    (void)snprintf(ret->id, sizeof(ret->id), "%s", id);
    ret->is_self = strcmp(id, client->id) == 0;
    (void)snprintf(ret->name, sizeof(ret->name), "%s",
                   ret->is_self ? client->node
                   : entry      ? text_of(entry->name)
                                : id);
    (void)snprintf(ret->address, sizeof(ret->address), "worker:slave:%s", id);
    ret->role = strcmp(id, text_of(seat->holder)) == 0 ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER;
    ret->is_alive = ret->is_self || entry;
    ret->is_cordoned = ret->is_self ? !seat->eligible : entry && entry->is_cordoned;
    ret->metadata = ret->is_self               ? seat->metadata
                    : entry && entry->metadata ? text_of(entry->metadata)
                                               : NULL;
}

void registry_describe(const struct seat *seat, const char *id, struct baton_member *ret)
{
    describe(seat, id, id[0] ? registry_find(seat, id) : NULL, ret);
}

/* ---- The list of members, read anew ---------------------------------------------------------- */

struct question {
    struct seat *seat;
    provider_members_cb done;
    void *userdata;
};

static void answer(const struct question *question)
{
    struct seat *seat = question->seat;
    size_t count = seat->is_listed;
    struct baton_member *members;
    size_t used = 0;

    for (const struct entry *entry = seat->entries; entry; entry = entry->next) {
        count++;
    }
    members = calloc(count + 1, sizeof(*members));
    if (!members) {
        question->done(question->userdata, BATON_ENOMEM, NULL, 0);
        return;
    }
    if (seat->is_listed) {
        describe(seat, seat->client->id, NULL, &members[used++]);
    }
    for (const struct entry *entry = seat->entries; entry; entry = entry->next) {
        describe(seat, text_of(entry->id), entry, &members[used++]);
    }
    question->done(question->userdata, BATON_OK, members, used);
    free(members);
}

static void on_asked(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct question *question = userdata;
    struct seat *seat = question->seat;
    (void)tag;
    (void)sent;

    if (reply && parse_members(reply)) {
        take_list(seat, reply);
        answer(question);
    } else {
        question->done(question->userdata, client_refused(seat->client, reply), NULL, 0);
    }
    free(question);
    done_with(seat);
}

int registry_members(struct provider_election *election, provider_members_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct seat *seat = (struct seat *)election;
    struct question *question = malloc(sizeof(*question));

    if (!question) {
        return error_set(reterr, BATON_ENOMEM, "members: out of memory");
    }
    *question = (struct question){.seat = seat, .done = done, .userdata = userdata};
    if (read_with(seat, on_asked, question) != BATON_OK) {
        char where[REDIS_HOST_MAX];
        free(question);
        redis_address_name(&seat->client->address, where, sizeof(where));
        return error_set(reterr, BATON_EUNAVAILABLE, "members: Redis at %s cannot be reached now",
                         where);
    }
    seat->references++;
    return BATON_OK;
}
