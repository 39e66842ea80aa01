/* The published lease: valid only while it lasts, by the reader's clock, and never in a child. */
#include "cmocka_all.h"
#include "provider/lease_cell.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_new_cell_says_no(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    assert_non_null(cell);
    assert_false(lease_cell_is_leader(cell, NULL));
    assert_int_equal(lease_cell_epoch(cell), 0);
    assert_true(lease_cell_remaining(cell).ns <= 0);
    lease_cell_free(cell);
    lease_cell_free(NULL);
}

static void a_published_lease_holds_until_its_end_and_no_longer(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    uint64_t epoch = 0;

    lease_cell_publish(cell, 7, instant_add(clock_now(), SPAN_S(60)));
    assert_true(lease_cell_is_leader(cell, &epoch));
    assert_int_equal(epoch, 7);
    assert_true(lease_cell_remaining(cell).ns > SPAN_S(1).ns);
    lease_cell_publish(cell, 7, instant_add(clock_now(), SPAN_NS(-1)));
    assert_false(lease_cell_is_leader(cell, NULL));
    assert_int_equal(lease_cell_epoch(cell), 7);
    lease_cell_publish(cell, 8, INSTANT_NEVER);
    assert_true(lease_cell_is_leader(cell, &epoch));
    assert_int_equal(epoch, 8);
    lease_cell_void(cell);
    assert_false(lease_cell_is_leader(cell, NULL));
    lease_cell_free(cell);
}

static void a_poisoned_cell_never_says_yes_again(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    lease_cell_publish(cell, 1, INSTANT_NEVER);
    lease_cell_poison(cell);
    assert_false(lease_cell_is_leader(cell, NULL));
    lease_cell_publish(cell, 2, INSTANT_NEVER);
    assert_false(lease_cell_is_leader(cell, NULL));
    assert_true(lease_cell_remaining(cell).ns <= 0);
    lease_cell_free(cell);
}

static void a_forked_child_never_says_yes(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    int status;
    pid_t child;

    lease_cell_publish(cell, 3, INSTANT_NEVER);
    child = fork();
    if (child == 0) {
        _exit(lease_cell_is_leader(cell, NULL) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(lease_cell_is_leader(cell, NULL)); /* the parent does */
    lease_cell_free(cell);
}

struct clone_scene {
    struct lease_cell *cell;
    int parent, ready, answer; /* pidfd; pipes */
};

/* Runs beside its parent in the same memory, and after it. */
static int ask_when_the_parent_is_dead(void *userdata)
{
    struct clone_scene *scene = userdata;
    struct pollfd ended = {.fd = scene->parent, .events = POLLIN};
    char letters[2] = {lease_cell_is_leader(scene->cell, NULL) ? 'y' : 'n', 0};

    (void)!write(scene->ready, "r", 1);
    while (poll(&ended, 1, -1) < 0) {
    }
    letters[1] = lease_cell_is_leader(scene->cell, NULL) ? 'y' : 'n';
    (void)!write(scene->answer, letters, 2);
    _exit(0);
}

static void a_process_that_shares_the_memory_does_not_outlive_it_as_a_leader(void **state)
{
    static char stack[256 * 1024] __attribute__((aligned(16)));
    int ready[2], answer[2];
    char letters[2];
    pid_t leader;

    assert_int_equal(pipe(ready) | pipe(answer), 0);
    leader = fork();
    if (leader == 0) {
        struct clone_scene scene = {lease_cell_new(), pidfd_open(getpid(), 0), ready[1], answer[1]};
        lease_cell_bind(scene.cell);
        lease_cell_publish(scene.cell, 1, INSTANT_NEVER);
        (void)clone(ask_when_the_parent_is_dead, stack + sizeof(stack), CLONE_VM | SIGCHLD, &scene);
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ready[0], letters, 1), 1);
    kill(leader, SIGKILL);
    assert_int_equal(read(answer[0], letters, 2), 2);
    assert_memory_equal(letters, "yn", 2);
    waitpid(leader, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(answer[i]);
    }
}

static void *bind_for_a_moment(void *userdata)
{
    lease_cell_bind(userdata);
    lease_cell_publish(userdata, 1, INSTANT_NEVER);
    return (void *)(intptr_t)lease_cell_is_leader(userdata, NULL);
}

static void a_bound_cell_says_no_when_its_thread_has_ended(void **state)
{
    for (int round = 0; round < 200; round++) { /* more than there are places: they come free */
        struct lease_cell *cell = lease_cell_new();
        pthread_t thread;
        void *led = NULL;
        assert_int_equal(pthread_create(&thread, NULL, bind_for_a_moment, cell), 0);
        assert_int_equal(pthread_join(thread, &led), 0);
        assert_true(led != NULL);
        assert_false(lease_cell_is_leader(cell, NULL));
        lease_cell_free(cell);
    }
}

static void a_forked_child_may_lead_by_itself(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    int status;
    pid_t child;

    lease_cell_bind(cell);
    child = fork();
    if (child == 0) {
        struct lease_cell *own = lease_cell_new();
        lease_cell_bind(own);
        lease_cell_publish(own, 1, INSTANT_NEVER);
        _exit(lease_cell_is_leader(own, NULL) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lease_cell_free(cell);
}

static void who_was_stopped_past_the_lease_says_no_at_the_first_call(void **state)
{
    int ready[2], answer[2], status;
    char byte;
    pid_t child;

    assert_int_equal(pipe(ready) | pipe(answer), 0);
    child = fork();
    if (child == 0) {
        struct lease_cell *cell = lease_cell_new();
        instant end = instant_add(clock_now(), SPAN_MS(200));
        lease_cell_publish(cell, 1, end);
        (void)!write(ready[1], &end, sizeof(end));
        raise(SIGSTOP);
        byte = lease_cell_is_leader(cell, NULL) ? 'y' : 'n';
        (void)!write(answer[1], &byte, 1);
        _exit(0);
    }
    instant end;
    assert_int_equal(read(ready[0], &end, sizeof(end)), sizeof(end));
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    while (instant_before(clock_now(), end)) {
        usleep(1000);
    }
    kill(child, SIGCONT);
    assert_int_equal(read(answer[0], &byte, 1), 1);
    assert_int_equal(byte, 'n');
    waitpid(child, &status, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(answer[i]);
    }
}

static _Atomic bool is_done;

/* Odd epochs lead for ever, even ones have already ended: a "yes" with an even epoch is a pair
 * that was never published. */
static void *publish_pairs(void *userdata)
{
    struct lease_cell *cell = userdata;
    for (uint64_t epoch = 1; epoch <= 400000; epoch++) {
        lease_cell_publish(cell, epoch, epoch % 2 ? INSTANT_NEVER : (instant){1});
    }
    atomic_store(&is_done, true);
    return NULL;
}

static void a_reader_never_sees_a_mixed_pair(void **state)
{
    struct lease_cell *cell = lease_cell_new();
    pthread_t writer;

    atomic_store(&is_done, false);
    assert_int_equal(pthread_create(&writer, NULL, publish_pairs, cell), 0);
    while (!atomic_load(&is_done)) {
        uint64_t epoch;
        if (lease_cell_is_leader(cell, &epoch)) {
            assert_int_equal(epoch % 2, 1);
        }
    }
    pthread_join(writer, NULL);
    lease_cell_free(cell);
}

static void many_cells_do_not_disturb_each_other(void **state)
{
    struct lease_cell *cells[200];
    for (uint64_t i = 0; i < 200; i++) {
        cells[i] = lease_cell_new();
        assert_non_null(cells[i]);
        lease_cell_publish(cells[i], i + 1, i % 2 ? INSTANT_NEVER : (instant){1});
    }
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(lease_cell_epoch(cells[i]), i + 1);
        assert_int_equal(lease_cell_is_leader(cells[i], NULL), i % 2);
    }
    for (uint64_t i = 0; i < 200; i++) {
        lease_cell_free(cells[(i * 7) % 200]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_cell_says_no),
        cmocka_unit_test(a_published_lease_holds_until_its_end_and_no_longer),
        cmocka_unit_test(a_poisoned_cell_never_says_yes_again),
        cmocka_unit_test(a_forked_child_never_says_yes),
#ifndef __SANITIZE_THREAD__ /* which does not know of processes in one memory */
        cmocka_unit_test(a_process_that_shares_the_memory_does_not_outlive_it_as_a_leader),
#endif
        cmocka_unit_test(a_bound_cell_says_no_when_its_thread_has_ended),
        cmocka_unit_test(a_forked_child_may_lead_by_itself),
        cmocka_unit_test(who_was_stopped_past_the_lease_says_no_at_the_first_call),
        cmocka_unit_test(a_reader_never_sees_a_mixed_pair),
        cmocka_unit_test(many_cells_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
