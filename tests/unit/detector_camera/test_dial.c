#include "cmocka_all.h"

#include "detector/camera/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static bool allowed(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        return dial_is_allowed((struct sockaddr *)&v4, sizeof(v4));
    }
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return dial_is_allowed((struct sockaddr *)&v6, sizeof(v6));
}

static void cameras_in_any_ordinary_network_may_be_dialled(void **state)
{
    (void)state;
    assert_true(allowed("127.0.0.1"));
    assert_true(allowed("192.168.1.100"));
    assert_true(allowed("10.0.0.1"));
    assert_true(allowed("203.0.113.9"));
    assert_true(allowed("fd00::7"));
    assert_true(allowed("::1"));
    assert_true(allowed("::ffff:192.168.1.1"));
}

static void the_secrets_of_clouds_and_groups_of_hosts_may_not(void **state)
{
    struct sockaddr_in cut = {.sin_family = AF_INET};
    struct sockaddr_in6 local = {.sin6_family = AF_UNIX};

    (void)state;
    assert_false(allowed("169.254.169.254"));
    assert_false(allowed("::ffff:169.254.169.254"));
    assert_false(allowed("64:ff9b::a9fe:a9fe")); /* a gateway makes 169.254.169.254 of it */
    assert_false(allowed("64:ff9b::"));
    assert_true(allowed("64:ff9b::808:808"));
    assert_false(allowed("fe80::1"));
    assert_false(allowed("fd00:ec2::254"));
    assert_false(allowed("0.0.0.0"));
    assert_false(allowed("::"));
    assert_false(allowed("224.0.0.1"));
    assert_false(allowed("255.255.255.255"));
    assert_false(allowed("ff02::1"));
    assert_false(dial_is_allowed((struct sockaddr *)&cut, 4));
    assert_false(dial_is_allowed((struct sockaddr *)&local, sizeof(local)));
}

static bool was_dialled(const char *text, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        return dial_was_dialled((struct sockaddr *)&v4, sizeof(v4));
    }
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return dial_was_dialled((struct sockaddr *)&v6, sizeof(v6));
}

static void a_host_that_was_dialled_is_known_whatever_the_port(void **state)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(554)};
    struct sockaddr_in6 local = {.sin6_family = AF_UNIX};

    (void)state;
    dial_remember((struct sockaddr *)&local, sizeof(local));
    assert_int_equal(inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr), 1);
    dial_remember((struct sockaddr *)&v4, sizeof(v4));
    assert_false(was_dialled("0.0.0.0", 0)); /* nor that of another family */
    assert_true(was_dialled("192.0.2.7", 6970));
    assert_true(was_dialled("::ffff:192.0.2.7", 6970));
    assert_true(dial_is_same_host((struct sockaddr *)&v4, (struct sockaddr *)&v4));
    assert_false(dial_is_same_host((struct sockaddr *)&v4, (struct sockaddr *)&local));
    assert_false(was_dialled("192.0.2.8", 554));
    assert_false(was_dialled("fd00::7", 554));
    assert_false(dial_was_dialled((struct sockaddr *)&local, sizeof(local)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cameras_in_any_ordinary_network_may_be_dialled),
        cmocka_unit_test(the_secrets_of_clouds_and_groups_of_hosts_may_not),
        cmocka_unit_test(a_host_that_was_dialled_is_known_whatever_the_port),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_dial", tests, NULL, NULL);
}
