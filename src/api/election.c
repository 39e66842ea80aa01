/* An election: its beginning, what is known of it, and its end. */
#include "api/internal.h"

#include "base/invariant.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- Events from the provider ---------------------------------------------------------------- */

/* NULL, or one without an id: nobody. So it is without memory for it, until it is told again. */
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
        election->role = event->role;
        break;
    case BATON_EVENT_ACQUIRED:
        election->role = BATON_ROLE_LEADER;
        election->acquired_epoch = event->epoch;
        break;
    case BATON_EVENT_LOST:
        election->role = BATON_ROLE_FOLLOWER;
        election->acquired_epoch = 0;
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

static void on_event(void *userdata, const struct baton_event *event)
{
    struct baton_election *election = userdata;

    remember(election, event);
    handover_event(election, event);
    if (event->type != BATON_EVENT_DRAIN) {
        listeners_tell(election, event);
    }
    if (event->type == BATON_EVENT_ACQUIRED) {
        handover_acquired(election);
    }
    if (event->type == BATON_EVENT_STOPPED) {
        election->provider = NULL;
        if (election->leaving) {
            struct call *leaving = election->leaving;
            election->leaving = NULL;
            call_finish(leaving, BATON_OK, NULL);
        }
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
    struct provider_campaign campaign = {
        .election = election->name,
        .eligible = !call->options->observes,
        .metadata = call->options->metadata,
        .cell = election->cell,
        .on_event = on_event,
        .userdata = election,
    };
    struct provider *provider = base->baton->provider;
    struct baton_error error;
    int code = provider->ops->campaign(&election->provider, provider, &campaign, &error);

    if (code == BATON_OK) {
        lock(base->baton);
        election->next = base->baton->elections;
        base->baton->elections = election;
        unlock(base->baton);
    }
    call_finish(base, code, &error);
}

void election_free(struct baton_election *election)
{
    if (election) {
        lock(election->baton);
        leader_drop_locked(election->baton, election->leader);
        unlock(election->baton);
        lease_cell_free(election->cell);
        free(election);
    }
}

static struct baton_election *election_new(struct baton *baton, const char *name)
{
    size_t name_bytes = strlen(name) + 1;
    struct baton_election *election = calloc(1, sizeof(*election) + name_bytes);

    if (election) {
        election->baton = baton;
        memcpy(election->name, name, name_bytes);
        election->cell = lease_cell_new();
        if (!election->cell) {
            free(election);
            election = NULL;
        }
    }
    return election;
}

static int check_campaign(const char *name, const struct baton_campaign_options *options,
                          struct baton_error *reterr)
{
    if (!name[0] || strlen(name) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes", name,
                         BATON_NAME_MAX - 1);
    }
    return metadata_check(options->metadata, reterr);
}

int baton_campaign(struct baton_election **ret, struct baton *baton, const char *name,
                   const struct baton_campaign_options *options, struct baton_error *reterr)
{
    static const struct baton_campaign_options nothing;
    struct campaign_call *call;
    struct baton_election *election;
    int code = check_owner(baton, reterr);

    options = options ? options : &nothing;
    if (code == BATON_OK) {
        code = check_campaign(name, options, reterr);
    }
    if (code != BATON_OK) {
        return code;
    }
    election = election_new(baton, name);
    call = call_new(baton, sizeof(*call), run_campaign);
    if (!election || !call) {
        code = error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", name);
    } else {
        call->election = election;
        call->options = options;
        code = call_perform(&call->base, INT64_MAX, BATON_EBUSY, reterr);
    }
    if (call) {
        call_unref(&call->base);
    }
    if (code != BATON_OK) {
        election_free(election);
        return code;
    }
    *ret = election;
    return BATON_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

struct leave_call {
    struct call base;
    struct baton_election *election;
};

static void run_leave(struct call *base)
{
    struct baton_election *election = ((struct leave_call *)base)->election;

    if (!election->provider) {
        call_finish(base, BATON_OK, NULL);
        return;
    }
    election->leaving = base;
    election->provider->ops->leave(election->provider);
}

/* Out of memory must not keep a leader in office: it tries until there is some. */
void baton_leave(struct baton_election *election)
{
    struct baton *baton = election ? election->baton : NULL;
    struct leave_call *call;

    if (!election || check_owner(baton, NULL) != BATON_OK) {
        return;
    }
    INVARIANT(!on_loop(baton)); /* it would free what the loop is looking at */
    while (!(call = call_new(baton, sizeof(*call), run_leave))) {
        (void)sched_yield();
    }
    call->election = election;
    if (call_perform(&call->base, INT64_MAX, BATON_OK, NULL) == BATON_ECLOSED) {
        baton_stop(baton); /* it is under way: wait for its end */
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
    election_free(election);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

bool baton_is_leader(const struct baton_election *election)
{
    return lease_cell_is_leader(election->cell, NULL);
}

bool baton_leadership(const struct baton_election *election, uint64_t *ret_epoch)
{
    return lease_cell_is_leader(election->cell, ret_epoch);
}

int64_t baton_lease_remaining(const struct baton_election *election)
{
    span left = lease_cell_remaining(election->cell);
    return left.ns > 0 ? left.ns : 0;
}

uint64_t baton_epoch(const struct baton_election *election)
{
    return lease_cell_epoch(election->cell);
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
    role = election->role;
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
        code = error_set(reterr, BATON_ECLOSED, "it was stopped: open anew");
    } else if (!election->leader) {
        code = error_set(reterr, BATON_ENOENT, "election \"%s\": no leader is known here now",
                         election->name);
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
    return election->name;
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
    instant deadline = call_deadline(timeout_ms);
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
            code =
                error_set(reterr, BATON_ECLOSED, "election \"%s\": it was stopped", election->name);
            break;
        }
        if (on_loop(baton)) {
            code = error_set(reterr, BATON_EBUSY,
                             "election \"%s\": waiting on the loop's thread would wait for itself",
                             election->name);
            break;
        }
        if (!call_wait_locked(baton, deadline)) {
            code = error_set(reterr, BATON_ETIMEDOUT, "election \"%s\": %s in time", election->name,
                             what);
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
