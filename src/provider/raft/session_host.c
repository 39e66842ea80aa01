#include "provider/raft/session_host.h"

#include "base/invariant.h"
#include "provider/raft/orders.h"
#include "provider/raft/session_host_int.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER_BYTES_MAX = SESSION_METADATA_MAX + 512, RENEWED_BYTES = 9 };

/* From the refusal of a session's end until it is ordered again: the log is full, or its leadership
 * is being passed on. */
#define REFUSED_AGAIN SPAN_MS(20)

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
    host->end_again = host->refused_again = INSTANT_NEVER;
    host->random = (uint64_t)clock_now().ns | 1;
    (void)RAND_bytes((unsigned char *)&host->random, sizeof(host->random));
    host->last_number = host->random; /* the log has orders of earlier processes */
    (void)uv_timer_init(node->loop, &host->timer);
    host->timer.data = host;
    node->open_handles++;
    return host;
}

static void on_closed(uv_handle_t *timer)
{
    struct session_host *host = timer->data;
    struct node *node = host->node;

    session_host_forget_endings(host);
    sessions_free(host->sessions);
    free(host);
    node_release(node);
}

void session_host_end(struct session_host *host)
{
    if (host) {
        INVARIANT(!host->tenants); /* the provider outlives its handles */
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

void session_host_set_timer(const struct session_host *host, uv_timer_t *timer,
                            uv_timer_cb callback, instant at)
{
    span left = instant_since(at, clock_now());

    if (at.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(timer);
    } else {
        uv_update_time(host->node->loop);
        /* One of 0 ms, set in its own callback, runs again before the loop looks at its sockets. */
        (void)uv_timer_start(timer, callback, left.ns > 0 ? (uint64_t)(left.ns / 1000000) + 1 : 1,
                             0);
    }
}

void session_host_rearm(struct session_host *host)
{
    if (!host->is_closing) {
        session_host_set_timer(host, &host->timer, on_timer,
                               instant_min(keeper_deadline(&host->keeper),
                                           instant_min(host->end_again, host->refused_again)));
    }
}

/* ---- Orders ---------------------------------------------------------------------------------- */

int session_host_order(struct session_host *host, struct session_order *order)
{
    struct buffer bytes;
    int code;

    order->node = host->node->id;
    buffer_init(&bytes, ORDER_BYTES_MAX);
    session_order_encode(&bytes, order);
    code = bytes.failed ? BATON_ENOMEM
                        : state_send_order(host->node, order->request, bytes.data, bytes.bytes,
                                           orders_is_urgent(order->type));
    buffer_fini(&bytes);
    return code;
}

/* ---- The replicated state -------------------------------------------------------------------- */

static void on_change(void *userdata, const struct session_change *change)
{
    struct session_host *host = userdata;
    const struct session_input input = {.type = SESSION_IN_CHANGE, .change = *change};
    struct session_tenant *tenant = session_tenant_of(host, change->session);

    if (tenant) {
        session_tenant_step(tenant, &input); /* the caller drives */
    }
    if (tenant && change->type == SESSION_ENTERED) {
        named_note_entered(host->node, change->session, change->election);
    }
    if (change->type == SESSION_HELD || change->type == SESSION_FREED) {
        named_note_holder(host->node, change->election);
        asks_note_holder(host->node, change->election);
    }
}

/* The tenant whose order this is; NULL: none. The log keeps the orders of this node's earlier
 * processes, too: they are none of the present tenants'. */
static struct session_tenant *tenant_of_order(const struct session_host *host,
                                              const struct session_order *order)
{
    struct session_tenant *tenant = order->node == host->node->id && order->request != 0
                                        ? session_tenant_of_request(host, order->request)
                                        : NULL;
    bool is_own =
        tenant && (order->type == SESSION_OPEN
                       ? order->incarnation == tenant->incarnation &&
                             memcmp(order->secret, tenant->secret, sizeof(tenant->secret)) == 0
                   : order->type == SESSION_RESUME
                       ? order->session == tenant->resumes || order->session == tenant->session
                       : order->session == tenant->session);

    return is_own ? tenant : NULL;
}

static void report(struct session_tenant *tenant, enum session_change_type type,
                   const struct session_contender *contender)
{
    const struct session_input input = {.type = SESSION_IN_CHANGE,
                                        .change = {.type = type,
                                                   .session = contender->session->id,
                                                   .election = contender->election->name,
                                                   .epoch = contender->election->epoch}};

    session_tenant_step(tenant, &input);
}

/* Where a session stands that was resumed. */
static void report_standing(struct session_tenant *tenant)
{
    const struct session_input reported = {.type = SESSION_IN_REPORTED};
    const struct session *session = sessions_find(tenant->host->sessions, tenant->session);

    for (const struct session_contender *at = session ? session->first : NULL; at;
         at = at->younger) {
        bool holds = at->election->holder == at;
        report(tenant, SESSION_ENTERED, at);
        if (holds) {
            report(tenant, SESSION_HELD, at);
        }
        if (holds && (at->election->wanted != 0 || !at->is_eligible)) {
            report(tenant, SESSION_ASKED, at);
        }
    }
    session_tenant_step(tenant, &reported);
}

static void take_reply(struct session_host *host, const struct session_order *order,
                       struct session_input *reply)
{
    struct session_tenant *tenant = tenant_of_order(host, order);
    bool was_held = tenant && tenant->session != 0;

    if (tenant) {
        reply->request &= SESSION_HOST_REQUESTS;
        session_tenant_step(tenant, reply);
        if (order->type == SESSION_RESUME && !was_held && tenant->session != 0) {
            report_standing(tenant);
        }
    } else if (order->node == host->node->id && order->request != 0) {
        asks_take_reply(host->node, order->request, reply->code);
    }
}

bool session_host_apply(struct session_host *host, const void *data, size_t bytes, raft_index index)
{
    struct session_input reply = {.type = SESSION_IN_REPLY};
    struct session_order order;

    if (session_order_decode(&order, data, bytes) != BATON_OK) {
        return true; /* of a later version; all nodes of this version skip it */
    }
    reply.request = order.request;
    reply.index = index;
    reply.session = order.type == SESSION_OPEN ? index : order.session;
    reply.code = sessions_carry_out(host->sessions, &order, index);
    if (reply.code == BATON_ENOMEM) {
        return false;
    }
    if (reply.code == BATON_OK && (order.type == SESSION_OPEN || order.type == SESSION_RESUME)) {
        reply.lifetime = sessions_find(host->sessions, reply.session)->lifetime;
        keeper_opened(&host->keeper, reply.session, clock_now());
        session_host_rearm(host);
    }
    take_reply(host, &order, &reply);
    session_host_drive(host);
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
    session_host_drive(host);
}

/* ---- Keeping --------------------------------------------------------------------------------- */

/* Many may be refused at once, and are ordered again together. */
void session_host_end_refused(struct session_host *host)
{
    if (host->refused_again.ns == INSTANT_NEVER.ns) {
        host->refused_again = instant_add(clock_now(), REFUSED_AGAIN);
        if (host->endings) {
            host->end_again = instant_min(host->end_again, host->refused_again);
        }
        session_host_rearm(host);
    }
}

/* One reading of the clock: the ends of very many sessions take longer than the second after which
 * the keeper repeats the first of them, and the loop would do nothing else. */
static void end_overdue(struct session_host *host)
{
    const instant now = clock_now();
    struct session_order ended;

    while (is_keeping(host) && keeper_overdue(&host->keeper, now, &ended)) {
        log_info(host->node->logger, "session-ends", LOG_U64("session", ended.session),
                 LOG_STR("why", ended.end == SESSION_END_CERTIFIED ? "proved-dead" : "expired"));
        if (session_host_order(host, &ended) != BATON_OK) {
            session_host_end_refused(host);
        }
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
        keeper_prove_host(&host->keeper, known->id, known->fenced_index, clock_now());
    }
    end_overdue(host);
    session_host_rearm(host);
}

static bool is_proved(const struct session_host *host, const struct session *session)
{
    const struct acquaintance *known = acquaintance_of(host->node, session->node);

    return known && ((session->incarnation != 0 && session->incarnation <= known->proved) ||
                     session->attached <= known->fenced_index);
}

/* A proof holds in every term: these orders open the new one, and the keeper repeats them. */
void session_host_lead(struct session_host *host)
{
    const struct session *at = NULL;

    while ((at = sessions_next(host->sessions, at))) {
        struct session_order ended = {
            .type = SESSION_END, .session = at->id, .end = SESSION_END_CERTIFIED};
        if (is_proved(host, at)) {
            (void)session_host_order(host, &ended);
        }
    }
    session_host_hurry(host);
}

bool session_host_has(const struct session_host *host, raft_id id)
{
    const struct session *at = NULL;

    while ((at = sessions_next(host->sessions, at))) {
        if (at->node == id && !is_proved(host, at)) {
            return true;
        }
    }
    return false;
}

void session_host_proved(struct session_host *host, raft_id id, uint64_t incarnation)
{
    if (is_keeping(host)) {
        keeper_prove(&host->keeper, id, incarnation, clock_now());
        end_overdue(host);
        session_host_rearm(host);
    }
}

void session_host_fenced(struct session_host *host, raft_id id, raft_index index)
{
    if (is_keeping(host)) {
        keeper_prove_host(&host->keeper, id, index, clock_now());
        end_overdue(host);
        session_host_rearm(host);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct session_host *host = timer->data;
    struct node *node = host->node;

    if (!instant_before(clock_now(), host->refused_again)) {
        host->refused_again = INSTANT_NEVER;
        keeper_refused(&host->keeper, clock_now());
    }
    end_overdue(host);
    if (!instant_before(clock_now(), host->end_again)) {
        session_host_order_endings(host);
    }
    session_host_rearm(host);
    event_deliver(node);
}

span session_host_left(struct session_host *host, const struct session *session)
{
    const struct session_tenant *tenant = session_tenant_of(host, session->id);

    if (is_keeping(host)) {
        return instant_since(session->expires, clock_now());
    }
    return tenant ? instant_since(session_client_lease(tenant->client).end, clock_now())
                  : SPAN_NS(-1);
}

/* ---- Renewals -------------------------------------------------------------------------------- */

/* Whether this node leads the log beyond doubt: then it may renew. */
static bool leads(const struct node *node)
{
    return node->published.held && instant_before(clock_now(), node->published.end);
}

enum session_outcome session_host_renew(struct session_host *host, raft_id from, uint64_t id)
{
    const struct session *session = sessions_find(host->sessions, id);

    if (!leads(host->node) || !is_keeping(host)) {
        return SESSION_NOT_NOW;
    }
    if (session && session->node != from) {
        return SESSION_GONE; /* its process takes part through another node now */
    }
    return keeper_renew(&host->keeper, id, clock_now()) ? SESSION_RENEWED : SESSION_GONE;
}

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
    buffer_put_u8(&bytes, (uint8_t)session_host_renew(host, from, session));
    if (!bytes.failed) {
        connection_send_bytes(host->node, from, FRAME_RENEWED, frame->request_id, bytes.data,
                              bytes.bytes);
    }
    buffer_fini(&bytes);
    session_host_rearm(host);
}

void session_host_take_renewed(struct session_host *host, const struct frame *frame)
{
    struct reader reader = reader_of(frame->text, frame->text_bytes);
    uint64_t session = reader_u64(&reader);
    uint8_t outcome = reader_u8(&reader);
    struct session_tenant *tenant = session_tenant_of(host, session);

    if (reader.failed || reader.bytes > 0 || outcome > SESSION_NOT_NOW || !tenant) {
        return;
    }
    session_tenant_take_outcome(tenant, session, frame->request_id, (enum session_outcome)outcome);
    session_host_drive(host);
    event_deliver(host->node);
}
