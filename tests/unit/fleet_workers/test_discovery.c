/* Workers that URLs name: the addresses of localhost, and a name server's answers that are ours. */
#include "fleet/workers/discovery.h"

#include "cmocka_all.h"

#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

/* ---- The name server ------------------------------------------------------------------------- */

int __wrap_res_nquery(res_state resolver, const char *name, int class, int type,
                      unsigned char *answer, int bytes);

static uint8_t packet[512]; /* its answer; */
static int packet_bytes;    /* -1: none */
static uv_mutex_t lock;     /* it is asked on a thread of its own */

int __wrap_res_nquery(res_state resolver, const char *name, int class, int type,
                      unsigned char *answer, int bytes)
{
    int given;

    if (class != 1 || type != 33 || bytes < (int)sizeof(packet)) {
        abort();
    }
    resolver->res_h_errno = HOST_NOT_FOUND;
    uv_mutex_lock(&lock);
    given = packet_bytes;
    memcpy(answer, packet, sizeof(packet));
    uv_mutex_unlock(&lock);
    return given;
}

static void answer_nothing(void)
{
    uv_mutex_lock(&lock);
    packet_bytes = -1;
    uv_mutex_unlock(&lock);
}

static void put(const void *data, size_t bytes)
{
    memcpy(packet + packet_bytes, data, bytes);
    packet_bytes += (int)bytes;
}

static void put_16(unsigned value)
{
    const uint8_t data[2] = {(uint8_t)(value >> 8), (uint8_t)value};
    put(data, 2);
}

static void put_name(const char *name)
{
    while (*name != '\0') {
        size_t bytes = strcspn(name, ".");
        const uint8_t length = (uint8_t)bytes;
        put(&length, 1);
        put(name, bytes);
        name += bytes + (name[bytes] == '.');
    }
    put("", 1);
}

/* A response without a question, with one SRV record for each target; NULL: one that is too short.
 */
static void answer(const char *const *targets, const unsigned *ports, size_t count)
{
    uv_mutex_lock(&lock);
    packet_bytes = 0;
    put_16(1);
    put_16(0x8180);
    put_16(0);
    put_16((unsigned)count);
    put_16(0);
    put_16(0);
    for (size_t i = 0; i < count; i++) {
        put_name("_w._tcp.example");
        put_16(33);
        put_16(1);
        put("\0\0\0\012", 4);
        if (targets[i] == NULL) {
            put_16(2);
            put_16(0);
            continue;
        }
        put_16((unsigned)(6 + strlen(targets[i]) + 2));
        put_16(0);
        put_16(0);
        put_16(ports[i]);
        put_name(targets[i]);
    }
    uv_mutex_unlock(&lock);
}

static void answer_garbage(void)
{
    uv_mutex_lock(&lock);
    memset(packet, 0xff, sizeof(packet));
    packet_bytes = sizeof(packet);
    uv_mutex_unlock(&lock);
}

/* ---- The test -------------------------------------------------------------------------------- */

struct world {
    uv_loop_t loop;
    struct discovery *discovery;
    unsigned changes, failures;
    bool is_whole;
    char found[1024]; /* "id url source, " of each */
};

static void on_change(void *userdata, const struct discovered *workers, size_t count, bool is_whole)
{
    struct world *world = userdata;
    size_t used = 0;

    world->found[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(world->found + used, sizeof(world->found) - used, "%s %s %s, ",
                                 workers[i].id, workers[i].url, workers[i].source);
    }
    world->is_whole = is_whole;
    world->changes++;
}

static void on_failed(void *userdata, const char *url, const struct baton_error *error)
{
    struct world *world = userdata;

    assert_non_null(url);
    assert_int_equal(error->code, BATON_EUNAVAILABLE);
    world->failures++;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    (void)uv_loop_init(&world->loop);
    answer_nothing();
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    discovery_close(world->discovery);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void look(struct world *world, const char *const *urls, size_t count)
{
    const struct discovery_config config = {.loop = &world->loop,
                                            .urls = urls,
                                            .count = count,
                                            .every = SPAN_MS(1),
                                            .on_change = on_change,
                                            .on_failed = on_failed,
                                            .userdata = world};

    assert_int_equal(discovery_open(&world->discovery, &config, NULL), 0);
}

static void run_to_change(struct world *world, unsigned change)
{
    while (world->changes < change) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
}

static void each_static_url_is_a_worker_once(void **state)
{
    static const char *const urls[] = {"wss://b.example:8443/", "ws://10.0.0.2:8000", "ws://c/",
                                       "ws://10.0.0.2:8000/"};
    struct world *world = *state;

    look(world, urls, 4);
    assert_int_equal(world->changes, 0);
    run_to_change(world, 1);
    assert_string_equal(world->found, "10.0.0.2-8000 ws://10.0.0.2:8000 static, "
                                      "b.example-8443 wss://b.example:8443/ static, "
                                      "c-80 ws://c/ static, ");
    assert_true(world->is_whole);
}

static void without_urls_the_set_is_empty_and_whole(void **state)
{
    struct world *world = *state;

    look(world, NULL, 0);
    run_to_change(world, 1);
    assert_string_equal(world->found, "");
    assert_true(world->is_whole);
}

static void a_name_stands_for_its_ipv4_addresses(void **state)
{
    static const char *const urls[] = {"dns+ws://localhost:8000"};
    struct world *world = *state;

    look(world, urls, 1);
    run_to_change(world, 1);
    assert_string_equal(world->found, "127.0.0.1-8000 ws://127.0.0.1:8000/ dns, ");
}

static void a_service_stands_for_its_targets_with_their_ports(void **state)
{
    static const char *const urls[] = {"srv+wss://_w._tcp.example", "ws://a:1/"};
    static const char *const targets[] = {"w2.example", "w1.example", "w3.example"};
    static const unsigned ports[] = {8002, 8001, 8003};
    struct world *world = *state;

    answer(targets, ports, 2);
    look(world, urls, 2);
    run_to_change(world, 1);
    assert_string_equal(world->found, "a-1 ws://a:1/ static, "
                                      "w1.example-8001 wss://w1.example:8001/ dns, "
                                      "w2.example-8002 wss://w2.example:8002/ dns, ");
    answer(targets + 1, ports + 1, 2);
    run_to_change(world, 2);
    assert_string_equal(world->found, "a-1 ws://a:1/ static, "
                                      "w1.example-8001 wss://w1.example:8001/ dns, "
                                      "w3.example-8003 wss://w3.example:8003/ dns, ");
}

static void a_name_that_fails_keeps_its_workers(void **state)
{
    static const char *const urls[] = {"srv+ws://_w._tcp.example"};
    static const char *const targets[] = {"w1.example"};
    static const unsigned ports[] = {8001};
    struct world *world = *state;

    answer(targets, ports, 1);
    look(world, urls, 1);
    run_to_change(world, 1);
    answer_nothing();
    while (world->failures < 4) { /* of eight looks */
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    answer(targets, ports, 0);
    while (world->failures < 5) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(world->changes, 1);
    assert_non_null(strstr(world->found, "w1.example-8001"));
}

static void a_set_with_a_name_that_was_never_resolved_is_not_whole(void **state)
{
    static const char *const urls[] = {"ws://a:1/", "srv+ws://_w._tcp.example"};
    static const char *const targets[] = {"w1.example"};
    static const unsigned ports[] = {8001};
    struct world *world = *state;

    look(world, urls, 2);
    run_to_change(world, 1);
    assert_false(world->is_whole);
    assert_string_equal(world->found, "a-1 ws://a:1/ static, ");
    answer(targets, ports, 1);
    run_to_change(world, 2);
    assert_true(world->is_whole);
}

static void an_answer_that_is_cut_or_garbage_names_no_worker(void **state)
{
    static const char *const urls[] = {"srv+ws://_w._tcp.example"};
    static const char *const targets[] = {"w1.example"};
    static const unsigned ports[] = {8001};
    struct world *world = *state;

    answer(targets, ports, 1);
    uv_mutex_lock(&lock); /* the question of the test before may still be under way */
    packet_bytes -= 8;
    uv_mutex_unlock(&lock);
    look(world, urls, 1);
    run_to_change(world, 1);
    assert_string_equal(world->found, "");
    assert_false(world->is_whole);
    answer_garbage();
    while (world->failures < 3) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_string_equal(world->found, "");
}

static void a_record_that_is_too_short_names_no_worker(void **state)
{
    static const char *const urls[] = {"srv+ws://_w._tcp.example"};
    static const char *const targets[] = {NULL, "w1.example"};
    static const unsigned ports[] = {0, 8001};
    struct world *world = *state;

    answer(targets, ports, 2);
    look(world, urls, 1);
    run_to_change(world, 1);
    assert_string_equal(world->found, "w1.example-8001 ws://w1.example:8001/ dns, ");
}

/* One that the state refuses would be written again with each plan, and no plan would end. */
static void a_record_that_makes_no_url_names_no_worker(void **state)
{
    static const char *const urls[] = {"srv+ws://_w._tcp.example"};
    static const char *const targets[] = {"w0.example", "a b.example", "a/b.example", "w1.example"};
    static const unsigned ports[] = {0, 8001, 8001, 8001};
    struct world *world = *state;

    answer(targets, ports, 4);
    look(world, urls, 1);
    run_to_change(world, 1);
    assert_string_equal(world->found, "w1.example-8001 ws://w1.example:8001/ dns, ");
}

static void closing_during_a_look_is_fine(void **state)
{
    static const char *const urls[] = {"dns+ws://localhost:8000", "srv+ws://_w._tcp.example"};
    struct world *world = *state;
    unsigned changes;

    look(world, urls, 2);
    (void)uv_run(&world->loop, UV_RUN_NOWAIT); /* both requests are under way, or the next two */
    changes = world->changes;
    discovery_close(world->discovery);
    world->discovery = NULL;
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(world->changes, changes);
}

static void an_id_is_made_of_safe_bytes_and_fits(void **state)
{
    static const struct {
        const char *url, *id;
    } cases[] = {
        {"ws://worker-1:8000/", "worker-1-8000"},
        {"ws://worker-1:8000", "worker-1-8000"},
        {"ws://[::1]:8000/", "--1-8000-"},
        {"ws://a/x", "a-80-"},
        {"ws://a.very.long.name.of.a.worker.that.does.not.fit.example:8000/",
         "a.very.long.name.of.a.worker.th-"},
        {"no URL", "worker-"},
    };
    char id[DISCOVERY_ID_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t bytes = strlen(cases[i].id);
        discovery_id(cases[i].url, id);
        if (strncmp(id, cases[i].id, bytes) != 0 ||
            strlen(id) != bytes + (cases[i].id[bytes - 1] == '-' ? 16 : 0)) {
            fail_msg("%s: %s", cases[i].url, id);
        }
    }
}

static void what_names_no_worker_is_refused(void **state)
{
    static const char *const urls[] = {
        "http://a/",   "a:8000",     "",           "ws://u:p@a",   "dns+wss://a:443", "mdns+ws://a",
        "ws://a/?b=c", "ws://a/b#c", "ws://a:0/b", "dns+ws://a/b", "srv+ws://a/b"};

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct baton_error error = {0};
        if (discovery_check(urls[i], &error) != BATON_EINVAL || strstr(error.message, ":p")) {
            fail_msg("%s: %s", urls[i], error.message);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_static_url_is_a_worker_once),
        TEST(without_urls_the_set_is_empty_and_whole),
        TEST(a_name_stands_for_its_ipv4_addresses),
        TEST(a_service_stands_for_its_targets_with_their_ports),
        TEST(a_name_that_fails_keeps_its_workers),
        TEST(a_set_with_a_name_that_was_never_resolved_is_not_whole),
        TEST(an_answer_that_is_cut_or_garbage_names_no_worker),
        TEST(a_record_that_is_too_short_names_no_worker),
        TEST(a_record_that_makes_no_url_names_no_worker),
        TEST(closing_during_a_look_is_fine),
        TEST(an_id_is_made_of_safe_bytes_and_fits),
        TEST(what_names_no_worker_is_refused),
    };

    (void)uv_mutex_init(&lock);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
