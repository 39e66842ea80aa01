/* What a helper is given of its parent's environment. */
#include "cmocka_all.h"
#include "detector/helper/helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_given(const char *wanted)
{
    char *environment[HELPER_ENVIRONMENT_MAX];
    bool is = false;

    helper_environment(environment);
    for (char **entry = environment; *entry; entry++) {
        is = is || strcmp(*entry, wanted) == 0;
    }
    return is;
}

static void secrets_stay_and_what_loaders_need_goes_along(void **state)
{
    (void)state;
    assert_int_equal(setenv("BATON_TOKEN", "canary", 1), 0);
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    assert_true(is_given("TZ=UTC"));
    assert_false(is_given("BATON_TOKEN=canary"));
}

static void huge_pages_are_asked_for_unless_somebody_decided(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("GLIBC_TUNABLES"), 0);
    assert_true(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
    assert_int_equal(setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0", 1), 0);
    assert_true(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=0"));
    assert_false(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
}

/* However much there is of what it may have. */
static void there_is_room_for_all_of_it(void **state)
{
    static const char *const names[] = {"LD_LIBRARY_PATH",   "GLIBC_TUNABLES",
                                        "LIBVA_DRIVER_NAME", "ASAN_OPTIONS",
                                        "UBSAN_OPTIONS",     "HOME",
                                        "TSAN_OPTIONS",      "SSL_CERT_FILE",
                                        "SSL_CERT_DIR",      "TZ"};
    char wanted[64];
    (void)state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(setenv(names[i], "x", 1), 0);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(wanted, sizeof(wanted), "%s=x", names[i]);
        assert_true(is_given(wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_stay_and_what_loaders_need_goes_along),
        cmocka_unit_test(huge_pages_are_asked_for_unless_somebody_decided),
        cmocka_unit_test(there_is_room_for_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
