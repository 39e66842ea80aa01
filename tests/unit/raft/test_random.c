/* Short random lives of small groups: a first sieve, before sim/ which does this in earnest.
 *
 * Messages are lost, repeated and reordered, nodes crash and start again, are cut off, are proved
 * dead when they are, hand over, change members. After every message at most one node leads
 * (cluster.c fails the test otherwise); in the end the group elects and everybody agrees. */
#include "cluster.h"
#include "lib/chance.h"

#include <string.h>

enum { OLD_MAX = 64, LIVES = OF_CHANCE(3000) };

static uint64_t dice_state;
static struct raft_message old[OLD_MAX]; /* seen on their way, to be repeated */
static size_t old_count;

static uint64_t dice(uint64_t below)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (dice_state >> 33) % below;
}

static bool lose_some(struct cluster *cluster, const struct raft_message *message)
{
    return dice(10) != 0;
}

/* Swaps two messages on their way; the later one may have been overtaken long ago. */
static void reorder(struct cluster *cluster)
{
    size_t waiting = cluster->queue_tail - cluster->queue_head;
    if (waiting >= 2) {
        struct queued *a = &cluster->queue[(cluster->queue_head + dice(waiting)) % QUEUE_MAX];
        struct queued *b = &cluster->queue[(cluster->queue_head + dice(waiting)) % QUEUE_MAX];
        struct queued between = *a;
        *a = *b;
        *b = between;
    }
}

/* An old message of a kind that owns nothing, delivered once more. */
static void repeat(struct cluster *cluster)
{
    size_t waiting = cluster->queue_tail - cluster->queue_head;

    if (waiting > 0) {
        const struct raft_message *message =
            &cluster->queue[(cluster->queue_head + dice(waiting)) % QUEUE_MAX].message;
        if (message->type != RAFT_MSG_APPEND && message->type != RAFT_MSG_SNAPSHOT) {
            old[old_count++ % OLD_MAX] = *message;
        }
    }
    if (old_count > 0) {
        const struct raft_message message = old[dice(old_count < OLD_MAX ? old_count : OLD_MAX)];
        struct node *from = node_of(cluster, message.from);
        struct node *to = node_of(cluster, message.to);
        if (to->raft && !to->is_cut && message.incarnation <= from->incarnation) {
            node_message(cluster, &message);
        }
    }
}

static void prove_dead(struct cluster *cluster, raft_id dead)
{
    struct raft_proof proof = {.node = dead,
                               .incarnation = node_of(cluster, dead)->incarnation,
                               .through_term = RAFT_TERM_FOREVER};
    raft_id heir = 1 + dice(cluster->count);

    for (raft_id id = 1; id <= cluster->count; id++) {
        if (node_of(cluster, id)->raft && dice(3) > 0) {
            node_proof(cluster, id, RAFT_PROOF_GUARDIAN, proof, heir);
        }
    }
}

static void change_weights(struct cluster *cluster, raft_id leader)
{
    struct raft_member members[CLUSTER_MAX];
    struct raft_configuration wanted = {.members = members, .count = cluster->count};
    struct raft_input input = {
        .type = RAFT_IN_RECONFIGURE, .configuration = &wanted, .is_forced = true};

    memcpy(members, cluster->first.members, cluster->count * sizeof(members[0]));
    for (size_t i = 0; i < cluster->count; i++) {
        members[i].weight = (uint32_t)dice(3) + (i == 0);
        members[i].priority = (int32_t)dice(2);
    }
    if (dice(3) == 0) {
        wanted.count--;
    }
    (void)node_step(cluster, leader, &input);
}

static void compact(struct cluster *cluster, raft_id id)
{
    struct raft_input input = {
        .type = RAFT_IN_COMPACT,
        .compact = {.index = node_status(cluster, id).applied_index, .data = "snap", .bytes = 4}};
    (void)node_step(cluster, id, &input);
}

static void one_event(struct cluster *cluster)
{
    raft_id id = 1 + dice(cluster->count);
    struct node *node = node_of(cluster, id);

    if (!node->raft) {
        if (dice(2)) {
            node_start(cluster, id);
        } else {
            prove_dead(cluster, id);
        }
        return;
    }
    switch (dice(12)) {
    case 0:
        node_crash(cluster, id);
        break;
    case 1:
        node->is_cut = !node->is_cut;
        break;
    case 2:
        (void)node_transfer(cluster, id, dice(2) ? RAFT_NOBODY : 1 + dice(cluster->count), dice(2));
        break;
    case 3:
        change_weights(cluster, id);
        break;
    case 4:
        compact(cluster, id);
        break;
    case 5:
        repeat(cluster);
        break;
    default:
        (void)node_propose(cluster, id, "w");
        break;
    }
}

static void heal(struct cluster *cluster)
{
    cluster->filter = NULL;
    for (raft_id id = 1; id <= cluster->count; id++) {
        node_of(cluster, id)->is_cut = false;
        if (!node_of(cluster, id)->raft) {
            node_start(cluster, id);
        }
    }
}

static void live_and_agree(uint64_t seed)
{
    struct cluster *cluster = cluster_new(3 + seed % 3);
    raft_id leader;

    dice_state = seed;
    old_count = 0;
    cluster->settings.inflight_max = 1 + (uint32_t)dice(4);
    cluster->settings.message_bytes_max = 64;
    cluster->settings.preferred_stable = SPAN_MS(200);
    cluster_start(cluster);
    cluster->filter = lose_some;
    for (int i = 0; i < 60; i++) {
        one_event(cluster);
        reorder(cluster);
        repeat(cluster);
        cluster_run(cluster, (int64_t)dice(30));
    }
    heal(cluster);
    cluster_run(cluster, 1000);
    leader = cluster_elect(cluster);
    assert_int_equal(node_propose(cluster, leader, "last"), 0);
    cluster_run(cluster, 1000);
    leader = cluster_elect(cluster);
    for (raft_id id = 1; id <= cluster->count; id++) {
        const struct raft_configuration *now =
            raft_get_configuration(node_of(cluster, leader)->raft);
        if (raft_configuration_find(now, id)) {
            assert_int_equal(node_status(cluster, id).commit_index,
                             node_status(cluster, leader).commit_index);
        }
    }
    cluster_free(cluster);
}

static void many_short_lives_end_in_agreement(void **state)
{
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        live_and_agree(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_short_lives_end_in_agreement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
