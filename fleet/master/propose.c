/* One plan, and what it writes: lists of workers, what is unplaced, the end of moves. */
#include "fleet/master/master_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 320,
    UNPLACED_BYTES = 100 * 1024, /* of the entries' texts in a value; it has the count of all */
    UNPLACED_ENTRY = 40,         /* bytes of JSON around them */
    REASON_MAX = 128,
};

struct proposal {
    struct master *master;
    struct survey survey;
    struct plan_answer answer;
    struct round *round;
    instant now;
};

/* ---- What was headed where ------------------------------------------------------------------- */

void headings_clear(struct master *master)
{
    for (size_t i = 0; i < master->heading_count; i++) {
        free(master->headings[i].subscription);
        free(master->headings[i].worker);
    }
    free(master->headings);
    master->headings = NULL;
    master->heading_count = 0;
}

/* Without memory they are planned anew, which does no harm. */
static void headings_set(const struct proposal *proposal)
{
    struct master *master = proposal->master;
    const struct plan_answer *answer = &proposal->answer;

    headings_clear(master);
    master->headings = calloc(answer->unplaced_count + 1, sizeof(*master->headings));
    for (size_t i = 0; master->headings && i < answer->unplaced_count; i++) {
        const struct plan_unplaced *entry = &answer->unplaced[i];
        if (!entry->reason) {
            struct heading *heading = &master->headings[master->heading_count++];
            heading->subscription = strdup(master->catalog.subscriptions[entry->subscription].id);
            heading->worker = strdup(proposal->survey.workers[entry->target].id);
        }
    }
}

/* What is headed somewhere, and what people move. */
static void mark_catalog(const struct master *master)
{
    const struct catalog *catalog = &master->catalog;

    for (size_t i = 0; i < catalog->count; i++) {
        catalog->subscriptions[i].headed = catalog->subscriptions[i].wanted = NULL;
    }
    for (size_t i = 0; i < master->heading_count; i++) {
        const struct heading *heading = &master->headings[i];
        struct plan_subscription *subscription =
            heading->subscription ? catalog_find(catalog, heading->subscription) : NULL;
        if (subscription) {
            subscription->headed = heading->worker;
        }
    }
    for (const struct fleet_move *move = NULL;
         (move = fleet_state_next_move(master->config.state, move));) {
        struct plan_subscription *subscription = catalog_find(catalog, move->subscription);
        if (subscription) {
            subscription->wanted = move->to;
        }
    }
}

/* ---- Lists of workers ------------------------------------------------------------------------ */

static int add_list(struct proposal *proposal, size_t number)
{
    const struct plan_list *list = &proposal->answer.lists[number];
    const char *id = proposal->survey.workers[number].id;
    const struct fleet_assigned *assigned =
        fleet_state_assigned(proposal->master->config.state, id);
    const struct fleet_assigned wanted = {.epoch = proposal->master->epoch,
                                          .subscriptions = list->subscriptions,
                                          .count = list->count,
                                          .leaving = list->leaving,
                                          .leaving_count = list->leaving_count,
                                          .is_online = assigned && assigned->is_online &&
                                                       proposal->survey.workers[number].is_online};
    char key[KEY_MAX];

    (void)snprintf(key, sizeof(key), "assigned/%s", id);
    if (list->leaving_count > 0) { /* time begins anew, for what leaves last */
        proposal->survey.tracked[number]->leaving_since = proposal->now;
    }
    return round_add(proposal->round, list->gives ? STEP_GIVES : STEP_TAKES, key,
                     fleet_assigned_json(&wanted), false, assigned ? assigned->revision : 0);
}

static int add_lists(struct proposal *proposal)
{
    int code = BATON_OK;

    for (size_t i = 0; code == BATON_OK && i < proposal->survey.count; i++) {
        if (proposal->answer.lists[i].is_changed) {
            code = add_list(proposal, i);
        }
    }
    return code;
}

/* Workers that were deleted, and have let go of all, or are away. */
static int delete_workers(struct proposal *proposal)
{
    char key[KEY_MAX];
    int code = BATON_OK;

    for (size_t i = 0; code == BATON_OK && i < proposal->survey.count; i++) {
        const struct plan_worker *worker = &proposal->survey.workers[i];
        if (worker->is_deleted &&
            (!worker->is_online || worker->assigned_count + worker->leaving_count == 0)) {
            (void)snprintf(key, sizeof(key), "worker/%s", worker->id);
            code = round_add(proposal->round, STEP_TAKES, key, NULL, true,
                             proposal->survey.records[i]->revision);
        }
    }
    return code;
}

/* Of workers that are registered no more. */
static int delete_lists(struct proposal *proposal)
{
    const struct fleet_state *state = proposal->master->config.state;
    char key[KEY_MAX];
    int code = BATON_OK;

    for (const struct fleet_assigned *assigned = NULL;
         code == BATON_OK && (assigned = fleet_state_next_assigned(state, assigned));) {
        if (!fleet_state_worker_key(state, assigned->worker)) {
            (void)snprintf(key, sizeof(key), "assigned/%s", assigned->worker);
            code = round_add(proposal->round, STEP_TAKES, key, NULL, true, assigned->revision);
        }
    }
    return code;
}

/* ---- What is unplaced ------------------------------------------------------------------------ */

static const char *reason_of(const struct proposal *proposal, const struct plan_unplaced *entry,
                             char buffer[static REASON_MAX])
{
    if (entry->reason) {
        return entry->reason;
    }
    (void)snprintf(buffer, REASON_MAX, "leaves worker %s first",
                   proposal->survey.workers[entry->leaves].id);
    return buffer;
}

static json_t *unplaced_json(const struct proposal *proposal)
{
    const struct plan_answer *answer = &proposal->answer;
    json_t *list = json_array();
    size_t bytes = 0;

    for (size_t i = 0; i < answer->unplaced_count && bytes < UNPLACED_BYTES; i++) {
        const struct plan_unplaced *entry = &answer->unplaced[i];
        const char *id = proposal->master->catalog.subscriptions[entry->subscription].id;
        char buffer[REASON_MAX];
        const char *reason = reason_of(proposal, entry, buffer);
        bytes += strlen(id) + strlen(reason) + UNPLACED_ENTRY;
        if (json_array_append_new(
                list, json_pack("{s:s,s:s}", "subscription", id, "reason", reason)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:I,s:I,s:o}", "epoch", (json_int_t)proposal->master->epoch, "count",
                     (json_int_t)answer->unplaced_count, "unplaced", list);
}

/* Those that wait for a worker, and are not only on their way. */
static void tell_unplaced(const struct proposal *proposal)
{
    const struct plan_answer *answer = &proposal->answer;
    const struct plan_subscription *subscriptions = proposal->master->catalog.subscriptions;
    const struct plan_unplaced *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < answer->unplaced_count; i++) {
        const struct plan_unplaced *entry = &answer->unplaced[i];
        if (entry->reason && !subscriptions[entry->subscription].withheld) {
            first = first ? first : entry;
            count++;
        }
    }
    if (first) {
        master_tell(proposal->master, "not-placed",
                    json_pack("{s:I,s:s,s:s}", "count", (json_int_t)count, "subscription",
                              subscriptions[first->subscription].id, "reason", first->reason));
    }
}

static int add_unplaced(struct proposal *proposal)
{
    uint64_t revision = 0;
    const json_t *before = fleet_state_unplaced(proposal->master->config.state, &revision);
    json_t *json = unplaced_json(proposal);

    if (json && (before || proposal->answer.unplaced_count == 0) &&
        json_equal(json_object_get(before, "unplaced"), json_object_get(json, "unplaced")) &&
        json_equal(json_object_get(before, "count"), json_object_get(json, "count"))) {
        json_decref(json);
        return BATON_OK;
    }
    if (json && !before && proposal->answer.unplaced_count == 0) {
        json_decref(json);
        return BATON_OK;
    }
    tell_unplaced(proposal);
    return round_add(proposal->round, STEP_GIVES, "unplaced", json, false, revision);
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static bool lists(const struct plan_list *list, const char *id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->subscriptions[i], id) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the move is under way: the subscription gets there now, or when another worker has let it
 * go. */
static bool is_moving(const struct proposal *proposal, const struct fleet_move *move)
{
    const struct plan_answer *answer = &proposal->answer;
    size_t to = 0;

    while (to < proposal->survey.count && strcmp(proposal->survey.workers[to].id, move->to) != 0) {
        to++;
    }
    if (to < proposal->survey.count && lists(&answer->lists[to], move->subscription)) {
        proposal->master->is_due = true; /* once that is stored, the move ends */
        return true;
    }
    for (size_t i = 0; i < answer->unplaced_count; i++) {
        const struct plan_unplaced *entry = &answer->unplaced[i];
        const char *id = proposal->master->catalog.subscriptions[entry->subscription].id;
        if (!entry->reason && entry->target == to && strcmp(id, move->subscription) == 0) {
            return true;
        }
    }
    return false;
}

/* A move is a wish for once: it ends when it is done, and if it cannot be. */
static int end_moves(struct proposal *proposal)
{
    const struct fleet_state *state = proposal->master->config.state;
    char key[KEY_MAX];
    int code = BATON_OK;

    for (const struct fleet_move *move = NULL;
         code == BATON_OK && (move = fleet_state_next_move(state, move));) {
        const char *at = fleet_state_worker_of(state, move->subscription);
        if ((at && strcmp(at, move->to) == 0) || !is_moving(proposal, move)) {
            (void)snprintf(key, sizeof(key), "move/%s", move->subscription);
            code = round_add(proposal->round, STEP_GIVES, key, NULL, true, move->revision);
        }
    }
    return code;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int solve(struct proposal *proposal)
{
    struct master *master = proposal->master;
    struct plan_problem problem = {.workers = proposal->survey.workers,
                                   .worker_count = proposal->survey.count,
                                   .options = master->config.plan};
    int code = catalog_make(master);

    if (code != BATON_OK) {
        return code;
    }
    mark_catalog(master);
    problem.subscriptions = master->catalog.subscriptions;
    problem.subscription_count = master->catalog.count;
    problem.options.balances = master->balances && proposal->survey.is_calm;
    master->balances = false;
    return plan_solve(&problem, &proposal->answer);
}

static int assign(struct proposal *proposal)
{
    int code = solve(proposal);

    (void)(code != BATON_OK || (code = add_lists(proposal)) != BATON_OK ||
           (code = delete_workers(proposal)) != BATON_OK ||
           (code = delete_lists(proposal)) != BATON_OK ||
           (code = add_unplaced(proposal)) != BATON_OK || (code = end_moves(proposal)) != BATON_OK);
    if (code == BATON_OK) {
        proposal->master->counters.plans++;
        proposal->master->counters.moves += proposal->answer.moved;
        headings_set(proposal);
    }
    return code;
}

static bool has_lists(const struct fleet_state *state)
{
    const struct fleet_assigned *assigned = NULL;

    do {
        assigned = fleet_state_next_assigned(state, assigned);
    } while (assigned && assigned->count + assigned->leaving_count == 0);
    return assigned != NULL;
}

/* Waits until all workers were heard of, or for a while: a silent one may be busy. The first plan
 * of a fleet also waits for workers that were registered a moment ago, or the first one would get
 * all. */
static bool may_assign(struct proposal *proposal)
{
    struct master *master = proposal->master;
    instant since = master->opened, patient_until;

    if (!has_lists(master->config.state)) {
        since = instant_max(since, proposal->survey.unheard_since);
    }
    patient_until = instant_add(since, MASTER_PATIENCE);
    if (proposal->survey.unheard == 0 || !instant_before(proposal->now, patient_until)) {
        return true;
    }
    master->check_at = instant_min(master->check_at, patient_until);
    return false;
}

/* All is made before anything is written: a write changes the state, which lends the texts. */
int propose(struct master *master, instant now)
{
    struct proposal proposal = {.master = master, .now = now};
    int code = survey_make(&proposal.survey, master, now);

    if (code != BATON_OK) {
        return code;
    }
    proposal.round = round_new();
    code = proposal.round ? BATON_OK : BATON_ENOMEM;
    (void)(code != BATON_OK ||
           (code = find_register(master, &proposal.survey, proposal.round)) != BATON_OK ||
           (code = processes_own(master, &proposal.survey, proposal.round)) != BATON_OK);
    if (code == BATON_OK && may_assign(&proposal)) {
        code = assign(&proposal);
    }
    plan_answer_fini(&proposal.answer);
    survey_fini(&proposal.survey);
    if (code == BATON_OK) {
        round_begin(proposal.round, master);
    } else {
        round_free(proposal.round);
    }
    return code;
}
