#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cluster *cluster_new(size_t count)
{
    struct cluster *cluster = calloc(1, sizeof(*cluster));

    assert_non_null(cluster);
    cluster->count = count;
    cluster->now = (instant){1000000};
    assert_int_equal(raft_settings_preset(&cluster->settings, "fast", NULL), 0);
    cluster->first.members = calloc(CLUSTER_MAX, sizeof(struct raft_member));
    cluster->first.count = count;
    for (size_t i = 0; i < count; i++) {
        struct raft_member *member = &cluster->first.members[i];
        member->id = i + 1;
        member->weight = 1;
        (void)snprintf(member->name, sizeof(member->name), "n%zu", i + 1);
        cluster->nodes[i].id = i + 1;
    }
    return cluster;
}

static void free_log(struct node *node, size_t from)
{
    for (size_t i = from; i < node->log_count; i++) {
        free((void *)node->log[i].data);
    }
    if (from < node->log_count) {
        node->log_count = from;
    }
}

static void free_message(struct raft_message *message)
{
    if (message->type == RAFT_MSG_APPEND) {
        for (size_t i = 0; i < message->append.entry_count; i++) {
            free((void *)message->append.entries[i].data);
        }
        free((void *)message->append.entries);
    } else if (message->type == RAFT_MSG_SNAPSHOT) {
        free((void *)message->snapshot.data);
        if (message->snapshot.configuration) {
            raft_configuration_fini((struct raft_configuration *)message->snapshot.configuration);
            free((void *)message->snapshot.configuration);
        }
    }
}

void cluster_free(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++) {
        struct node *node = &cluster->nodes[i];
        raft_free(node->raft);
        free_log(node, 0);
        free((void *)node->snapshot.data);
        raft_configuration_fini(&node->snapshot.configuration);
    }
    while (cluster->queue_head < cluster->queue_tail) {
        free_message(&cluster->queue[cluster->queue_head++ % QUEUE_MAX].message);
    }
    raft_configuration_fini(&cluster->first);
    free(cluster);
}

struct node *node_of(struct cluster *cluster, raft_id id)
{
    assert_true(id >= 1 && id <= cluster->count);
    return &cluster->nodes[id - 1];
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = bytes > 0 ? malloc(bytes) : NULL;
    if (bytes > 0) {
        assert_non_null(copy);
        memcpy(copy, data, bytes);
    }
    return copy;
}

static void store(struct node *node, const struct raft_write *write)
{
    if (write->hard) {
        assert_true(write->hard->term >= node->hard.term);
        node->hard = *write->hard;
    }
    if (write->truncates && write->truncate_from > node->snapshot.index) {
        free_log(node, (size_t)(write->truncate_from - node->snapshot.index - 1));
    }
    if (write->snapshot) {
        size_t covered = (size_t)(write->snapshot->index - node->snapshot.index);
        size_t kept = 0;
        for (size_t i = 0; i < node->log_count; i++) {
            if (i < covered) {
                free((void *)node->log[i].data);
            } else {
                node->log[kept++] = node->log[i];
            }
        }
        node->log_count = kept;
        free((void *)node->snapshot.data);
        raft_configuration_fini(&node->snapshot.configuration);
        node->snapshot = *write->snapshot;
        node->snapshot.data = copy_of(write->snapshot->data, write->snapshot->bytes);
        assert_int_equal(
            raft_configuration_copy(&node->snapshot.configuration, &write->snapshot->configuration),
            0);
    }
    for (size_t i = 0; i < write->entry_count; i++) {
        assert_true(write->first_index + i == node->snapshot.index + node->log_count + 1);
        node->log[node->log_count] = write->entries[i];
        node->log[node->log_count++].data =
            copy_of(write->entries[i].data, write->entries[i].bytes);
    }
}

static void enqueue(struct cluster *cluster, const struct raft_message *message)
{
    struct queued *queued;
    struct raft_message *copy;

    cluster->sent[message->type]++;
    if (cluster->filter && !cluster->filter(cluster, message)) {
        return;
    }
    assert_true(cluster->queue_tail - cluster->queue_head < QUEUE_MAX);
    queued = &cluster->queue[cluster->queue_tail++ % QUEUE_MAX];
    queued->arrives = instant_add(cluster->now, cluster->delay);
    copy = &queued->message;
    *copy = *message;
    if (message->type == RAFT_MSG_APPEND) {
        struct raft_entry *entries = calloc(message->append.entry_count + 1, sizeof(*entries));
        for (size_t i = 0; i < message->append.entry_count; i++) {
            entries[i] = message->append.entries[i];
            entries[i].data = copy_of(entries[i].data, entries[i].bytes);
        }
        copy->append.entries = entries;
    } else if (message->type == RAFT_MSG_SNAPSHOT) {
        copy->snapshot.data = copy_of(message->snapshot.data, message->snapshot.bytes);
        if (message->snapshot.configuration) {
            struct raft_configuration *configuration = calloc(1, sizeof(*configuration));
            assert_int_equal(
                raft_configuration_copy(configuration, message->snapshot.configuration), 0);
            copy->snapshot.configuration = configuration;
        }
    }
}

static void note(struct node *node, const struct raft_update *update)
{
    for (size_t i = 0; i < update->event_count && node->event_count < EVENTS_MAX; i++) {
        node->events[node->event_count++] = update->events[i];
    }
    for (size_t i = 0; i < update->read_count && node->read_count < 64; i++) {
        node->reads[node->read_count++] = update->reads[i];
    }
    if (update->install) {
        node->applied_count = 0; /* the test's state is the text of its snapshot */
        (void)snprintf(node->applied[node->applied_count++], 32, "%.*s",
                       (int)update->install->bytes, (const char *)update->install->data);
    }
    for (size_t i = 0; i < update->apply_count; i++) {
        if (update->apply[i].kind == RAFT_ENTRY_DATA) {
            (void)snprintf(node->applied[node->applied_count++], 32, "%.*s",
                           (int)update->apply[i].bytes, (const char *)update->apply[i].data);
        }
    }
}

/* The driver's contract, as raft.h states it. */
static int drive(struct cluster *cluster, struct node *node, const struct raft_input *input)
{
    const struct raft_update *update;
    struct raft_input next;
    raft_index applied;
    raft_index offer;
    uint64_t written;
    int r = raft_step(node->raft, input, cluster->now, &update);

    if (cluster->observe) {
        cluster->observe(cluster, node, update);
    }
    node->lease = update->lease;
    node->deadline = update->deadline;
    node->heir = update->heir;
    note(node, update);
    applied = update->apply_count > 0 ? update->apply_first + update->apply_count - 1 : 0;
    written = update->write ? update->write->id : 0;
    offer = update->offer ? update->offer->index : 0;
    if (update->write && node->is_slow) {
        node->pending_write = written;
        written = 0;
    } else if (update->write) {
        store(node, update->write);
    }
    for (size_t i = 0; i < update->message_count; i++) {
        bool is_held = node->is_slow && update->messages[i].after_write > 0;
        if (!node->is_cut && !is_held) {
            enqueue(cluster, &update->messages[i]);
        }
    }
    if (applied > 0) {
        next = (struct raft_input){.type = RAFT_IN_APPLIED, .index = applied};
        (void)drive(cluster, node, &next);
    }
    if (written > 0) {
        next = (struct raft_input){.type = RAFT_IN_WRITTEN, .write_id = written};
        (void)drive(cluster, node, &next);
    }
    if (offer > 0) {
        next = (struct raft_input){
            .type = RAFT_IN_SNAPSHOT,
            .snapshot = {.index = offer, .is_taken = !node->refuses_snapshots, .format = 7}};
        node->refused_snapshots += node->refuses_snapshots;
        (void)drive(cluster, node, &next);
    }
    return r;
}

int node_step(struct cluster *cluster, raft_id id, const struct raft_input *input)
{
    struct node *node = node_of(cluster, id);
    assert_non_null(node->raft);
    node->last_code = drive(cluster, node, input);
    return node->last_code;
}

void node_start(struct cluster *cluster, raft_id id)
{
    struct node *node = node_of(cluster, id);
    struct raft_start start = {.id = id,
                               .incarnation = ++node->incarnation,
                               .seed = cluster->seed + id * 7919 + node->incarnation,
                               .settings = cluster->settings,
                               .hard = node->hard,
                               .entries = node->log,
                               .entry_count = node->log_count,
                               .eligible = true,
                               .is_outlived = cluster->is_outlived};
    struct baton_error error = {0};
    struct raft_input tick = {.type = RAFT_IN_TICK};

    if (!node->snapshot.configuration.members) {
        assert_int_equal(raft_configuration_copy(&node->snapshot.configuration, &cluster->first),
                         0);
    }
    start.snapshot = node->snapshot;
    if (raft_new(&node->raft, &start, cluster->now, &error) != 0) {
        fail_msg("%s", error.message);
    }
    node_step(cluster, id, &tick);
}

void node_crash(struct cluster *cluster, raft_id id)
{
    struct node *node = node_of(cluster, id);
    raft_free(node->raft);
    node->raft = NULL;
    node->lease.held = false;
    node->applied_count = 0;
    node->deadline = INSTANT_NEVER;
}

void cluster_start(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++) {
        node_start(cluster, i + 1);
    }
}

void node_message(struct cluster *cluster, const struct raft_message *message)
{
    struct raft_input input = {.type = RAFT_IN_MESSAGE, .message = message};
    node_step(cluster, message->to, &input);
}

void node_proof(struct cluster *cluster, raft_id id, enum raft_proof_kind kind,
                struct raft_proof proof, raft_id heir)
{
    struct raft_input input = {.type = RAFT_IN_PROOF,
                               .proof = {.kind = kind, .proof = proof, .heir = heir}};
    node_step(cluster, id, &input);
}

int node_propose(struct cluster *cluster, raft_id id, const char *text)
{
    const struct raft_proposal item = {.data = text, .bytes = strlen(text)};
    struct raft_input input = {.type = RAFT_IN_PROPOSE, .propose = {.items = &item, .count = 1}};
    return node_step(cluster, id, &input);
}

int node_transfer(struct cluster *cluster, raft_id id, raft_id to, bool or_stay)
{
    struct raft_input input = {.type = RAFT_IN_TRANSFER,
                               .transfer = {.to = to,
                                            .deadline = instant_add(cluster->now, SPAN_MS(500)),
                                            .or_stay = or_stay}};
    return node_step(cluster, id, &input);
}

void node_store(struct cluster *cluster, raft_id id)
{
    struct node *node = node_of(cluster, id);
    struct raft_input input = {.type = RAFT_IN_WRITTEN, .write_id = node->pending_write};
    node_step(cluster, id, &input);
}

bool node_is_leader(struct cluster *cluster, raft_id id)
{
    const struct node *node = node_of(cluster, id);
    return node->lease.held && instant_before(cluster->now, node->lease.end);
}

const struct raft_event *node_last(struct cluster *cluster, raft_id id, enum raft_event_type type)
{
    struct node *node = node_of(cluster, id);
    for (size_t i = node->event_count; i > 0; i--) {
        if (node->events[i - 1].type == type) {
            return &node->events[i - 1];
        }
    }
    return NULL;
}

bool node_saw(struct cluster *cluster, raft_id id, enum raft_event_type type)
{
    return node_last(cluster, id, type) != NULL;
}

struct raft_status node_status(struct cluster *cluster, raft_id id)
{
    struct raft_status status;
    raft_get_status(node_of(cluster, id)->raft, &status);
    return status;
}

static bool is_due(const struct cluster *cluster)
{
    return cluster->queue_head < cluster->queue_tail &&
           !instant_before(cluster->now, cluster->queue[cluster->queue_head % QUEUE_MAX].arrives);
}

void cluster_deliver(struct cluster *cluster)
{
    for (size_t bound = 0; is_due(cluster); bound++) {
        struct raft_message message = cluster->queue[cluster->queue_head++ % QUEUE_MAX].message;
        struct node *to = message.to <= cluster->count ? node_of(cluster, message.to) : NULL;
        assert_true(bound < 100000);
        if (to && to->raft && !to->is_cut) {
            node_message(cluster, &message);
        }
        free_message(&message);
        (void)cluster_leader(cluster);
    }
}

void cluster_run(struct cluster *cluster, int64_t ms)
{
    instant until = instant_add(cluster->now, SPAN_MS(ms));
    struct raft_input tick = {.type = RAFT_IN_TICK};

    for (;;) {
        instant next = until;
        cluster_deliver(cluster);
        for (size_t i = 0; i < cluster->count; i++) {
            if (cluster->nodes[i].raft) {
                next = instant_min(next, cluster->nodes[i].deadline);
            }
        }
        cluster->now = instant_max(cluster->now, next);
        for (size_t i = 0; i < cluster->count; i++) {
            if (cluster->nodes[i].raft &&
                !instant_before(cluster->now, cluster->nodes[i].deadline)) {
                node_step(cluster, i + 1, &tick);
            }
        }
        if (!instant_before(cluster->now, until)) {
            cluster_deliver(cluster);
            return;
        }
    }
}

raft_id cluster_leader(struct cluster *cluster)
{
    raft_id leader = RAFT_NOBODY;
    for (size_t i = 0; i < cluster->count; i++) {
        if (node_is_leader(cluster, i + 1)) {
            if (leader != RAFT_NOBODY) {
                fail_msg("nodes %d and %zu lead at one instant", (int)leader, i + 1);
            }
            leader = i + 1;
        }
    }
    return leader;
}

raft_id cluster_elect(struct cluster *cluster)
{
    for (int i = 0; i < 60000; i++) {
        raft_id leader = cluster_leader(cluster);
        if (leader != RAFT_NOBODY) {
            return leader;
        }
        cluster_run(cluster, 1);
    }
    fail_msg("nobody was elected within a minute");
    return RAFT_NOBODY;
}

raft_id cluster_settle(struct cluster *cluster)
{
    raft_id leader;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 100);
    return leader;
}
