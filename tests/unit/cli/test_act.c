#include "cli/act.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_stamp_of_another_process_rings_the_bell(void **state)
{
    char path[] = "/tmp/baton-act-XXXXXX";
    int fd = mkstemp(path);
    struct act *act;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(act_open(&act, path, NULL), 0);
    uint32_t bells = act_bells(act);
    pid_t child = fork();
    if (child == 0) {
        act_stamp_acquired(act, 3, 7, (instant){42});
        _exit(0);
    }
    assert_true(act_wait(act, bells, instant_add(clock_now(), SPAN_S(60))));
    struct act_stamp stamp = act_read(act, 3);
    assert_int_equal(stamp.count, 1);
    assert_int_equal(stamp.epoch, 7);
    assert_int_equal(stamp.acquired.ns, 42);
    assert_int_equal(act_read(act, 2).count, 0);
    assert_false(act_wait(act, act_bells(act), clock_now()));
    assert_int_equal(waitpid(child, NULL, 0), child);
    act_close(act);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_of_another_process_rings_the_bell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
