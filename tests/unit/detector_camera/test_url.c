#include "cmocka_all.h"

#include "detector/camera/url.h"

#include <string.h>

static void only_scheme_host_and_port_are_shown(void **state)
{
    static const struct {
        const char *url, *masked;
    } rows[] = {
        {"rtsp://user:canary@cam.example/live", "rtsp://cam.example:554/…"},
        {"rtsp://cam.example:8554/user=admin_password=canary_channel=1.sdp",
         "rtsp://cam.example:8554/…"},
        {"RTSPS://u:canary%40x@cam.example/", "rtsps://cam.example:322/…"},
        {"http://cam.example/snap?u=file:///canary", "http://cam.example:80/…"},
        {"https://u:canary@[fd00::7]:8443/x#canary", "https://[fd00::7]:8443/…"},
    };
    struct url url;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(url_parse(&url, rows[i].url, NULL), 0);
        assert_string_equal(url.masked, rows[i].masked);
        assert_int_equal(strncmp(url.masked, url.scheme, strlen(url.scheme)), 0);
    }
}

#define TEN  "%20%20%20%20%20%20%20%20%20%20"
#define LONG TEN TEN TEN TEN

static void what_is_no_camera_is_refused_with_the_reason_and_not_quoted(void **state)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"rtsp://u:can@ary@h/live", "more than one @"},
        {"rtsp://u:canary@h:port/live", "its port is no number"},
        {"rtsp://u:can/ary@h/live", "a / # or ? in a name or password"},
        {"rtsp://h:70000/canary", "its port is no number from 1 to 65535"},
        {"rtsp://u:canary@[fd00::7]:0/", "its port is no number"},
        {"rtsp://u:canary@/live", "its host is missing"},
        {"canary.example:554", "no scheme"},
        {"ftp://canary@h/", "its scheme is another"},
        {"rtsp://h/can ary", "a space"},
        {"", "no scheme"},
        {"canary", "no scheme"},
        {"file:///etc/passwd?canary", "its scheme is another"},
        {"concat:canary|x", "no scheme"},
        {"rtsp://", "its host is missing"},
        {"rtsp:///canary", "its host is missing"},
        {"rtsp://u:can@ary@h o s t/", "a space"},
        {"rtsp://h:0/canary", "its port is no number"},
        {"rtsp://u:canary" LONG "@h/", "name and password are above 127 bytes"},
        {"RTSPS://canary:" LONG LONG "@h/", "name and password are above 127 bytes"},
    };
    struct baton_error error;
    struct url url;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(url_parse(&url, rows[i].url, &error), BATON_EINVAL);
        if (strstr(error.message, rows[i].says) == NULL || strstr(error.message, "ary") != NULL) {
            fail_msg("%s: %s", rows[i].url, error.message);
        }
    }
}

static void urls_of_one_camera_have_one_login(void **state)
{
    static const char *const others[] = {"rtsp://u:other@h/1", "rtsp://other:p@h/1",
                                         "rtsp://u:p@other/1", "rtsp://u@h/1",
                                         "rtsp://h/1",         "rtsp://up@h/1"};
    struct url url, same, other;

    assert_int_equal(url_parse(&url, "rtsp://u:p@h/1", NULL), 0);
    assert_int_equal(url_parse(&same, "https://u:p@h:444/2?x", NULL), 0);
    assert_int_equal(url.login, same.login);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(url_parse(&other, others[i], NULL), 0);
        assert_int_not_equal(url.login, other.login);
    }
}

static void rtsps_becomes_rtsp_on_the_same_port(void **state)
{
    static const struct {
        const char *url, *plain;
    } rows[] = {
        {"rtsps://u:p@cam.example/live", "rtsp://u:p@cam.example:322/live"},
        {"rtsps://cam.example:7441/a:b?c", "rtsp://cam.example:7441/a:b?c"},
        {"rtsps://[fd00::7]:/x", "rtsp://[fd00::7]:322/x"},
        {"rtsps://u:p@[fd00::7]:8322", "rtsp://u:p@[fd00::7]:8322"},
        {"rtsps://u:p@cam.example?x:1", "rtsp://u:p@cam.example:322?x:1"},
        {"RTSPS://cam.example/Live", "rtsp://cam.example:322/Live"},
        {"RTSP://u:@cam.example:/L", "rtsp://u:@cam.example/L"},
    };
    char plain[64 + URL_PORT_MAX];
    struct url url;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(url_parse(&url, rows[i].url, NULL), 0);
        url_without_tls(plain, sizeof(plain), &url, rows[i].url);
        assert_string_equal(plain, rows[i].plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_scheme_host_and_port_are_shown),
        cmocka_unit_test(what_is_no_camera_is_refused_with_the_reason_and_not_quoted),
        cmocka_unit_test(urls_of_one_camera_have_one_login),
        cmocka_unit_test(rtsps_becomes_rtsp_on_the_same_port),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_url", tests, NULL, NULL);
}
