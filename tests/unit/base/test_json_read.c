/* What JSON from outside may look like: RFC 8259, of which an object is read, and no more. */
#include "base/json_load.h"
#include "base/json_read.h"
#include "base/json_text.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 200, DEPTH_MAX = 8 };

/* A text with its length, as some hold a NUL. */
#define TEXT(text) (text), sizeof(text) - 1
/* The same as the value of a member. */
#define VALUE(text) TEXT("{\"a\":" text "}")

static int read_object(const char *text, size_t bytes, json_t **ret, struct baton_error *reterr)
{
    char *copy = malloc(bytes); /* so that a sanitizer sees a read beyond the end */
    int code;

    memcpy(copy, text, bytes);
    code = json_read_object(copy, bytes, BYTES_MAX, DEPTH_MAX, ret, reterr);
    free(copy);
    return code;
}

static const struct {
    const char *text;
    size_t bytes;
    const char *read;
} good[] = {
    {TEXT("{}"), "{}"},
    {TEXT(" \t\r\n{ \t\r\n} \t\r\n"), "{}"},
    {TEXT("{\"\":\"\"}"), "{\"\":\"\"}"},
    {TEXT("{\"a\" : 1 , \"b\" : [ 2 , { } ] }"), "{\"a\":1,\"b\":[2,{}]}"},
    {VALUE("[true,false,null,[]]"), "{\"a\":[true,false,null,[]]}"},
    {VALUE("0"), "{\"a\":0}"},
    {VALUE("-0"), "{\"a\":0}"},
    {VALUE("-0.0"), "{\"a\":-0.0}"},
    {VALUE("9223372036854775807"), "{\"a\":9223372036854775807}"},
    {VALUE("-9223372036854775808"), "{\"a\":-9223372036854775808}"},
    {VALUE("0.5"), "{\"a\":0.5}"},
    {VALUE("1e2"), "{\"a\":100.0}"},
    {VALUE("1E+2"), "{\"a\":100.0}"},
    {VALUE("50.00e-2"), "{\"a\":0.5}"},
    {VALUE("1e-999"), "{\"a\":0.0}"}, /* the nearest number */
    {VALUE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "{\"a\":\"\\\"\\\\/\\b\\f\\n\\r\\t\"}"},
    {VALUE("\"\\u0041\\u00e9\\u20AC\""), "{\"a\":\"A\\u00E9\\u20AC\"}"},
    {VALUE("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""), "{\"a\":\"\\u00E9\\u20AC\\uD83D\\uDE00\"}"},
    {VALUE("\"\\uD83D\\uDE00\""), "{\"a\":\"\\uD83D\\uDE00\"}"},
    {VALUE("\"\\uFFFF\""), "{\"a\":\"\\uFFFF\"}"}, /* no character, and no fault */
    {VALUE("\"\\u001f\x7f\""), "{\"a\":\"\\u001F\x7f\"}"},
    {VALUE("\"// no comment\""), "{\"a\":\"// no comment\"}"},
    {VALUE("\"[[[[[[[[[[\""), "{\"a\":\"[[[[[[[[[[\"}"},
    {VALUE("[[[[[[[]]]]]]]"), "{\"a\":[[[[[[[]]]]]]]}"}, /* as deep as it may be */
};

static void what_is_json_is_read_for_what_it_says(void **state)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        json_t *object = NULL;
        struct baton_error error = {0};
        char *read;

        if (read_object(good[i].text, good[i].bytes, &object, &error) != BATON_OK) {
            fail_msg("%s: %s", good[i].text, error.message);
        }
        read = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
        assert_string_equal(read, good[i].read);
        free(read);
        json_decref(object);
    }
}

static const struct {
    const char *text;
    size_t bytes;
} bad[] = {
    /* no object, or not that alone */
    {TEXT("")},
    {TEXT(" \n")},
    {TEXT("[]")},
    {TEXT("null")},
    {TEXT("1")},
    {TEXT("\"a\"")},
    {TEXT("{}{}")},
    {TEXT("{} x")},
    {TEXT("{}]")},
    {TEXT("{},")},
    {TEXT("{}\0")},
    {TEXT("\xef\xbb\xbf{}")},
    {TEXT("{\0}")},
    {TEXT("\f{}")},
    {TEXT("\xc2\xa0{}")},
    /* what is unclosed, left out or too much */
    {TEXT("{")},
    {TEXT("}")},
    {TEXT("{\"a")},
    {TEXT("{\"a\"")},
    {TEXT("{\"a\":")},
    {TEXT("{\"a\":1")},
    {TEXT("{\"a\":[")},
    {TEXT("{\"a\":[1")},
    {TEXT("{\"a\":[1}")},
    {TEXT("{\"a\":\"x")},
    {TEXT("{\"a\":\"x\\")},
    {TEXT("{\"a\":\"x\\\"}")},
    {TEXT("{,}")},
    {TEXT("{\"a\"}")},
    {TEXT("{\"a\":}")},
    {TEXT("{:1}")},
    {TEXT("{\"a\" 1}")},
    {TEXT("{\"a\":1,}")},
    {TEXT("{,\"a\":1}")},
    {TEXT("{\"a\":1,,\"b\":2}")},
    {TEXT("{\"a\":1 \"b\":2}")},
    {TEXT("{\"a\"::1}")},
    {TEXT("{1:1}")},
    {TEXT("{null:1}")},
    {VALUE("[1,]")},
    {VALUE("[,1]")},
    {VALUE("[1,,2]")},
    {VALUE("[1 2]")},
    {VALUE("1 2")},
    /* keys that are there twice */
    {TEXT("{\"a\":1,\"a\":1}")},
    {TEXT("{\"a\":1,\"\\u0061\":2}")},
    {VALUE("{\"b\":1,\"b\":2}")},
    /* words and other languages */
    {VALUE("True")},
    {VALUE("tru")},
    {VALUE("truex")},
    {VALUE("nul")},
    {VALUE("undefined")},
    {VALUE("NaN")},
    {VALUE("Infinity")},
    {VALUE("-Infinity")},
    {TEXT("{a:1}")},
    {TEXT("{'a':1}")},
    {VALUE("'x'")},
    {VALUE("`x`")},
    {VALUE("(1)")},
    {TEXT("{}// x")},
    {TEXT("// x\n{}")},
    {TEXT("{/* x */}")},
    {TEXT("{}# x")},
    /* numbers */
    {VALUE("01")},
    {VALUE("-01")},
    {VALUE("00")},
    {VALUE("+1")},
    {VALUE("1.")},
    {VALUE(".5")},
    {VALUE("-.5")},
    {VALUE("-")},
    {VALUE("--1")},
    {VALUE("- 1")},
    {VALUE("1.e1")},
    {VALUE("1e")},
    {VALUE("1e+")},
    {VALUE("1e1.5")},
    {VALUE("1.2.3")},
    {VALUE("0x10")},
    {VALUE("1_000")},
    {VALUE("1a")},
    {VALUE("1,5")},
    {VALUE("1e999")},
    {VALUE("-1e999")},
    {VALUE("9223372036854775808")},
    {VALUE("-9223372036854775809")},
    {VALUE("\xef\xbc\x91")},
    /* escapes */
    {VALUE("\"\\a\"")},
    {VALUE("\"\\'\"")},
    {VALUE("\"\\x41\"")},
    {VALUE("\"\\0\"")},
    {VALUE("\"\\u\"")},
    {VALUE("\"\\u12\"")},
    {VALUE("\"\\u12G4\"")},
    {VALUE("\"\\U0041\"")},
    {VALUE("\"\\u{41}\"")},
    {VALUE("\"\\u+041\"")},
    {VALUE("\"\\ \"")},
    {VALUE("\"\\u0000\"")},
    {TEXT("{\"\\u0000\":1}")}, /* texts end with NUL */
    {VALUE("\"\\uD800\"")},
    {VALUE("\"\\uDC00\"")},
    {VALUE("\"\\uD800x\"")},
    {VALUE("\"\\uD800\\n\"")},
    {VALUE("\"\\uD800\\u0041\"")},
    {VALUE("\"\\uD800\\uD800\"")},
    {VALUE("\"\\uDC00\\uD800\"")},
    {TEXT("{\"\\uD800\":1}")},
    /* control characters as they are */
    {VALUE("\"\n\"")},
    {VALUE("\"\t\"")},
    {VALUE("\"\x1f\"")},
    {VALUE("\"\0\"")},
    {TEXT("{\"a\r\":1}")},
    /* what is not UTF-8: half of a character, a longer form than needed, a surrogate, too high
     */
    {VALUE("\"\x80\"")},
    {VALUE("\"\xc3\"")},
    {VALUE("\"\xe2\x82\"")},
    {VALUE("\"\xff\"")},
    {VALUE("\"\xc0\xaf\"")},
    {VALUE("\"\xe0\x80\xaf\"")},
    {VALUE("\"\xed\xa0\x80\"")},
    {VALUE("\"\xf4\x90\x80\x80\"")},
    {TEXT("{\"\xff\":1}")},
    {TEXT("{\"a\":\"\xe2\x82")},
    /* deeper than it may be */
    {VALUE("[[[[[[[[]]]]]]]]")},
    {VALUE("[[[[[[[[")},
    {TEXT("[[[[[[[[[[[[[[[[")},
};

static void what_is_not_json_is_refused(void **state)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *object = NULL;
        struct baton_error error = {0};
        int code = read_object(bad[i].text, bad[i].bytes, &object, &error);

        if (code != BATON_EPROTO || object || !error.message[0]) {
            fail_msg("case %zu, %s: %d, \"%s\"", i, bad[i].text, code, error.message);
        }
    }
}

static void what_is_longer_than_it_may_be_is_not_looked_at(void **state)
{
    char text[BYTES_MAX + 1];
    json_t *object = NULL;

    memset(text, ' ', sizeof(text));
    memcpy(text, "{}", 2);
    assert_int_equal(read_object(text, BYTES_MAX, &object, NULL), BATON_OK);
    json_decref(object);
    object = NULL;
    assert_int_equal(read_object(text, sizeof(text), &object, NULL), BATON_ETOOBIG);
    assert_null(object);
}

static int left = -1; /* allocations that succeed; below 0: all */
static bool is_for_good;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static bool has_memory(void)
{
    bool has = left != 0;

    left = has || is_for_good ? left - (left > 0) : -1;
    return has;
}

void *__wrap_malloc(size_t bytes)
{
    return has_memory() ? __real_malloc(bytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return has_memory() ? __real_realloc(memory, bytes) : NULL;
}

/* What is called wrong is thrown away, and what found no memory is asked for again. */
static void what_finds_no_memory_is_not_called_wrong(void **state)
{
    static const char text[] = "{\"a\": [\"b\", 1, 0.5], \"c\": {\"d\": \"e\"}, \"f\": \"\"}";
    int code = BATON_ENOMEM;

    json_set_alloc_funcs(__wrap_malloc, free);
    for (int first = 0; code != BATON_OK; first++) {
        for (int for_good = 0; for_good < 2; for_good++) {
            json_t *object = NULL;
            struct baton_error error = {0};
            left = first;
            is_for_good = for_good;
            code = json_read_object(text, strlen(text), BYTES_MAX, DEPTH_MAX, &object, &error);
            assert_int_equal(code, object != NULL ? BATON_OK : BATON_ENOMEM);
            json_decref(object);
        }
    }
    left = -1;
    json_set_alloc_funcs(malloc, free);
}

/* A string's closing quote, or another byte of it, needs more memory. */
static void what_finds_no_memory_once_is_not_read_as_another_text(void **state)
{
    static const char text[] =
        "{\"a\": \"fourteen bytes\", \"a key of many bytes\": [\"fifteen, a byte\\n"
        "and as many bytes as need a lot of memory, more and more\"]}";
    json_t *whole = json_load_text(text, 0, NULL), *object = NULL;

    json_load_guard();
    is_for_good = false;
    for (int first = 0; object == NULL; first++) {
        left = first;
        object = json_load_text(text, 0, NULL);
        left = -1;
    }
    assert_true(json_equal(object, whole));
    json_decref(object);
    json_decref(whole);
    json_set_alloc_funcs(malloc, free);
}

/* A key, too, may be what needs more memory. */
static void what_finds_no_memory_once_is_not_written_as_another_text(void **state)
{
    json_t *whole = json_pack("{s:[s,s], s:b}", "a key of as many bytes as need memory, and more",
                              "fourteen bytes", "fifteen", "Cars", 1);
    json_t *read;
    char *text = NULL;

    is_for_good = false;
    json_set_alloc_funcs(__wrap_malloc, free);
    for (int first = 0; text == NULL; first++) {
        left = first;
        text = json_text(whole, JSON_COMPACT);
        left = -1;
    }
    json_set_alloc_funcs(malloc, free);
    read = json_load_text(text, 0, NULL);
    assert_true(json_equal(read, whole));
    assert_null(json_text(NULL, 0));
    json_decref(read);
    json_decref(whole);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_json_is_read_for_what_it_says),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(what_finds_no_memory_is_not_called_wrong),
        cmocka_unit_test(what_finds_no_memory_once_is_not_read_as_another_text),
        cmocka_unit_test(what_finds_no_memory_once_is_not_written_as_another_text),
        cmocka_unit_test(what_is_longer_than_it_may_be_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
