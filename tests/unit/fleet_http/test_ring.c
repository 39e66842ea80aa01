/* The latest events, and where a client goes on that comes back. */
#include "fleet/http/ring.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 0x6a09e667, OUT_MAX = 1 << 20 };

static void add(struct ring *ring, const char *name, const char *data)
{
    assert_true(ring_add(ring, name, data, strlen(data)));
}

/* All from that number on, as one text. */
static const char *from(const struct ring *ring, uint64_t at, const char *only)
{
    static char text[OUT_MAX];
    struct buffer out;

    buffer_init(&out, sizeof(text) - 1);
    ring_put(ring, &at, only, sizeof(text), &out);
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.bytes,
                   out.data != NULL ? (const char *)out.data : "");
    buffer_fini(&out);
    return text;
}

static void an_event_is_text_with_id_name_and_data(void **state)
{
    struct ring *ring = *state;

    add(ring, "worker-online", "{\"worker\":\"w1\"}");
    add(ring, "detection", "{}");
    assert_string_equal(from(ring, 1, NULL),
                        "id: 6a09e667-1\nevent: worker-online\ndata: {\"worker\":\"w1\"}\n\n"
                        "id: 6a09e667-2\nevent: detection\ndata: {}\n\n");
    assert_string_equal(from(ring, 1, "detection"),
                        "id: 6a09e667-2\nevent: detection\ndata: {}\n\n");
    assert_string_equal(from(ring, 1, "worker,detect,x"), "");
}

static void a_client_goes_on_behind_its_latest_event(void **state)
{
    struct ring *ring = *state;
    bool missed;

    add(ring, "a", "1");
    add(ring, "a", "2");
    assert_int_equal(ring_begin(ring, "6a09e667-1", &missed), 2);
    assert_false(missed);
    assert_int_equal(ring_begin(ring, "6a09e667-2", &missed), 3);
    assert_false(missed);
    assert_int_equal(ring_begin(ring, NULL, &missed), 3);
    assert_false(missed);
}

static void a_client_that_cannot_go_on_has_missed_something(void **state)
{
    static const char *const ids[] = {"6a09e668-1", "6a09e667-3",  "6a09e667",
                                      "nonsense",   "6a09e667-1x", "6a09e667-99999999999999999999"};
    struct ring *ring = *state;
    bool missed;

    add(ring, "a", "1");
    add(ring, "a", "2");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(ring_begin(ring, ids[i], &missed), 3);
        assert_true(missed);
    }
}

static void the_latest_thousand_are_kept(void **state)
{
    struct ring *ring = *state;
    bool missed;

    for (int i = 0; i < RING_EVENTS + 5; i++) {
        add(ring, "a", "1");
    }
    assert_int_equal(ring_oldest(ring), 6);
    assert_int_equal(ring_begin(ring, "6a09e667-5", &missed), 6);
    assert_false(missed);
    (void)ring_begin(ring, "6a09e667-4", &missed);
    assert_true(missed);
    assert_int_equal(strncmp(from(ring, 6, NULL), "id: 6a09e667-6\n", 15), 0);
}

static void large_events_leave_room_for_each_other(void **state)
{
    struct ring *ring = *state;
    char *data = calloc(1, RING_DATA_MAX + 2);

    memset(data, 'x', RING_DATA_MAX);
    for (int i = 0; i < 100; i++) {
        add(ring, "a", data);
        assert_true(ring->bytes <= RING_BYTES);
    }
    assert_true(ring->count > 1);
    data[RING_DATA_MAX] = 'x';
    assert_false(ring_add(ring, "a", data, RING_DATA_MAX + 1));
    assert_int_equal(ring_oldest(ring), ring->next); /* all have missed it */
    add(ring, "a", "1");
    assert_int_equal(ring_oldest(ring), ring->next - 1);
    free(data);
}

/* Another process, which may be another version, gives names too. */
static void what_would_be_two_events_is_not_kept(void **state)
{
    static const char *const names[] = {
        "", "a\n", "a: b", "a b",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789-_xyz"};
    struct ring *ring = *state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(ring_add(ring, names[i], "{}", 2));
    }
    assert_false(ring_add(ring, "a", "{}\n", 3));
    assert_int_equal(ring->count, 0);
}

static void a_name_is_the_rings_own(void **state)
{
    struct ring *ring = *state;
    char name[] = "worker-online";

    add(ring, name, "{}");
    memset(name, 'x', sizeof(name) - 1);
    assert_string_equal(from(ring, 1, "worker-online"),
                        "id: 6a09e667-1\nevent: worker-online\ndata: {}\n\n");
}

static void a_batch_ends_behind_its_limit(void **state)
{
    struct ring *ring = *state;
    struct buffer out;
    uint64_t at = 1;

    for (int i = 0; i < 100; i++) {
        add(ring, "a", "0123456789");
    }
    buffer_init(&out, OUT_MAX);
    ring_put(ring, &at, NULL, 100, &out);
    assert_in_range(out.bytes, 100, 200);
    assert_in_range(at, 2, 10);
    ring_put(ring, &at, NULL, OUT_MAX, &out);
    assert_int_equal(at, 101);
    buffer_fini(&out);
}

static int setup(void **state)
{
    struct ring *ring = malloc(sizeof(*ring));

    ring_init(ring, RUN);
    *state = ring;
    return 0;
}

static int teardown(void **state)
{
    ring_fini(*state);
    free(*state);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_event_is_text_with_id_name_and_data),
        TEST(a_client_goes_on_behind_its_latest_event),
        TEST(a_client_that_cannot_go_on_has_missed_something),
        TEST(the_latest_thousand_are_kept),
        TEST(large_events_leave_room_for_each_other),
        TEST(what_would_be_two_events_is_not_kept),
        TEST(a_name_is_the_rings_own),
        TEST(a_batch_ends_behind_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
