#include "cmocka_all.h"

#include "detector/camera/dial.h"

#include <netdb.h>
#include <netinet/in.h>

static const struct {
    const char *address;
    bool is_allowed;
} rows[] = {
    {"127.0.0.1", true},
    {"192.168.1.100", true},
    {"10.0.0.1", true},
    {"203.0.113.9", true},
    {"fd00::7", true},
    {"::1", true},
    {"::ffff:192.168.1.1", true},
    {"64:ff9b::808:808", true},
    {"169.254.169.254", false},
    {"::ffff:169.254.169.254", false},
    {"64:ff9b::a9fe:a9fe", false}, /* a gateway makes 169.254.169.254 of it */
    {"64:ff9b::", false},
    {"fe80::1", false},
    {"fd00:ec2::254", false},
    {"0.0.0.0", false},
    {"::", false},
    {"224.0.0.1", false},
    {"255.255.255.255", false},
    {"ff02::1", false},
};

static void cameras_may_be_dialled_and_the_secrets_of_clouds_and_groups_may_not(void **state)
{
    const struct addrinfo number = {.ai_flags = AI_NUMERICHOST};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct addrinfo *address;

        assert_int_equal(getaddrinfo(rows[i].address, NULL, &number, &address), 0);
        if (dial_is_allowed(address->ai_addr, address->ai_addrlen) != rows[i].is_allowed) {
            fail_msg("%s", rows[i].address);
        }
        freeaddrinfo(address);
    }
}

static void what_is_no_address_of_the_internet_may_not_be_dialled(void **state)
{
    struct sockaddr_in cut = {.sin_family = AF_INET};
    struct sockaddr_in6 local = {.sin6_family = AF_UNIX};

    assert_false(dial_is_allowed((struct sockaddr *)&cut, 4));
    assert_false(dial_is_allowed((struct sockaddr *)&local, sizeof(local)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cameras_may_be_dialled_and_the_secrets_of_clouds_and_groups_may_not),
        cmocka_unit_test(what_is_no_address_of_the_internet_may_not_be_dialled),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_dial", tests, NULL, NULL);
}
