/* The URL of an MQTT broker. */
#include "cmocka_all.h"
#include "fleet/outlets/mqtt_url.h"

#include <string.h>

static struct mqtt_url parse(const char *text)
{
    struct mqtt_url url;
    struct baton_error error;

    if (mqtt_url_parse(&url, text, &error) != BATON_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    return url;
}

static void a_url_without_more_has_the_port_of_its_scheme(void **state)
{
    struct mqtt_url url = parse("mqtt://broker.example");

    assert_string_equal(url.host, "broker.example");
    assert_int_equal(url.port, 1883);
    assert_false(url.is_tls);
    assert_string_equal(url.user, "");
    url = parse("mqtts://broker.example");
    assert_int_equal(url.port, 8883);
    assert_true(url.is_tls);
}

static void user_and_password_are_decoded(void **state)
{
    struct mqtt_url url = parse("mqtt://me:p%40ss%3Aw@rd:x@[::1]:1884");

    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "p@ss:w@rd:x");
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 1884);
    url = parse("mqtt://me@h");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "");
}

static void what_is_no_url_of_a_broker_is_refused_and_not_quoted(void **state)
{
    static const char *const urls[] = {
        "",
        "canary",
        "http://canary",
        "mqtt://",
        "mqtt://canary:0",
        "mqtt://h:",
        "mqtt://h:65536",
        "mqtt://h:canary",
        "mqtt://h:1/canary",
        "mqtt://h/canary",
        "mqtt://@h",
        "mqtt://:canary@h",
        "mqtt://[::1canary",
        "mqtt://[]",
        "mqtt://a%00b@h",
    };

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct mqtt_url url = {.port = 4711};
        struct baton_error error;

        if (mqtt_url_parse(&url, urls[i], &error) != BATON_EINVAL) {
            fail_msg("'%s' is taken", urls[i]);
        }
        assert_int_equal(url.port, 4711);
        assert_null(strstr(error.message, "canary"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_without_more_has_the_port_of_its_scheme),
        cmocka_unit_test(user_and_password_are_decoded),
        cmocka_unit_test(what_is_no_url_of_a_broker_is_refused_and_not_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
