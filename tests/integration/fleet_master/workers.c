/* The workers, their owners, and what is watched. */
#include "fleet/workers/claim.h"
#include "yard_int.h"

#include <string.h>
#include <unistd.h>

enum { SUBSCRIPTIONS_MAX = 64 };

bool yard_marks_fail;

/* ---- Workers --------------------------------------------------------------------------------- */

static struct {
    char id[16];
    char process[8];
    struct worker_live live;
    struct claim claim; /* of its owner; without a state: it has none */
    bool is_heard;
    uint64_t revision; /* of the latest list that it may have */
    bool may_run[SUBSCRIPTIONS_MAX];
} workers[YARD_WORKERS];

static bool confirms_always;
static char subscriptions[SUBSCRIPTIONS_MAX][64]; /* all that were ever assigned */

static size_t number_of(const char *subscription)
{
    size_t i = 0;

    while (subscriptions[i][0] && strcmp(subscriptions[i], subscription) != 0) {
        i++;
        assert_true(i < SUBSCRIPTIONS_MAX);
    }
    if (!subscriptions[i][0]) {
        (void)snprintf(subscriptions[i], sizeof(subscriptions[i]), "%s", subscription);
    }
    return i;
}

static size_t find(const char *id)
{
    size_t i = 0;

    while (workers[i].id[0] && strcmp(workers[i].id, id) != 0) {
        i++;
        assert_true(i < YARD_WORKERS);
    }
    if (!workers[i].id[0]) {
        (void)snprintf(workers[i].id, sizeof(workers[i].id), "%s", id);
    }
    return i;
}

static void run_nothing(size_t number)
{
    memset(workers[number].may_run, 0, sizeof(workers[number].may_run));
}

/* Those of the list, too. */
static void run(size_t number, const struct fleet_assigned *assigned)
{
    if (assigned && assigned->revision > workers[number].revision) {
        workers[number].revision = assigned->revision;
    }
    for (size_t i = 0; assigned && workers[number].live.is_online && i < assigned->count; i++) {
        workers[number].may_run[number_of(assigned->subscriptions[i])] = true;
    }
}

static void watch(void)
{
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        const char *has = NULL;
        for (size_t j = 0; j < YARD_WORKERS; j++) {
            if (workers[j].live.is_online && workers[j].may_run[i]) {
                if (has) { /* fail_msg() would jump out of the loop's callback, for good */
                    print_error("%s may run at %s and at %s\n", subscriptions[i], has,
                                workers[j].id);
                    _exit(1);
                }
                has = workers[j].id;
            }
        }
    }
}

/* ---- Their owners ---------------------------------------------------------------------------- */

static struct fleet_state *state_of_owner(const char *worker)
{
    const char *name = yard_owner(worker, 0);

    for (int i = 0; i < PEERS; i++) {
        if (peers[i].state && fleet_state_is_ready(peers[i].state) &&
            strcmp(peers[i].name, name) == 0) {
            return peers[i].state;
        }
    }
    return yard_state();
}

/* It gets its list. */
static void on_settled(struct claim *claim)
{
    size_t number = find(claim->worker);

    if (claim_is_online(claim)) {
        run(number, fleet_state_assigned(claim->state, claim->worker));
        watch();
    }
}

static void claim_worker(size_t number)
{
    struct claim *claim = &workers[number].claim;
    struct fleet_state *owner = state_of_owner(workers[number].id);

    if (yard_marks_fail) {
        return;
    }
    if (claim->state != owner) {
        claim_fini(claim);
        *claim =
            (struct claim){.state = owner, .worker = workers[number].id, .on_settled = on_settled};
        claim_set(claim, workers[number].live.is_online ? CLAIM_ONLINE : CLAIM_OFFLINE);
    }
    claim_step(claim);
}

/* Workers go on with what they have, until another one owns them. */
void workers_leave(const struct fleet_state *state)
{
    for (size_t i = 0; i < YARD_WORKERS; i++) {
        if (workers[i].claim.state == state) {
            claim_fini(&workers[i].claim);
            workers[i].claim.state = NULL;
        }
    }
}

static void tell(size_t number, enum worker_change change)
{
    for (int i = 0; i < PEERS; i++) {
        struct worker_observer *next;
        for (struct worker_observer *at = peers[i].table ? peers[i].table->observers : NULL; at;
             at = next) {
            next = at->next;
            at->on_change(at, &workers[number].live, change);
        }
    }
}

void worker_table_observe(struct worker_table *table, struct worker_observer *observer)
{
    observer->next = table->observers;
    table->observers = observer;
}

void worker_table_ignore(struct worker_table *table, const struct worker_observer *observer)
{
    struct worker_observer **at = &table->observers;

    while (*at != observer) {
        at = &(*at)->next;
    }
    *at = observer->next;
}

const struct worker_live *worker_table_find(const struct worker_table *table, const char *id)
{
    for (size_t i = 0; i < YARD_WORKERS; i++) {
        if (workers[i].is_heard && strcmp(workers[i].id, id) == 0) {
            return &workers[i].live;
        }
    }
    return NULL;
}

void yard_hear(const char *id, bool is_online)
{
    size_t number = find(id);
    struct worker_live *live = &workers[number].live;

    (void)snprintf(workers[number].process, sizeof(workers[number].process), "%s",
                   is_online ? yard_owner(id, 0) : "");
    *live = (struct worker_live){.id = workers[number].id,
                                 .process = workers[number].process,
                                 .is_online = is_online,
                                 .since = clock_now(),
                                 .heard = clock_now()};
    workers[number].is_heard = true;
    run_nothing(number);
    if (yard_marks_fail) {
        workers[number].claim.wanted = CLAIM_NONE;
    } else if (workers[number].claim.state) {
        claim_set(&workers[number].claim, is_online ? CLAIM_ONLINE : CLAIM_OFFLINE);
        claim_step(&workers[number].claim);
    } else {
        claim_worker(number);
    }
    tell(number, is_online ? WORKER_CHANGED_ONLINE : WORKER_CHANGED_OFFLINE);
}

void yard_report(const char *id, double cpu)
{
    size_t number = find(id);

    workers[number].live.usage.cpu = cpu;
    workers[number].live.heard = clock_now();
    tell(number, WORKER_CHANGED_REPORT);
}

void yard_confirm(const char *id)
{
    size_t number = find(id);
    struct claim *claim = &workers[number].claim;
    const struct fleet_assigned *assigned =
        claim->state && claim_is_online(claim) ? fleet_state_assigned(claim->state, id) : NULL;
    struct worker_live *live = &workers[number].live;

    if (assigned && live->is_online && live->synced_revision != assigned->revision) {
        live->is_in_sync = true;
        live->synced_revision = assigned->revision;
        run_nothing(number);
        run(number, assigned);
        watch();
        tell(number, WORKER_CHANGED_SYNC);
    }
}

void yard_confirm_always(bool always)
{
    confirms_always = always;
}

/* ---- What is stored ---------------------------------------------------------------------------
 */

static struct fleet_observer watcher;
static struct fleet_state *watched;

/* What an online worker has is in nobody else's list, not even in that of a dead one. But a peer
 * that writes one list may know it before another one that was stored earlier: so what seems to be
 * in two lists is only so if the one that was stored first was not changed in between. */
static struct suspicion {
    const char *worker; /* whose list was stored first; NULL: none */
    uint64_t until;     /* the other list's revision */
    char subscription[64];
} suspicions[SUBSCRIPTIONS_MAX];

static bool lists(const struct fleet_assigned *assigned, const char *subscription)
{
    for (size_t i = 0; assigned && i < assigned->count; i++) {
        if (strcmp(assigned->subscriptions[i], subscription) == 0) {
            return true;
        }
    }
    return false;
}

static void suspect(const struct fleet_assigned *one, const struct fleet_assigned *other,
                    const char *subscription)
{
    const struct fleet_assigned *first = one->revision < other->revision ? one : other;
    struct suspicion *free_one = suspicions;

    while (free_one->worker) {
        free_one++;
        assert_true(free_one < suspicions + SUBSCRIPTIONS_MAX);
    }
    free_one->worker = workers[find(first->worker)].id;
    free_one->until = first == one ? other->revision : one->revision;
    (void)snprintf(free_one->subscription, sizeof(free_one->subscription), "%s", subscription);
}

/* The worker has another list now. */
static void clear_up(const char *id)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(watched, id);

    for (struct suspicion *at = suspicions; at < suspicions + SUBSCRIPTIONS_MAX; at++) {
        if (!at->worker || strcmp(at->worker, id) != 0) {
            continue;
        }
        if (assigned && assigned->revision > at->until) {
            fail_msg("%s was in the list of %s and in that of another one", at->subscription, id);
        }
        at->worker = lists(assigned, at->subscription) ? at->worker : NULL;
    }
}

static void watch_lists(const char *id)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(watched, id);

    clear_up(id);
    for (size_t i = 0; assigned && workers[find(id)].live.is_online && i < assigned->count; i++) {
        for (const struct fleet_assigned *other = NULL;
             (other = fleet_state_next_assigned(watched, other));) {
            if (other != assigned && lists(other, assigned->subscriptions[i])) {
                suspect(assigned, other, assigned->subscriptions[i]);
            }
        }
    }
}

/* Each list that is stored may run from now on; one may be told of late, by another peer. */
static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    if (event->change == FLEET_CHANGED_ASSIGNED) {
        size_t number = find(event->id);
        const struct fleet_assigned *assigned = fleet_state_assigned(watched, event->id);
        if (assigned && assigned->revision > workers[number].revision &&
            claim_is_online(&workers[number].claim)) {
            run(number, assigned);
        }
        watch();
        watch_lists(event->id);
    }
}

void workers_watch(struct fleet_state *state)
{
    if (watched) {
        fleet_state_ignore(watched, &watcher);
    }
    watched = state;
    memset(suspicions, 0, sizeof(suspicions));
    if (watched) {
        watcher.on_change = on_change;
        fleet_state_observe(watched, &watcher);
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

void workers_turn(void)
{
    for (size_t i = 0; yard_state() && i < YARD_WORKERS; i++) {
        if (workers[i].is_heard) {
            claim_worker(i);
        }
        if (workers[i].is_heard && confirms_always) {
            yard_confirm(workers[i].id);
        }
    }
}

void workers_reset(void)
{
    confirms_always = true;
    yard_marks_fail = false;
    memset(workers, 0, sizeof(workers));
    memset(subscriptions, 0, sizeof(subscriptions));
}

void workers_check(void)
{
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        assert_true(!suspicions[i].worker || faults_is_any_late());
    }
}
