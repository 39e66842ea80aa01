#include "cmocka_all.h"

#include "detector/model/name.h"

#include <string.h>

/* What may be unpacked is plain; what may stay in an archive leads nowhere. */
static void names_are_plain_or_harmless_or_neither(void **state)
{
    static const char *const plain[] = {"a", "pipeline.json", "models/car.onnx", "a/b/c/d",
                                        "A-Z_0@9+x y.bin"};
    static const char *const harmless[] = {".DS_Store",   "__MACOSX/._a.onnx",
                                           "caf\xc3\xa9", "caf\xe9",
                                           "a/b/c/d/e/f", "a*b (1)~",
                                           "...",         "a ",
                                           " a",          "a.",
                                           "..a",         "a/"};
    static const char *const neither[] = {"",     "/etc/passwd", "a//b",   "..",   "../a",
                                          "a/..", "a/./b",       "a/../b", "a\\b", "C:a",
                                          "a\nb", "a\x7f",       ".",      "/"};
    const struct {
        const char *const *names;
        size_t count;
        bool is_plain, is_harmless;
    } rows[] = {{plain, sizeof(plain) / sizeof(plain[0]), true, true},
                {harmless, sizeof(harmless) / sizeof(harmless[0]), false, true},
                {neither, sizeof(neither) / sizeof(neither[0]), false, false}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < rows[i].count; j++) {
            const char *name = rows[i].names[j];

            if (name_check(name, NULL) != (rows[i].is_plain ? 0 : BATON_EPROTO) ||
                name_is_harmless(name) != rows[i].is_harmless) {
                fail_msg("%s", name);
            }
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
        cmocka_unit_test(names_are_plain_or_harmless_or_neither),
        cmocka_unit_test(lengths_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
