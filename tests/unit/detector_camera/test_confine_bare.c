/* The fences of a kernel that knows no Landlock: seccomp alone must hold what it can. */
#include "detector/camera/confine.h"
#include "detector/camera/landlock.h"
#include "unit/detector_camera/fenced.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SOMEBODY = 12345 };

void landlock_restrict(const struct confinement *confinement)
{
    (void)confinement;
}

static const struct confinement strict = {.port = 8554};
static pid_t victim;

/* With a victim of its own user: as a service is whose user is not root. The victim dies with this
 * process, or by what is tried. */
static int begin_beside_victim(void)
{
    pid_t parent = getpid();

    if (geteuid() == 0 && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) != 0) {
        return -1;
    }
    victim = fork();
    if (victim == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            (void)pause();
        }
        _exit(0);
    }
    return victim < 0 || confine_process(&strict, NULL) || confine_stream(&strict, NULL);
}

static int signal_by_call(void)
{
    CHECK(syscall(SYS_tgkill, victim, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tkill, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(kill(victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0) == 0); /* abort() needs it */
    return 0;
}

/* Whoever owns a descriptor is sent a signal of one's choice when there is something to read. */
static int signal_by_descriptor(void)
{
    int pipes[2];

    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(fcntl(pipes[0], F_SETOWN, victim) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETSIG, SIGKILL) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETFL, fcntl(pipes[0], F_GETFL) | O_NONBLOCK) == 0);
    return 0;
}

static void no_other_process_can_be_sent_a_signal(void **state)
{
    (void)state;
    assert_int_equal(run_fenced(begin_beside_victim, signal_by_call), 0);
    assert_int_equal(run_fenced(begin_beside_victim, signal_by_descriptor), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_process_can_be_sent_a_signal),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_confine_bare", tests, NULL, NULL);
}
