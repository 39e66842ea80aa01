#include "cmocka_all.h"

#include "detector/model/name.h"

#include <string.h>

static void plain_names_are_taken(void **state)
{
    static const char *const names[] = {"a", "pipeline.json", "models/car.onnx", "a/b/c/d",
                                        "A-Z_0@9+x y.bin"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct baton_error error;
        if (name_check(names[i], &error) != 0) {
            fail_msg("%s: %s", names[i], error.message);
        }
    }
}

static void all_else_is_refused(void **state)
{
    static const char *const names[] = {"",      "/etc/passwd", "a//b",  "a/",       "..",
                                        "../a",  "a/../b",      "a/./b", ".hidden",  "a.",
                                        " a",    "a ",          "a\\b",  "C:a",      "a\nb",
                                        "a\x7f", "caf\xc3\xa9", "a*b",   "a/b/c/d/e"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (name_check(names[i], NULL) != BATON_EPROTO) {
            fail_msg("%s", names[i]);
        }
    }
}

static void only_names_that_lead_nowhere_are_harmless(void **state)
{
    static const char *const harmless[] = {".DS_Store",   "__MACOSX/._a.onnx",
                                           "caf\xc3\xa9", "caf\xe9",
                                           "a/b/c/d/e/f", "a*b (1)~",
                                           "...",         "a ",
                                           "..a",         "a/"};
    static const char *const others[] = {"",     "/a",  "a//b", "..",    "../a", "a/..", "a/./b",
                                         "a\\b", "C:a", "a\nb", "a\x7f", ".",    "/"};

    (void)state;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (!name_is_harmless(harmless[i])) {
            fail_msg("%s", harmless[i]);
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (name_is_harmless(others[i])) {
            fail_msg("%s", others[i]);
        }
    }
}

static void lengths_are_bounded(void **state)
{
    char name[NAME_BYTES_MAX + 2];

    (void)state;
    memset(name, 'a', sizeof(name));
    name[NAME_PART_BYTES_MAX] = '\0';
    assert_int_equal(name_check(name, NULL), 0);
    name[NAME_PART_BYTES_MAX] = 'a';
    name[NAME_PART_BYTES_MAX + 1] = '\0';
    assert_int_equal(name_check(name, NULL), BATON_EPROTO);

    memset(name, 'a', sizeof(name));
    name[NAME_PART_BYTES_MAX] = name[2 * NAME_PART_BYTES_MAX + 1] = '/';
    name[NAME_BYTES_MAX] = '\0';
    assert_int_equal(name_check(name, NULL), 0);
    name[NAME_BYTES_MAX] = 'a';
    name[NAME_BYTES_MAX + 1] = '\0';
    assert_int_equal(name_check(name, NULL), BATON_EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_are_taken),
        cmocka_unit_test(all_else_is_refused),
        cmocka_unit_test(only_names_that_lead_nowhere_are_harmless),
        cmocka_unit_test(lengths_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
