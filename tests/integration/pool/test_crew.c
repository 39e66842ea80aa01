/* A pool's life on one loop: what is submitted runs, once and in one place, whoever dies. The
 * provider is memory:, in which a process that dies is followed at once. */
#include "crew.h"

#include "member/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Jobs -------------------------------------------------------------------------------------
 */

struct heard_result {
    int code; /* 1: none yet */
    char output[16];
    bool is_success;
    int32_t exit_code;
};

static void on_result(void *userdata, int code, const struct work_result *result,
                      const struct baton_error *error)
{
    struct heard_result *heard = userdata;

    heard->code = code;
    if (result) {
        heard->is_success = result->is_success;
        heard->exit_code = result->code;
        (void)snprintf(heard->output, sizeof(heard->output), "%.*s", (int)result->output_bytes,
                       (const char *)result->output);
    }
}

static struct heard_result result_of(int number, const char *id)
{
    struct heard_result heard = {.code = 1};

    ASSERT_OK(pool_result(crew[number].member, "pool", id, on_result, &heard, failure));
    CREW_AWAIT(heard.code != 1);
    return heard;
}

static void a_job_runs_once_and_leaves_its_result(void **state)
{
    struct heard_result heard;

    crew_open(0, true, true);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_completed() == 1);
    do {
        heard = result_of(0, "one.0");
    } while (heard.code == BATON_ENOENT && uv_run(&crew_loop, UV_RUN_ONCE) >= 0);
    assert_int_equal(heard.code, BATON_OK);
    assert_true(heard.is_success);
    assert_string_equal(heard.output, "out");
    assert_int_equal(crew_task("one.0")->starts, 1);
}

static void a_worker_that_does_not_lead_is_given_jobs(void **state)
{
    crew_open(0, true, false);
    crew_open(1, false, true);
    assert_int_equal(crew_submit(1, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_completed() == 1);
}

static size_t ended; /* by the wait of a test */

static void on_end(void *userdata, const struct pool_end *end)
{
    enum work_state *state = userdata;

    ended++;
    *state = end->state;
}

static void what_has_ended_is_waited_for(void **state)
{
    const char *const ids[] = {"one.0", "one.1", "one.0"};
    enum work_state last = WORK_IDLE;
    struct pool_wait *wait;

    ended = 0;
    crew_open(0, true, true);
    ASSERT_OK(pool_wait_begin(&wait, crew[0].member, "pool", ids, 3, on_end, &last, failure));
    assert_int_equal(pool_wait_left(wait), 2);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"},{\"body\":\"c\"}]"), BATON_OK);
    CREW_AWAIT(pool_wait_left(wait) == 0);
    assert_int_equal(ended, 2);
    assert_int_equal(last, WORK_COMPLETED);
    pool_wait_stop(wait);
}

static void a_job_that_was_cancelled_ends_without_a_result(void **state)
{
    const char *const ids[] = {"one.0"};
    enum work_state last = WORK_IDLE;
    struct pool_wait *wait;
    int code = 1;

    ended = 0;
    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    ASSERT_OK(pool_wait_begin(&wait, crew[0].member, "pool", ids, 1, on_end, &last, failure));
    ASSERT_OK(pool_cancel(crew[0].member, "pool", "one.0", crew_on_done, &code, failure));
    CREW_AWAIT(pool_wait_left(wait) == 0);
    pool_wait_stop(wait);
    assert_int_equal(code, BATON_OK);
    assert_int_equal(last, WORK_CANCELLED);
    assert_int_equal(crew_task("one.0")->halts, 1);
    assert_int_equal(result_of(0, "one.0").code, BATON_ENOENT);
}

static void a_job_that_fails_is_tried_again(void **state)
{
    crew_open(0, true, true);
    crew[0].fails_jobs = true;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\",\"retries\":2,\"backoff_ms\":1}]"),
                     BATON_OK);
    CREW_AWAIT(crew_task("one.0") && crew_task("one.0")->starts == 3 && !crew_runs("one.0"));
    CREW_AWAIT(result_of(0, "one.0").code == BATON_OK);
    assert_false(result_of(0, "one.0").is_success);
    assert_int_equal(result_of(0, "one.0").exit_code, 7);
    assert_int_equal(crew_task("one.0")->starts, 3);
}

/* ---- Deaths -----------------------------------------------------------------------------------
 */

static void each_of_200_jobs_completes_once_although_workers_and_leaders_die(void **state)
{
    char *items = crew_items(200, "");

    for (int i = 0; i < 5; i++) {
        crew_open(i, true, true);
    }
    assert_int_equal(crew_submit(4, NULL, items), BATON_OK);
    free(items);
    for (int round = 0; round < 4; round++) {
        size_t more = crew_completed() + 20;

        more =
            more < 200 ? more : 200; /* on a slow machine many end while the next one is elected */
        CREW_AWAIT(crew_completed() >= more);
        CREW_AWAIT(crew_leader() >= 0);
        crew_kill(round % 2 ? (crew_leader() + 1) % 5 : crew_leader());
        for (int i = 0; i < 5; i++) {
            if (!crew[i].member) {
                crew_open(i, true, true);
            }
        }
    }
    CREW_AWAIT(crew_completed() == 200);
    for (size_t i = 0; i < crew_task_count; i++) {
        CREW_AWAIT(result_of(4, crew_tasks[i].id).code == BATON_OK);
    }
}

static void a_job_whose_worker_died_runs_elsewhere_in_a_higher_epoch(void **state)
{
    uint64_t epoch;
    int first;

    crew_open(0, true, false);
    crew_open(1, false, true);
    crew_open(2, false, true);
    crew[1].ends_jobs = crew[2].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    first = crew_task("one.0")->runs_on;
    epoch = crew_task("one.0")->epoch;
    crew_kill(first);
    CREW_AWAIT(crew_runs("one.0"));
    assert_int_equal(crew_task("one.0")->runs_on, 3 - first);
    assert_true(crew_task("one.0")->epoch > epoch);
    assert_int_equal(crew_task("one.0")->attempt, 2);
    assert_int_equal(crew[0].gone, 1);
}

/* The leader gives its election back. */
static void a_worker_that_returns_by_its_name_is_given_jobs_again(void **state)
{
    crew_open(0, true, false);
    for (int life = 0; life < 3; life++) {
        crew_open(1, false, true);
        crew[1].ends_jobs = false;
        if (life == 0) {
            assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
        }
        CREW_AWAIT(crew_runs("one.0"));
        assert_int_equal(crew_task("one.0")->starts, life + 1);
        crew_kill(1);
    }
}

static void a_job_runs_on_while_another_process_comes_to_lead(void **state)
{
    crew_open(0, true, false);
    CREW_AWAIT(crew_leader() == 0);
    crew_open(1, true, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(1, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    crew_kill(0);
    CREW_AWAIT(crew_leader() == 1);
    crew_end(crew_task("one.0"), true);
    CREW_AWAIT(result_of(1, "one.0").code == BATON_OK);
    assert_int_equal(crew_task("one.0")->starts, 1);
}

struct deleting {
    int number;
    size_t left;
};

static void on_deleted(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    assert_int_equal(code, BATON_OK);
    ((struct deleting *)userdata)->left--;
}

static void on_doomed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct deleting *deleting = userdata;

    assert_int_equal(code, BATON_OK);
    deleting->left += count;
    for (size_t i = 0; i < count; i++) {
        ASSERT_OK(store_put(crew[deleting->number].member, values[i].key, NULL, 0,
                            PROVIDER_ANY_REVISION, SPAN_NS(0), on_deleted, deleting, failure));
    }
    deleting->left--;
}

static void delete_below(int number, const char *prefix)
{
    struct deleting deleting = {.number = number, .left = 1};

    ASSERT_OK(store_list(crew[number].member, prefix, on_doomed, &deleting, failure));
    CREW_AWAIT(deleting.left == 0);
}

/* As by a server that came back empty: the leader asks the workers what they have. */
static void what_runs_runs_on_when_the_state_is_lost(void **state)
{
    crew_open(0, true, false);
    crew_open(1, false, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"},{\"body\":\"c\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0") && crew_runs("one.1"));
    delete_below(0, "work/pool/");
    CREW_AWAIT(strstr(crew[0].error, "is gone from the state"));
    CREW_AWAIT(crew_leader() == 0);
    crew_end(crew_task("one.0"), true);
    crew_end(crew_task("one.1"), true);
    CREW_AWAIT(result_of(0, "one.0").code == BATON_OK && result_of(0, "one.1").code == BATON_OK);
    assert_int_equal(crew_task("one.0")->starts + crew_task("one.1")->starts, 2);
    assert_int_equal(crew_task("one.0")->halts + crew_task("one.1")->halts, 0);
}

static void who_deletes_a_submission_cancels_its_items(void **state)
{
    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    assert_int_equal(crew_submit(0, "two", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0") && crew_runs("two.0"));
    delete_below(0, "work/pool/s/one");
    CREW_AWAIT(!crew_runs("one.0"));
    assert_true(crew_runs("two.0"));
    assert_int_equal(crew_task("one.0")->halts, 1);
}

/* ---- Services ---------------------------------------------------------------------------------
 */

static const char services[] =
    "[{\"kind\":\"service\",\"id\":\"a\"},{\"kind\":\"service\",\"id\":\"b\"}]";

static void a_service_runs_on_in_one_place_whoever_dies(void **state)
{
    for (int i = 0; i < 3; i++) {
        crew_open(i, true, true);
    }
    assert_int_equal(crew_submit(0, "s", services), BATON_OK);
    for (int round = 0; round < 4; round++) {
        int victim;

        CREW_AWAIT(crew_runs("a") && crew_runs("b"));
        victim = crew_task("a")->runs_on;
        crew_kill(victim);
        crew_open(victim, true, true);
    }
    CREW_AWAIT(crew_runs("a") && crew_runs("b"));
}

static void a_drained_worker_gives_its_services_away_and_gets_them_back(void **state)
{
    int code = 1;

    crew_open(0, true, false);
    crew_open(1, false, true);
    assert_int_equal(crew_submit(0, "s", services), BATON_OK);
    CREW_AWAIT(crew_runs("a") && crew_runs("b"));
    crew_open(2, false, true);
    CREW_AWAIT(crew[2].sessions == 1);
    ASSERT_OK(pool_drain(crew[0].member, "pool", "w1", true, crew_on_done, &code, failure));
    CREW_AWAIT(crew_runs("a") && crew_runs("b") && crew_task("a")->runs_on == 2 &&
               crew_task("b")->runs_on == 2);
    ASSERT_OK(pool_drain(crew[0].member, "pool", "w1", false, crew_on_done, &code, failure));
    ASSERT_OK(pool_drain(crew[0].member, "pool", "w2", true, crew_on_done, &code, failure));
    CREW_AWAIT(crew_runs("a") && crew_task("a")->runs_on == 1 && crew_runs("b") &&
               crew_task("b")->runs_on == 1);
}

/* ---- Leaving ----------------------------------------------------------------------------------
 */

static void on_left(void *userdata, int code)
{
    ((struct hand *)userdata)->left = code;
}

static void who_leaves_ends_its_jobs_and_gives_its_services_away(void **state)
{
    crew_open(0, true, false);
    crew_open(1, false, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(0, "s", services), BATON_OK);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("a") && crew_runs("b") && crew_runs("one.0"));
    crew_open(2, false, true);
    CREW_AWAIT(crew[2].sessions == 1);
    ASSERT_OK(pool_leave(crew[1].pool, INSTANT_NEVER, on_left, &crew[1], failure));
    assert_int_equal(pool_leave(crew[1].pool, INSTANT_NEVER, on_left, &crew[1], NULL), BATON_EBUSY);
    CREW_AWAIT(crew_runs("a") && crew_task("a")->runs_on == 2 && crew_runs("b") &&
               crew_task("b")->runs_on == 2);
    assert_int_equal(crew[1].left, 1);
    assert_int_equal(crew_task("one.0")->runs_on, 1);
    crew_end(crew_task("one.0"), true);
    CREW_AWAIT(crew[1].left == BATON_OK);
    assert_int_equal(crew_task("one.0")->starts, 1);
}

static void what_runs_at_the_end_of_leaving_is_halted_and_is_no_failure(void **state)
{
    crew_open(0, true, false);
    crew_open(1, false, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    ASSERT_OK(pool_leave(crew[1].pool, instant_add(clock_now(), SPAN_MS(50)), on_left, &crew[1],
                         failure));
    CREW_AWAIT(crew[1].left != 1);
    assert_int_equal(crew[1].left, BATON_ETIMEDOUT);
    assert_int_equal(crew_task("one.0")->halts, 1);
    crew_kill(1);
    crew_open(1, false, true);
    CREW_AWAIT(crew_completed() == 1);
    assert_int_equal(crew_task("one.0")->attempt, 2);
}

/* ---- The lease --------------------------------------------------------------------------------
 */

/* With a margin in which a supervisor can end a process; and none of it counts as a failure. */
static void what_runs_is_halted_before_a_lease_ends_that_cannot_be_renewed(void **state)
{
    if (crew_server == 0) {
        skip();
    }
    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    assert_int_equal(kill(crew_server, SIGSTOP), 0);
    CREW_AWAIT(!crew_runs("one.0"));
    assert_int_equal(kill(crew_server, SIGCONT), 0);
    assert_int_equal(crew_task("one.0")->halts, 1);
    assert_true(crew_task("one.0")->lease_left.ns > 0);
    assert_true(instant_before(crew_task("one.0")->halt_by, crew_task("one.0")->lease_end));
    crew[0].ends_jobs = true;
    CREW_AWAIT(crew_completed() == 1);
    assert_int_equal(crew_task("one.0")->starts, 2);
}

/* The leader of the pool, which waits in line, gives it back at once. */
static void a_session_that_an_operator_passes_on_ends_after_its_copies(void **state)
{
    crew_open(0, true, false);
    crew_open(1, false, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    if (!crew_pass("work/pool/w1")) {
        skip();
    }
    assert_int_equal(crew_task("one.0")->halts, 1);
    assert_true(crew_task("one.0")->lease_left.ns > 0);
    crew[1].ends_jobs = true;
    CREW_AWAIT(crew[1].sessions == 2 && crew_completed() == 1);
    assert_int_equal(crew_task("one.0")->starts, 2);
}

/* ---- Checkpoints ------------------------------------------------------------------------------
 */

static int store(int number, const char *id, const char *text)
{
    struct task *task = crew_task(id);
    int code = 1;

    ASSERT_OK(pool_checkpoint(crew[number].pool, id, task->epoch, text, strlen(text), crew_on_done,
                              &code, failure));
    CREW_AWAIT(code != 1);
    return code;
}

static void an_attempt_begins_with_what_the_one_before_has_stored(void **state)
{
    int first;

    crew_open(0, true, false);
    crew_open(1, false, true);
    crew_open(2, false, true);
    crew[1].ends_jobs = crew[2].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    assert_string_equal(crew_task("one.0")->checkpoint, "");
    first = crew_task("one.0")->runs_on;
    assert_int_equal(store(first, "one.0", "half"), BATON_OK);
    assert_int_equal(store(first, "one.0", "more"), BATON_OK);
    crew_kill(first);
    CREW_AWAIT(crew_runs("one.0"));
    assert_string_equal(crew_task("one.0")->checkpoint, "more");
    assert_int_equal(store(3 - first, "one.0", "most"), BATON_OK);
}

static void attempts_that_begin_together_have_each_their_own_checkpoint(void **state)
{
    static const char *const ids[] = {"all.0", "all.1", "all.2", "all.3"};
    enum { COUNT = sizeof(ids) / sizeof(ids[0]) };

    crew_open(0, true, false);
    crew_open(1, false, true);
    crew[1].ends_jobs = false;
    assert_int_equal(crew_submit(0, "all",
                                 "[{\"body\":\"a\"},{\"body\":\"b\"},{\"body\":\"c\"},"
                                 "{\"body\":\"d\"}]"),
                     BATON_OK);
    for (size_t i = 0; i < COUNT; i++) {
        CREW_AWAIT(crew_runs(ids[i]));
    }
    assert_int_equal(store(1, ids[1], "one"), BATON_OK);
    assert_int_equal(store(1, ids[2], "two"), BATON_OK);
    crew_kill(1);
    crew_open(2, false, true);
    crew[2].ends_jobs = false;
    for (size_t i = 0; i < COUNT; i++) {
        CREW_AWAIT(crew_task(ids[i])->runs_on == 2);
    }
    assert_string_equal(crew_task(ids[0])->checkpoint, "");
    assert_string_equal(crew_task(ids[1])->checkpoint, "one");
    assert_string_equal(crew_task(ids[2])->checkpoint, "two");
    assert_string_equal(crew_task(ids[3])->checkpoint, "");
    assert_int_equal(store(2, ids[1], "more"), BATON_OK);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    *(int *)userdata = code;
}

/* As another process would that has the item in a later epoch. */
static void a_stale_attempt_stores_nothing_and_is_halted(void **state)
{
    struct buffer value;
    int code = 1;

    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one.0"));
    buffer_init(&value, 64);
    buffer_put_u64(&value, crew_task("one.0")->epoch + 1);
    ASSERT_OK(store_put(crew[0].member, "work/pool/k/one.0", value.data, value.bytes,
                        PROVIDER_ANY_REVISION, SPAN_NS(0), on_put, &code, failure));
    CREW_AWAIT(code != 1);
    buffer_fini(&value);
    assert_int_equal(store(0, "one.0", "late"), BATON_ELOST);
    assert_int_equal(crew_task("one.0")->halts, 1);
}

static void a_checkpoint_of_an_earlier_attempt_is_replaced(void **state)
{
    struct buffer value;
    int code = 1;

    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, NULL, "[{\"body\":\"b\",\"id\":\"one\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one"));
    assert_int_equal(store(0, "one", "mine"), BATON_OK);
    buffer_init(&value, 64);
    buffer_put_u64(&value, crew_task("one")->epoch - 1);
    ASSERT_OK(store_put(crew[0].member, "work/pool/k/one", value.data, value.bytes,
                        PROVIDER_ANY_REVISION, SPAN_NS(0), on_put, &code, failure));
    CREW_AWAIT(code != 1);
    buffer_fini(&value);
    assert_int_equal(store(0, "one", "again"), BATON_OK);
    assert_int_equal(crew_task("one")->halts, 0);
}

/* It was stored late, when the earlier item was forgotten. */
static void a_first_attempt_does_not_begin_with_what_an_earlier_item_has_stored(void **state)
{
    struct buffer value;
    int code = 1;

    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    buffer_init(&value, 64);
    buffer_put_u64(&value, 1);
    buffer_put_text(&value, "of another");
    ASSERT_OK(store_put(crew[0].member, "work/pool/k/one", value.data, value.bytes,
                        PROVIDER_ANY_REVISION, SPAN_NS(0), on_put, &code, failure));
    CREW_AWAIT(code != 1);
    buffer_fini(&value);
    assert_int_equal(crew_submit(0, NULL, "[{\"body\":\"b\",\"id\":\"one\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("one"));
    assert_string_equal(crew_task("one")->checkpoint, "");
    assert_int_equal(store(0, "one", "mine"), BATON_OK);
    assert_int_equal(crew_task("one")->halts, 0);
}

/* ---- Clients ----------------------------------------------------------------------------------
 */

static void the_same_submission_twice_is_one_and_another_by_its_name_is_refused(void **state)
{
    crew_open(0, true, true);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"}]"), BATON_OK);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"c\"}]"), BATON_EEXIST);
    CREW_AWAIT(crew_completed() == 1);
    assert_int_equal(crew_task("one.0")->starts, 1);
}

struct found {
    int code;
    size_t count;
};

static void on_listed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct found *found = userdata;

    found->count = count;
    found->code = code;
}

static size_t keys_below(int number, const char *prefix)
{
    struct found found = {.code = 1};

    ASSERT_OK(store_list(crew[number].member, prefix, on_listed, &found, failure));
    CREW_AWAIT(found.code != 1);
    return found.count;
}

static void many_items_are_several_keys_and_all_of_them_run(void **state)
{
    char body[240] = "", *items;

    crew_open(0, true, true);
    memset(body, 'b', sizeof(body) - 1);
    memcpy(body, ",\"keys\":[\"", 10);
    memcpy(body + sizeof(body) - 3, "\"]", 2);
    items = crew_items(600, body);
    assert_int_equal(crew_submit(0, "many", items), BATON_OK);
    assert_int_equal(keys_below(0, "work/pool/s/many"), 2);
    free(items);
    CREW_AWAIT(crew_completed() == 600);
}

static void on_ledger(void *userdata, int code, const struct ledger *ledger,
                      const struct baton_error *error)
{
    struct found *found = userdata;

    found->count = ledger ? ledger_count(ledger, WORK_COMPLETED) : 0;
    found->code = code;
}

static size_t completed_in_list(int number)
{
    struct found found = {.code = 1};

    ASSERT_OK(pool_list(crew[number].member, "pool", on_ledger, &found, failure));
    CREW_AWAIT(found.code != 1);
    assert_int_equal(found.code, BATON_OK);
    return found.count;
}

static void the_list_has_all_items_with_their_states(void **state)
{
    crew_open(0, true, true);
    assert_int_equal(crew_submit(0, "one", "[{\"body\":\"b\"},{\"body\":\"c\"}]"), BATON_OK);
    CREW_AWAIT(crew_completed() == 2);
    CREW_AWAIT(result_of(0, "one.0").code == BATON_OK && result_of(0, "one.1").code == BATON_OK);
    CREW_AWAIT(completed_in_list(0) == 2);
}

static void on_status(void *userdata, int code, const json_t *status,
                      const struct baton_error *error)
{
    struct found *found = userdata;

    found->count = json_array_size(json_object_get(status, "workers"));
    found->code = code;
}

static void the_leader_tells_its_status_to_whoever_asks(void **state)
{
    struct found found = {.code = 1};

    crew_open(0, true, true);
    crew_open_member(1);
    CREW_AWAIT(crew_leader() == 0 && crew[0].sessions == 1);
    ASSERT_OK(pool_ask_status(crew[1].member, "pool", INSTANT_NEVER, on_status, &found, failure));
    CREW_AWAIT(found.code != 1);
    assert_int_equal(found.code, BATON_OK);
}

static void a_worker_whose_lease_is_longer_than_a_leader_would_wait_says_so(void **state)
{
    if (crew_server == 0) {
        skip();
    }
    crew_open(0, true, true);
    crew_worker_lease = SPAN_MS(100);
    crew_open(1, false, true);
    CREW_AWAIT(strstr(crew[1].error, "worker-lease"));
    CREW_AWAIT(crew[0].sessions == 1);
    assert_string_equal(crew[0].error, "");
}

static void a_status_that_nobody_gives_times_out(void **state)
{
    struct found found = {.code = 1};

    crew_open_member(1);
    ASSERT_OK(pool_ask_status(crew[1].member, "pool", clock_now(), on_status, &found, failure));
    CREW_AWAIT(found.code != 1);
    assert_int_equal(found.code, BATON_ETIMEDOUT);
}

/* ---- Names ------------------------------------------------------------------------------------
 */

static int open_named(const char *pool, const char *worker, struct baton_error *reterr)
{
    const struct pool_config config = {
        .name = pool,
        .worker = worker,
        .worker_options = {.slots = 1, .report_interval = SPAN_S(1)}};
    struct pool *ret = NULL;

    return pool_open(&ret, crew[0].member, &config, reterr);
}

static void names_that_make_no_election_are_refused(void **state)
{
    struct baton_error error;

    crew_open_member(0);
    assert_int_equal(open_named("", "w", NULL), BATON_EINVAL);
    assert_int_equal(open_named("a/b", "w", NULL), BATON_EINVAL);
    assert_int_equal(open_named("a123456789b123456789c123456789d12", "w", NULL), BATON_EINVAL);
    assert_int_equal(open_named("pool", "all", NULL), BATON_EINVAL);
    assert_int_equal(open_named("pool", "", NULL), BATON_EINVAL);
    assert_int_equal(
        open_named("pool", "a123456789b123456789c123456789d123456789e123456789f123", &error),
        BATON_EINVAL);
    assert_non_null(strstr(error.message, "1 to 53"));
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        CREW_TEST(a_job_runs_once_and_leaves_its_result),
        CREW_TEST(a_worker_that_does_not_lead_is_given_jobs),
        CREW_TEST(what_has_ended_is_waited_for),
        CREW_TEST(a_job_that_was_cancelled_ends_without_a_result),
        CREW_TEST(a_job_that_fails_is_tried_again),
        CREW_TEST(each_of_200_jobs_completes_once_although_workers_and_leaders_die),
        CREW_TEST(a_job_whose_worker_died_runs_elsewhere_in_a_higher_epoch),
        CREW_TEST(a_worker_that_returns_by_its_name_is_given_jobs_again),
        CREW_TEST(a_job_runs_on_while_another_process_comes_to_lead),
        CREW_TEST(what_runs_runs_on_when_the_state_is_lost),
        CREW_TEST(who_deletes_a_submission_cancels_its_items),
        CREW_TEST(a_service_runs_on_in_one_place_whoever_dies),
        CREW_TEST(a_drained_worker_gives_its_services_away_and_gets_them_back),
        CREW_TEST(who_leaves_ends_its_jobs_and_gives_its_services_away),
        CREW_TEST(what_runs_at_the_end_of_leaving_is_halted_and_is_no_failure),
        CREW_TEST(what_runs_is_halted_before_a_lease_ends_that_cannot_be_renewed),
        CREW_TEST(a_session_that_an_operator_passes_on_ends_after_its_copies),
        CREW_TEST(an_attempt_begins_with_what_the_one_before_has_stored),
        CREW_TEST(a_stale_attempt_stores_nothing_and_is_halted),
        CREW_TEST(attempts_that_begin_together_have_each_their_own_checkpoint),
        CREW_TEST(a_checkpoint_of_an_earlier_attempt_is_replaced),
        CREW_TEST(a_first_attempt_does_not_begin_with_what_an_earlier_item_has_stored),
        CREW_TEST(the_same_submission_twice_is_one_and_another_by_its_name_is_refused),
        CREW_TEST(many_items_are_several_keys_and_all_of_them_run),
        CREW_TEST(the_list_has_all_items_with_their_states),
        CREW_TEST(the_leader_tells_its_status_to_whoever_asks),
        CREW_TEST(a_worker_whose_lease_is_longer_than_a_leader_would_wait_says_so),
        CREW_TEST(a_status_that_nobody_gives_times_out),
        CREW_TEST(names_that_make_no_election_are_refused),
    };

    if (count != 2 || !crew_choose(arguments[1])) {
        (void)fprintf(stderr, "usage: integration_pool_crew memory|redis|agent\n");
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* as every program does that opens a member on its own loop */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
