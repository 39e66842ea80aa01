/* Fetching archives from a real server that breaks, lies, refuses and leads elsewhere. Every
 * address holds a password and a signature, and no message may. */
#include "cmocka_all.h"

#include "detector/model/address.h"
#include "detector/model/archive.h"
#include "detector/model/fetch.h"
#include "integration/camera/server.h"
#include "lib/assert_ok.h"
#include "lib/process.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { URL_BYTES = 256, ARCHIVE_BYTES_MAX = 8 << 20 };

static struct {
    char folder[256];
    struct server server;
    struct store *store;
    struct fetch_rules rules;
    const char *scheme;
    /* Of the last fetch: */
    int fd, tries;
    struct fetch_result result;
    struct baton_error error; /* code 0: success */
} place;

static void begin(bool is_https)
{
    process_make_folder(place.folder, sizeof(place.folder));
    place.scheme = is_https ? "https" : "http";
    server_start(&place.server, "model_server.py", is_https ? place.folder : NULL, NULL);
    assert_int_equal(store_open(&place.store, place.folder, UINT64_MAX, NULL), 0);
    place.rules = fetch_rules_default();
    place.rules.bytes_max = ARCHIVE_BYTES_MAX;
    place.fd = -1;
}

static int set_up(void **state)
{
    begin(false);
    return 0;
}

static int tear_down(void **state)
{
    server_end(&place.server);
    (void)close(place.fd);
    store_close(place.store);
    process_remove_folder(place.folder);
    return 0;
}

static const char *url_of(const char *name)
{
    static char url[URL_BYTES];

    (void)snprintf(url, sizeof(url), "%s://viewer:canary7@127.0.0.1:%d/%s.mpta?sig=canary8",
                   place.scheme, place.server.port, name);
    return url;
}

static void fetch_url(const char *url, const char *etag)
{
    struct fetch *fetch = NULL;

    (void)close(place.fd);
    place.fd = store_file(place.store, NULL);
    assert_true(place.fd >= 0);
    assert_int_equal(fetch_new(&fetch, &place.rules, etag, place.fd, NULL), 0);
    place.tries = 0;
    do {
        place.error.code = 0;
        (void)fetch_try(fetch, place.tries++ == 0 ? url : NULL, &place.result, &place.error);
    } while (place.result.pause.ns > 0);
    fetch_free(fetch);
}

static void fetch_known(const char *name, const char *etag)
{
    fetch_url(url_of(name), etag);
}

static void fetch_name(const char *name)
{
    fetch_known(name, "");
}

static void assert_fails(const char *name, int code, const char *says)
{
    fetch_name(name);
    if (place.error.code != code || strstr(place.error.message, says) == NULL ||
        strstr(place.error.message, "canary") != NULL) {
        fail_msg("%s: %d %s", name, place.error.code, place.error.message);
    }
}

static off_t bytes_of(void)
{
    struct stat status;

    assert_int_equal(fstat(place.fd, &status), 0);
    return status.st_size;
}

/* The file is an archive that can be unpacked. */
static void assert_archive(void)
{
    struct archive archive;
    void *model = NULL;
    size_t bytes = 0;

    if (place.error.code != 0) {
        fail_msg("%s", place.error.message);
    }
    assert_false(place.result.is_same);
    ASSERT_OK(archive_open(&archive, fdopen(dup(place.fd), "r"), 0, failure));
    ASSERT_OK(archive_unpack(&archive, "models/cars.onnx", (uint64_t)bytes_of(), &model, &bytes,
                             failure));
    (void)munmap(model, bytes);
    zip_discard(archive.zip);
}

static void assert_arrives(const char *name)
{
    fetch_name(name);
    assert_archive();
}

/* Also by a server that sends it all the same. */
static void what_is_known_by_its_etag_is_not_fetched_again(void **state)
{
    static const char *const names[] = {"good", "careless"};

    for (int i = 0; i < 2; i++) {
        fetch_known(names[i], "\"v1\"");
        assert_int_equal(place.error.code, 0);
        assert_true(place.result.is_same);
        assert_string_equal(place.result.etag, "\"v1\"");
        assert_int_equal(bytes_of(), 0);
        fetch_known(names[i], "\"v0\"");
        assert_archive();
        assert_string_equal(place.result.etag, "\"v1\"");
        assert_int_equal(place.tries, 1);
    }
    assert_int_equal(server_count(&place.server, "get good if \"v1\""), 1);
    assert_int_equal(server_count(&place.server, "get careless if \"v1\""), 1);
}

static void what_is_too_large_is_known_by_its_etag_if_it_has_one(void **state)
{
    assert_fails("vast", BATON_ETOOBIG, "larger than a model archive may be");
    assert_string_equal(place.result.etag, "\"v1\"");
    assert_fails("endless", BATON_ETOOBIG, "larger than a model archive may be");
    assert_string_equal(place.result.etag, "");
}

static void a_broken_fetch_goes_on_where_it_broke(void **state)
{
    char line[64];

    assert_arrives("broken");
    assert_int_equal(place.tries, 4);
    for (off_t quarter = 1; quarter < 4; quarter++) {
        (void)snprintf(line, sizeof(line), "get broken from %lld",
                       (long long)(bytes_of() * quarter / 4));
        assert_int_equal(server_count(&place.server, line), 1);
    }
}

/* By another try, from where it broke or anew; by another address; with a password. */
static void what_breaks_or_leads_on_arrives_whole(void **state)
{
    static const struct {
        const char *name;
        int tries;
    } rows[] = {{"renewed", 2}, {"nameless", 2}, {"weak", 2},  {"swapped", 3},
                {"busy", 3},    {"moved", 1},    {"secret", 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_arrives(rows[i].name);
        if (place.tries != rows[i].tries) {
            fail_msg("%s: tried %d times", rows[i].name, place.tries);
        }
    }
    assert_int_equal(server_count(&place.server, "get nameless"), 2); /* not from somewhere */
    assert_int_equal(server_count(&place.server, "get swapped"), 2);  /* nor of two files */
}

static void an_empty_answer_is_an_empty_file(void **state)
{
    fetch_name("empty");
    assert_int_equal(place.error.code, 0);
    assert_int_equal(bytes_of(), 0);
}

static const struct row {
    const char *name;
    int code;
    unsigned asked; /* from the start; 0: not counted */
    const char *says;
} failures[] = {
    {"gone", BATON_ENOENT, 1, "the server does not have it"},
    {"page", BATON_ENOENT, 1, "the server does not have it"},
    {"refused", BATON_EAUTH, 1, "the server refuses"},
    {"odd", BATON_EPROTO, 1, "answers 204 in place of 200"},
    {"down", BATON_EUNAVAILABLE, 5, "answers 503 in place of 200"},
    {"stuck", BATON_EUNAVAILABLE, 0, "Transferred a partial file"},
    {"liar", BATON_EPROTO, 0, "the server sends another part than asked"},
    {"large", BATON_ETOOBIG, 1, "larger than a model archive may be"},
    {"metadata", BATON_EAUTH, 1, "its address is not one that models may come from"},
    {"loop", BATON_EPROTO, 5, "redirected to nowhere, or too often"},
    {"file", BATON_EINVAL, 1, "must be http or https"},
};

static void each_failure_says_what_it_is_and_no_secret(void **state)
{
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        const struct row *row = &failures[i];
        char line[64];
        unsigned asked;

        assert_fails(row->name, row->code, row->says);
        if (strncmp(place.error.message, "model from http://", 18) != 0 ||
            strstr(place.error.message, "/…: ") == NULL) {
            fail_msg("%s: %s", row->name, place.error.message);
        }
        (void)snprintf(line, sizeof(line), "get %s", row->name);
        asked = server_count(&place.server, line);
        if (row->asked != 0 && asked != row->asked) {
            fail_msg("%s: asked %u times", row->name, asked);
        }
    }
}

static void a_silent_server_is_not_waited_for(void **state)
{
    place.rules.tries_max = 1;
    place.rules.silent_ms = 4000; /* only here: who waits for a busy machine is not silent */
    place.rules.total_ms = 1000000;
    fetch_name("silent");
    /* It gave a byte, so it was asked once more, and there it broke at once. */
    assert_true(place.error.code == BATON_ETIMEDOUT || place.error.code == BATON_EUNAVAILABLE);
    assert_int_equal(server_count(&place.server, "get silent"), 2);
}

static void all_tries_together_have_a_limit(void **state)
{
    place.rules.tries_max = 1000000;
    place.rules.total_ms = 100;
    assert_fails("down", BATON_ETIMEDOUT, "takes longer than is allowed");
}

static void a_host_that_is_not_allowed_is_refused_also_by_redirect(void **state)
{
    static const char *const hosts[] = {"models.example", "127.0.0.1", NULL};

    place.rules.hosts = hosts;
    assert_arrives("good");
    assert_fails("away", BATON_EAUTH, "not among those that models may come from");
    place.rules.hosts = hosts + 2;
    assert_fails("good", BATON_EAUTH, "");
    assert_int_equal(server_count(&place.server, "get good"), 1); /* it was not asked again */
}

static void a_full_disk_is_an_error(void **state)
{
    struct fetch_result result;
    struct fetch *fetch;
    int fd = open("/dev/full", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fetch_new(&fetch, &place.rules, "", fd, NULL), 0);
    ASSERT_FAILS(fetch_try(fetch, url_of("good"), &result, failure), BATON_EFULL,
                 "cannot be written to the disk");
    fetch_free(fetch);
    close(fd);
}

/* Were one of them dialled, most would lead to this machine. That it can be allowed, and with which
 * option, is in detector_infer/program.js. */
static void a_redirect_may_spell_an_inner_address_as_it_likes(void **state)
{
    static const char *const hosts[] = {"127.0.0.1",  "127.1",           "2130706433",
                                        "0x7f.1",     "0177.0.0.1",      "127.0.0.2",
                                        "0",          "0.0.0.0",         "[::1]",
                                        "[::]",       "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
                                        "10.0.0.1",   "192.168.0.1",     "172.16.0.1",
                                        "[fd00::1]",  "100.64.0.1",      "169.254.169.254",
                                        "2852039166", "[fe80::1]"};

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char url[URL_BYTES];

        (void)snprintf(url, sizeof(url), "http://localhost:%d/onto.mpta?to=%s", place.server.port,
                       hosts[i]);
        fetch_url(url, "");
        if (place.error.code != BATON_EAUTH) {
            fail_msg("%s: %d %s", hosts[i], place.error.code, place.error.message);
        }
    }
    assert_int_equal(server_count(&place.server, "get good"), 0);
}

static void private_networks_are_known_by_their_addresses(void **state)
{
    static const char *const inside[] = {
        "127.0.0.1",  "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255",  "192.168.1.1",
        "100.64.0.1", "::1",       "fc00::1",  "fd12::1",    "::ffff:10.0.0.1", "64:ff9b::c0a8:1"};
    static const char *const outside[] = {"8.8.8.8",     "172.15.0.1",    "172.32.0.1",
                                          "192.169.0.1", "100.63.0.1",    "100.128.0.1",
                                          "2001:db8::1", "::ffff:8.8.8.8"};
    const size_t count = sizeof(inside) / sizeof(inside[0]);
    const struct addrinfo number = {.ai_flags = AI_NUMERICHOST};

    for (size_t i = 0; i < count + sizeof(outside) / sizeof(outside[0]); i++) {
        const char *text = i < count ? inside[i] : outside[i - count];
        struct addrinfo *address;

        assert_int_equal(getaddrinfo(text, NULL, &number, &address), 0);
        if (address_is_private(address->ai_addr) != (i < count)) {
            fail_msg("%s", text);
        }
        freeaddrinfo(address);
    }
}

static void a_certificate_must_be_right(void **state)
{
    char path[300];

    begin(true);
    assert_fails("good", BATON_EAUTH, "");
    (void)snprintf(path, sizeof(path), "%s/ca.pem", place.folder);
    place.rules.ca_file = path;
    assert_arrives("good");
    assert_fails("away", BATON_EAUTH, "redirected from https to http");
}

/* By http or https, from hosts that are compared whole. */
static void models_come_from_the_hosts_that_are_allowed(void **state)
{
    static const char *const hosts[] = {"one.example", ".two.example", "h", NULL};
    static const struct {
        const char *url;
        int code;
    } rows[] = {
        {"http://one.example/x", 0},
        {"HTTPS://u:p@ONE.example:8080/x?y", 0},
        {"http://a.one.example/x", BATON_EAUTH},
        {"http://two.example/x", 0},
        {"http://a.b.two.example/x", 0},
        {"http://notwo.example/x", BATON_EAUTH},
        {"http://two.example.evil/x", BATON_EAUTH},
        {"http://two.example@evil/x", BATON_EAUTH},
        {"http://evil/two.example", BATON_EAUTH},
        {"models.mpta", BATON_EINVAL},
        {"file:///etc/passwd", BATON_EINVAL},
        {"ftp://h/x", BATON_EINVAL},
        {"rtsp://h/x", BATON_EINVAL},
        {"concat:http://h/x", BATON_EINVAL},
        {"http:///x", BATON_EINVAL},
        {"http://h/a\nb", BATON_EINVAL},
    };
    struct url address;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (address_parse(&address, rows[i].url, hosts, NULL) != rows[i].code) {
            fail_msg("%s", rows[i].url);
        }
    }
    assert_int_equal(address_parse(&address, "https://anybody.example", NULL, NULL), 0);
}

static void a_signature_is_no_part_of_an_identity(void **state)
{
    static const struct {
        int64_t model_id;
        const char *url, *identity;
    } rows[] = {
        {7, "http://h/a.mpta", "7 http://h:80/a.mpta"},
        {7, "http://u:p@H:80/a.mpta?X-Amz-Signature=1#x", "7 http://h:80/a.mpta"},
        {8, "http://h/a.mpta?sig=2", "8 http://h:80/a.mpta"},
        {7, "https://h/a.mpta", "7 https://h:443/a.mpta"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *identity = NULL;
        assert_int_equal(address_identity(&identity, rows[i].model_id, rows[i].url, NULL), 0);
        if (strcasecmp(identity, rows[i].identity) != 0) {
            fail_msg("%s", identity);
        }
        free(identity);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_come_from_the_hosts_that_are_allowed),
        cmocka_unit_test(a_signature_is_no_part_of_an_identity),
        TEST(what_is_known_by_its_etag_is_not_fetched_again),
        TEST(what_is_too_large_is_known_by_its_etag_if_it_has_one),
        TEST(a_broken_fetch_goes_on_where_it_broke),
        TEST(what_breaks_or_leads_on_arrives_whole),
        TEST(an_empty_answer_is_an_empty_file),
        TEST(each_failure_says_what_it_is_and_no_secret),
        TEST(a_silent_server_is_not_waited_for),
        TEST(all_tries_together_have_a_limit),
        TEST(a_host_that_is_not_allowed_is_refused_also_by_redirect),
        TEST(a_full_disk_is_an_error),
        TEST(a_redirect_may_spell_an_inner_address_as_it_likes),
        cmocka_unit_test(private_networks_are_known_by_their_addresses),
        cmocka_unit_test_teardown(a_certificate_must_be_right, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
