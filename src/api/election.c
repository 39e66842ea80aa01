/* An election: its beginning, its state, and its end. */
#include "api/election.h"

#include "api/handover.h"
#include "api/leaders.h"
#include "api/listener.h"
#include "api/notice.h"
#include "api/perform.h"
#include "api/sized.h"
#include "member/join.h"

#include <sched.h>
#include <stdlib.h>

/* ---- Events from the provider ---------------------------------------------------------------- */

/* NULL, or a member without an id: no leader; without memory the leader is unknown until its next
 * event. */
static void take_leader_locked(struct baton_election *election, const struct baton_member *member,
                               uint64_t epoch)
{
    struct leader *before = election->leader;

    election->leader = member && member->id[0] ? leader_get_locked(election->baton, member) : NULL;
    election->leader_epoch = epoch;
    leader_drop_locked(election->baton, before);
}

static void remember(struct baton_election *election, const struct baton_event *event)
{
    lock(election->baton);
    switch (event->type) {
    case BATON_EVENT_ROLE:
        election->role = (uint8_t)event->role;
        break;
    case BATON_EVENT_ACQUIRED:
        election->role = BATON_ROLE_LEADER;
        break;
    case BATON_EVENT_LOST:
        election->role = BATON_ROLE_FOLLOWER;
        break;
    case BATON_EVENT_LEADER:
        take_leader_locked(election, &event->member, event->epoch);
        break;
    case BATON_EVENT_STOPPED:
        election->role = BATON_ROLE_FOLLOWER;
        take_leader_locked(election, NULL, 0);
        election->is_stopped = true;
        break;
    default:
        break;
    }
    (void)pthread_cond_broadcast(&election->baton->changed);
    unlock(election->baton);
}

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct baton_election *election = OBSERVER_OF(struct baton_election, observer);

    remember(election, event);
    if (event->type == BATON_EVENT_DRAIN) {
        drain_begin(election);
    }
    listeners_tell(election, event);
    if (event->type == BATON_EVENT_STOPPED) {
        drain_end(election);
    }
}

/* ---- Beginning ------------------------------------------------------------------------------- */

struct campaign_call {
    struct call base;
    struct baton_election *election;
    const struct baton_campaign_options *options; /* its caller waits without a limit */
};

static void run_campaign(struct call *base)
{
    struct campaign_call *call = (struct campaign_call *)base;
    struct baton_election *election = call->election;
    struct baton_error error = {0};
    int code = election_join(part_of(election), base->baton->member, call->options->observes,
                             call->options->metadata, &error);

    if (code == BATON_OK) {
        lock(base->baton);
        election->next = base->baton->elections;
        base->baton->elections = election;
        unlock(base->baton);
    }
    call_finish(base, code, &error);
}

void handle_free(struct baton_election *election)
{
    if (election) {
        lock(election->baton);
        leader_drop_locked(election->baton, election->leader);
        unlock(election->baton);
        election_fini(part_of(election));
        free(election);
    }
}

static struct baton_election *handle_new(struct baton *baton, const char *name)
{
    struct baton_election *election = calloc(1, sizeof(*election) + election_bytes(name));

    if (!election || election_init(part_of(election), name, NULL) != BATON_OK) {
        free(election);
        return NULL;
    }
    election->baton = baton;
    election->observer.on_event = on_event;
    election_observe(part_of(election), &election->observer);
    return election;
}

int baton_campaign(struct baton_election **ret, struct baton *baton, const char *name,
                   const struct baton_campaign_options *options, struct baton_error *reterr)
{
    struct baton_campaign_options own;
    struct campaign_call *call;
    struct baton_election *election;
    int code = check_owner(baton, reterr);

    code = code ? code
                : sized_copy(&own, sizeof(own), options, "struct baton_campaign_options", reterr);
    if (code != BATON_OK) {
        return code;
    }
    election = handle_new(baton, name);
    call = call_new(baton, sizeof(*call), run_campaign);
    if (!election || !call) {
        code = error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", name);
    } else {
        call->election = election;
        call->options = &own;
        code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    }
    if (call) {
        call_unref(&call->base);
    }
    if (code != BATON_OK) {
        handle_free(election);
        return code;
    }
    *ret = election;
    return BATON_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

struct leave_call {
    struct call base;
    struct departure departure;
    struct baton_election *election;
};

static void on_left(struct departure *departure)
{
    struct leave_call *call =
        (struct leave_call *)((char *)departure - offsetof(struct leave_call, departure));

    call_finish(&call->base, BATON_OK, NULL);
}

static void run_leave(struct call *base)
{
    struct leave_call *call = (struct leave_call *)base;

    call->departure.left = on_left;
    election_leave(part_of(call->election), &call->departure);
}

/* Out of memory must not keep a leader in office: it tries until there is some. */
int baton_leave(struct baton_election *election, struct baton_error *reterr)
{
    struct baton *baton = election ? election->baton : NULL;
    struct leave_call *call;
    int code = election ? check_owner(baton, reterr) : BATON_OK;

    if (!election || code != BATON_OK) {
        return code;
    }
    if (on_loop(baton) || listener_runs_for(election)) {
        return perform_refuse(reterr); /* it would free the election under its listener */
    }
    while (!(call = call_new(baton, sizeof(*call), run_leave))) {
        (void)sched_yield();
    }
    call->election = election;
    if (perform(&call->base, INT64_MAX, BATON_OK, NULL) == BATON_ECLOSED) {
        baton_stop(baton); /* another thread is stopping it: wait for its end */
    }
    call_unref(&call->base);
    lock(baton);
    for (struct baton_election **at = &baton->elections; *at; at = &(*at)->next) {
        if (*at == election) {
            *at = election->next;
            break;
        }
    }
    unlock(baton);
    listeners_end(election);
    handle_free(election);
    return BATON_OK;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

bool baton_is_leader(const struct baton_election *election)
{
    return election_is_leader(part_of(election), NULL);
}

bool baton_leadership(const struct baton_election *election, uint64_t *ret_epoch)
{
    return election_is_leader(part_of(election), ret_epoch);
}

int64_t baton_lease_remaining(const struct baton_election *election)
{
    return election_lease_left(part_of(election)).ns;
}

uint64_t baton_epoch(const struct baton_election *election)
{
    return election_epoch(part_of(election));
}

enum baton_role baton_role(const struct baton_election *election)
{
    struct baton *baton = election->baton;
    enum baton_role role;

    if (baton_is_leader(election)) {
        return BATON_ROLE_LEADER;
    }
    if (check_owner(baton, NULL) != BATON_OK) {
        return BATON_ROLE_FOLLOWER; /* the lock may have been held when the child was made */
    }
    lock(baton);
    role = (enum baton_role)election->role;
    unlock(baton);
    return role == BATON_ROLE_LEADER ? BATON_ROLE_FOLLOWER : role;
}

int baton_leader(struct baton_election *election, struct baton_member *ret, uint64_t *ret_epoch,
                 struct baton_error *reterr)
{
    struct baton *baton = election->baton;
    int code = check_owner(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    lock(baton);
    if (baton->phase != BATON_RUNNING || election->is_stopped) {
        code = error_set(reterr, BATON_ECLOSED, "the handle was closed: open another one");
    } else if (!election->leader) {
        code = error_set(reterr, BATON_ENOENT, "election \"%s\": no leader is known here now",
                         baton_election_name(election));
    } else {
        *ret = *leader_member(election->leader);
        if (ret_epoch) {
            *ret_epoch = election->leader_epoch;
        }
    }
    unlock(baton);
    return code;
}

const char *baton_election_name(const struct baton_election *election)
{
    return election_name(part_of(election));
}

struct baton *baton_of(const struct baton_election *election)
{
    return election->baton;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static bool has_result(const struct baton_election *election)
{
    return election->leader != NULL;
}

static int wait_until(struct baton_election *election,
                      bool (*holds)(const struct baton_election *election), const char *what,
                      int64_t timeout_ms, struct baton_error *reterr)
{
    struct baton *baton = election->baton;
    instant deadline = perform_deadline(timeout_ms);
    int code = check_owner(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    lock(baton);
    for (;;) {
        if (holds(election)) {
            break;
        }
        if (baton->phase != BATON_RUNNING || election->is_stopped) {
            code = error_set(reterr, BATON_ECLOSED, "election \"%s\": it was stopped",
                             baton_election_name(election));
            break;
        }
        if (on_loop(baton)) {
            code = error_set(reterr, BATON_EDEADLK,
                             "election \"%s\": the loop's thread cannot wait for itself; call from "
                             "another thread",
                             baton_election_name(election));
            break;
        }
        if (!perform_wait_locked(baton, &baton->changed, deadline)) {
            code = error_set(reterr, BATON_ETIMEDOUT, "election \"%s\": %s in time",
                             baton_election_name(election), what);
            break;
        }
    }
    unlock(baton);
    return code;
}

int baton_wait(struct baton_election *election, int64_t timeout_ms, struct baton_error *reterr)
{
    return wait_until(election, has_result, "nobody was elected", timeout_ms, reterr);
}

int baton_wait_leadership(struct baton_election *election, int64_t timeout_ms,
                          struct baton_error *reterr)
{
    return wait_until(election, baton_is_leader, "this process was not elected", timeout_ms,
                      reterr);
}
