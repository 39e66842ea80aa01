/* Every allocation of the core fails once, in turn: an input may be lost, like a message on its
 * way; nothing else may be. Linked with --wrap=malloc,calloc,realloc. */
#include "cluster.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static bool is_armed; /* only while inside the core */
static long until_failure = -1;

static bool must_fail(void)
{
    return is_armed && until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return must_fail() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return must_fail() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return must_fail() ? NULL : __real_realloc(old, bytes);
}

int __real_raft_step(struct raft *raft, const struct raft_input *input, instant now,
                     const struct raft_update **ret);
int __wrap_raft_step(struct raft *raft, const struct raft_input *input, instant now,
                     const struct raft_update **ret);

int __wrap_raft_step(struct raft *raft, const struct raft_input *input, instant now,
                     const struct raft_update **ret)
{
    int r;
    is_armed = true;
    r = __real_raft_step(raft, input, now, ret);
    is_armed = false;
    return r;
}

/* Elect, write, compact, send a snapshot, change members, hand over: all of it once. */
static void live(struct cluster *cluster)
{
    struct raft_configuration wanted = {.members = cluster->first.members, .count = 3};
    struct raft_input change = {
        .type = RAFT_IN_RECONFIGURE, .configuration = &wanted, .is_forced = true};
    struct raft_input compact = {.type = RAFT_IN_COMPACT, .compact = {.data = "s", .bytes = 1}};
    raft_id leader;

    node_start(cluster, 1);
    node_start(cluster, 2);
    (void)cluster_elect(cluster);
    for (int i = 0; i < 20; i++) {
        (void)node_propose(cluster, cluster_elect(cluster), "word");
        cluster_run(cluster, 2);
    }
    leader = cluster_elect(cluster);
    compact.compact.index = node_status(cluster, leader).applied_index;
    (void)node_step(cluster, leader, &compact);
    node_start(cluster, 3);
    cluster_run(cluster, 200);
    leader = cluster_elect(cluster);
    wanted.members[2].weight = 2;
    (void)node_step(cluster, leader, &change);
    cluster_run(cluster, 200);
    (void)node_transfer(cluster, cluster_elect(cluster), RAFT_NOBODY, false);
    cluster_run(cluster, 1000);
}

static void each_allocation_may_fail_once(void **state)
{
    bool was_reached = true;
    long rounds = 0;

    for (long nth = 0; was_reached; nth++) {
        struct cluster *cluster = cluster_new(3);
        raft_id leader;
        until_failure = nth;
        live(cluster);
        was_reached = until_failure < 0;
        until_failure = -1;
        leader = cluster_elect(cluster);
        assert_int_equal(node_propose(cluster, leader, "last"), 0);
        cluster_run(cluster, 500);
        for (raft_id id = 1; id <= 3; id++) {
            assert_int_equal(node_status(cluster, id).commit_index,
                             node_status(cluster, leader).last_index);
        }
        cluster_free(cluster);
        rounds++;
    }
    assert_true(rounds > 50); /* it did fail, and often */
}

static void a_node_for_which_there_is_no_memory_is_not_born(void **state)
{
    struct raft_member member = {.id = 1, .weight = 1};
    struct raft_entry entry = {.term = 1, .data = "x", .bytes = 1};
    struct raft_start start = {
        .id = 1, .incarnation = 1, .hard = {.term = 1}, .entries = &entry, .entry_count = 1};
    struct raft *raft = NULL;
    long nth = 0;
    int r;

    assert_int_equal(raft_settings_preset(&start.settings, "fast", NULL), 0);
    start.snapshot = (struct raft_snapshot){
        .configuration = {.members = &member, .count = 1}, .data = "s", .bytes = 1};
    do {
        until_failure = nth++;
        is_armed = true;
        r = raft_new(&raft, &start, (instant){0}, NULL);
        is_armed = false;
        assert_true(r == BATON_ENOMEM || r == 0);
        if (r == 0) {
            raft_free(raft); /* an event found no place, which is no reason not to be born */
        }
    } while (until_failure < 0);
    until_failure = -1;
    assert_int_equal(r, 0);
    assert_true(nth > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail_once),
        cmocka_unit_test(a_node_for_which_there_is_no_memory_is_not_born),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
