#include "base/error.h"
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

static void every_code_has_a_text_of_its_own(void **state)
{
#define CHECK_TEXT(symbol, number, text) assert_string_equal(baton_strerror(symbol), text);
    BATON_ERRORS(CHECK_TEXT)
#undef CHECK_TEXT
    assert_string_equal(baton_strerror(0), "success");
    assert_string_equal(baton_strerror(4711), "unknown error");
}

static void context_goes_before_the_message(void **state)
{
    struct baton_error error = {0};
    assert_int_equal(error_set(&error, BATON_EINVAL, "port %d", 70000), BATON_EINVAL);
    assert_int_equal(error_wrap(&error, "peer %s", "b"), BATON_EINVAL);
    assert_string_equal(error.message, "peer b: port 70000");
    assert_int_equal(error_set(NULL, BATON_EIO, "nowhere"), BATON_EIO);
}

static void an_outside_value_cannot_forge_a_line(void **state)
{
    struct baton_error error;
    error_set(&error, BATON_EINVAL, "name %s", "a\nb\x1b[31m");
    assert_string_equal(error.message, "name a?b?[31m");
}

/* JSON holds nothing else. */
static void a_message_is_utf_8_wherever_it_was_cut(void **state)
{
    char name[BATON_ERROR_MESSAGE_MAX + 4];
    struct baton_error error;

    for (size_t i = 0; i + 3 < sizeof(name); i += 2) {
        memcpy(name + i, "\xc3\xa4", 3); /* an a with two dots */
    }
    error_set(&error, BATON_EINVAL, "%s", name);
    assert_int_equal(error.message[BATON_ERROR_MESSAGE_MAX - 3], (char)0xa4);
    assert_int_equal(error.message[BATON_ERROR_MESSAGE_MAX - 2], '?');
    error_set(&error, BATON_EINVAL, "'%.3s' is \xc3\xb6", name);
    assert_string_equal(error.message, "'\xc3\xa4?' is \xc3\xb6");
    error_wrap(&error, "\xff");
    assert_string_equal(error.message, "?: '\xc3\xa4?' is \xc3\xb6");
}

static void a_full_disk_has_a_code_of_its_own(void **state)
{
    assert_int_equal(error_from_errno(ENOSPC), BATON_EFULL);
    assert_int_equal(error_from_errno(EIO), BATON_EIO);
    assert_int_equal(error_from_errno(ECONNREFUSED), BATON_EUNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_text_of_its_own),
        cmocka_unit_test(context_goes_before_the_message),
        cmocka_unit_test(an_outside_value_cannot_forge_a_line),
        cmocka_unit_test(a_message_is_utf_8_wherever_it_was_cut),
        cmocka_unit_test(a_full_disk_has_a_code_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
