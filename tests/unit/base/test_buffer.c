#include "base/buffer.h"
#include "cmocka_all.h"

#include <string.h>

static void numbers_come_back_little_endian(void **state)
{
    struct buffer buffer;
    struct reader reader;

    buffer_init(&buffer, 100);
    buffer_put_u8(&buffer, 0x12);
    buffer_put_u16(&buffer, 0x3456);
    buffer_put_u32(&buffer, 0x789abcde);
    buffer_put_u64(&buffer, 0x1122334455667788);
    assert_int_equal(buffer.bytes, 15);
    assert_int_equal(buffer.data[1], 0x56);

    reader = reader_of(buffer.data, buffer.bytes);
    assert_int_equal(reader_u8(&reader), 0x12);
    assert_int_equal(reader_u16(&reader), 0x3456);
    assert_int_equal(reader_u32(&reader), 0x789abcde);
    assert_true(reader_u64(&reader) == 0x1122334455667788);
    assert_false(reader.failed);
    assert_int_equal(reader_u8(&reader), 0);
    assert_true(reader.failed);
    buffer_fini(&buffer);
}

static void the_maximum_is_never_passed(void **state)
{
    struct buffer buffer;

    buffer_init(&buffer, 10);
    buffer_put_text(&buffer, "0123456789");
    assert_false(buffer.failed);
    buffer_put_u8(&buffer, 'x');
    assert_true(buffer.failed);
    assert_int_equal(buffer.bytes, 10);
    buffer_clear(&buffer);
    buffer_put_u8(&buffer, 'x');
    assert_false(buffer.failed);
    buffer_fini(&buffer);
}

static void consuming_keeps_the_rest_in_order(void **state)
{
    struct buffer buffer;

    buffer_init(&buffer, 100);
    buffer_printf(&buffer, "%s-%d", "abc", 42);
    buffer_consume(&buffer, 4);
    assert_string_equal(buffer_text(&buffer), "42");
    buffer_consume(&buffer, 99);
    assert_int_equal(buffer.bytes, 0);
    buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back_little_endian),
        cmocka_unit_test(the_maximum_is_never_passed),
        cmocka_unit_test(consuming_keeps_the_rest_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
