/* Bytes in JSON, as text or as base64. */
#include "base/json_bytes.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000 };

static json_t *put(const void *data, size_t bytes)
{
    json_t *object = json_object();

    assert_true(json_put_bytes(object, "body", data, bytes));
    return object;
}

static void assert_comes_back(const void *data, size_t bytes)
{
    json_t *object = put(data, bytes);
    uint8_t *got = NULL;
    size_t count = 7;

    assert_int_equal(json_read_bytes(object, "", "body", MOST, &got, &count, NULL), 0);
    assert_int_equal(count, bytes);
    assert_true(bytes == 0 ? got == NULL : memcmp(got, data, bytes) == 0);
    free(got);
    json_decref(object);
}

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static void what_is_text_is_put_as_text(void **state)
{
    static const char *const texts[] = {"x", "two\nlines\t\"quoted\"",
                                        "gr\xc3\xbc\xc3\x9f"
                                        "e"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *object = put(texts[i], strlen(texts[i]));
        assert_string_equal(member(object, "body"), texts[i]);
        assert_int_equal(json_object_size(object), 1);
        json_decref(object);
        assert_comes_back(texts[i], strlen(texts[i]));
    }
}

static void what_is_no_text_or_long_as_one_is_put_as_base64(void **state)
{
    static const struct {
        const char *data;
        size_t bytes;
        const char *coded;
    } cases[] = {
        {"\0", 1, "AA=="},               /* few can read a text with NUL */
        {"\xff\xfe", 2, "//4="},         /* not UTF-8 */
        {"cut \xe2\x82", 6, "Y3V0IOKC"}, /* a character that was cut */
        {"\x01\x02\x03", 3, "AQID"},     /* six bytes each, as text */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *object = put(cases[i].data, cases[i].bytes);
        assert_string_equal(member(object, "body_base64"), cases[i].coded);
        assert_int_equal(json_object_size(object), 1);
        json_decref(object);
        assert_comes_back(cases[i].data, cases[i].bytes);
    }
}

static void no_bytes_leave_no_member(void **state)
{
    json_t *object = put("", 0);

    assert_int_equal(json_object_size(object), 0);
    json_decref(object);
    assert_comes_back("", 0);
}

static void all_bytes_of_all_lengths_come_back(void **state)
{
    uint8_t data[MOST];

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + i / 256);
    }
    for (size_t bytes = 0; bytes <= sizeof(data); bytes++) {
        assert_comes_back(data, bytes);
    }
}

static void assert_refused(const char *text, const char *error_text)
{
    json_t *object = json_loads(text, 0, NULL);
    struct baton_error error = {0};
    uint8_t *got = NULL;
    size_t count = 7;
    int code;

    assert_non_null(object);
    code = json_read_bytes(object, "items[3].", "body", 4, &got, &count, &error);
    if (code != BATON_EPROTO || strcmp(error.message, error_text) != 0) {
        fail_msg("%s: %d, %s", text, code, error.message);
    }
    assert_null(got);
    assert_int_equal(count, 7);
    json_decref(object);
}

static void what_is_wrong_is_refused_with_its_path(void **state)
{
    assert_refused("{\"body\":1}", "items[3].body is an integer: must be a string");
    assert_refused("{\"body_base64\":[]}", "items[3].body_base64 is an array: must be a string");
    assert_refused("{\"body\":\"12345\"}", "items[3].body has 5 bytes: must be at most 4");
    assert_refused("{\"body_base64\":\"AAAAAAA=\"}",
                   "items[3].body_base64 has 5 bytes: must be at most 4");
    assert_refused("{\"body_base64\":\"AAAAA\"}", "items[3].body_base64 is not base64");
    assert_refused("{\"body_base64\":\"A=AA\"}", "items[3].body_base64 is not base64");
    assert_refused("{\"body_base64\":\"A===\"}", "items[3].body_base64 is not base64");
    assert_refused("{\"body_base64\":\"AA-_\"}", "items[3].body_base64 is not base64");
    assert_refused("{\"body\":\"1\",\"body_base64\":\"AAAA\"}",
                   "items[3].body and body_base64: only one of them can be given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_text_is_put_as_text),
        cmocka_unit_test(what_is_no_text_or_long_as_one_is_put_as_base64),
        cmocka_unit_test(no_bytes_leave_no_member),
        cmocka_unit_test(all_bytes_of_all_lengths_come_back),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
