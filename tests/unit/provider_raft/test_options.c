/* A node's settings: every value is checked, and every error names the value and the way out. */
#include "cmocka_all.h"
#include "provider/raft/node.h"
#include "provider/raft/options.h"

#include <stdio.h>
#include <string.h>

#define FAR_PEER "raft://127.0.0.1:1?node=a&data=d&peers=c@localhost:2,b@10.0.0.2:1"

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
    assert_int_equal(parse("raft://127.0.0.1:7001?node=a&data=/tmp/a&weight=4", &options), 0);
    assert_int_equal(options.members.count, 1);
    assert_int_equal(options.members.members[0].weight, 4);
    assert_string_equal(options.members.members[0].address, "127.0.0.1:7001");
    raft_options_fini(&options);
}

static void a_member_is_on_the_host_of_its_address_or_the_one_that_is_given(void **state)
{
    struct raft_options options;
    char host[RAFT_ADDRESS_MAX];
    assert_int_equal(parse("raft://127.0.0.1:1?node=a&data=d&insecure=on&peers=b@[fd00::2]:7,"
                           "c@db3:7&fence-hosts=a=rack-1,c=rack-2",
                           &options),
                     0);
    for (size_t i = 0; i < options.members.count; i++) {
        const struct raft_member *member = &options.members.members[i];
        raft_options_host(&options, member, host);
        assert_string_equal(host, strcmp(member->name, "a") == 0   ? "rack-1"
                                  : strcmp(member->name, "b") == 0 ? "fd00::2"
                                                                   : "rack-2");
    }
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
        {"raft://127.0.0.1:1?node=a&data=d&peers=b", BATON_EINVAL, "NAME=HOST:PORT"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1*x", BATON_EINVAL, "'x'"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1/boss", BATON_EINVAL, "boss"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:1,b@h:2", BATON_EINVAL, "given twice"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@h:0", BATON_EINVAL, "port 0"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@::1:7400", BATON_EINVAL, "[ADDR]:PORT"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@fe80::1", BATON_EINVAL, "[ADDR]:PORT"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=b@[::1", BATON_EINVAL, "[ADDR]:PORT"},
        {"raft://::1:1?node=a&data=d", BATON_EINVAL, "[ADDR]:PORT"},
        {"raft://name:1?node=a&data=d&insecure=on", BATON_EINVAL, "numeric address"},
        {"raft://127.0.0.1:1?node=a&data=d&peers=@/nowhere", BATON_ENOENT, "/nowhere"},
        {"raft://0.0.0.0:1?node=a&data=d", BATON_EAUTH, "0.0.0.0"},
        {"raft://127.0.0.1:1?node=a&data=d&kind=witness", BATON_EINVAL, "nobody may lead"},
        {"raft://0.0.0.0:7?node=a&data=d&key-file=/k&peers=b@h:1", BATON_EINVAL, "a=HOST:7"},
        {"raft://[::]:7?node=a&data=d&key-file=/k", BATON_EINVAL, "a=HOST:7"},
        {"raft://127.0.0.1:1?node=a&data=d&elections-per-hour-max=256", BATON_EINVAL, "0 to 255"},
        {"raft://127.0.0.1:1?node=a&data=d&fence=/bin/true", BATON_EINVAL, "fence-after"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-after=50ms", BATON_EINVAL, "50 ms"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-after=2s&fence=true", BATON_EINVAL, "whole path"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-after=2s&fence=/nowhere", BATON_EINVAL,
         "/nowhere"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-timeout=20m", BATON_EINVAL, "1200 s"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-hosts=a", BATON_EINVAL, "MEMBER=HOST"},
        {"raft://127.0.0.1:1?node=a&data=d&fence-hosts=a=b%0Ac", BATON_EINVAL, "fence-hosts"},
    };
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
    assert_int_equal(
        parse("raft://0.0.0.0:1?node=a&data=d&insecure=on&peer=a@10.0.0.1:1", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse("raft://0.0.0.0:1?node=a&data=d&key-file=/k&join=on", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse("raft://[::1]:1?node=a&data=d", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse(FAR_PEER, &options), BATON_EAUTH);
    assert_non_null(strstr(error.message, "b@10.0.0.2:1"));
    assert_int_equal(parse(FAR_PEER "&insecure=on", &options), 0);
    raft_options_fini(&options);
    assert_int_equal(parse(FAR_PEER "&key-file=/k", &options), 0);
    raft_options_fini(&options);
}

static void a_setting_that_is_none_is_refused_with_what_is_meant(void **state)
{
    static const char *const rows[][2] = {
        {"peerz=b@127.0.0.1:2", "\"peerz\": raft: has no such setting; is \"peers\" meant?"},
        {"Peers=b@127.0.0.1:2", "is \"peers\" meant?"},
        {"heartbeat=1s", "is \"heartbeat-interval\" meant?"},
        {"quorum=majority", "it has node, cluster, group, data, peers"},
        {"group=g&cluster=c", "group \"g\": the cluster is called \"c\"; leave `cluster` out"},
        {"group=a%20b", "cluster \"a b\": only letters"},
        {"lease=1s&lease=2s", "lease: is given twice"},
        {"lease=30", "lease: '30': must be a duration with its unit"},
        {"lease=1s#&peers=b@127.0.0.1:2", "%23"},
        {"peers=", "peers: is empty"},
        {"peers=,%20", "peers: contains no member"},
        {"data=", "data: is "},
        {"kind=learner&peers=a@127.0.0.1:1,b@127.0.0.1:2", "kind, weight and priority"},
        {"weight=2&peers=a@127.0.0.1:1,b@127.0.0.1:2", "kind, weight and priority"},
        {"priority=0&peers=a@127.0.0.1:1,b@127.0.0.1:2", "kind, weight and priority"},
        {"join=yes&kind=learner", "join: kind, weight and priority"},
        {"join=yes&weight=2", "join: kind, weight and priority"},
        {"join=yes&priority=0", "join: kind, weight and priority"},
        {"tls-cert=a%00b", "tls-cert: "},
        {"heartbeat-interval=1s&election-timeout=75", "election-timeout: '75'"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raft_options options;
        char url[256];
        snprintf(url, sizeof(url), "raft://127.0.0.1:1?node=a&%s%s",
                 strstr(rows[i][0], "data=") ? "" : "data=d&", rows[i][0]);
        int code = parse(url, &options);
        if (code != BATON_EINVAL || !strstr(error.message, rows[i][1])) {
            fail_msg("%s: %d %s", rows[i][0], code, error.message);
        }
    }
}

static void an_address_that_is_none_is_refused(void **state)
{
    static const char *const urls[] = {"raft:127.0.0.1:1?node=a&data=d",
                                       "raft://127.0.0.1:1/0?node=a&data=d"};
    struct raft_options options;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_int_equal(parse(urls[i], &options), BATON_EINVAL);
        assert_non_null(strstr(error.message, "raft://HOST:PORT"));
    }
}

/* It would count as not given, and the node lead alone. */
static void a_value_without_room_is_refused(void **state)
{
    static char peers[70 * 1024];
    static char name[100];
    const struct provider_option rows[][2] = {{{"data", "d"}, {"peers", peers}},
                                              {{"data", "d"}, {"cluster", name}}};
    struct raft_options options;

    memset(name, 'x', sizeof(name) - 1);
    for (size_t used = 0; used + 20 < sizeof(peers);) {
        used += (size_t)snprintf(peers + used, sizeof(peers) - used, "n%zu@127.0.0.1:1,", used);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct provider_config config = {
            .url = "raft://127.0.0.1:1?node=a", .options = rows[i], .option_count = 2};
        assert_int_equal(raft_options_parse(&options, &config, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, rows[i][1].key));
        assert_non_null(strstr(error.message, "longer than"));
    }
}

/* The flag is --peer: under that name the setting may be given again and again. */
static void peers_may_be_given_one_by_one(void **state)
{
    struct raft_options options;

    assert_int_equal(parse("raft://127.0.0.1:1?node=a&data=d&peer=b=127.0.0.1:2&"
                           "peer=c@127.0.0.1:3,d@127.0.0.1:4&peers=e@127.0.0.1:5",
                           &options),
                     0);
    assert_int_equal(options.members.count, 5);
    raft_options_fini(&options);
}

/* A file that names peers keeps them when its node is repaired. */
static void whoever_joins_takes_no_peers_from_its_own_file(void **state)
{
    struct raft_options options;

    assert_int_equal(parse("raft://127.0.0.1:1?node=c&data=d&join=yes&"
                           "peers=b@127.0.0.1:2,a@127.0.0.1:3",
                           &options),
                     0);
    assert_int_equal(options.members.count, 0);
    raft_options_fini(&options);
    assert_int_equal(parse("raft://127.0.0.1:1?node=c&data=d&join=yes&peers=b@", &options),
                     BATON_EINVAL);
}

static void settings_given_as_such_beat_the_url(void **state)
{
    const struct provider_option given[] = {{"data", "here"}, {"peers", "b@127.0.0.1:2"}};
    struct provider_config config = {
        .url = "raft://127.0.0.1:1?node=a&data=there&peer=c@127.0.0.1:3&peer=d@127.0.0.1:4",
        .options = given,
        .option_count = 2};
    struct raft_options options;

    assert_int_equal(raft_options_parse(&options, &config, &error), 0);
    assert_string_equal(options.data, "here");
    assert_int_equal(options.members.count, 2);
    assert_non_null(raft_configuration_find(&options.members, raft_id_of("b")));
    raft_options_fini(&options);
}

/* Else a follower that stands still for a moment loses its connection, time and again. */
static void a_connection_has_room_for_all_appends_that_may_be_in_flight(void **state)
{
    struct raft_options options;

    assert_int_equal(parse("raft://127.0.0.1:1?node=a&data=d", &options), BATON_OK);
    assert_true((uint64_t)options.settings.inflight_max * options.settings.message_bytes_max +
                    NODE_QUEUE_BYTES_DUE + NODE_PARCELS_BYTES_MAX <
                NODE_QUEUE_BYTES_MAX);
    raft_options_fini(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_url_is_understood),
        cmocka_unit_test(a_node_that_lists_no_peers_stands_alone),
        cmocka_unit_test(a_member_is_on_the_host_of_its_address_or_the_one_that_is_given),
        cmocka_unit_test(every_wrong_value_is_named),
        cmocka_unit_test(beyond_loopback_something_must_protect),
        cmocka_unit_test(a_setting_that_is_none_is_refused_with_what_is_meant),
        cmocka_unit_test(an_address_that_is_none_is_refused),
        cmocka_unit_test(a_value_without_room_is_refused),
        cmocka_unit_test(peers_may_be_given_one_by_one),
        cmocka_unit_test(whoever_joins_takes_no_peers_from_its_own_file),
        cmocka_unit_test(settings_given_as_such_beat_the_url),
        cmocka_unit_test(a_connection_has_room_for_all_appends_that_may_be_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
