/* Turns the core's events into the events of the public API. */
#include "provider/raft/fencing.h"
#include "provider/raft/named.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum baton_loss loss_of(const struct node *node, enum raft_loss loss)
{
    if (node->is_closing) {
        return BATON_LOSS_SHUTDOWN;
    }
    switch (loss) {
    case RAFT_LOSS_EXPIRED:
        return BATON_LOSS_EXPIRED;
    case RAFT_LOSS_SUPERSEDED:
        return BATON_LOSS_SUPERSEDED;
    case RAFT_LOSS_RESIGNED:
    case RAFT_LOSS_REMOVED:
        return BATON_LOSS_RESIGNED;
    case RAFT_LOSS_LOST_QUORUM:
        return BATON_LOSS_LOST_QUORUM;
    case RAFT_LOSS_STORAGE:
        return BATON_LOSS_STORAGE;
    }
    return BATON_LOSS_EXPIRED;
}

static enum baton_role role_of(enum raft_role role)
{
    return role == RAFT_LEADER     ? BATON_ROLE_LEADER
           : role == RAFT_FOLLOWER ? BATON_ROLE_FOLLOWER
                                   : BATON_ROLE_CANDIDATE;
}

void event_member_of(const struct node *node, raft_id id, struct baton_member *ret)
{
    const struct raft_member *member =
        raft_configuration_find(raft_get_configuration(node->raft), id);
    const struct acquaintance *known = acquaintance_of(node, id);
    struct raft_status status;
    struct raft_progress progress;

    *ret = (struct baton_member){.is_self = id == node->id};
    if (!member) {
        return;
    }
    raft_get_status(node->raft, &status);
    memcpy(ret->id, member->name, sizeof(ret->id));
    memcpy(ret->name, member->name, sizeof(ret->name));
    memcpy(ret->address, member->address, sizeof(ret->address));
    ret->kind = member->kind == RAFT_VOTER     ? BATON_MEMBER_VOTER
                : member->kind == RAFT_WITNESS ? BATON_MEMBER_WITNESS
                                               : BATON_MEMBER_LEARNER;
    ret->weight = member->weight;
    ret->priority = member->priority;
    ret->role = ret->is_self          ? role_of(status.role)
                : status.leader == id ? BATON_ROLE_LEADER
                                      : BATON_ROLE_FOLLOWER;
    if (ret->is_self) {
        ret->is_alive = true;
        ret->is_cordoned = !node->eligible;
    } else {
        ret->is_alive = raft_get_progress(node->raft, id, &progress) ? progress.is_active
                                                                     : connection_is_up(node, id);
        ret->is_cordoned = ret->is_alive && known && known->flags & GREETING_CORDONED;
    }
}

/* ---- The queue ------------------------------------------------------------------------------- */

/* One entry of the log can bring thousands of events, and nearly all are about one member and no
 * error: a member is kept once, until another one comes. */
struct kept_member {
    size_t users;
    struct baton_member member;
};

enum { HEAD_BYTES = offsetof(struct baton_event, member) };

/* What few events have. */
struct rare {
    struct baton_error error;
    const char *text;
};

struct queued_event {
    struct queued_event *next;
    event_receiver_fn *receive; /* NULL: the node's election, or all */
    void *to;
    struct kept_member *member; /* NULL: none */
    struct rare *rare;          /* NULL: none */
    unsigned char head[HEAD_BYTES];
};

static bool is_same(const struct baton_member *one, const struct baton_member *other)
{
    return strcmp(one->id, other->id) == 0 && strcmp(one->name, other->name) == 0 &&
           strcmp(one->address, other->address) == 0 && one->kind == other->kind &&
           one->role == other->role && one->weight == other->weight &&
           one->priority == other->priority && one->is_alive == other->is_alive &&
           one->is_self == other->is_self && one->is_cordoned == other->is_cordoned &&
           one->metadata == other->metadata;
}

static struct kept_member *keep_member(struct node *node, const struct baton_member *member)
{
    struct kept_member *kept = node->kept_last;

    if (kept && is_same(&kept->member, member)) {
        kept->users++;
        return kept;
    }
    kept = calloc(1, sizeof(*kept));
    if (kept) {
        kept->users = 1;
        kept->member = *member;
        node->kept_last = kept;
    }
    return kept;
}

static void drop_member(struct node *node, struct kept_member *kept)
{
    if (kept && --kept->users == 0) {
        node->kept_last = node->kept_last == kept ? NULL : node->kept_last;
        free(kept);
    }
}

static bool has_member(const struct baton_event *event)
{
    return event->member.id[0] != '\0' || event->member.is_self;
}

static bool is_rare(const struct baton_event *event)
{
    return event->text || event->error.code != BATON_OK || event->error.message[0] != '\0';
}

static void queued_free(struct node *node, struct queued_event *queued)
{
    drop_member(node, queued->member);
    free(queued->rare);
    free(queued);
}

/* NULL: out of memory. */
static struct queued_event *queued_of(struct node *node, const struct baton_event *event)
{
    struct queued_event *queued = calloc(1, sizeof(*queued));

    if (!queued) {
        return NULL;
    }
    memcpy(queued->head, event, HEAD_BYTES);
    queued->member = has_member(event) ? keep_member(node, &event->member) : NULL;
    queued->rare = is_rare(event) ? malloc(sizeof(*queued->rare)) : NULL;
    if ((has_member(event) && !queued->member) || (is_rare(event) && !queued->rare)) {
        queued_free(node, queued);
        return NULL;
    }
    if (queued->rare) {
        *queued->rare = (struct rare){event->error, event->text};
    }
    return queued;
}

static void unpack(const struct queued_event *queued, struct baton_event *ret)
{
    *ret = (struct baton_event){0};
    memcpy(ret, queued->head, HEAD_BYTES);
    if (queued->member) {
        ret->member = queued->member->member;
    }
    if (queued->rare) {
        ret->error = queued->rare->error;
        ret->text = queued->rare->text;
    }
}

/* Returns whether there was memory for it. */
static bool push_to(struct node *node, event_receiver_fn *receive, void *to,
                    const struct baton_event *event)
{
    struct baton_event timed = *event;
    struct queued_event *queued;

    timed.at_ns = clock_now().ns;
    queued = queued_of(node, &timed);
    if (!queued) {
        return false; /* the lease cell is right all the same */
    }
    queued->receive = receive;
    queued->to = to;
    if (node->events_last) {
        node->events_last->next = queued;
    } else {
        node->events_first = queued;
    }
    node->events_last = queued;
    return true;
}

void event_push_to(struct node *node, event_receiver_fn *receive, void *to,
                   const struct baton_event *event)
{
    (void)push_to(node, receive, to, event);
}

void event_push(struct node *node, const struct baton_event *event)
{
    event_push_to(node, NULL, NULL, event);
}

static void deliver(struct node *node, const struct baton_event *event)
{
    struct node_election *election = node->election;
    bool is_last = event->type == BATON_EVENT_STOPPED;

    if (is_last) {
        node->election = NULL;
    }
    election->on_event(election->userdata, event);
    if (is_last) {
        free(election);
    }
}

static void tell_program(struct node *node, const struct baton_event *event)
{
    struct raft_status status;

    raft_get_status(node->raft, &status);
    if (event->type == BATON_EVENT_ERROR && node->on_failed && status.storage_failed) {
        node->on_failed(node->failed_userdata, &event->error);
    }
}

void event_deliver(struct node *node)
{
    const struct baton_error unsaid = node->unsaid;

    if (unsaid.code != BATON_OK) {
        node->unsaid.code = BATON_OK;
        event_error(node, unsaid.code, &unsaid);
    }
    while (node->depth == 0 && node->events_first) {
        struct queued_event *queued = node->events_first;
        struct baton_event event;
        node->events_first = queued->next;
        if (!node->events_first) {
            node->events_last = NULL;
        }
        unpack(queued, &event);
        if (queued->receive) {
            queued->receive(queued->to, &event);
        } else if (node->named) {
            tell_program(node, &event);
            named_take(node, &event);
        } else if (node->election) {
            deliver(node, &event);
        }
        queued_free(node, queued);
    }
}

void event_error(struct node *node, int code, const struct baton_error *error)
{
    struct baton_event event = {.type = BATON_EVENT_ERROR, .error = *error};
    event.error.code = code;
    /* A program has to hear of a disk that failed: it ends then. */
    if (!push_to(node, NULL, NULL, &event) && node->unsaid.code == BATON_OK) {
        node->unsaid = event.error;
    }
}

void event_unready(const struct node *node, raft_id id, char *ret, size_t bytes)
{
    const struct raft_member *member =
        raft_configuration_find(raft_get_configuration(node->raft), id);
    struct raft_progress progress = {0};

    if (!member || !raft_get_progress(node->raft, id, &progress)) {
        (void)snprintf(ret, bytes, "is no member any more");
    } else if (!progress.is_active || !connection_is_up(node, id)) {
        (void)snprintf(ret, bytes, "does not answer");
    } else if (!progress.may_lead) {
        (void)snprintf(ret, bytes, "is cordoned");
    } else if (progress.silence.ns > 0) {
        (void)snprintf(ret, bytes, "has just started and votes in %.1f s",
                       (double)progress.silence.ns / 1e9);
    } else {
        (void)snprintf(ret, bytes, "has not caught up");
    }
}

static void tell_failed_transfer(struct node *node, raft_id id)
{
    struct baton_member member = {0};
    struct baton_error error;
    char why[64];

    event_member_of(node, id, &member);
    event_unready(node, id, why, sizeof(why));
    (void)error_set(&error, BATON_ETIMEDOUT,
                    "handing leadership over: \"%s\" %s; this node goes on leading", member.name,
                    why);
    event_error(node, BATON_ETIMEDOUT, &error);
}

static void tell_refused_snapshot(struct node *node, raft_id id, uint64_t format)
{
    struct baton_member member = {0};
    struct baton_error error;

    event_member_of(node, id, &member);
    if (format > 0) {
        (void)error_set(&error, BATON_ENOTSUP,
                        "member \"%s\": knows formats of the group's state up to %llu, and this "
                        "leader writes %d: run the newer version there; it is asked again",
                        member.id, (unsigned long long)format, NODE_STATE_FORMAT);
    } else {
        (void)error_set(&error, BATON_ENOMEM,
                        "member \"%s\": cannot take in the group's state: its log says why; it is "
                        "asked again",
                        member.id);
    }
    event_error(node, error.code, &error);
}

static void tell_contradiction(struct node *node, raft_id id)
{
    struct baton_member member = {0};
    struct baton_error error;

    event_member_of(node, id, &member);
    (void)error_set(&error, BATON_ECONFLICT,
                    "member \"%s\": what it sends differs from what is committed here, and is "
                    "refused: it is of another group of this name, or one of the two data "
                    "directories is older than it was; let the wrong one leave, and join anew",
                    member.id);
    event_error(node, BATON_ECONFLICT, &error);
}

static void tell_failure(struct node *node, const struct raft_event *from)
{
    if (from->type == RAFT_EV_TRANSFER_FAILED) {
        tell_failed_transfer(node, from->node);
    } else if (from->type == RAFT_EV_CONTRADICTED) {
        tell_contradiction(node, from->node);
    } else {
        tell_refused_snapshot(node, from->node, from->count);
    }
}

static void take_acquired(struct node *node, struct baton_event *event)
{
    span left = instant_since(node->published.end, clock_now());
    event->lease_left_ns = left.ns;
    event_member_of(node, node->id, &event->member);
    node->counters.elections++;
    if (node->host) {
        session_host_lead(node->host);
    }
}

/* A node that joins gets messages from its leader before it knows the group, and so the leader's
 * name: the event waits for the configuration. */
static bool leader_has_no_name_yet(struct node *node, const struct raft_event *from)
{
    node->has_unnamed_leader =
        from->node != RAFT_NOBODY &&
        !raft_configuration_find(raft_get_configuration(node->raft), from->node);
    return node->has_unnamed_leader;
}

/* False: no event. */
static bool take_leader(struct node *node, const struct raft_event *from, struct baton_event *event)
{
    if (node->host && from->node != RAFT_NOBODY) {
        session_host_hurry(node->host);
    }
    event->type = BATON_EVENT_LEADER;
    event_member_of(node, from->node, &event->member);
    return !leader_has_no_name_yet(node, from);
}

static void tell_leader_that_has_a_name(struct node *node)
{
    struct baton_event event = {.type = BATON_EVENT_LEADER};
    struct raft_status status;

    if (!node->has_unnamed_leader) {
        return;
    }
    raft_get_status(node->raft, &status);
    event.epoch = status.term;
    event_member_of(node, status.leader, &event.member);
    if (event.member.id[0] != '\0') {
        node->has_unnamed_leader = false;
        event_push(node, &event);
    }
}

static void take_membership(struct node *node)
{
    group_log_members(node);
    fencing_follow_membership(node);
    link_follow_membership(node);
    guard_follow_membership(node);
    tell_leader_that_has_a_name(node);
}

static const char *proof_text(const struct node *node, const struct raft_event *from)
{
    const struct acquaintance *known = acquaintance_of(node, from->node);
    bool is_fence = from->proof_kind == RAFT_PROOF_GUARDIAN && known && known->fenced != 0 &&
                    from->incarnation <= known->fenced;

    return is_fence ? "fence" : raft_proof_name(from->proof_kind);
}

void event_take(struct node *node, const struct raft_event *from)
{
    struct baton_event event = {.epoch = from->term};

    switch (from->type) {
    case RAFT_EV_ROLE:
        event.type = BATON_EVENT_ROLE;
        event.role = role_of(from->role);
        break;
    case RAFT_EV_LEADER:
        if (!take_leader(node, from, &event)) {
            return;
        }
        break;
    case RAFT_EV_ACQUIRED:
        event.type = BATON_EVENT_ACQUIRED;
        take_acquired(node, &event);
        break;
    case RAFT_EV_LOST:
        event.type = BATON_EVENT_LOST;
        event.loss = loss_of(node, from->loss);
        break;
    case RAFT_EV_ELECTION_STARTED:
        event.type = BATON_EVENT_ELECTION_STARTED;
        break;
    case RAFT_EV_ELECTION_COMPLETED:
        event.type = BATON_EVENT_ELECTION_COMPLETED;
        event_member_of(node, from->node, &event.member);
        break;
    case RAFT_EV_ELECTION_FAILED:
        event.type = BATON_EVENT_ELECTION_FAILED;
        break;
    case RAFT_EV_JEOPARDY:
        event.type = BATON_EVENT_JEOPARDY;
        event.lease_left_ns = from->left.ns;
        break;
    case RAFT_EV_TOO_MANY_ELECTIONS:
        event.type = BATON_EVENT_INSTABILITY;
        event.count = from->count;
        event.text = "the network may be unstable, the timeouts too short, or a machine overloaded";
        break;
    case RAFT_EV_PROOF_ACCEPTED:
        node->counters.proofs_accepted++;
        event.type = BATON_EVENT_PROOF;
        event.text = proof_text(node, from);
        event_member_of(node, from->node, &event.member);
        break;
    case RAFT_EV_PROOF_IGNORED:
        node->counters.proofs_ignored++;
        return;
    case RAFT_EV_MEMBERSHIP:
        take_membership(node);
        return;
    case RAFT_EV_PEER:
        event.type = from->is_active ? BATON_EVENT_MEMBER_JOINED : BATON_EVENT_MEMBER_LEFT;
        event_member_of(node, from->node, &event.member);
        break;
    case RAFT_EV_DRAIN:
        event.type = BATON_EVENT_DRAIN;
        event.lease_left_ns = from->left.ns;
        event_member_of(node, from->node, &event.member);
        break;
    case RAFT_EV_TRANSFER_FAILED:
    case RAFT_EV_CONTRADICTED:
    case RAFT_EV_SNAPSHOT_REFUSED:
        tell_failure(node, from);
        return;
    }
    event_push(node, &event);
}
