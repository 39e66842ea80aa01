#include "fleet/state/value.h"

#include "cmocka_all.h"

#include <string.h>

#define CANARY "c4nary"

static void keys_say_what_stands_under_them(void **state)
{
    static const struct {
        const char *key;
        enum section section;
        const char *id;
    } good[] = {
        {"model/101", SECTION_MODEL, "101"},
        {"camera/a/b", SECTION_CAMERA, "a/b"},
        {"subscription/d;c", SECTION_SUBSCRIPTION, "d;c"},
        {"data/d", SECTION_DATA, "d"},
        {"assigned/w-1", SECTION_ASSIGNED, "w-1"},
        {"owners", SECTION_OWNERS, ""},
        {"unplaced", SECTION_UNPLACED, ""},
    };
    static const char *const bad[] = {"",        "model",    "model/",    "models/1", "mode/1",
                                      "owners/", "owners/x", "/camera/c", "camera"};
    enum section section = SECTIONS;
    const char *id = NULL;
    char again[VALUE_KEY_MAX], longer[2 * VALUE_KEY_MAX];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(value_key(good[i].key, &section, &id));
        assert_int_equal(section, good[i].section);
        assert_string_equal(id, good[i].id);
        assert_string_equal(value_key_of(again, section, id), good[i].key);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(value_key(bad[i], &section, &id));
    }
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_string_equal(value_key_of(again, SECTION_CAMERA, longer), "");
    memcpy(longer, "camera/", strlen("camera/"));
    assert_false(value_key(longer, &section, &id));
}

static int read_text(struct value **ret, const char *key, const char *text,
                     struct baton_error *error)
{
    return value_read(ret, key, text, strlen(text), error);
}

static void a_worker_has_defaults(void **state)
{
    struct value *value = NULL;
    struct baton_error error = {0};

    assert_int_equal(read_text(&value, "worker/w", "{\"url\":\"ws://h:1\",\"newer\":1}", &error),
                     BATON_OK);
    assert_string_equal(value->worker.source, "registered");
    assert_null(value->worker.labels);
    assert_int_equal(value->worker.subscriptions_max, 0);
    assert_false(value->worker.is_cordoned || value->worker.is_draining);
    value_free(value);
}

static void what_is_none_of_ours_is_refused_without_its_secrets(void **state)
{
    static const char *const bad[][2] = {
        {"camera/c", "{\"id\":\"c\",\"rtspUrl\":\"http://u:" CANARY "@h\"}"},
        {"camera/c", "{\"id\":\"c\",\"rtspUrl\":\"rtsp://u:" CANARY},
        {"camera/c", "\"" CANARY "\""},
        {"camera/c", ""},
        {"camera/c", "{\"id\":\"c\",\"id\":\"c\",\"rtspUrl\":\"rtsp://h\"}"},
        {"camera/c", "{\"id\":\"b\",\"rtspUrl\":\"rtsp://h\"}"},
        {"fridge/f", "{}"},
        {"worker/w", "{\"url\":\"ws://u:" CANARY "@h:1\"}"},
        {"worker/w", "{\"url\":\"ws://h:1\",\"maxSubscriptions\":-1}"},
        {"worker/w", "{\"url\":\"ws://h:1\",\"labels\":\"a  b\"}"},
        {"worker/w", "{\"url\":\"ws://h:1\",\"cordoned\":1}"},
        {"worker/a/b", "{\"url\":\"ws://h:1\"}"},
        {"worker/..", "{\"url\":\"ws://h:1\"}"},
        {"assigned/w", "{}"},
        {"assigned/w", "{\"epoch\":1,\"subscriptions\":{}}"},
        {"assigned/w", "{\"epoch\":1,\"leaving\":[5]}"},
        {"owners", "[]"},
        {"data/d", "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct value *value = NULL;
        struct baton_error error = {0};
        assert_int_equal(read_text(&value, bad[i][0], bad[i][1], &error), BATON_EPROTO);
        assert_null(value);
        assert_true(error.message[0] != '\0');
        assert_null(strstr(error.message, CANARY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_say_what_stands_under_them),
        cmocka_unit_test(a_worker_has_defaults),
        cmocka_unit_test(what_is_none_of_ours_is_refused_without_its_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
