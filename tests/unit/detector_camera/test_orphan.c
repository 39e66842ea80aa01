/* A broker whose process was killed: with all fences, as they are used. */
#include "cmocka_all.h"

#include "detector/camera/broker.h"
#include "detector/camera/confine.h"
#include "lib/process.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Confines itself, says so, and never rings the broker's bell. */
static int be_silent(void *userdata)
{
    const int *said = userdata;
    static struct camera_config config = {.parts = {.scheme = "rtsp", .port = 8554}};
    struct confinement confinement = {.port = 8554};
    int nowhere = open("/dev/null", O_WRONLY);

    broker_prepare();
    if (broker_start(&config, &confinement, NULL) == 0 && (confinement.broker = nowhere) >= 0 &&
        confine_process(&confinement, NULL) == 0 && write(*said, "", 1) == 1) {
        for (;;) {
            (void)poll(NULL, 0, -1);
        }
    }
    return EXIT_FAILURE;
}

/* By its death signal, which comes through as both are in one domain of Landlock. */
static void a_broker_that_waits_ends_with_the_process_that_it_serves(void **state)
{
    struct pollfd end = {.events = POLLIN};
    int said[2];
    pid_t child;
    char byte;

    assert_int_equal(pipe(said), 0);
    child = process_fork(be_silent, &said[1]);
    (void)close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    while (process_status(process_child(child), "Seccomp", 10) != SECCOMP_MODE_FILTER) {
        (void)sched_yield();
    }
    process_end(child);
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
