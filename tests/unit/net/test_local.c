#include "net/listener.h"
#include "net/local.h"

#include "cmocka_all.h"
#include "lib/accept_fault.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 5000 };

/* One side by local.h, the other one a socket. */
struct world {
    uv_loop_t loop;
    struct listener *listener;
    struct local *local; /* NULL: closed */
    json_t *got;         /* the message that came last */
    unsigned count;      /* of messages */
    unsigned turns;
    bool has_no_memory; /* for a connection */
    bool is_slow;       /* its messages take long, and it has turns */
    int fault;
    int peer;
    char dir[64];
    struct sockaddr_un address;
};

static void on_message(struct local *local, json_t *message, void *userdata)
{
    struct world *world = userdata;

    json_decref(world->got);
    world->got = json_incref(message);
    world->count++;
}

static void on_long_message(struct local *local, json_t *message, void *userdata)
{
    struct timespec longer_than_a_turn = {.tv_nsec = 1000000};

    on_message(local, message, userdata);
    (void)nanosleep(&longer_than_a_turn, NULL);
}

static void on_turn(struct local *local, void *userdata)
{
    struct world *world = userdata;

    world->turns++;
}

static void on_close(struct local *local, int code, const char *reason, void *userdata)
{
    struct world *world = userdata;

    world->local = NULL;
    world->fault = code;
}

static void on_connection(int fd, void *userdata)
{
    struct world *world = userdata;
    const struct local_callbacks callbacks = {.on_message =
                                                  world->is_slow ? on_long_message : on_message,
                                              .on_close = on_close,
                                              .on_turn = world->is_slow ? on_turn : NULL};

    if (world->has_no_memory) {
        world->has_no_memory = false;
        (void)close(fd);
        return;
    }
    assert_int_equal(local_accept(&world->local, &world->loop, fd, &callbacks, world, NULL), 0);
}

static void begin_connection(struct world *world)
{
    world->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(world->peer, (struct sockaddr *)&world->address, sizeof(world->address)), 0);
    while (!world->local) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
}

static void connect_again(struct world *world)
{
    (void)close(world->peer);
    while (world->local) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    begin_connection(world);
}

static void test_a_connection_that_is_not_taken_is_ended_and_the_next_one_is_taken(void **state)
{
    struct world *world = *state;
    int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;

    world->has_no_memory = true;
    assert_int_equal(connect(first, (struct sockaddr *)&world->address, sizeof(world->address)), 0);
    while (world->has_no_memory) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    connect_again(world);
    assert_int_equal(read(first, &byte, 1), 0);
    (void)close(first);
}

static void test_a_connection_waits_while_the_system_has_no_descriptor(void **state)
{
    struct world *world = *state;
    int next = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    accept_fault = ENFILE;
    accept_failures = 0;
    assert_int_equal(connect(next, (struct sockaddr *)&world->address, sizeof(world->address)), 0);
    while (accept_failures < 2) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    (void)close(world->peer);
    while (world->local) { /* others are served meanwhile */
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    accept_fault = 0;
    world->peer = next;
    while (!world->local) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    const struct listener_options options = {
        .loop = &world->loop, .backlog = 16, .on_connection = on_connection, .userdata = world};
    const struct listener_place place = {
        .path = world->address.sun_path, .mode = 0600, .group = (gid_t)-1};

    strcpy(world->dir, "/tmp/baton-local-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->address.sun_family = AF_UNIX;
    snprintf(world->address.sun_path, sizeof(world->address.sun_path), "%s/socket", world->dir);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(listener_open_unix(&world->listener, &options, &place, NULL), 0);
    begin_connection(world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    if (world->local) {
        local_close(world->local);
    }
    listener_end(world->listener);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    (void)close(world->peer);
    assert_int_equal(rmdir(world->dir), 0);
    json_decref(world->got);
    free(world);
    return 0;
}

static char *long_text(void)
{
    char *text = malloc(LONG + 1);

    for (size_t i = 0; i < LONG; i++) {
        text[i] = "\"\n{x"[i % 4]; /* three of four would take two bytes */
    }
    text[LONG] = '\0';
    return text;
}

static void say(struct world *world, const char *data, size_t bytes)
{
    assert_int_equal(send(world->peer, data, bytes, 0), (ssize_t)bytes);
}

static void run_until(struct world *world, unsigned count)
{
    while (world->count < count && world->local) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
}

/* What the peer has got, up to the end of the bytes. */
static char *hear(struct world *world, size_t bytes)
{
    char *got = calloc(1, bytes + 1);

    for (size_t done = 0; done < bytes;) {
        ssize_t more;

        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
        more = recv(world->peer, got + done, bytes - done, MSG_DONTWAIT);
        done += more > 0 ? (size_t)more : 0;
    }
    return got;
}

static void test_a_long_text_goes_behind_the_line_once_the_peer_reads_it_there(void **state)
{
    static const char line[] = "{\"key\":\"k\",\"raw\":5000}\n";
    struct world *world = *state;
    char *text = long_text(), *got;
    json_t *message = json_pack("{s:s, s:s}", "key", "k", "text", text);

    local_send_raw(world->local);
    assert_int_equal(local_send(world->local, message), 0);
    got = hear(world, strlen(line) + LONG);
    assert_memory_equal(got, line, strlen(line));
    assert_memory_equal(got + strlen(line), text, LONG);
    assert_string_equal(json_string_value(json_object_get(message, "text")), text);
    json_decref(message);
    free(text);
    free(got);
}

static void test_the_texts_of_values_go_behind_the_line_one_after_the_other(void **state)
{
    static const char line[] =
        "{\"values\":[{\"key\":\"a\",\"raw\":5000},{\"text\":\"short\"},{\"raw\":5000}]}\n";
    struct world *world = *state;
    char *text = long_text(), *got;
    json_t *message = json_pack("{s:[{s:s, s:s}, {s:s}, {s:s}]}", "values", "key", "a", "text",
                                text, "text", "short", "text", text);

    local_send_raw(world->local);
    assert_int_equal(local_send(world->local, message), 0);
    got = hear(world, strlen(line) + 2L * LONG);
    assert_memory_equal(got, line, strlen(line));
    assert_memory_equal(got + strlen(line), text, LONG);
    assert_memory_equal(got + strlen(line) + LONG, text, LONG);
    json_decref(message);
    free(text);
    free(got);
}

static void test_a_peer_that_has_not_asked_for_it_gets_json_alone(void **state)
{
    struct world *world = *state;
    char *text = long_text(), *got, *expected;
    json_t *message = json_pack("{s:s}", "text", text);

    expected = json_dumps(message, JSON_COMPACT);
    assert_int_equal(local_send(world->local, message), 0);
    got = hear(world, strlen(expected) + 1);
    assert_memory_equal(got, expected, strlen(expected));
    json_decref(message);
    free(expected);
    free(text);
    free(got);
}

static void test_bytes_behind_the_line_are_the_messages_text_however_they_come(void **state)
{
    static const char line[] = "{\"do\":\"put\",\"raw\":5000}\n", next[] = "{\"do\":\"get\"}\n";
    struct world *world = *state;
    char *text = long_text();

    say(world, line, strlen(line));
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    say(world, text, 1);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    say(world, text + 1, LONG - 2);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    assert_int_equal(world->count, 0);
    say(world, text + LONG - 1, 1);
    run_until(world, 1);
    assert_string_equal(json_string_value(json_object_get(world->got, "text")), text);
    say(world, next, strlen(next));
    run_until(world, 2);
    assert_string_equal(json_string_value(json_object_get(world->got, "do")), "get");
    free(text);
}

static void test_bytes_of_values_are_theirs_in_the_order_of_the_message(void **state)
{
    static const char all[] = "{\"values\":[{\"raw\":2},{\"text\":\"cd\"},{\"raw\":1}]}\nabe{}\n";
    struct world *world = *state;
    json_t *expected = json_pack("[s, s, s]", "ab", "cd", "e"), *values;

    say(world, all, strlen(all));
    run_until(world, 2);
    assert_int_equal(json_object_size(world->got), 0);
    say(world, all, strlen(all) - 3);
    run_until(world, 3);
    values = json_object_get(world->got, "values");
    for (size_t i = 0; i < 3; i++) {
        assert_true(json_equal(json_object_get(json_array_get(values, i), "text"),
                               json_array_get(expected, i)));
    }
    json_decref(expected);
}

/* The socket takes a part at a time. */
static void say_all(struct world *world, const char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes && world->local;) {
        ssize_t more = send(world->peer, data + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);

        done += more > 0 ? (size_t)more : 0;
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
}

/* A line of so many bytes, with its newline: begin, spaces, end. */
static char *long_line(const char *begin, const char *end, size_t bytes)
{
    char *line = malloc(bytes + 1);

    memset(line, ' ', bytes);
    memcpy(line, begin, strlen(begin));
    memcpy(line + bytes - strlen(end), end, strlen(end) + 1);
    return line;
}

static void test_a_line_and_the_bytes_behind_it_may_both_be_as_long_as_they_may(void **state)
{
    struct world *world = *state;
    char *line = long_line("{\"raw\":2097152", "}\n", LOCAL_LINE_MAX + 1);
    char *text = calloc(1, LOCAL_LINE_MAX);

    memset(text, 'x', LOCAL_LINE_MAX);
    say_all(world, line, LOCAL_LINE_MAX + 1);
    say_all(world, text, LOCAL_LINE_MAX);
    run_until(world, 1);
    assert_int_equal(world->count, 1);
    assert_int_equal(json_string_length(json_object_get(world->got, "text")), LOCAL_LINE_MAX);
    free(text);
    free(line);
}

static void test_a_message_whose_bytes_have_not_come_is_held_as_text_alone(void **state)
{
    enum { VALUES = LOCAL_VALUES_MAX / 2 - 8, KEPT = 64 * 1024 };
    struct world *world = *state;
    char *line = calloc(1, LOCAL_LINE_MAX);
    size_t before, bytes = (size_t)sprintf(line, "{\"values\":[{}");

    for (size_t i = 0; i < VALUES; i++) {
        memcpy(line + bytes, ",{}", 3);
        bytes += 3;
    }
    bytes += (size_t)sprintf(line + bytes, "],\"raw\":1}\n");
    before = mallinfo2().uordblks;
    say_all(world, line, bytes);
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    assert_int_equal(world->count, 0);
    assert_true(mallinfo2().uordblks - before < KEPT);
    say(world, "x", 1);
    run_until(world, 1);
    assert_int_equal(json_array_size(json_object_get(world->got, "values")), VALUES + 1);
    assert_string_equal(json_string_value(json_object_get(world->got, "text")), "x");
    free(line);
}

static void test_a_peer_whose_messages_take_long_has_one_turn_after_the_other(void **state)
{
    static const char both[] = "{\"id\":1}\n{\"id\":2}\n", third[] = "{\"id\":3}\n";
    struct world *world = *state;

    world->is_slow = true;
    connect_again(world);
    say(world, both, strlen(both));
    run_until(world, 1);
    say(world, third, strlen(third));
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    assert_int_equal(world->count, 1);
    assert_int_equal(world->turns, 1);
    local_go_on(world->local);
    assert_int_equal(world->count, 2);
    assert_int_equal(world->turns, 2);
    local_go_on(world->local);
    run_until(world, 3);
    assert_int_equal(json_integer_value(json_object_get(world->got, "id")), 3);
}

static void ends_with(struct world *world, int fault)
{
    run_until(world, 1);
    assert_int_equal(world->count, 0);
    assert_int_equal(world->fault, fault);
}

static void test_a_request_of_very_many_values_is_refused_and_one_of_long_texts_is_not(void **state)
{
    struct world *world = *state;
    char *texts = long_line("{\"a\":\"\\\"", "\"}\n", 3L * LOCAL_VALUES_MAX);
    char *values = long_line("{\"a\":[1", "]}\n", 3L * LOCAL_VALUES_MAX);

    for (size_t i = 8; i < 2L * LOCAL_VALUES_MAX + 8; i += 2) {
        memcpy(texts + i, ",[", 2);
        memcpy(values + i, ",1", 2);
    }
    say(world, texts, 3L * LOCAL_VALUES_MAX);
    run_until(world, 1);
    assert_int_equal(world->count, 1);
    world->count = 0;
    say(world, values, 3L * LOCAL_VALUES_MAX);
    ends_with(world, BATON_ETOOBIG);
    free(texts);
    free(values);
}

static void test_a_line_that_is_a_byte_too_long_is_refused(void **state)
{
    struct world *world = *state;
    char *line = long_line("{\"id\":1", "}\n", LOCAL_LINE_MAX + 2);

    say_all(world, line, LOCAL_LINE_MAX + 2);
    ends_with(world, BATON_ETOOBIG);
    free(line);
}

static void refuses(struct world *world, const char *line)
{
    say(world, line, strlen(line));
    ends_with(world, BATON_EPROTO);
}

static void test_a_wrong_number_of_bytes_is_refused(void **state)
{
    refuses(*state, "{\"raw\":-1}\n");
}

static void test_no_more_bytes_follow_than_a_line_may_have(void **state)
{
    refuses(*state, "{\"values\":[{\"raw\":2097152},{\"raw\":1}]}\n");
}

static void test_a_message_that_is_too_long_for_the_peer_is_called_so(void **state)
{
    struct world *world = *state;
    char *text = calloc(1, LOCAL_LINE_MAX + 2);
    json_t *message;

    memset(text, 'x', LOCAL_LINE_MAX + 1);
    message = json_pack("{s:s}", "text", text);
    local_send_raw(world->local);
    assert_int_equal(local_send(world->local, message), BATON_ETOOBIG);
    json_decref(message);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_connection_that_is_not_taken_is_ended_and_the_next_one_is_taken),
        TEST(test_a_connection_waits_while_the_system_has_no_descriptor),
        TEST(test_a_long_text_goes_behind_the_line_once_the_peer_reads_it_there),
        TEST(test_the_texts_of_values_go_behind_the_line_one_after_the_other),
        TEST(test_a_peer_that_has_not_asked_for_it_gets_json_alone),
        TEST(test_bytes_behind_the_line_are_the_messages_text_however_they_come),
        TEST(test_bytes_of_values_are_theirs_in_the_order_of_the_message),
        TEST(test_a_line_and_the_bytes_behind_it_may_both_be_as_long_as_they_may),
        TEST(test_a_message_whose_bytes_have_not_come_is_held_as_text_alone),
        TEST(test_a_peer_whose_messages_take_long_has_one_turn_after_the_other),
        TEST(test_a_request_of_very_many_values_is_refused_and_one_of_long_texts_is_not),
        TEST(test_a_line_that_is_a_byte_too_long_is_refused),
        TEST(test_a_wrong_number_of_bytes_is_refused),
        TEST(test_no_more_bytes_follow_than_a_line_may_have),
        TEST(test_a_message_that_is_too_long_for_the_peer_is_called_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
