#include "provider/raft/asks.h"

#include "provider/raft/named_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { AGAIN_MS = 250 };

struct ask {
    struct node *node;
    uv_timer_t timer;
    struct session_order order;
    uint64_t epoch;   /* of the leader that shall hand over */
    bool is_accepted; /* the order was carried out */
    bool is_over;
    instant deadline;
    struct baton_error error; /* .code: of the reply, once it is over */
    provider_done_cb done;
    void *userdata;
    struct ask *prev, *next;
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *timer)
{
    struct ask *ask = timer->data;
    struct node *node = ask->node;

    free(ask);
    node_release(node);
}

static void finish(struct ask *ask)
{
    DL_DELETE(ask->node->asks, ask);
    uv_close((uv_handle_t *)&ask->timer, on_closed);
    ask->done(ask->userdata, ask->error.code, &ask->error);
}

static void on_tick(uv_timer_t *timer);

/* The caller gets its reply by the loop: this may be within a step. */
static void end(struct ask *ask, int code, const char *why)
{
    if (!ask->is_over) {
        ask->is_over = true;
        (void)error_set(&ask->error, code, "election \"%s\": %s", ask->order.name, why);
        (void)uv_timer_start(&ask->timer, on_tick, 0, 0);
    }
}

void asks_end(struct node *node)
{
    while (node->asks) {
        end(node->asks, BATON_ECANCELED, "this node was closed");
        finish(node->asks);
    }
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void wait_a_while(struct ask *ask)
{
    int64_t left_ms = instant_since(ask->deadline, clock_now()).ns / 1000000;

    uv_update_time(ask->node->loop);
    (void)uv_timer_start(&ask->timer, on_tick,
                         left_ms < 0          ? 0
                         : left_ms < AGAIN_MS ? (uint64_t)left_ms + 1
                                              : AGAIN_MS,
                         0);
}

static void on_tick(uv_timer_t *timer)
{
    struct ask *ask = timer->data;

    if (!ask->is_over && !instant_before(clock_now(), ask->deadline)) {
        end(ask, BATON_ETIMEDOUT,
            ask->is_accepted ? "its leader was asked to hand over, and has not done so in time; "
                               "it may do so yet"
                             : "the group did not reply in time; the change may come yet");
    }
    if (ask->is_over) {
        finish(ask);
        return;
    }
    if (!ask->is_accepted) {
        (void)session_host_order(ask->node->host, &ask->order); /* a failed one is repeated */
    }
    wait_a_while(ask);
}

/* Takes a copy of the ask. */
static int begin(struct node *node, const struct ask *wanted, struct baton_error *reterr)
{
    struct ask *ask = calloc(1, sizeof(*ask));

    if (!ask) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a request");
    }
    *ask = *wanted;
    ask->node = node;
    ask->order.request = node->next_request++ % SESSION_HOST_REQUESTS + 1;
    (void)uv_timer_init(node->loop, &ask->timer);
    ask->timer.data = ask;
    node->open_handles++;
    DL_APPEND(node->asks, ask);
    (void)session_host_order(node->host, &ask->order); /* a failed one is repeated */
    wait_a_while(ask);
    return BATON_OK;
}

static int check(struct node *node, const char *election, struct baton_error *reterr)
{
    const struct session_election *line;
    int r = named_ensure_begun(node, reterr);

    if (r != BATON_OK) {
        return r;
    }
    line = line_of(node, election);
    return line && line->holder ? BATON_OK
                                : error_set(reterr, BATON_ENOENT,
                                            "election \"%.63s\": no process leads it, as far as "
                                            "this node knows",
                                            election);
}

int ask_pass(struct provider *provider, const char *election, const char *to, instant deadline,
             provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct node *node = named_node(provider);
    struct ask ask = {
        .order = {.type = SESSION_PASS}, .deadline = deadline, .done = done, .userdata = userdata};
    const struct session_contender *heir;
    struct heirs heirs = {.bytes = 0};
    int r = check(node, election, reterr);

    if (r != BATON_OK) {
        return r;
    }
    heir = line_heir(node, line_of(node, election), to, &heirs);
    if (!heir) {
        return to ? heirs_refuse(&heirs, to, reterr)
                  : error_set(reterr, BATON_EBUSY,
                              "election \"%s\": nobody can take over: no other process that "
                              "answers may lead it",
                              election);
    }
    ask.epoch = heir->election->epoch;
    ask.order.to = heir->session->id;
    (void)snprintf(ask.order.name, sizeof(ask.order.name), "%s", election);
    return begin(node, &ask, reterr);
}

/* The latest contender of this name; NULL: none. */
static const struct session_contender *contender_named(const struct node *node,
                                                       const char *election, const char *process)
{
    const struct session_election *line = line_of(node, election);
    const struct session_contender *found = NULL;

    for (const struct session_contender *at = line ? line->first : NULL; at; at = at->next) {
        if (strcmp(line_name(node, at), process) == 0 &&
            (!found || at->session->id > found->session->id)) {
            found = at;
        }
    }
    return found;
}

int ask_eligible(struct provider *provider, const char *election, const char *process,
                 bool eligible, instant deadline, provider_done_cb done, void *userdata,
                 struct baton_error *reterr)
{
    struct node *node = named_node(provider);
    struct ask ask = {.order = {.type = SESSION_ELIGIBLE, .is_eligible = eligible},
                      .deadline = deadline,
                      .done = done,
                      .userdata = userdata};
    const struct session_contender *contender;
    int r = named_ensure_begun(node, reterr);

    if (r != BATON_OK) {
        return r;
    }
    contender = contender_named(node, election, process);
    if (!contender) {
        return error_set(reterr, BATON_ENOENT,
                         "election \"%.63s\": no process named \"%.63s\" takes part in it",
                         election, process);
    }
    ask.order.session = contender->session->id;
    (void)snprintf(ask.order.name, sizeof(ask.order.name), "%s", election);
    return begin(node, &ask, reterr);
}

/* ---- Replies --------------------------------------------------------------------------------- */

void asks_take_reply(struct node *node, uint64_t request, int code)
{
    struct ask *ask = node->asks;

    while (ask && ask->order.request != request) {
        ask = ask->next;
    }
    if (!ask || ask->is_accepted || code == BATON_EUNAVAILABLE) {
        return; /* the timer asks again */
    }
    ask->is_accepted = code == BATON_OK;
    if (code != BATON_OK) {
        end(ask, code,
            ask->order.type == SESSION_PASS
                ? "the process that is to lead it has left, may not lead, or leads already"
                : "the process has left");
    } else if (ask->order.type == SESSION_ELIGIBLE) {
        end(ask, BATON_OK, "done");
    }
}

void asks_note_holder(struct node *node, const char *election)
{
    const struct session_election *line = line_of(node, election);

    for (struct ask *at = node->asks; at && line && line->holder; at = at->next) {
        if (at->order.type == SESSION_PASS && at->epoch != line->epoch &&
            strcmp(at->order.name, election) == 0) {
            end(at, BATON_OK, "done");
        }
    }
}
