#include "cmocka_all.h"

#include "detector/model/nearest.h"

static const char *offered(const char *typed, char text[NEAREST_TEXT_BYTES])
{
    static const char *const words[] = {"layout", "color", "width", "height", "x"};
    struct nearest nearest = {0};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        nearest_try(&nearest, typed, words[i]);
    }
    return nearest_text(&nearest, text);
}

static void the_nearest_is_offered_and_none_that_is_far(void **state)
{
    char text[NEAREST_TEXT_BYTES];

    (void)state;
    assert_string_equal(offered("colour", text), "; did you mean \"color\"?");
    assert_string_equal(offered("widht", text), "; did you mean \"width\"?");
    assert_string_equal(offered("threshold", text), "");
    assert_string_equal(offered("y", text), ""); /* one letter of one is not near */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_is_offered_and_none_that_is_far),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
