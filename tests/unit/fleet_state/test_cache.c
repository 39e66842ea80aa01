/* The cache, news by news; and against a store whose news are late, by chance. */
#include "fleet/state/cache.h"

#include "base/error.h"
#include "cmocka_all.h"
#include "lib/chance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory that runs out -------------------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);

static int until_failure = -1; /* allocations that succeed before one fails; -1: all do */

static bool fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* ---- News ------------------------------------------------------------------------------------ */

static struct cache cache;

static struct value *value_of(const char *key, const char *text)
{
    struct value *value = NULL;
    struct baton_error error = {0};

    if (value_read(&value, key, text, strlen(text), &error) != BATON_OK) {
        fail_msg("%s: %s", key, error.message);
    }
    return value;
}

static struct cache_change take(enum cache_source source, const char *key, uint64_t revision,
                                const char *text, uint64_t asked)
{
    struct cache_change change;
    const struct cache_news news = {.source = source,
                                    .key = key,
                                    .revision = revision,
                                    .value = text ? value_of(key, text) : NULL,
                                    .asked = asked};

    assert_int_equal(cache_take(&cache, &news, &change), BATON_OK);
    fleet_object_unref(change.before);
    return change;
}

/* A display named by its revision. */
static bool put(enum cache_source source, uint64_t revision, uint64_t asked)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "{\"id\":\"d\",\"name\":\"%llu\"}",
                   (unsigned long long)revision);
    return take(source, "display/d", revision, text, asked).is_changed;
}

static bool gone(enum cache_source source, uint64_t revision, uint64_t asked)
{
    return take(source, "display/d", revision, NULL, asked).is_changed;
}

static uint64_t present(void)
{
    const struct cached *cached = cache_find(&cache, SECTION_DISPLAY, "d");
    char name[24];

    if (cached) {
        (void)snprintf(name, sizeof(name), "%llu", (unsigned long long)cached->revision);
        assert_string_equal(cached->value->object->display.name, name);
    }
    return cached ? cached->revision : 0;
}

static int set_up(void **state)
{
    cache_init(&cache);
    cache_loaded(&cache);
    return 0;
}

static int tear_down(void **state)
{
    cache_fini(&cache);
    return 0;
}

static void an_own_write_outlives_older_news(void **state)
{
    assert_true(put(CACHE_FEED, 3, 0));
    assert_true(put(CACHE_OWN, 7, 0));
    assert_false(put(CACHE_FEED, 5, 0)); /* of another one, which ours replaced */
    assert_false(gone(CACHE_FEED, 6, 0));
    assert_int_equal(present(), 7);
    assert_false(put(CACHE_FEED, 7, 0));
    assert_true(put(CACHE_FEED, 8, 0));
    assert_false(put(CACHE_OWN, 7, 0)); /* the reply was late */
    assert_int_equal(present(), 8);
}

static void once_the_feed_has_reached_it_the_feed_counts(void **state)
{
    assert_true(put(CACHE_OWN, 7, 0));
    assert_false(put(CACHE_FEED, 7, 0));
    assert_true(put(CACHE_FEED, 2, 0)); /* the server lost its data, and counts anew */
    assert_int_equal(present(), 2);
}

static void what_was_deleted_here_does_not_come_back_by_late_news(void **state)
{
    assert_true(put(CACHE_OWN, 7, 0));
    assert_true(gone(CACHE_OWN, 0, 7));
    assert_false(put(CACHE_FEED, 7, 0));
    assert_int_equal(present(), 0);
    assert_int_equal(cache_revision(&cache, "display/d"), 0);
    assert_false(gone(CACHE_FEED, 8, 0));
    assert_true(put(CACHE_FEED, 9, 0));
    assert_int_equal(present(), 9);
}

static void an_own_deletion_that_is_old_news_does_nothing(void **state)
{
    assert_true(put(CACHE_FEED, 3, 0));
    assert_true(put(CACHE_FEED, 5, 0)); /* written anew before our reply came */
    assert_false(gone(CACHE_OWN, 0, 3));
    assert_int_equal(present(), 5);
}

static void while_loading_a_list_does_not_bring_back_what_is_gone(void **state)
{
    cache.is_loading = true;
    assert_false(gone(CACHE_FEED, 2, 0)); /* the first that is heard of it */
    assert_false(put(CACHE_LIST, 1, 0));
    assert_true(put(CACHE_FEED, 3, 0));
    assert_true(gone(CACHE_FEED, 4, 0));
    assert_false(put(CACHE_LIST, 3, 0));
    assert_false(gone(CACHE_FEED, 9, 0));
    assert_false(put(CACHE_LIST, 8, 0));
    assert_true(put(CACHE_LIST, 10, 0));
    assert_false(put(CACHE_FEED, 9, 0)); /* the feed is behind the list */
    cache_loaded(&cache);
    assert_int_equal(present(), 10);
    assert_int_equal(cache.orders[ORDER_TOMBSTONES].count, 0);
}

static void a_key_that_was_read_again_counts_if_nothing_came_meanwhile(void **state)
{
    assert_true(put(CACHE_READ, 4, 0));
    assert_false(put(CACHE_READ, 6, 3)); /* it was at 4 already when this came */
    assert_true(put(CACHE_READ, 6, 4));
    assert_false(gone(CACHE_READ, 0, 4));
    assert_true(gone(CACHE_READ, 0, 6));
    assert_int_equal(present(), 0);
    assert_true(put(CACHE_READ, 9, 0));
    assert_int_equal(present(), 9);
}

static void a_foreign_value_takes_the_place_of_a_good_one(void **state)
{
    struct cache_change change;
    const struct cache_news news = {
        .source = CACHE_FEED, .key = "display/d", .revision = 5, .reason = "torn"};

    assert_true(put(CACHE_FEED, 3, 0));
    assert_int_equal(cache_take(&cache, &news, &change), BATON_OK);
    assert_true(change.is_changed && change.is_foreign);
    assert_non_null(change.before);
    fleet_object_unref(change.before);
    assert_int_equal(present(), 0);
    assert_int_equal(cache_revision(&cache, "display/d"), 5);
    assert_string_equal(cache_foreign(&cache, "display/d"), "torn");
    assert_int_equal(cache_take(&cache, &news, &change), BATON_OK);
    assert_false(change.is_changed || change.is_foreign);
    assert_true(put(CACHE_FEED, 6, 0));
    assert_null(cache_foreign(&cache, "display/d"));
}

static void orders_are_those_of_the_keys(void **state)
{
    static const char *const ids[] = {"m", "b", "z", "a", "y", "c", "ab", "a;"};
    char key[32], text[32];

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)snprintf(key, sizeof(key), "data/%s", ids[i]);
        (void)snprintf(text, sizeof(text), "{}");
        assert_true(take(CACHE_FEED, key, i + 1, text, 0).is_changed);
    }
    for (size_t i = 1; i < cache.orders[SECTION_DATA].count; i++) {
        assert_true(strcmp(cache.orders[SECTION_DATA].of[i - 1]->key,
                           cache.orders[SECTION_DATA].of[i]->key) < 0);
    }
    assert_int_equal(cache.orders[SECTION_DATA].count, 8);
}

/* ---- Uses ------------------------------------------------------------------------------------ */

static size_t uses(enum section section, const char *id)
{
    size_t count = 0;

    for (const struct use *use = cache_uses(&cache, section, id); use; use = use->next) {
        count++;
    }
    return count;
}

static void two_workers_that_claim_one_subscription_both_count(void **state)
{
    (void)take(CACHE_FEED, "assigned/a", 1, "{\"epoch\":1,\"subscriptions\":[\"d;c\",\"d;e\"]}", 0);
    (void)take(CACHE_FEED, "assigned/b", 2, "{\"epoch\":1,\"subscriptions\":[\"d;c\"]}", 0);
    assert_int_equal(uses(SECTION_SUBSCRIPTION, "d;c"), 2);
    (void)take(CACHE_FEED, "assigned/b", 3, NULL, 0);
    assert_int_equal(uses(SECTION_SUBSCRIPTION, "d;c"), 1);
    (void)take(CACHE_FEED, "assigned/a", 4, "{\"epoch\":2,\"subscriptions\":[\"d;e\"]}", 0);
    assert_int_equal(uses(SECTION_SUBSCRIPTION, "d;c"), 0);
    assert_int_equal(uses(SECTION_SUBSCRIPTION, "d;e"), 1);
}

/* ---- Chance ---------------------------------------------------------------------------------- */

/* A store of one key, whose changes reach the cache late but in order; the replies to own writes,
 * reads and the list come between them at any time. In the end the cache has what the store has. */
enum { CHANGES_MAX = 32, RUNS = OF_CHANCE(20000) };

struct shift {
    uint64_t revision;
    bool is_there;
};

struct reply {
    enum cache_source source;
    struct shift shift;
    uint64_t asked;
};

static uint64_t seed;

static uint64_t chance(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static void bring(enum cache_source source, struct shift shift, uint64_t asked)
{
    if (shift.is_there) {
        (void)put(source, shift.revision, asked);
    } else {
        (void)gone(source, source == CACHE_FEED ? shift.revision : 0, asked);
    }
}

struct world {
    struct shift changes[CHANGES_MAX]; /* of the store */
    size_t count, fed;
    struct reply replies[CHANGES_MAX];
    size_t asked, replied;
    bool is_listed; /* or need not be */
};

static struct shift now_of(const struct world *world)
{
    return world->count > 0 ? world->changes[world->count - 1] : (struct shift){0};
}

static void ask(struct world *world, enum cache_source source, struct shift shift, uint64_t asked)
{
    assert_int_equal(cache_hold(&cache, "display/d"), BATON_OK);
    world->replies[world->asked++] = (struct reply){source, shift, asked};
}

static void answer(struct world *world)
{
    const struct reply *reply = &world->replies[world->replied++];

    bring(reply->source, reply->shift, reply->asked);
    if (reply->source == CACHE_OWN && reply->shift.is_there) {
        assert_true(present() == 0 || present() >= reply->shift.revision);
    }
    cache_release(&cache, "display/d");
}

static void feed(struct world *world)
{
    bring(CACHE_FEED, world->changes[world->fed], 0);
    world->fed++;
}

static void change(struct world *world, bool is_own)
{
    struct shift before = now_of(world);
    struct shift shift = {world->count + 1, !before.is_there || chance(3) > 0};
    uint64_t at = before.is_there ? before.revision : 0;

    if (is_own && cache_revision(&cache, "display/d") != at) { /* a conflict: read again */
        ask(world, CACHE_READ, before, cache_revision(&cache, "display/d"));
        return;
    }
    world->changes[world->count++] = shift;
    if (is_own) {
        ask(world, CACHE_OWN, shift, at);
    }
}

static void step(struct world *world)
{
    switch (chance(5)) {
    case 0:
    case 1:
        if (world->count < CHANGES_MAX && world->asked < CHANGES_MAX) {
            change(world, chance(2) == 0);
        }
        break;
    case 2:
        if (world->fed < world->count) {
            feed(world);
        }
        break;
    case 3:
        if (world->replied < world->asked) {
            answer(world);
        }
        break;
    default:
        if (!world->is_listed && chance(4) == 0) { /* read at once, come at once or later */
            world->is_listed = true;
            if (now_of(world).is_there) {
                bring(CACHE_LIST, now_of(world), 0);
            }
            cache_loaded(&cache);
        }
        break;
    }
}

static void late_news_in_any_order_end_in_what_the_store_has(void **state)
{
    for (seed = 1; seed < RUNS; seed++) {
        uint64_t run = seed;
        struct world world = {.is_listed = chance(2) == 0};
        cache_fini(&cache);
        cache_init(&cache);
        cache.is_loading = !world.is_listed;
        for (int i = 0; i < 4 * CHANGES_MAX; i++) {
            step(&world);
        }
        while (world.replied < world.asked) {
            answer(&world);
        }
        while (world.fed < world.count) {
            feed(&world);
        }
        cache_loaded(&cache);
        if (present() != (now_of(&world).is_there ? now_of(&world).revision : 0)) {
            fail_msg("run %llu: the cache is at %llu", (unsigned long long)run,
                     (unsigned long long)present());
        }
        assert_int_equal(cache.orders[ORDER_TOMBSTONES].count, 0);
        seed = run;
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Each allocation fails in turn: the cache is as before, and takes the same news then. */
static void without_memory_the_cache_is_as_before(void **state)
{
    static const char pair[] = "{\"id\":\"d;c\",\"model\":1}",
                      other[] = "{\"id\":\"d;c\",\"model\":2}";
    struct cache_change change;
    int code, failures = 0;

    (void)take(CACHE_FEED, "subscription/d;c", 1, pair, 0);
    for (int allocation = 0;; allocation++) {
        struct cache_news news = {.source = CACHE_FEED,
                                  .key = "subscription/d;c",
                                  .revision = 2,
                                  .value = value_of("subscription/d;c", other)};
        until_failure = allocation;
        code = cache_take(&cache, &news, &change);
        until_failure = -1;
        if (code == BATON_OK) {
            break;
        }
        failures++;
        assert_int_equal(code, BATON_ENOMEM);
        assert_int_equal(cache_revision(&cache, "subscription/d;c"), 1);
        assert_int_equal(uses(SECTION_MODEL, "1"), 1);
        assert_int_equal(uses(SECTION_MODEL, "2"), 0);
        assert_int_equal(uses(SECTION_DISPLAY, "d"), 1);
    }
    assert_true(failures >= 2);
    fleet_object_unref(change.before);
    assert_int_equal(uses(SECTION_MODEL, "2"), 1);
    for (int allocation = 0; allocation < failures + 3; allocation++) { /* a new key */
        struct cache_news news = {.source = CACHE_FEED,
                                  .key = "display/d",
                                  .revision = 3,
                                  .value = value_of("display/d", "{\"id\":\"d\",\"name\":\"3\"}")};
        until_failure = allocation;
        code = cache_take(&cache, &news, &change);
        until_failure = -1;
        assert_int_equal(present(), code == BATON_OK ? 3 : 0);
        (void)gone(CACHE_FEED, 4, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_own_write_outlives_older_news, set_up, tear_down),
        cmocka_unit_test_setup_teardown(once_the_feed_has_reached_it_the_feed_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_was_deleted_here_does_not_come_back_by_late_news,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_own_deletion_that_is_old_news_does_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(while_loading_a_list_does_not_bring_back_what_is_gone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_was_read_again_counts_if_nothing_came_meanwhile,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_foreign_value_takes_the_place_of_a_good_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(orders_are_those_of_the_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_workers_that_claim_one_subscription_both_count, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(late_news_in_any_order_end_in_what_the_store_has, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_memory_the_cache_is_as_before, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
