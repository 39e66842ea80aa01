/* A fatal signal first voids the lease and announces the crash; then the process ends as it would
 * have without us. */
#include "cmocka_all.h"
#include "guardian/fatal.h"
#include "lib/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct scene {
    int fd; /* the leader's end */
    void (*crash)(void);
    void (*prepare)(void);
};

static volatile sig_atomic_t is_void;

static void void_lease(void *lease)
{
    *(volatile sig_atomic_t *)lease = 1;
}

static int lead_and_crash(void *userdata)
{
    static const char news[] = "crash";
    const struct scene *scene = userdata;
    struct fatal_entry entry = {.void_lease = void_lease,
                                .lease = (void *)(uintptr_t)&is_void,
                                .fd = scene->fd,
                                .datagram = news,
                                .bytes = sizeof(news)};

    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int number = 1; number < 32; number++) {
        (void)signal(number, SIG_DFL); /* a sanitizer's handlers would hide the status */
    }
    if (scene->prepare != NULL) {
        scene->prepare();
    }
    if (fatal_install(NULL) != 0 || fatal_add(&entry) < 0) {
        return 99;
    }
    scene->crash();
    return 98;
}

static int run(struct scene *scene, bool *ret_has_news)
{
    char news[16] = {0};
    int pair[2], status;
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    scene->fd = pair[1];
    child = process_fork(lead_and_crash, scene);
    close(pair[1]);
    process_wait_readable(pair[0]);
    *ret_has_news = recv(pair[0], news, sizeof(news), 0) > 0 && strcmp(news, "crash") == 0;
    status = process_wait(child);
    close(pair[0]);
    return status;
}

static void crash_abort(void)
{
    abort();
}
static void crash_raise_fpe(void)
{
    (void)raise(SIGFPE);
}
static void crash_raise_segv(void)
{
    (void)kill(getpid(), SIGSEGV);
}
static void crash_trap(void)
{
    __builtin_trap();
}

static void each_fatal_signal_sends_the_news_and_keeps_its_status(void **state)
{
    struct scene scenes[] = {
        {.crash = crash_abort}, {.crash = crash_raise_fpe}, {.crash = crash_raise_segv}};
    static const int numbers[] = {SIGABRT, SIGFPE, SIGSEGV};
    for (size_t i = 0; i < 3; i++) {
        bool has_news;
        int status = run(&scenes[i], &has_news);
        assert_true(has_news);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
    }
}

static void a_real_fault_dies_of_its_own_signal(void **state)
{
    struct scene scene = {.crash = crash_trap};
    bool has_news;
    int status = run(&scene, &has_news);
    assert_true(has_news);
    assert_true(WIFSIGNALED(status));
    assert_true(WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

static void exit_as_void(int number)
{
    _exit(is_void != 0 && number == SIGSEGV ? 42 : 43);
}
static void prepare_handler(void)
{
    (void)signal(SIGSEGV, exit_as_void);
}

static void the_programs_own_handler_runs_after_the_lease_is_void(void **state)
{
    struct scene scene = {.crash = crash_raise_segv, .prepare = prepare_handler};
    bool has_news;
    int status = run(&scene, &has_news);
    assert_true(has_news);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void ignore_fpe(void)
{
    (void)signal(SIGFPE, SIG_IGN);
}
static void crash_ignored(void)
{
    (void)raise(SIGFPE);
    _exit(is_void != 0 ? 1 : 7);
}

static void an_ignored_signal_is_not_fatal(void **state)
{
    struct scene scene = {.crash = crash_ignored, .prepare = ignore_fpe};
    bool has_news;
    int status = run(&scene, &has_news);
    assert_false(has_news);
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* A child of the leader has its handlers and its socket; its crash is not the leader's. */
static void crash_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        abort();
    }
    (void)waitpid(child, NULL, 0);
    _exit(is_void != 0 ? 1 : 7);
}

static void a_forked_childs_crash_says_nothing_about_the_leader(void **state)
{
    struct scene scene = {.crash = crash_in_child};
    bool has_news;
    int status = run(&scene, &has_news);
    assert_false(has_news);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static volatile bool is_endless = true;

static int overflow_stack(const volatile char *caller)
{
    volatile char here[4096];
    here[0] = caller != NULL ? caller[0] : 0;
    return is_endless ? overflow_stack(here) + here[0] : 0;
}
static void crash_overflow(void)
{
    (void)setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, 1 << 20});
    (void)overflow_stack(NULL);
}

static void an_overflown_stack_is_told_of_too(void **state)
{
    struct scene scene = {.crash = crash_overflow};
    bool has_news;
    int status = run(&scene, &has_news);
    assert_true(has_news);
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void earlier_handlers_come_back(void **state)
{
    struct sigaction before, after;
    assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
    assert_int_equal(fatal_install(NULL), 0);
    assert_int_equal(fatal_install(NULL), 0);
    fatal_uninstall();
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    assert_true(after.sa_sigaction != before.sa_sigaction);
    fatal_uninstall();
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    assert_true(after.sa_sigaction == before.sa_sigaction);
}

static void slots_are_bounded_and_reusable(void **state)
{
    struct fatal_entry entry = {.void_lease = void_lease, .fd = -1};
    for (int i = 0; i < FATAL_ENTRIES_MAX; i++) {
        assert_int_equal(fatal_add(&entry), i);
    }
    assert_int_equal(fatal_add(&entry), BATON_ETOOBIG);
    fatal_remove(5);
    assert_int_equal(fatal_add(&entry), 5);
    for (int i = 0; i < FATAL_ENTRIES_MAX; i++) {
        fatal_remove(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fatal_signal_sends_the_news_and_keeps_its_status),
        cmocka_unit_test(a_real_fault_dies_of_its_own_signal),
        cmocka_unit_test(the_programs_own_handler_runs_after_the_lease_is_void),
        cmocka_unit_test(an_ignored_signal_is_not_fatal),
        cmocka_unit_test(a_forked_childs_crash_says_nothing_about_the_leader),
        cmocka_unit_test(an_overflown_stack_is_told_of_too),
        cmocka_unit_test(earlier_handlers_come_back),
        cmocka_unit_test(slots_are_bounded_and_reusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
