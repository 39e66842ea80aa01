/* From a model's number and address to a model on the disk, with a real server and a real cache. */
#include "cmocka_all.h"

#include "base/error.h"
#include "detector/model/supply.h"
#include "integration/camera/server.h"
#include "lib/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URL_BYTES = 256, ORDERS = 10 };

struct place {
    char folder[256];
    struct server server;
    bool is_served;
    uv_loop_t loop;
    struct store *store;
    struct supply_config config;
    struct supply *supply;
    int closed;
};

struct answer {
    struct place *place;
    int told;
    struct model *model;
    struct baton_error error; /* code 0: none */
    char etag[ETAG_BYTES], key[DIGEST_BYTES];
    bool is_bad, is_unproven;
    bool has_model;        /* who asks has one at work */
    struct order *cancels; /* told to cancel this one as well */
    bool closes;           /* told to close the supply */
};

static void on_closed(void *userdata)
{
    ((struct place *)userdata)->closed++;
}

static void open_supply(struct place *place)
{
    assert_int_equal(store_open(&place->store, place->folder, 1 << 30, NULL), 0);
    place->config = (struct supply_config){.loop = &place->loop,
                                           .store = place->store,
                                           .archive = archive_rules_default(),
                                           .fetch = fetch_rules_default()};
    place->config.fetch.retry_ms = 1;
    place->config.fetch.tries_max = 2;
    assert_int_equal(supply_new(&place->supply, &place->config, NULL), 0);
    place->closed = 0;
}

/* Runs the loop until it is closed: nothing else may be left in it. */
static void close_supply(struct place *place)
{
    supply_close(place->supply, on_closed, place);
    place->supply = NULL;
    assert_int_equal(uv_run(&place->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(place->closed, 1);
    store_close(place->store);
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    process_make_folder(place->folder, sizeof(place->folder));
    server_start(&place->server, "model_server.py", (const char *const[]){NULL});
    place->is_served = true;
    assert_int_equal(uv_loop_init(&place->loop), 0);
    open_supply(place);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    if (place->supply != NULL) {
        close_supply(place);
    }
    assert_int_equal(uv_loop_close(&place->loop), 0);
    if (place->is_served) {
        server_end(&place->server);
    }
    process_remove_folder(place->folder);
    free(place);
    return 0;
}

static void on_end(void *userdata, const struct supplied *supplied)
{
    struct answer *answer = userdata;

    assert_true(supplied->model != NULL || supplied->error != NULL || answer->has_model);
    answer->told++;
    answer->model = supplied->model;
    answer->error = supplied->error != NULL ? *supplied->error : (struct baton_error){0};
    answer->is_bad = supplied->is_bad;
    answer->is_unproven = supplied->is_unproven;
    (void)snprintf(answer->key, sizeof(answer->key), "%s", supplied->key);
    (void)snprintf(answer->etag, sizeof(answer->etag), "%s", supplied->etag);
    if (answer->cancels != NULL) {
        supply_cancel(answer->cancels);
    }
    if (answer->closes) {
        supply_close(answer->place->supply, on_closed, answer->place);
        answer->place->supply = NULL;
    }
}

static struct order *place_order_of(struct place *place, int64_t model_id, const char *name,
                                    const char *query, const struct origin *at_work,
                                    struct answer *answer)
{
    struct baton_error error = {0};
    struct order *order = NULL;
    char url[URL_BYTES];

    memset(answer, 0, sizeof(*answer));
    answer->place = place;
    answer->has_model = at_work != NULL;
    (void)snprintf(url, sizeof(url), "http://viewer:canary7@127.0.0.1:%d/%s.mpta?%s",
                   place->server.port, name, query);
    if (supply_order(&order, place->supply, model_id, url, at_work, on_end, answer, &error) != 0) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(answer->told, 0);
    return order;
}

static struct order *place_order(struct place *place, int64_t model_id, const char *name,
                                 const char *query, struct answer *answer)
{
    return place_order_of(place, model_id, name, query, NULL, answer);
}

static void wait_told(struct place *place, const struct answer *answer)
{
    while (answer->told == 0) {
        int left = uv_run(&place->loop, UV_RUN_ONCE);
        assert_true(left != 0 || answer->told != 0);
    }
    assert_int_equal(answer->told, 1);
}

/* The digest of what came; it must have come without an error. */
static void get(struct place *place, int64_t model_id, const char *name, const char *query,
                char digest[DIGEST_BYTES])
{
    struct answer answer;

    (void)place_order(place, model_id, name, query, &answer);
    wait_told(place, &answer);
    if (answer.error.code != 0) {
        fail_msg("%s", answer.error.message);
    }
    assert_string_equal(answer.model->pipeline.models[0].name, "cars");
    (void)snprintf(digest, DIGEST_BYTES, "%s", answer.model->digest);
    model_release(answer.model);
}

/* Whether two orders of model 7 got the same. */
static bool same_twice(struct place *place, const char *name, const char *query, const char *again)
{
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    get(place, 7, name, query, first);
    get(place, 7, name, again, second);
    return strcmp(first, second) == 0;
}

static unsigned gets(struct place *place, const char *line)
{
    return server_count(&place->server, line);
}

static void a_fresh_signature_alone_fetches_nothing(void **state)
{
    struct place *place = *state;

    assert_true(same_twice(place, "good", "sig=one", "sig=two"));
    assert_int_equal(gets(place, "get good"), 1);
    assert_int_equal(gets(place, "get good if \"v1\""), 1);
}

static void another_number_is_another_model(void **state)
{
    struct place *place = *state;
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    get(place, 7, "good", "", first);
    get(place, 8, "good", "v=2", second);
    assert_string_not_equal(first, second);
    assert_int_equal(gets(place, "get good"), 2);
}

static void a_new_etag_brings_the_new_model(void **state)
{
    struct place *place = *state;

    assert_false(same_twice(place, "good", "v=1", "v=2"));
    assert_int_equal(gets(place, "get good if \"v1\""), 1);
    assert_true(same_twice(place, "good", "v=2", "v=2"));
    assert_int_equal(gets(place, "get good if \"v2\""), 2);
}

static void without_an_etag_the_digest_tells_that_it_is_the_same(void **state)
{
    struct place *place = *state;

    assert_true(same_twice(place, "plain", "sig=one", "sig=two"));
    assert_int_equal(gets(place, "get plain"), 2);
}

static void the_next_process_knows_what_is_there(void **state)
{
    struct place *place = *state;
    char first[DIGEST_BYTES], second[DIGEST_BYTES];

    get(place, 7, "good", "", first);
    close_supply(place);
    open_supply(place);
    get(place, 7, "good", "", second);
    assert_string_equal(first, second);
    assert_int_equal(gets(place, "get good if \"v1\""), 1);
}

/* Fetches it for model 7 and says that it has run, or cannot. */
static void try_out(struct place *place, const char *query, bool runs, char digest[DIGEST_BYTES])
{
    struct baton_error error = {0};
    struct answer answer;

    (void)error_set(&error, BATON_EINVAL, "its engine has something against it");
    (void)place_order(place, 7, "good", query, &answer);
    wait_told(place, &answer);
    assert_int_equal(answer.error.code, 0);
    (void)snprintf(digest, DIGEST_BYTES, "%s", answer.model->digest);
    model_release(answer.model);
    if (!runs) {
        supply_reject(place->supply, digest, &error);
    } else if (answer.is_unproven) {
        supply_prove(place->supply, answer.key, digest);
    }
}

static void what_cannot_be_run_gives_way_to_what_ran_before_it(void **state)
{
    struct place *place = *state;
    char digests[3][DIGEST_BYTES];
    struct answer answer;

    try_out(place, "v=1", true, digests[0]);
    try_out(place, "v=2", false, digests[1]);
    for (int i = 0; i < 3; i++) { /* by a question, without another fetch */
        (void)place_order(place, 7, "good", "v=2", &answer);
        wait_told(place, &answer);
        assert_string_equal(answer.model->digest, digests[0]);
        assert_true(answer.is_bad);
        assert_non_null(strstr(answer.error.message, "has something against it"));
        model_release(answer.model);
    }
    assert_int_equal(gets(place, "get good if \"v2\""), 3);
    close_supply(place);
    open_supply(place); /* the next process may have another engine */
    try_out(place, "v=2", false, digests[2]);
    assert_string_equal(digests[2], digests[1]);
    (void)place_order(place, 7, "good", "v=2", &answer);
    wait_told(place, &answer);
    assert_string_equal(answer.model->digest, digests[0]);
    model_release(answer.model);
    try_out(place, "v=3", true, digests[2]);
    assert_int_equal(gets(place, "get good if \"v2\""), 6);
    assert_int_equal(gets(place, "get good"), 1);
}

static void what_has_run_once_gives_way_to_nothing(void **state)
{
    struct place *place = *state;
    char digests[3][DIGEST_BYTES];

    try_out(place, "v=1", true, digests[0]);
    try_out(place, "v=2", true, digests[1]);
    close_supply(place); /* waits until that is on the disk */
    open_supply(place);
    try_out(place, "v=2", false, digests[2]);
    assert_string_equal(digests[2], digests[1]);
    try_out(place, "v=2", false, digests[2]);
    assert_string_equal(digests[2], digests[1]);
    try_out(place, "v=3", false, digests[0]); /* nor does what came after it, to a bad one */
    try_out(place, "v=3", false, digests[2]);
    assert_string_equal(digests[2], digests[0]);
}

/* What is at work, as the first order of it told. */
static struct origin put_to_work(struct place *place, const char *name, const char *query)
{
    struct answer answer;
    struct origin at_work = {0};

    (void)place_order(place, 7, name, query, &answer);
    wait_told(place, &answer);
    assert_non_null(answer.model);
    (void)snprintf(at_work.digest, sizeof(at_work.digest), "%s", answer.model->digest);
    (void)snprintf(at_work.etag, sizeof(at_work.etag), "%s", answer.etag);
    model_release(answer.model);
    return at_work;
}

static void recheck(struct place *place, const char *name, const char *query,
                    const struct origin *at_work, struct answer *answer)
{
    (void)place_order_of(place, 7, name, query, at_work, answer);
    wait_told(place, answer);
}

static void what_is_at_work_is_asked_for_by_its_etag_alone(void **state)
{
    struct place *place = *state;
    struct answer answers[ORDERS];
    struct origin at_work = put_to_work(place, "good", "");
    char path[512];

    /* It is not even read: the disk may have damaged it. */
    (void)snprintf(path, sizeof(path), "%s/models/%s/models/cars.onnx", place->folder,
                   at_work.digest);
    assert_int_equal(truncate(path, 1000), 0);
    for (int i = 0; i < ORDERS; i++) { /* all by one question */
        (void)place_order_of(place, 7, "good", i % 2 == 0 ? "sig=one" : "sig=two", &at_work,
                             &answers[i]);
    }
    for (int i = 0; i < ORDERS; i++) {
        wait_told(place, &answers[i]);
        assert_null(answers[i].model);
        assert_int_equal(answers[i].error.code, 0);
        assert_string_equal(answers[i].etag, "\"v1\"");
    }
    assert_int_equal(gets(place, "get good if \"v1\""), 1);
    assert_int_equal(supply_counters(place->supply).unchanged, 1);
    assert_int_equal(supply_counters(place->supply).rechecks, 1);
}

static void a_newer_one_is_told_to_who_has_the_old_at_work(void **state)
{
    struct place *place = *state;
    struct origin at_work = put_to_work(place, "good", "v=1");
    struct answer answer;

    recheck(place, "good", "v=2", &at_work, &answer);
    assert_non_null(answer.model);
    assert_int_equal(answer.error.code, 0);
    assert_string_not_equal(answer.model->digest, at_work.digest);
    assert_string_equal(answer.etag, "\"v2\"");
    model_release(answer.model);
    /* And is what the next one gets. */
    assert_string_equal(put_to_work(place, "good", "v=2").etag, "\"v2\"");
    assert_int_equal(gets(place, "get good if \"v2\""), 1);
}

static void a_bad_one_is_told_with_the_etag_that_it_is_known_by(void **state)
{
    struct place *place = *state;
    struct origin at_work = put_to_work(place, "replaced", "");
    struct answer answer;

    recheck(place, "replaced", "", &at_work, &answer);
    assert_null(answer.model);
    assert_int_equal(answer.error.code, BATON_EPROTO);
    assert_true(answer.is_bad);
    assert_string_equal(answer.etag, "\"r2\"");
    (void)snprintf(at_work.etag, sizeof(at_work.etag), "%s", answer.etag);
    recheck(place, "replaced", "", &at_work, &answer);
    assert_int_equal(gets(place, "get replaced if \"r2\""), 1);
    /* The digest tells that it is the one at work. */
    assert_null(answer.model);
    assert_int_equal(answer.error.code, 0);
    assert_string_equal(answer.etag, "\"r3\"");
    assert_int_equal(supply_counters(place->supply).refused, 1);
    assert_int_equal(supply_counters(place->supply).recheck_fails, 0);
}

static void a_question_without_an_answer_is_counted_apart(void **state)
{
    static const char *const names[] = {"refused", "gone", "odd", "large"};
    struct place *place = *state;
    struct origin at_work = put_to_work(place, "good", "");
    struct answer answer;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        recheck(place, names[i], "", &at_work, &answer);
        assert_null(answer.model);
        assert_true(answer.error.code != 0 && !answer.is_bad);
        assert_int_equal(supply_counters(place->supply).recheck_fails, i + 1);
    }
    assert_int_equal(supply_counters(place->supply).fetch_fails, 0);
    assert_int_equal(supply_counters(place->supply).from_before, 0);
}

static void what_the_disk_has_damaged_is_fetched_whole(void **state)
{
    struct place *place = *state;
    char first[DIGEST_BYTES], second[DIGEST_BYTES], path[512];

    get(place, 7, "good", "", first);
    (void)snprintf(path, sizeof(path), "%s/models/%s/models/cars.onnx", place->folder, first);
    assert_int_equal(truncate(path, 1000), 0);
    get(place, 7, "good", "", second);
    assert_string_equal(first, second);
    assert_int_equal(gets(place, "get good"), 2);
    get(place, 7, "good", "", second);
    assert_int_equal(gets(place, "get good if \"v1\""), 1);
}

static void orders_of_one_model_share_one_fetch(void **state)
{
    struct place *place = *state;
    struct answer answers[ORDERS];

    for (int i = 0; i < ORDERS; i++) {
        (void)place_order(place, 7, "good", i % 2 == 0 ? "sig=one" : "sig=two", &answers[i]);
    }
    for (int i = 0; i < ORDERS; i++) {
        wait_told(place, &answers[i]);
        assert_int_equal(answers[i].error.code, 0);
        assert_string_equal(answers[i].model->digest, answers[0].model->digest);
    }
    assert_int_equal(gets(place, "get good"), 1);
    for (int i = 0; i < ORDERS; i++) {
        model_release(answers[i].model);
    }
}

/* Its first address waits for its next try, or is refused while the fresh one is known. */
static void a_fresh_address_is_asked_in_place_of_an_old_one(void **state)
{
    static const char *const old[] = {"busy=1", "held=1"};
    struct place *place = *state;
    struct answer one, two, three;

    place->config.fetch.retry_ms = 600000;
    close_supply(place);
    assert_int_equal(store_open(&place->store, place->folder, 1 << 30, NULL), 0);
    place->config.store = place->store;
    assert_int_equal(supply_new(&place->supply, &place->config, NULL), 0);
    place->closed = 0;
    for (int i = 0; i < 2; i++) {
        unsigned before = gets(place, "get signed");
        (void)place_order(place, 7 + i, "signed", old[i], &one);
        while (gets(place, "get signed") == before) {
            (void)uv_run(&place->loop, UV_RUN_NOWAIT);
        }
        (void)place_order(place, 7 + i, "signed", "fresh=1", &two);
        if (i == 1) {
            (void)place_order(place, 9, "release", "", &three);
            wait_told(place, &three);
        }
        wait_told(place, &one);
        assert_int_equal(one.error.code, 0);
        wait_told(place, &two);
        assert_int_equal(gets(place, "get signed"), before + 2);
        model_release(one.model);
        model_release(two.model);
    }
}

static void what_cannot_be_asked_for_is_the_one_from_before(void **state)
{
    struct place *place = *state;
    char before[DIGEST_BYTES];
    struct answer answer;

    get(place, 7, "good", "", before);
    server_end(&place->server);
    place->is_served = false;
    (void)place_order(place, 7, "good", "sig=canary8", &answer);
    wait_told(place, &answer);
    assert_non_null(answer.model);
    assert_string_equal(answer.model->digest, before);
    assert_int_equal(answer.error.code, BATON_EUNAVAILABLE);
    assert_null(strstr(answer.error.message, "canary"));
    model_release(answer.model);

    (void)place_order(place, 8, "good", "sig=canary8", &answer);
    wait_told(place, &answer);
    assert_null(answer.model);
    assert_int_equal(answer.error.code, BATON_EUNAVAILABLE);
}

static void a_bad_archive_is_told_and_the_one_from_before_given(void **state)
{
    struct place *place = *state;
    char before[DIGEST_BYTES], after[DIGEST_BYTES];
    struct answer answer;

    get(place, 7, "turning", "", before);
    (void)place_order(place, 7, "turning", "sig=canary8", &answer);
    wait_told(place, &answer);
    assert_non_null(answer.model);
    assert_string_equal(answer.model->digest, before);
    assert_int_equal(answer.error.code, BATON_EPROTO);
    assert_non_null(strstr(answer.error.message, "model from http://127.0.0.1:"));
    assert_non_null(strstr(answer.error.message, "Not a zip archive"));
    assert_null(strstr(answer.error.message, "canary"));
    model_release(answer.model);

    (void)place_order(place, 7, "bad", "sig=canary8", &answer);
    wait_told(place, &answer);
    assert_null(answer.model);
    assert_int_equal(answer.error.code, BATON_EPROTO);
    get(place, 7, "good", "", after); /* and it goes on */
}

/* Lets more and more of an order happen: 1, 2, 4, … turns of the loop, which do not block. */
static void run_turns(struct place *place, int doublings, const struct answer *answer)
{
    for (uint64_t i = 0; i < UINT64_C(1) << doublings && answer->told == 0; i++) {
        (void)uv_run(&place->loop, UV_RUN_NOWAIT);
    }
}

/* Canceled, or with `closes` closed with its supply, until an order is through first. */
static void give_up_at_any_moment(struct place *place, bool closes)
{
    struct answer answer;
    int given_up = 0;

    for (int at = 0;; at++) {
        char query[32];
        struct order *order;

        (void)snprintf(query, sizeof(query), "v=%d", at + 1);
        order = place_order(place, 7, "good", query, &answer);
        run_turns(place, at, &answer);
        if (answer.told != 0) {
            break;
        }
        if (closes) {
            close_supply(place);
            assert_int_equal(answer.told, 0);
            open_supply(place);
        } else {
            supply_cancel(order);
        }
        given_up++;
    }
    assert_int_equal(answer.error.code, 0);
    model_release(answer.model);
    assert_true(given_up > 3);
}

static void an_order_can_be_canceled_at_any_moment(void **state)
{
    give_up_at_any_moment(*state, false);
}

static void a_supply_can_be_closed_at_any_moment(void **state)
{
    give_up_at_any_moment(*state, true);
}

static void the_others_of_a_canceled_order_are_served(void **state)
{
    struct place *place = *state;
    struct answer one, two;
    struct order *order = place_order(place, 7, "good", "", &one);

    (void)place_order(place, 7, "good", "", &two);
    supply_cancel(order);
    wait_told(place, &two);
    assert_int_equal(one.told, 0);
    assert_non_null(two.model);
    model_release(two.model);
}

static void whoever_is_told_may_cancel_another_or_close_all(void **state)
{
    struct place *place = *state;
    struct answer one, two, three, four;

    (void)place_order(place, 7, "good", "", &one);
    one.cancels = place_order(place, 7, "good", "", &two);
    wait_told(place, &one);
    assert_int_equal(two.told, 0);
    model_release(one.model);

    (void)place_order(place, 7, "good", "", &three);
    (void)place_order(place, 7, "good", "", &four);
    three.closes = true;
    wait_told(place, &three);
    assert_int_equal(uv_run(&place->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(four.told, 0);
    assert_int_equal(place->closed, 1);
    model_release(three.model);
    store_close(place->store);
}

static void an_address_that_is_not_allowed_is_refused_at_once(void **state)
{
    struct place *place = *state;
    struct baton_error error = {0};
    struct order *order = NULL;
    struct answer answer = {0};

    assert_int_equal(
        supply_order(&order, place->supply, 7, "file:///etc/canary", NULL, on_end, &answer, &error),
        BATON_EINVAL);
    assert_null(strstr(error.message, "canary"));
    assert_null(order);
    supply_close(NULL, NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fresh_signature_alone_fetches_nothing),
        TEST(another_number_is_another_model),
        TEST(a_new_etag_brings_the_new_model),
        TEST(without_an_etag_the_digest_tells_that_it_is_the_same),
        TEST(the_next_process_knows_what_is_there),
        TEST(what_is_at_work_is_asked_for_by_its_etag_alone),
        TEST(a_newer_one_is_told_to_who_has_the_old_at_work),
        TEST(a_bad_one_is_told_with_the_etag_that_it_is_known_by),
        TEST(a_question_without_an_answer_is_counted_apart),
        TEST(what_cannot_be_run_gives_way_to_what_ran_before_it),
        TEST(what_has_run_once_gives_way_to_nothing),
        TEST(what_the_disk_has_damaged_is_fetched_whole),
        TEST(orders_of_one_model_share_one_fetch),
        TEST(a_fresh_address_is_asked_in_place_of_an_old_one),
        TEST(what_cannot_be_asked_for_is_the_one_from_before),
        TEST(a_bad_archive_is_told_and_the_one_from_before_given),
        TEST(an_order_can_be_canceled_at_any_moment),
        TEST(the_others_of_a_canceled_order_are_served),
        TEST(whoever_is_told_may_cancel_another_or_close_all),
        TEST(a_supply_can_be_closed_at_any_moment),
        TEST(an_address_that_is_not_allowed_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
