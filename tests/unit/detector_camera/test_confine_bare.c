/* The fences of a kernel that knows no Landlock: seccomp alone must hold what it can. */
#include "cmocka_all.h"

#include "detector/camera/confine.h"
#include "detector/camera/landlock.h"
#include "unit/detector_camera/fenced.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 12345 };

void landlock_restrict(const struct confinement *confinement)
{
    (void)confinement;
}

static int signal_by_call(pid_t victim)
{
    CHECK(syscall(SYS_tgkill, victim, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tkill, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(kill(victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0) == 0); /* abort() needs it */
    return 0;
}

/* Whoever owns a descriptor is sent a signal of one's choice when there is something to read. */
static int signal_by_descriptor(pid_t victim)
{
    int pipes[2];

    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(fcntl(pipes[0], F_SETOWN, victim) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETSIG, SIGKILL) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETFL, fcntl(pipes[0], F_GETFL) | O_NONBLOCK) == 0);
    return 0;
}

/* As a process of the victim's own user: as a service is whose user is not root. */
static int run_beside_victim(int (*body)(pid_t victim))
{
    const struct confinement strict = {.port = 8554};
    pid_t victim;
    int result;

    if (geteuid() == 0 && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) != 0) {
        return 255;
    }
    victim = fork();
    if (victim == 0) {
        (void)pause();
        _exit(0);
    }
    if (victim < 0 || confine_process(&strict, NULL) != 0 || confine_stream(&strict, NULL) != 0) {
        return 254;
    }
    result = body(victim);
    return result; /* the victim dies with the test's group, or by what was tried */
}

static void assert_harmless(int (*body)(pid_t victim))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        (void)setpgid(0, 0);
        _exit(run_beside_victim(body));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)kill(-child, SIGKILL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void no_other_process_can_be_sent_a_signal(void **state)
{
    (void)state;
    assert_harmless(signal_by_call);
    assert_harmless(signal_by_descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_process_can_be_sent_a_signal),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_confine_bare", tests, NULL, NULL);
}
