#include "sim/work/checks.h"

#include "sim/work/lookup.h"
#include "sim/work/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- Placings that the store has had --------------------------------------------------------- */

static size_t placings_kept(const struct yard_item *item)
{
    return item->placing_count < YARD_PLACINGS_MAX ? item->placing_count : YARD_PLACINGS_MAX;
}

static struct yard_placing *find_placing(struct yard_item *item, uint64_t epoch, int process,
                                         uint64_t session)
{
    for (size_t i = 0; i < placings_kept(item); i++) {
        struct yard_placing *placing = &item->placings[i];
        if (placing->epoch == epoch && placing->process == process && placing->session == session) {
            return placing;
        }
    }
    return NULL;
}

/* Of a placing that the store lost before a copy of it began, nothing has its epoch. */
static void check_epoch_is_its_own(struct yard *yard, const struct yard_item *item,
                                   const struct yard_stored *now)
{
    for (size_t i = 0; i < placings_kept(item); i++) {
        const struct yard_placing *placing = &item->placings[i];
        bool is_another = placing->process != now->process || placing->session != now->session;

        if (placing->epoch == now->epoch && is_another &&
            (placing->has_begun || !item->is_unsure)) {
            yard_violated(yard, "epoch-twice", "%s is placed in epoch %llu on p%d and on p%d",
                          item->id, (unsigned long long)now->epoch, placing->process, now->process);
        }
    }
}

static void note_placing(struct yard *yard, struct yard_item *item, const struct yard_stored *now)
{
    check_epoch_is_its_own(yard, item, now);
    if (!find_placing(item, now->epoch, now->process, now->session)) {
        item->placings[item->placing_count++ % YARD_PLACINGS_MAX] = (struct yard_placing){
            .epoch = now->epoch, .session = now->session, .process = now->process};
    }
}

static bool has_succeeded_in(const struct yard_item *item, uint64_t epoch)
{
    for (size_t i = 0; i < placings_kept(item); i++) {
        if (item->placings[i].epoch == epoch && item->placings[i].has_succeeded) {
            return true;
        }
    }
    return false;
}

static const struct yard_placing *success_of(const struct yard_item *item)
{
    for (size_t i = 0; i < placings_kept(item); i++) {
        if (item->placings[i].has_succeeded) {
            return &item->placings[i];
        }
    }
    return NULL;
}

/* ---- What is stored -------------------------------------------------------------------------- */

static void forget_successes(struct yard_item *item)
{
    for (size_t i = 0; i < YARD_PLACINGS_MAX; i++) {
        item->placings[i].has_succeeded = false;
    }
}

static struct yard_stored stored_of(const struct yard *yard, const struct yard_item *item)
{
    const struct ledger_entry *entry = ledger_find(yard->store.truth, item->id);
    struct yard_stored stored = {.process = YARD_NOBODY};

    if (entry) {
        stored.is_there = true;
        stored.state = entry->state;
        stored.epoch = entry->epoch;
        stored.failures = entry->failures;
        stored.since_unix_ms = entry->since_unix_ms;
        if (entry->place) {
            stored.process = ledger_place_worker(entry->place)[0] - '0';
            stored.session = ledger_place_session(entry->place);
        }
    }
    return stored;
}

/* The result of a job that has ended is stored, and it is that of a copy which ended so. */
static void check_result(struct yard *yard, struct yard_item *item)
{
    const struct yard_value *value = yard_key_named(yard, 'r', item->id)->value;
    struct work_result result = {0};
    bool is_true;

    if (!value) {
        yard_violated(yard, "no-result", "%s has ended, and its result is not stored", item->id);
    }
    if (work_result_read(&result, value->data, value->bytes, NULL) != BATON_OK) {
        yard_violated(yard, "no-result", "the result of %s cannot be read", item->id);
    }
    is_true = has_succeeded_in(item, result.epoch) &&
              result.is_success == (item->stored.state == WORK_COMPLETED);
    work_result_fini(&result);
    if (!is_true) {
        yard_violated(yard, "false-result", "the stored result of %s is not that of a copy",
                      item->id);
    }
}

static void check_end(struct yard *yard, struct yard_item *item)
{
    const struct yard_stored *now = &item->stored;

    yard->result.counts[YARD_COUNT_ENDED]++;
    item->has_ended = true;
    if (now->state == WORK_CANCELLED && !item->may_end) {
        yard_violated(yard, "cancelled-unasked", "%s is cancelled, and nobody asked for it",
                      item->id);
    }
    if (now->state == WORK_FAILED && now->failures != item->retries + 1) {
        yard_violated(yard, "given-up", "%s has failed for good after %u of %u attempts", item->id,
                      now->failures, item->retries + 1);
    }
    if (now->state != WORK_COMPLETED) {
        return;
    }
    if (!success_of(item)) {
        yard_violated(yard, "false-result", "%s is completed, and no copy of it has succeeded",
                      item->id);
    }
    if (++item->completed > item->submitted && !yard->has_lost) {
        yard_violated(yard, "completed-twice", "%s is completed %u times", item->id,
                      item->completed);
    }
    if (!item->is_unsure &&
        yard->now - success_of(item)->ended_at < yard->profile.options.keep.ns / 2) {
        check_result(yard, item);
    }
}

/* An item that leaves its place has no copy there any more. */
static void check_left(struct yard *yard, const struct yard_item *item,
                       const struct yard_stored *before)
{
    const struct yard_copy *copy = copy_of_item(yard, item);

    if (copy && copy->epoch == before->epoch && copy->process == before->process &&
        !item->is_unsure) {
        yard_violated(yard, "left-running", "%s leaves its place in epoch %llu, and runs on p%d",
                      item->id, (unsigned long long)before->epoch, copy->process);
    }
}

/* Every wall clock shows the true time, plus a constant. */
static bool is_time_true(const struct yard *yard)
{
    return !yard->profile.walls_differ && yard->profile.drift_ppm == 0 && !yard->has_lost;
}

/* What is submitted by this id later is another item, in higher epochs. */
static void check_gone(struct yard *yard, struct yard_item *item, const struct yard_stored *before)
{
    int64_t age_ms = yard->now / 1000000 + YARD_UNIX_MS - before->since_unix_ms;

    if (before->is_there && work_state_is_final(before->state)) {
        forget_successes(item);
        item->is_forgotten = item->is_parted = false;
    }
    if (before->is_there && !work_state_is_final(before->state)) {
        yard_violated(yard, "forgotten", "%s is gone from the ledger, and has not ended", item->id);
    }
    if (before->is_there && is_time_true(yard) &&
        age_ms < yard->profile.options.keep.ns / 1000000) {
        yard_violated(yard, "forgotten-early", "%s is gone from the ledger %lld ms after its end",
                      item->id, (long long)age_ms);
    }
}

static void check_change(struct yard *yard, struct yard_item *item,
                         const struct yard_stored *before)
{
    const struct yard_stored *now = &item->stored;
    bool is_same = before->is_there && now->state == before->state && now->epoch == before->epoch;
    bool was_final = before->is_there && work_state_is_final(before->state);
    bool is_anew = was_final && !is_same && item->is_parted; /* it was submitted again at once */

    if (!now->is_there) {
        check_gone(yard, item, before);
        return;
    }
    if (is_anew) {
        check_gone(yard, item, before);
        item->has_ended = false;
    } else if (was_final && !is_same) {
        yard_violated(yard, "final-changed", "%s is %s after it was %s", item->id,
                      work_state_name(now->state), work_state_name(before->state));
    }
    if (before->is_there && now->epoch < before->epoch && !is_anew) {
        yard_violated(yard, "epoch-back", "%s has epoch %llu after %llu", item->id,
                      (unsigned long long)now->epoch, (unsigned long long)before->epoch);
    }
    if (before->state == WORK_PROCESSING && !is_same) {
        check_left(yard, item, before);
    }
    if (now->state == WORK_PROCESSING) {
        note_placing(yard, item, now);
    }
    if (work_state_is_final(now->state) && !is_same) {
        check_end(yard, item);
    }
}

static void check_bucket(struct yard *yard, unsigned bucket, const struct yard_value *value)
{
    struct baton_error error;

    if (ledger_decode(yard->store.truth, bucket, value ? value->data : NULL,
                      value ? value->bytes : 0, &error) != BATON_OK) {
        yard_violated(yard, "unreadable", "bucket %u: %s", bucket, error.message);
    }
    for (size_t i = 0; i < yard->item_count; i++) {
        struct yard_item *item = &yard->items[i];
        struct yard_stored before = item->stored;
        if (item->bucket != bucket) {
            continue;
        }
        item->stored = stored_of(yard, item);
        if (!yard->is_forgetting) {
            check_change(yard, item, &before);
        } else if (item->stored.state == WORK_PROCESSING) {
            note_placing(yard, item, &item->stored);
        } else if (work_state_is_final(item->stored.state)) {
            item->has_ended = true; /* its end is back, and its submission may be a new one */
        }
    }
}

static struct yard_submission *find_submission(struct yard *yard, const char *name)
{
    for (size_t i = 0; i < yard->submission_count; i++) {
        if (strcmp(yard->submissions[i].name, name) == 0) {
            return &yard->submissions[i];
        }
    }
    return NULL;
}

/* Another submission that is there has it, too. */
static bool is_in_another(struct yard *yard, const struct yard_item *item)
{
    for (size_t i = 0; i < yard->submission_count; i++) {
        const struct yard_submission *submission = &yard->submissions[i];
        bool is_there = yard_key_named(yard, 's', submission->name)->value != NULL;
        for (size_t j = 0; is_there && j < submission->count; j++) {
            if (&yard->items[submission->items[j]] == item) {
                return true;
            }
        }
    }
    return false;
}

/* A submission may go when all its items have ended. What an earlier leader then makes anew of one
 * is nobody's, and ends. */
static void check_submission(struct yard *yard, const struct yard_key *key)
{
    const struct yard_submission *submission = find_submission(yard, key->name + 2);

    for (size_t i = 0; submission && !key->value && i < submission->count; i++) {
        struct yard_item *item = &yard->items[submission->items[i]];
        bool is_left = !is_in_another(yard, item);

        if (is_left && item->is_acked && !item->has_ended) {
            yard_violated(yard, "forgotten", "submission %s is deleted, and %s has not ended",
                          submission->name, item->id);
        }
        item->may_end = item->may_end || is_left;
        item->is_parted = work_state_is_final(item->stored.state);
        item->is_forgotten = is_left && item->is_parted;
    }
}

static bool is_ledger_complete(struct yard *yard)
{
    const struct yard_value *value = yard_key_of(yard, "ledger")->value;

    return value && value->bytes > 1 && value->data[1] != ' ';
}

/* Nobody deletes the result of an item that is not forgotten. */
static void check_result_kept(struct yard *yard, const struct yard_key *key)
{
    const struct yard_item *item = yard_item_find(yard, key->name + 2);
    const struct yard_placing *success = item ? success_of(item) : NULL;
    struct work_result result = {0};

    if (success && item->stored.is_there && !item->is_unsure && is_time_true(yard) &&
        yard->now - success->ended_at < yard->profile.options.keep.ns / 2 &&
        work_result_read(&result, key->value->data, key->value->bytes, NULL) == BATON_OK &&
        has_succeeded_in(item, result.epoch)) {
        work_result_fini(&result);
        yard_violated(yard, "result-lost", "%s is deleted, and its item has just ended", key->name);
    }
    work_result_fini(&result);
}

void yard_check_write(struct yard *yard, const struct yard_key *key, const struct yard_value *value)
{
    yard->has_deleted = yard->has_deleted ||
                        (strncmp(key->name, "s/", 2) == 0 && !value && !is_ledger_complete(yard));
    if (strncmp(key->name, "r/", 2) == 0 && key->value && value) {
        yard_violated(yard, "result-changed", "%s is written over", key->name);
    }
    if (strncmp(key->name, "r/", 2) == 0 && key->value) {
        check_result_kept(yard, key);
    }
}

void yard_check_key(struct yard *yard, struct yard_key *key)
{
    char *end;
    unsigned long number = strtoul(key->name + (key->name[0] != '\0' ? 2 : 0), &end, 10);

    if (strncmp(key->name, "b/", 2) == 0 && *end == '\0' && number < LEDGER_BUCKETS) {
        check_bucket(yard, (unsigned)number, key->value);
    } else if (strncmp(key->name, "s/", 2) == 0 && !yard->is_forgetting) {
        check_submission(yard, key);
    }
}

/* ---- What is lost ---------------------------------------------------------------------------- */

static void become_unsure(struct yard_item *item)
{
    item->is_unsure = true;
    item->is_acked = item->is_cancelled = item->is_forgotten = item->is_parted = false;
    item->may_end = true;
}

void yard_check_loss(struct yard *yard)
{
    yard->has_lost = true;
    for (size_t i = 0; i < yard->item_count; i++) {
        become_unsure(&yard->items[i]);
    }
}

void yard_check_taken_back(struct yard *yard, const struct yard_key *key)
{
    const struct yard_submission *submission;
    struct yard_item *item = yard_item_find(yard, key->name + 2);

    yard->has_lost = true;
    for (size_t i = 0; key->name[0] == 'b' && i < yard->item_count; i++) {
        struct yard_item *its = &yard->items[i];
        if (its->bucket == (unsigned)strtoul(key->name + 2, NULL, 10)) {
            its->is_unsure = its->is_doubtful = true;
            its->is_cancelled = false;
            its->may_end = true;
        }
    }
    if (key->name[0] == 's' && (submission = find_submission(yard, key->name + 2))) {
        for (size_t i = 0; i < submission->count; i++) {
            become_unsure(&yard->items[submission->items[i]]);
        }
    }
    if (key->name[0] == 'c' && item) {
        item->is_cancelled = false;
    }
    if (key->name[0] == 'r' && item) {
        item->is_unsure = true;
    }
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void check_placed_here(struct yard *yard, const struct yard_process *process,
                              struct yard_item *item, const struct work_order *order)
{
    const struct yard_stored *stored = &item->stored;
    uint64_t session = process->working.session;
    struct yard_placing *placing = find_placing(item, order->epoch, process->number, session);

    if (placing) {
        placing->has_begun = true;
    } else {
        yard_violated(yard, "not-stored", "p%d starts %s in epoch %llu, which was never stored",
                      process->number, item->id, (unsigned long long)order->epoch);
    }
    if (item->is_unsure) {
        return;
    }
    if (stored->is_there && work_state_is_final(stored->state)) {
        yard_violated(yard, "run-after-end", "p%d starts %s, which is %s", process->number,
                      item->id, work_state_name(stored->state));
    }
    if (stored->state != WORK_PROCESSING || stored->epoch != order->epoch ||
        stored->process != process->number || stored->session != session) {
        yard_violated(yard, "not-its-place", "p%d starts %s in epoch %llu, and its place is p%d",
                      process->number, item->id, (unsigned long long)order->epoch, stored->process);
    }
}

/* The same placing, which the worker has had and ended before. */
static bool is_again(const struct yard_process *process, const struct yard_item *item)
{
    return item->process == process->number && item->session == process->working.session;
}

void yard_check_start(struct yard *yard, const struct yard_process *process,
                      const struct yard_item *item, const struct work_order *order)
{
    const struct yard_copy *other = item ? copy_of_item(yard, item) : NULL;
    const struct yard_placing *placing =
        item ? find_placing(&yard->items[item - yard->items], order->epoch, process->number,
                            process->working.session)
             : NULL;

    if (!item) {
        yard_violated(yard, "unknown-item", "p%d starts %s, which nobody submitted",
                      process->number, order->id);
    }
    if (process->working.session == 0 || yard->now >= process->working.session_end ||
        !election_is_held_by(yard, election_of(process->number), process,
                             process->working.session)) {
        yard_violated(yard, "without-session", "p%d starts %s without a session", process->number,
                      item->id);
    }
    if (other && (other->process == process->number ||
                  (!(placing && placing->is_blind) && !item->is_doubtful))) {
        yard_violated(yard, "two-copies", "p%d starts %s, which runs on p%d", process->number,
                      item->id, other->process);
    }
    if (!item->is_doubtful &&
        (order->epoch < item->epoch || (order->epoch == item->epoch && !is_again(process, item)))) {
        yard_violated(yard, "epoch-order", "p%d starts %s in epoch %llu after %llu",
                      process->number, item->id, (unsigned long long)order->epoch,
                      (unsigned long long)item->epoch);
    }
    if (item->has_ended && !item->is_unsure && !is_in_another(yard, item)) {
        yard_violated(yard, "begun-anew", "p%d starts %s, which has ended and was deleted",
                      process->number, item->id);
    }
    check_placed_here(yard, process, &yard->items[item - yard->items], order);
}

void yard_note_end(const struct yard *yard, const struct yard_copy *copy)
{
    struct yard_placing *placing =
        find_placing(copy->item, copy->epoch, copy->process, copy->session);

    if (placing) {
        placing->has_succeeded = copy->is_success;
        placing->ended_at = yard->now;
    }
}

void yard_check_ended(struct yard *yard, const struct yard_process *process, uint64_t number)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        const struct yard_copy *copy = &yard->copies[i];
        if (copy->is_running && copy->process == process->number && copy->number <= number) {
            yard_violated(yard, "runs-on", "%s runs on p%d, which has changed its session",
                          copy->item->id, copy->process);
        }
    }
}

void yard_check_session_over(struct yard *yard, int election)
{
    const struct yard_copy *copy;

    if (election == YARD_POOL) {
        return;
    }
    copy = copy_of_process(yard, &yard->processes[election_worker(election)]);
    if (copy) {
        yard_violated(yard, "outlives-session", "%s runs on p%d, whose session is over",
                      copy->item->id, copy->process);
    }
}

/* ---- Leaders --------------------------------------------------------------------------------- */

/* The state was lost, and the leader's process has started since the copy began and not heard its
 * worker: it cannot know of the copy. docs/work.md says so. */
static bool is_unknown_to(const struct yard *yard, const struct yard_process *process,
                          const struct yard_copy *copy)
{
    return copy->item->is_unsure && yard->has_lost && process->started_at > copy->began_at &&
           process->leading.heard[copy->process].session != copy->session;
}

static void check_assignment(struct yard *yard, const struct yard_process *process, int worker,
                             uint64_t session, const struct work_assignment *assignment)
{
    struct yard_item *item = yard_item_find(yard, assignment->item->id);
    const struct yard_copy *copy = item ? copy_of_item(yard, item) : NULL;
    struct yard_placing *placing =
        item ? find_placing(item, assignment->epoch, worker, session) : NULL;

    if (placing) {
        placing->is_blind = copy && is_unknown_to(yard, process, copy);
    } else {
        yard_violated(yard, "told-unstored",
                      "p%d tells p%d of %s in epoch %llu, which is not "
                      "stored",
                      process->number, worker, assignment->item->id,
                      (unsigned long long)assignment->epoch);
    }
}

void yard_check_message(struct yard *yard, const struct yard_process *process, const char *worker,
                        const struct work_message *message)
{
    int number = worker ? worker[0] - '0' : YARD_NOBODY;

    for (size_t i = 0; message->type == WORK_ASSIGN && i < message->count; i++) {
        check_assignment(yard, process, number, message->session, &message->assignments[i]);
    }
}

/* What came of an earlier session counts no more: its item is placed anew. */
void yard_check_forgotten(struct yard *yard, const struct yard_process *process,
                          const struct work_message *ack)
{
    for (size_t i = 0; i < ack->count; i++) {
        const struct yard_item *item = yard_item_find(yard, ack->ids[i].id);
        if (item && !item->is_unsure && item->stored.state == WORK_PROCESSING &&
            item->stored.process == process->number &&
            item->stored.session == process->working.session &&
            item->stored.epoch == ack->ids[i].epoch) {
            yard_violated(yard, "acked-unstored",
                          "p%d may forget the result of %s in epoch %llu, which is not stored",
                          process->number, item->id, (unsigned long long)ack->ids[i].epoch);
        }
    }
}

/* One of the items there was placed a moment ago: its placing is not stored yet. */
static bool is_placed_newly(struct yard *yard, const struct ledger_place *place, uint64_t change)
{
    int worker = ledger_place_worker(place)[0] - '0';

    for (const struct ledger_entry *entry = ledger_place_entries(place); entry;
         entry = entry->next) {
        struct yard_item *item = yard_item_find(yard, entry->id);
        if (item && entry->change > change &&
            !find_placing(item, entry->epoch, worker, ledger_place_session(place))) {
            return true;
        }
    }
    return false;
}

static uint32_t used(const struct ledger_place *place)
{
    uint32_t sum = 0;

    for (const struct ledger_entry *entry = ledger_place_entries(place); entry;
         entry = entry->next) {
        sum += entry->item ? entry->item->weight : 1;
    }
    return sum;
}

void yard_check_placed(struct yard *yard, const struct yard_process *process)
{
    const struct work_leader *leader = process->leading.core;
    const struct ledger_place *place = NULL;

    if (!leader || process->options.overfills || yard->has_lost) {
        return;
    }
    while ((place = ledger_place_next(work_leader_ledger(leader), place))) {
        const char *worker = ledger_place_worker(place);
        uint32_t slots = yard->processes[worker[0] - '0'].working.slots;
        if (used(place) > slots && is_placed_newly(yard, place, process->leading.change)) {
            yard_violated(yard, "overfilled", "p%d places %u on p%s, which has %u slots",
                          process->number, used(place), worker, slots);
        }
    }
}
