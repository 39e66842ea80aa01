#include "fleet/master/master_int.h"

#include "base/error.h"
#include "member/handover.h"

#include <stdlib.h>
#include <string.h>

enum { POLL_MS = 2, BUSY_SHARE = 2 };

#define RETRY_FIRST    SPAN_MS(50)
#define RETRY_MOST     SPAN_S(5)
#define COMPLAIN_EVERY SPAN_S(10)

/* ---- Telling --------------------------------------------------------------------------------- */

void master_tell(struct master *master, const char *name, json_t *fields)
{
    if (master->config.on_event && fields) {
        master->config.on_event(master->config.userdata, name, fields);
    } else {
        json_decref(fields);
    }
}

static void complain(struct master *master, const char *name, const char *field,
                     const struct baton_error *error)
{
    instant now = clock_now();

    if (!instant_before(now, instant_add(master->complained, COMPLAIN_EVERY))) {
        master->complained = now;
        master_tell(master, name, json_pack("{s:s}", field, error->message));
    }
}

void master_complain(struct master *master, const struct baton_error *error)
{
    complain(master, "master-failed", "reason", error);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void arm_in(struct master *master, span left)
{
    int64_t ms = left.ns > 0 ? (left.ns + 999999) / 1000000 : 0;

    /* Of 0 ms it would be run again and again before the loop looks at its sockets. */
    (void)uv_timer_start(&master->timer, on_timer, ms > 0 ? (uint64_t)ms : 1, 0);
}

/* The master before may have given something that the feed has not brought yet. */
static bool is_ready(const struct master *master)
{
    const struct fleet_state *state = master->config.state;

    return fleet_state_is_ready(state) && fleet_state_has_loaded(state, master->load) &&
           master->processes;
}

static void arm(struct master *master)
{
    instant next = instant_min(master->balance_at, master->ask_at);

    if (master->epoch == 0 || master->is_retired || master->closed) {
        return;
    }
    /* Nobody tells that the state is ready, or that a lease which seemed over goes on. */
    if (!is_ready(master) || !master_may_write(master)) {
        next = instant_min(next, instant_add(clock_now(), SPAN_MS(POLL_MS)));
    } else if (!master->round) {
        next = instant_min(next, master->check_at);
        next = master->is_due ? instant_min(next, master->plan_at) : next;
    }
    arm_in(master, instant_since(next, clock_now()));
}

void master_touch(struct master *master)
{
    master->is_due = true;
    arm(master);
}

bool master_may_write(const struct master *master)
{
    uint64_t epoch;

    return master->epoch != 0 && !master->is_retired && master->candidacy.election &&
           election_is_leader(master->candidacy.election, &epoch) && epoch == master->epoch &&
           !handover_is_going(master->candidacy.election);
}

static void retry_later(struct master *master)
{
    master->retry_in = master->retry_in.ns == 0 ? RETRY_FIRST : SPAN_NS(2 * master->retry_in.ns);
    if (master->retry_in.ns > RETRY_MOST.ns) {
        master->retry_in = RETRY_MOST;
    }
    master->plan_at = instant_add(clock_now(), master->retry_in);
    master->is_due = master->is_owners_due = true;
}

static void on_left(struct candidacy *candidacy);

/* Not before the round's end: a write that is under way may be stored after the next master has
 * read the state, which then gives the same to another worker. */
static void let_go(struct master *master)
{
    if (master->round) {
        return;
    }
    if (master->closed) { /* first: the end of the hold may end leadership, and come here again */
        candidacy_leave(&master->candidacy, on_left);
    } else if (master->is_held) {
        master->is_held = false;
        handover_release(master->candidacy.election);
    }
}

void master_on_round(struct master *master, bool is_stored)
{
    if (is_stored) {
        master->retry_in = SPAN_NS(0);
    } else {
        retry_later(master);
    }
    arm(master);
    let_go(master);
}

static void plan(struct master *master, instant now)
{
    int code;
    span took;

    master->is_due = false;
    master->plan_at = INSTANT_PAST;
    code = propose(master, now);
    took = instant_since(clock_now(), now);
    master->counters.plan_us += (uint64_t)(took.ns / 1000);
    if (code != BATON_OK) {
        master_complain(master, &(struct baton_error){code, "a plan ran out of memory"});
        retry_later(master);
        return;
    }
    took = took.ns * BUSY_SHARE > MASTER_GAP.ns ? SPAN_NS(took.ns * BUSY_SHARE) : MASTER_GAP;
    master->plan_at = instant_max(master->plan_at, instant_add(now, took));
}

static void on_timer(uv_timer_t *timer)
{
    struct master *master = timer->data;
    instant now = clock_now();

    if (!instant_before(now, master->balance_at)) {
        master->balance_at = instant_add(now, MASTER_BALANCE_EVERY);
        master->balances = master->is_due = true;
        master->ask_at = now;
    }
    if (!instant_before(now, master->ask_at)) {
        processes_ask(master);
    }
    if (!instant_before(now, master->check_at)) {
        master->check_at = INSTANT_NEVER; /* the plan sets it, which may have to wait */
        master->is_due = true;
    }
    if (is_ready(master) && master->is_due && !master->round &&
        !instant_before(now, master->plan_at) && master_may_write(master)) {
        plan(master, now);
    }
    arm(master);
}

/* ---- Leading --------------------------------------------------------------------------------- */

static void begin(struct master *master, uint64_t epoch)
{
    instant now = clock_now();

    master->epoch = epoch;
    master->is_retired = false;
    master->is_due = master->is_owners_due = true;
    master->balances = false;
    master->plan_at = now;
    master->check_at = INSTANT_NEVER;
    master->balance_at = instant_add(now, MASTER_BALANCE_EVERY);
    master->ask_at = INSTANT_NEVER;
    master->retry_in = SPAN_NS(0);
    master->load = fleet_state_load_again(master->config.state);
    processes_ask(master);
    arm(master);
}

static void end(struct master *master)
{
    master->epoch = 0;
    round_drop(master->round);
    headings_clear(master);
    survey_forget(master);
    (void)uv_timer_stop(&master->timer);
}

/* Another master has written: this one has lost the election and does not know it yet. */
static void retire(struct master *master, const char *key, uint64_t epoch)
{
    if (!master->is_retired) {
        master->is_retired = true;
        round_drop(master->round);
        (void)uv_timer_stop(&master->timer);
        master_tell(master, "master-superseded",
                    json_pack("{s:s,s:I,s:s}", "key", key, "epoch", (json_int_t)epoch, "reason",
                              "a newer master wrote this key; if no process leads with this epoch, "
                              "another program did: pass leadership on, or restart this process"));
        let_go(master);
    }
}

static void on_event(struct candidacy *candidacy, const struct baton_event *event)
{
    struct master *master = CANDIDACY_OF(struct master, candidacy, candidacy);

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        if (!master->closed) {
            begin(master, event->epoch);
        }
        break;
    case BATON_EVENT_LOST:
    case BATON_EVENT_STOPPED:
        end(master);
        let_go(master);
        break;
    case BATON_EVENT_ELECTION_FAILED:
        if (event->lease_left_ns > 0) {
            complain(master, "election-failed", "error", &event->error);
        }
        break;
    case BATON_EVENT_DRAIN:
        if (master->round) {
            master->is_held = true;
            handover_hold(master->candidacy.election);
        }
        break;
    case BATON_EVENT_ERROR:
        if (master->config.on_error) {
            master->config.on_error(master->config.userdata, &event->error);
        }
        break;
    case BATON_EVENT_LEADER:
        master_tell(master, baton_event_name(event->type),
                    json_pack("{s:s,s:I}", "leader", event->member.name, "epoch",
                              (json_int_t)event->epoch));
        break;
    case BATON_EVENT_MEMBER_JOINED:
    case BATON_EVENT_MEMBER_LEFT:
        master_tell(master, baton_event_name(event->type),
                    json_pack("{s:s}", "process", event->member.name));
        if (!master->closed) {
            processes_ask(master);
        }
        break;
    default:
        break;
    }
}

/* ---- What changes ---------------------------------------------------------------------------- */

/* A value of the master's own keys: what another one wrote counts, what this one wrote is known. */
static void take_epoch(struct master *master, const char *key, uint64_t epoch)
{
    if (epoch > master->epoch) {
        retire(master, key, epoch);
    } else if (epoch < master->epoch) {
        master->is_owners_due = true;
        master_touch(master);
    }
}

static uint64_t epoch_of(const json_t *json)
{
    json_int_t epoch = json_integer_value(json_object_get(json, "epoch"));

    return epoch > 0 ? (uint64_t)epoch : 0; /* another program may have written the value */
}

static void on_own_key(struct master *master, const struct fleet_state_event *event)
{
    const struct fleet_state *state = master->config.state;
    const struct fleet_assigned *assigned;

    if (event->change == FLEET_CHANGED_ASSIGNED) {
        assigned = fleet_state_assigned(state, event->id);
        take_epoch(master, event->id, assigned ? assigned->epoch : 0);
        survey_hear_mark(master, event->id);
    } else if (event->change == FLEET_CHANGED_OWNERS) {
        take_epoch(master, "owners", epoch_of(fleet_state_owners(state, NULL)));
    } else {
        take_epoch(master, "unplaced", epoch_of(fleet_state_unplaced(state, NULL)));
    }
}

static void on_state(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct master *master =
        (struct master *)((char *)observer - offsetof(struct master, state_observer));
    bool counts = event->change == FLEET_CHANGED_WORKER || event->change == FLEET_CHANGED_MOVE ||
                  (event->change == FLEET_CHANGED_OBJECT && event->kind != FLEET_DISPLAY);

    master->catalog.is_made &= event->change != FLEET_CHANGED_OBJECT || !counts;
    if (master->epoch == 0) {
        return;
    }
    master->is_owners_due |= event->change == FLEET_CHANGED_WORKER;
    if (counts) {
        master_touch(master);
    } else if (event->change == FLEET_CHANGED_MARK) {
        survey_hear_mark(master, event->id);
    } else if (event->change == FLEET_CHANGED_ASSIGNED || event->change == FLEET_CHANGED_OWNERS ||
               event->change == FLEET_CHANGED_UNPLACED) {
        on_own_key(master, event);
    }
}

static void on_worker(struct worker_observer *observer, const struct worker_live *worker,
                      enum worker_change change)
{
    struct master *master =
        (struct master *)((char *)observer - offsetof(struct master, table_observer));
    const struct fleet_assigned *assigned;

    if (master->epoch == 0) {
        return;
    }
    switch (change) {
    case WORKER_CHANGED_REPORT:
        survey_hear(master, worker);
        break;
    case WORKER_CHANGED_SYNC:
        assigned = fleet_state_assigned(master->config.state, worker->id);
        if (assigned && assigned->leaving_count > 0) {
            master_touch(master);
        }
        break;
    case WORKER_CHANGED_ONLINE:
    case WORKER_CHANGED_OFFLINE:
        master_touch(master);
        break;
    default:
        break;
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_timer_closed(uv_handle_t *handle)
{
    struct master *master = handle->data;
    void (*closed)(void *userdata) = master->closed;
    void *userdata = master->closed_userdata;

    processes_fini(master);
    catalog_fini(&master->catalog);
    free(master);
    if (closed) {
        closed(userdata);
    }
}

/* No callback of the parts below comes any more. */
static void discard(struct master *master)
{
    fleet_state_ignore(master->config.state, &master->state_observer);
    worker_table_ignore(master->config.table, &master->table_observer);
    find_close(master->find);
    master->find = NULL;
    uv_close((uv_handle_t *)&master->timer, on_timer_closed);
}

int master_open(struct master **ret, const struct master_config *config, struct baton_error *reterr)
{
    struct member *member = fleet_state_member(config->state);
    struct master *master = calloc(1, sizeof(*master));
    int code;

    if (!master) {
        return error_set(reterr, BATON_ENOMEM, "master of fleet \"%s\": out of memory",
                         fleet_state_name(config->state));
    }
    master->config = *config;
    master->opened = clock_now();
    master->complained = INSTANT_PAST;
    master->twins_since = INSTANT_NEVER;
    if (config->twins_last.ns == 0) {
        master->config.twins_last = MASTER_TWINS_LAST;
    }
    (void)uv_timer_init(member_loop(member), &master->timer);
    master->timer.data = master;
    master->state_observer.on_change = on_state;
    master->table_observer.on_change = on_worker;
    fleet_state_observe(config->state, &master->state_observer);
    worker_table_observe(config->table, &master->table_observer);
    *ret = master;
    code = find_open(&master->find, master, reterr);
    code = code ? code
                : candidacy_begin(&master->candidacy, member, fleet_state_name(config->state), NULL,
                                  on_event, reterr);
    if (code != BATON_OK) {
        *ret = NULL;
        discard(master);
        return code;
    }
    processes_ask(master);
    return BATON_OK;
}

static void on_left(struct candidacy *candidacy)
{
    struct master *master = CANDIDACY_OF(struct master, candidacy, candidacy);

    end(master);
    discard(master);
}

void master_close(struct master *master, void (*closed)(void *userdata), void *userdata)
{
    master->closed = closed;
    master->closed_userdata = userdata;
    (void)uv_timer_stop(&master->timer);
    let_go(master);
}

bool master_leads(const struct master *master, uint64_t *ret_epoch)
{
    return master->candidacy.election && election_is_leader(master->candidacy.election, ret_epoch);
}

struct election *master_election(const struct master *master)
{
    return master->candidacy.election;
}

size_t master_process_count(const struct master *master)
{
    return master->process_count;
}

const struct master_counters *master_counters(const struct master *master)
{
    return &master->counters;
}
