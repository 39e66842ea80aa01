/* A fire runs only once the group has its claim, and each is decided once, whatever becomes of the
 * writes: here every reply of the state is the test's own. */
#include "cli/cron_book.h"
#include "cmocka_all.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2026-11-25 12:00:00 UTC */
#define NOON INT64_C(1795608000)

enum { CALLS_MAX = 8, STORED_MAX = 4096, FIRES_MAX = 16 };

/* ---- The state, by hand ---------------------------------------------------------------------- */

struct put {
    char key[64], data[STORED_MAX];
    uint64_t revision;
    provider_put_cb done;
    void *userdata;
};

struct get {
    provider_values_cb done;
    void *userdata;
};

static struct {
    struct put puts[CALLS_MAX];
    struct get gets[CALLS_MAX], lists[CALLS_MAX];
    size_t put_count, get_count, list_count;
    char stored[STORED_MAX]; /* of the one line; "": nothing */
    uint64_t revision;
    int64_t now_ms;
    struct book *book;
    struct cron_fire *fires[FIRES_MAX]; /* that run */
    struct cron_run runs[FIRES_MAX];    /* all that ran */
    size_t fire_count;
    uv_loop_t loop;
    bool refuses; /* the state cannot be asked at all */
} world;

int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);
uv_loop_t *__wrap_member_loop(const struct member *member);

int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct put *put = &world.puts[world.put_count];

    assert_in_range(world.put_count, 0, CALLS_MAX - 1);
    assert_in_range(bytes, 1, STORED_MAX - 1);
    assert_true(lifetime.ns > 0);
    if (world.refuses) {
        return BATON_EUNAVAILABLE;
    }
    world.put_count++;
    *put = (struct put){.revision = revision, .done = done, .userdata = userdata};
    (void)snprintf(put->key, sizeof(put->key), "%s", key);
    memcpy(put->data, data, bytes);
    return BATON_OK;
}

int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr)
{
    assert_in_range(world.get_count, 0, CALLS_MAX - 1);
    if (world.refuses) {
        return BATON_EUNAVAILABLE;
    }
    world.gets[world.get_count++] = (struct get){done, userdata};
    return BATON_OK;
}

int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr)
{
    assert_string_equal(prefix, "cron/e/");
    assert_in_range(world.list_count, 0, CALLS_MAX - 1);
    if (world.refuses) {
        return BATON_EUNAVAILABLE;
    }
    world.lists[world.list_count++] = (struct get){done, userdata};
    return BATON_OK;
}

uv_loop_t *__wrap_member_loop(const struct member *member)
{
    return &world.loop;
}

static struct provider_value stored(void)
{
    bool is_there = world.stored[0] != '\0';

    return (struct provider_value){.key = "cron/e/job",
                                   .data = is_there ? world.stored : NULL,
                                   .bytes = strlen(world.stored),
                                   .revision = world.revision};
}

static void answer(struct get *gets, size_t *count)
{
    struct provider_value value = stored();
    struct get get = gets[0];

    assert_in_range(*count, 1, CALLS_MAX);
    memmove(&gets[0], &gets[1], --*count * sizeof(gets[0]));
    get.done(get.userdata, BATON_OK, &value, 1);
}

static void answer_list(void)
{
    answer(world.lists, &world.list_count);
}

static void answer_get(void)
{
    answer(world.gets, &world.get_count);
}

static struct put take_put(void)
{
    struct put put = world.puts[0];

    assert_in_range(world.put_count, 1, CALLS_MAX);
    memmove(&world.puts[0], &world.puts[1], --world.put_count * sizeof(world.puts[0]));
    return put;
}

/* As the state does it: only if the revision is right. */
static int carry_out(const struct put *put)
{
    if (put->revision != world.revision) {
        return BATON_ECONFLICT;
    }
    (void)snprintf(world.stored, sizeof(world.stored), "%s", put->data);
    world.revision++;
    return BATON_OK;
}

static void answer_put(void)
{
    struct put put = take_put();
    int code = carry_out(&put);

    put.done(put.userdata, code, code ? 0 : world.revision, NULL);
}

/* ---- The book -------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    return world.now_ms;
}

static void run(void *userdata, struct cron_fire *fire, const struct crontab *crontab,
                const struct cron_line *line)
{
    assert_non_null(line);
    assert_non_null(strstr(world.stored, "\"running\":[{")); /* the group has its claim */
    world.fires[world.fire_count] = fire;
    world.runs[world.fire_count++] = fire->run;
}

static void changed(void *userdata)
{
}

static bool has_zone(const char *name)
{
    return !*name;
}

static struct crontab *crontab_of(const char *text)
{
    struct crontab *crontab;

    assert_int_equal(crontab_parse(&crontab, text, strlen(text), "f", has_zone, NULL), 0);
    return crontab;
}

#define JOB "# baton: name=job\n*/10 * * * * * x\n"

static void open_book(const char *text)
{
    const struct cron_page_config config = {
        .election = "e", .node = "a", .now_ms = now_ms, .run = run, .changed = changed};

    memset(&world, 0, sizeof(world));
    world.now_ms = NOON * 1000;
    (void)uv_loop_init(&world.loop);
    assert_int_equal(book_open(&world.book, &config, crontab_of(text), NULL), 0);
}

static void close_book(void)
{
    book_close(world.book);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    book_free(world.book);
    assert_int_equal(uv_loop_close(&world.loop), 0);
}

static void lead_with(uint64_t epoch)
{
    book_lead(world.book, epoch);
    answer_list();
}

static void tick(int64_t after_noon_s)
{
    world.now_ms = (NOON + after_noon_s) * 1000;
    book_tick(world.book, false);
}

/* The line is new: its record is written. */
static void begin(void)
{
    open_book(JOB);
    lead_with(7);
    answer_put();
    assert_int_equal(book_due(world.book), NOON + 10);
}

static void end(size_t index, enum cron_state state)
{
    book_end(world.book, world.fires[index], state, 0, "out");
}

static void expect_runs(size_t count, int64_t after_noon_s, int64_t attempt)
{
    assert_int_equal(world.fire_count, count);
    if (count > 0) {
        assert_int_equal(world.runs[count - 1].fire_s, NOON + after_noon_s);
        assert_int_equal(world.runs[count - 1].attempt, attempt);
    }
}

static void a_fire_runs_once_its_claim_is_written(void **state)
{
    begin();
    tick(9);
    assert_int_equal(world.put_count, 0);
    tick(10);
    expect_runs(0, 0, 0);
    answer_put();
    expect_runs(1, 10, 1);
    assert_false(book_is_idle(world.book));
    end(0, CRON_DONE);
    answer_put();
    assert_true(book_is_idle(world.book));
    assert_non_null(strstr(world.stored, "\"state\":\"done\""));
    assert_non_null(strstr(world.stored, "\"output\":\"out\""));
    assert_int_equal(book_due(world.book), NOON + 20);
    close_book();
}

static void a_claim_that_is_refused_does_not_run(void **state)
{
    char taken[STORED_MAX];
    begin();
    tick(10);
    /* A late write of an earlier leader has come first: it claims the same instant. */
    struct put late = world.puts[0];
    (void)snprintf(taken, sizeof(taken), "%s", late.data);
    memcpy(strstr(taken, "\"epoch\":7"), "\"epoch\":6", 9);
    (void)snprintf(late.data, sizeof(late.data), "%s", taken);
    assert_int_equal(carry_out(&late), BATON_OK);
    answer_put(); /* a conflict */
    expect_runs(0, 0, 0);
    answer_get();
    answer_put();
    expect_runs(1, 10, 2); /* the other leader's command is dead */
    close_book();
}

static void a_claim_whose_reply_was_lost_runs_once(void **state)
{
    begin();
    tick(10);
    struct put put = take_put();
    assert_int_equal(carry_out(&put), BATON_OK);
    put.done(put.userdata, BATON_ETIMEDOUT, 0, NULL);
    expect_runs(0, 0, 0);
    answer_get();
    expect_runs(1, 10, 1);
    end(0, CRON_DONE);
    answer_put();
    assert_non_null(strstr(world.stored, "\"runs\":1"));
    close_book();
}

static void a_claim_that_was_lost_is_claimed_again(void **state)
{
    begin();
    tick(10);
    struct put put = take_put();
    put.done(put.userdata, BATON_EUNAVAILABLE, 0, NULL);
    answer_get();
    expect_runs(0, 0, 0);
    answer_put();
    expect_runs(1, 10, 1);
    close_book();
}

/* The first write is carried out after the second one was sent: that one is refused. */
static void a_claim_that_comes_late_is_found(void **state)
{
    begin();
    tick(10);
    struct put first = take_put();
    first.done(first.userdata, BATON_ETIMEDOUT, 0, NULL);
    world.now_ms += 5;
    answer_get();
    assert_int_equal(carry_out(&first), BATON_OK);
    answer_put(); /* a conflict */
    answer_get();
    expect_runs(1, 10, 1);
    end(0, CRON_DONE);
    answer_put();
    assert_non_null(strstr(world.stored, "\"runs\":1"));
    close_book();
}

static void an_end_is_written_again_if_it_was_refused(void **state)
{
    begin();
    tick(10);
    answer_put();
    end(0, CRON_DONE);
    struct put put = take_put();
    put.done(put.userdata, BATON_EUNAVAILABLE, 0, NULL);
    answer_get();
    answer_put();
    assert_non_null(strstr(world.stored, "\"state\":\"done\""));
    assert_true(book_is_idle(world.book));
    expect_runs(1, 10, 1);
    close_book();
}

static void what_comes_while_a_write_is_under_way_is_written_after_it(void **state)
{
    open_book("# baton: name=job overlap=allow\n*/10 * * * * * x\n");
    lead_with(7);
    answer_put();
    tick(10);
    answer_put();
    tick(20);
    end(0, CRON_DONE); /* the claim of the second one is being written */
    assert_int_equal(world.put_count, 1);
    answer_put();
    expect_runs(2, 20, 1);
    answer_put();
    assert_non_null(strstr(world.stored, "\"runs\":1"));
    assert_non_null(strstr(world.stored, "\"running\":[{"));
    close_book();
}

static void a_claim_that_is_written_after_leadership_was_lost_does_not_run(void **state)
{
    begin();
    tick(10);
    book_follow(world.book);
    answer_put();
    expect_runs(0, 0, 0);
    assert_true(book_is_idle(world.book));
    lead_with(9);
    expect_runs(0, 0, 0);
    answer_put();
    expect_runs(1, 10, 2);
    close_book();
}

static void a_claim_of_an_earlier_leadership_does_not_run_in_the_next(void **state)
{
    begin();
    tick(10);
    book_follow(world.book);
    book_lead(world.book, 9);
    answer_list(); /* before the write: its record is read after it */
    answer_put();
    expect_runs(0, 0, 0);
    answer_get();
    answer_put();
    expect_runs(1, 10, 2);
    close_book();
}

static void a_list_of_an_earlier_leadership_does_not_count(void **state)
{
    open_book(JOB);
    book_lead(world.book, 7);
    book_follow(world.book);
    book_lead(world.book, 9);
    assert_int_equal(world.list_count, 1);
    answer_list();
    assert_int_equal(world.put_count, 0);
    answer_list();
    answer_put();
    assert_int_equal(book_due(world.book), NOON + 10);
    close_book();
}

static void while_it_is_held_nothing_fires_and_ends_are_written(void **state)
{
    begin();
    tick(10);
    answer_put();
    book_hold(world.book, true);
    tick(20);
    end(0, CRON_DONE);
    answer_put();
    assert_true(book_is_idle(world.book));
    expect_runs(1, 10, 1);
    book_hold(world.book, false);
    answer_put();
    expect_runs(2, 20, 1);
    close_book();
}

static void a_line_that_leaves_the_file_is_marked_and_one_that_comes_back_begins_anew(void **state)
{
    begin();
    book_replace(world.book, crontab_of("# nothing\n"));
    answer_put();
    assert_non_null(strstr(world.stored, "\"removed\":true"));
    tick(100);
    expect_runs(0, 0, 0);
    book_replace(world.book, crontab_of(JOB));
    answer_get();
    answer_put();
    assert_non_null(strstr(world.stored, "\"removed\":false"));
    expect_runs(0, 0, 0);
    assert_int_equal(book_due(world.book), NOON + 110);
    close_book();
}

static void a_line_that_comes_back_before_its_removal_is_written_is_read_after_it(void **state)
{
    begin();
    book_replace(world.book, crontab_of("# nothing\n"));
    book_replace(world.book, crontab_of(JOB));
    assert_int_equal(world.get_count, 0);
    answer_put();
    answer_get();
    answer_put();
    assert_non_null(strstr(world.stored, "\"removed\":false"));
    tick(10);
    answer_put();
    expect_runs(1, 10, 1);
    close_book();
}

static void a_command_whose_line_has_left_ends_as_it_likes(void **state)
{
    begin();
    tick(10);
    answer_put();
    book_replace(world.book, crontab_of("# nothing\n"));
    answer_put();
    end(0, CRON_DONE);
    answer_put();
    assert_non_null(strstr(world.stored, "\"runs\":1"));
    assert_true(book_is_idle(world.book));
    close_book();
}

static void a_record_that_is_damaged_is_begun_anew(void **state)
{
    open_book(JOB);
    (void)snprintf(world.stored, sizeof(world.stored), "{\"fire\":\"yes\"}");
    world.revision = 5;
    lead_with(7);
    answer_put();
    assert_non_null(strstr(world.stored, "\"state\":\"never\""));
    tick(10);
    answer_put();
    expect_runs(1, 10, 1);
    close_book();
}

static void a_state_that_cannot_be_asked_is_asked_again(void **state)
{
    open_book(JOB);
    world.refuses = true;
    book_lead(world.book, 7);
    world.refuses = false;
    while (world.list_count == 0) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    answer_list();
    answer_put();
    world.refuses = true;
    tick(10);
    world.refuses = false;
    while (world.get_count == 0) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    answer_get();
    answer_put();
    expect_runs(1, 10, 1);
    close_book();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fire_runs_once_its_claim_is_written),
        cmocka_unit_test(a_claim_that_is_refused_does_not_run),
        cmocka_unit_test(a_claim_whose_reply_was_lost_runs_once),
        cmocka_unit_test(a_claim_that_was_lost_is_claimed_again),
        cmocka_unit_test(a_claim_that_comes_late_is_found),
        cmocka_unit_test(an_end_is_written_again_if_it_was_refused),
        cmocka_unit_test(what_comes_while_a_write_is_under_way_is_written_after_it),
        cmocka_unit_test(a_claim_that_is_written_after_leadership_was_lost_does_not_run),
        cmocka_unit_test(a_claim_of_an_earlier_leadership_does_not_run_in_the_next),
        cmocka_unit_test(a_list_of_an_earlier_leadership_does_not_count),
        cmocka_unit_test(while_it_is_held_nothing_fires_and_ends_are_written),
        cmocka_unit_test(a_line_that_leaves_the_file_is_marked_and_one_that_comes_back_begins_anew),
        cmocka_unit_test(a_line_that_comes_back_before_its_removal_is_written_is_read_after_it),
        cmocka_unit_test(a_command_whose_line_has_left_ends_as_it_likes),
        cmocka_unit_test(a_record_that_is_damaged_is_begun_anew),
        cmocka_unit_test(a_state_that_cannot_be_asked_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
