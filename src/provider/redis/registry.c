/* The other members: their entries, as they were last read. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTRIES_MAX = 4096 }; /* other processes of one election that we keep */

void registry_keys(const struct registration *registration, char ret[REGISTRY_KEYS][KEY_MAX])
{
    static const char *const keys[REGISTRY_KEYS] = {
        ":processes", ":processes:expiry", ":channels", WAKE, ":slaves", ":master_process"};

    for (int i = 0; i < REGISTRY_KEYS; i++) {
        const char *parts[] = {registration->name, keys[i], NULL};
        layout_join(ret[i], KEY_MAX, parts);
    }
}

static void entry_free(struct registration *registration, struct entry *entry)
{
    text_drop(registration->client, entry->id);
    text_drop(registration->client, entry->name);
    text_drop(registration->client, entry->metadata);
    free(entry);
}

void registry_free(struct registration *registration)
{
    while (registration->entries) {
        struct entry *entry = registration->entries;
        registration->entries = entry->next;
        entry_free(registration, entry);
    }
}

static void describe(const struct registration *registration, const char *id,
                     const struct entry *entry, struct baton_member *ret);

static void report_member(struct registration *registration, enum baton_event_type type,
                          const struct entry *entry)
{
    struct baton_event event = {.type = type};

    describe(registration, text_of(entry->id), entry, &event.member);
    registration_deliver(registration, &event);
}

/* As a rule a reading has the order of the one before: the search begins at the next entry. */
static struct entry *entry_after(const struct registration *registration, const struct entry *last,
                                 const struct text *id)
{
    struct entry *entry = last ? last->next : NULL;

    if (!entry || entry->id != id) {
        for (entry = registration->entries; entry && entry->id != id; entry = entry->next) {
        }
    }
    return entry;
}

/* Appends an entry; returns it, or NULL. */
static struct entry *add(struct registration *registration, struct text *id)
{
    struct entry **at = &registration->entries;
    size_t count = 0;
    struct entry *entry = calloc(1, sizeof(*entry));

    for (; *at; at = &(*at)->next) {
        count++;
    }
    if (!entry || count >= ENTRIES_MAX) {
        free(entry);
        text_drop(registration->client, id);
        return NULL; /* the next read may have room for it */
    }
    entry->id = id;
    *at = entry;
    return entry;
}

/* Reports an invalid entry of another process, once. */
static void report_fault(struct registration *registration, const struct parsed_member *member)
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
                    registration->name, member->id, registration->name, faults[member->fault]);
    registration_error(registration, &error);
}

static void fill_entry(struct registration *registration, struct entry *entry,
                       const struct parsed_member *member)
{
    struct client *client = registration->client;
    const char *metadata = member->metadata;
    bool is_known = member->max_lease.ns / 1000000 == entry->max_lease_ms ||
                    (entry->id == registration->holder && registration->knows_difference);

    text_move(client, &entry->name, text_get(client, member->name, strlen(member->name)));
    text_move(client, &entry->metadata,
              metadata ? text_get(client, metadata, strlen(metadata)) : NULL);
    entry->is_there = true;
    entry->is_cordoned = member->is_cordoned;
    lock_check_max_lease(registration, "member", member->id, member->max_lease, is_known);
    entry->max_lease_ms = (uint32_t)(member->max_lease.ns / 1000000);
    if (member->fault != entry->fault && member->fault != MEMBER_FINE) {
        report_fault(registration, member);
    }
    entry->fault = member->fault;
}

/* ---- Peers that know the seed alone ---------------------------------------------------------- */

static void on_forgotten(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)tag;
    (void)sent;
    registration_refused(userdata, REQUEST_LIST, reply); /* the next read retries */
    registration_answered(userdata);
}

static void forget(struct registration *registration, const redisReply *id, const redisReply *json)
{
    char keys[REGISTRY_KEYS][KEY_MAX];

    registry_keys(registration, keys);
    const char *arguments[] = {keys[0], keys[1], keys[2], keys[3], keys[4], id->str, json->str};
    registration->references++;
    if (client_run(registration->client, SCRIPT_FORGET, 5, 7, arguments, NULL, on_forgotten,
                   registration, 0) != BATON_OK) {
        registration_unref(registration);
    }
}

/* Entries of the seed's programs have no lifetime if the server has none for fields, and the seed's
 * leader removes silent ones. Clocks may be wrong: an entry is silent if it has not changed for a
 * lifetime by our clock. */
static bool is_silent(const struct registration *registration, struct entry *entry, int64_t seen_ms,
                      instant now)
{
    if (seen_ms != entry->seen_ms || entry->seen.ns == 0) {
        entry->seen_ms = seen_ms;
        entry->seen = now;
    }
    return seen_ms > 0 && registration->lease.held &&
           !instant_before(now, instant_add(entry->seen, registration->client->process_lifetime));
}

/* ---- What was read --------------------------------------------------------------------------- */

/* Stores an entry; returns it, or `last` if it was not stored. */
static struct entry *take_entry(struct registration *registration, struct entry *last,
                                const struct parsed_member *member)
{
    struct text *text = text_get(registration->client, member->id, strlen(member->id));
    struct entry *entry;

    if (!text) {
        return last;
    }
    if (text == registration->client->self) {
        registration->is_listed = true;
        text_drop(registration->client, text);
        return last;
    }
    entry = entry_after(registration, last, text);
    if (entry) {
        text_drop(registration->client, text);
        fill_entry(registration, entry, member);
        return entry;
    }
    entry = add(registration, text);
    if (!entry) {
        return last;
    }
    fill_entry(registration, entry, member);
    report_member(registration, BATON_EVENT_MEMBER_JOINED, entry);
    return entry;
}

enum { AHEAD_MS = 24 * 60 * 60 * 1000 }; /* a clock may be wrong by a time zone */

static void take_entries(struct registration *registration, const redisReply *list)
{
    struct parsed_member member;
    struct entry *last = NULL;
    bool is_nameless = false;
    instant read = clock_now();
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        parse_member(&member, list->element[i], list->element[i + 1],
                     (int64_t)now.tv_sec * 1000 + AHEAD_MS);
        if (member.fault != MEMBER_NAMELESS) {
            last = take_entry(registration, last, &member);
            if (last && strcmp(text_of(last->id), member.id) == 0 &&
                is_silent(registration, last, member.seen_ms, read)) {
                forget(registration, list->element[i], list->element[i + 1]);
            }
        } else {
            if (!registration->knows_nameless && !is_nameless) {
                report_fault(registration, &member);
            }
            is_nameless = true;
        }
        parsed_member_fini(&member);
    }
    registration->knows_nameless = is_nameless;
}

static void take_list(struct registration *registration, const redisReply *list)
{
    registration->is_listed = false;
    for (struct entry *entry = registration->entries; entry; entry = entry->next) {
        entry->is_there = false;
    }
    take_entries(registration, list);
    for (struct entry **at = &registration->entries; *at;) {
        struct entry *entry = *at;
        if (entry->is_there) {
            at = &entry->next;
        } else {
            *at = entry->next;
            report_member(registration, BATON_EVENT_MEMBER_LEFT, entry);
            entry_free(registration, entry);
        }
    }
    registration_report_leader(registration);
}

static void on_members(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct registration *registration = userdata;
    (void)tag;
    (void)sent;

    registration->is_reading = false;
    if (!reply || !parse_members(reply)) {
        registration_misunderstood(registration, REQUEST_LIST, reply);
    } else if (!registration->is_stopped) {
        registration_understood(registration, REQUEST_LIST);
        take_list(registration, reply);
    }
    if (registration->reads_again) {
        registry_read(registration);
    }
    registration_answered(registration);
}

static int read_with(struct registration *registration, redis_reply_cb on_reply, void *userdata)
{
    char keys[REGISTRY_KEYS][KEY_MAX];

    registry_keys(registration, keys);
    const char *arguments[] = {keys[0], keys[1], keys[2], keys[3], keys[4]};
    return client_run(registration->client, SCRIPT_MEMBERS, 5, 5, arguments, NULL, on_reply,
                      userdata, 0);
}

/* One read at a time: the next one covers later changes. */
void registry_read(struct registration *registration)
{
    registration->reads_again = registration->is_reading;
    if (registration->is_reading || registration->is_leaving) {
        return;
    }
    registration->references++;
    registration->is_reading = read_with(registration, on_members, registration) == BATON_OK;
    if (!registration->is_reading) {
        registration_unref(registration);
    }
}

const struct entry *registry_find(const struct registration *registration, const char *id_or_name)
{
    const struct entry *entry = registration->entries;

    while (entry && strcmp(text_of(entry->id), id_or_name) != 0 &&
           strcmp(text_of(entry->name), id_or_name) != 0) {
        entry = entry->next;
    }
    return entry;
}

bool registry_is_behind(const struct registration *registration, uint32_t count)
{
    const char *holder = text_of(registration->holder);
    bool is_known = !holder[0] || registration->holder == registration->client->self;
    uint32_t known = 1;

    for (const struct entry *entry = registration->entries; entry; entry = entry->next) {
        is_known = is_known || entry->id == registration->holder;
        known++;
    }
    return !is_known || known != count;
}

static void describe(const struct registration *registration, const char *id,
                     const struct entry *entry, struct baton_member *ret)
{
    const struct client *client = registration->client;

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
    ret->role =
        strcmp(id, text_of(registration->holder)) == 0 ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER;
    ret->is_alive = ret->is_self || entry;
    ret->is_cordoned = ret->is_self ? !registration->eligible : entry && entry->is_cordoned;
    ret->metadata = ret->is_self               ? registration->metadata
                    : entry && entry->metadata ? text_of(entry->metadata)
                                               : NULL;
}

void registry_describe(const struct registration *registration, const char *id,
                       struct baton_member *ret)
{
    describe(registration, id, id[0] ? registry_find(registration, id) : NULL, ret);
}

/* ---- The list of members, read anew ---------------------------------------------------------- */

struct question {
    struct registration *registration;
    provider_members_cb done;
    void *userdata;
};

static void answer(const struct question *question)
{
    struct registration *registration = question->registration;
    size_t count = registration->is_listed;
    struct baton_member *members;
    size_t used = 0;

    for (const struct entry *entry = registration->entries; entry; entry = entry->next) {
        count++;
    }
    members = calloc(count + 1, sizeof(*members));
    if (!members) {
        question->done(question->userdata, BATON_ENOMEM, NULL, 0);
        return;
    }
    if (registration->is_listed) {
        describe(registration, registration->client->id, NULL, &members[used++]);
    }
    for (const struct entry *entry = registration->entries; entry; entry = entry->next) {
        describe(registration, text_of(entry->id), entry, &members[used++]);
    }
    question->done(question->userdata, BATON_OK, members, used);
    free(members);
}

static void on_asked(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct question *question = userdata;
    struct registration *registration = question->registration;
    (void)tag;
    (void)sent;

    if (reply && parse_members(reply)) {
        take_list(registration, reply);
        answer(question);
    } else {
        question->done(question->userdata, client_refused(registration->client, reply), NULL, 0);
    }
    free(question);
    registration_answered(registration);
}

int registry_members(struct provider_election *election, provider_members_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct registration *registration = (struct registration *)election;
    struct question *question = malloc(sizeof(*question));

    if (!question) {
        return error_set(reterr, BATON_ENOMEM, "members: out of memory");
    }
    *question = (struct question){.registration = registration, .done = done, .userdata = userdata};
    if (read_with(registration, on_asked, question) != BATON_OK) {
        char where[REDIS_HOST_MAX];
        free(question);
        redis_address_name(&registration->client->address, where, sizeof(where));
        return error_set(reterr, BATON_EUNAVAILABLE, "members: Redis at %s cannot be reached now",
                         where);
    }
    registration->references++;
    return BATON_OK;
}
