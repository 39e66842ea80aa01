#include "fleet/http/events.h"

#include "fleet/http/ring.h"
#include "fleet/outlets/event_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    BATCH_BYTES = 64 << 10,    /* of one part */
    BACKLOG_BYTES = 256 << 10, /* that may wait for the client's system */
    ONLY_ROOM = 256,
    EAGER_EVENTS =
        RING_EVENTS / 2, /* that are sent within a turn, before the ring overtakes them */
};

struct follower {
    struct call *call;
    uint64_t at; /* number of the next event for it */
    bool has_only;
    char only[ONLY_ROOM]; /* names of events */
    struct follower *prev, *next;
};

struct events {
    struct fleet_http *http;
    struct ring ring;
    struct follower *followers;
    size_t follower_count;
    uint64_t sent; /* the next event that is not sent yet */
    uv_timer_t soon, heartbeat;
};

/* ---- One follower ---------------------------------------------------------------------------- */

static void forget(struct follower *follower)
{
    struct call *call = follower->call;
    struct events *events = call->http->events;

    DL_DELETE(events->followers, follower);
    events->follower_count--;
    call_end(call); /* and the follower, its data */
}

static void on_gone(struct call *call)
{
    forget(call->data);
}

static void cut_off(struct follower *follower)
{
    struct web_exchange *exchange = follower->call->exchange;

    follower->call->http->counters.followers_cut++;
    forget(follower);
    web_exchange_set(exchange, NULL);
    web_finish(exchange);
}

/* What it has not got yet, as far as its socket takes it soon. */
static void serve(struct follower *follower)
{
    const struct ring *ring = &follower->call->http->events->ring;
    struct web_exchange *exchange = follower->call->exchange;
    struct buffer out;

    if (follower->at < ring_oldest(ring)) {
        cut_off(follower);
        return;
    }
    buffer_init(&out, BATCH_BYTES + RING_DATA_MAX + 1024);
    while (follower->at < ring->next && web_exchange_backlog(exchange) < BACKLOG_BYTES) {
        buffer_clear(&out);
        ring_put(ring, &follower->at, follower->has_only ? follower->only : NULL, BATCH_BYTES,
                 &out);
        web_part(exchange, out.data, out.bytes);
    }
    buffer_fini(&out);
}

static void on_drained(struct call *call)
{
    serve(call->data);
}

/* A name that no event has is misspelt, and would be waited for in vain. False: refused. */
static bool check_names(struct call *call, const char *only)
{
    char name[ONLY_ROOM];
    struct baton_error error;
    event_names names;

    for (const char *at = only; *at != '\0'; at += at[0] == ',') {
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
        at += strlen(name);
        if (strcmp(name, "object-changed") != 0 && /* which no outlet has */
            event_names_parse(&names, name, &error) != BATON_OK) {
            call_refuse(call, 400, "only", "only: %s, object-changed", error.message);
            return false;
        }
    }
    return true;
}

void events_follow(struct call *call)
{
    struct events *events = call->http->events;
    struct follower *follower = calloc(1, sizeof(*follower));
    const char *last = web_header(&call_request(call)->head, "last-event-id");
    static const char missed[] = "event: missed\ndata: {}\n\n", hello[] = ": baton-fleet\n\n";
    bool has_missed;

    call->data = follower;
    if (follower == NULL || events->follower_count == EVENTS_FOLLOWERS_MAX) {
        call_refuse(call, 503, NULL, "too many clients follow the events");
        return;
    }
    if (!call_parameter(call, "only", follower->only, sizeof(follower->only)) ||
        !check_names(call, follower->only)) {
        return;
    }
    follower->has_only = follower->only[0] != '\0';
    follower->call = call;
    follower->at = ring_begin(&events->ring, last, &has_missed);
    call->gone = on_gone;
    call->drained = on_drained;
    DL_APPEND(events->followers, follower);
    events->follower_count++;
    if (call_request(call)->is_head) {
        struct web_exchange *exchange = call->exchange;
        forget(follower);
        web_exchange_set(exchange, NULL);
        web_begin(exchange, &(struct web_answer){.status = 200, .type = "text/event-stream"});
        return;
    }
    web_part(call_begin(call, "text/event-stream"), has_missed ? missed : hello,
             has_missed ? sizeof(missed) - 1 : sizeof(hello) - 1);
    serve(follower);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void serve_all(struct events *events)
{
    struct follower *follower = NULL, *next = NULL;

    events->sent = events->ring.next;
    DL_FOREACH_SAFE (events->followers, follower, next) {
        serve(follower);
    }
}

static void on_soon(uv_timer_t *timer)
{
    serve_all(timer->data);
}

/* A proxy between us ends a connection on which nothing comes. */
static void on_heartbeat(uv_timer_t *timer)
{
    static const char heartbeat[] = ": heartbeat\n\n";
    struct events *events = timer->data;
    struct follower *follower = NULL, *next = NULL;

    DL_FOREACH_SAFE (events->followers, follower, next) {
        web_part(follower->call->exchange, heartbeat, sizeof(heartbeat) - 1);
    }
}

void events_add(struct events *events, const char *name, const char *data, size_t bytes)
{
    (void)ring_add(&events->ring, name, data, bytes); /* what is not kept shows as missed */
    events->http->counters.events++;
    if (events->http->is_closing || events->followers == NULL) {
        events->sent = events->ring.next;
    } else if (events->ring.next - events->sent >= EAGER_EVENTS) {
        serve_all(events);
    } else {
        (void)uv_timer_start(&events->soon, on_soon, 0, 0);
    }
}

size_t events_followers(const struct events *events)
{
    return events->follower_count;
}

struct events *events_new(struct fleet_http *http)
{
    struct events *events = calloc(1, sizeof(*events));

    if (events != NULL) {
        events->http = http;
        ring_init(&events->ring, http->run);
        events->sent = events->ring.next;
    }
    return events;
}

void events_begin(struct events *events)
{
    uv_loop_t *loop = events->http->config.loop;

    (void)uv_timer_init(loop, &events->soon); /* these cannot fail */
    (void)uv_timer_init(loop, &events->heartbeat);
    events->soon.data = events->heartbeat.data = events;
    (void)uv_timer_start(&events->heartbeat, on_heartbeat, EVENTS_HEARTBEAT_MS,
                         EVENTS_HEARTBEAT_MS);
}

void events_close(struct events *events)
{
    uv_close((uv_handle_t *)&events->soon, NULL);
    uv_close((uv_handle_t *)&events->heartbeat, NULL);
}

void events_free(struct events *events)
{
    if (events != NULL) {
        ring_fini(&events->ring);
        free(events);
    }
}
