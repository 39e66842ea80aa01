/* Those that have a session through this node: the node's own process, and attached ones. */
#include "provider/raft/session_host_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* An order's number in the log: the tenant's in the upper bits, its client's in the lower ones. */
enum { REQUEST_BITS = 40, NUMBERS = 1 << 24 };

_Static_assert(SESSION_HOST_REQUESTS == (1ull << REQUEST_BITS) - 1, "tenant 0 does not exist");

#define END_AGAIN SPAN_MS(500)

enum { RENEWAL_BYTES = 8 };

/* ---- Ends that are ordered here -------------------------------------------------------------- */

static bool has_ended(const struct session_host *host, const struct ending *ending)
{
    const struct session *session = sessions_find(host->sessions, ending->session);

    return !session || session->attached != ending->attached;
}

void session_host_order_endings(struct session_host *host)
{
    struct ending **at = &host->endings;

    while (*at) {
        struct ending *ending = *at;
        struct session_order ended = {.type = SESSION_END,
                                      .session = ending->session,
                                      .epoch = ending->attached,
                                      .end = SESSION_END_LEFT};
        if (has_ended(host, ending)) {
            *at = ending->next;
            free(ending);
        } else {
            (void)session_host_order(host, &ended);
            at = &ending->next;
        }
    }
    host->end_again = host->endings ? instant_add(clock_now(), END_AGAIN) : INSTANT_NEVER;
    session_host_rearm(host);
}

void session_host_forget_endings(struct session_host *host)
{
    while (host->endings) {
        struct ending *ending = host->endings;
        host->endings = ending->next;
        free(ending);
    }
}

/* Out of memory, it is ordered once. */
static void remember_ending(struct session_host *host, const struct session_order *ended)
{
    struct ending *ending = host->is_closing ? NULL : calloc(1, sizeof(*ending));

    if (ending) {
        *ending = (struct ending){ended->session, ended->epoch, host->endings};
        host->endings = ending;
        host->end_again = instant_min(host->end_again, instant_add(clock_now(), END_AGAIN));
        session_host_rearm(host);
    }
}

/* ---- Tenants --------------------------------------------------------------------------------- */

struct session_tenant *session_tenant_of(const struct session_host *host, uint64_t session)
{
    struct session_tenant *tenant;

    HASH_FIND(by_session, host->by_session, &session, sizeof(session), tenant);
    return tenant;
}

struct session_tenant *session_tenant_of_request(const struct session_host *host, uint64_t request)
{
    uint64_t number = request >> REQUEST_BITS;
    struct session_tenant *tenant;

    HASH_FIND(hh, host->tenants, &number, sizeof(number), tenant);
    return tenant;
}

/* Out of memory, its changes are not heard: it can act in nothing, and leaves its session. */
static void index_session(struct session_tenant *tenant)
{
    struct session_host *host = tenant->host;
    uint64_t session = session_client_lease(tenant->client).session;

    if (session == tenant->session) {
        return;
    }
    if (tenant->session != 0 && session_tenant_of(host, tenant->session) == tenant) {
        HASH_DELETE(by_session, host->by_session, tenant);
    }
    tenant->session = session;
    if (session != 0) {
        tenant->resumes = 0;
        HASH_ADD(by_session, host->by_session, session, sizeof(tenant->session), tenant);
    }
}

static void mark_changed(struct session_tenant *tenant)
{
    if (!tenant->is_changed) {
        tenant->is_changed = true;
        DL_APPEND(tenant->host->changed, tenant);
    }
}

static uint64_t draw(struct session_host *host)
{
    host->random ^= host->random << 13;
    host->random ^= host->random >> 7;
    host->random ^= host->random << 17;
    return host->random;
}

void session_tenant_step(struct session_tenant *tenant, const struct session_input *input)
{
    session_client_step(tenant->client, input, clock_now(), draw(tenant->host));
    index_session(tenant);
    mark_changed(tenant);
}

void session_tenant_take_outcome(struct session_tenant *tenant, uint64_t session, uint64_t request,
                                 enum session_outcome outcome)
{
    const struct session_input input = {.type = SESSION_IN_RENEWED,
                                        .request = request,
                                        .session = session,
                                        .code = outcome == SESSION_RENEWED ? BATON_OK
                                                : outcome == SESSION_GONE  ? BATON_ENOENT
                                                                           : BATON_EUNAVAILABLE};

    session_tenant_step(tenant, &input);
}

static void send_renewal(struct session_tenant *tenant, uint64_t session, uint64_t request)
{
    struct session_host *host = tenant->host;
    struct node *node = host->node;
    struct raft_status status;
    struct buffer bytes;

    raft_get_status(node->raft, &status);
    if (status.role == RAFT_LEADER || status.leader == RAFT_NOBODY ||
        !connection_is_up(node, status.leader)) {
        session_tenant_take_outcome(tenant, session, request,
                                    status.role == RAFT_LEADER
                                        ? session_host_renew(host, node->id, session)
                                        : SESSION_NOT_NOW);
        return;
    }
    buffer_init(&bytes, RENEWAL_BYTES);
    buffer_put_u64(&bytes, session);
    if (!bytes.failed) {
        connection_send_bytes(node, status.leader, FRAME_RENEWAL, request, bytes.data, bytes.bytes);
    }
    buffer_fini(&bytes);
}

static void send_order(struct session_tenant *tenant, struct session_order *ordered)
{
    struct session_input input = {.type = SESSION_IN_REPLY, .request = ordered->request};

    if (ordered->request != 0) {
        ordered->request |= tenant->number << REQUEST_BITS;
    }
    if (ordered->type == SESSION_END) {
        remember_ending(tenant->host, ordered);
    }
    input.code = session_host_order(tenant->host, ordered);
    if (input.code != BATON_OK && ordered->request != 0) {
        session_tenant_step(tenant, &input);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct session_tenant *tenant = timer->data;
    struct node *node = tenant->host->node;
    const struct session_input tick = {.type = SESSION_IN_TICK};

    session_tenant_step(tenant, &tick);
    session_host_drive(tenant->host);
    event_deliver(node);
}

static void drive(struct session_tenant *tenant)
{
    struct session_client_lease lease = session_client_lease(tenant->client);
    struct session_event event;
    struct session_order ordered;
    uint64_t session, request;

    tenant->user.on_lease(tenant->user.userdata, &lease);
    while (session_client_next_event(tenant->client, &event)) {
        tenant->user.on_event(tenant->user.userdata, &event);
    }
    while (session_client_next_renewal(tenant->client, &session, &request)) {
        send_renewal(tenant, session, request);
    }
    while (session_client_next_order(tenant->client, clock_now(), &ordered)) {
        send_order(tenant, &ordered);
    }
    if (!tenant->is_changed) { /* by what was sent: else it is driven again */
        session_host_set_timer(tenant->host, &tenant->timer, on_tick,
                               session_client_deadline(tenant->client));
    }
}

void session_host_drive(struct session_host *host)
{
    if (host->is_driving) {
        return; /* within a step: the outer call goes on */
    }
    host->is_driving = true;
    while (host->changed) {
        struct session_tenant *tenant = host->changed;
        DL_DELETE(host->changed, tenant);
        tenant->is_changed = false;
        drive(tenant);
    }
    host->is_driving = false;
}

void session_tenant_drive(struct session_tenant *tenant)
{
    mark_changed(tenant);
    session_host_drive(tenant->host);
}

static bool is_here(const struct session_host *host, uint64_t session)
{
    for (const struct session_tenant *at = host->tenants; at && session != 0; at = at->hh.next) {
        if (at->session == session || at->resumes == session) {
            return true;
        }
    }
    return false;
}

static uint64_t draw_number(struct session_host *host)
{
    do {
        host->last_number = (host->last_number + 1) % NUMBERS;
    } while (host->last_number == 0 ||
             session_tenant_of_request(host, host->last_number << REQUEST_BITS) != NULL);
    return host->last_number;
}

int session_host_attach(struct session_tenant **ret, struct session_host *host,
                        const struct session_client_options *options,
                        const struct session_user *user)
{
    const struct session_input up = {.type = SESSION_IN_UP};
    struct session_client_options own = *options;
    struct session_tenant *tenant = calloc(1, sizeof(*tenant));

    own.resume = is_here(host, options->resume) ? 0 : options->resume;
    if (!tenant || !(tenant->client = session_client_new(&own))) {
        free(tenant);
        return BATON_ENOMEM;
    }
    tenant->node = host->node;
    tenant->host = host;
    tenant->user = *user;
    tenant->incarnation = options->incarnation;
    memcpy(tenant->secret, options->secret, sizeof(tenant->secret));
    tenant->number = draw_number(host);
    tenant->resumes = own.resume;
    HASH_ADD(hh, host->tenants, number, sizeof(tenant->number), tenant);
    if (!tenant->hh.tbl) {
        session_client_free(tenant->client);
        free(tenant);
        return BATON_ENOMEM;
    }
    (void)uv_timer_init(host->node->loop, &tenant->timer);
    tenant->timer.data = tenant;
    host->node->open_handles++;
    session_client_widen_drift(tenant->client, host->drift_ppm);
    *ret = tenant;
    session_tenant_step(tenant, &up);
    return BATON_OK;
}

static void on_tenant_closed(uv_handle_t *timer)
{
    struct session_tenant *tenant = timer->data;
    struct node *node = tenant->node;

    tenant->user.on_closed(tenant->user.userdata);
    free(tenant);
    node_release(node);
}

void session_tenant_detach(struct session_tenant *tenant)
{
    struct session_host *host = tenant->host;

    if (tenant->is_closing) {
        return;
    }
    tenant->is_closing = true;
    if (tenant->is_changed) {
        DL_DELETE(host->changed, tenant);
    }
    if (tenant->session != 0 && session_tenant_of(host, tenant->session) == tenant) {
        HASH_DELETE(by_session, host->by_session, tenant);
    }
    HASH_DELETE(hh, host->tenants, tenant);
    session_client_free(tenant->client);
    tenant->client = NULL;
    uv_close((uv_handle_t *)&tenant->timer, on_tenant_closed);
}

void session_host_widen_drift(struct session_host *host, uint32_t drift_ppm)
{
    host->drift_ppm = drift_ppm > host->drift_ppm ? drift_ppm : host->drift_ppm;
    for (struct session_tenant *at = host->tenants; at; at = at->hh.next) {
        session_client_widen_drift(at->client, drift_ppm);
    }
}

void *session_host_user(const struct session_host *host, uint64_t session)
{
    const struct session_tenant *tenant = session_tenant_of(host, session);

    return tenant ? tenant->user.userdata : NULL;
}

struct session_client *session_tenant_client(struct session_tenant *tenant)
{
    return tenant->client;
}

void session_tenant_leave(struct session_tenant *tenant)
{
    session_client_leave(tenant->client, clock_now(), draw(tenant->host));
    index_session(tenant);
    session_tenant_drive(tenant);
}

void session_host_hurry(struct session_host *host)
{
    const struct session_input up = {.type = SESSION_IN_UP};

    for (struct session_tenant *at = host->tenants; at; at = at->hh.next) {
        session_tenant_step(at, &up);
    }
    session_host_order_endings(host);
    session_host_drive(host);
}

void session_host_refused(struct session_host *host, uint64_t request)
{
    struct session_tenant *tenant = session_tenant_of_request(host, request);
    const struct session_input input = {.type = SESSION_IN_REPLY,
                                        .request = request & SESSION_HOST_REQUESTS,
                                        .code = BATON_EUNAVAILABLE};

    if (tenant && request != 0) {
        session_tenant_step(tenant, &input);
        session_host_drive(host);
    } else if (request != 0) {
        asks_take_reply(host->node, request, BATON_EUNAVAILABLE);
    } else {
        session_host_end_refused(host);
    }
    event_deliver(host->node);
}
