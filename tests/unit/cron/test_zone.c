/* Zones are those of tzdata, and the host's. */
#include "cmocka_all.h"
#include "cron/zone.h"

#include <stdlib.h>

static void names_are_those_of_tzdata(void **state)
{
    assert_true(zone_exists("Europe/Berlin"));
    assert_true(zone_exists("UTC"));
    assert_true(zone_exists(""));
    assert_false(zone_exists("Europe/Nowhere"));
    assert_false(zone_exists("../../../etc/passwd"));
    assert_false(zone_exists("/etc/localtime"));
    assert_false(zone_exists("Europe/BerlinEurope/BerlinEurope/BerlinEurope/BerlinEurope/Berlin"));
}

static void two_zones_may_be_asked_by_turns(void **state)
{
    struct calendar_zone berlin = zone_of("Europe/Berlin"), york = zone_of("America/New_York");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(berlin.offset(berlin.userdata, 1751371200), 7200);
        assert_int_equal(york.offset(york.userdata, 1751371200), -14400);
        assert_int_equal(berlin.offset(berlin.userdata, 1735732800), 3600);
    }
}

static void the_hosts_zone_is_that_of_the_start(void **state)
{
    struct calendar_zone berlin = zone_of("Europe/Berlin"), host = zone_of("");
    assert_int_equal(host.offset(host.userdata, 1751371200), 20700);
    assert_int_equal(berlin.offset(berlin.userdata, 1751371200), 7200);
    assert_int_equal(host.offset(host.userdata, 1751371200), 20700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_tzdata),
        cmocka_unit_test(two_zones_may_be_asked_by_turns),
        cmocka_unit_test(the_hosts_zone_is_that_of_the_start),
    };
    (void)setenv("TZ", "Asia/Kathmandu", 1);
    zone_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
