/* Addresses of peers, taken apart. */
#include "cmocka_all.h"
#include "guardian/resolve.h"

#include <netinet/in.h>
#include <string.h>

static void an_address_is_host_and_port(void **state)
{
    char host[RESOLVE_HOST_MAX];
    int port;
    assert_int_equal(resolve_split("node-a:7000", host, &port, NULL), 0);
    assert_string_equal(host, "node-a");
    assert_int_equal(port, 7000);
    assert_int_equal(resolve_split("[::1]:65535", host, &port, NULL), 0);
    assert_string_equal(host, "::1");
    assert_int_equal(port, 65535);
}

static void a_bad_address_is_named_in_the_error(void **state)
{
    static const char *const bad[] = {"",    "a",    ":1",   "a:",      "a:0",
                                      "a:x", "a:1x", "a:-1", "a:65536", "[]:1"};
    char host[RESOLVE_HOST_MAX];
    int port;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct baton_error error;
        assert_int_equal(resolve_split(bad[i], host, &port, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, bad[i]));
    }
}

static void numbers_need_no_name_service(void **state)
{
    struct sockaddr_storage address;
    socklen_t bytes;
    assert_true(resolve_numeric("127.0.0.1", 7000, &address, &bytes));
    assert_int_equal(address.ss_family, AF_INET);
    assert_int_equal(bytes, sizeof(struct sockaddr_in));
    assert_true(resolve_numeric("::1", 7000, &address, &bytes));
    assert_int_equal(address.ss_family, AF_INET6);
    assert_int_equal(ntohs(((struct sockaddr_in6 *)&address)->sin6_port), 7000);
    assert_false(resolve_numeric("localhost", 7000, &address, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_host_and_port),
        cmocka_unit_test(a_bad_address_is_named_in_the_error),
        cmocka_unit_test(numbers_need_no_name_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
