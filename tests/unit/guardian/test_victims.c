/* Whoever acts for the leader is found and killed, however far it strayed. */
#include "cmocka_all.h"
#include "guardian/victims.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of this run alone: another one beside it is searching all processes as well. */
static struct victims marked;

/* Says its pid, then waits to be killed. */
static int sleep_for_ever(void *userdata)
{
    pid_t self = getpid();
    (void)!write(*(int *)userdata, &self, sizeof(self));
    while (pause() < 0) {
    }
    return 0;
}

static int lead_a_group(void *userdata)
{
    (void)setpgid(0, 0);
    if (fork() == 0) {
        return sleep_for_ever(userdata);
    }
    return sleep_for_ever(userdata);
}

static void a_process_group_dies_whole(void **state)
{
    int ready[2];
    pid_t child, pids[2];
    (void)state;

    assert_int_equal(pipe(ready), 0);
    child = process_fork(lead_a_group, &ready[1]);
    process_read(ready[0], pids, sizeof(pids));
    assert_true(victims_kill(&(struct victims){.group = child}, PROCESS_PATIENCE_MS));
    assert_false(process_lives(pids[0]) || process_lives(pids[1]));
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
    close(ready[0]);
    close(ready[1]);
}

/* A daemon by the book: new session, and an orphan. It carries the marker by exec. */
static int stray(void *userdata)
{
    char command[160];
    (void)putenv(marked.marker);
    (void)snprintf(command, sizeof(command),
                   "setsid sh -c 'printf %%08d $$ >&%d; exec sleep 1000' & exit 0",
                   *(int *)userdata);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return 1;
}

static void who_left_group_and_parent_is_found_by_the_marker(void **state)
{
    int ready[2];
    char number[9] = {0};
    pid_t child, orphan;
    (void)state;

    assert_int_equal(pipe(ready), 0);
    child = process_fork(stray, &ready[1]);
    process_wait(child);
    process_read(ready[0], number, 8);
    orphan = (pid_t)atoi(number);
    assert_true(process_lives(orphan));
    assert_true(victims_kill(&marked, PROCESS_PATIENCE_MS));
    process_wait_gone(orphan);
    close(ready[0]);
    close(ready[1]);
}

/* Becomes a shell that becomes a shell, and so on for ever: most of its life is execve(2). */
static int become_again_and_again(void *userdata)
{
    char command[64];
    (void)putenv(marked.marker);
    (void)setenv("AGAIN", "exec sh -c \"$AGAIN\"", 1);
    (void)snprintf(command, sizeof(command), "echo >&%d; eval \"$AGAIN\"", *(int *)userdata);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return 1;
}

static void who_is_becoming_another_program_does_not_slip_through(void **state)
{
    int ready[2];
    (void)state;

    assert_int_equal(pipe(ready), 0);
    for (int round = 0; round < 20; round++) {
        pid_t child = process_fork(become_again_and_again, &ready[1]);
        char line;
        process_read(ready[0], &line, 1); /* it has the marker only from then on */
        assert_true(victims_kill(&marked, PROCESS_PATIENCE_MS));
        assert_false(process_lives(child));
        (void)process_wait(child);
    }
    close(ready[0]);
    close(ready[1]);
}

static void a_marker_matches_whole_variables_only(void **state)
{
    (void)state;
    (void)setenv("BATON_TEST_PREFIX", "12345", 1);
    assert_int_equal(victims_signal(&(struct victims){.marker = "BATON_TEST_PREFIX=1234"}, 0), 0);
}

static int sleep_as_guardian(void *userdata)
{
    (void)prctl(PR_SET_NAME, "baton-guardian");
    return sleep_for_ever(userdata);
}

static void a_guardian_among_the_orphans_is_not_touched(void **state)
{
    int ready[2];
    pid_t spared, other, pid;
    (void)state;

    assert_int_equal(pipe(ready), 0);
    spared = process_fork(sleep_as_guardian, &ready[1]);
    other = process_fork(sleep_for_ever, &ready[1]);
    process_read(ready[0], &pid, sizeof(pid));
    process_read(ready[0], &pid, sizeof(pid));
    assert_true(victims_kill(&(struct victims){.parent = getpid()}, PROCESS_PATIENCE_MS));
    assert_true(process_lives(spared));
    assert_false(process_lives(other));
    process_end(spared);
    process_end(other);
    close(ready[0]);
    close(ready[1]);
}

static void nobody_to_kill_is_a_success(void **state)
{
    (void)state;
    assert_true(victims_kill(&(struct victims){0}, 0));
    assert_true(victims_kill(&(struct victims){.cgroup = "/nonexistent/cgroup"}, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_group_dies_whole),
        cmocka_unit_test(who_left_group_and_parent_is_found_by_the_marker),
        cmocka_unit_test(who_is_becoming_another_program_does_not_slip_through),
        cmocka_unit_test(a_marker_matches_whole_variables_only),
        cmocka_unit_test(a_guardian_among_the_orphans_is_not_touched),
        cmocka_unit_test(nobody_to_kill_is_a_success),
    };

    (void)snprintf(marked.marker, sizeof(marked.marker), "BATON_TEST_MARK=%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
