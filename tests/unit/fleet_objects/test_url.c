#include "fleet/objects/url.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#define CANARY "c4nary"

static void what_a_worker_takes_is_taken(void **state)
{
    static const struct {
        const char *url;
        enum fleet_url_use use;
    } good[] = {
        {"rtsp://10.0.0.5/stream1", FLEET_URL_STREAM},
        {"RTSPS://user:pass%40word@camera.example:322/live?channel=1", FLEET_URL_STREAM},
        {"rtsp://[2001:db8::1]:554/", FLEET_URL_STREAM},
        {"rtsp://user@[fe80::1]", FLEET_URL_STREAM},
        {"http://go2rtc/snapshot/1", FLEET_URL_PICTURE},
        {"https://storage/models/us-lpr.mpta?token=abc", FLEET_URL_MODEL},
        {"s3://models/us-lpr.mpta", FLEET_URL_MODEL},
        {"ws://worker-1:8000", FLEET_URL_WORKER},
        {"dns+wss://workers.local:8000", FLEET_URL_WORKER},
        {"srv+ws://_detector._tcp.example.org", FLEET_URL_WORKER},
    };
    struct baton_error error;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (fleet_url_check(good[i].url, good[i].use, "url", &error) != BATON_OK) {
            fail_msg("%s: %s", good[i].url, error.message);
        }
    }
}

/* Each has the canary where a password may stand: no message may have it. */
static void what_no_worker_takes_is_refused_and_never_quoted(void **state)
{
    static const struct {
        const char *url;
        enum fleet_url_use use;
        const char *says;
    } bad[] = {
        {"http://u:" CANARY "@h/x", FLEET_URL_STREAM, "url: begins with http://: must be rtsp://"},
        {"http://u:" CANARY "@h/x", FLEET_URL_STREAM, "is its snapshotUrl"},
        {"rtsp://u:" CANARY "@h/x", FLEET_URL_PICTURE, "is the camera's rtspUrl"},
        {"rtsp://u:" CANARY "@h/x", FLEET_URL_MODEL, "begins with rtsp://"},
        {"file:///" CANARY, FLEET_URL_MODEL, "begins with file://"},
        {"u:" CANARY "@10.0.0.5/stream", FLEET_URL_STREAM, "has no scheme"},
        {CANARY, FLEET_URL_STREAM, "has no scheme"},
        {"://" CANARY, FLEET_URL_STREAM, "has no scheme"},
        {"rtsp://", FLEET_URL_STREAM, "host is missing"},
        {"rtsp:///" CANARY, FLEET_URL_STREAM, "host is missing"},
        {"rtsp://u:" CANARY "@", FLEET_URL_STREAM, "host is missing"},
        {"rtsp://u:" CANARY "@:554/x", FLEET_URL_STREAM, "host is missing"},
        {"rtsp://u:" CANARY "@x@h/x", FLEET_URL_STREAM, "more than one @"},
        {"rtsp://u:" CANARY "/x@h/x", FLEET_URL_STREAM, "port"},
        {"rtsp://u:" CANARY "#x@h/x", FLEET_URL_STREAM, "port"},
        {"rtsp://h:0/" CANARY, FLEET_URL_STREAM, "port"},
        {"rtsp://h:65536/" CANARY, FLEET_URL_STREAM, "port"},
        {"rtsp://[" CANARY "]/x", FLEET_URL_STREAM, "IPv6"},
        {"rtsp://[::1]" CANARY "/x", FLEET_URL_STREAM, "behind its host"},
        {"rtsp://u:" CANARY " x@h/x", FLEET_URL_STREAM, "blank"},
        {"rtsp://u:" CANARY "\x01@h/x", FLEET_URL_STREAM, "control"},
        {"rtsp://u:" CANARY "{}@h/x", FLEET_URL_STREAM, "%7B"},
        {"rtsp://***@h/" CANARY, FLEET_URL_STREAM, "masks what is secret"},
        {"https://h/m?***", FLEET_URL_MODEL, "or leave url out of a patch"},
        {"s3://u:" CANARY "@b/k", FLEET_URL_MODEL, "options of the program"},
        {"s3://bucket", FLEET_URL_MODEL, "key is missing"},
        {"s3:///key", FLEET_URL_MODEL, "bucket"},
        {"ws://u:" CANARY "@h:1", FLEET_URL_WORKER, "no user and password"},
        {"ws://h:1?token=" CANARY, FLEET_URL_WORKER, "query"},
        {"http://h:8000/" CANARY, FLEET_URL_WORKER, "must be ws://HOST:PORT"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct baton_error error = {0};
        assert_int_equal(fleet_url_check(bad[i].url, bad[i].use, "url", &error), BATON_EINVAL);
        if (!strstr(error.message, bad[i].says) || strstr(error.message, CANARY) ||
            strncmp(error.message, "url: ", 5) != 0) {
            fail_msg("%zu: %s", i, error.message);
        }
    }
}

static void people_see_where_it_leads_and_nothing_secret(void **state)
{
    static const struct {
        const char *url;
        enum fleet_url_use use;
        const char *masked;
    } urls[] = {
        {"rtsp://u:" CANARY "@h:554/" CANARY, FLEET_URL_STREAM, "rtsp://***@h:554/***"},
        {"rtsp://h/user=a&password=" CANARY, FLEET_URL_STREAM, "rtsp://h/***"},
        {"rtsp://h", FLEET_URL_STREAM, "rtsp://h"},
        {"rtsp://h/", FLEET_URL_STREAM, "rtsp://h/"},
        {"rtsp://h?" CANARY, FLEET_URL_STREAM, "rtsp://h?***"},
        {"rtsp://u:a/" CANARY "@h/x", FLEET_URL_STREAM, "rtsp://***@h/***"},
        {"rtsp://[::1]:554/x", FLEET_URL_STREAM, "rtsp://[::1]:554/***"},
        {"http://h/cgi?pwd=" CANARY, FLEET_URL_PICTURE, "http://h/***"},
        {"http://u:" CANARY "@h/m.mpta?t=" CANARY, FLEET_URL_MODEL, "http://***@h/m.mpta?***"},
        {"https://h/m.mpta#" CANARY, FLEET_URL_MODEL, "https://h/m.mpta***"},
        {"s3://models/us-lpr.mpta", FLEET_URL_MODEL, "s3://models/us-lpr.mpta"},
        {CANARY, FLEET_URL_STREAM, "***"},
        {"", FLEET_URL_STREAM, "***"},
    };

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char *masked = fleet_url_masked(urls[i].url, urls[i].use);
        assert_string_equal(masked, urls[i].masked);
        free(masked);
    }
}

static void a_password_is_what_stands_behind_a_user(void **state)
{
    assert_true(fleet_url_has_password("rtsp://user:pass@h/x"));
    assert_false(fleet_url_has_password("rtsp://user@h/x"));
    assert_false(fleet_url_has_password("rtsp://h:554/a@b"));
    assert_false(fleet_url_has_password("h:554"));
}

static void urls_of_workers_are_the_same_if_they_lead_to_the_same_place(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } pairs[] = {
        {"ws://h:8000", "ws://h:8000/", true},
        {"ws://H:8000", "WS://h:8000", true},
        {"ws://h", "ws://h:80/", true},
        {"wss://h:443", "wss://h", true},
        {"ws://[FE80::1]", "ws://[fe80::1]:80/", true},
        {"dns+ws://n:1", "dns+ws://N:1/", true},
        {"ws://h:8000/a", "ws://h:8000/a", true},
        {"ws://h:8000", "wss://h:8000", false},
        {"ws://h:8000", "ws://h:8001", false},
        {"ws://h", "ws://h:443", false},
        {"ws://h/a", "ws://h/A", false},
        {"ws://h/a", "ws://h/", false},
        {"ws://h1", "ws://h", false},
        {"ws://[::1]", "ws://[::2]", false},
        {"ws://h", "dns+ws://h", false},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(fleet_url_is_same(pairs[i].a, pairs[i].b), pairs[i].is_same);
        assert_int_equal(fleet_url_is_same(pairs[i].b, pairs[i].a), pairs[i].is_same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_worker_takes_is_taken),
        cmocka_unit_test(what_no_worker_takes_is_refused_and_never_quoted),
        cmocka_unit_test(people_see_where_it_leads_and_nothing_secret),
        cmocka_unit_test(a_password_is_what_stands_behind_a_user),
        cmocka_unit_test(urls_of_workers_are_the_same_if_they_lead_to_the_same_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
