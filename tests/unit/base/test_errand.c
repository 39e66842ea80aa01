#include "base/errand.h"

#include "cmocka_all.h"

#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

struct trip {
    struct errand errand;
    sem_t *go, *freed;
    bool *was_done;
};

static void run(struct errand *errand)
{
    (void)sem_wait(((struct trip *)errand)->go);
}

static void on_done(struct errand *errand)
{
    *((struct trip *)errand)->was_done = true;
}

static void release(struct errand *errand)
{
    (void)sem_post(((struct trip *)errand)->freed);
    free(errand);
}

struct fixture {
    uv_loop_t loop;
    sem_t go, freed;
    bool was_done;
    struct trip *trip;
};

static int begin(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    fixture->trip = calloc(1, sizeof(*fixture->trip));
    (void)uv_loop_init(&fixture->loop);
    (void)sem_init(&fixture->go, 0, 0);
    (void)sem_init(&fixture->freed, 0, 0);
    *fixture->trip = (struct trip){.errand = {.run = run, .done = on_done, .free = release},
                                   .go = &fixture->go,
                                   .freed = &fixture->freed,
                                   .was_done = &fixture->was_done};
    *state = fixture;
    return errand_begin(&fixture->trip->errand, &fixture->loop);
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    (void)sem_destroy(&fixture->go);
    (void)sem_destroy(&fixture->freed);
    free(fixture);
    return 0;
}

static void its_end_is_heard_of_on_the_loop(void **state)
{
    struct fixture *fixture = *state;

    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    assert_false(fixture->was_done);
    (void)sem_post(&fixture->go);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_true(fixture->was_done);
    (void)sem_wait(&fixture->freed);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

static void a_loop_ends_before_one_that_was_left(void **state)
{
    struct fixture *fixture = *state;

    errand_leave(&fixture->trip->errand);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    (void)sem_post(&fixture->go);
    (void)sem_wait(&fixture->freed);
    assert_false(fixture->was_done);
}

static void one_that_has_ended_can_be_left(void **state)
{
    struct fixture *fixture = *state;

    (void)sem_post(&fixture->go);
    while (atomic_load(&fixture->trip->errand.holders) > 1) {
        (void)sched_yield();
    }
    errand_leave(&fixture->trip->errand);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    (void)sem_wait(&fixture->freed);
    assert_false(fixture->was_done);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_end_is_heard_of_on_the_loop, begin, end),
        cmocka_unit_test_setup_teardown(a_loop_ends_before_one_that_was_left, begin, end),
        cmocka_unit_test_setup_teardown(one_that_has_ended_can_be_left, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
