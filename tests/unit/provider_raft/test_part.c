/* Parts and parcels: what is sent arrives, and what nobody would have sent does no harm. */
#include "cmocka_all.h"
#include "provider/raft/parcels.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4 * 1024 * 1024 };

static struct parcels line;
static struct assembly assembly;
static struct buffer buffer;

static int set_up(void **state)
{
    parcels_init(&line, LINE_BYTES);
    assembly_init(&assembly);
    buffer_init(&buffer, 2 * PART_BYTES_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)parcels_end(&line);
    assembly_fini(&assembly);
    buffer_fini(&buffer);
    return 0;
}

/* Bytes that show where they belong. */
static uint8_t *made(size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)(i % 251);
    }
    return data;
}

static void add(uint64_t number, const char *channel, size_t bytes)
{
    uint8_t *data = made(bytes);
    struct parcel *parcel = parcel_of_message(number, channel, data, bytes);

    assert_non_null(parcel);
    assert_true(parcels_add(&line, parcel));
    parcel_unref(parcel);
    free(data);
}

/* Over the wire and back. */
static struct part moved(const struct part *part)
{
    struct reader reader;
    struct part back;

    buffer_clear(&buffer);
    part_put(&buffer, part);
    assert_false(buffer.failed);
    assert_int_equal(buffer.bytes, PART_HEAD_BYTES + part->bytes);
    reader = reader_of(buffer.data, buffer.bytes);
    assert_true(part_take(&back, &reader));
    assert_int_equal(reader.bytes, 0);
    return back;
}

/* Moves part after part, until a parcel is whole: its bytes; NULL: no part is left. */
static const void *move_one(uint64_t *ret_number, size_t *ret_bytes, int *ret_parts)
{
    const void *data = NULL;
    struct part part;

    *ret_parts = 0;
    while (parcels_next_part(&line, &part)) {
        struct part back = moved(&part);
        bool is_whole = assembly_take(&assembly, &back, &data);
        parcels_part_sent(&line, &part);
        ++*ret_parts;
        if (is_whole) {
            *ret_number = back.parcel;
            *ret_bytes = back.parcel_bytes;
            return data;
        }
    }
    return NULL;
}

static void messages_of_any_size_arrive_whole_and_in_order(void **state)
{
    const size_t sizes[] = {0,
                            1,
                            PART_BYTES_MAX - 6,
                            PART_BYTES_MAX - 5,
                            2 * PART_BYTES_MAX,
                            100000,
                            PROVIDER_VALUE_MAX};
    const int parts[] = {1, 1, 1, 2, 3, 7, 65};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        add(i + 1, "news", sizes[i]);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct parcel_message message;
        uint64_t number = 0;
        size_t bytes = 0;
        int count;
        const void *data = move_one(&number, &bytes, &count);
        uint8_t *expected = made(sizes[i]);

        assert_non_null(data);
        assert_int_equal(number, i + 1);
        assert_int_equal(count, parts[i]);
        assert_true(parcel_read(&message, data, bytes));
        assert_string_equal(message.channel, "news");
        assert_int_equal(message.bytes, sizes[i]);
        assert_memory_equal(message.data, expected, sizes[i]);
        free(expected);
        assembly_clear(&assembly);
    }
    assert_int_equal(line.count, 0);
    assert_int_equal(line.bytes, 0);
}

static void the_longest_name_and_message_fit(void **state)
{
    char name[PROVIDER_KEY_MAX + 1];
    struct parcel_message message;
    uint64_t number;
    size_t bytes = 0;
    int count;
    const void *data;

    memset(name, 'c', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    add(1, name, PROVIDER_VALUE_MAX);
    data = move_one(&number, &bytes, &count);
    assert_non_null(data);
    assert_int_equal(bytes, PARCEL_BYTES_MAX);
    assert_true(parcel_read(&message, data, bytes));
    assert_string_equal(message.channel, name);
    assert_int_equal(message.bytes, PROVIDER_VALUE_MAX);
}

/* ---- The line -------------------------------------------------------------------------------- */

static void a_full_line_takes_no_more_and_then_takes_again(void **state)
{
    uint8_t *data = made(PROVIDER_VALUE_MAX);
    struct parcel *parcel = parcel_of_message(1, "c", data, PROVIDER_VALUE_MAX);

    for (int i = 0; i < 3; i++) {
        assert_true(parcels_add(&line, parcel));
    }
    assert_false(parcels_add(&line, parcel)); /* the fourth, with its name, is above 4 MiB */
    assert_int_equal(line.count, 3);
    assert_true(line.bytes <= LINE_BYTES);
    parcel_unref(parcels_take(&line));
    assert_true(parcels_add(&line, parcel));
    assert_int_equal(parcels_end(&line), 3);
    assert_int_equal(line.bytes, 0);
    assert_int_equal(parcel->users, 1); /* those lines' uses have ended */
    parcel_unref(parcel);
    free(data);
}

static void small_messages_fill_a_line_too(void **state)
{
    struct parcel *parcel = parcel_of_message(1, "c", "", 0);
    size_t count = 0;

    while (count <= LINE_BYTES && parcels_add(&line, parcel)) {
        count++;
    }
    assert_true(count <= LINE_BYTES / PARCEL_OVERHEAD);
    assert_int_equal(parcels_end(&line), count);
    parcel_unref(parcel);
}

/* ---- Foreign bytes --------------------------------------------------------------------------- */

static bool is_taken(uint64_t parcel, uint32_t parcel_bytes, uint32_t offset, size_t bytes)
{
    uint8_t *data = made(bytes);
    struct reader reader;
    struct part part;
    bool is_taken;

    buffer_clear(&buffer);
    buffer_put_u64(&buffer, parcel);
    buffer_put_u32(&buffer, parcel_bytes);
    buffer_put_u32(&buffer, offset);
    buffer_put(&buffer, data, bytes);
    free(data);
    reader = reader_of(buffer.data, buffer.bytes);
    is_taken = part_take(&part, &reader);
    return is_taken;
}

static void a_part_outside_of_its_parcel_is_refused(void **state)
{
    struct reader reader;
    struct part part;

    assert_true(is_taken(1, 100, 0, 100));
    assert_true(is_taken(1, 100, 99, 1));
    assert_true(is_taken(UINT64_MAX, PARCEL_BYTES_MAX, 0, PART_BYTES_MAX));
    assert_false(is_taken(0, 100, 0, 100)); /* no parcel has this number */
    assert_false(is_taken(1, 1, 0, 1));     /* too short for a message */
    assert_false(is_taken(1, PARCEL_BYTES_MAX + 1, 0, 100));
    assert_false(is_taken(1, UINT32_MAX, 0, 100));
    assert_false(is_taken(1, 100, 0, 101));
    assert_false(is_taken(1, 100, 100, 1));
    assert_false(is_taken(1, 100, 0, 0));
    assert_false(is_taken(1, 100, UINT32_MAX, 1)); /* no sum overflows */
    assert_false(is_taken(1, PARCEL_BYTES_MAX, 0, PART_BYTES_MAX + 1));
    for (size_t i = 0; i < PART_HEAD_BYTES; i++) {
        assert_true(is_taken(1, 100, 0, 1));
        reader = reader_of(buffer.data, i);
        assert_false(part_take(&part, &reader));
    }
}

static void a_parcel_that_is_no_message_is_refused(void **state)
{
    struct parcel_message message;
    uint8_t *longest = made(PARCEL_BYTES_MAX);

    assert_true(parcel_read(&message, "\0\0", 2)); /* an empty message in a channel without name */
    assert_false(parcel_read(&message, "\0", 1));
    assert_false(parcel_read(&message, "\3\0ab", 4));
    assert_false(parcel_read(&message, "\3\0a\0b", 5));
    longest[0] = 0x01; /* 513 */
    longest[1] = 0x02;
    memset(longest + 2, 'c', 513);
    assert_false(parcel_read(&message, longest, 600));
    longest[0] = 0x01; /* 1: what is left is more than a message */
    longest[1] = 0x00;
    assert_false(parcel_read(&message, longest, PARCEL_BYTES_MAX));
    free(longest);
}

static bool comes(uint64_t parcel, size_t parcel_bytes, size_t offset, size_t bytes)
{
    uint8_t *data = made(bytes);
    const struct part part = {.parcel = parcel,
                              .parcel_bytes = parcel_bytes,
                              .offset = offset,
                              .data = data,
                              .bytes = bytes};
    const void *whole = NULL;
    bool is_whole = assembly_take(&assembly, &part, &whole);

    if (is_whole) {
        assert_non_null(whole);
        assembly_clear(&assembly);
    }
    free(data);
    return is_whole;
}

static void parts_that_do_not_continue_each_other_make_no_parcel(void **state)
{
    assert_false(comes(1, 300, 0, 100));
    assert_false(comes(1, 300, 50, 100)); /* overlaps */
    assert_false(comes(1, 300, 100, 200));
    assert_false(comes(2, 300, 0, 100));
    assert_false(comes(2, 300, 200, 100)); /* leaves a gap */
    assert_false(comes(2, 300, 100, 100));
    assert_false(comes(3, 300, 0, 100));
    assert_false(comes(4, 300, 100, 200)); /* of another parcel */
    assert_false(comes(5, 300, 0, 100));
    assert_false(comes(5, 200, 100, 100)); /* of another length */
    assert_false(comes(6, 300, 100, 200)); /* without a beginning */
    assert_false(comes(7, 300, 0, 100));   /* never finished */
    assert_false(comes(8, 300, 0, 100));
    assert_true(comes(8, 300, 100, 200));
    assert_false(comes(8, 300, 100, 200)); /* it was whole */
    assert_true(comes(9, 10, 0, 10));
}

static void a_promise_of_bytes_costs_no_memory(void **state)
{
    assert_false(comes(1, PARCEL_BYTES_MAX, 0, 1));
    assert_true(assembly.received.capacity <= 4096);
    add(2, "c", PROVIDER_VALUE_MAX);
    {
        uint64_t number;
        size_t bytes;
        int count;
        assert_non_null(move_one(&number, &bytes, &count));
    }
    assert_true(assembly.received.capacity >= PROVIDER_VALUE_MAX);
    assembly_clear(&assembly);
    assert_true(assembly.received.capacity <= 64 * 1024);
}

#define PART_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PART_TEST(messages_of_any_size_arrive_whole_and_in_order),
        PART_TEST(the_longest_name_and_message_fit),
        PART_TEST(a_full_line_takes_no_more_and_then_takes_again),
        PART_TEST(small_messages_fill_a_line_too),
        PART_TEST(a_part_outside_of_its_parcel_is_refused),
        PART_TEST(a_parcel_that_is_no_message_is_refused),
        PART_TEST(parts_that_do_not_continue_each_other_make_no_parcel),
        PART_TEST(a_promise_of_bytes_costs_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
