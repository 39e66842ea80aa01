/* URLs of the client: host and target of a URL, or the error of a bad one. */
#include "web/url.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    const char *outcome; /* "host port authority target shown", or the error */
} urls[] = {
    {"http://a", "a 80 a / http://a"},
    {"https://a/", "a 443 a / https://a/"},
    {"ws://a:81?x=1", "a 81 a:81 /?x=1 ws://a:81"},
    {"WSS://A.b:443/c?d=e&f#g", "A.b 443 A.b /c?d=e&f WSS://A.b:443/c"},
    {"http://[::1]:8080/a%2Fb", "::1 8080 [::1]:8080 /a%2Fb http://[::1]:8080/a%2Fb"},
    {"http://127.0.0.1:80/", "127.0.0.1 80 127.0.0.1 / http://127.0.0.1:80/"},
    {"ftp://a/", "ftp://a/: the scheme must be http, https, ws or wss"},
    {"http://", "http://: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"a:80/b", "a:80/b: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"http://a:70000/", "http://a:70000/: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"http://a:0/", "http://a:0/: port 0 is none"},
    {"http://a/ b", "http://a/ b: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"http://a/\r\nx: y?z",
     "http://a/??x: y: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"http://a/\xc3\xa9",
     "http://a/\xc3\xa9: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    /* secrets */
    {"http://user:pass@a/b",
     "http://***@a/b: a URL with a user is refused; send a token in a header"},
    {"ftp://user:pa?s@s@a/b?token=x",
     "ftp://***@a/b: is no URL: SCHEME://HOST[:PORT]/PATH, without blanks"},
    {"ftp://a/b?token=x", "ftp://a/b: the scheme must be http, https, ws or wss"},
};

static void each_url_is_read_as_listed(void **state)
{
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct web_url url;
        struct baton_error error;
        char outcome[1024];

        if (web_url_parse(&url, urls[i].text, &error) == 0) {
            (void)snprintf(outcome, sizeof(outcome), "%s %d %s %s %s", url.host, url.port,
                           url.authority, url.target, url.shown);
        } else {
            assert_int_equal(error.code, BATON_EINVAL);
            (void)snprintf(outcome, sizeof(outcome), "%s", error.message);
        }
        assert_string_equal(outcome, urls[i].outcome);
    }
}

static void the_scheme_says_whether_it_is_tls_and_a_websocket(void **state)
{
    static const char *const schemes[] = {"http", "https", "ws", "wss"};

    for (unsigned i = 0; i < 4; i++) {
        struct web_url url;
        char text[32];
        (void)snprintf(text, sizeof(text), "%s://a", schemes[i]);
        assert_int_equal(web_url_parse(&url, text, NULL), 0);
        assert_int_equal(url.is_tls, i % 2);
        assert_int_equal(url.is_socket, i / 2);
    }
}

/* A byte too much of each part. */
static void a_part_that_is_too_long_is_refused(void **state)
{
    struct web_url url;
    char text[WEB_URL_MAX + 32];

    for (int bytes = WEB_URL_HOST_MAX; bytes <= WEB_URL_HOST_MAX + 1; bytes++) {
        (void)snprintf(text, sizeof(text), "http://%0*d/", bytes, 1);
        assert_int_equal(web_url_parse(&url, text, NULL),
                         bytes <= WEB_URL_HOST_MAX ? 0 : BATON_EINVAL);
    }
    for (int bytes = WEB_URL_MAX; bytes <= WEB_URL_MAX + 1; bytes++) {
        (void)snprintf(text, sizeof(text), "http://a/%0*d", bytes - 9, 1);
        assert_int_equal(web_url_parse(&url, text, NULL), bytes <= WEB_URL_MAX ? 0 : BATON_EINVAL);
    }
    assert_int_equal(strlen(url.target), WEB_URL_MAX - 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_url_is_read_as_listed),
        cmocka_unit_test(the_scheme_says_whether_it_is_tls_and_a_websocket),
        cmocka_unit_test(a_part_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
