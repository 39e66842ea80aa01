/* CMD, its children and its strays end with the wrapper, however that ends. */
#include "cli/cmd.h"
#include "cli/supervise.h"
#include "cmocka_all.h"
#include "guardian/certificate.h"
#include "guardian/guardian.h"
#include "guardian/protocol.h"
#include "lib/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reports the pids of CMD, of a child and of a stray that left group, session and parent, once all
 * of them run: the end of its output tells that the stray has got as far as its exec. */
#define FAMILY                                                                                     \
    "sleep 1000 & child=$!; "                                                                      \
    "stray=$(setsid sh -c 'echo $$; exec sleep 1001 >&-' &); "                                     \
    "printf '%%08d%%08d%%08d' $$ $child $stray >/proc/self/fd/%d; "

enum { CMD, CHILD, STRAY, FAMILY_SIZE };
enum { FDS_SEARCHED = 64, OVERDUE = 96 };

struct scene {
    const char *last; /* command of CMD after FAMILY */
    const char *const *argv;
    int report[2];
    int port; /* of a peer; 0: no guardian */
    bool kills_outliving;
    span lease; /* 0: for ever */
    bool stops; /* SIGTERM at once, SIGKILL soon */
    bool outlives;
    bool is_sudden; /* its guardian stands still from its greeting on, which is never read */
};

static struct supervise supervise;

static void on_cmd_exit(void *userdata, const struct cmd_end *end)
{
    supervise_fini(&supervise);
    _exit(end->is_overdue ? OVERDUE : end->exit_code);
}

/* Its socket is the only one of its kind besides the supervisor's. Reports who has been stopped. */
static void stop_guardian_as_it_greets(const struct scene *scene)
{
    for (int fd = STDERR_FILENO + 1; fd < FDS_SEARCHED; fd++) {
        struct guardian_message greeting = {0};
        int type = 0;
        socklen_t bytes = sizeof(type);
        bool is_supervisors = fd == supervise.orders || fd == supervise.victims.supervisor;
        if (!is_supervisors && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
            type == SOCK_SEQPACKET) {
            process_wait_readable(fd);
            (void)recv(fd, &greeting, sizeof(greeting), MSG_PEEK);
            (void)kill(greeting.pid, SIGSTOP);
            process_wait_stopped(greeting.pid);
            (void)dprintf(scene->report[1], "%08d", (int)greeting.pid);
            return;
        }
    }
    _exit(97);
}

static void start_guardian(uv_loop_t *loop, const struct scene *scene)
{
    struct guardian *guardian;
    struct guardian_options options = {
        .loop = loop, .kills_outliving = scene->kills_outliving, .program = GUARDIAN_PROGRAM};
    char address[32];
    struct guardian_peer peer = {.node = 1, .address = address};

    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", scene->port);
    if (guardian_start(&guardian, &options, NULL) != 0) {
        _exit(99);
    }
    if (scene->is_sudden) {
        stop_guardian_as_it_greets(scene);
    }
    guardian_set_peers(guardian, &peer, 1);
    guardian_set_victims(guardian, &supervise.victims);
    if (scene->kills_outliving) {
        guardian_publish(guardian, instant_add(clock_now(), SPAN_MS(500)));
    }
}

static int wrap(void *userdata)
{
    const struct scene *scene = userdata;
    char script[512];
    char *family[] = {(char *)"sh", (char *)"-c", script, NULL};
    uv_loop_t loop;
    struct cmd *cmd;
    struct supervise_config supervised = {.outlives = scene->outlives};
    struct cmd_config config = {.loop = &loop,
                                .supervise = &supervise,
                                .argv = scene->argv ? (char *const *)scene->argv : family,
                                .node = "a",
                                .election = "e",
                                .epoch = 7,
                                .on_exit = on_cmd_exit};
    int out = scene->report[1], code;

    int used = snprintf(script, sizeof(script), FAMILY, out);
    (void)snprintf(script + used, sizeof(script) - (size_t)used, "%s",
                   scene->last ? scene->last : "");
    (void)fcntl(out, F_SETFD, 0);
    if (supervise_init(&supervise, &supervised, NULL) != 0) {
        return 99;
    }
    (void)uv_loop_init(&loop);
    atomic_store(&supervise.lease->end_ns, scene->lease.ns > 0
                                               ? instant_add(clock_now(), scene->lease).ns
                                               : INSTANT_NEVER.ns);
    if (scene->port != 0) {
        start_guardian(&loop, scene);
    }
    code = cmd_start(&cmd, &config, NULL);
    if (code != 0) {
        supervise_fini(&supervise);
        return -code;
    }
    if (scene->stops) {
        cmd_stop(cmd, instant_add(clock_now(), SPAN_MS(100)));
    }
    while (scene->is_sudden) {
        (void)pause();
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return 98;
}

static pid_t start(struct scene *scene)
{
    assert_int_equal(pipe2(scene->report, O_CLOEXEC), 0);
    return process_fork(wrap, scene);
}

static pid_t read_pid(const struct scene *scene)
{
    char number[9] = {0};
    pid_t pid;

    process_read(scene->report[0], number, 8);
    pid = (pid_t)atoi(number);
    assert_true(pid > 1);
    return pid;
}

static void read_family(const struct scene *scene, pid_t family[FAMILY_SIZE])
{
    for (int i = 0; i < FAMILY_SIZE; i++) {
        family[i] = read_pid(scene);
    }
}

static void finish(struct scene *scene)
{
    close(scene->report[0]);
    close(scene->report[1]);
}

static void expect_certificate(int listener)
{
    uint8_t frame[CERTIFICATE_BYTES];
    int fd = process_accept(listener);
    process_read(fd, frame, sizeof(frame));
    close(fd);
}

static void the_exit_code_is_cmds_own_and_strays_are_dead(void **state)
{
    struct scene scene = {.last = "exit 37"};
    pid_t family[FAMILY_SIZE], wrapper = start(&scene);
    read_family(&scene, family);
    assert_int_equal(WEXITSTATUS(process_wait(wrapper)), 37);
    for (int j = 0; j < FAMILY_SIZE; j++) {
        assert_false(process_lives(family[j]));
    }
    finish(&scene);
}

static void a_signal_is_told_as_128_plus_its_number(void **state)
{
    struct scene scene = {.last = "kill -USR1 $$"};
    pid_t wrapper = start(&scene);
    assert_int_equal(WEXITSTATUS(process_wait(wrapper)), 128 + SIGUSR1);
    finish(&scene);
}

static void who_ignores_sigterm_is_killed_in_time(void **state)
{
    static const char *const argv[] = {"sh", "-c",
                                       "trap '' TERM; while :; do sleep 1000 & wait; done", NULL};
    struct scene scene = {.argv = argv, .stops = true};
    pid_t wrapper = start(&scene);
    int code;
    code = WEXITSTATUS(process_wait(wrapper));
    assert_true(code == 128 + SIGKILL || code == 128 + SIGTERM); /* before the trap: TERM */
    finish(&scene);
}

static void a_program_that_is_not_there_is_told_apart(void **state)
{
    static const char *const argv[] = {"/nowhere/program", NULL};
    struct scene scene = {.argv = argv};
    assert_int_equal(WEXITSTATUS(process_wait(start(&scene))), -BATON_ENOENT);
    finish(&scene);
}

static void kill_and_expect(struct scene *scene)
{
    int listener = process_listen(&scene->port);
    pid_t family[FAMILY_SIZE], guardian = 0, wrapper = start(scene);

    if (scene->is_sudden) {
        guardian = read_pid(scene);
    }
    read_family(scene, family);
    process_end(wrapper);
    if (guardian != 0) {
        (void)kill(guardian, SIGCONT);
    }
    expect_certificate(listener);
    for (int i = 0; i < FAMILY_SIZE; i++) {
        assert_false(process_lives(family[i]));
    }
    close(listener);
    finish(scene);
}

static void a_killed_wrapper_takes_all_with_it_before_it_is_certified(void **state)
{
    struct scene scene = {.last = "sleep 1002"};

    kill_and_expect(&scene);
}

/* So soon that neither has read what the other said: what the guardian was told counts all the
 * same. */
static void a_wrapper_killed_at_its_start_takes_all_with_it(void **state)
{
    struct scene scene = {.last = "sleep 1002", .is_sudden = true};

    kill_and_expect(&scene);
}

static void cmd_dies_with_the_wrapper_without_a_guardian_too(void **state)
{
    struct scene scene = {.last = "exec sleep 1002"};
    pid_t family[FAMILY_SIZE], wrapper = start(&scene);
    read_family(&scene, family);
    process_end(wrapper);
    for (int i = 0; i < FAMILY_SIZE; i++) {
        process_wait_gone(family[i]);
    }
    finish(&scene);
}

static void a_stopped_wrapper_is_killed_with_all_its_own(void **state)
{
    struct scene scene = {.last = "sleep 1002", .kills_outliving = true};
    int listener = process_listen(&scene.port), status;
    pid_t family[FAMILY_SIZE], wrapper = start(&scene);
    read_family(&scene, family);
    (void)kill(wrapper, SIGSTOP);
    expect_certificate(listener);
    status = process_wait(wrapper);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    for (int j = 0; j < FAMILY_SIZE; j++) {
        assert_false(process_lives(family[j]));
    }
    close(listener);
    finish(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_code_is_cmds_own_and_strays_are_dead),
        cmocka_unit_test(a_signal_is_told_as_128_plus_its_number),
        cmocka_unit_test(who_ignores_sigterm_is_killed_in_time),
        cmocka_unit_test(a_program_that_is_not_there_is_told_apart),
        cmocka_unit_test(a_killed_wrapper_takes_all_with_it_before_it_is_certified),
        cmocka_unit_test(a_wrapper_killed_at_its_start_takes_all_with_it),
        cmocka_unit_test(cmd_dies_with_the_wrapper_without_a_guardian_too),
        cmocka_unit_test(a_stopped_wrapper_is_killed_with_all_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
