/* A broker whose process was killed: with all fences, as they are used. */
#include "cmocka_all.h"

#include "detector/camera/broker.h"
#include "detector/camera/confine.h"
#include "lib/patience.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a child of that process has its filter: 0 or the child's number. */
static pid_t confined_child(pid_t parent)
{
    char path[64], line[128];
    int child = 0, mode = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    if ((file = fopen(path, "re"))) {
        (void)!fscanf(file, "%d", &child);
        (void)fclose(file);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/status", child);
    file = child > 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "Seccomp: %d", &mode);
    }
    if (file) {
        (void)fclose(file);
    }
    return mode == SECCOMP_MODE_FILTER ? child : 0;
}

/* Confines itself, says so, and never rings the broker's bell. */
static void be_silent(int said)
{
    static struct camera_config config;
    static struct url url = {.scheme = "rtsp", .port = 8554};
    int listener = -1;
    const struct confinement confinement = {.port = 8554, .listener = &listener};

    broker_prepare();
    if (broker_start(&config, &url, &confinement, NULL) == 0 &&
        confine_process(&confinement, NULL) == 0 && write(said, "", 1) == 1) {
        for (;;) {
            (void)poll(NULL, 0, -1);
        }
    }
    _exit(255);
}

/* Its death signal does not come through: the killed process is in another domain of Landlock. */
static void a_broker_that_waits_ends_with_the_process_that_it_serves(void **state)
{
    struct pollfd end = {.events = POLLIN};
    int said[2], status;
    pid_t child;
    char byte;

    (void)state;
    assert_int_equal(pipe(said), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        be_silent(said[1]);
    }
    (void)close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    while (confined_child(child) == 0) {
        (void)sched_yield();
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    end.fd = said[0]; /* the broker has the other end, too */
    assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
    assert_int_equal(read(said[0], &byte, 1), 0);
    (void)close(said[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broker_that_waits_ends_with_the_process_that_it_serves),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_orphan", tests, NULL, NULL);
}
