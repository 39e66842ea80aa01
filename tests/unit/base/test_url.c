#include "base/url.h"

#include "cmocka_all.h"

#include <string.h>

static void escapes_are_decoded_and_what_is_none_stands_for_itself(void **state)
{
    static const char *const rows[][2] = {
        {"a%20b%2Fc%2fd", "a b/c/d"}, {"100%", "100%"}, {"%4", "%4"},
        {"%zz+1", "%zz+1"},           {"%2525", "%25"}, {"", ""}};
    char text[16];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(url_decode(text, sizeof(text), rows[i][0], strlen(rows[i][0])), BATON_OK);
        assert_string_equal(text, rows[i][1]);
    }
}

static void a_nul_and_what_has_no_room_are_refused(void **state)
{
    char text[4];

    assert_int_equal(url_decode(text, sizeof(text), "a%00b", 5), BATON_EINVAL);
    assert_int_equal(url_decode(text, sizeof(text), "%61%62%63", 9), BATON_OK);
    assert_int_equal(url_decode(text, sizeof(text), "abcd", 4), BATON_ETOOBIG);
}

static void a_query_is_taken_apart(void **state)
{
    static const char *const rows[][2] = {{"a", "1"}, {"b", ""}, {"c", "x=y"}, {"d", ""}};
    const char *query = url_query("redis://h/0?a=1&&b=&c=x=y&d#e=1&f=2");
    struct url_pair pair;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(url_next(&query, &pair));
        assert_int_equal(pair.key_bytes, strlen(rows[i][0]));
        assert_memory_equal(pair.key, rows[i][0], pair.key_bytes);
        assert_int_equal(pair.value_bytes, strlen(rows[i][1]));
        assert_memory_equal(pair.value, rows[i][1], pair.value_bytes);
    }
    assert_false(url_next(&query, &pair));
    query = url_query("redis://h#?a=1");
    assert_false(url_next(&query, &pair));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded_and_what_is_none_stands_for_itself),
        cmocka_unit_test(a_nul_and_what_has_no_room_are_refused),
        cmocka_unit_test(a_query_is_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
