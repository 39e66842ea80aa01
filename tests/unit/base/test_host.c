#include "base/host.h"

#include "cmocka_all.h"

static void this_machine_alone_is_loopback(void **state)
{
    static const char *const loopback[] = {"127.0.0.1",       "127.1.2.3", "::1",
                                           "0:0:0:0:0:0:0:1", "localhost", "Localhost"};
    static const char *const others[] = {
        "", "0.0.0.0", "128.0.0.1", "::", "10.0.0.1", "127.example.org", "127.0.0.1.a.net", "db"};

    for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
        assert_true(host_is_loopback(loopback[i]));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(host_is_loopback(others[i]));
    }
    assert_false(host_is_loopback(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(this_machine_alone_is_loopback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
