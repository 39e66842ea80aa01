/* Messages between the nodes of a group, over real sockets; and one member that is this test, which
 * says and reads what it likes. */
#include "one_loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1024 * 1024, MANY = 20000 };

/* ---- Messages -------------------------------------------------------------------------------- */

struct reader_of_channel {
    int number; /* of its node */
    int count;
    char last[32];
    uint64_t next;    /* of numbered messages: the one that should come */
    int out_of_order; /* also those that are missing, and those that came twice */
    int damaged;
    int stops_after; /* messages; 0: never */
    int closes;      /* 1: its node, at the first message */
};

/* They outlive a test that fails, whose nodes are closed after it. */
static struct reader_of_channel readers[NODES], others[NODES];

static int set_up(void **state)
{
    memset(readers, 0, sizeof(readers));
    memset(others, 0, sizeof(others));
    return one_loop_set_up(state);
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct reader_of_channel *reader = userdata;
    struct node *node = &nodes[reader->number];

    reader->count++;
    (void)snprintf(reader->last, sizeof(reader->last), "%.*s", (int)(bytes < 31 ? bytes : 31),
                   (const char *)data);
    if (reader->stops_after > 0 && reader->count == reader->stops_after) {
        node->provider->ops->unsubscribe(node->provider, channel, reader);
    }
    if (reader->closes) {
        node->provider->ops->close(node->provider, on_node_closed, node);
    }
}

static void subscribe_with(int number, const char *channel, provider_message_cb on_message_fn,
                           struct reader_of_channel *reader)
{
    struct provider *provider = nodes[number].provider;

    reader->number = number;
    ASSERT_OK(provider->ops->subscribe(provider, channel, on_message_fn, reader, failure));
}

static void subscribe(int number, const char *channel, struct reader_of_channel *reader)
{
    subscribe_with(number, channel, on_message, reader);
}

static void unsubscribe(int number, const char *channel, struct reader_of_channel *reader)
{
    nodes[number].provider->ops->unsubscribe(nodes[number].provider, channel, reader);
}

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    *(int *)userdata += code == BATON_OK;
}

static void publish_bytes(int number, const char *channel, const void *data, size_t bytes)
{
    struct provider *provider = nodes[number].provider;
    int done = 0;

    ASSERT_OK(provider->ops->publish(provider, channel, data, bytes, on_published, &done, failure));
    assert_int_equal(done, 1);
}

static void publish(int number, const char *channel, const char *text)
{
    publish_bytes(number, channel, text, strlen(text));
}

static bool all_have_last(const char *text)
{
    for (int i = 0; i < NODES; i++) {
        if (strcmp(readers[i].last, text) != 0) {
            return false;
        }
    }
    return true;
}

/* Once a millisecond. */
static void publish_until_heard(int number, const char *text,
                                const struct reader_of_channel *reader)
{
    uint64_t published_ms = 0;

    AWAIT(strcmp(reader->last, text) == 0 ||
          (uv_now(&loop) != published_ms &&
           (published_ms = uv_now(&loop), publish(number, "news", text), false)));
}

/* ---- Between nodes --------------------------------------------------------------------------- */

static void check_all_hear_all_once(const char *with_mode)
{
    open_all(with_mode, "");
    for (int i = 0; i < NODES; i++) {
        subscribe(i, "news", &readers[i]);
    }
    subscribe(1, "news", &others[1]);
    subscribe(2, "olds", &others[2]);
    for (int i = 0; i < NODES; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "from %d", i);
        publish(i, "news", text);
        AWAIT(all_have_last(text));
    }
    publish(0, "news", "");
    publish(1, "unheard", "x");
    publish(0, "news", "last"); /* what came twice would have come before this one */
    AWAIT(all_have_last("last"));
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(readers[i].count, NODES + 2);
        assert_int_equal(counter(i, "messages_dropped"), 0);
    }
    assert_int_equal(others[1].count, NODES + 2);
    assert_int_equal(others[2].count, 0);
}

static void every_member_hears_every_message_once(void **state)
{
    check_all_hear_all_once("cluster");
}

static void so_it_is_with_named_elections(void **state)
{
    check_all_hear_all_once("group");
}

static void on_pattern(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct reader_of_channel *reader = userdata;
    const uint8_t *from = data;

    reader->count++;
    reader->damaged += bytes != MIB;
    for (size_t i = 1; i < bytes; i++) {
        if (from[i] != (uint8_t)((from[0] + i) % 251)) {
            reader->damaged++;
            return;
        }
    }
}

/* All publish at once, so that parts of many messages cross each other. */
static void check_large_messages(const char *with_settings)
{
    uint8_t *data = malloc(MIB);

    assert_non_null(data);
    open_all("cluster", with_settings);
    for (int i = 0; i < NODES; i++) {
        subscribe_with(i, "large", on_pattern, &readers[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < NODES; i++) {
            for (size_t at = 0; at < MIB; at++) {
                data[at] = (uint8_t)(((size_t)i + at) % 251);
            }
            publish_bytes(i, "large", data, MIB);
        }
    }
    free(data);
    for (int i = 0; i < NODES; i++) {
        AWAIT(readers[i].count == 3 * NODES);
        assert_int_equal(readers[i].damaged, 0);
    }
}

static void large_messages_arrive_whole(void **state)
{
    check_large_messages("");
}

static void large_messages_arrive_whole_under_tls(void **state)
{
    char path[128], text[160];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/key", folder);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(
        write(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", 65), 65);
    (void)close(fd);
    (void)snprintf(text, sizeof(text), "&key-file=%s", path);
    check_large_messages(text);
}

static void on_numbered(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct reader_of_channel *reader = userdata;
    uint64_t number = UINT64_MAX;

    reader->count++;
    if (bytes == sizeof(number)) {
        memcpy(&number, data, sizeof(number));
    }
    reader->out_of_order += number != reader->next;
    reader->next = number + 1;
}

static void many_small_messages_arrive_in_order(void **state)
{
    open_all("cluster", "");
    for (int i = 0; i < NODES; i++) {
        subscribe_with(i, "many", on_numbered, &readers[i]);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        publish_bytes(0, "many", &i, sizeof(i));
    }
    for (int i = 0; i < NODES; i++) {
        AWAIT(readers[i].count == MANY);
        assert_int_equal(readers[i].out_of_order, 0);
    }
}

/* ---- Subscribers ----------------------------------------------------------------------------- */

static void a_function_that_unsubscribes_is_not_called_again(void **state)
{
    open_all("cluster", "");
    others[1].stops_after = 2;
    subscribe(1, "news", &others[0]);
    subscribe(1, "news", &others[1]);
    subscribe(1, "news", &others[2]);
    unsubscribe(1, "news", &others[2]);
    unsubscribe(1, "news", &others[2]); /* nothing is there */
    for (int i = 0; i < 5; i++) {
        publish(0, "news", "x");
        publish(1, "news", "x"); /* its own too */
    }
    AWAIT(others[0].count == 10);
    assert_int_equal(others[1].count, 2);
    assert_int_equal(others[2].count, 0);
}

static void publish_again(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct reader_of_channel *reader = userdata;
    bool is_inside = reader->damaged++ > 0;

    reader->out_of_order += is_inside;
    if (reader->count++ < 100) {
        publish(reader->number, channel, "again");
    }
    reader->damaged = 0;
}

static void a_function_may_publish_to_itself(void **state)
{
    open_all("cluster", "");
    subscribe_with(0, "echo", publish_again, &readers[0]);
    publish(0, "echo", "first");
    AWAIT(readers[0].count == 101);
    assert_int_equal(readers[0].out_of_order, 0); /* never inside itself */
}

static void a_function_may_close_its_node(void **state)
{
    open_all("cluster", "");
    others[1].closes = 1;
    subscribe(1, "news", &others[0]);
    subscribe(1, "news", &others[1]); /* called first */
    publish(1, "news", "a");
    publish(1, "news", "b");
    AWAIT(nodes[1].is_closed);
    assert_int_equal(others[1].count, 1);
    assert_int_equal(others[0].count, 0);
    lease_cell_free(nodes[1].cell);
    nodes[1] = (struct node){0};
}

static void before_a_node_takes_part_it_may_listen_but_not_publish(void **state)
{
    char url[256];
    const struct provider_config config = {.loop = &loop, .url = url, .node = "n0"};
    struct provider_campaign campaign = {.election = "race", .eligible = true};
    struct baton_error error;
    struct node *node = &nodes[0];
    int done = 0;

    (void)snprintf(url, sizeof(url), "raft://127.0.0.1:%d?preset=fast&guardian=no&data=%s",
                   ports[0], folder);
    ASSERT_OK(provider_open(&node->provider, &config, failure));
    subscribe(0, "news", &readers[0]);
    assert_int_equal(
        node->provider->ops->publish(node->provider, "news", "x", 1, on_published, &done, &error),
        BATON_EUNAVAILABLE);
    assert_int_equal(done, 0);
    campaign.cell = node->cell = lease_cell_new();
    campaign.on_event = ignore_event;
    ASSERT_OK(node->provider->ops->campaign(&node->election, node->provider, &campaign, failure));
    publish(0, "news", "y");
    AWAIT(readers[0].count == 1);
}

/* ---- Away and back --------------------------------------------------------------------------- */

static void who_is_cut_off_misses_messages_and_hears_again(void **state)
{
    uint8_t *large = calloc(1, MIB);
    int missed;

    assert_non_null(large);
    open_all("cluster", "");
    for (int i = 0; i < NODES; i++) {
        subscribe(i, "news", &readers[i]);
    }
    raft_provider_isolate(nodes[2].provider, true);
    publish_bytes(0, "news", large, MIB); /* its parts are lost on the way */
    publish(0, "news", "missed");
    AWAIT(strcmp(readers[1].last, "missed") == 0);
    missed = readers[2].count;
    publish(2, "news", "alone");
    AWAIT(strcmp(readers[2].last, "alone") == 0); /* itself */
    assert_int_equal(missed, 0);
    assert_string_equal(readers[1].last, "missed");
    raft_provider_isolate(nodes[2].provider, false);
    publish_until_heard(0, "back", &readers[2]);
    publish_until_heard(2, "heard", &readers[1]);
    free(large);
}

/* A later process counts its messages from the beginning. */
static void a_member_that_starts_again_is_heard(void **state)
{
    open_all("cluster", "");
    subscribe(1, "news", &readers[1]);
    for (int i = 0; i < 100; i++) {
        publish(0, "news", "x");
    }
    AWAIT(readers[1].count == 100);
    close_node(0);
    publish(1, "news", "nobody is there");
    open_node(0);
    await_links();
    subscribe(0, "news", &readers[0]);
    publish(0, "news", "first");
    AWAIT(strcmp(readers[1].last, "first") == 0);
    publish(1, "news", "reply");
    AWAIT(strcmp(readers[0].last, "reply") == 0);
}

/* ---- A member that is this test -------------------------------------------------------------- */

/* Another reader gets all that one member does not read, the core's messages do not wait behind
 * it, and no more waits than may. */
static void a_member_that_does_not_read_holds_nobody_up(void **state)
{
    uint8_t *data = malloc(MIB);
    json_int_t sent;

    assert_non_null(data);
    for (size_t at = 0; at < MIB; at++) {
        data[at] = (uint8_t)(at % 251);
    }
    fake_begin();
    fake_greet(fake.fd, "");
    AWAIT(counter(0, "connects") == 1);
    open_node(2);
    AWAIT(counter(0, "connects") == 2 && counter(2, "connects") == 1 && one_leads());
    subscribe_with(2, "flood", on_pattern, &readers[0]);
    for (int i = 1; i <= 6; i++) {
        publish_bytes(0, "flood", data, MIB);
        AWAIT(readers[0].count == i);
    }
    free(data);
    assert_int_equal(readers[0].damaged, 0);
    assert_int_equal(counter(0, "messages_dropped"), 3); /* three are within the bound */
    sent = counter(0, "frames_sent");
    AWAIT(counter(0, "frames_sent") > sent + 50); /* the latest heartbeat waits for its turn */

    AWAIT(fake_read(fake.fd) && fake.messages == 3);
    assert_int_equal(fake.parts, 3 * 65);
    assert_true(fake.parts_before_heartbeat > 0 && fake.parts_before_heartbeat < 20);
    publish(0, "flood", "it takes messages again");
    AWAIT(fake_read(fake.fd) && fake.messages == 4);
    assert_int_equal(counter(0, "messages_dropped"), 3);
}

static void messages_take_the_connection_that_the_core_does_not(void **state)
{
    int dialed;

    fake_begin();
    fake_greet(fake.fd, "");
    AWAIT(counter(0, "connects") == 1);
    publish(0, "news", "the only one");
    AWAIT(fake_read(fake.fd) && fake.parts == 1 && fake.heartbeats > 0);
    dialed = fake_dial();
    buffer_clear(&fake.input);
    fake.theirs.id = 0;
    AWAIT(fake_read(dialed) && fake.theirs.id != 0); /* n0's greeting there */
    publish(0, "news", "the other one");
    AWAIT(fake_read(dialed) && fake.parts == 2);
    (void)close(dialed);
}

/* ---- What no node would say ------------------------------------------------------------------ */

static void say_raw(int fd, uint64_t parcel, uint32_t bytes, uint32_t offset, const void *data,
                    size_t part_bytes)
{
    const struct part part = {.parcel = parcel,
                              .parcel_bytes = bytes,
                              .offset = offset,
                              .data = data,
                              .bytes = part_bytes};
    struct buffer buffer;

    buffer_init(&buffer, FRAME_BYTES_MAX);
    frame_put_part(&buffer, frame_cluster_of("test"), &part);
    fake_write(fd, &buffer);
    buffer_fini(&buffer);
}

/* A message of channel "c" in two parts, the second one from `offset`. */
static void say(int fd, uint64_t parcel, const char *text, uint32_t offset)
{
    uint8_t data[64] = {1, 0, 'c'};
    uint32_t bytes = 3 + (uint32_t)strlen(text);

    memcpy(data + 3, text, strlen(text));
    say_raw(fd, parcel, bytes, 0, data, 4);
    say_raw(fd, parcel, bytes, offset, data + offset, bytes - offset);
}

static void parts_that_make_no_message_are_not_heard(void **state)
{
    uint8_t beginning[] = {1, 0, 'c', 'u'};
    int fd;

    fake_begin();
    subscribe(0, "c", &readers[0]);
    fd = fake_dial();
    say(fd, 1, "good", 4);
    AWAIT(strcmp(readers[0].last, "good") == 0);
    say(fd, 2, "overlaps", 3);
    say(fd, 3, "has a gap", 5);
    say_raw(fd, 4, MIB, 0, beginning, sizeof(beginning)); /* never finished */
    say(fd, 1, "has been heard", 4);
    say(fd, 5, "good too", 4);
    AWAIT(strcmp(readers[0].last, "good too") == 0);
    assert_int_equal(readers[0].count, 2);
    assert_int_equal(counter(0, "refused_content"), 0);
    assert_true(lease_cell_is_leader(nodes[0].cell, NULL));
    (void)close(fd);
}

static void who_is_no_member_is_not_heard(void **state)
{
    int fd;
    int stranger;

    fake_begin();
    subscribe(0, "c", &readers[0]);
    fake.name = "stranger";
    stranger = fake_dial();
    say(stranger, 1, "strange", 4);
    AWAIT(counter(0, "messages_dropped") == 1);
    fake.name = "n1";
    fd = fake_dial();
    say(fd, 1, "good", 4);
    AWAIT(readers[0].count > 0);
    assert_string_equal(readers[0].last, "good");
    (void)close(stranger);
    (void)close(fd);
}

/* The greeting of n1's next process waits until it is known that the one before is gone. */
static void what_comes_behind_a_greeting_that_waits_is_heard(void **state)
{
    uint8_t *data = calloc(1, MIB);
    int fd;

    assert_non_null(data);
    data[0] = 1;
    data[2] = 'c';
    fake_begin();
    subscribe(0, "c", &readers[0]);
    fake_greet(fake.fd, "");
    AWAIT(counter(0, "connects") == 1);
    fake.incarnation++;
    fd = fake_dial();
    for (uint32_t at = 0; at < MIB; at += MIB / 128) {
        say_raw(fd, 1, MIB, at, data + at, MIB / 128);
    }
    AWAIT(readers[0].count == 1);
    assert_int_equal(counter(0, "refused_length"), 0);
    (void)close(fd);
    free(data);
}

static void parts_with_wrong_bounds_end_the_connection(void **state)
{
    uint8_t data[64] = {1, 0, 'c', 'x'};
    uint8_t *longest = calloc(1, MIB);
    int fd;

    assert_non_null(longest);
    fake_begin();
    subscribe(0, "c", &readers[0]);
    fd = fake_dial();
    say_raw(fd, 1, 10, 8, data, 4);
    fake_await_refusal(fd, 1);
    fd = fake_dial();
    say_raw(fd, 1, UINT32_MAX, 0, data, 4);
    fake_await_refusal(fd, 2);
    fd = fake_dial();
    say_raw(fd, 1, MIB, 0, longest, MIB); /* in one part */
    fake_await_refusal(fd, 3);
    fd = fake_dial();
    data[1] = 2; /* a name beyond the parcel */
    say_raw(fd, 1, 4, 0, data, 4);
    fake_await_refusal(fd, 4);
    data[1] = 0;
    fd = fake_dial();
    say_raw(fd, 1, 4, 0, data, 4);
    AWAIT(readers[0].count == 1);
    assert_true(lease_cell_is_leader(nodes[0].cell, NULL));
    (void)close(fd);
    free(longest);
}

#define CHANNEL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, one_loop_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(every_member_hears_every_message_once),
        CHANNEL_TEST(so_it_is_with_named_elections),
        CHANNEL_TEST(large_messages_arrive_whole),
        CHANNEL_TEST(large_messages_arrive_whole_under_tls),
        CHANNEL_TEST(many_small_messages_arrive_in_order),
        CHANNEL_TEST(a_function_that_unsubscribes_is_not_called_again),
        CHANNEL_TEST(a_function_may_publish_to_itself),
        CHANNEL_TEST(a_function_may_close_its_node),
        CHANNEL_TEST(before_a_node_takes_part_it_may_listen_but_not_publish),
        CHANNEL_TEST(who_is_cut_off_misses_messages_and_hears_again),
        CHANNEL_TEST(a_member_that_starts_again_is_heard),
        CHANNEL_TEST(a_member_that_does_not_read_holds_nobody_up),
        CHANNEL_TEST(messages_take_the_connection_that_the_core_does_not),
        CHANNEL_TEST(parts_that_make_no_message_are_not_heard),
        CHANNEL_TEST(who_is_no_member_is_not_heard),
        CHANNEL_TEST(what_comes_behind_a_greeting_that_waits_is_heard),
        CHANNEL_TEST(parts_with_wrong_bounds_end_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
