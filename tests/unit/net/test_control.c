#include "net/control.h"

#include "cmocka_all.h"
#include "lib/accept_fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct world {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct control_server *server;
    char dir[64];
    char path[128];
};

static _Thread_local bool is_servers_thread;
static atomic_bool fails_once; /* the next calloc() of the server */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    bool fails = is_servers_thread && atomic_exchange(&fails_once, false);

    return fails ? NULL : __real_calloc(count, bytes);
}

/* "echo" answers the request back, "nothing" has no answer, "watch" subscribes and is sent one
 * line.
 */
static void on_request(void *userdata, uint64_t id, const json_t *request)
{
    struct world *world = userdata;
    const char *what = json_string_value(json_object_get(request, "do"));
    if (what && strcmp(what, "watch") == 0) {
        json_t *line = json_pack("{s:s}", "event", "seen");
        control_server_subscribe(world->server, id);
        control_server_publish(world->server, line);
        json_decref(line);
        return;
    }
    bool has_answer = !what || strcmp(what, "nothing") != 0;
    control_server_answer(world->server, id,
                          has_answer ? json_pack("{s:b,s:O}", "ok", 1, "request", request) : NULL);
}

static void on_stop(uv_async_t *handle)
{
    struct world *world = handle->data;
    control_server_close(world->server);
    uv_close((uv_handle_t *)handle, NULL);
}

static void *serve(void *userdata)
{
    struct world *world = userdata;
    is_servers_thread = true;
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    strcpy(world->dir, "/tmp/baton-control-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    snprintf(world->path, sizeof(world->path), "%s/control.sock", world->dir);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(control_server_open(&world->server, &world->loop, world->path, NULL,
                                         on_request, world, NULL),
                     0);
    assert_int_equal(uv_async_init(&world->loop, &world->stop, on_stop), 0);
    world->stop.data = world;
    assert_int_equal(pthread_create(&world->thread, NULL, serve, world), 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    uv_async_send(&world->stop);
    pthread_join(world->thread, NULL);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    assert_int_equal(access(world->path, F_OK), -1);
    assert_int_equal(rmdir(world->dir), 0);
    free(world);
    return 0;
}

static void a_request_gets_one_answer(void **state)
{
    struct world *world = *state;
    struct baton_error error;
    json_t *request = json_pack("{s:s}", "do", "echo");
    json_t *answer = NULL;
    assert_int_equal(control_call(world->path, request, SPAN_S(60), &answer, &error), 0);
    assert_true(json_equal(json_object_get(answer, "request"), request));
    json_decref(answer);
    json_decref(request);
}

static void nobody_waits_for_an_answer_that_could_not_be_made(void **state)
{
    struct world *world = *state;
    struct baton_error error;
    json_t *request = json_pack("{s:s}", "do", "nothing");
    json_t *answer = NULL;
    assert_int_equal(control_call(world->path, request, SPAN_S(2), &answer, &error), BATON_ECLOSED);
    json_decref(request);
}

static void a_client_without_memory_is_ended_and_the_next_one_is_served(void **state)
{
    struct world *world = *state;
    struct baton_error error;
    json_t *request = json_pack("{s:s}", "do", "echo");
    json_t *answer = NULL;

    fails_once = true;
    assert_int_not_equal(control_call(world->path, request, SPAN_S(60), &answer, &error), 0);
    json_decref(request);
    a_request_gets_one_answer(state);
}

static void a_client_waits_while_the_system_has_no_descriptor(void **state)
{
    const struct world *world = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->path);
    accept_fault = ENFILE;
    accept_failures = 0;
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    while (accept_failures < 2) {
        (void)sched_yield();
    }
    accept_fault = 0;
    (void)close(fd);
    a_request_gets_one_answer(state);
}

static bool keep_first(void *userdata, const json_t *line)
{
    *(bool *)userdata = strcmp(json_string_value(json_object_get(line, "event")), "seen") == 0;
    return false;
}

static void a_subscriber_is_sent_what_is_published(void **state)
{
    struct world *world = *state;
    struct baton_error error;
    bool has_seen = false;
    json_t *request = json_pack("{s:s}", "do", "watch");
    assert_int_equal(
        control_follow(world->path, request, SPAN_S(60), keep_first, &has_seen, &error), 0);
    assert_true(has_seen);
    json_decref(request);
}

static void the_socket_is_for_its_owner_alone(void **state)
{
    struct world *world = *state;
    struct stat about;
    assert_int_equal(stat(world->path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

/* Sends raw bytes and returns what comes back until the server hangs up. */
static void raw(const struct world *world, const void *data, size_t bytes, char *ret, size_t room)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)send(fd, data, bytes, MSG_NOSIGNAL);
    size_t used = 0;
    ssize_t count;
    while (used < room - 1 && (count = read(fd, ret + used, room - 1 - used)) > 0) {
        used += (size_t)count;
    }
    ret[used] = '\0';
    close(fd);
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const bad[] = {"[]\n",       "\n",  "{\"a\":1,\"a\":2}\n",
                                      "\xff\xfe\n", "{\n", "{\"do\":\"echo\"}{}\n"};
    char answer[512];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        raw(*state, bad[i], strlen(bad[i]), answer, sizeof(answer));
        assert_non_null(strstr(answer, "\"ok\":false"));
    }
}

static void a_line_without_end_is_bounded(void **state)
{
    enum { BYTES = 4 * CONTROL_LINE_MAX };
    char *data = malloc(BYTES);
    char answer[512];
    memset(data, '[', BYTES);
    raw(*state, data, BYTES, answer, sizeof(answer));
    free(data);
    a_request_gets_one_answer(state); /* and the server goes on */
}

static void a_living_servers_socket_is_not_taken_over(void **state)
{
    struct world *world = *state;
    struct control_server *second;
    struct baton_error error;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(
        control_server_open(&second, &loop, world->path, NULL, on_request, NULL, &error),
        BATON_EBUSY);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    a_request_gets_one_answer(state);
}

static void nobody_listening_is_unavailable(void **state)
{
    struct baton_error error;
    json_t *request = json_object();
    json_t *answer = NULL;
    assert_int_equal(control_call("/nonexistent/control.sock", request, SPAN_S(1), &answer, &error),
                     BATON_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "/nonexistent/control.sock"));
    json_decref(request);
}

static void a_path_longer_than_the_kernel_allows_is_named(void **state)
{
    char path[256];
    struct baton_error error;
    struct control_server *server;
    uv_loop_t loop;
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(control_server_open(&server, &loop, path, NULL, on_request, NULL, &error),
                     BATON_ETOOBIG);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_gets_one_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_for_an_answer_that_could_not_be_made, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_client_without_memory_is_ended_and_the_next_one_is_served,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_waits_while_the_system_has_no_descriptor, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_subscriber_is_sent_what_is_published, setup, teardown),
        cmocka_unit_test_setup_teardown(the_socket_is_for_its_owner_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_object_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_without_end_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_living_servers_socket_is_not_taken_over, setup, teardown),
        cmocka_unit_test(nobody_listening_is_unavailable),
        cmocka_unit_test(a_path_longer_than_the_kernel_allows_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
