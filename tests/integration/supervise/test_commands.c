/* Commands that run side by side under one supervisor: each ends alone, and all end with the
 * wrapper and with the lease. */
#include "cli/cmd.h"
#include "cli/supervise.h"
#include "cmocka_all.h"
#include "guardian/certificate.h"
#include "guardian/guardian.h"
#include "lib/process.h"
#include "options/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reports the pids of its foreman, of itself, of a child and of a stray that left group, session
 * and parent, once all of them run. */
#define FAMILY                                                                                     \
    "sleep 1000 & child=$!; "                                                                      \
    "stray=$(setsid sh -c 'echo $$; exec env -i sleep 1001 >&-' &); "                              \
    "printf '%%08d%%08d%%08d%%08d' $PPID $$ $child $stray >/proc/self/fd/%d; "

enum { FOREMAN, CMD, CHILD, STRAY, FAMILY_SIZE };
enum { COMMANDS = 2, CROWD = 300 };

struct event {
    int command;
    struct cmd_end end;
};

struct scene {
    const char *last[COMMANDS]; /* what each does after FAMILY */
    int report[COMMANDS][2];
    int events[2];
    int port;        /* of a peer; 0: no guardian */
    span lease;      /* 0: for ever */
    bool has_cgroup; /* or ancestry alone */
    int crowd;       /* so many more commands end at once, and nobody reads the news; 0: none */
    bool grows;      /* the lease gets an end while the supervisor is stopped */
};

struct one {
    struct scene *scene;
    int command;
    struct cmd *cmd;
};

static struct supervise supervise;

static void on_exit_of(void *userdata, const struct cmd_end *end)
{
    const struct one *one = userdata;
    struct event event = {.command = one->command, .end = *end};

    if (write(one->scene->events[1], &event, sizeof(event)) != sizeof(event)) {
        _exit(97);
    }
}

static void start_guardian(uv_loop_t *loop, const struct scene *scene)
{
    struct guardian *guardian;
    struct guardian_options options = {.loop = loop, .program = GUARDIAN_PROGRAM};
    char address[32];
    struct guardian_peer peer = {.node = 1, .address = address};

    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", scene->port);
    if (guardian_start(&guardian, &options, NULL) != 0) {
        _exit(99);
    }
    guardian_set_peers(guardian, &peer, 1);
    guardian_set_victims(guardian, &supervise.victims);
}

static void start_script(uv_loop_t *loop, struct one *one, const char *script, int output)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    static const char *const variables[] = {"TASTE=sour", NULL};
    struct cmd_config config = {.loop = loop,
                                .supervise = &supervise,
                                .argv = argv,
                                .node = "a",
                                .election = "e",
                                .epoch = 7,
                                .variables = variables,
                                .output = output,
                                .on_exit = on_exit_of,
                                .userdata = one};

    if (cmd_start(&one->cmd, &config, NULL) != 0) {
        _exit(98);
    }
}

static void end_lease_in(span left)
{
    uint64_t one = 1;

    atomic_store(&supervise.lease->end_ns, instant_add(clock_now(), left).ns);
    if (write(supervise.lease->wake_fd, &one, sizeof(one)) != sizeof(one)) {
        _exit(95);
    }
}

/* They all end at once. This process does not read that: it stands still. */
_Noreturn static void stand_still(uv_loop_t *loop, const struct scene *scene)
{
    static struct one crowd[CROWD];

    for (int i = 0; i < scene->crowd; i++) {
        start_script(loop, &crowd[i], "exec sleep 1003", 0);
    }
    for (int i = 0; i < scene->crowd; i++) {
        (void)kill(cmd_pid(crowd[i].cmd), SIGKILL);
    }
    for (int i = 0; i < scene->crowd; i++) {
        process_wait_gone(cmd_pid(crowd[i].cmd));
    }
    end_lease_in(SPAN_S(5));
    for (;;) {
        (void)pause();
    }
}

/* As in a group that grows: the lease was for ever. */
_Noreturn static void stand_still_beside_a_stopped_supervisor(void)
{
    (void)kill(supervise.supervisor, SIGSTOP);
    end_lease_in(SPAN_S(5));
    for (;;) {
        (void)pause();
    }
}

static int wrap(void *userdata)
{
    struct scene *scene = userdata;
    struct one ones[COMMANDS];
    char script[512];
    uv_loop_t loop;

    for (int i = 0; i < COMMANDS; i++) {
        (void)fcntl(scene->report[i][1], F_SETFD, 0);
    }
    if (supervise_init(&supervise, &(struct supervise_config){0}, NULL) != 0) {
        return 99;
    }
    if (!scene->has_cgroup) {
        (void)rmdir(supervise.victims.cgroup);
    }
    (void)uv_loop_init(&loop);
    atomic_store(&supervise.lease->end_ns, scene->lease.ns > 0
                                               ? instant_add(clock_now(), scene->lease).ns
                                               : INSTANT_NEVER.ns);
    if (scene->port != 0) {
        start_guardian(&loop, scene);
    }
    for (int i = 0; i < COMMANDS; i++) {
        int used = snprintf(script, sizeof(script), FAMILY, scene->report[i][1]);
        (void)snprintf(script + used, sizeof(script) - (size_t)used, "%s", scene->last[i]);
        ones[i] = (struct one){.scene = scene, .command = i};
        start_script(&loop, &ones[i], script, 0);
    }
    if (scene->crowd > 0) {
        stand_still(&loop, scene);
    }
    if (scene->grows) {
        stand_still_beside_a_stopped_supervisor();
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    supervise_fini(&supervise);
    return 0;
}

/* ---- Outside --------------------------------------------------------------------------------- */

static pid_t start(struct scene *scene, pid_t family[COMMANDS][FAMILY_SIZE])
{
    pid_t wrapper;

    assert_int_equal(pipe2(scene->events, O_CLOEXEC), 0);
    for (int i = 0; i < COMMANDS; i++) {
        assert_int_equal(pipe2(scene->report[i], O_CLOEXEC), 0);
    }
    wrapper = process_fork(wrap, scene);
    for (int i = 0; i < COMMANDS; i++) {
        for (int j = 0; j < FAMILY_SIZE; j++) {
            char number[9] = {0};
            process_read(scene->report[i][0], number, 8);
            family[i][j] = (pid_t)atoi(number);
            assert_true(family[i][j] > 1);
        }
    }
    return wrapper;
}

static struct event next_event(const struct scene *scene)
{
    struct event event;

    process_read(scene->events[0], &event, sizeof(event));
    return event;
}

static void expect_dead(const pid_t family[FAMILY_SIZE])
{
    for (int i = CMD; i < FAMILY_SIZE; i++) {
        assert_false(process_lives(family[i]));
    }
}

static void expect_alive(const pid_t family[FAMILY_SIZE])
{
    for (int i = CMD; i < FAMILY_SIZE; i++) {
        assert_true(process_lives(family[i]));
    }
}

static void finish(struct scene *scene)
{
    close(scene->events[0]);
    close(scene->events[1]);
    for (int i = 0; i < COMMANDS; i++) {
        close(scene->report[i][0]);
        close(scene->report[i][1]);
    }
}

#define SLEEPS "exec sleep 1002"

static void each_command_ends_alone_with_all_of_its_own(void **state)
{
    struct scene scene = {.last = {SLEEPS, "exit 37"}};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    struct event event = next_event(&scene);
    assert_int_equal(event.command, 1);
    assert_int_equal(event.end.exit_code, 37);
    expect_dead(family[1]);
    expect_alive(family[0]);
    assert_int_equal(kill(family[0][CMD], SIGTERM), 0);
    event = next_event(&scene);
    assert_int_equal(event.command, 0);
    assert_int_equal(event.end.exit_code, 128 + SIGTERM);
    expect_dead(family[0]);
    assert_int_equal(process_wait(wrapper), 0);
    finish(&scene);
}

static void a_killed_foreman_takes_its_own_command_alone(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    struct event event;
    assert_int_equal(kill(family[0][FOREMAN], SIGKILL), 0);
    event = next_event(&scene);
    assert_int_equal(event.command, 0);
    assert_int_equal(event.end.exit_code, 128 + SIGKILL);
    assert_false(event.end.is_overdue);
    expect_dead(family[0]);
    expect_alive(family[1]);
    process_end(wrapper);
    finish(&scene);
}

static void the_end_of_the_lease_ends_them_all(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}, .lease = SPAN_S(5), .has_cgroup = true};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    for (int i = 0; i < COMMANDS; i++) {
        struct event event = next_event(&scene);
        assert_true(event.end.is_overdue);
        expect_dead(family[event.command]);
    }
    assert_int_equal(process_wait(wrapper), 0);
    finish(&scene);
}

static void a_stopped_foreman_keeps_no_command_beyond_the_lease(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}, .lease = SPAN_S(5)};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    assert_int_equal(kill(family[0][FOREMAN], SIGSTOP), 0);
    for (int i = 0; i < COMMANDS; i++) {
        assert_true(next_event(&scene).end.is_overdue);
    }
    expect_dead(family[0]);
    expect_dead(family[1]);
    assert_int_equal(process_wait(wrapper), 0);
    finish(&scene);
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %*c %d", &parent), 1);
    (void)fclose(file);
    return parent;
}

/* As `baton worker` is through an agent: no guardian wakes the supervisor. */
static void
a_wrapper_and_a_supervisor_that_are_stopped_keep_no_command_beyond_the_lease(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}, .lease = SPAN_S(5)};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    pid_t supervisor = parent_of(family[0][FOREMAN]);
    assert_int_equal(kill(wrapper, SIGSTOP), 0);
    assert_int_equal(kill(supervisor, SIGSTOP), 0);
    for (int i = 0; i < COMMANDS; i++) {
        for (int j = CMD; j < FAMILY_SIZE; j++) {
            process_wait_gone(family[i][j]);
        }
    }
    assert_int_equal(kill(supervisor, SIGCONT), 0);
    assert_int_equal(kill(wrapper, SIGCONT), 0);
    for (int i = 0; i < COMMANDS; i++) {
        assert_true(next_event(&scene).end.is_overdue);
    }
    assert_int_equal(process_wait(wrapper), 0);
    finish(&scene);
}

static void a_lease_that_gets_an_end_ends_them_though_the_supervisor_is_stopped(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}, .grows = true};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    pid_t supervisor = parent_of(family[0][FOREMAN]);
    process_wait_gone(family[0][CMD]);
    process_wait_gone(family[1][CMD]);
    assert_int_equal(kill(supervisor, SIGCONT), 0);
    process_end(wrapper);
    finish(&scene);
}

static void a_wrapper_that_reads_no_news_keeps_no_command_beyond_the_lease(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}, .crowd = CROWD};
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    process_wait_gone(family[0][CMD]);
    process_wait_gone(family[1][CMD]);
    process_end(wrapper);
    finish(&scene);
}

static void a_killed_wrapper_takes_all_with_it_before_it_is_certified(void **state)
{
    struct scene scene = {.last = {SLEEPS, SLEEPS}};
    int listener = process_listen(&scene.port), fd;
    pid_t family[COMMANDS][FAMILY_SIZE], wrapper = start(&scene, family);
    uint8_t frame[CERTIFICATE_BYTES];
    process_end(wrapper);
    fd = process_accept(listener);
    process_read(fd, frame, sizeof(frame));
    expect_dead(family[0]);
    expect_dead(family[1]);
    close(fd);
    close(listener);
    finish(&scene);
}

/* ---- What a command is given ----------------------------------------------------------------- */

static int wrap_one(void *userdata)
{
    const int *output = userdata;
    struct scene scene = {.events = {-1, open("/dev/null", O_WRONLY | O_CLOEXEC)}};
    struct one one = {.scene = &scene};
    uv_loop_t loop;

    if (supervise_init(&supervise, &(struct supervise_config){0}, NULL) != 0) {
        return 99;
    }
    (void)uv_loop_init(&loop);
    atomic_store(&supervise.lease->end_ns, INSTANT_NEVER.ns);
    start_script(&loop, &one, "cat; echo $TASTE $BATON_EPOCH; echo no >&2", output[1]);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    supervise_fini(&supervise);
    return 0;
}

static void it_finds_its_variables_and_writes_to_its_output(void **state)
{
    static const char expected[] = "sour 7\nno\n";
    char text[sizeof(expected)] = {0};
    int output[2];
    pid_t wrapper;
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    wrapper = process_fork(wrap_one, output);
    process_read(output[0], text, sizeof(expected) - 1);
    assert_string_equal(text, expected);
    assert_int_equal(process_wait(wrapper), 0);
    close(output[0]);
    close(output[1]);
}

static const char *unlucky; /* the process that gets no timer; NULL: none */

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);

int __wrap_timerfd_create(int clock, int flags)
{
    char name[16] = "";

    (void)prctl(PR_GET_NAME, name);
    if (unlucky && strcmp(name, unlucky) == 0) {
        errno = EMFILE;
        return -1;
    }
    return __real_timerfd_create(clock, flags);
}

static int wrap_unlucky(void *userdata)
{
    char *argv[] = {(char *)"true", NULL};
    struct cmd_config config = {
        .supervise = &supervise, .argv = argv, .node = "a", .election = "e", .epoch = 7};
    uv_loop_t loop;
    struct cmd *cmd;
    int code;

    unlucky = userdata;
    (void)uv_loop_init(&loop);
    config.loop = &loop;
    if (supervise_init(&supervise, &(struct supervise_config){0}, NULL) != 0) {
        return 99;
    }
    atomic_store(&supervise.lease->end_ns, INSTANT_NEVER.ns);
    code = cmd_start(&cmd, &config, NULL);
    supervise_fini(&supervise);
    return code == BATON_EIO ? 0 : 98;
}

static void a_command_whose_lease_its_foreman_cannot_watch_is_refused(void **state)
{
    assert_int_equal(process_wait(process_fork(wrap_unlucky, (void *)"baton-foreman")), 0);
}

static void a_supervisor_that_cannot_watch_the_lease_starts_nothing(void **state)
{
    assert_int_equal(process_wait(process_fork(wrap_unlucky, (void *)"baton-supervise")),
                     EXIT_REFUSED << 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_ends_alone_with_all_of_its_own),
        cmocka_unit_test(a_killed_foreman_takes_its_own_command_alone),
        cmocka_unit_test(the_end_of_the_lease_ends_them_all),
        cmocka_unit_test(a_stopped_foreman_keeps_no_command_beyond_the_lease),
        cmocka_unit_test(
            a_wrapper_and_a_supervisor_that_are_stopped_keep_no_command_beyond_the_lease),
        cmocka_unit_test(a_lease_that_gets_an_end_ends_them_though_the_supervisor_is_stopped),
        cmocka_unit_test(a_command_whose_lease_its_foreman_cannot_watch_is_refused),
        cmocka_unit_test(a_supervisor_that_cannot_watch_the_lease_starts_nothing),
        cmocka_unit_test(a_wrapper_that_reads_no_news_keeps_no_command_beyond_the_lease),
        cmocka_unit_test(a_killed_wrapper_takes_all_with_it_before_it_is_certified),
        cmocka_unit_test(it_finds_its_variables_and_writes_to_its_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
