#include "cmocka_all.h"

#include "detector/model/nearest.h"

#include <stdint.h>
#include <string.h>

static void letters_are_counted(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "abc", 0},
        {"abc", "ABC", 0},
        {"abc", "abd", 1},
        {"abc", "ab", 1},
        {"abc", "xabc", 1},
        {"abcd", "acbd", 1},
        {"decoder", "decodre", 1},
        {"kitten", "sitting", 3},
        {"ca", "abc", 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(nearest_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(nearest_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

static void long_words_are_near_nothing(void **state)
{
    char word[NEAREST_BYTES_MAX + 2];

    (void)state;
    memset(word, 'a', sizeof(word));
    word[NEAREST_BYTES_MAX] = '\0';
    assert_int_equal(nearest_distance(word, "a"), NEAREST_BYTES_MAX - 1);
    word[NEAREST_BYTES_MAX] = 'a';
    word[NEAREST_BYTES_MAX + 1] = '\0';
    assert_int_equal(nearest_distance(word, "a"), SIZE_MAX);
    assert_int_equal(nearest_distance("a", word), SIZE_MAX);
}

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
    assert_string_equal(offered("Widht", text), "; did you mean \"width\"?");
    assert_string_equal(offered("threshold", text), "");
    assert_string_equal(offered("y", text), ""); /* one letter of one is not near */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_counted),
        cmocka_unit_test(long_words_are_near_nothing),
        cmocka_unit_test(the_nearest_is_offered_and_none_that_is_far),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
