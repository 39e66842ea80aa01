/* What a helper is given by its parent: of the environment, files and memory. */
#include "cmocka_all.h"
#include "detector/helper/helper.h"
#include "lib/assert_ok.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT_US = 50000 };

static bool is_given(const char *wanted)
{
    char *environment[HELPER_ENVIRONMENT_MAX];
    bool is = false;

    helper_environment(environment);
    for (char **entry = environment; *entry; entry++) {
        is = is || strcmp(*entry, wanted) == 0;
    }
    return is;
}

static void huge_pages_are_asked_for_unless_somebody_decided(void **state)
{
    assert_int_equal(unsetenv("GLIBC_TUNABLES"), 0);
    assert_true(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
    assert_int_equal(setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0", 1), 0);
    assert_true(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=0"));
    assert_false(is_given("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
}

static void secrets_stay_and_all_that_loaders_need_goes_along(void **state)
{
    static const char *const names[] = {"LD_LIBRARY_PATH",   "GLIBC_TUNABLES",
                                        "LIBVA_DRIVER_NAME", "ASAN_OPTIONS",
                                        "UBSAN_OPTIONS",     "HOME",
                                        "TSAN_OPTIONS",      "SSL_CERT_FILE",
                                        "SSL_CERT_DIR",      "TZ"};
    char wanted[64];

    assert_int_equal(setenv("BATON_TOKEN", "canary", 1), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(setenv(names[i], "x", 1), 0);
        snprintf(wanted, sizeof(wanted), "%s=x", names[i]);
        assert_true(is_given(wanted));
    }
    assert_false(is_given("BATON_TOKEN=canary"));
}

static void make_program(char path[], const char *script)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, script, strlen(script)), strlen(script));
    assert_int_equal(fchmod(fd, 0700), 0);
    (void)close(fd);
}

/* Its socket is 3. */
static void a_helper_has_the_files_that_it_is_given_and_no_other_one(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "for fd in 3 4 5 20; do\n"
                                 "    [ ! -e /proc/$$/fd/$fd ] || echo $fd >&4\n"
                                 "done\n";
    char path[] = "/tmp/baton-helper-XXXXXX", text[16] = "";
    struct helper helper;
    int ends[2], status;

    make_program(path, script);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], 20), 20); /* by somebody who forgot that it is inherited */
    assert_int_equal(helper_start(&helper, path, "helper", (int[]){ends[1], -1}, NULL), 0);
    (void)close(ends[1]);
    assert_true(helper_wait(&helper, 30000, &status));
    assert_int_equal(read(ends[0], text, sizeof(text) - 1), 4);
    assert_string_equal(text, "3\n4\n");
    helper_close((int[]){ends[0], 20, -1, helper.socket}, 4);
    (void)unlink(path);
}

static int begun[2]; /* a pipe */

/* Is told of its end first, and keeps it for a moment, as strace does, or a leak checker. */
static int trace(void *userdata)
{
    const pid_t *child = userdata;

    if (ptrace(PTRACE_SEIZE, *child, NULL, NULL) != 0 || write(begun[1], "", 1) != 1) {
        return EXIT_FAILURE;
    }
    (void)waitid(P_PID, (id_t)*child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    (void)usleep(KEPT_US);
    return EXIT_SUCCESS;
}

static void a_helper_that_is_traced_is_waited_for(void **state)
{
    char path[] = "/tmp/baton-helper-XXXXXX", byte;
    struct helper helper;
    pid_t tracer;
    int status;

    make_program(path, "#!/bin/sh\nexec sleep 1000\n");
    ASSERT_OK(helper_start(&helper, path, "helper", (int[]){-1}, failure));
    assert_int_equal(pipe(begun), 0);
    tracer = process_fork(trace, &helper.pid);
    (void)close(begun[1]);
    if (read(begun[0], &byte, 1) == 1) {
        status = helper_kill(&helper);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(process_wait(tracer), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    } else {
        print_message("not tested: tracing takes root\n");
        process_end(tracer);
    }
    (void)helper_kill(&helper);
    helper_close((int[]){begun[0], helper.socket}, 2);
    (void)unlink(path);
}

static void shared_memory_keeps_its_size(void **state)
{
    enum { BYTES = 8192 };
    void *memory = NULL;
    int fd = helper_share(&memory, "test", BYTES, NULL);

    assert_true(fd >= 0);
    assert_int_not_equal(ftruncate(fd, 0), 0);
    assert_int_not_equal(ftruncate(fd, 2 * (off_t)BYTES), 0);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & HELPER_SEALS, HELPER_SEALS);
    (void)munmap(memory, BYTES);
    (void)close(fd);
}

/* The memory of a camera is larger than what it takes. */
static void a_limit_that_refuses_shared_memory_is_named(void **state)
{
    struct rlimit old, low;
    void *memory;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){4096, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    ASSERT_FAILS(helper_share(&memory, "test", 8192, failure), BATON_ENOMEM,
                 "8192 bytes: File too large; is it above ulimit");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huge_pages_are_asked_for_unless_somebody_decided),
        cmocka_unit_test(secrets_stay_and_all_that_loaders_need_goes_along),
        cmocka_unit_test(a_helper_has_the_files_that_it_is_given_and_no_other_one),
        cmocka_unit_test(a_helper_that_is_traced_is_waited_for),
        cmocka_unit_test(shared_memory_keeps_its_size),
        cmocka_unit_test(a_limit_that_refuses_shared_memory_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
