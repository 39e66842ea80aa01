#include "provider/raft/named.h"

#include "net/digest.h"
#include "provider/raft/named_int.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A session outlives a leader of the log that fails without a proof: a successor has renewed it
 * before it ends, even if the last renewal was only just not granted any more. */
enum { TIMEOUTS_A_LIFETIME = 2, RENEWALS_A_LIFETIME = 6, REPLIES_A_LIFETIME = 8 };

_Static_assert((int)DIGEST_BYTES == SESSION_SECRET_BYTES, "the log has a digest of the secret");

static const struct provider_ops *ops_of(const struct named *named)
{
    return named->is_own ? named->node->base.ops : named->base.ops;
}

static struct named *named_of(struct provider *provider)
{
    struct node *node = named_node(provider);

    return provider == &node->base ? node->named : (struct named *)provider;
}

static struct named_election *election_of(struct provider_election *election)
{
    return (struct named_election *)election;
}

static struct session_client *client_of(const struct named *named)
{
    return session_tenant_client(named->tenant);
}

/* NULL: the process does not take part. */
static struct named_election *find(const struct named *named, const char *name)
{
    return session_client_userdata(client_of(named), name);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void deliver(void *to, const struct baton_event *event)
{
    struct named_election *election = to;
    bool is_last = event->type == BATON_EVENT_STOPPED;

    election->on_event(election->userdata, event);
    if (is_last) {
        free(election);
    }
}

static void push(struct named_election *election, const struct baton_event *event)
{
    event_push_to(election->named->node, deliver, election, event);
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
    uint64_t now;

    election->is_held = true;
    election->epoch = epoch;
    election->drain_by = INSTANT_NEVER;
    DL_APPEND2(named->held, election, prior, later);
    lease_cell_publish(election->cell, epoch, named->end);
    line_leader(named, election->name, &event.member, &now);
    push_role(election, BATON_ROLE_LEADER);
    push(election, &event);
}

static enum baton_loss loss_of(const struct named *named, enum lease_loss loss)
{
    return named->is_closing               ? BATON_LOSS_SHUTDOWN
           : loss == LEASE_LOSS_EXPIRED    ? BATON_LOSS_EXPIRED
           : loss == LEASE_LOSS_SUPERSEDED ? BATON_LOSS_SUPERSEDED
                                           : BATON_LOSS_RESIGNED;
}

static void void_cell(struct named_election *election)
{
    lease_cell_void(election->cell);
    election->is_held = false;
    DL_DELETE2(election->named->held, election, prior, later);
}

static void lose(struct named *named, struct named_election *election, enum lease_loss loss)
{
    const struct baton_event event = {
        .type = BATON_EVENT_LOST, .epoch = election->epoch, .loss = loss_of(named, loss)};

    if (election->is_held) {
        void_cell(election);
        push(election, &event);
        push_role(election, BATON_ROLE_FOLLOWER);
    }
}

static void report_jeopardy(struct named *named, span left)
{
    const struct baton_event event = {.type = BATON_EVENT_JEOPARDY, .lease_left_ns = left.ns};

    for (struct named_election *at = named->held; at; at = at->later) {
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

/* ---- Giving up what others ask for ----------------------------------------------------------- */

static void give_up(struct named_election *election)
{
    election->drain_by = INSTANT_NEVER;
    (void)session_client_resign(client_of(election->named), election->name, election->epoch, 0);
}

static void drain(struct named *named, struct named_election *election)
{
    const struct baton_event event = {.type = BATON_EVENT_DRAIN,
                                      .epoch = election->epoch,
                                      .lease_left_ns = instant_since(named->end, clock_now()).ns};

    if (election->is_held && election->drain_by.ns == INSTANT_NEVER.ns) {
        election->drain_by = named->end;
        push(election, &event);
    }
}

/* Only for the node's own process, which acts by the cells: an attached one gives up by itself. */
static void end_late_drains(struct named *named)
{
    instant now = clock_now();

    for (struct named_election *at = named->held; at && named->is_own; at = at->later) {
        if (!instant_before(now, at->drain_by)) {
            give_up(at);
        }
    }
}

void named_drained(struct provider_election *base)
{
    struct named_election *election = election_of(base);
    struct node *node = election->named->node;

    if (election->is_held && election->drain_by.ns != INSTANT_NEVER.ns) {
        give_up(election);
        session_tenant_drive(election->named->tenant);
        event_deliver(node);
    }
}

/* ---- What the session's client says ---------------------------------------------------------- */

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
        drain(named, election);
        break;
    case SESSION_EV_REFUSED:
        report_refusal(election, event->code);
        break;
    case SESSION_EV_ENDED:
        break;
    }
}

static void deliver_session(void *to, const struct baton_event *event)
{
    const struct named *named = to;

    if (!named->is_closing) {
        named->on_session(named->userdata, event->epoch);
    }
}

static void note_session(struct named *named, uint64_t session)
{
    const struct baton_event event = {.epoch = session};

    if (session != named->session && named->on_session) {
        event_push_to(named->node, deliver_session, named, &event);
    }
    named->session = session;
}

/* Void first: what a lost session held is voided by the events that follow. */
static void on_lease(void *userdata, const struct session_client_lease *lease)
{
    struct named *named = userdata;
    struct raft_lease guarded = {.held = lease->is_held, .end = lease->end};

    if (lease->is_held && lease->end.ns != named->end.ns) {
        for (struct named_election *at = named->held; at; at = at->later) {
            lease_cell_publish(at->cell, at->epoch, lease->end);
        }
    }
    if (named->is_own && lease->end.ns != named->end.ns) {
        guard_publish(named->node, &guarded);
    }
    named->end = lease->end;
    note_session(named, lease->session);
    end_late_drains(named);
}

/* ---- What the group says --------------------------------------------------------------------- */

/* NULL: no process of this node has the session, or it takes no part. */
static struct named_election *election_of_session(const struct node *node, uint64_t session,
                                                  const char *name)
{
    const struct named *named = session_host_user(node->host, session);

    return named ? find(named, name) : NULL;
}

void named_note_holder(struct node *node, const char *name)
{
    const struct session_election *line = line_of(node, name);
    struct baton_event event = {.type = BATON_EVENT_LEADER};

    for (const struct session_contender *at = line ? line->first : NULL; at; at = at->next) {
        struct named_election *election = election_of_session(node, at->session->id, name);
        if (!election) {
            continue;
        }
        event.type = BATON_EVENT_LEADER;
        line_leader(election->named, name, &event.member, &event.epoch);
        push(election, &event);
        if (event.epoch != 0) {
            event.type = BATON_EVENT_ELECTION_COMPLETED;
            push(election, &event);
        }
    }
}

void named_note_entered(struct node *node, uint64_t session, const char *name)
{
    struct named_election *election = election_of_session(node, session, name);
    struct baton_event event = {.type = BATON_EVENT_LEADER};

    if (election) {
        line_leader(election->named, name, &event.member, &event.epoch);
    }
    if (event.epoch != 0) {
        push(election, &event);
    }
}

static void push_to_all(struct node *node, const struct baton_event *event)
{
    for (struct named *named = node->all_named; named; named = named->next) {
        for (struct named_election *at = named->all; at; at = at->next) {
            push(at, event);
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
        push_to_all(node, event);
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

/* The log has only a digest: who reads it cannot resume the session. Without a secret, nobody can.
 */
static void digest_secret(const uint8_t *secret, uint8_t ret[SESSION_SECRET_BYTES])
{
    if (secret) {
        digest_sha256(ret, secret, PROVIDER_SECRET_BYTES);
    } else {
        (void)RAND_bytes(ret, SESSION_SECRET_BYTES);
    }
}

static void on_closed(void *userdata)
{
    struct named *named = userdata;
    void (*closed)(void *) = named->closed;
    void *closed_userdata = named->closed_userdata;

    if (!named->is_own) {
        event_deliver(named->node);
        named_free(named);
    }
    if (closed) {
        closed(closed_userdata);
    }
}

int named_attach(struct named *named, struct node *node, const struct provider_process *process,
                 struct baton_error *reterr)
{
    struct session_client_options options = {.incarnation = named->is_own ? node->incarnation : 0,
                                             .metadata = process->metadata,
                                             .resume = process->session};
    const struct session_user user = {on_lease, on_event, on_closed, named};

    named->node = node;
    named->end = INSTANT_PAST;
    named->on_session = process->on_session;
    named->userdata = process->userdata;
    settings_of(node, &options.lease);
    (void)snprintf(options.name, sizeof(options.name), "%s", process->name);
    if (!named->is_own) {
        digest_secret(process->secret, options.secret);
    }
    if ((process->metadata && !(named->metadata = strdup(process->metadata))) ||
        session_host_attach(&named->tenant, node->host, &options, &user) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a session");
    }
    DL_APPEND(node->all_named, named);
    if (process->session != 0) { /* its metadata may be others by now */
        (void)session_client_describe(client_of(named), process->metadata);
    }
    session_tenant_drive(named->tenant);
    return BATON_OK;
}

int named_begin(struct node *node, struct baton_error *reterr)
{
    const struct provider_process process = {.name = node->options.node};
    struct named *named = calloc(1, sizeof(*named));

    if (!named) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a session");
    }
    named->is_own = true;
    node->named = named;
    return named_attach(named, node, &process, reterr);
}

int named_ensure_begun(struct node *node, struct baton_error *reterr)
{
    int r = BATON_OK;

    if (node->is_closing || node->is_broken) {
        return error_set(reterr, BATON_ECLOSED,
                         "the provider is closing, or its start failed: open it anew");
    }
    if (!node->raft) {
        node->depth++; /* the caller is there before the first event, which may be a failed write */
        r = node_begin(node, reterr);
        node->depth--;
        node->is_broken = r != BATON_OK;
        if (r == BATON_OK) {
            node_rearm(node, clock_now()); /* the first events are delivered by the loop */
        }
    }
    return r;
}

void named_free(struct named *named)
{
    if (named) {
        free(named->metadata);
        free(named);
    }
}

static void stop(struct named_election *election)
{
    const struct baton_event stopped = {.type = BATON_EVENT_STOPPED};

    election->is_stopped = true;
    DL_DELETE(election->named->all, election);
    push(election, &stopped);
}

void named_stop_all(struct named *named)
{
    while (named->held) {
        void_cell(named->held);
    }
    while (named->all) {
        stop(named->all);
    }
    DL_DELETE(named->node->all_named, named);
}

void named_stop(struct node *node)
{
    struct named *named = node->named;

    if (named && named->tenant && !named->is_closing) {
        named->is_closing = true;
        session_tenant_leave(named->tenant);
        named_stop_all(named);
        session_tenant_detach(named->tenant);
    }
}

/* ---- The provider's functions ---------------------------------------------------------------- */

span named_lease(const struct provider *provider)
{
    struct lease_settings settings;

    settings_of((const struct node *)provider, &settings);
    return settings.lease;
}

int named_take_part(struct provider *provider, struct baton_error *reterr)
{
    return named_ensure_begun(named_node(provider), reterr);
}

/* A node that is a witness or a learner leads nothing itself. */
static int enter(struct named_election *election)
{
    struct named *named = election->named;
    const struct node *node = named->node;
    const struct raft_member *self =
        raft_configuration_find(raft_get_configuration(node->raft), node->id);
    bool is_barred = named->is_own && self && self->kind != RAFT_VOTER;

    return session_client_enter(client_of(named), election->name,
                                (self ? self->priority : 0) + election->priority,
                                election->is_eligible && !is_barred, election);
}

static int check_campaign(const struct named *named, const struct provider_campaign *campaign,
                          struct baton_error *reterr)
{
    if (named->is_closing) {
        return error_set(reterr, BATON_ECLOSED, "campaign: the process's handle was closed");
    }
    if (strlen(campaign->election) == 0 || strlen(campaign->election) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         campaign->election, BATON_NAME_MAX - 1);
    }
    if (find(named, campaign->election)) {
        return error_set(reterr, BATON_EEXIST,
                         "election \"%s\": this process takes part in it already",
                         campaign->election);
    }
    return BATON_OK;
}

static struct named_election *new_election(struct named *named,
                                           const struct provider_campaign *campaign)
{
    size_t bytes = strlen(campaign->election) + 1;
    struct named_election *election = calloc(1, offsetof(struct named_election, name) + bytes);

    if (!election) {
        return NULL;
    }
    memcpy(election->name, campaign->election, bytes);
    election->base.ops = ops_of(named);
    election->base.provider = named->is_own ? &named->node->base : &named->base;
    election->named = named;
    election->cell = campaign->cell;
    election->on_event = campaign->on_event;
    election->userdata = campaign->userdata;
    election->is_eligible = campaign->eligible;
    election->priority = campaign->priority;
    election->drain_by = INSTANT_NEVER;
    DL_APPEND(named->all, election);
    return election;
}

static bool is_same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

/* The metadata are the process's: those of a campaign count for all its elections. */
static int set_metadata(struct named *named, const char *metadata)
{
    char *copy;

    if (is_same_text(named->metadata, metadata)) {
        return BATON_OK;
    }
    copy = metadata ? strdup(metadata) : NULL;
    if ((metadata && !copy) || session_client_describe(client_of(named), metadata) != BATON_OK) {
        free(copy);
        return BATON_ENOMEM;
    }
    free(named->metadata);
    named->metadata = copy;
    return BATON_OK;
}

static int begin(struct named_election *election, const struct provider_campaign *campaign)
{
    struct named *named = election->named;
    int r = campaign->metadata ? set_metadata(named, campaign->metadata) : BATON_OK;

    if (r == BATON_OK && campaign->known_epoch != 0) {
        r = session_client_recall(client_of(named), campaign->election, campaign->known_epoch,
                                  campaign->acts);
    }
    return r == BATON_OK ? enter(election) : r;
}

int named_campaign(struct provider_election **ret, struct provider *provider,
                   const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct node *node = named_node(provider);
    struct named_election *election;
    struct named *named;
    int r = named_ensure_begun(node, reterr);

    named = r == BATON_OK ? named_of(provider) : NULL;
    r = named ? check_campaign(named, campaign, reterr) : r;
    if (r != BATON_OK) {
        return r;
    }
    election = new_election(named, campaign);
    if (!election || begin(election, campaign) != BATON_OK) {
        if (election) {
            DL_DELETE(named->all, election);
        }
        free(election);
        return error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    lease_cell_bind(election->cell); /* after the guardian's lock, which is released before it */
    *ret = &election->base;
    session_tenant_drive(named->tenant);
    muster_soon(node);
    node_rearm(node, clock_now()); /* the first events are delivered by the loop */
    return BATON_OK;
}

/* The contender that `to` names, or with NULL any, which can take over; NULL: none, see reterr. */
static const struct session_contender *find_heir(const struct named_election *election,
                                                 const char *to, struct baton_error *reterr)
{
    const struct node *node = election->named->node;
    const char *name = election->name;
    struct heirs heirs = {.bytes = 0};
    const struct session_contender *heir = line_heir(node, line_of(node, name), to, &heirs);

    if (!heir && to) {
        (void)heirs_refuse(&heirs, to, reterr);
    } else if (!heir) {
        (void)error_set(reterr, BATON_EBUSY,
                        "nobody can take over now: no other process that answers may lead \"%s\"; "
                        "this one goes on leading",
                        name);
    }
    return heir;
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
    struct named *named = election->named;
    (void)deadline; /* the order is repeated until it is carried out */

    if (!election->is_held) {
        return error_set(reterr, BATON_ENOTLEADER, "this process does not lead \"%s\"",
                         election->name);
    }
    if (to && !(heir = find_heir(election, to, reterr))) {
        return BATON_EINVAL;
    }
    (void)session_client_resign(client_of(named), election->name, election->epoch,
                                heir ? heir->session->id : 0);
    session_tenant_drive(named->tenant);
    event_deliver(named->node);
    return BATON_OK;
}

int named_set_eligible(struct provider_election *base, bool eligible, struct baton_error *reterr)
{
    struct named_election *election = election_of(base);
    struct named *named = election->named;

    election->is_eligible = eligible;
    if (!election->is_stopped && enter(election) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for an order");
    }
    session_tenant_drive(named->tenant);
    event_deliver(named->node);
    return BATON_OK;
}

int named_set_metadata(struct provider_election *base, const char *metadata,
                       struct baton_error *reterr)
{
    struct named *named = election_of(base)->named;

    if (metadata && strlen(metadata) > SESSION_METADATA_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "metadata: %zu bytes; at most %d", strlen(metadata),
                         SESSION_METADATA_MAX);
    }
    if (set_metadata(named, metadata) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the metadata");
    }
    session_tenant_drive(named->tenant);
    return BATON_OK;
}

void named_leave(struct provider_election *base)
{
    struct named_election *election = election_of(base);
    struct named *named = election->named;

    if (!election->is_stopped) {
        session_client_withdraw(client_of(named), election->name);
        session_tenant_drive(named->tenant);
        session_client_disown(client_of(named), election->name);
        stop(election);
        event_deliver(named->node);
    }
}

void named_leader(struct provider_election *base, struct baton_member *ret, uint64_t *ret_epoch)
{
    const struct named_election *election = election_of(base);

    line_leader(election->named, election->name, ret, ret_epoch);
}

int named_member_add(struct provider_election *base, const struct baton_member *member,
                     bool replaces, instant deadline, provider_done_cb done, void *userdata,
                     struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_add(election_of(base)->named->node, member, replaces, deadline, &asker, reterr);
}

int named_member_remove(struct provider_election *base, const char *id, instant deadline,
                        provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_remove(election_of(base)->named->node, id, deadline, &asker, reterr);
}
