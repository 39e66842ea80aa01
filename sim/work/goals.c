#include "sim/work/goals.h"

#include "base/invariant.h"
#include "sim/work/lookup.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <stdio.h>
#include <string.h>

enum { REBUILD_ROUNDS = 20 };

/* ---- Goals ----------------------------------------------------------------------------------- */

static const char *of(struct yard *yard, const char *id, const char *missing)
{
    (void)snprintf(yard->missing, sizeof(yard->missing), "%s: %s", id, missing);
    return yard->missing;
}

static const char *missing_of_process(struct yard *yard, const struct yard_process *process)
{
    const struct yard_election *pool = &yard->elections[YARD_POOL];

    if (yard->now < process->stopped_until) {
        return "a process is stopped";
    }
    if (process->is_worker && (!process->working.core || process->working.session == 0)) {
        return "a worker has no session";
    }
    if (process->is_worker && work_worker_results(process->working.core) > 0) {
        return "a result is not acknowledged";
    }
    if (process->number == pool->holder &&
        (!process->leading.core || process->leading.epoch != pool->epoch ||
         !work_leader_is_ready(process->leading.core))) {
        return "the leader is not ready";
    }
    if (process->number != pool->holder && process->leading.core) {
        return "an earlier leader acts on";
    }
    return pool->holder == YARD_NOBODY || pool->until != INT64_MAX ? "no process leads the pool"
                                                                   : NULL;
}

static const char *missing_of_service(struct yard *yard, const struct yard_item *item)
{
    const struct yard_stored *stored = &item->stored;
    const struct yard_copy *copy = copy_of_item(yard, item);

    if (stored->state == WORK_IDLE) {
        return of(yard, item->id, "a service has no place");
    }
    if (stored->state == WORK_PROCESSING && !copy) {
        return of(yard, item->id, "a service does not run");
    }
    if (stored->state == WORK_PROCESSING &&
        yard_is_draining(yard, &yard->processes[stored->process])) {
        return of(yard, item->id, "a service stays on a worker that is drained");
    }
    return NULL;
}

/* An earlier leader, which did not know that its submission was deleted, wrote it into a bucket
 * that the present one had read before. The next leader will cancel it. */
static bool is_left_behind(const struct yard *yard, const struct yard_item *item)
{
    const struct yard_process *process = &yard->processes[yard->elections[YARD_POOL].holder];

    return item->may_end && !ledger_find(work_leader_ledger(process->leading.core), item->id);
}

/* An item of a submission that nobody has deleted is known; one whose submission was deleted
 * before any leader knew of it never will be. */
static const char *missing_of_item(struct yard *yard, const struct yard_item *item)
{
    const struct yard_stored *stored = &item->stored;

    if (!stored->is_there) {
        return item->is_acked && !item->has_ended
                   ? of(yard, item->id, "an item that was submitted is not known")
                   : NULL;
    }
    if (is_left_behind(yard, item)) {
        return NULL;
    }
    if (item->is_cancelled && !work_state_is_final(stored->state)) {
        return of(yard, item->id, "an item that was cancelled has not ended");
    }
    if (item->kind == WORK_JOB && !work_state_is_final(stored->state)) {
        return of(yard, item->id, "a job has not ended");
    }
    return item->kind == WORK_SERVICE ? missing_of_service(yard, item) : NULL;
}

static const char *missing_of_copy(struct yard *yard, const struct yard_copy *copy)
{
    const struct yard_stored *stored = &copy->item->stored;

    return stored->state != WORK_PROCESSING || stored->process != copy->process ||
                   stored->session != copy->session || stored->epoch != copy->epoch
               ? of(yard, copy->item->id, "a copy runs that the ledger does not know")
               : NULL;
}

/* A request for an item that is not known waits for the item. */
static const char *missing_of_keys(struct yard *yard)
{
    struct yard_key *key, *next;

    for (key = yard->store.keys; key; key = next) {
        next = key->hh.next;
        const struct yard_item *item =
            key->value && key->name[0] == 'c' ? yard_item_find(yard, key->name + 2) : NULL;
        if (item && item->stored.is_there) {
            return of(yard, item->id, "a request to cancel it is still there");
        }
    }
    return NULL;
}

const char *yard_goal_missing(struct yard *yard)
{
    const char *missing = missing_of_keys(yard);

    for (size_t i = 0; !missing && i < yard->process_count; i++) {
        missing = missing_of_process(yard, &yard->processes[i]);
    }
    for (size_t i = 0; !missing && i < yard->item_count; i++) {
        missing = missing_of_item(yard, &yard->items[i]);
    }
    for (size_t i = 0; !missing && i < YARD_COPIES_MAX; i++) {
        missing = yard->copies[i].is_running ? missing_of_copy(yard, &yard->copies[i]) : NULL;
    }
    return missing;
}

/* ---- Rebuilt --------------------------------------------------------------------------------- */

struct rebuilding {
    struct work_leader *leader;
    instant now;
    int64_t unix_ms;
    uint64_t revision;
};

static void hear_worker(struct yard *yard, struct rebuilding *at, struct yard_process *worker,
                        const struct work_message *message)
{
    work_worker_hear(worker->working.core, message, yard_local(yard, worker));
    buffer_clear(&yard->buffer);
    while (work_worker_next_message(worker->working.core, &yard->buffer)) {
        struct yard_letter *letter = yard_letter_new(yard, yard->buffer.data, yard->buffer.bytes);
        work_leader_hear(at->leader, &letter->message, at->now, at->unix_ms);
        yard_letter_unref(letter);
        buffer_clear(&yard->buffer);
    }
}

static void carry_out(struct yard *yard, struct rebuilding *at, const struct work_output *output)
{
    char key[YARD_KEY_MAX];
    struct yard_letter *letter;

    if (output->type == WORK_PUT) {
        (void)snprintf(key, sizeof(key), "%s", output->key);
        work_leader_stored(at->leader, key, BATON_OK, ++at->revision, at->now, at->unix_ms);
    }
    if (output->type != WORK_SEND) {
        return;
    }
    letter = yard_letter_new(yard, output->data, output->bytes);
    for (size_t i = 0; i < yard->process_count; i++) {
        struct yard_process *worker = &yard->processes[i];
        if (worker->is_worker && (!output->worker || output->worker[0] - '0' == worker->number)) {
            hear_worker(yard, at, worker, &letter->message);
        }
    }
    yard_letter_unref(letter);
}

static void compare(struct yard *yard, const struct ledger *rebuilt)
{
    for (size_t i = 0; i < yard->item_count; i++) {
        const struct yard_item *item = &yard->items[i];
        const struct ledger_entry *entry = ledger_find(rebuilt, item->id);
        bool is_there = entry && entry->state == WORK_PROCESSING;
        bool is_stored = item->stored.state == WORK_PROCESSING;
        if (is_left_behind(yard, item)) {
            continue;
        }
        if (is_there != is_stored ||
            (is_there && (entry->epoch != item->stored.epoch ||
                          ledger_place_worker(entry->place)[0] - '0' != item->stored.process ||
                          ledger_place_session(entry->place) != item->stored.session))) {
            yard_violated(yard, "rebuilt-differs", "a ledger rebuilt from the workers has %s %s",
                          item->id, is_there ? "at another place" : "nowhere");
        }
    }
}

static struct work_leader *new_leader(struct yard *yard, const struct rebuilding *at)
{
    struct work_leader_options options = yard->profile.options;
    struct work_leader *leader;
    char name[BATON_NAME_MAX];

    options.epoch = yard->elections[YARD_POOL].epoch + 1;
    options.random = random_next(&yard->random) & WORK_NUMBER_MAX;
    leader = work_leader_new(&options, at->now);
    INVARIANT(leader != NULL);
    for (size_t i = 0; i < yard->process_count; i++) {
        (void)snprintf(name, sizeof(name), "%zu", i);
        if (yard->processes[i].is_worker) {
            work_leader_heard(leader, name, yard->processes[i].working.session, 1);
        }
    }
    return leader;
}

void yard_check_rebuilt(struct yard *yard)
{
    const struct yard_process *process = &yard->processes[yard->elections[YARD_POOL].holder];
    struct rebuilding at = {.now = yard_local(yard, process),
                            .unix_ms = yard_unix_ms(yard, process)};
    struct work_output output;

    at.leader = yard->rebuilt = new_leader(yard, &at);
    work_leader_loaded(at.leader, at.now, at.unix_ms);
    for (int i = 0; i < REBUILD_ROUNDS && !work_leader_is_ready(at.leader); i++) {
        work_leader_tick(at.leader, at.now, at.unix_ms);
        while (work_leader_next_output(at.leader, at.now, at.unix_ms, &output)) {
            carry_out(yard, &at, &output);
        }
    }
    if (!work_leader_is_ready(at.leader)) {
        yard_violated(yard, "rebuilt-differs", "a leader without a ledger is not ready");
    }
    compare(yard, work_leader_ledger(at.leader));
}
