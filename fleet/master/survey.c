#include "fleet/master/master_int.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is known of each ------------------------------------------------------------------- */

static int compare(const void *id, const void *tracked)
{
    return strcmp(id, (*(struct tracked *const *)tracked)->id);
}

static struct tracked *find(const struct master *master, const char *id)
{
    struct tracked **found = master->tracked_count == 0
                                 ? NULL
                                 : bsearch(id, master->tracked, master->tracked_count,
                                           sizeof(struct tracked *), compare);

    return found ? *found : NULL;
}

static struct tracked *track(const char *id, instant now)
{
    struct tracked *tracked = calloc(1, sizeof(*tracked));

    if (tracked) {
        memcpy(tracked->id, id, strlen(id) + 1);
        tracked->since = now;
        tracked->leaving_since = tracked->marked_since = INSTANT_NEVER;
    }
    return tracked;
}

void survey_forget(struct master *master)
{
    for (size_t i = 0; i < master->tracked_count; i++) {
        free(master->tracked[i]);
    }
    free(master->tracked);
    master->tracked = NULL;
    master->tracked_count = 0;
}

/* Makes the tracked ones those of the state, in the order of ids: those that were tracked before
 * and new ones. What is gone is forgotten. */
static int track_all(struct master *master, instant now)
{
    const struct fleet_state *state = master->config.state;
    size_t room = 0, count = 0, before = 0;
    struct tracked **all;
    const struct fleet_worker *record = NULL;

    while ((record = fleet_state_next_worker_key(state, record))) {
        room++;
    }
    all = calloc(room + 1, sizeof(struct tracked *));
    while (all && count < room && (record = fleet_state_next_worker_key(state, record))) {
        while (before < master->tracked_count &&
               strcmp(master->tracked[before]->id, record->id) < 0) {
            free(master->tracked[before]);
            master->tracked[before++] = NULL;
        }
        bool is_known =
            before < master->tracked_count && strcmp(master->tracked[before]->id, record->id) == 0;
        all[count] = is_known ? master->tracked[before] : track(record->id, now);
        if (is_known) {
            master->tracked[before++] = NULL;
        }
        if (!all[count++]) {
            break;
        }
    }
    for (; before < master->tracked_count; before++) {
        free(master->tracked[before]);
    }
    free(master->tracked);
    master->tracked = all;
    master->tracked_count = all ? count : 0;
    if (count > 0 && !all[count - 1]) {
        master->tracked_count--; /* out of memory: the others are known anew later */
        return BATON_ENOMEM;
    }
    return all ? BATON_OK : BATON_ENOMEM;
}

/* What a worker may say is more than a list can have. 0: it says nothing. */
static uint32_t own_limit(const struct fleet_worker *record)
{
    return record->subscriptions_max < PROTOCOL_SUBSCRIPTIONS_MAX ? record->subscriptions_max
                                                                  : PROTOCOL_SUBSCRIPTIONS_MAX;
}

size_t survey_room(const struct master *master, const struct fleet_worker *record)
{
    uint32_t own = own_limit(record);

    return own > 0 ? own : master->config.plan.subscriptions_max;
}

void survey_hear(struct master *master, const struct worker_live *worker)
{
    struct tracked *tracked = find(master, worker->id);
    const struct fleet_worker *record = fleet_state_worker(master->config.state, worker->id);
    const struct fleet_assigned *assigned = fleet_state_assigned(master->config.state, worker->id);
    const struct load_report report = {.cpu = worker->usage.cpu,
                                       .gpu = worker->usage.gpu,
                                       .gpu_memory = worker->usage.gpu_memory,
                                       .memory = worker->usage.memory};

    if (tracked && record) {
        load_hear(&tracked->load, &report, assigned ? assigned->count : 0,
                  survey_room(master, record), worker->heard);
    }
}

static bool has_mark(const struct tracked *tracked)
{
    return tracked->marked_since.ns != INSTANT_NEVER.ns;
}

void survey_hear_mark(struct master *master, const char *id)
{
    struct tracked *tracked = find(master, id);
    const struct fleet_assigned *assigned = fleet_state_assigned(master->config.state, id);

    if (tracked && assigned && assigned->is_online) {
        tracked->marked_since = clock_now();
    } else if (tracked && has_mark(tracked)) {
        master_touch(master);
    }
}

/* ---- As a plan sees them --------------------------------------------------------------------- */

static void check_by(struct master *master, instant at)
{
    master->check_at = instant_min(master->check_at, at);
}

/* One that may be there keeps what it has and gets nothing; but not for ever. */
static void see_doubtful(struct master *master, struct plan_worker *ret, instant since, instant now)
{
    instant silent_at = instant_add(since, MASTER_SILENCE);

    ret->is_cordoned = true;
    ret->is_online = instant_before(now, silent_at);
    if (ret->is_online) {
        check_by(master, silent_at);
    }
}

/* While a worker is marked, its owner may send it the list, whatever it last said. */
static void see_mark(struct tracked *tracked, bool is_marked, instant now)
{
    if (!is_marked) {
        tracked->marked_since = INSTANT_NEVER;
    } else if (!has_mark(tracked)) {
        tracked->marked_since = now;
    }
}

/* What leaves a worker for too long counts as gone: it may hang, or do what it wants. */
static void see_leaving(struct master *master, struct tracked *tracked, struct plan_worker *ret,
                        instant now)
{
    instant overdue_at;

    if (ret->leaving_count == 0 || !ret->is_online || ret->is_in_sync) {
        tracked->leaving_since = INSTANT_NEVER;
        tracked->is_overdue = false;
        return;
    }
    if (tracked->leaving_since.ns == INSTANT_NEVER.ns) {
        tracked->leaving_since = now;
    }
    overdue_at = instant_add(tracked->leaving_since, MASTER_LEAVES_WITHIN);
    if (instant_before(now, overdue_at)) {
        check_by(master, overdue_at);
        return;
    }
    ret->is_in_sync = true;
    if (!tracked->is_overdue) {
        tracked->is_overdue = true;
        master->counters.overdue++;
        master_tell(master, "worker-not-in-sync",
                    json_pack("{s:s,s:s}", "worker", tracked->id, "reason",
                              "it did not let subscriptions go in time; they are given to others"));
    }
}

static void see(struct survey *survey, struct master *master, const struct fleet_worker *record,
                struct tracked *tracked, instant now)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(master->config.state, record->id);
    const struct worker_live *live = worker_table_find(master->config.table, record->id);
    size_t count = assigned ? assigned->count : 0;
    struct plan_worker *worker = &survey->workers[survey->count];

    survey->records[survey->count++] = record;
    *worker = (struct plan_worker){.id = record->id,
                                   .labels = record->labels,
                                   .subscriptions_max = own_limit(record),
                                   .other_permille = tracked->load.other_permille,
                                   .is_settled = load_is_settled(&tracked->load, count, now),
                                   .is_cordoned = record->is_cordoned,
                                   .is_draining = record->is_draining,
                                   .is_deleted = record->is_deleted};
    if (assigned) {
        worker->assigned = assigned->subscriptions;
        worker->assigned_count = assigned->count;
        worker->leaving = assigned->leaving;
        worker->leaving_count = assigned->leaving_count;
    }
    see_mark(tracked, assigned && assigned->is_online, now);
    if (!live) {
        survey->unheard++;
        survey->unheard_since = instant_max(survey->unheard_since, tracked->since);
        see_doubtful(master, worker,
                     has_mark(tracked) ? instant_max(tracked->since, tracked->marked_since)
                                       : tracked->since,
                     now);
    } else if (live->is_online) {
        worker->is_online = true;
        worker->is_in_sync =
            live->is_in_sync && assigned && live->synced_revision == assigned->revision;
    } else if (has_mark(tracked)) {
        see_doubtful(master, worker, instant_max(tracked->marked_since, live->heard), now);
    }
    survey->is_calm &= !worker->is_online || worker->leaving_count == 0;
    see_leaving(master, tracked, worker, now);
}

int survey_make(struct survey *ret, struct master *master, instant now)
{
    int code = track_all(master, now);
    struct survey survey = {
        .tracked = master->tracked, .unheard_since = INSTANT_PAST, .is_calm = true};

    survey.workers = calloc(master->tracked_count + 1, sizeof(*survey.workers));
    survey.records = calloc(master->tracked_count + 1, sizeof(struct fleet_worker *));
    master->check_at = INSTANT_NEVER;
    if (code != BATON_OK || !survey.workers || !survey.records) {
        survey_fini(&survey);
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < master->tracked_count; i++) {
        see(&survey, master, fleet_state_worker_key(master->config.state, master->tracked[i]->id),
            master->tracked[i], now);
    }
    *ret = survey;
    return BATON_OK;
}

void survey_fini(struct survey *survey)
{
    free(survey->workers);
    free(survey->records);
}
