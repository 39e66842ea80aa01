/* How a node is told what it is: every value checked, every error with the value and the way out.
 */
#include "cmocka_all.h"
#include "provider/raft/options.h"

#include <stdio.h>
#include <string.h>

static struct baton_error error;

static int parse(const char *url, struct raft_options *ret)
{
    struct provider_config config = {.url = url};
    memset(&error, 0, sizeof(error));
    return raft_options_parse(ret, &config, &error);
}

static void a_whole_url_is_understood(void **state)
{
    struct raft_options options;
    const struct raft_member *b;
    (void)state;
    assert_int_equal(parse("raft://127.0.0.1:7001?node=a&cluster=c&data=/tmp/a&preset=lan&"
                           "lease=1.5s&peers=a@127.0.0.1:7001,b%40127.0.0.1:7002*3%5E-2/witness,"
                           "c=[::1]:7003/learner",
                           &options),
                     0);
    assert_string_equal(options.node, "a");
    assert_int_equal(options.port, 7001);
    assert_int_equal(options.settings.lease.ns, SPAN_MS(1500).ns);
    assert_int_equal(options.settings.heartbeat_timeout.ns, SPAN_S(2).ns);
    assert_int_equal(options.members.count, 3);
    b = raft_configuration_find(&options.members, raft_id_of("b"));
    assert_int_equal(b->weight, 3);
    assert_int_equal(b->priority, -2);
    assert_int_equal(b->kind, RAFT_WITNESS);
    assert_int_equal(raft_configuration_find(&options.members, raft_id_of("c"))->weight, 0);
    raft_options_fini(&options);
}

static void a_node_that_lists_no_peers_stands_alone(void **state)
{
    struct raft_options options;
    (void)state;
    assert_int_equal(parse("raft://127.0.0.1:7001?node=a&data=/tmp/a&weight=4", &options), 0);
    assert_int_equal(options.members.count, 1);
    assert_int_equal(options.members.members[0].weight, 4);
    assert_string_equal(options.members.members[0].address, "127.0.0.1:7001");
    raft_options_fini(&options);
}

static void every_wrong_value_is_named(void **state)
{
    static const struct {
        const char *url;
        int code;
        const char *says;
    } rows[] = {
        {"raft://127.0.0.1:1?node=a", BATON_EINVAL, "data"},
        {"raft://127.0.0.1:99999?node=a&data=d", BATON_EINVAL, "99999"},
        {"raft://127.0.0.1?node=a&data=d", BATON_EINVAL, "HOST:PORT"},
        {"raft://127.0.0.1:1?node=a%20b&data=d", BATON_EINVAL, "a b"},
        {"raft://127.0.0.1:1?node=a&data=d&preset=slow", BATON_ENOENT, "slow"},
        {"raft://127.0.0.1:1?node=a&data=d&lease=never", BATON_EINVAL, "never"},
        {"raft://127.0.0.1:1?node=a&data=d&lease=9s", BATON_EUNSAFE, "lease <= heartbeat timeout"},
        {"raft://127.0.0.1:1?node=a&data=d&proofs=some", BATON_EINVAL, "some"},
        {"raft://127.0.0.1:1?node=a&data=d&guardian=perhaps", BATON_EINVAL, "perhaps"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b", BATON_EINVAL, "NAME@HOST:PORT"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1*x", BATON_EINVAL, "\"x\""},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1/boss", BATON_EINVAL, "boss"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1,b@h:2", BATON_EINVAL, "\"b\""},
        {"raft://127.0.0.1:1?node=a&data=d&peers=@/nowhere", BATON_ENOENT, "/nowhere"},
        {"raft://0.0.0.0:1?node=a&data=d", BATON_EAUTH, "0.0.0.0"},
        {"raft://127.0.0.1:1?node=a&data=d&kind=witness", BATON_EINVAL, "nobody may lead"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raft_options options;
        int code = parse(rows[i].url, &options);
        if (code != rows[i].code || !strstr(error.message, rows[i].says)) {
            fail_msg("%s: %d %s", rows[i].url, code, error.message);
        }
    }
}

static void beyond_loopback_something_must_protect(void **state)
{
    struct raft_options options;
    (void)state;
    assert_int_equal(parse("raft://0.0.0.0:1?node=a&data=d&insecure=on", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse("raft://0.0.0.0:1?node=a&data=d&key-file=/k", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse("raft://[::1]:1?node=a&data=d", &options), 0);
    raft_options_fini(&options);
}

static void a_url_is_shown_without_its_secrets(void **state)
{
    char shown[256];
    (void)state;
    provider_mask_url("redis://user:hunter2@h:1/0?password=hunter2&x=1", shown, sizeof(shown));
    assert_null(strstr(shown, "hunter2"));
    assert_non_null(strstr(shown, "user:***@h:1/0"));
    assert_non_null(strstr(shown, "x=1"));
    provider_mask_url("redis://hunter2@h:1", shown, sizeof(shown));
    assert_non_null(strstr(shown, "@h:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_url_is_understood),
        cmocka_unit_test(a_node_that_lists_no_peers_stands_alone),
        cmocka_unit_test(every_wrong_value_is_named),
        cmocka_unit_test(beyond_loopback_something_must_protect),
        cmocka_unit_test(a_url_is_shown_without_its_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
