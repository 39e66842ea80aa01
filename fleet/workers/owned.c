#include "fleet/workers/owners_int.h"

#include "base/error.h"
#include "member/handover.h"

#include <string.h>
#include <utlist.h>

enum {
    RETRY_MS = 1000,
    ASK_MS = 1000,
    ASK_COUNTS_MS = 3000,
    PASS_WITHIN_S = 10,
    EARLY_GRACE_S = 5,
    SLOTS = 4, /* workers that are given up at once: the others work on meanwhile */
};

static struct member *member_of(const struct owned *owned)
{
    return fleet_state_member(owned->owners->config.state);
}

static void tell_failure(struct owned *owned, const struct baton_error *error)
{
    owned_tell(owned, "election-failed", json_pack("{s:s}", "error", error->message));
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void leave_line(struct owned *owned)
{
    if (owned->is_in_line) {
        owned->is_in_line = false;
        DL_DELETE(owned->owners->line, owned);
    }
}

/* False: it is queued again when there is one. */
static bool take_slot(struct owned *owned)
{
    struct owners *owners = owned->owners;

    if (owned->has_slot || owners->slots_taken < SLOTS) {
        owners->slots_taken += !owned->has_slot;
        owned->has_slot = true;
        leave_line(owned);
        return true;
    }
    if (!owned->is_in_line) {
        owned->is_in_line = true;
        DL_APPEND(owners->line, owned);
    }
    return false;
}

static void release_slot(struct owned *owned)
{
    struct owners *owners = owned->owners;

    leave_line(owned);
    if (owned->has_slot) {
        owned->has_slot = false;
        owners->slots_taken--;
        if (owners->line != NULL) {
            owned_queue(owners->line);
        }
    }
}

/* ---- The link -------------------------------------------------------------------------------- */

static bool may_send(void *userdata)
{
    const struct owned *owned = userdata;
    uint64_t epoch;

    return owned->candidacy.election != NULL &&
           election_is_leader(owned->candidacy.election, &epoch) && epoch == owned->epoch;
}

static void on_wanted(void *userdata, bool is_wanted)
{
    struct owned *owned = userdata;

    if (!is_wanted || owned->claim.wanted != CLAIM_ONLINE) {
        claim_set(&owned->claim, is_wanted ? CLAIM_ONLINE : CLAIM_OFFLINE);
        owned_queue(owned);
    }
}

/* While the link connects, to save the time. The list may wait for the connection for the whole
 * grace: that must be far below the time after which the master gives a marked worker up. */
static void claim_early(struct owned *owned)
{
    if (owned->owners->config.grace.ns <= SPAN_S(EARLY_GRACE_S).ns) {
        claim_set(&owned->claim, CLAIM_ONLINE);
        owned_queue(owned);
    }
}

void owned_claimed(struct claim *claim)
{
    struct owned *owned = (struct owned *)((char *)claim - offsetof(struct owned, claim));

    owned->is_dirty = true;
    owned_queue(owned);
}

static void open_link(struct owned *owned, const char *url)
{
    const struct owners_config *config = &owned->owners->config;
    const struct link_config wanted = {
        .loop = member_loop(member_of(owned)),
        .url = url,
        .token = owned->owners->token,
        .tls = config->tls,
        .grace = config->grace,
        .silence = config->silence,
        .connections = &owned->owners->connections,
        .calls = {.may_send = may_send,
                  .on_wanted = on_wanted,
                  .list = owned_list,
                  .display = owned_display,
                  .on_report = owned_report,
                  .on_detection = owned_detection,
                  .on_patch_session = owned_patch,
                  .on_online = owned_online,
                  .on_event = owned_tell},
        .userdata = owned,
    };
    struct baton_error error = {0};

    if (link_open(&owned->link, &wanted, &error) == BATON_OK) {
        claim_early(owned);
    } else {
        owned->link = NULL; /* the timer tries again */
        tell_failure(owned, &error);
    }
}

static void on_link_closed(void *userdata)
{
    struct owned *owned = userdata;

    owned->link = NULL;
    owned->is_link_closing = false;
    claim_set(&owned->claim, CLAIM_NONE);
    owned_queue(owned);
    if (owned->is_held) {
        owned->is_held = false;
        handover_release(owned->candidacy.election);
    }
}

static void close_link(struct owned *owned, bool at_once)
{
    if (owned->link != NULL && (at_once || !owned->is_link_closing)) {
        owned->is_link_closing = true;
        link_close(owned->link, at_once, on_link_closed);
    }
}

void owned_look(struct owned *owned)
{
    if (owned->link != NULL && owned_is_left(owned)) {
        if (!owned->is_link_closing) {
            owned->has_other = true;
            owned_refresh(owned);
        }
        owned->is_moved = owned->epoch != 0;
        close_link(owned, false);
    }
    owned_queue(owned);
}

/* ---- The election ---------------------------------------------------------------------------- */

static void on_acquired(struct owned *owned, uint64_t epoch)
{
    owned->owners->leading += owned->epoch == 0;
    owned->epoch = epoch;
    owned->asked_at = INSTANT_PAST; /* what it asked for in an earlier leadership, it got */
    owned->is_draining = owned->is_moved = false;
    owned_tell(owned, "worker-owned", json_pack("{s:I}", "epoch", (json_int_t)epoch));
}

static void on_lost(struct owned *owned)
{
    owned->is_draining = owned->is_held = false;
    claim_set(&owned->claim, CLAIM_NONE);
    close_link(owned, true);
    if (owned->epoch != 0) {
        owned->epoch = 0;
        owned->owners->leading--;
        owned_tell(owned, "worker-released", json_object());
    }
}

/* The link ends first; then leadership goes. */
static void on_drain(struct owned *owned)
{
    owned->is_draining = true;
    if (owned->link != NULL) {
        owned->is_held = true;
        handover_hold(owned->candidacy.election);
        close_link(owned, false);
    }
}

static void on_event(struct candidacy *candidacy, const struct baton_event *event)
{
    struct owned *owned = CANDIDACY_OF(struct owned, candidacy, candidacy);

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        on_acquired(owned, event->epoch);
        break;
    case BATON_EVENT_LOST:
    case BATON_EVENT_STOPPED:
        on_lost(owned);
        break;
    case BATON_EVENT_DRAIN:
        on_drain(owned);
        break;
    case BATON_EVENT_ERROR:
        owned->is_draining &= event->error.code != BATON_ETIMEDOUT; /* a hand-over failed */
        tell_failure(owned, &event->error);
        break;
    case BATON_EVENT_LEADER:
        break;
    default:
        return;
    }
    owned_queue(owned);
}

static void on_left(struct candidacy *candidacy)
{
    struct owned *owned = CANDIDACY_OF(struct owned, candidacy, candidacy);

    release_slot(owned);
    owned_queue(owned);
}

static void begin(struct owned *owned, instant now)
{
    struct baton_error error = {0};
    char name[BATON_NAME_MAX];

    owned->is_moved = false;
    (void)snprintf(name, sizeof(name), "%s%s", WORKER_ELECTION, owned->worker);
    if (candidacy_begin(&owned->candidacy, member_of(owned), name, NULL, on_event, &error) !=
        BATON_OK) {
        owned->begin_at = instant_add(now, SPAN_MS(RETRY_MS));
        tell_failure(owned, &error);
    }
}

/* ---- What comes next ------------------------------------------------------------------------- */

static void on_passed(void *userdata, int code, const struct baton_error *error)
{
    struct owned *owned = userdata;

    (void)error; /* of one that failed, an event told */
    owned->is_draining &= code == BATON_OK;
    release_slot(owned);
    owned_queue(owned);
}

/* It waits in line behind another process. */
static void ask_for(struct owned *owned, instant now)
{
    struct baton_member leader;
    uint64_t epoch;

    election_leader(owned->candidacy.election, &leader, &epoch);
    if (leader.id[0] != '\0' && !leader.is_self && !instant_before(now, owned->ask_at)) {
        owned->ask_at = instant_add(now, SPAN_MS(ASK_MS));
        (void)publisher_put(&owned->owners->asks, json_pack("{s:s, s:s}", "worker", owned->worker,
                                                            "process", owned->owners->process));
    }
}

/* Refused while the first is not known to be in line: the timer tries again. */
static void pass_to_first(struct owned *owned, instant now)
{
    const struct handover_request request = {.kind = HANDOVER_RESIGN,
                                             .to = owned->first,
                                             .deadline = instant_add(now, SPAN_S(PASS_WITHIN_S)),
                                             .is_forced = true,
                                             .done = on_passed,
                                             .userdata = owned};

    if (take_slot(owned) && handover_begin(owned->candidacy.election, &request, NULL) != BATON_OK) {
        release_slot(owned);
    }
}

static void tend(struct owned *owned, instant now)
{
    const struct owners *owners = owned->owners;
    const struct fleet_worker *worker = fleet_state_worker_key(owners->config.state, owned->worker);

    if (owned->link == NULL && worker != NULL) {
        open_link(owned, worker->url);
    } else if (owned->link != NULL && !owned->is_link_closing) {
        if (may_send(owned)) {
            claim_step(&owned->claim);
        }
        if (owned->is_dirty) {
            owned_refresh(owned);
        }
    }
    if (strcmp(owned->first, owners->process) != 0 &&
        instant_before(now, instant_add(owned->asked_at, SPAN_MS(ASK_COUNTS_MS)))) {
        pass_to_first(owned, now);
    }
}

/* The link ends first. */
static void leave(struct owned *owned)
{
    if (owned->epoch == 0 || take_slot(owned)) {
        close_link(owned, false);
        if (owned->link == NULL) {
            candidacy_leave(&owned->candidacy, on_left);
        }
    }
}

/* At another address a worker may have obeyed the owner of another id, whose epoch is later than
 * this one's, and would refuse each list: so leadership is given up, and had anew. */
bool owned_settle(struct owned *owned, instant now)
{
    bool stays = owned->is_listed && !owned->owners->is_closing;

    if (owned->candidacy.election == NULL) {
        if (owned->is_wanted && stays && !instant_before(now, owned->begin_at)) {
            begin(owned, now);
        }
        return owned->candidacy.election != NULL || owned->link != NULL ||
               (owned->is_wanted && stays);
    }
    if (owned->epoch != 0 && stays &&
        !owned->is_moved) { /* also where it is wanted no more: until the first joins */
        if (!owned->is_draining) {
            tend(owned, now);
        }
    } else if (!owned->is_wanted || !stays || owned->is_moved) {
        leave(owned);
    } else if (strcmp(owned->first, owned->owners->process) == 0) {
        ask_for(owned, now);
    }
    return true;
}
