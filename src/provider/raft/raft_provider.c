/* The provider's functions: open, campaign, hand over, close. */
#include "provider/raft/raft_provider.h"

#include "net/listener.h"
#include "provider/heirs.h"
#include "provider/raft/asks.h"
#include "provider/raft/channels.h"
#include "provider/raft/fencing.h"
#include "provider/raft/metadata.h"
#include "provider/raft/named.h"
#include "provider/raft/node.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct node *node_of(struct provider *provider)
{
    return (struct node *)provider;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void node_free(struct node *node)
{
    struct acquaintance *known = node->acquaintances;

    HASH_CLEAR(hh, node->acquaintances); /* frees the table; its elements remain a list */
    while (known) {
        struct acquaintance *next = known->hh.next;
        free(known->metadata);
        free(known);
        known = next;
    }
    raft_free(node->raft);
    storage_close(node->storage);
    tls_free(node->tls);
    frame_scratch_fini(&node->scratch);
    buffer_fini(&node->output);
    raft_options_fini(&node->options);
    if (node->timer_fd >= 0) {
        (void)close(node->timer_fd);
    }
    OPENSSL_cleanse(node->secret, sizeof(node->secret));
    named_free(node->named);
    channels_free(node->channels);
    free(node->metadata);
    free(node->election);
    free(node);
}

void node_release(struct node *node)
{
    void (*closed)(void *) = node->closed;
    void *userdata = node->closed_userdata;

    if (--node->open_handles == 0 && node->is_closing) {
        node_free(node);
        if (closed) {
            closed(userdata);
        }
    }
}

void node_handle_closed(uv_handle_t *handle)
{
    node_release(handle->data);
}

static void close_handle(struct node *node, uv_handle_t *handle)
{
    if (handle->data == node && !uv_is_closing(handle)) {
        uv_close(handle, node_handle_closed);
    }
}

static void stop_election(struct node *node)
{
    struct baton_event stopped = {.type = BATON_EVENT_STOPPED};

    if (node->election && !node->election->is_leaving) {
        node->election->is_leaving = true;
        node->election->cell = NULL;
        event_push(node, &stopped);
    }
}

/* Hands leadership to the best placed node before anything is closed. */
static void hand_over(struct node *node)
{
    struct raft_input transfer = {.type = RAFT_IN_TRANSFER, .transfer = {.deadline = clock_now()}};
    struct raft_input cordon = {.type = RAFT_IN_ELIGIBLE, .eligible = false};

    if (node->raft) {
        (void)node_step(node, &transfer); /* BATON_ENOTLEADER: nothing to hand over */
        (void)node_step(node, &cordon);
        node_publish_void(node);
    }
}

static void raft_close(struct provider *provider, void (*closed)(void *userdata), void *userdata)
{
    struct node *node = node_of(provider);

    if (node->is_closing) {
        return;
    }
    node->is_closing = true;
    if (node->named) { /* the end of its session first: the log still has its leader */
        named_stop(node);
        state_flush_orders(node);
    }
    hand_over(node);
    stop_election(node);
    event_deliver(node);
    request_fail_all(node, BATON_ECANCELED);
    asks_end(node);
    state_end(node);
    channels_end(node);
    node->is_closed = true;
    node->closed = closed;
    node->closed_userdata = userdata;
    guard_end(node);
    fencing_end(node);
    if (node->raft) {
        meeting_remember(node);
        link_end_all(node);
        connection_close_accepted(node);
    }
    listener_end(node->listener);
    close_handle(node, (uv_handle_t *)&node->datagrams);
    close_handle(node, (uv_handle_t *)&node->timer);
    close_handle(node, (uv_handle_t *)&node->pending_timer);
    close_handle(node, (uv_handle_t *)&node->handshake_timer);
    close_handle(node, (uv_handle_t *)&node->request_timer);
    close_handle(node, (uv_handle_t *)&node->turn);
    close_handle(node, (uv_handle_t *)&node->checkpoint); /* this handle always exists */
    close_handle(node, (uv_handle_t *)&node->log_timer);
    close_handle(node, (uv_handle_t *)&node->muster);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void on_timer(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;
    struct raft_input tick = {.type = RAFT_IN_TICK};
    (void)status;
    (void)events;

    node->is_armed = false;
    (void)node_step(node, &tick);
    if (!node->is_armed) { /* setting the timerfd again made it unreadable, as reading does */
        node_rearm(node, INSTANT_NEVER);
    }
}

static int begin_timers(struct node *node, struct baton_error *reterr)
{
    compaction_begin(node);
    node->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (node->timer_fd < 0 || uv_poll_init(node->loop, &node->timer, node->timer_fd) != 0) {
        return error_set(reterr, BATON_EIO, "a timer: no descriptor left");
    }
    node->timer.data = node;
    node->open_handles++;
    (void)uv_poll_start(&node->timer, UV_READABLE, on_timer);
    return BATON_OK;
}

/* Checks the members on disk, which differ from those in the options once the group has changed. */
static int check_members(const struct node *node, struct baton_error *reterr)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    int r = BATON_OK;

    for (size_t i = 0; r == BATON_OK && i < members->count; i++) {
        r = raft_options_check_peer(&node->options, &members->members[i], reterr);
    }
    return r;
}

static void take_identity(struct node *node, const struct storage_loaded *loaded)
{
    node->id = loaded->born.id;
    node->incarnation = loaded->born.incarnation;
    node->greeting.id = loaded->born.id;
    node->greeting.birth = loaded->born.birth;
    node->greeting.founders = loaded->born.founders;
    node->greeting.group = loaded->group;
    node->stored_term = loaded->hard.term > loaded->hard.pledged_term ? loaded->hard.term
                                                                      : loaded->hard.pledged_term;
    node->is_pinning = true;
    meeting_begin(node, loaded);
}

uint64_t node_draw_number(const struct node *node)
{
    uint64_t number;

    if (RAND_bytes((unsigned char *)&number, sizeof(number)) != 1) {
        number = node->id ^ (uint64_t)clock_now().ns;
    }
    return number;
}

static int begin_core(struct node *node, struct baton_error *reterr)
{
    struct storage_identity identity = {.directory = node->options.data,
                                        .cluster = node->options.cluster,
                                        .node = node->options.node};
    struct storage_loaded loaded;
    struct raft_start start = {.settings = node->options.settings};
    int r;

    identity.born =
        identity_born(node->options.node, node->options.is_joining ? NULL : &node->options.members);
    r = storage_open(&node->storage, &identity, &node->options.members, &loaded, reterr);
    if (r != BATON_OK) {
        return r;
    }
    take_identity(node, &loaded);
    node->is_new_founder = loaded.born.birth == identity.born.birth && !node->options.is_joining;
    start.id = node->id;
    start.incarnation = node->incarnation;
    start.hard = loaded.hard;
    start.snapshot = loaded.snapshot;
    start.entries = loaded.entries;
    start.entry_count = loaded.entry_count;
    start.eligible = node->eligible;
    start.is_outlived = node->options.is_guardian_only;
    start.seed = node_draw_number(node);
    node->next_request = node_draw_number(node);
    r = raft_new(&node->raft, &start, clock_now(), reterr);
    if (r != BATON_OK) {
        (void)error_wrap(reterr, "data directory %s", node->options.data);
    }
    node->applied = loaded.snapshot.index;
    if (r == BATON_OK) {
        r = check_members(node, reterr);
    }
    if (r == BATON_OK) {
        r = group_check(node, reterr);
    }
    if (r == BATON_OK) {
        r = state_begin(node, &loaded.snapshot, reterr);
    }
    storage_loaded_fini(&loaded);
    return r;
}

int node_begin(struct node *node, struct baton_error *reterr)
{
    struct raft_input tick = {.type = RAFT_IN_TICK};
    int r;

    node->cluster = frame_cluster_of(node->options.cluster);
    /* The address that the first start stores counts from then on. */
    r = storage_is_there(node->options.data) ? BATON_OK : connection_may_listen(node, reterr);
    if (r == BATON_OK) {
        r = begin_core(node, reterr);
    }
    if (r == BATON_OK) {
        r = begin_timers(node, reterr);
    }
    if (r == BATON_OK) {
        r = connection_listen(node, reterr);
    }
    if (r == BATON_OK) {
        proof_make_greeting(node);
        guard_begin(node);
        fencing_begin(node);
        muster_begin(node);
        if (raft_get_configuration(node->raft)->count == 0) {
            group_log_members(node); /* else the core reports the members of the log */
        }
        link_follow_membership(node);
        (void)node_step(node, &tick);
        r = node->options.group[0] ? named_begin(node, reterr) : BATON_OK;
    }
    return r;
}

static const struct provider_ops named_ops;

static int raft_open(struct provider **ret, const struct provider_config *config,
                     struct baton_error *reterr)
{
    struct node *node = calloc(1, sizeof(*node));
    int r;

    if (!node) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a node");
    }
    node->base.ops = &raft_provider_ops;
    node->loop = config->loop;
    node->logger = config->logger;
    node->alive_ns = config->alive_ns;
    node->on_failed = config->on_failed;
    node->failed_userdata = config->userdata;
    node->timer_fd = -1;
    buffer_init(&node->output, FRAME_BYTES_MAX + 64);
    r = raft_options_parse(&node->options, config, reterr);
    if (r == BATON_OK && !(node->channels = channels_new())) {
        r = error_set(reterr, BATON_ENOMEM, "out of memory for a node");
    }
    if (r == BATON_OK) {
        r = credentials_read(&node->tls, &node->options, reterr);
    }
    if (r != BATON_OK) {
        node_free(node);
        return r;
    }
    (void)uv_timer_init(node->loop, &node->checkpoint);
    node->checkpoint.data = node;
    (void)uv_timer_init(node->loop, &node->log_timer);
    node->log_timer.data = node;
    (void)uv_timer_init(node->loop, &node->pending_timer);
    node->pending_timer.data = node;
    (void)uv_timer_init(node->loop, &node->handshake_timer);
    node->handshake_timer.data = node;
    (void)uv_timer_init(node->loop, &node->muster);
    node->muster.data = node;
    (void)uv_timer_init(node->loop, &node->request_timer);
    node->request_timer.data = node;
    (void)uv_idle_init(node->loop, &node->turn);
    node->turn.data = node;
    node->open_handles += 7;
    if (node->options.group[0]) {
        node->base.ops = &named_ops;
        node->eligible = true;
    }
    *ret = &node->base;
    return BATON_OK;
}

/* ---- Elections ------------------------------------------------------------------------------- */

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
    if (node->election) {
        return error_set(reterr, BATON_EEXIST,
                         "election \"%s\": this group elects the leader of \"%s\" already; a group "
                         "has one election (open another group for another one)",
                         campaign->election, node->election->name);
    }
    return BATON_OK;
}

static int set_eligible(struct node *node, bool is_wanted)
{
    bool eligible = is_wanted && !node->is_poisoned;
    struct raft_input input = {.type = RAFT_IN_ELIGIBLE, .eligible = eligible};
    uint8_t others = node->greeting.flags & (uint8_t)~GREETING_CORDONED;

    node->eligible = eligible;
    node->greeting.flags = (uint8_t)(others | (eligible ? 0 : GREETING_CORDONED));
    metadata_send_to_all(node);
    return node_step(node, &input);
}

void node_retire(struct node *node)
{
    struct raft_input transfer = {.type = RAFT_IN_TRANSFER, .transfer = {.deadline = clock_now()}};
    struct baton_error error;

    (void)error_set(&error, BATON_ECLOSED,
                    "a fatal signal of this process was announced as its death, and the process "
                    "goes on: it does not lead again; restart it");
    log_error(node->logger, "retired", LOG_STR("reason", error.message));
    node->is_poisoned = true;
    event_error(node, error.code, &error);
    (void)node_step(node, &transfer); /* BATON_ENOTLEADER: nothing to hand over */
    (void)set_eligible(node, false);
}

static int raft_campaign(struct provider_election **ret, struct provider *provider,
                         const struct provider_campaign *campaign, struct baton_error *reterr)
{
    struct node *node = node_of(provider);
    struct node_election *election;
    int r = check_campaign(node, campaign, reterr);

    r = r == BATON_OK ? metadata_set(node, campaign->metadata, reterr) : r;
    if (r != BATON_OK) {
        return r;
    }
    election = calloc(1, sizeof(*election));
    if (!election) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for an election");
    }
    election->base = (struct provider_election){.ops = &raft_provider_ops, .provider = provider};
    election->node = node;
    election->cell = campaign->cell;
    election->on_event = campaign->on_event;
    election->userdata = campaign->userdata;
    (void)snprintf(election->name, sizeof(election->name), "%s", campaign->election);
    if (!node->options.cluster[0]) {
        (void)snprintf(node->options.cluster, sizeof(node->options.cluster), "%s", election->name);
    }
    node->election = election;
    node->eligible = campaign->eligible;
    *ret = &election->base;
    if (node->raft) {
        lease_cell_bind(election->cell);
        return set_eligible(node, campaign->eligible);
    }
    node->depth++; /* the caller gets its handle before the first event */
    r = node_begin(node, reterr);
    node->depth--;
    if (r != BATON_OK) {
        node->is_broken = true;
        node->election = NULL;
        *ret = NULL;
        free(election);
        return r;
    }
    lease_cell_bind(
        election->cell); /* after the guardian's lock: robust locks are released in reverse */
    node_rearm(node, clock_now()); /* the first events are delivered by the loop */
    return BATON_OK;
}

/* Refuses an heir that is dead or cannot campaign now, before anything stops for it. */
static int check_named(const struct node *node, const struct raft_member *heir,
                       struct baton_error *reterr)
{
    struct raft_progress progress;
    bool is_known = raft_get_progress(node->raft, heir->id, &progress);
    char why[64];

    if (!connection_is_up(node, heir->id)) {
        return error_set(reterr, BATON_EBUSY,
                         "member \"%s\" does not answer; this node goes on leading", heir->name);
    }
    if (is_known && progress.is_active && !progress.may_lead) {
        return error_set(reterr, BATON_EBUSY,
                         "member \"%s\" is cordoned; this node goes on leading", heir->name);
    }
    if (!is_known || progress.silence.ns <= 0) {
        return BATON_OK;
    }
    event_unready(node, heir->id, why, sizeof(why));
    return error_set(reterr, BATON_EBUSY, "member \"%s\": %s; pass leadership then", heir->name,
                     why);
}

/* Whether a member can campaign now; if not, *why has the reason. */
static bool is_ready(const struct node *node, raft_id id, char *why, size_t bytes)
{
    struct raft_progress progress;

    if (raft_get_progress(node->raft, id, &progress) && progress.may_lead &&
        progress.silence.ns <= 0 && connection_is_up(node, id)) {
        return true;
    }
    event_unready(node, id, why, bytes);
    return false;
}

static bool is_heir(const struct node *node, const struct raft_member *member)
{
    return member->id != node->id && member->kind == RAFT_VOTER && member->weight > 0;
}

/* Refuses a hand-over while no other member could take over. */
static int check_heirs(const struct node *node, struct baton_error *reterr)
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    char text[BATON_ERROR_MESSAGE_MAX / 2] = "", why[64];

    for (size_t i = 0; i < now->count; i++) {
        const struct raft_member *member = &now->members[i];
        size_t used = strlen(text);
        if (!is_heir(node, member)) {
            continue;
        }
        if (is_ready(node, member->id, why, sizeof(why))) {
            return BATON_OK;
        }
        (void)snprintf(text + used, sizeof(text) - used, "%s\"%s\" %s", used ? ", " : "",
                       member->name, why);
    }
    return error_set(reterr, BATON_EBUSY, "nobody can take over now: %s; this node goes on leading",
                     text[0] ? text : "no other member may lead");
}

static int raft_check_heir(struct provider_election *election, const char *to,
                           struct baton_error *reterr)
{
    const struct node *node = ((struct node_election *)election)->node;
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    struct heirs heirs = {.bytes = 0};

    for (size_t i = 0; to && i < now->count; i++) {
        const struct raft_member *member = &now->members[i];
        if (!is_heir(node, member)) {
            continue;
        }
        if (strcmp(member->name, to) == 0) {
            return check_named(node, member, reterr);
        }
        heirs_add(&heirs, member->name);
    }
    return to ? heirs_refuse(&heirs, to, reterr) : check_heirs(node, reterr);
}

static int raft_resign(struct provider_election *election, const char *to, instant deadline,
                       struct baton_error *reterr)
{
    struct node *node = ((struct node_election *)election)->node;
    struct raft_input input = {.type = RAFT_IN_TRANSFER,
                               .transfer = {.deadline = deadline, .or_stay = to != NULL}};
    const struct raft_member *heir =
        to ? identity_member(raft_get_configuration(node->raft), to) : NULL;
    int r;

    input.transfer.to = heir ? heir->id : RAFT_NOBODY;
    r = to && !heir ? BATON_EINVAL : node_step(node, &input);
    switch (r) {
    case BATON_OK:
        return r;
    case BATON_ENOTLEADER:
        return error_set(reterr, r, "node \"%s\" does not lead", node->options.node);
    case BATON_EINVAL:
        return raft_check_heir(election, to ? to : "", reterr);
    default:
        return error_set(reterr, r, "handing over: another hand-over is under way");
    }
}

static void raft_drained(struct provider_election *election)
{
    struct raft_input input = {.type = RAFT_IN_DRAINED};

    (void)node_step(((struct node_election *)election)->node, &input); /* cannot fail */
}

static int raft_set_eligible(struct provider_election *election, bool eligible,
                             struct baton_error *reterr)
{
    struct node *node = ((struct node_election *)election)->node;

    if (eligible && node->is_poisoned) {
        return error_set(reterr, BATON_ECLOSED,
                         "a fatal signal of this process was announced as its death: it does not "
                         "lead again; restart it");
    }
    return set_eligible(node, eligible);
}

static int raft_set_metadata(struct provider_election *election, const char *metadata,
                             struct baton_error *reterr)
{
    return metadata_set(((struct node_election *)election)->node, metadata, reterr);
}

static void raft_leave(struct provider_election *election)
{
    struct node *node = ((struct node_election *)election)->node;

    if (!((struct node_election *)election)->is_leaving) {
        node->eligible = false;
        (void)metadata_set(node, NULL, NULL); /* cannot fail */
        hand_over(node);
        stop_election(node);
        event_deliver(node);
    }
}

static void raft_leader(struct provider_election *election, struct baton_member *ret,
                        uint64_t *ret_epoch)
{
    const struct node *node = ((struct node_election *)election)->node;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    event_member_of(node, status.leader, ret);
    *ret_epoch = status.leader != RAFT_NOBODY ? status.term : 0;
}

static int raft_members(struct provider_election *election, provider_members_cb done,
                        void *userdata, struct baton_error *reterr)
{
    const struct node *node = ((struct node_election *)election)->node;
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    struct baton_member *members = calloc(now->count + 1, sizeof(*members));

    if (!members) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the members");
    }
    for (size_t i = 0; i < now->count; i++) {
        event_member_of(node, now->members[i].id, &members[i]);
        members[i].metadata = metadata_of(node, now->members[i].id);
    }
    done(userdata, BATON_OK, members, now->count);
    free(members);
    return BATON_OK;
}

static int raft_member_add(struct provider_election *election, const struct baton_member *member,
                           bool replaces, instant deadline, provider_done_cb done, void *userdata,
                           struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_add(((struct node_election *)election)->node, member, replaces, deadline, &asker,
                       reterr);
}

static int raft_member_remove(struct provider_election *election, const char *id, instant deadline,
                              provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    const struct node_asker asker = {done, userdata};

    return request_remove(((struct node_election *)election)->node, id, deadline, &asker, reterr);
}

const struct provider_ops raft_provider_ops = {
    .scheme = "raft",
    .summary = "peers elect among themselves, with no outside service",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_OPERATE | PROVIDER_STATE,
    .settings = raft_provider_settings,
    .open = raft_open,
    .close = raft_close,
    .campaign = raft_campaign,
    .check_heir = raft_check_heir,
    .resign = raft_resign,
    .drained = raft_drained,
    .set_eligible = raft_set_eligible,
    .set_metadata = raft_set_metadata,
    .leave = raft_leave,
    .leader = raft_leader,
    .status = raft_provider_status,
    .members = raft_members,
    .member_add = raft_member_add,
    .member_remove = raft_member_remove,
    .publish = channels_publish,
    .subscribe = channels_subscribe,
    .unsubscribe = channels_unsubscribe,
    .get = state_get,
    .get_each = state_get_each,
    .list = state_list,
    .put = state_put,
    .watch = state_watch,
    .unwatch = state_unwatch,
    .set_victims = guard_set_victims,
    .reload = credentials_reload,
};

/* With `group`: named elections. The log's leader is nobody's work, so nothing drains before it
 * moves. */
static const struct provider_ops named_ops = {
    .scheme = "raft",
    .summary = "peers elect among themselves, with no outside service",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_OPERATE | PROVIDER_STATE |
                PROVIDER_MANY_ELECTIONS,
    .settings = raft_provider_settings,
    .open = raft_open,
    .close = raft_close,
    .lease = named_lease,
    .begin = named_take_part,
    .campaign = named_campaign,
    .check_heir = named_check_heir,
    .resign = named_resign,
    .drained = named_drained,
    .set_eligible = named_set_eligible,
    .set_metadata = named_set_metadata,
    .leave = named_leave,
    .leader = named_leader,
    .status = raft_provider_status,
    .members = named_members,
    .member_add = named_member_add,
    .member_remove = named_member_remove,
    .publish = channels_publish,
    .subscribe = channels_subscribe,
    .unsubscribe = channels_unsubscribe,
    .get = state_get,
    .get_each = state_get_each,
    .list = state_list,
    .put = state_put,
    .watch = state_watch,
    .unwatch = state_unwatch,
    .set_victims = guard_set_victims,
    .reload = credentials_reload,
    .attach = attach_open,
    .elections = named_elections,
    .ask_pass = ask_pass,
    .ask_eligible = ask_eligible,
};
