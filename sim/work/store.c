#include "sim/work/store.h"

#include "base/invariant.h"
#include "sim/work/checks.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdlib.h>
#include <string.h>

void store_begin(struct yard *yard)
{
    yard->store = (struct yard_store){.truth = ledger_new()};
    INVARIANT(yard->store.truth != NULL);
}

static void forget_undo(struct yard_store *store)
{
    while (store->undo_count > 0) {
        yard_value_unref(store->undo[--store->undo_count].value);
    }
}

void store_end(struct yard *yard)
{
    struct yard_store *store = &yard->store;
    struct yard_key *key, *next;

    forget_undo(store);
    key = store->keys;
    HASH_CLEAR(hh, store->keys);
    for (; key; key = next) {
        next = key->hh.next;
        yard_value_unref(key->value);
        free(key);
    }
    ledger_free(store->truth);
    store->truth = NULL;
}

/* ---- Notices --------------------------------------------------------------------------------- */

static struct yard_event *push_to_leader(struct yard *yard, const struct yard_process *process,
                                         enum yard_event_kind kind, int64_t at)
{
    struct yard_event *event = yard_push_process(yard, process, kind, at);

    event->number = process->leading.number;
    return event;
}

/* In order for each key, however long the process was cut off. */
static void notify_one(struct yard *yard, const struct yard_process *process, struct yard_key *key,
                       uint64_t revision)
{
    int64_t from = yard->now > process->cut_until ? yard->now : process->cut_until;
    int64_t lag = yard->is_calm ? 0 : random_between(&yard->random, 0, process->lag);
    int64_t at = from + yard_way(yard) + lag;
    struct yard_event *event;

    at = at > key->noticed_at[process->number] ? at : key->noticed_at[process->number] + 1;
    key->noticed_at[process->number] = at;
    event = push_to_leader(yard, process, YARD_NOTICE, at);
    event->key = key;
    event->value = yard_value_ref(key->value);
    event->revision = revision;
}

/* Buckets and results are not watched. */
static enum yard_watch watch_of(const struct yard_key *key)
{
    if (strncmp(key->name, "c/", 2) == 0 || strncmp(key->name, "d/", 2) == 0) {
        return YARD_WATCH_REQUESTS;
    }
    return strncmp(key->name, "s/", 2) == 0 || strcmp(key->name, "ledger") == 0
               ? YARD_WATCH_SUBMISSIONS
               : YARD_WATCHES;
}

static void notify(struct yard *yard, struct yard_key *key, uint64_t revision)
{
    enum yard_watch watch = watch_of(key);

    for (size_t i = 0; watch != YARD_WATCHES && i < yard->profile.candidates; i++) {
        const struct yard_leading *leading = &yard->processes[i].leading;
        if (leading->core && leading->is_watching[watch]) {
            notify_one(yard, &yard->processes[i], key, revision);
        }
    }
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void remember(struct yard_store *store, struct yard_key *key)
{
    if (store->undo_count == YARD_UNDO_MAX) {
        yard_value_unref(store->undo[0].value);
        memmove(&store->undo[0], &store->undo[1], (YARD_UNDO_MAX - 1) * sizeof(store->undo[0]));
        store->undo_count--;
    }
    store->undo[store->undo_count++] = (struct yard_undo){key, key->value, key->revision};
}

/* As the script of Redis counts: a write after a loss gets no revision of a lost one. */
static uint64_t next_revision(struct yard *yard)
{
    uint64_t now_us = YARD_MUTANT(REVISION_TWICE) ? 0 : (uint64_t)yard->now / 1000;

    yard->store.revision++;
    if (yard->store.revision < now_us) {
        yard->store.revision = now_us;
    }
    return yard->store.revision;
}

static void change(struct yard *yard, struct yard_key *key, struct yard_value *value, span lifetime)
{
    uint64_t revision = next_revision(yard);

    yard_check_write(yard, key, value);
    remember(&yard->store, key);
    key->value = value;
    key->revision = value ? revision : 0;
    if (value && lifetime.ns > 0) {
        struct yard_event *event = yard_push(yard, YARD_EXPIRE, yard->now + lifetime.ns);
        event->key = key;
        event->revision = revision;
    }
    yard_check_key(yard, key);
    notify(yard, key, revision);
}

int store_put(struct yard *yard, struct yard_key *key, struct yard_value *value, uint64_t revision,
              span lifetime)
{
    if (revision != UINT64_MAX && revision != key->revision && !YARD_MUTANT(PUT_UNCONDITIONAL)) {
        yard_value_unref(value);
        return BATON_ECONFLICT;
    }
    if (value || key->value) {
        change(yard, key, value, lifetime);
    }
    return BATON_OK;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The reply does not come in time. */
static void give_up(struct yard *yard, const struct yard_event *request, int code)
{
    struct yard_event *event = yard_push(yard, YARD_REPLY, request->timeout_at);

    event->process = request->process;
    event->life = request->life;
    event->number = request->number;
    event->request = request->request;
    event->key = request->key;
    event->code = code;
    event->revision = request->revision;
}

/* Somebody on the way was stopped with it. */
static bool is_put_late(struct yard *yard, enum yard_request request, const struct yard_key *key)
{
    bool is_result = key && strncmp(key->name, "r/", 2) == 0;

    return request == YARD_PUT && !yard->is_calm &&
           random_chance(&yard->late, (is_result ? 4 : 1) * yard->profile.late_ppm);
}

void store_ask(struct yard *yard, struct yard_process *process, enum yard_request request,
               struct yard_key *key, struct yard_value *value, uint64_t revision, span lifetime)
{
    int64_t at = yard_arrival(yard, process);
    struct yard_event event = {.kind = YARD_REQUEST,
                               .process = process->number,
                               .life = process->life,
                               .number = process->leading.number,
                               .request = request,
                               .key = key,
                               .value = value,
                               .revision = revision,
                               .lifetime = lifetime,
                               .timeout_at = yard->now + yard->profile.timeout};

    if (at != INT64_MAX && is_put_late(yard, request, key)) {
        at += random_between(&yard->late, 0, yard->profile.late);
    }
    event.has_reply = at <= event.timeout_at;
    if (!event.has_reply) {
        give_up(yard, &event,
                random_chance(&yard->random, 500000) ? BATON_ETIMEDOUT : BATON_EUNAVAILABLE);
    }
    if (at == INT64_MAX) {
        yard_value_unref(value);
    } else {
        yard_push_again(yard, &event, at);
    }
}

static bool is_asking(const struct yard *yard, const struct yard_event *request)
{
    const struct yard_process *process = &yard->processes[request->process];

    return request->has_reply && process->life == request->life && process->leading.core &&
           process->leading.number == request->number;
}

/* All keys of a kind, as they are in one instant. */
static void list(struct yard *yard, struct yard_process *process, enum yard_listed listed,
                 int64_t at)
{
    const char *prefix = listed == YARD_LIST_BUCKETS ? "b/" : "s/";
    struct yard_key *key, *next;

    for (key = yard->store.keys; key; key = next) {
        next = key->hh.next;
        if (key->value && strncmp(key->name, prefix, 2) == 0) {
            struct yard_event *event = push_to_leader(yard, process, YARD_NOTICE, at);
            event->key = key;
            event->value = yard_value_ref(key->value);
            event->revision = key->revision;
            event->has_reply = true;
        }
    }
}

/* The present keys, and from now on each change. */
static void watch(struct yard *yard, struct yard_process *process, enum yard_watch watch)
{
    struct yard_key *key, *next;

    process->leading.is_watching[watch] = true;
    for (key = yard->store.keys; key; key = next) {
        next = key->hh.next;
        if (key->value && watch_of(key) == watch) {
            notify_one(yard, process, key, key->revision);
        }
    }
}

static void reply(struct yard *yard, const struct yard_event *request, int code, uint64_t revision)
{
    struct yard_process *process = &yard->processes[request->process];
    int64_t at;
    struct yard_event *event;

    if (!is_asking(yard, request)) {
        return;
    }
    at = yard_arrival(yard, process);
    if (at > request->timeout_at) {
        give_up(yard, request, BATON_ETIMEDOUT);
        return;
    }
    if (request->request == YARD_LIST) {
        list(yard, process, (enum yard_listed)request->revision, at);
    }
    if (request->request == YARD_WATCH) {
        watch(yard, process, (enum yard_watch)request->revision);
    }
    event = push_to_leader(yard, process, YARD_REPLY, at);
    event->request = request->request;
    event->key = request->key;
    event->code = code;
    event->revision = revision;
    if (request->request == YARD_READ) {
        event->value = yard_value_ref(request->key->value);
    }
}

static void put(struct yard *yard, struct yard_event *request)
{
    struct yard_value *value = request->value;
    bool is_change = value || request->key->value;
    int code;

    request->value = NULL;
    code = store_put(yard, request->key, value, request->revision, request->lifetime);
    reply(yard, request, code,
          code == BATON_OK && is_change ? yard->store.revision : request->key->revision);
}

/* A store that stands still carries a request out later, when its leader waits no longer. */
static void put_off(struct yard *yard, struct yard_event *request)
{
    int64_t at = yard->store.stalled_until + random_between(&yard->random, 0, yard->profile.delay);

    if (request->has_reply && at > request->timeout_at) {
        request->has_reply = false;
        give_up(yard, request, BATON_ETIMEDOUT);
    }
    yard_push_again(yard, request, at);
}

void store_happen(struct yard *yard, struct yard_event *event)
{
    if (event->kind == YARD_EXPIRE) {
        if (event->key->revision == event->revision) {
            change(yard, event->key, NULL, SPAN_NS(0));
        }
    } else if (yard->now < yard->store.stalled_until) {
        put_off(yard, event);
    } else if (event->request == YARD_PUT) {
        put(yard, event);
    } else {
        reply(yard, event, BATON_OK, event->key ? event->key->revision : event->revision);
    }
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* As a server does that goes on from what it has. */
static void perhaps_count_from(struct yard *yard, uint64_t revision)
{
    if (random_chance(&yard->random, 500000)) {
        yard->store.revision = revision;
    }
}

void store_lose_all(struct yard *yard)
{
    struct yard_store *store = &yard->store;
    struct yard_key *key, *next;

    yard_say(yard, YARD_NOBODY, "the store LOSES ALL its data");
    forget_undo(store);
    yard_check_loss(yard);
    yard->is_forgetting = true;
    for (key = store->keys; key; key = next) {
        next = key->hh.next;
        if (key->value) {
            yard_value_unref(key->value);
            key->value = NULL;
            key->revision = 0;
            yard_check_key(yard, key);
            notify(yard, key, next_revision(yard));
        }
    }
    perhaps_count_from(yard, 0);
    yard->is_forgetting = false;
}

void store_roll_back(struct yard *yard)
{
    struct yard_store *store = &yard->store;
    size_t count = random_below(&yard->random, store->undo_count + 1);

    perhaps_count_from(yard, store->revision - count);
    yard_say(yard, YARD_NOBODY, "the store takes back its last %zu writes", count);
    yard->is_forgetting = true;
    while (count-- > 0) {
        struct yard_undo *undo = &store->undo[--store->undo_count];
        yard_check_taken_back(yard, undo->key);
        yard_value_unref(undo->key->value);
        undo->key->value = undo->value;
        undo->key->revision = undo->revision;
        yard_check_key(yard, undo->key);
        notify(yard, undo->key, undo->key->revision);
    }
    yard->is_forgetting = false;
}
