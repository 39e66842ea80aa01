/* What members say of themselves, in a group that is one election. */
#include "one_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
    char metadata[64]; /* "": none */
    bool is_cordoned;
    bool is_there;
};

struct look {
    const char *name;
    struct seen seen;
};

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct look *look = userdata;

    assert_int_equal(code, BATON_OK);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(members[i].name, look->name) == 0) {
            look->seen.is_there = true;
            look->seen.is_cordoned = members[i].is_cordoned;
            (void)snprintf(look->seen.metadata, sizeof(look->seen.metadata), "%s",
                           members[i].metadata ? members[i].metadata : "");
        }
    }
}

static struct seen seen_by(int number, const char *name)
{
    struct provider_election *election = nodes[number].election;
    struct look look = {.name = name};

    ASSERT_OK(election->ops->members(election, on_members, &look, failure));
    assert_true(look.seen.is_there);
    return look.seen;
}

static bool sees(int number, const char *name, const char *metadata)
{
    return strcmp(seen_by(number, name).metadata, metadata) == 0;
}

static bool all_see(const char *name, const char *metadata)
{
    return sees(0, name, metadata) && sees(1, name, metadata) && sees(2, name, metadata);
}

static void set(int number, const char *metadata)
{
    struct provider_election *election = nodes[number].election;

    ASSERT_OK(election->ops->set_metadata(election, metadata, failure));
}

static void all_see_what_a_member_says_and_that_it_changes(void **state)
{
    open_all("cluster", "");
    AWAIT(all_see("n0", ""));
    set(0, "{\"load\":1}");
    assert_true(sees(0, "n0", "{\"load\":1}"));
    AWAIT(all_see("n0", "{\"load\":1}"));
    for (int i = 0; i < 100; i++) {
        set(0, i % 2 ? "{\"load\":2}" : "{\"load\":3}");
    }
    AWAIT(all_see("n0", "{\"load\":2}"));
    assert_true(all_see("n1", "") && all_see("n2", ""));
    set(0, NULL);
    AWAIT(all_see("n0", ""));
}

static void a_member_that_starts_again_says_it_anew(void **state)
{
    open_all("cluster", "");
    set(1, "{\"life\":1}");
    AWAIT(all_see("n1", "{\"life\":1}"));
    close_node(1);
    assert_true(sees(0, "n1", "{\"life\":1}")); /* its latest word */
    open_node_with(1, "{\"life\":2}");
    AWAIT(all_see("n1", "{\"life\":2}"));
    close_node(1);
    open_node(1);
    AWAIT(all_see("n1", ""));
    assert_true(sees(1, "n0", ""));
    set(0, "{}");
    AWAIT(sees(1, "n0", "{}"));
}

static void who_is_cut_off_says_it_when_it_is_back(void **state)
{
    open_all("cluster", "");
    raft_provider_isolate(nodes[2].provider, true);
    set(2, "{\"alone\":true}");
    set(0, "{\"two\":true}");
    AWAIT(sees(1, "n0", "{\"two\":true}"));
    assert_true(sees(1, "n2", ""));
    raft_provider_isolate(nodes[2].provider, false);
    AWAIT(sees(1, "n2", "{\"alone\":true}"));
    set(2, "{\"alone\":false}");
    AWAIT(all_see("n2", "{\"alone\":false}"));
}

static void a_cordon_shows_beside_the_metadata(void **state)
{
    struct provider_election *election;

    open_all("cluster", "");
    election = nodes[2].election;
    set(2, "{\"a\":1}");
    ASSERT_OK(election->ops->set_eligible(election, false, failure));
    AWAIT(seen_by(0, "n2").is_cordoned && seen_by(1, "n2").is_cordoned);
    AWAIT(all_see("n2", "{\"a\":1}"));
    ASSERT_OK(election->ops->set_eligible(election, true, failure));
    AWAIT(!seen_by(0, "n2").is_cordoned && !seen_by(1, "n2").is_cordoned);
}

static void metadata_that_are_too_long_are_refused_and_change_nothing(void **state)
{
    struct baton_error error;
    char text[5000];

    open_all("cluster", "");
    set(0, "{\"a\":1}");
    memset(text, 'x', sizeof(text));
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + 4095, "\"}", 3);
    assert_int_equal(nodes[0].election->ops->set_metadata(nodes[0].election, text, &error),
                     BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "4097"));
    assert_true(sees(0, "n0", "{\"a\":1}"));
    memcpy(text + 4094, "\"}", 3);
    set(0, text);
    AWAIT(strncmp(seen_by(1, "n0").metadata, "{\"a\":\"xxx", 9) == 0);
}

/* ---- What no member would say ---------------------------------------------------------------- */

static void describe(int fd, uint64_t number, uint8_t flags, const char *text)
{
    struct buffer buffer;

    buffer_init(&buffer, FRAME_BYTES_MAX);
    frame_put_description(&buffer, frame_cluster_of("test"), number, flags, text);
    fake_write(fd, &buffer);
    buffer_fini(&buffer);
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    ++*(int *)userdata;
}

/* Waits until n0 has read all that was said there. */
static void await_all_is_read(int fd)
{
    static int heard;
    static uint64_t number;
    struct provider *provider = nodes[0].provider;
    const struct part part = {.parcel = ++number, .parcel_bytes = 4, .data = "\1\0cx", .bytes = 4};
    struct buffer buffer;

    heard = 0;
    ASSERT_OK(provider->ops->subscribe(provider, "c", on_message, &heard, failure));
    buffer_init(&buffer, FRAME_BYTES_MAX);
    frame_put_part(&buffer, frame_cluster_of("test"), &part);
    fake_write(fd, &buffer);
    buffer_fini(&buffer);
    AWAIT(heard > 0);
    provider->ops->unsubscribe(provider, "c", &heard);
}

static void only_the_latest_description_of_the_latest_process_is_shown(void **state)
{
    int fd;

    fake_begin();
    fd = fake_dial();
    describe(fd, 5, 0, "{\"a\":1}");
    AWAIT(sees(0, "n1", "{\"a\":1}"));
    describe(fd, 4, 0, "{\"earlier\":1}");
    await_all_is_read(fd);
    assert_true(sees(0, "n1", "{\"a\":1}"));
    (void)close(fd);
    fake.incarnation++;
    fd = fake_dial();
    fake.descriptions = 0;
    buffer_clear(&fake.input);
    AWAIT(fake_read(fd) && fake.descriptions > 0); /* n0's: the new process is accepted */
    assert_true(sees(0, "n1", ""));
    describe(fd, 1, 0, "{\"a\":2}");
    AWAIT(sees(0, "n1", "{\"a\":2}"));
    (void)close(fd);
}

static void what_is_no_description_is_not_shown(void **state)
{
    char *text = calloc(1, 10000);
    int fd;

    assert_non_null(text);
    fake_begin();
    fd = fake_dial();
    describe(fd, 5, 0, "{\"a\":1}");
    AWAIT(sees(0, "n1", "{\"a\":1}"));
    describe(fd, 7, 0xff, "[1]"); /* no object, and flags that mean nothing */
    AWAIT(sees(0, "n1", ""));
    describe(fd, 8, 0, "{\"a\":3}");
    AWAIT(sees(0, "n1", "{\"a\":3}"));
    describe(fd, 9, 0, "{\"a\":");
    AWAIT(sees(0, "n1", ""));
    assert_int_equal(counter(0, "refused_content"), 0);
    memset(text, 'x', 9999);
    describe(fd, 10, 0, text);
    fake_await_refusal(fd, 1);
    assert_true(lease_cell_is_leader(nodes[0].cell, NULL));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE_LOOP_TEST(all_see_what_a_member_says_and_that_it_changes),
        ONE_LOOP_TEST(a_member_that_starts_again_says_it_anew),
        ONE_LOOP_TEST(who_is_cut_off_says_it_when_it_is_back),
        ONE_LOOP_TEST(a_cordon_shows_beside_the_metadata),
        ONE_LOOP_TEST(metadata_that_are_too_long_are_refused_and_change_nothing),
        ONE_LOOP_TEST(only_the_latest_description_of_the_latest_process_is_shown),
        ONE_LOOP_TEST(what_is_no_description_is_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
