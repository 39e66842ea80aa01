#include "fleet/workers/owners_int.h"

#include "base/error.h"
#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 250,
    SECOND_AFTER_MS = 300, /* the second joins the line behind the first */
    GRACE_S = 1,
    SILENCE_S = 10,
    OWNERS_MAX = WORKER_TABLE_MAX,
    ASK_BYTES_MAX = 256,
};

static struct owned *find(const struct owners *owners, const char *worker)
{
    struct owned *owned;

    HASH_FIND_STR(owners->all, worker, owned);
    return owned;
}

static struct owned *add(struct owners *owners, const char *worker)
{
    size_t bytes = strlen(worker) + 1;
    struct owned *owned = NULL;

    if (bytes <= sizeof(owned->worker) && HASH_COUNT(owners->all) < OWNERS_MAX) {
        owned = calloc(1, sizeof(*owned));
    }
    if (owned == NULL) {
        return NULL;
    }
    owned->owners = owners;
    owned->ask_at = owned->asked_at = INSTANT_PAST;
    memcpy(owned->worker, worker, bytes);
    owned->claim = (struct claim){
        .state = owners->config.state, .worker = owned->worker, .on_settled = owned_claimed};
    HASH_ADD_STR(owners->all, worker, owned);
    if (owned->hh.tbl == NULL) {
        free(owned);
        return NULL;
    }
    return owned;
}

/* ---- The queue ------------------------------------------------------------------------------- */

static void on_soon(uv_timer_t *timer);

void owned_queue(struct owned *owned)
{
    struct owners *owners = owned->owners;

    if (!owned->is_queued) {
        owned->is_queued = true;
        owned->next_queued = owners->queue;
        owners->queue = owned;
        (void)uv_timer_start(&owners->soon, on_soon, 0, 0);
    }
}

static void queue_all(struct owners *owners)
{
    for (struct owned *owned = owners->all; owned != NULL; owned = owned->hh.next) {
        owned_queue(owned);
    }
}

static void mark_dirty(struct owned *owned, bool has_other)
{
    if (owned != NULL) {
        owned->is_dirty = true;
        owned->has_other |= has_other;
        owned_queue(owned);
    }
}

static void settle(struct owned *owned, instant now)
{
    struct owners *owners = owned->owners;

    if (!owned_settle(owned, now) && !owned->is_queued) {
        HASH_DEL(owners->all, owned);
        claim_fini(&owned->claim);
        free(owned);
    }
}

static void end(struct owners *owners);

/* Those that are queued meanwhile come in the next turn. */
static void on_soon(uv_timer_t *timer)
{
    struct owners *owners = timer->data;
    struct owned *at = owners->queue;
    instant now = clock_now();

    owners->queue = NULL;
    while (at != NULL) {
        struct owned *next = at->next_queued;

        at->is_queued = false;
        settle(at, now);
        at = next;
    }
    if (owners->is_closing && owners->all == NULL) {
        end(owners);
    }
}

/* ---- `owners` -------------------------------------------------------------------------------- */

static void name_owner(struct owned *owned, const char *first, bool is_named, instant now)
{
    bool is_first = strcmp(first, owned->owners->process) == 0;

    owned->is_listed = true;
    if (is_named && !owned->is_wanted) {
        owned->begin_at = is_first ? now : instant_add(now, SPAN_MS(SECOND_AFTER_MS));
    } else if (is_first) {
        owned->begin_at = instant_min(owned->begin_at, now);
    }
    (void)snprintf(owned->first, sizeof(owned->first), "%s", first);
}

static void take_owner(struct owners *owners, const char *worker, const json_t *names, instant now)
{
    const char *first = json_string_value(json_array_get(names, 0));
    const char *second = json_string_value(json_array_get(names, 1));
    bool is_named = (first != NULL && strcmp(first, owners->process) == 0) ||
                    (second != NULL && strcmp(second, owners->process) == 0);
    struct owned *owned = find(owners, worker);

    if (owned == NULL && is_named && fleet_worker_id_is_valid(worker)) {
        owned = add(owners, worker);
    }
    if (owned != NULL) {
        name_owner(owned, first != NULL ? first : "", is_named, now);
        owned->is_named = is_named;
    }
}

static void follow(struct owners *owners)
{
    const json_t *workers =
        json_object_get(fleet_state_owners(owners->config.state, NULL), "workers");
    instant now = clock_now();
    const char *worker;
    json_t *names;

    owners->is_following = true;
    for (struct owned *owned = owners->all; owned != NULL; owned = owned->hh.next) {
        owned->is_listed = owned->is_named = false;
    }
    json_object_foreach((json_t *)workers, worker, names)
    {
        take_owner(owners, worker, names, now);
    }
    for (struct owned *owned = owners->all; owned != NULL; owned = owned->hh.next) {
        owned->is_wanted = owned->is_named;
        owned_queue(owned);
    }
}

/* ---- Asks ------------------------------------------------------------------------------------ */

/* Anything else on the channel is ignored: an ask only repeats what `owners` says. */
static void take_ask(struct owners *owners, const char *text, size_t bytes)
{
    const char *worker, *process;
    struct owned *owned;
    json_t *line;

    if (json_read_object(text, bytes, ASK_BYTES_MAX, 2, &line, NULL) != BATON_OK) {
        return;
    }
    worker = json_string_value(json_object_get(line, "worker"));
    process = json_string_value(json_object_get(line, "process"));
    owned = worker != NULL ? find(owners, worker) : NULL;
    if (owned != NULL && owned->epoch != 0 && process != NULL &&
        strcmp(process, owned->first) == 0) {
        owned->asked_at = clock_now();
        owned_queue(owned);
    }
    json_decref(line);
}

static void on_asks(void *userdata, const char *channel, const void *data, size_t bytes)
{
    const char *at = data;

    (void)channel;
    while (bytes > 0) {
        const char *end = memchr(at, '\n', bytes);
        size_t line = end != NULL ? (size_t)(end - at) : bytes;

        take_ask(userdata, at, line);
        at += line + (end != NULL);
        bytes -= line + (end != NULL);
    }
}

/* ---- The state ------------------------------------------------------------------------------- */

static struct owned *owned_of(const struct owners *owners, const char *subscription)
{
    const char *worker = fleet_state_worker_of(owners->config.state, subscription);

    return worker != NULL ? find(owners, worker) : NULL;
}

static void mark_user(void *userdata, const struct fleet_object *subscription)
{
    mark_dirty(owned_of(userdata, subscription->id), true);
}

static void tell_display(void *userdata, const struct fleet_object *subscription)
{
    struct owned *owned = owned_of(userdata, subscription->id);

    if (owned != NULL && owned->link != NULL && !owned->is_link_closing) {
        link_display_changed(owned->link, subscription->subscription.display);
    }
}

static void take_object(struct owners *owners, const struct fleet_state_event *event)
{
    if (event->kind == FLEET_SUBSCRIPTION) {
        mark_dirty(owned_of(owners, event->id), true);
    } else if (event->kind != FLEET_DISPLAY) {
        fleet_state_each_of(owners->config.state, event->kind, event->id, mark_user, owners);
    }
}

static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct owners *owners = (struct owners *)((char *)observer - offsetof(struct owners, observer));
    struct owned *owned;

    if (owners->is_closing) {
        return;
    }
    switch (event->change) {
    case FLEET_CHANGED_OWNERS:
        follow(owners);
        break;
    case FLEET_CHANGED_ASSIGNED:
    case FLEET_CHANGED_MARK:
        mark_dirty(find(owners, event->id), false);
        break;
    case FLEET_CHANGED_OBJECT:
        take_object(owners, event);
        break;
    case FLEET_CHANGED_DATA:
        fleet_state_each_of(owners->config.state, FLEET_DISPLAY, event->id, tell_display, owners);
        break;
    case FLEET_CHANGED_WORKER:
        if ((owned = find(owners, event->id)) != NULL) {
            owned_look(owned);
        }
        break;
    default:
        break;
    }
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* What failed, or had to wait for another process, is tried again. */
static void on_timer(uv_timer_t *timer)
{
    struct owners *owners = timer->data;

    if (!owners->is_following && fleet_state_is_ready(owners->config.state)) {
        follow(owners);
    }
    queue_all(owners);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void discard(struct owners *owners)
{
    if (owners != NULL) {
        free(owners->process);
        free(owners->token);
        free(owners);
    }
}

static void count_off(struct owners *owners)
{
    if (--owners->handles == 0) {
        owners->closed(owners->userdata);
        discard(owners);
    }
}

static void on_timer_closed(uv_handle_t *timer)
{
    count_off(timer->data);
}

static void on_publisher_closed(void *userdata)
{
    count_off(userdata);
}

static void end(struct owners *owners)
{
    fleet_state_ignore(owners->config.state, &owners->observer);
    feed_stop(owners->heard);
    uv_close((uv_handle_t *)&owners->soon, on_timer_closed);
    uv_close((uv_handle_t *)&owners->timer, on_timer_closed);
    publisher_close(&owners->responses, on_publisher_closed, owners);
    publisher_close(&owners->events, on_publisher_closed, owners);
    publisher_close(&owners->asks, on_publisher_closed, owners);
}

void owners_close(struct owners *owners, void (*closed)(void *userdata), void *userdata)
{
    owners->is_closing = true;
    owners->closed = closed;
    owners->userdata = userdata;
    queue_all(owners);
    (void)uv_timer_start(&owners->soon, on_soon, 0, 0);
}

static void start_timers(struct owners *owners, struct member *member)
{
    uv_loop_t *loop = member_loop(member);

    (void)uv_timer_init(loop, &owners->timer); /* these cannot fail */
    (void)uv_timer_init(loop, &owners->soon);
    owners->timer.data = owners->soon.data = owners;
    (void)uv_timer_start(&owners->timer, on_timer, TICK_MS, TICK_MS);
    publisher_init(&owners->responses, member, WORKER_RESPONSES);
    publisher_init(&owners->events, member, WORKER_EVENTS);
    publisher_init(&owners->asks, member, WORKER_ASKS);
    owners->handles = 5;
}

/* NULL: out of memory. */
static struct owners *owners_new(const struct owners_config *config)
{
    struct owners *owners = calloc(1, sizeof(*owners));

    if (owners != NULL) {
        owners->config = *config;
        owners->process = strdup(config->process);
        owners->token = config->token != NULL ? strdup(config->token) : NULL;
    }
    if (owners == NULL || owners->process == NULL ||
        (config->token != NULL && owners->token == NULL)) {
        discard(owners);
        return NULL;
    }
    owners->config.grace = config->grace.ns > 0 ? config->grace : SPAN_S(GRACE_S);
    owners->config.silence = config->silence.ns > 0 ? config->silence : SPAN_S(SILENCE_S);
    owners->config.process = owners->config.token = NULL; /* they are the caller's */
    return owners;
}

int owners_open(struct owners **ret, const struct owners_config *config, struct baton_error *reterr)
{
    struct member *member = fleet_state_member(config->state);
    int code = member_need(member, PROVIDER_CHANNELS | PROVIDER_MANY_ELECTIONS,
                           "channels and many elections", reterr);
    struct owners *owners = code == BATON_OK ? owners_new(config) : NULL;

    if (owners == NULL) {
        return code ? code
                    : error_set(reterr, BATON_ENOMEM, "out of memory for the workers' owners");
    }
    code = feed_subscribe(&owners->heard, member, WORKER_ASKS, on_asks, owners, reterr);
    if (code != BATON_OK) {
        discard(owners);
        return code;
    }
    start_timers(owners, member);
    owners->observer.on_change = on_change;
    fleet_state_observe(config->state, &owners->observer);
    if (fleet_state_is_ready(config->state)) {
        follow(owners);
    }
    *ret = owners;
    return BATON_OK;
}

/* ---- Outside --------------------------------------------------------------------------------- */

void owners_answer_patch(struct owners *owners, const char *worker, uint64_t ticket,
                         int64_t session, bool is_success, const char *text)
{
    struct owned *owned = find(owners, worker);

    if (owned != NULL && owned->link != NULL) {
        (void)link_answer_patch(owned->link, ticket, session, is_success, text);
    }
}

bool owners_owns(const struct owners *owners, const char *worker)
{
    const struct owned *owned = find(owners, worker);

    return owned != NULL && owned->epoch != 0;
}

size_t owners_count(const struct owners *owners)
{
    return owners->leading;
}
