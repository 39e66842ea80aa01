/* rediss:// against a real server with certificates made here, the right ones and the wrong. */
#include "certificates.h"
#include "cmocka_all.h"
#include "lib/process.h"
#include "probe.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

static struct server server;
static struct probe ours;
static int port; /* of TLS */

static char folder[128];

static int make_all(void **state)
{
    certificates_make(folder, sizeof(folder));
    return 0;
}

static int forget_all(void **state)
{
    process_remove_folder(folder);
    return 0;
}

/* ---- The server ------------------------------------------------------------------------------ */

static void start(const char *name, const char *wants_clients)
{
    port = certificates_serve(&server, folder, name, wants_clients);
    server_start(&server);
}

/* query: where it says FOLDER, our folder is meant. */
static void connect_to(const char *host, const char *query)
{
    char url[1024];
    int used = snprintf(url, sizeof(url), "rediss://%s:%d?", host, port);

    for (const char *at = query; *at; at++) {
        bool is_folder = strncmp(at, "FOLDER", 6) == 0;
        used += is_folder ? snprintf(url + used, sizeof(url) - (size_t)used, "%s", folder)
                          : snprintf(url + used, sizeof(url) - (size_t)used, "%c", *at);
        at += is_folder ? 5 : 0;
    }
    probe_open(&ours, url, NULL);
}

static void works(const char *host, const char *query)
{
    connect_to(host, query);
    PROBE_AWAIT(&ours, ours.ups == 1 || ours.downs > 0);
    assert_string_equal(ours.error.message, "");
    PROBE_ASK(&ours, "PING");
    assert_string_equal(ours.answer, "PONG");
    probe_close(&ours);
}

static void is_refused(const char *host, const char *query, const char *why)
{
    connect_to(host, query);
    PROBE_AWAIT(&ours, ours.downs >= 2);
    assert_int_equal(ours.ups, 0);
    assert_int_equal(ours.error.code, BATON_EAUTH);
    if (!strstr(ours.error.message, why)) {
        fail_msg("\"%s\" does not say \"%s\"", ours.error.message, why);
    }
    assert_null(strstr(ours.error.message, "no TLS handshake"));
    probe_close(&ours);
}

/* ---- The server's certificate ---------------------------------------------------------------- */

static void the_right_certificate_is_taken_by_name_and_by_address(void **state)
{
    start("right", "no");
    works("127.0.0.1", "ca=FOLDER/ca.crt");
    works("localhost", "ca=FOLDER/ca.crt");
    works("localhost", "ca=FOLDER/ca.crt&sni=redis.test");
}

static void a_certificate_of_another_authority_is_refused(void **state)
{
    start("right", "no");
    is_refused("127.0.0.1", "ca=FOLDER/other-ca.crt",
               "certificate refused: self-signed certificate in certificate chain");
    is_refused("127.0.0.1", "", "certificate refused: "); /* the system does not know it either */
}

static void a_certificate_of_another_name_is_refused(void **state)
{
    start("elsewhere", "no");
    is_refused("localhost", "ca=FOLDER/ca.crt", "hostname mismatch");
    is_refused("127.0.0.1", "ca=FOLDER/ca.crt", "IP address mismatch");
    is_refused("127.0.0.1", "ca=FOLDER/ca.crt&sni=redis.test", "hostname mismatch");
    works("127.0.0.1", "ca=FOLDER/ca.crt&sni=elsewhere.test");
}

static void an_expired_certificate_is_refused(void **state)
{
    start("expired", "no");
    is_refused("127.0.0.1", "ca=FOLDER/ca.crt", "certificate has expired");
}

static void only_who_says_so_trusts_anybody_and_is_warned(void **state)
{
    start("expired", "no");
    connect_to("127.0.0.1", "verify=off&ca=FOLDER/other-ca.crt");
    PROBE_AWAIT(&ours, ours.ups == 1);
    assert_true(probe_has_logged(&ours, "redis-unverified"));
    probe_close(&ours);
}

/* ---- Ours ------------------------------------------------------------------------------------ */

static void a_server_that_wants_a_certificate_gets_ours(void **state)
{
    start("right", "yes");
    works("127.0.0.1", "ca=FOLDER/ca.crt&cert=FOLDER/client.crt&key=FOLDER/client.key");
    is_refused("127.0.0.1", "ca=FOLDER/ca.crt", "alert certificate required");
    is_refused("127.0.0.1", "ca=FOLDER/ca.crt&cert=FOLDER/stranger.crt&key=FOLDER/stranger.key",
               "alert unknown ca");
}

static void files_that_are_wrong_are_named(void **state)
{
    static const char *const queries[][2] = {
        {"ca=/no/such/ca.crt", "/no/such/ca.crt: No such file or directory"},
        {"ca=/dev/null", "/dev/null: no certificate"},
        {"cert=/no/such/client.crt&key=/x", "/no/such/client.crt: No such file or directory"},
        {"cert=/x", "the key is missing"},
        {"key=/x", "the certificate is missing"},
    };

    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        struct redis_address address;
        struct redis_options options = {.address = &address};
        struct redis *redis = NULL;
        struct baton_error error = {0};
        char url[256];
        snprintf(url, sizeof(url), "rediss://:geheim@h?%s", queries[i][0]);
        assert_int_equal(redis_address_parse(&address, url, &error), BATON_OK);
        assert_int_equal(redis_open(&redis, &options, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, queries[i][1]));
        assert_null(redis);
    }
}

static void a_server_in_the_clear_is_told_apart(void **state)
{
    server_start(&server);
    port = server.port;
    connect_to("127.0.0.1", "ca=FOLDER/ca.crt");
    PROBE_AWAIT(&ours, ours.downs >= 2);
    assert_int_equal(ours.ups, 0);
    assert_non_null(strstr(ours.error.message, "no TLS handshake"));
    assert_non_null(strstr(ours.error.message, "redis://"));
    probe_close(&ours);
}

static void a_server_under_tls_is_told_apart_from_one_in_the_clear(void **state)
{
    char url[64];
    start("right", "no");
    snprintf(url, sizeof(url), "redis://:geheim@127.0.0.1:%d", port);
    probe_open(&ours, url, NULL);
    PROBE_AWAIT(&ours, ours.downs >= 2);
    assert_int_equal(ours.ups, 0);
    assert_non_null(strstr(ours.error.message, "before any answer"));
    assert_non_null(strstr(ours.error.message, "rediss://"));
    probe_close(&ours);
}

static void a_large_value_and_a_password_travel_under_it(void **state)
{
    enum { BYTES = 3 * 1024 * 1024 };
    char *value = malloc(BYTES + 1);
    char query[] = "ca=FOLDER/ca.crt";

    assert_non_null(value);
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    server_set(&server, "requirepass", "geheim");
    start("right", "no");
    connect_to(":geheim@127.0.0.1", query);
    PROBE_AWAIT(&ours, ours.ups == 1);
    PROBE_ASK(&ours, "SET", "large", value);
    assert_string_equal(ours.answer, "OK");
    PROBE_ASK(&ours, "GET", "large");
    assert_memory_equal(ours.answer, value, sizeof(ours.answer) - 1);
    assert_false(probe_has_logged(&ours, "geheim"));
    probe_close(&ours);
    connect_to(":geheim2@127.0.0.1", query);
    PROBE_AWAIT(&ours, ours.downs >= 1);
    assert_non_null(strstr(ours.error.message, "WRONGPASS"));
    assert_false(probe_has_logged(&ours, "geheim"));
    probe_close(&ours);
    free(value);
}

int main(void)
{
#define CASE(name)                                                                                 \
    cmocka_unit_test_prestate_setup_teardown(name, server_setup, server_teardown, &server)
    const struct CMUnitTest tests[] = {
        CASE(the_right_certificate_is_taken_by_name_and_by_address),
        CASE(a_certificate_of_another_authority_is_refused),
        CASE(a_certificate_of_another_name_is_refused),
        CASE(an_expired_certificate_is_refused),
        CASE(only_who_says_so_trusts_anybody_and_is_warned),
        CASE(a_server_that_wants_a_certificate_gets_ours),
        CASE(files_that_are_wrong_are_named),
        CASE(a_server_in_the_clear_is_told_apart),
        CASE(a_server_under_tls_is_told_apart_from_one_in_the_clear),
        CASE(a_large_value_and_a_password_travel_under_it),
    };
    return cmocka_run_group_tests(tests, make_all, forget_all);
}
