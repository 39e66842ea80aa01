/* From a model's number and address to a model on the disk, with a real server and a real cache. */
#include "cmocka_all.h"

#include "base/error.h"
#include "detector/model/supply.h"
#include "integration/camera/server.h"
#include "lib/await.h"
#include "lib/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URL_BYTES = 256, ORDERS = 10, NEVER_MS = 600000 };

static struct {
    char folder[256];
    struct server server;
    uv_loop_t loop;
    struct store *store;
    struct supply *supply;
} place;

/* A subscription's model, and what was told of it last. */
struct asker {
    struct order *order;
    int told;
    struct model *model;
    struct baton_error error; /* code 0: none */
    bool is_refused;
};

static struct asker one, two, three; /* of a test, at whose end they are canceled */

static void open_supply(int retry_ms, int fetch_retry_ms)
{
    struct supply_config config = {
        .loop = &place.loop, .fetch = fetch_rules_default(), .retry_ms = retry_ms};

    assert_int_equal(store_open(&place.store, place.folder, 1 << 30, NULL), 0);
    config.store = place.store;
    config.fetch.retry_ms = fetch_retry_ms;
    config.fetch.tries_max = 2;
    config.fetch.silent_ms = config.fetch.total_ms = NEVER_MS;
    assert_int_equal(supply_new(&place.supply, &config, NULL), 0);
}

/* Runs the loop until it is closed: nothing else may be left in it. */
static void close_supply(void)
{
    supply_close(place.supply);
    assert_int_equal(uv_run(&place.loop, UV_RUN_DEFAULT), 0);
    store_close(place.store);
}

/* As the next process. */
static void reopen_supply(int retry_ms, int fetch_retry_ms)
{
    close_supply();
    open_supply(retry_ms, fetch_retry_ms);
}

/* ---- Askers --------------------------------------------------------------------------------- */

static void on_told(void *userdata, const struct supplied *supplied)
{
    struct asker *asker = userdata;

    assert_true(supplied->model != NULL || supplied->error != NULL);
    model_release(asker->model);
    asker->told++;
    asker->model = supplied->model != NULL ? model_share(supplied->model) : NULL;
    asker->error = supplied->error != NULL ? *supplied->error : (struct baton_error){0};
    asker->is_refused = supplied->is_refused;
}

static const char *url_of(const char *name, const char *query)
{
    static char url[URL_BYTES];

    (void)snprintf(url, sizeof(url), "http://viewer:canary7@127.0.0.1:%d/%s.mpta?%s",
                   place.server.port, name, query);
    return url;
}

static void order(int64_t model_id, const char *name, const char *query, struct asker *asker)
{
    memset(asker, 0, sizeof(*asker));
    ASSERT_OK(supply_order(&asker->order, place.supply, model_id, url_of(name, query), on_told,
                           asker, failure));
    assert_int_equal(asker->told, 0);
}

static void renew(struct asker *asker, const char *name, const char *query)
{
    assert_true(supply_renew(asker->order, url_of(name, query)));
}

static void cancel(struct asker *asker)
{
    supply_cancel(asker->order);
    model_release(asker->model);
    asker->order = NULL;
    asker->model = NULL;
}

static int set_up(void **state)
{
    process_make_folder(place.folder, sizeof(place.folder));
    server_start(&place.server, "model_server.py", NULL);
    assert_int_equal(uv_loop_init(&place.loop), 0);
    open_supply(NEVER_MS, 1);
    return 0;
}

static int tear_down(void **state)
{
    cancel(&one);
    cancel(&two);
    cancel(&three);
    close_supply();
    assert_int_equal(uv_loop_close(&place.loop), 0);
    server_end(&place.server);
    process_remove_folder(place.folder);
    return 0;
}

/* Until it was told so many times in all, the last time with this error. */
static void wait_told(const struct asker *asker, int told, int code)
{
    (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    while (asker->told < told) {
        assert_true(uv_run(&place.loop, UV_RUN_ONCE) != 0 || asker->told >= told);
    }
    if (asker->told != told || asker->error.code != code) {
        fail_msg("told %d times, %s", asker->told, asker->error.message);
    }
}

static unsigned gets(const char *line)
{
    return server_count(&place.server, line);
}

static void wait_gets(const char *line, unsigned count)
{
    while (gets(line) < count) {
        (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(gets(line), count);
}

/* What was asked has its reply, and waits for its next try if there is one. */
static void wait_replies(void)
{
    while (place.loop.active_reqs.count > 0) { /* a thread is at work */
        (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    }
}

/* Answered, when nothing is told: a question more than now is counted. */
static void wait_unchanged(uint64_t count)
{
    while (supply_counters(place.supply).unchanged < count) {
        (void)uv_run(&place.loop, UV_RUN_ONCE);
    }
}

/* Orders it and lets it run, or says why it does not. */
static void put_to_work(const char *name, const char *query, struct asker *asker)
{
    order(7, name, query, asker);
    wait_told(asker, 1, 0);
    supply_ran(asker->order, asker->model);
}

/* The digest of what comes as model 7; it runs, and is not needed any more. */
static void get(const char *name, const char *query, char digest[DIGEST_BYTES])
{
    struct asker asker;

    put_to_work(name, query, &asker);
    (void)snprintf(digest, DIGEST_BYTES, "%s", asker.model->digest);
    cancel(&asker);
}

static void fails_by(struct asker *asker, int code)
{
    struct baton_error error = {0};

    (void)error_set(&error, code, "its engine has something against it");
    supply_failed(asker->order, asker->model, &error);
}

static void fails(struct asker *asker)
{
    fails_by(asker, BATON_EINVAL);
}

/* The archive on the disk is cut, or has another flag of its last file, which only its digest
 * shows. */
static void damage(const char *digest, bool is_cut)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/archives/%s", place.folder, digest);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (is_cut) {
        assert_int_equal(ftruncate(fd, 1000), 0);
    } else {
        assert_true(lseek(fd, -48, SEEK_END) > 0);
        assert_int_equal(write(fd, "\1", 1), 1);
    }
    (void)close(fd);
}

/* ---- What is fetched ------------------------------------------------------------------------ */

static void a_fresh_signature_alone_fetches_nothing(void **state)
{
    char digest[DIGEST_BYTES];

    put_to_work("good", "sig=one", &one);
    renew(&one, "good", "sig=two");
    wait_unchanged(1);
    assert_int_equal(one.told, 1);
    assert_false(supply_renew(one.order, url_of("other", "sig=two")));
    get("good", "sig=three", digest); /* another subscription of it */
    assert_string_equal(digest, one.model->digest);
    assert_int_equal(gets("get good"), 1);
    assert_int_equal(gets("get good if \"v1\""), 2);
}

static void without_an_etag_the_digest_tells_that_it_is_the_same(void **state)
{
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    get("plain", "sig=one", first);
    put_to_work("plain", "sig=two", &one);
    assert_string_equal(one.model->digest, first);
    renew(&one, "plain", "sig=three"); /* is not asked: it would be a download */
    get("good", "", second);
    assert_int_equal(gets("get plain"), 2);
}

static void what_comes_again_and_never_runs_is_not_kept_for_the_next_process(void **state)
{
    char origins[512];

    reopen_supply(1, 1);
    (void)snprintf(origins, sizeof(origins), "%s/origins", place.folder);
    order(7, "plain", "", &one);
    for (int i = 1; i < 4; i++) {
        wait_told(&one, i, 0);
        fails(&one);
    }
    assert_true(gets("get plain") >= 3);
    cancel(&one);
    assert_int_equal(process_count_entries(origins), 0);
}

/* What the disk has damaged is fetched whole. */
static void the_next_process_knows_what_ran(void **state)
{
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    get("good", "", first);
    for (unsigned damages = 0; damages < 3; damages++) {
        reopen_supply(NEVER_MS, 1); /* waits until that is on the disk */
        if (damages > 0) {
            damage(first, damages == 1);
        }
        get("good", "", second);
        assert_string_equal(first, second);
        assert_int_equal(gets("get good"), 1 + damages);
        assert_int_equal(gets("get good if \"v1\""), 1);
    }
}

static void what_is_at_work_is_asked_for_by_its_etag_alone(void **state)
{
    struct asker askers[ORDERS];

    for (int i = 0; i < ORDERS; i++) {
        order(7, "good", "", &askers[i]);
    }
    for (int i = 0; i < ORDERS; i++) {
        wait_told(&askers[i], 1, 0);
        assert_string_equal(askers[i].model->digest, askers[0].model->digest);
    }
    damage(askers[0].model->digest, true); /* it is not even read */
    for (int i = 0; i < ORDERS; i++) {
        renew(&askers[i], "good", i % 2 == 0 ? "sig=one" : "sig=two");
    }
    wait_unchanged(1);
    for (int i = 0; i < ORDERS; i++) {
        assert_int_equal(askers[i].told, 1);
        cancel(&askers[i]);
    }
    assert_int_equal(gets("get good"), 1);
    assert_int_equal(gets("get good if \"v1\""), 1);
    assert_int_equal(supply_counters(place.supply).rechecks, 1);
}

/* Its first address waits for its next try, or is refused while the fresh one is known. */
static void a_fresh_address_is_asked_in_place_of_an_old_one(void **state)
{
    static const char *const old[] = {"busy=1", "held=1"};

    reopen_supply(NEVER_MS, NEVER_MS);
    for (int i = 0; i < 2; i++) {
        unsigned before = gets("get signed");
        order(7 + i, "signed", old[i], &one);
        wait_gets("get signed", before + 1);
        if (i == 0) {
            wait_replies();
        }
        order(7 + i, "signed", "fresh=1", &two);
        if (i == 1) {
            order(9, "release", "", &three);
            wait_told(&three, 1, BATON_ENOENT);
            cancel(&three);
        }
        wait_told(&one, 1, 0);
        wait_told(&two, 1, 0);
        assert_int_equal(gets("get signed"), before + 2);
        cancel(&one);
        cancel(&two);
    }
}

/* ---- What cannot be had, or cannot run ------------------------------------------------------ */

static void what_cannot_be_run_gives_way_to_what_ran_before_it(void **state)
{
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    put_to_work("good", "v=1", &one);
    (void)snprintf(first, sizeof(first), "%s", one.model->digest);
    for (int i = 0; i < 2; i++) { /* the next process may have another engine */
        renew(&one, "good", "v=2");
        wait_told(&one, 2, 0);
        (void)snprintf(second, sizeof(second), "%s", one.model->digest);
        assert_string_not_equal(second, first);
        fails(&one);
        wait_told(&one, 3, BATON_EINVAL);
        order(7, "good", "v=2&other", &two); /* nor do others get it */
        wait_told(&two, 1, BATON_EINVAL);
        assert_string_equal(one.model->digest, first);
        assert_string_equal(two.model->digest, first);
        assert_non_null(strstr(two.error.message, "has something against it"));
        assert_int_equal(gets("get good if \"v1\""), i * 2 + 1);
        cancel(&one);
        cancel(&two);
        if (i == 0) {
            reopen_supply(NEVER_MS, 1);
            put_to_work("good", "v=1", &one);
        }
    }
    put_to_work("good", "v=3", &one);
    assert_string_not_equal(one.model->digest, first);
    cancel(&one);
    assert_int_equal(gets("get good"), 1);
}

/* Its process may have been killed. */
static void what_ran_before_is_given_again_if_it_fails_now(void **state)
{
    reopen_supply(1, 1);
    put_to_work("good", "v=1", &one);
    renew(&one, "good", "v=2");
    wait_told(&one, 2, 0);
    for (int i = 3; i < 6; i++) {
        fails(&one);
        wait_told(&one, i, BATON_EINVAL); /* of v=2 */
    }
    assert_int_equal(gets("get good if \"v1\""), 1);
}

static void what_has_run_once_gives_way_to_nothing(void **state)
{
    char first[DIGEST_BYTES];

    get("good", "v=1", first);
    get("good", "v=2", first);
    reopen_supply(1, 1);
    order(7, "good", "v=2", &one);
    for (int i = 1; i < 4; i++) { /* it is tried again and again */
        wait_told(&one, i, 0);
        assert_string_equal(one.model->digest, first);
        fails(&one);
    }
}

static void a_question_without_an_answer_changes_nothing(void **state)
{
    struct supply_counters counters;

    put_to_work("signed", "fresh=1", &one);
    renew(&one, "signed", "busy=1");
    while ((counters = supply_counters(place.supply)).recheck_failures == 0) {
        (void)uv_run(&place.loop, UV_RUN_ONCE);
    }
    assert_int_equal(one.told, 1);
    order(7, "signed", "busy=1", &two); /* who is new gets it with the error */
    wait_told(&two, 1, BATON_EUNAVAILABLE);
    assert_string_equal(two.model->digest, one.model->digest);
    renew(&one, "signed", "fresh=1");
    wait_told(&two, 2, 0);
    assert_int_equal(one.told, 1);
    assert_int_equal(counters.fetch_failures, 0);
    assert_int_equal(counters.from_before, 0);
}

static void what_cannot_be_asked_for_is_the_one_from_before(void **state)
{
    char before[DIGEST_BYTES];

    get("good", "", before);
    reopen_supply(NEVER_MS, 1);
    server_end(&place.server);
    for (int i = 0; i < 2; i++) {
        order(7 + i, "good", "sig=canary8", &one);
        wait_told(&one, 1, BATON_EUNAVAILABLE);
        assert_null(strstr(one.error.message, "canary"));
        if (i == 0) {
            assert_string_equal(one.model->digest, before);
        } else {
            assert_null(one.model);
        }
        cancel(&one);
    }
}

/* A server that is busy at first, and one whose archive is bad. */
static void what_cannot_be_had_is_asked_for_again(void **state)
{
    char archives[512];

    reopen_supply(1, 1);
    order(7, "busy", "", &one);
    wait_told(&one, 2, 0);
    assert_int_equal(supply_counters(place.supply).fetch_failures, 1);
    cancel(&one);

    order(7, "bad", "", &one);
    for (int i = 1; i < 4; i++) { /* by its ETag, so that it is not sent again */
        wait_told(&one, i, 0);
        fails_by(&one, BATON_EPROTO);
    }
    assert_int_equal(gets("get bad"), 1);
    assert_true(gets("get bad if \"v1\"") >= 2);
    assert_int_equal(supply_counters(place.supply).refused, 1);
    (void)snprintf(archives, sizeof(archives), "%s/archives", place.folder);
    /* It takes room until it is given up. A file for what comes has a name for a moment. */
    AWAIT_ON(place.loop, process_count_entries(archives) == 2);
    cancel(&one);
    AWAIT_ON(place.loop, process_count_entries(archives) == 1);
}

/* ---- Canceled and closed -------------------------------------------------------------------- */

/* Lets more and more of an order happen: 1, 2, 4, … turns of the loop, which do not block. */
static void run_turns(int doublings, const struct asker *asker)
{
    for (uint64_t i = 0; i < UINT64_C(1) << doublings && asker->told == 0; i++) {
        (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    }
}

/* Canceled or closed with its supply, until an order is through first. */
static void an_order_ends_at_any_moment(void **state)
{
    for (int closes = 0; closes < 2; closes++) {
        int at = 0;

        for (;; at++) {
            char query[32];

            (void)snprintf(query, sizeof(query), "v=%d", closes * 100 + at + 1);
            order(7, "good", query, &one);
            run_turns(at, &one);
            if (one.told != 0) {
                break;
            }
            if (closes) {
                reopen_supply(NEVER_MS, 1);
            } else {
                cancel(&one);
            }
            assert_int_equal(one.told, 0);
        }
        assert_int_equal(one.error.code, 0);
        cancel(&one);
        assert_true(at > 3);
    }
}

static void the_others_of_a_canceled_order_are_served(void **state)
{
    order(7, "good", "", &one);
    order(7, "good", "", &two);
    cancel(&one);
    wait_told(&two, 1, 0);
    assert_int_equal(one.told, 0);
    assert_non_null(two.model);
}

/* Nor is a server that hangs waited for in the end. */
static void another_interval_disturbs_no_question_that_is_under_way(void **state)
{
    put_to_work("signed", "fresh=1", &one);
    renew(&one, "signed", "held=1");
    wait_gets("get signed if \"v1\"", 1);
    supply_set_recheck(place.supply, 1);
    for (int i = 0; i < 4; i++) { /* time passes */
        order(8 + i, "good", "", &two);
        wait_told(&two, 1, 0);
        cancel(&two);
    }
    assert_int_equal(gets("get signed if \"v1\""), 1);
}

/* A question keeps its file and its connection between two tries, so these are limited, too. */
static void what_waits_for_its_next_try_counts_as_one_of_the_most(void **state)
{
    struct asker waiting[SUPPLY_QUESTIONS_MAX];

    reopen_supply(NEVER_MS, NEVER_MS);
    for (int i = 0; i < SUPPLY_QUESTIONS_MAX; i++) {
        order(100 + i, "down", "", &waiting[i]);
    }
    wait_gets("get down", SUPPLY_QUESTIONS_MAX);
    wait_replies();
    order(7, "good", "", &one);
    for (int looks = 0; looks < 3 && one.told == 0; looks++) {
        (void)uv_run(&place.loop, UV_RUN_ONCE);
    }
    assert_int_equal(gets("get good"), 0);
    cancel(&waiting[0]);
    wait_told(&one, 1, 0);
    cancel(&one);
    for (int i = 1; i < SUPPLY_QUESTIONS_MAX; i++) {
        assert_int_equal(waiting[i].told, 0);
        cancel(&waiting[i]);
    }
}

static void an_address_that_is_not_allowed_is_refused_at_once(void **state)
{
    struct baton_error error = {0};
    struct order *none = NULL;

    assert_int_equal(
        supply_order(&none, place.supply, 7, "file:///etc/canary", on_told, NULL, &error),
        BATON_EINVAL);
    assert_null(strstr(error.message, "canary"));
    assert_null(none);
    supply_close(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fresh_signature_alone_fetches_nothing),
        TEST(without_an_etag_the_digest_tells_that_it_is_the_same),
        TEST(what_comes_again_and_never_runs_is_not_kept_for_the_next_process),
        TEST(the_next_process_knows_what_ran),
        TEST(what_is_at_work_is_asked_for_by_its_etag_alone),
        TEST(a_fresh_address_is_asked_in_place_of_an_old_one),
        TEST(what_cannot_be_run_gives_way_to_what_ran_before_it),
        TEST(what_ran_before_is_given_again_if_it_fails_now),
        TEST(what_has_run_once_gives_way_to_nothing),
        TEST(a_question_without_an_answer_changes_nothing),
        TEST(what_cannot_be_asked_for_is_the_one_from_before),
        TEST(what_cannot_be_had_is_asked_for_again),
        TEST(an_order_ends_at_any_moment),
        TEST(the_others_of_a_canceled_order_are_served),
        TEST(another_interval_disturbs_no_question_that_is_under_way),
        TEST(what_waits_for_its_next_try_counts_as_one_of_the_most),
        TEST(an_address_that_is_not_allowed_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
