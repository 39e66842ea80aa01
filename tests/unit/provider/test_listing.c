/* Copies of values, for the callbacks that get them. */
#include "provider/listing.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 100 };

static void what_was_copied_outlives_what_it_was_copied_from(void **state)
{
    struct listing listing = {0};
    char key[16];
    char data[16];
    struct provider_value value = {.key = key, .data = data};
    size_t bytes = 0;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        value.bytes = (size_t)snprintf(data, sizeof(data), "data-%d", i);
        value.revision = (uint64_t)i + 1;
        assert_int_equal(listing_add(&listing, &value), BATON_OK);
        bytes += strlen(key) + value.bytes;
    }
    assert_int_equal(listing.count, MANY);
    assert_true(listing.bytes > bytes && listing.bytes < bytes + MANY * 64);
    for (int i = 0; i < MANY; i++) {
        const struct provider_value *copy = &listing.values[i];
        (void)snprintf(key, sizeof(key), "key-%d", i);
        (void)snprintf(data, sizeof(data), "data-%d", i);
        assert_string_equal(copy->key, key);
        assert_string_equal(copy->data, data); /* with its NUL */
        assert_int_equal(copy->bytes, strlen(data));
        assert_int_equal(copy->revision, i + 1);
    }
    listing_fini(&listing);
    assert_int_equal(listing.count, 0);
}

static void a_value_without_bytes_is_there_all_the_same(void **state)
{
    struct listing listing = {0};

    assert_int_equal(listing_add(&listing, &(struct provider_value){.key = "k", .revision = 1}),
                     BATON_OK);
    assert_non_null(listing.values[0].data);
    assert_string_equal(listing.values[0].data, "");
    listing_fini(&listing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_copied_outlives_what_it_was_copied_from),
        cmocka_unit_test(a_value_without_bytes_is_there_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
