/* The driver: passes one input to the core and carries out its update, in the order that raft.h
 * states. */
#include "provider/raft/node.h"
#include "sessions/order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS_A_STEP_MAX = 64 };

void node_rearm(struct node *node, instant deadline)
{
    struct itimerspec when = {0};

    if (node->is_armed && node->armed.ns == deadline.ns) {
        return; /* unchanged by most inputs, above all by replies to heartbeats */
    }
    if (deadline.ns != INT64_MAX) {
        int64_t ns = deadline.ns > 1 ? deadline.ns : 1; /* 0 would disarm the timer */
        when.it_value.tv_sec = ns / 1000000000;
        when.it_value.tv_nsec = ns % 1000000000;
    }
    node->armed = deadline;
    node->is_armed = timerfd_settime(node->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0;
}

static void publish(struct node *node, const struct raft_lease *lease)
{
    struct lease_cell *cell = node->election ? node->election->cell : NULL;

    node->published = *lease;
    if (!cell) {
        return;
    }
    if (lease->held) {
        lease_cell_publish(cell, lease->epoch, lease->end);
    } else {
        lease_cell_void(cell);
    }
    guard_publish(node, lease);
}

void node_publish_void(struct node *node)
{
    struct raft_lease none = {0};
    publish(node, &none);
}

/* A leadership may begin and end in one step: then the update has both events but no lease, and the
 * cell still gets the epoch, which a listener of BATON_EVENT_ACQUIRED may ask for. */
void node_publish(struct node *node, const struct raft_update *update)
{
    struct lease_cell *cell = node->election ? node->election->cell : NULL;

    for (size_t i = 0; cell && i < update->event_count; i++) {
        if (update->events[i].type == RAFT_EV_ACQUIRED) {
            lease_cell_publish(cell, update->events[i].term, (instant){0});
        }
    }
    publish(node, &update->lease);
}

static void send_messages(struct node *node, const struct raft_update *update, bool waiting)
{
    for (size_t i = 0; i < update->message_count; i++) {
        if ((update->messages[i].after_write > 0) == waiting) {
            connection_send_message(node, &update->messages[i]);
        }
    }
}

void node_fail_storage(struct node *node, int code, const struct baton_error *error)
{
    struct raft_input failed = {.type = RAFT_IN_STORAGE_FAILED};

    log_error(node->logger, "storage-failed", LOG_STR("error", error->message));
    event_error(node, code, error);
    (void)node_step(node, &failed);
}

/* Only a snapshot that this node can install is ever stored. */
static void answer_offer(struct node *node, raft_index index, int code)
{
    struct raft_input input = {
        .type = RAFT_IN_SNAPSHOT,
        .snapshot = {.index = index,
                     .is_taken = code == BATON_OK,
                     .format = code == BATON_ENOTSUP ? NODE_STATE_FORMAT : 0}};

    if (code != BATON_OK) {
        log_warning(node->logger, "snapshot-refused", LOG_STR("error", baton_strerror(code)));
    }
    (void)node_step(node, &input);
}

static void note_stored(struct node *node, const struct raft_write *write)
{
    if (write && write->hard) {
        node->stored_term = write->hard->term > write->hard->pledged_term
                                ? write->hard->term
                                : write->hard->pledged_term;
    }
}

/* Warns of a slow write, once a minute: it blocks this thread, so no heartbeat is sent
 * meanwhile. */
static void report_slow_disk(struct node *node, instant begun)
{
    instant now = clock_now();
    span took = instant_since(now, begun);

    if (took.ns > node->options.settings.heartbeat_interval.ns &&
        (node->slow_disk_reported.ns == 0 ||
         instant_since(now, node->slow_disk_reported).ns >= SPAN_S(60).ns)) {
        node->slow_disk_reported = now;
        log_warning(node->logger, "slow-disk", LOG_F64("write_ms", (double)took.ns / 1e6),
                    LOG_F64("heartbeat_interval_ms",
                            (double)node->options.settings.heartbeat_interval.ns / 1e6));
    }
}

static void count_applied(struct node *node, const struct raft_entry *entry)
{
    const uint8_t *data = entry->data;

    node->applied_bytes += entry->bytes;
    if (entry->bytes > 0 && data[0] == SESSION_ORDER_TAG) {
        node->order_bytes += entry->bytes + NODE_ENTRY_OVERHEAD;
    }
}

/* Writes synchronously: 0.1 ms, less than the two thread switches of an asynchronous write. */
static void perform(struct node *node, const struct raft_update *update)
{
    struct raft_event events[EVENTS_A_STEP_MAX];
    size_t event_count =
        update->event_count < EVENTS_A_STEP_MAX ? update->event_count : EVENTS_A_STEP_MAX;
    raft_index applied =
        update->apply_count > 0 ? update->apply_first + update->apply_count - 1 : 0;
    uint64_t written = update->write ? update->write->id : 0;
    raft_index offer = update->offer ? update->offer->index : 0;
    int offer_code = update->offer ? state_offer(node, update->offer) : BATON_OK;
    instant deadline = update->deadline;
    struct baton_error error = {0};
    bool is_lost = false;
    int r = BATON_OK;

    node_publish(node, update);
    guard_set_heir(node, update->heir);
    send_messages(node, update, false);
    if (update->write) {
        instant begun = clock_now();
        node->counters.writes++;
        r = storage_write(node->storage, update->write, &error);
        report_slow_disk(node, begun);
        node_move_log_if_due(node);
    }
    if (r == BATON_OK) {
        note_stored(node, update->write);
        send_messages(node, update, true);
        is_lost = !state_apply(node, update);
        for (size_t i = 0; i < update->apply_count; i++) {
            count_applied(node, &update->apply[i]);
        }
        if (update->install && update->install->index > applied) {
            applied = update->install->index;
        }
    }
    memcpy(events, update->events, event_count * sizeof(events[0]));

    /* `update` is valid until the next step. */
    node_rearm(node, deadline);
    for (size_t i = 0; i < event_count; i++) {
        event_take(node, &events[i]);
    }
    if (r != BATON_OK) {
        node_fail_storage(node, r, &error);
        return;
    }
    if (written > 0) {
        struct raft_input input = {.type = RAFT_IN_WRITTEN, .write_id = written};
        (void)node_step(node, &input);
    }
    if (is_lost) {
        (void)error_set(&error, BATON_ENOMEM,
                        "out of memory for the group's state: this node has stopped voting; give "
                        "it more memory and start it again");
        node_fail_storage(node, BATON_ENOMEM, &error);
    }
    if (applied > node->applied && !node->state_is_lost) {
        struct raft_input input = {.type = RAFT_IN_APPLIED, .index = applied};
        node->applied = applied;
        node_compact_if_long(node);
        (void)node_step(node, &input);
    }
    state_applied(node, node->applied);
    if (offer > 0) {
        answer_offer(node, offer, offer_code);
    }
}

static bool is_poisoned(const struct node *node)
{
    return node->election && node->election->cell && lease_cell_is_poisoned(node->election->cell);
}

int node_step(struct node *node, const struct raft_input *input)
{
    const struct raft_update *update;
    int r;

    if (!node->raft || node->is_closed) {
        return BATON_ECLOSED;
    }
    if (!node->is_poisoned && is_poisoned(node)) {
        node_retire(node);
    }
    node->depth++;
    r = raft_step(node->raft, input, clock_now(), &update);
    perform(node, update);
    node->depth--;
    group_follow(node);
    event_deliver(node);
    if (node->depth == 0) {
        state_deliver(node);
    }
    return r;
}
