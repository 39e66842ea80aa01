#include "provider/raft/session_host.h"

#include "provider/raft/node.h"
#include "sessions/keeper.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER_BYTES_MAX = SESSION_METADATA_MAX + 512, RENEWAL_BYTES = 8, RENEWED_BYTES = 9 };

/* In FRAME_RENEWED. */
enum outcome { OUTCOME_RENEWED, OUTCOME_ENDED, OUTCOME_NOT_NOW };

struct session_host {
    struct node *node;
    struct sessions *sessions;
    struct keeper keeper;
    raft_term kept_term; /* in which this node keeps, or kept last */
    struct session_client *client;
    struct session_user user;
    uint64_t random;
    uint32_t drift_ppm; /* the widest bound of a member's clock */
    bool is_driving;
    bool is_changed; /* while it is driven */
    bool is_closing;
    uv_timer_t timer;
};

static void on_change(void *userdata, const struct session_change *change);

/* ---- Life ------------------------------------------------------------------------------------ */

struct session_host *session_host_new(struct node *node)
{
    struct session_host *host = calloc(1, sizeof(*host));

    if (!host || !(host->sessions = sessions_new(on_change, host))) {
        free(host);
        return NULL;
    }
    host->node = node;
    host->random = (uint64_t)clock_now().ns | 1;
    (void)RAND_bytes((unsigned char *)&host->random, sizeof(host->random));
    (void)uv_timer_init(node->loop, &host->timer);
    host->timer.data = host;
    node->open_handles++;
    return host;
}

static void on_closed(uv_handle_t *timer)
{
    struct session_host *host = timer->data;
    struct node *node = host->node;

    session_client_free(host->client);
    sessions_free(host->sessions);
    free(host);
    node_release(node);
}

void session_host_end(struct session_host *host)
{
    if (host) {
        host->is_closing = true;
        uv_close((uv_handle_t *)&host->timer, on_closed);
    }
}

const struct sessions *session_host_sessions(const struct session_host *host)
{
    return host->sessions;
}

/* ---- The timer ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static bool is_keeping(struct session_host *host)
{
    struct raft_status status;

    raft_get_status(host->node->raft, &status);
    if (status.role != RAFT_LEADER || status.term != host->kept_term) {
        keeper_stop(&host->keeper);
    }
    return host->keeper.is_keeping;
}

static void rearm(struct session_host *host)
{
    instant at = host->client ? session_client_deadline(host->client) : INSTANT_NEVER;
    span left;

    at = instant_min(at, keeper_deadline(&host->keeper));
    left = instant_since(at, clock_now());
    if (host->is_closing || at.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&host->timer);
    } else {
        uv_update_time(host->node->loop);
        (void)uv_timer_start(&host->timer, on_timer,
                             left.ns > 0 ? (uint64_t)(left.ns / 1000000) + 1 : 0, 0);
    }
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static int order(struct session_host *host, struct session_order *order)
{
    struct buffer bytes;
    int code;

    order->node = host->node->id;
    buffer_init(&bytes, ORDER_BYTES_MAX);
    session_order_encode(&bytes, order);
    code = bytes.failed ? BATON_ENOMEM
                        : state_send_order(host->node, order->request, bytes.data, bytes.bytes);
    buffer_fini(&bytes);
    return code;
}

/* ---- This process's session ------------------------------------------------------------------ */

static void step(struct session_host *host, const struct session_input *input)
{
    host->random ^= host->random << 13;
    host->random ^= host->random >> 7;
    host->random ^= host->random << 17;
    session_client_step(host->client, input, clock_now(), host->random);
    host->is_changed = true;
}

/* Whether this node leads the log beyond doubt: then it may renew. */
static bool leads(const struct node *node)
{
    return node->published.held && instant_before(clock_now(), node->published.end);
}

static enum outcome renew(struct session_host *host, uint64_t session)
{
    if (!leads(host->node) || !is_keeping(host)) {
        return OUTCOME_NOT_NOW;
    }
    return keeper_renew(&host->keeper, session, clock_now()) ? OUTCOME_RENEWED : OUTCOME_ENDED;
}

static void take_outcome(struct session_host *host, uint64_t session, uint64_t request,
                         enum outcome outcome)
{
    const struct session_input input = {.type = SESSION_IN_RENEWED,
                                        .request = request,
                                        .session = session,
                                        .code = outcome == OUTCOME_RENEWED ? BATON_OK
                                                : outcome == OUTCOME_ENDED ? BATON_ENOENT
                                                                           : BATON_EUNAVAILABLE};

    step(host, &input);
}

static void send_renewal(struct session_host *host, uint64_t session, uint64_t request)
{
    struct node *node = host->node;
    struct raft_status status;
    struct buffer bytes;

    raft_get_status(node->raft, &status);
    if (status.role == RAFT_LEADER || status.leader == RAFT_NOBODY ||
        !connection_is_up(node, status.leader)) {
        take_outcome(host, session, request,
                     status.role == RAFT_LEADER ? renew(host, session) : OUTCOME_NOT_NOW);
        return;
    }
    buffer_init(&bytes, RENEWAL_BYTES);
    buffer_put_u64(&bytes, session);
    if (!bytes.failed) {
        connection_send_bytes(node, status.leader, FRAME_RENEWAL, request, bytes.data, bytes.bytes);
    }
    buffer_fini(&bytes);
}

static void send_order(struct session_host *host, struct session_order *ordered)
{
    struct session_input input = {.type = SESSION_IN_REPLY, .request = ordered->request};

    input.code = order(host, ordered);
    if (input.code != BATON_OK && ordered->request != 0) {
        step(host, &input);
    }
}

static void drive_once(struct session_host *host)
{
    struct session_client_lease lease = session_client_lease(host->client);
    struct session_event event;
    struct session_order ordered;
    uint64_t session, request;

    host->user.on_lease(host->user.userdata, &lease);
    while (session_client_next_event(host->client, &event)) {
        host->user.on_event(host->user.userdata, &event);
    }
    while (session_client_next_renewal(host->client, &session, &request)) {
        send_renewal(host, session, request);
    }
    while (session_client_next_order(host->client, clock_now(), &ordered)) {
        send_order(host, &ordered);
    }
}

void session_host_drive(struct session_host *host)
{
    host->is_changed = true;
    if (host->is_driving) {
        return; /* within a step: the outer call goes on */
    }
    host->is_driving = true;
    while (host->client && host->is_changed) {
        host->is_changed = false;
        drive_once(host);
    }
    host->is_driving = false;
    rearm(host);
}

static void take(struct session_host *host, const struct session_input *input)
{
    if (host->client) {
        step(host, input);
        session_host_drive(host);
    }
}

int session_host_attach(struct session_host *host, const struct session_client_options *options,
                        const struct session_user *user)
{
    const struct session_input up = {.type = SESSION_IN_UP};

    host->client = session_client_new(options);
    if (!host->client) {
        return BATON_ENOMEM;
    }
    host->user = *user;
    session_client_widen_drift(host->client, host->drift_ppm);
    take(host, &up);
    return BATON_OK;
}

void session_host_widen_drift(struct session_host *host, uint32_t drift_ppm)
{
    host->drift_ppm = drift_ppm > host->drift_ppm ? drift_ppm : host->drift_ppm;
    if (host->client) {
        session_client_widen_drift(host->client, drift_ppm);
    }
}

struct session_client *session_host_client(struct session_host *host)
{
    return host->client;
}

void session_host_leave(struct session_host *host)
{
    if (host->client) {
        session_client_leave(host->client, clock_now(), host->random);
        session_host_drive(host);
    }
}

void session_host_hurry(struct session_host *host)
{
    const struct session_input up = {.type = SESSION_IN_UP};

    take(host, &up);
}

void session_host_refused(struct session_host *host, uint64_t request)
{
    const struct session_input input = {
        .type = SESSION_IN_REPLY, .request = request, .code = BATON_EUNAVAILABLE};

    if (request != 0) {
        take(host, &input);
        event_deliver(host->node);
    }
}

/* ---- The replicated state -------------------------------------------------------------------- */

static void on_change(void *userdata, const struct session_change *change)
{
    struct session_host *host = userdata;
    const struct session_input input = {.type = SESSION_IN_CHANGE, .change = *change};

    if (!host->client) {
        return;
    }
    if (change->session == session_client_lease(host->client).session) {
        step(host, &input); /* the caller drives */
    }
    if (change->type == SESSION_HELD || change->type == SESSION_FREED) {
        host->user.on_holder(host->user.userdata, change->election);
    }
}

/* The log keeps the orders of this node's earlier processes: they are no replies to this one. */
static bool is_own(const struct session_host *host, const struct session_order *order)
{
    return host->client && order->node == host->node->id && order->request != 0 &&
           (order->type == SESSION_OPEN
                ? order->incarnation == host->node->incarnation
                : order->session == session_client_lease(host->client).session);
}

bool session_host_apply(struct session_host *host, const void *data, size_t bytes, raft_index index)
{
    struct session_input reply = {.type = SESSION_IN_REPLY};
    struct session_order order;

    if (session_order_decode(&order, data, bytes) != BATON_OK) {
        return true; /* of a later version; all nodes of this version skip it */
    }
    reply.request = order.request;
    reply.session = order.type == SESSION_OPEN ? index : order.session;
    reply.code = sessions_carry_out(host->sessions, &order, index);
    if (reply.code == BATON_ENOMEM) {
        return false;
    }
    if (reply.code == BATON_OK && order.type == SESSION_OPEN) {
        keeper_opened(&host->keeper, index, clock_now());
        rearm(host);
    }
    if (is_own(host, &order)) {
        step(host, &reply);
    }
    if (host->is_changed) {
        session_host_drive(host);
    }
    return true;
}

void session_host_snapshot(const struct session_host *host, struct buffer *buffer)
{
    sessions_snapshot(host->sessions, buffer);
}

void session_host_install(struct session_host *host, struct sessions *restored)
{
    keeper_stop(&host->keeper);
    sessions_install(host->sessions, restored);
    if (host->is_changed) {
        session_host_drive(host);
    }
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static void end_overdue(struct session_host *host)
{
    struct session_order ended = {.type = SESSION_END};

    while (is_keeping(host) &&
           (ended.session = keeper_overdue(&host->keeper, clock_now(), &ended.end))) {
        log_info(host->node->logger, "session-ends", LOG_U64("session", ended.session),
                 LOG_STR("why", ended.end == SESSION_END_CERTIFIED ? "proved-dead" : "expired"));
        (void)order(host, &ended); /* the keeper repeats it */
    }
}

void session_host_reach(struct session_host *host, raft_term term)
{
    struct raft_status status;
    const struct acquaintance *known = host->node->acquaintances;

    raft_get_status(host->node->raft, &status);
    if (status.role != RAFT_LEADER || status.term != term ||
        (host->kept_term == term && host->keeper.is_keeping)) {
        return;
    }
    host->kept_term = term;
    keeper_begin(&host->keeper, host->sessions, clock_now());
    for (; known; known = known->hh.next) {
        keeper_prove(&host->keeper, known->id, known->proved, clock_now());
    }
    end_overdue(host);
    rearm(host);
}

/* A proof holds in every term: these orders open the new one, and the keeper repeats them. */
void session_host_lead(struct session_host *host)
{
    const struct session *at = NULL;

    while ((at = sessions_next(host->sessions, at))) {
        const struct acquaintance *known = acquaintance_of(host->node, at->node);
        struct session_order ended = {
            .type = SESSION_END, .session = at->id, .end = SESSION_END_CERTIFIED};
        if (known && at->incarnation != 0 && at->incarnation <= known->proved) {
            (void)order(host, &ended);
        }
    }
    session_host_hurry(host);
}

void session_host_proved(struct session_host *host, raft_id id, uint64_t incarnation)
{
    if (is_keeping(host)) {
        keeper_prove(&host->keeper, id, incarnation, clock_now());
        end_overdue(host);
        rearm(host);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct session_host *host = timer->data;
    struct node *node = host->node;
    const struct session_input tick = {.type = SESSION_IN_TICK};

    end_overdue(host);
    take(host, &tick);
    rearm(host);
    event_deliver(node);
}

/* ---- Renewals over the network --------------------------------------------------------------- */

void session_host_take_renewal(struct session_host *host, raft_id from, const struct frame *frame)
{
    struct reader reader = reader_of(frame->text, frame->text_bytes);
    uint64_t session = reader_u64(&reader);
    struct buffer bytes;

    if (reader.failed || reader.bytes > 0 ||
        !raft_configuration_find(raft_get_configuration(host->node->raft), from)) {
        return; /* the session of a former member ends by its lifetime */
    }
    buffer_init(&bytes, RENEWED_BYTES);
    buffer_put_u64(&bytes, session);
    buffer_put_u8(&bytes, (uint8_t)renew(host, session));
    if (!bytes.failed) {
        connection_send_bytes(host->node, from, FRAME_RENEWED, frame->request_id, bytes.data,
                              bytes.bytes);
    }
    buffer_fini(&bytes);
    rearm(host);
}

void session_host_take_renewed(struct session_host *host, const struct frame *frame)
{
    struct reader reader = reader_of(frame->text, frame->text_bytes);
    uint64_t session = reader_u64(&reader);
    uint8_t outcome = reader_u8(&reader);

    if (reader.failed || reader.bytes > 0 || outcome > OUTCOME_NOT_NOW || !host->client) {
        return;
    }
    take_outcome(host, session, frame->request_id, (enum outcome)outcome);
    session_host_drive(host);
    event_deliver(host->node);
}
