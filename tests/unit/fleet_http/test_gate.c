/* Who may ask: every combination of tokens, rights, hosts and origins that decides. */
#include "fleet/http/gate.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#define READER  "reader-token-0001"
#define CHANGER "changer-token-0001"

/* The status of a request with these headers. */
static unsigned ask(const struct gate *gate, enum right right, const char *headers)
{
    struct web_request request;
    const char *reason = NULL;
    char text[1024];
    size_t taken;
    unsigned status;

    web_request_init(&request, sizeof(text), 1024);
    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\n", headers);
    assert_int_equal(web_request_read(&request, text, strlen(text), &taken), WEB_READ_WHOLE);
    status = gate_check(gate, &request, right, &reason);
    assert_true((status == 0) == (reason == NULL));
    web_request_fini(&request);
    return status;
}

#define HOST "Host: 127.0.0.1:8090\r\n"

static void without_tokens_a_host_that_is_ours_may_do_all(void **state)
{
    static const char *const names[] = {"fleet.example.org", NULL};
    const struct gate gate = {.host = "127.0.0.1", .hosts = names};

    assert_int_equal(ask(&gate, RIGHT_CHANGE, HOST), 0);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, "Host: localhost\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, "Host: 10.1.2.3:80\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, "Host: Fleet.example.org:80\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_READ, "Host: rebound.example.net\r\n"), 403);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, "Host: rebound.example.net\r\n"), 403);
    assert_int_equal(ask(&gate, RIGHT_NONE, "Host: rebound.example.net\r\n"), 0);
}

static void a_page_of_another_site_may_do_nothing(void **state)
{
    static const char *const names[] = {"fleet.example.org", NULL};
    const struct gate open = {.host = "127.0.0.1", .hosts = names};
    const struct gate closed = {.host = "0.0.0.0", .read = READER, .change = CHANGER};

    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: http://127.0.0.1:8090\r\n"), 0);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: https://fleet.example.org\r\n"), 0);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: http://127.0.0.1:3000\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: http://localhost:8090\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: http://6.6.6.6\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: null\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Origin: http://evil.example.net\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Sec-Fetch-Site: same-origin\r\n"), 0);
    assert_int_equal(ask(&open, RIGHT_READ, HOST "Sec-Fetch-Site: none\r\n"), 0);
    assert_int_equal(ask(&open, RIGHT_READ,
                         HOST "Sec-Fetch-Site: cross-site\r\n"
                              "Origin: https://fleet.example.org\r\n"),
                     0);
    assert_int_equal(ask(&closed, RIGHT_CHANGE,
                         HOST "Origin: http://evil.example.net\r\n"
                              "Authorization: Bearer " CHANGER "\r\n"),
                     403);
}

static void two_tokens_have_two_rights(void **state)
{
    const struct gate gate = {.host = "0.0.0.0", .read = READER, .change = CHANGER};

    assert_int_equal(ask(&gate, RIGHT_READ, HOST), 401);
    assert_int_equal(ask(&gate, RIGHT_READ, HOST "Authorization: Bearer wrong\r\n"), 401);
    assert_int_equal(ask(&gate, RIGHT_READ, HOST "Authorization: Basic " READER "\r\n"), 401);
    assert_int_equal(ask(&gate, RIGHT_READ, HOST "Authorization: Bearer " READER "\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_READ, HOST "Authorization: Bearer " CHANGER "\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, HOST), 401);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, HOST "Authorization: Bearer " READER "\r\n"), 403);
    assert_int_equal(ask(&gate, RIGHT_CHANGE, HOST "Authorization: Bearer " CHANGER "\r\n"), 0);
    assert_int_equal(ask(&gate, RIGHT_NONE, HOST), 0);
}

static void one_token_alone_is_needed_for_reading_too(void **state)
{
    const struct gate change = {.host = "0.0.0.0", .change = CHANGER};
    const struct gate read = {.host = "0.0.0.0", .read = READER};

    assert_int_equal(ask(&change, RIGHT_READ, HOST), 401);
    assert_int_equal(ask(&change, RIGHT_READ, HOST "Authorization: Bearer " CHANGER "\r\n"), 0);
    assert_int_equal(ask(&read, RIGHT_CHANGE, HOST "Authorization: Bearer " READER "\r\n"), 403);
}

/* With a token a name that was rebound does no harm: its page does not know the token. */
static void with_a_token_any_host_may_be_asked_for(void **state)
{
    const struct gate gate = {.host = "0.0.0.0", .read = READER};

    assert_int_equal(
        ask(&gate, RIGHT_READ, "Host: proxy.example.com\r\nAuthorization: Bearer " READER "\r\n"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tokens_a_host_that_is_ours_may_do_all),
        cmocka_unit_test(a_page_of_another_site_may_do_nothing),
        cmocka_unit_test(two_tokens_have_two_rights),
        cmocka_unit_test(one_token_alone_is_needed_for_reading_too),
        cmocka_unit_test(with_a_token_any_host_may_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
