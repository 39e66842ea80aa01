/* Deaths that have begun: certain ones, and states that only look alike. */
#include "cmocka_all.h"
#include "guardian/dying.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_BYTES = 256 << 20, THREADS = 16 };

/* Shared with each child that a test starts. */
static pthread_mutex_t *life;
static int ready[2];

static int make_shared(void **state)
{
    pthread_mutexattr_t attributes;

    life = mmap(NULL, sizeof(*life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return life == MAP_FAILED || pipe(ready) != 0 || pthread_mutexattr_init(&attributes) != 0 ||
           pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) != 0 ||
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) != 0 ||
           pthread_mutex_init(life, &attributes) != 0;
}

static int drop_shared(void **state)
{
    return close(ready[0]) | close(ready[1]) | munmap(life, sizeof(*life));
}

static void say_ready(void)
{
    if (write(ready[1], "r", 1) != 1) {
        _exit(EXIT_FAILURE);
    }
}

_Noreturn static void *sleep_for_ever(void *userdata)
{
    for (;;) {
        (void)pause();
    }
}

/* A child that does `act` and does not come back from it; returns when it has said that it is
 * ready. */
static pid_t begin(void (*act)(void))
{
    char byte;
    pid_t child = fork();

    if (child == 0) {
        act();
        _exit(EXIT_FAILURE);
    }
    assert_true(child > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return child;
}

static void end(pid_t child, int pidfd)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(pidfd);
}

/* ---- What is certain ------------------------------------------------------------------------- */

static void hold_and_sleep(void)
{
    (void)pthread_mutex_lock(life);
    say_ready();
    (void)sleep_for_ever(NULL);
}

static void hold_much_and_sleep(void)
{
    char *memory = malloc(LARGE_BYTES);
    pthread_t thread;

    if (memory == NULL) {
        _exit(EXIT_FAILURE);
    }
    memset(memory, 1, LARGE_BYTES);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_create(&thread, NULL, sleep_for_ever, NULL);
    }
    hold_and_sleep();
}

static void the_killed_are_certain(void (*act)(void))
{
    pid_t child = begin(act);
    int pidfd = pidfd_open(child, 0);
    pid_t name = dying_name(pidfd);

    assert_int_equal(name, child);
    assert_false(dying_is_certain(name));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_true(dying_wait(life));
    while (!dying_is_certain(name)) { /* its threads are on their way */
        (void)sched_yield();
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(dying_name(pidfd), 0); /* nobody bears it any more */
    assert_false(dying_is_certain(name));
    (void)close(pidfd);
}

static void a_killed_process_is_certain_before_it_is_waited_for(void **state)
{
    the_killed_are_certain(hold_and_sleep);
}

static void a_killed_process_of_many_threads_and_much_memory_too(void **state)
{
    the_killed_are_certain(hold_much_and_sleep);
}

/* ---- What only looks so ---------------------------------------------------------------------- */

static void wakes_and_is_not_certain(void (*act)(void))
{
    pid_t child = begin(act);
    int pidfd = pidfd_open(child, 0);

    assert_int_equal(kill(child, SIGUSR1), 0);
    assert_true(dying_wait(life));
    for (int i = 0; i < 1000; i++) {
        assert_false(dying_is_certain(dying_name(pidfd)));
    }
    end(child, pidfd);
}

/* Before any thread begins: the signal is nobody's end. */
static void block_signal(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, ret, NULL);
}

static void wait_for_signal(void)
{
    sigset_t set;
    int signal;

    block_signal(&set);
    (void)pthread_mutex_lock(life);
    say_ready();
    (void)sigwait(&set, &signal);
}

static void end_the_first_thread_alone(void)
{
    pthread_t thread;
    sigset_t set;

    block_signal(&set);
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0) {
        _exit(EXIT_FAILURE);
    }
    wait_for_signal();
    pthread_exit(NULL);
}

static void become_another_program(void)
{
    wait_for_signal();
    (void)execlp("sleep", "sleep", "600", NULL);
}

static void a_thread_that_ends_is_no_death(void **state)
{
    wakes_and_is_not_certain(end_the_first_thread_alone);
}

static void another_program_is_no_death(void **state)
{
    wakes_and_is_not_certain(become_another_program);
}

static void stop_holding(int signal)
{
    /* Whoever it comes to only waits for it. NOLINTNEXTLINE(bugprone-signal-handler) */
    _exit(pthread_mutex_unlock(life) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void hold_until_told(void)
{
    (void)signal(SIGUSR1, stop_holding);
    hold_and_sleep();
}

static void a_lock_let_go_in_order_is_a_farewell(void **state)
{
    pid_t child = begin(hold_until_told);
    int status;

    assert_int_equal(kill(child, SIGUSR1), 0);
    assert_false(dying_wait(life));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* In a namespace of process numbers with the outer /proc, our number is somebody else's name. */
_Noreturn static void look_from_a_namespace(void)
{
    pid_t child = fork();
    siginfo_t info;
    int pidfd;
    pid_t name;

    if (child == 0) {
        (void)sleep_for_ever(NULL);
    }
    pidfd = pidfd_open(child, 0);
    name = dying_name(pidfd);
    if (name == 0 || name == child || dying_is_certain(name)) {
        _exit(1);
    }
    (void)kill(child, SIGKILL);
    (void)waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    _exit(dying_is_certain(name) ? 0 : 2);
}

static void a_process_is_found_by_the_name_that_proc_gives_it(void **state)
{
    int status;
    pid_t outer = fork();

    if (outer == 0) {
        pid_t first;
        if (unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) != 0) {
            _exit(77);
        }
        first = fork();
        if (first == 0) {
            look_from_a_namespace();
        }
        _exit(waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    assert_int_equal(waitpid(outer, &status, 0), outer);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip(); /* namespaces are refused here */
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_process_is_certain_before_it_is_waited_for,
                                        make_shared, drop_shared),
        cmocka_unit_test_setup_teardown(a_killed_process_of_many_threads_and_much_memory_too,
                                        make_shared, drop_shared),
        cmocka_unit_test_setup_teardown(a_thread_that_ends_is_no_death, make_shared, drop_shared),
        cmocka_unit_test_setup_teardown(another_program_is_no_death, make_shared, drop_shared),
        cmocka_unit_test_setup_teardown(a_lock_let_go_in_order_is_a_farewell, make_shared,
                                        drop_shared),
        cmocka_unit_test(a_process_is_found_by_the_name_that_proc_gives_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
