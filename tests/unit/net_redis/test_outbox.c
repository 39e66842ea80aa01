/* Bytes that wait to be sent: all are sent, in order, in whatever pieces. */
#include "cmocka_all.h"
#include "net/redis/outbox.h"

#include <stdint.h>
#include <stdlib.h>

enum { MAX = 1024 * 1024 };

static uint8_t byte_at(size_t place)
{
    return (uint8_t)(place * 7 + place / 251);
}

static void put(struct outbox *outbox, size_t from, size_t bytes)
{
    uint8_t *data = malloc(bytes);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = byte_at(from + i);
    }
    assert_true(outbox_put(outbox, data, bytes));
    free(data);
}

/* Returns how many there were. */
static size_t check_first(struct outbox *outbox, size_t from)
{
    size_t bytes = 0;
    const uint8_t *data = outbox_first(outbox, &bytes);

    assert_non_null(data);
    assert_true(bytes > 0);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(data[i], byte_at(from + i));
    }
    outbox_drop_first(outbox);
    return bytes;
}

static void what_goes_in_comes_out_in_order(void **state)
{
    static const size_t sizes[] = {1, 300, 65520, 65519, 2, 200000, 64, 65536, 7};
    struct outbox outbox;
    size_t in = 0;
    size_t out = 0;
    size_t bytes;

    outbox_init(&outbox, MAX);
    assert_null(outbox_first(&outbox, &bytes));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            put(&outbox, in, sizes[i]);
            in += sizes[i];
            assert_int_equal(outbox.bytes, in - out);
            if (i % 3 == 2) {
                out += check_first(&outbox, out);
            }
        }
        while (outbox.bytes > 0) {
            out += check_first(&outbox, out);
        }
        assert_int_equal(out, in);
        assert_null(outbox_first(&outbox, &bytes));
    }
    outbox_clear(&outbox);
}

static void it_has_a_maximum(void **state)
{
    struct outbox outbox;

    outbox_init(&outbox, 1000);
    put(&outbox, 0, 990);
    assert_false(outbox_put(&outbox, "eleven more", 11));
    put(&outbox, 990, 10);
    assert_false(outbox_put(&outbox, "1", 1));
    assert_int_equal(check_first(&outbox, 0), 1000);
    outbox_clear(&outbox);
    put(&outbox, 0, 1000); /* the maximum stays */
    assert_false(outbox_put(&outbox, "1", 1));
    outbox_clear(&outbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out_in_order),
        cmocka_unit_test(it_has_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
