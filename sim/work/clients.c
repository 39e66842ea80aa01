#include "sim/work/clients.h"

#include "base/invariant.h"
#include "sim/work/lookup.h"
#include "sim/work/store.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void clients_begin(struct yard *yard)
{
    yard->item_count = yard->submission_count = 0;
    yard_push(yard, YARD_CLIENT, yard->profile.client_every);
}

void clients_end(struct yard *yard)
{
    for (size_t i = 0; i < yard->submission_count; i++) {
        yard_value_unref(yard->submissions[i].value);
    }
    yard->submission_count = 0;
}

static struct yard_value *text_value(const char *text)
{
    return yard_value_new(text, strlen(text));
}

/* ---- Items ----------------------------------------------------------------------------------- */

static size_t services(const struct yard *yard)
{
    size_t count = 0;

    for (size_t i = 0; i < yard->item_count; i++) {
        count += yard->items[i].kind == WORK_SERVICE;
    }
    return count;
}

static span part_of_job_time(struct yard *yard, int64_t from, int64_t to)
{
    int64_t ns = yard->profile.job_time / 100 * random_between(&yard->random, from, to);

    return SPAN_MS(ns / 1000000 + 1);
}

/* All that are together have room beside the services. */
static bool is_together(struct yard *yard, struct yard_item *item)
{
    uint32_t others = 0;

    for (size_t i = 0; i < yard->item_count; i++) {
        others += yard->items[i].is_together;
    }
    item->is_together = !item->needs_label && item->weight == 1 &&
                        others < yard->profile.job_weight &&
                        random_chance(&yard->random, yard->profile.together_ppm);
    return item->is_together;
}

/* Every worker has room for all services and one more item at once, and only items that run
 * anywhere are to be together: so in the end each item has a place. */
static void draw_item(struct yard *yard, struct yard_item *item, struct work_item *ret)
{
    const struct yard_profile *p = &yard->profile;
    struct random *random = &yard->random;
    bool is_service = services(yard) < p->services_max && random_chance(random, p->service_ppm);

    *item = (struct yard_item){
        .kind = is_service ? WORK_SERVICE : WORK_JOB,
        .weight = is_service ? 1 : (uint32_t)random_between(random, 1, p->job_weight),
        .retries = (uint32_t)random_below(random, 3),
        .is_late = !is_service && random_chance(random, 80000),
        .needs_label = random_chance(random, 200000),
        .stored = {.process = YARD_NOBODY},
    };
    *ret = (struct work_item){
        .id = item->id,
        .kind = item->kind,
        .priority = (int32_t)random_between(random, -2, 2),
        .weight = item->weight,
        .retries = item->retries,
        .needs = item->needs_label ? "special" : "",
        .together = is_together(yard, item) ? "these" : NULL,
        .backoff = part_of_job_time(yard, 1, 50),
        .timeout = item->is_late                   ? part_of_job_time(yard, 150, 300)
                   : random_chance(random, 300000) ? part_of_job_time(yard, 500, 900)
                                                   : SPAN_NS(0),
        .body = (uint8_t *)"body",
        .body_bytes = 4,
    };
    if (is_service) {
        ret->timeout = SPAN_NS(0);
    }
}

/* A name with a number behind it that has its bucket among the first ones. */
static void name_in(const struct yard *yard, char *name, size_t bytes, const char *stem,
                    const char *rest)
{
    char id[32];

    for (unsigned i = 0; i == 0 || ledger_bucket_of(id) >= yard->profile.buckets; i++) {
        (void)snprintf(name, bytes, "%s-%u", stem, i);
        (void)snprintf(id, sizeof(id), "%s%s", name, rest);
    }
}

static json_t *item_json(struct yard *yard, struct yard_submission *submission, bool is_unique)
{
    size_t number = yard->item_count++;
    struct yard_item *item = &yard->items[number];
    struct work_item drawn;
    char stem[8], id[sizeof(item->id)] = "";
    json_t *json;

    *item = (struct yard_item){.kind = WORK_JOB};
    draw_item(yard, item, &drawn);
    if (is_unique) { /* as the submission names it */
        (void)snprintf(id, sizeof(id), "%s.%zu", submission->name, submission->count);
    } else {
        (void)snprintf(stem, sizeof(stem), "i%zu", number);
        name_in(yard, id, sizeof(id), stem, "");
    }
    memcpy(item->id, id, sizeof(item->id));
    json = work_item_json(&drawn);
    INVARIANT(json != NULL);
    if (is_unique) {
        (void)json_object_del(json, "id");
    }
    item->bucket = ledger_bucket_of(item->id);
    item->is_unique = is_unique;
    submission->items[submission->count++] = (int)number;
    return json;
}

static struct yard_value *draw_submission(struct yard *yard, struct yard_submission *submission)
{
    size_t most = YARD_ITEMS_MAX - yard->item_count;
    size_t count = 1 + random_below(&yard->random, YARD_OF_SUBMISSION_MAX);
    bool is_unique = random_chance(&yard->random, 500000);
    json_t *items = json_array();
    json_t *root = json_pack("{s:b,s:o}", "unique", is_unique, "items", items);
    struct yard_value *value;
    char *text;

    for (size_t i = 0; i < count && i < most; i++) {
        (void)json_array_append_new(items, item_json(yard, submission, is_unique));
    }
    text = json_dumps(root, JSON_COMPACT);
    INVARIANT(text != NULL);
    value = text_value(text);
    free(text);
    json_decref(root);
    return value;
}

/* ---- What they do ---------------------------------------------------------------------------- */

/* A put that the store carries out is acknowledged. */
static void submit(struct yard *yard, struct yard_submission *submission)
{
    struct yard_key *key = yard_key_named(yard, 's', submission->name);

    if (store_put(yard, key, yard_value_ref(submission->value), 0, SPAN_NS(0)) != BATON_OK) {
        return;
    }
    yard_say(yard, YARD_NOBODY, "a client submits %s: %.*s", submission->name,
             (int)submission->value->bytes, (const char *)submission->value->data);
    for (size_t i = 0; i < submission->count; i++) {
        struct yard_item *item = &yard->items[submission->items[i]];
        item->submitted++;
        item->is_acked = true;
        item->has_ended = item->has_ended && item->stored.is_there;
    }
}

static void name_submission(struct yard *yard, struct yard_submission *submission)
{
    char stem[8];

    (void)snprintf(stem, sizeof(stem), "n%d", (int)(submission - yard->submissions));
    name_in(yard, submission->name, sizeof(submission->name), stem, ".0");
}

static void submit_new(struct yard *yard)
{
    size_t number = yard->submission_count;
    struct yard_submission *submission = &yard->submissions[number];

    if (number == YARD_SUBMISSIONS_MAX || yard->item_count >= yard->profile.items_max) {
        return;
    }
    *submission = (struct yard_submission){.count = 0};
    name_submission(yard, submission);
    yard->submission_count++;
    submission->value = draw_submission(yard, submission);
    submit(yard, submission);
}

static struct yard_submission *any_submission(struct yard *yard)
{
    return yard->submission_count == 0
               ? NULL
               : &yard->submissions[random_below(&yard->random, yard->submission_count)];
}

/* None of its items was cancelled or deleted, or submitted more than once; or all were lost. */
static bool is_plain(const struct yard *yard, const struct yard_submission *submission)
{
    for (size_t i = 0; i < submission->count; i++) {
        const struct yard_item *item = &yard->items[submission->items[i]];
        if (!item->is_unsure && (item->may_end || item->submitted != 1)) {
            return false;
        }
    }
    return true;
}

/* All its items have ended and were forgotten, so that their ids may be used again. */
static bool is_forgotten(struct yard *yard, const struct yard_submission *submission)
{
    for (size_t i = 0; i < submission->count; i++) {
        const struct yard_item *item = &yard->items[submission->items[i]];
        if (!item->has_ended || item->stored.is_there || item->is_cancelled) {
            return false;
        }
    }
    return yard->profile.late_ppm > 0 && !yard_key_named(yard, 's', submission->name)->value;
}

/* The value of an earlier submission with a further item. */
static struct yard_value *add_item(struct yard *yard, struct yard_submission *submission)
{
    const struct yard_value *before = submission->value;
    json_t *root = json_loadb((const char *)before->data, before->bytes, 0, NULL);
    struct yard_value *value;
    char *text;

    INVARIANT(root != NULL);
    (void)json_array_append_new(json_object_get(root, "items"), item_json(yard, submission, false));
    text = json_dumps(root, JSON_COMPACT);
    INVARIANT(text != NULL);
    value = text_value(text);
    free(text);
    json_decref(root);
    return value;
}

/* The same items under another name, and perhaps one more. */
static void submit_again(struct yard *yard, const struct yard_submission *first)
{
    size_t number = yard->submission_count;
    struct yard_submission *submission = &yard->submissions[number];
    bool has_more;

    if (!first || number == YARD_SUBMISSIONS_MAX || yard->items[first->items[0]].is_unique ||
        (!is_plain(yard, first) && !is_forgotten(yard, first))) {
        return;
    }
    *submission = *first;
    has_more = submission->count < YARD_OF_SUBMISSION_MAX &&
               yard->item_count < yard->profile.items_max &&
               random_chance(&yard->random, yard->profile.more_ppm);
    submission->value = has_more ? add_item(yard, submission) : yard_value_ref(first->value);
    yard->submission_count++;
    name_submission(yard, submission);
    submit(yard, submission);
}

void clients_submit_lost(struct yard *yard, const struct yard_item *item)
{
    int number = (int)(item - yard->items);

    for (size_t i = 0; i < yard->submission_count; i++) {
        const struct yard_submission *submission = &yard->submissions[i];
        if (submission->items[0] == number) {
            submit_again(yard, submission);
            return;
        }
    }
}

static const struct yard_submission *any_forgotten(struct yard *yard)
{
    size_t from = random_below(&yard->late, yard->submission_count + 1);

    for (size_t i = 0; i < yard->submission_count; i++) {
        const struct yard_submission *submission =
            &yard->submissions[(from + i) % yard->submission_count];
        if (!yard->items[submission->items[0]].is_unique && is_forgotten(yard, submission)) {
            return submission;
        }
    }
    return NULL;
}

static void delete_submission(struct yard *yard)
{
    struct yard_submission *submission = any_submission(yard);

    if (!submission || !is_plain(yard, submission)) {
        return;
    }
    yard_say(yard, YARD_NOBODY, "a client deletes %s", submission->name);
    for (size_t i = 0; i < submission->count; i++) {
        struct yard_item *item = &yard->items[submission->items[i]];
        item->may_end = true;
        item->is_acked = false;
        item->is_cancelled = !item->is_unsure;
    }
    (void)store_put(yard, yard_key_named(yard, 's', submission->name), NULL, UINT64_MAX,
                    SPAN_NS(0));
}

static void cancel(struct yard *yard)
{
    struct yard_item *item;

    if (yard->item_count == 0) {
        return;
    }
    item = &yard->items[random_below(&yard->random, yard->item_count)];
    if (item->submitted == 1) {
        item->may_end = true;
        item->is_cancelled = !item->is_unsure;
        yard_say(yard, YARD_NOBODY, "a client cancels %s", item->id);
        (void)store_put(yard, yard_key_named(yard, 'c', item->id), text_value("{}"), UINT64_MAX,
                        SPAN_NS(0));
    }
}

static void drain(struct yard *yard)
{
    const struct yard_profile *p = &yard->profile;
    const struct yard_process *process =
        &yard->processes[yard->process_count - 1 - random_below(&yard->random, p->workers)];
    bool is_draining = yard_is_draining(yard, process);

    yard_say(yard, YARD_NOBODY, "a client %s p%d", is_draining ? "undrains" : "drains",
             process->number);
    (void)store_put(yard, yard_drain_key(yard, process), is_draining ? NULL : text_value("{}"),
                    UINT64_MAX, SPAN_NS(0));
}

/* Values and names that no leader can use. */
static void write_nonsense(struct yard *yard)
{
    static const char *const names[] = {"s/odd", "c/odd", "b/99", "x/odd", "odd", "s//"};
    size_t drawn = random_below(&yard->random, sizeof(names) / sizeof(names[0]));

    (void)store_put(yard, yard_key_of(yard, names[drawn]), text_value("{\"items\":7}"), UINT64_MAX,
                    SPAN_NS(0));
}

void clients_act(struct yard *yard)
{
    uint64_t drawn = random_below(&yard->random, 100);
    bool is_repeated =
        random_chance(&yard->random, yard->has_lost ? 400000 : yard->profile.again_ppm);

    if (yard->profile.late_ppm > 0 && random_chance(&yard->late, 500000)) {
        submit_again(yard, any_forgotten(yard));
    } else if (is_repeated || drawn < 8) {
        submit_again(yard, any_submission(yard));
    } else if (drawn < 68) {
        submit_new(yard);
    } else if (drawn < 80) {
        cancel(yard);
    } else if (drawn < 84) {
        delete_submission(yard);
    } else if (drawn < 96) {
        drain(yard);
    } else {
        write_nonsense(yard);
    }
    yard_push(yard, YARD_CLIENT,
              yard->now + random_between(&yard->random, 0, 2 * yard->profile.client_every));
}

void clients_calm(struct yard *yard)
{
    bool has_kept = false;

    for (size_t i = 0; i < yard->process_count; i++) {
        const struct yard_process *process = &yard->processes[i];
        bool may_keep = !process->working.has_label && yard->profile.workers > 1 && !has_kept;
        if (process->is_worker && yard_is_draining(yard, process)) {
            has_kept = has_kept || may_keep;
            if (!may_keep) {
                (void)store_put(yard, yard_drain_key(yard, process), NULL, UINT64_MAX, SPAN_NS(0));
            }
        }
    }
}
