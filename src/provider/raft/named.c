/* Out of memory, an element has no table, in place of the process's end. */
#define HASH_NONFATAL_OOM 1
#include "provider/raft/named.h"

#include "provider/heirs.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A session outlives a leader of the log that fails without a proof: a successor has renewed it
 * before it ends, even if the last renewal was only just not granted any more. */
enum { TIMEOUTS_A_LIFETIME = 2, RENEWALS_A_LIFETIME = 6, REPLIES_A_LIFETIME = 8 };

struct named_election {
    struct provider_election base;
    struct node *node;
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    bool is_eligible;
    bool is_held;
    uint64_t epoch;                     /* held last */
    struct named_election *prev, *next; /* of those held */
    UT_hash_handle hh;
    char name[BATON_NAME_MAX];
};

struct named {
    struct node *node;
    struct session_host *host;
    struct named_election *all; /* by name */
    struct named_election *held;
    instant end; /* of the session's lease as published last */
};

static struct named_election *election_of(struct provider_election *election)
{
    return (struct named_election *)election;
}

static struct named_election *find(const struct named *named, const char *name)
{
    struct named_election *election;

    HASH_FIND_STR(named->all, name, election);
    return election;
}

/* ---- The group's view of an election --------------------------------------------------------- */

static const struct session_election *there(const struct named *named, const char *name)
{
    return sessions_election(session_host_sessions(named->host), name);
}

static void describe_holder(const struct named *named, const char *name, struct baton_member *ret,
                            uint64_t *ret_epoch)
{
    const struct session_election *election = there(named, name);
    const struct session_contender *holder = election ? election->holder : NULL;

    event_member_of(named->node, holder ? holder->session->node : RAFT_NOBODY, ret);
    *ret_epoch = holder ? election->epoch : 0;
    if (holder) {
        ret->role = BATON_ROLE_LEADER;
    } else {
        *ret = (struct baton_member){.id = ""};
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

void named_deliver(void *userdata, const struct baton_event *event)
{
    struct named_election *election = userdata;
    bool is_last = event->type == BATON_EVENT_STOPPED;

    election->on_event(election->userdata, event);
    if (is_last) {
        free(election);
    }
}

static void push(struct named_election *election, const struct baton_event *event)
{
    event_push_to(election->node, election, event);
}

static void push_role(struct named_election *election, enum baton_role role)
{
    const struct baton_event event = {.type = BATON_EVENT_ROLE, .role = role};

    push(election, &event);
}

static void acquire(struct named *named, struct named_election *election, uint64_t epoch)
{
    struct baton_event event = {.type = BATON_EVENT_ACQUIRED,
                                .role = BATON_ROLE_LEADER,
                                .epoch = epoch,
                                .lease_left_ns = instant_since(named->end, clock_now()).ns};

    election->is_held = true;
    election->epoch = epoch;
    DL_APPEND(named->held, election);
    lease_cell_publish(election->cell, epoch, named->end);
    event_member_of(named->node, named->node->id, &event.member);
    push_role(election, BATON_ROLE_LEADER);
    push(election, &event);
}

static enum baton_loss loss_of(const struct node *node, enum lease_loss loss)
{
    return node->is_closing                ? BATON_LOSS_SHUTDOWN
           : loss == LEASE_LOSS_EXPIRED    ? BATON_LOSS_EXPIRED
           : loss == LEASE_LOSS_SUPERSEDED ? BATON_LOSS_SUPERSEDED
                                           : BATON_LOSS_RESIGNED;
}

static void lose(struct named *named, struct named_election *election, enum lease_loss loss)
{
    const struct baton_event event = {
        .type = BATON_EVENT_LOST, .epoch = election->epoch, .loss = loss_of(named->node, loss)};

    if (election->is_held) {
        lease_cell_void(election->cell);
        election->is_held = false;
        DL_DELETE(named->held, election);
        push(election, &event);
        push_role(election, BATON_ROLE_FOLLOWER);
    }
}

static void report_jeopardy(struct named *named, span left)
{
    const struct baton_event event = {.type = BATON_EVENT_JEOPARDY, .lease_left_ns = left.ns};

    for (struct named_election *at = named->held; at; at = at->next) {
        push(at, &event);
    }
}

static void report_refusal(struct named_election *election, int code)
{
    struct baton_event event = {.type = BATON_EVENT_ERROR};

    if (code != BATON_EUNAVAILABLE) { /* no leader of the log: that passes */
        (void)error_set(&event.error, code,
                        "election \"%s\": the group refused an order: %s; it "
                        "is repeated",
                        election->name, baton_strerror(code));
        push(election, &event);
    }
}

static void on_event(void *userdata, const struct session_event *event)
{
    struct named *named = userdata;
    struct named_election *election = event->userdata;

    switch (event->type) {
    case SESSION_EV_OPENED:
        log_info(named->node->logger, "session", LOG_U64("session", event->epoch));
        break;
    case SESSION_EV_JEOPARDY:
        report_jeopardy(named, event->left);
        break;
    case SESSION_EV_LOST:
        lose(named, election, event->loss);
        break;
    case SESSION_EV_ACQUIRED:
        acquire(named, election, event->epoch);
        break;
    case SESSION_EV_ASKED:
        (void)session_client_resign(session_host_client(named->host), election->name, event->epoch,
                                    0);
        break;
    case SESSION_EV_REFUSED:
        report_refusal(election, event->code);
        break;
    case SESSION_EV_ENDED:
        break;
    }
}

/* Void first: what a lost session held is voided by the events that follow. */
static void on_lease(void *userdata, const struct session_client_lease *lease)
{
    struct named *named = userdata;
    struct raft_lease guarded = {.held = lease->is_held, .end = lease->end};

    if (lease->is_held && lease->end.ns != named->end.ns) {
        for (struct named_election *at = named->held; at; at = at->next) {
            lease_cell_publish(at->cell, at->epoch, lease->end);
        }
    }
    if (lease->end.ns != named->end.ns) {
        guard_publish(named->node, &guarded);
    }
    named->end = lease->end;
}

static void on_holder(void *userdata, const char *name)
{
    struct named *named = userdata;
    struct named_election *election = find(named, name);
    struct baton_event event = {.type = BATON_EVENT_LEADER};

    if (election) {
        describe_holder(named, name, &event.member, &event.epoch);
        push(election, &event);
        if (event.epoch != 0) {
            event.type = BATON_EVENT_ELECTION_COMPLETED;
            push(election, &event);
        }
    }
}

/* The log's leadership is nobody's work: nothing has to drain before it moves. */
void named_take(struct node *node, const struct baton_event *event)
{
    struct raft_input drained = {.type = RAFT_IN_DRAINED};

    switch (event->type) {
    case BATON_EVENT_MEMBER_JOINED:
    case BATON_EVENT_MEMBER_LEFT:
    case BATON_EVENT_INSTABILITY:
    case BATON_EVENT_ERROR:
    case BATON_EVENT_PROOF:
        for (struct named_election *at = node->named->all; at; at = at->hh.next) {
            push(at, event);
        }
        break;
    case BATON_EVENT_DRAIN:
        (void)node_step(node, &drained);
        break;
    default:
        break;
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void settings_of(const struct node *node, struct lease_settings *ret)
{
    const struct raft_settings *settings = &node->options.settings;
    int64_t lifetime =
        TIMEOUTS_A_LIFETIME * (settings->heartbeat_timeout.ns + settings->election_timeout_max.ns);

    lease_settings_default(ret);
    ret->lease = SPAN_NS(lifetime);
    ret->renew_interval = ret->check_interval = SPAN_NS(lifetime / RENEWALS_A_LIFETIME);
    ret->answer_timeout = SPAN_NS(lifetime / REPLIES_A_LIFETIME);
    ret->spread_each = SPAN_NS(0);
    ret->clock_drift_ppm = settings->clock_drift_ppm;
}

int named_begin(struct node *node, struct baton_error *reterr)
{
    struct session_client_options options = {.incarnation = node->incarnation};
    struct named *named = calloc(1, sizeof(*named));
    const struct session_user user = {on_lease, on_event, on_holder, named};

    settings_of(node, &options.lease);
    (void)snprintf(options.name, sizeof(options.name), "%s", node->options.node);
    if (named) {
        named->node = node;
        named->host = node->host;
        named->end = INSTANT_PAST;
        node->named = named;
    }
    if (!named || session_host_attach(node->host, &options, &user) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a session");
    }
    return BATON_OK;
}

void named_free(struct named *named)
{
    free(named);
}

static void stop(struct named *named, struct named_election *election)
{
    const struct baton_event stopped = {.type = BATON_EVENT_STOPPED};

    HASH_DEL(named->all, election);
    push(election, &stopped);
}

void named_stop(struct node *node)
{
    struct named *named = node->named;

    if (named) {
        session_host_leave(named->host);
        for (struct named_election *at = named->all, *next; at; at = next) {
            next = at->hh.next;
            stop(named, at);
        }
    }
}

/* ---- The provider's functions ---------------------------------------------------------------- */

static int enter(struct named_election *election)
{
    struct named *named = election->node->named;
    const struct raft_member *self =
        raft_configuration_find(raft_get_configuration(election->node->raft), election->node->id);
    bool may_lead = election->is_eligible && !(self && self->kind != RAFT_VOTER);

    return session_client_enter(session_host_client(named->host), election->name,
                                self ? self->priority : 0, may_lead, election);
}

static int check_campaign(const struct node *node, const struct provider_campaign *campaign,
                          struct baton_error *reterr)
{
    if (node->is_closing || node->is_broken) {
        return error_set(reterr, BATON_ECLOSED,
                         "campaign: the provider is closing, or its start failed: open it anew");
    }
    if (strlen(campaign->election) == 0 || strlen(campaign->election) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         campaign->election, BATON_NAME_MAX - 1);
    }
    if (node->named && find(node->named, campaign->election)) {
        return error_set(reterr, BATON_EEXIST,
                         "election \"%s\": this process takes part in it already",
                         campaign->election);
    }
    return BATON_OK;
}

static struct named_election *new_election(struct node *node,
                                           const struct provider_campaign *campaign)
{
    struct named_election *election = calloc(1, sizeof(*election));

    if (election) {
        election->base = (struct provider_election){.ops = node->base.ops, .provider = &node->base};
        election->node = node;
        election->cell = campaign->cell;
        election->on_event = campaign->on_event;
        election->userdata = campaign->userdata;
        election->is_eligible = campaign->eligible;
        (void)snprintf(election->name, sizeof(election->name), "%s", campaign->election);
    }
    return election;
}

int named_campaign(struct provider_election **ret, struct provider *provider,
                   const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct node *node = (struct node *)provider;
    int r = check_campaign(node, campaign, reterr);
    struct named_election *election = r == BATON_OK ? new_election(node, campaign) : NULL;

    if (r == BATON_OK && !election) {
        r = error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    if (r == BATON_OK && !node->raft && (r = node_begin(node, reterr)) != BATON_OK) {
        node->is_broken = true;
    }
    if (r == BATON_OK && campaign->metadata &&
        session_client_describe(session_host_client(node->host), campaign->metadata) != BATON_OK) {
        r = error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    if (r == BATON_OK) {
        HASH_ADD_STR(node->named->all, name, election);
    }
    if (r == BATON_OK && (!election->hh.tbl || enter(election) != BATON_OK)) {
        if (election->hh.tbl) {
            HASH_DEL(node->named->all, election);
        }
        r = error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    if (r != BATON_OK) {
        free(election);
        return r;
    }
    lease_cell_bind(election->cell); /* after the guardian's lock, which is released before it */
    *ret = &election->base;
    session_host_drive(node->host);
    node_rearm(node, clock_now()); /* the first events are delivered by the loop */
    return BATON_OK;
}

static bool may_take(const struct node *node, const struct session_contender *contender)
{
    return contender->is_eligible && contender->session->node != node->id;
}

static const char *name_of(const struct node *node, const struct session_contender *contender)
{
    const struct raft_member *member =
        raft_configuration_find(raft_get_configuration(node->raft), contender->session->node);

    return member ? member->name : contender->session->name;
}

/* The contender that `to` names, or with NULL any, which can take over; NULL: none, see reterr. */
static const struct session_contender *find_heir(const struct named_election *election,
                                                 const char *to, struct baton_error *reterr)
{
    const struct node *node = election->node;
    const struct session_election *line = there(node->named, election->name);
    struct heirs heirs = {.bytes = 0};

    for (const struct session_contender *at = line ? line->first : NULL; at; at = at->next) {
        if (may_take(node, at) &&
            (to ? strcmp(name_of(node, at), to) == 0 : connection_is_up(node, at->session->node))) {
            return at;
        }
        if (may_take(node, at)) {
            heirs_add(&heirs, name_of(node, at));
        }
    }
    if (to) {
        (void)heirs_refuse(&heirs, to, reterr);
    } else {
        (void)error_set(reterr, BATON_EBUSY,
                        "nobody can take over now: no other process that answers may lead \"%s\"; "
                        "this node goes on leading",
                        election->name);
    }
    return NULL;
}

int named_check_heir(struct provider_election *base, const char *to, struct baton_error *reterr)
{
    return find_heir(election_of(base), to, reterr) ? BATON_OK : to ? BATON_EINVAL : BATON_EBUSY;
}

int named_resign(struct provider_election *base, const char *to, instant deadline,
                 struct baton_error *reterr)
{
    struct named_election *election = election_of(base);
    const struct session_contender *heir = NULL;
    struct node *node = election->node;
    (void)deadline; /* the order is repeated until it is carried out */

    if (!election->is_held) {
        return error_set(reterr, BATON_ENOTLEADER, "node \"%s\" does not lead \"%s\"",
                         node->options.node, election->name);
    }
    if (to && !(heir = find_heir(election, to, reterr))) {
        return BATON_EINVAL;
    }
    (void)session_client_resign(session_host_client(node->host), election->name, election->epoch,
                                heir ? heir->session->id : 0);
    session_host_drive(node->host);
    event_deliver(node);
    return BATON_OK;
}

int named_set_eligible(struct provider_election *base, bool eligible, struct baton_error *reterr)
{
    struct named_election *election = election_of(base);
    struct node *node = election->node;

    election->is_eligible = eligible;
    if (enter(election) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for an order");
    }
    session_host_drive(node->host);
    event_deliver(node);
    return BATON_OK;
}

int named_set_metadata(struct provider_election *base, const char *metadata,
                       struct baton_error *reterr)
{
    struct node *node = election_of(base)->node;

    if (metadata && strlen(metadata) > SESSION_METADATA_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "metadata: %zu bytes; at most %d", strlen(metadata),
                         SESSION_METADATA_MAX);
    }
    if (session_client_describe(session_host_client(node->host), metadata) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the metadata");
    }
    session_host_drive(node->host);
    return BATON_OK;
}

void named_leave(struct provider_election *base)
{
    struct named_election *election = election_of(base);
    struct node *node = election->node;
    struct session_client *client = session_host_client(node->host);

    if (find(node->named, election->name) == election) {
        session_client_withdraw(client, election->name);
        session_host_drive(node->host);
        session_client_disown(client, election->name);
        stop(node->named, election);
        event_deliver(node);
    }
}

void named_leader(struct provider_election *base, struct baton_member *ret, uint64_t *ret_epoch)
{
    const struct named_election *election = election_of(base);

    describe_holder(election->node->named, election->name, ret, ret_epoch);
}

/* The contender of this node; NULL: none. */
static const struct session_contender *contender_of(const struct session_election *line, raft_id id)
{
    const struct session_contender *at = line ? line->first : NULL;

    while (at && at->session->node != id) {
        at = at->next;
    }
    return at;
}

int named_members(struct provider_election *base, provider_members_cb done, void *userdata,
                  struct baton_error *reterr)
{
    const struct named_election *election = election_of(base);
    const struct node *node = election->node;
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    const struct session_election *line = there(node->named, election->name);
    struct baton_member *members = calloc(now->count + 1, sizeof(*members));

    if (!members) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the members");
    }
    for (size_t i = 0; i < now->count; i++) {
        const struct session_contender *contender = contender_of(line, now->members[i].id);
        event_member_of(node, now->members[i].id, &members[i]);
        members[i].role =
            contender && line->holder == contender ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER;
        members[i].is_cordoned = !contender || !contender->is_eligible;
        members[i].metadata = contender ? contender->session->metadata : NULL;
    }
    done(userdata, BATON_OK, members, now->count);
    free(members);
    return BATON_OK;
}

int named_member_add(struct provider_election *base, const struct baton_member *member,
                     bool replaces, instant deadline, provider_done_cb done, void *userdata,
                     struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_add(election_of(base)->node, member, replaces, deadline, &asker, reterr);
}

int named_member_remove(struct provider_election *base, const char *id, instant deadline,
                        provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_remove(election_of(base)->node, id, deadline, &asker, reterr);
}
