/* The replicated keys: orders, revisions, lists, snapshots, and bytes that lie. */
#include "cmocka_all.h"
#include "provider/raft/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int order(struct keys *keys, const char *name, const char *data, uint64_t revision,
                 uint64_t index)
{
    struct keys_value changed;
    struct keys_order wanted = {.revision = revision,
                                .name = name,
                                .name_bytes = strlen(name),
                                .data = data,
                                .bytes = data ? strlen(data) : 0};
    return keys_carry_out(keys, &wanted, index, (instant){0}, &changed);
}

static void an_order_holds_at_its_revision_only(void **state)
{
    struct keys *keys = keys_new();

    assert_int_equal(order(keys, "a", "1", 0, 5), BATON_OK);
    assert_int_equal(order(keys, "a", "2", 0, 6), BATON_ECONFLICT);
    assert_int_equal(order(keys, "a", "2", 4, 7), BATON_ECONFLICT);
    assert_int_equal(order(keys, "a", "2", 5, 8), BATON_OK);
    assert_int_equal(keys_find(keys, "a")->revision, 8);
    assert_string_equal(keys_find(keys, "a")->data, "2");
    assert_int_equal(order(keys, "a", NULL, 5, 9), BATON_ECONFLICT);
    assert_int_equal(order(keys, "a", NULL, UINT64_MAX, 10), BATON_OK);
    assert_null(keys_find(keys, "a"));
    assert_int_equal(order(keys, "a", NULL, UINT64_MAX, 11), BATON_OK);
    assert_int_equal(order(keys, "a", NULL, 3, 12), BATON_ECONFLICT);
    keys_free(keys);
    keys_free(NULL);
}

static void a_list_is_sorted_and_has_the_prefix(void **state)
{
    static const char *const names[] = {"b", "a/2", "a", "a/1", "", "ab", "a/", "a/10"};
    static const char *const wanted[] = {"a/", "a/1", "a/10", "a/2"};
    struct keys *keys = keys_new();
    const struct keys_value *value = NULL;
    size_t count = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(order(keys, names[i], names[i], 0, i + 1), BATON_OK);
    }
    while ((value = keys_next(keys, "a/", value))) {
        assert_string_equal(value->name, wanted[count++]);
    }
    assert_int_equal(count, 4);
    for (count = 0, value = NULL; (value = keys_next(keys, "", value));) {
        count++;
    }
    assert_int_equal(count, 8);
    assert_null(keys_next(keys, "zz", NULL));
    keys_free(keys);
}

static void the_lifetime_that_ends_first_is_known(void **state)
{
    struct keys *keys = keys_new();
    struct keys_value changed;
    struct keys_order wanted = {.revision = 0, .name = "x", .name_bytes = 1, .data = ""};

    assert_null(keys_first_to_expire(keys));
    assert_int_equal(order(keys, "for-ever", "", 0, 1), BATON_OK);
    assert_null(keys_first_to_expire(keys));
    wanted.lifetime = SPAN_S(9);
    assert_int_equal(keys_carry_out(keys, &wanted, 2, (instant){0}, &changed), BATON_OK);
    wanted.name = "y";
    wanted.lifetime = SPAN_S(3);
    assert_int_equal(keys_carry_out(keys, &wanted, 3, (instant){0}, &changed), BATON_OK);
    assert_string_equal(keys_first_to_expire(keys)->name, "y");
    assert_int_equal(keys_first_to_expire(keys)->expires.ns, SPAN_S(3).ns);
    keys_free(keys);
}

static void the_lifetime_that_ends_first_is_known_after_every_change(void **state)
{
    struct keys *keys = keys_new();
    struct keys_value changed;
    char name[2] = "";
    struct keys_order wanted = {.revision = UINT64_MAX, .name = name, .name_bytes = 1};
    unsigned seed = 1;

    for (uint64_t i = 1; i <= 2000; i++) {
        const struct keys_value *value = NULL, *first = NULL;
        int kind = rand_r(&seed) % 4;              /* NOLINT: the same in every run */
        name[0] = (char)('a' + rand_r(&seed) % 8); /* NOLINT */
        wanted.data = kind == 0 ? NULL : "";
        wanted.lifetime = SPAN_S(kind < 2 ? 0 : 1 + rand_r(&seed) % 50); /* NOLINT */
        assert_int_equal(keys_carry_out(keys, &wanted, i, (instant){0}, &changed), BATON_OK);
        while ((value = keys_next(keys, "", value))) {
            if (value->lifetime.ns > 0 &&
                (!first || instant_before(value->expires, first->expires))) {
                first = value;
            }
        }
        assert_true((first == NULL) == (keys_first_to_expire(keys) == NULL));
        if (first) {
            assert_int_equal(keys_first_to_expire(keys)->expires.ns, first->expires.ns);
        }
    }
    keys_free(keys);
}

static void a_snapshot_gives_the_same_keys(void **state)
{
    struct keys *keys = keys_new();
    struct keys *other = keys_new();
    struct buffer bytes;

    for (uint64_t i = 1; i <= 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "key-%d", (int)(i * 37 % 100));
        assert_int_equal(order(keys, name, name, UINT64_MAX, i), BATON_OK);
    }
    buffer_init(&bytes, 1 << 20);
    keys_snapshot(keys, &bytes);
    assert_false(bytes.failed);
    assert_int_equal(keys_restore(other, bytes.data, bytes.bytes, (instant){0}), BATON_OK);
    for (const struct keys_value *value = NULL; (value = keys_next(keys, "", value));) {
        const struct keys_value *there = keys_find(other, value->name);
        assert_non_null(there);
        assert_int_equal(there->revision, value->revision);
        assert_string_equal(there->data, value->data);
    }
    /* Cut anywhere it is refused whole, and what was there stays. */
    for (size_t cut = 1; cut < bytes.bytes; cut++) {
        assert_int_equal(keys_restore(other, bytes.data, cut, (instant){0}), BATON_ECORRUPT);
    }
    bytes.data[0] = KEYS_FORMAT + 1;
    assert_int_equal(keys_restore(other, bytes.data, bytes.bytes, (instant){0}), BATON_ENOTSUP);
    assert_non_null(keys_find(other, "key-1"));
    assert_int_equal(keys_restore(other, NULL, 0, (instant){0}), BATON_OK);
    assert_null(keys_find(other, "key-1"));
    buffer_fini(&bytes);
    keys_free(keys);
    keys_free(other);
}

static void an_order_survives_its_bytes(void **state)
{
    struct keys_order wanted = {.node = 7,
                                .request = 9,
                                .revision = 11,
                                .lifetime = SPAN_MS(5),
                                .name = "name",
                                .name_bytes = 4,
                                .data = "data",
                                .bytes = 4};
    struct keys_order found;
    struct buffer bytes;

    buffer_init(&bytes, KEYS_ORDER_MAX);
    keys_encode(&bytes, &wanted);
    assert_int_equal(keys_decode(&found, bytes.data, bytes.bytes), BATON_OK);
    assert_int_equal(found.node, 7);
    assert_int_equal(found.request, 9);
    assert_int_equal(found.revision, 11);
    assert_int_equal(found.lifetime.ns, SPAN_MS(5).ns);
    assert_memory_equal(found.name, "name", 4);
    assert_memory_equal(found.data, "data", 4);
    bytes.data[1] = 2; /* a flag of another version */
    assert_int_equal(keys_decode(&found, bytes.data, bytes.bytes), BATON_ECORRUPT);
    bytes.data[1] = 0; /* a deletion with data */
    assert_int_equal(keys_decode(&found, bytes.data, bytes.bytes), BATON_ECORRUPT);
    assert_int_equal(keys_decode(&found, bytes.data, 20), BATON_ECORRUPT);
    assert_int_equal(keys_decode(&found, NULL, 0), BATON_ECORRUPT);
    buffer_fini(&bytes);
}

static void the_whole_has_a_bound(void **state)
{
    struct keys *keys = keys_new();
    struct keys_value changed;
    char *data = calloc(1, KEYS_VALUE_MAX);
    struct keys_order wanted = {
        .revision = UINT64_MAX, .data = data, .bytes = KEYS_VALUE_MAX, .name_bytes = 8};
    int code = BATON_OK;
    uint64_t i;

    for (i = 1; code == BATON_OK; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%08d", (int)i);
        wanted.name = name;
        code = keys_carry_out(keys, &wanted, i, (instant){0}, &changed);
        assert_true(i * KEYS_VALUE_MAX <= 2 * (uint64_t)KEYS_ALL_MAX);
    }
    assert_int_equal(code, BATON_EFULL);
    assert_int_equal(order(keys, "00000001", NULL, UINT64_MAX, i), BATON_OK);
    free(data);
    keys_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_holds_at_its_revision_only),
        cmocka_unit_test(a_list_is_sorted_and_has_the_prefix),
        cmocka_unit_test(the_lifetime_that_ends_first_is_known),
        cmocka_unit_test(the_lifetime_that_ends_first_is_known_after_every_change),
        cmocka_unit_test(a_snapshot_gives_the_same_keys),
        cmocka_unit_test(an_order_survives_its_bytes),
        cmocka_unit_test(the_whole_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
