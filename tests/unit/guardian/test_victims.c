/* Every process that acts for the leader is found and killed, in whatever session, group or cgroup.
 * A stranger that hides its environment keeps nobody from the proof that none is left.
 */
#include "cmocka_all.h"
#include "guardian/victims.h"
#include "hider.h"
#include "lib/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 65533, SOMEBODY_ELSE = 65532 };

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

    assert_int_equal(pipe(ready), 0);
    child = process_fork(lead_a_group, &ready[1]);
    process_read(ready[0], pids, sizeof(pids));
    (void)victims_hunt(&(struct victims){.group = child}, PATIENCE_MS);
    process_wait_gone(pids[1]);
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

    assert_int_equal(pipe(ready), 0);
    child = process_fork(stray, &ready[1]);
    process_wait(child);
    process_read(ready[0], number, 8);
    orphan = (pid_t)atoi(number);
    assert_true(process_lives(orphan));
    (void)victims_hunt(&marked, PATIENCE_MS);
    process_wait_gone(orphan);
    close(ready[0]);
    close(ready[1]);
}

/* The shell replaces itself for ever, so it is in the middle of execve(2) most of the time. Before
 * that nothing allocates: the thread of the search before may just end, and the fork would leave
 * the sanitizers' allocator locked by it. */
static int replace_itself(void *userdata)
{
    static char filler[100000] = "FILLER=", again[] = "AGAIN=exec sh -c \"$AGAIN\"";
    char command[64], *variables[] = {filler, marked.marker, again, NULL};
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"eval \"$0\"", command, NULL};
    size_t used = strlen(filler);

    /* Many reads, with time for an execve(2) between. */
    memset(filler + used, 'x', sizeof(filler) - used - 1);
    (void)personality(ADDR_NO_RANDOMIZE); /* before and after it, all addresses are the same */
    (void)snprintf(command, sizeof(command), "echo >&%d; eval \"$AGAIN\"", *(int *)userdata);
    (void)execve("/bin/sh", words, variables);
    return 1;
}

static void a_process_in_the_middle_of_execve_is_searched_again(void **state)
{
    int ready[2];
    char line;

    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < 300; i++) {
        pid_t child = process_fork(replace_itself, &ready[1]);
        process_read(ready[0], &line, 1);
        (void)victims_hunt(&marked, PATIENCE_MS);
        process_wait_gone(child);
        assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
    }
    close(ready[0]);
    close(ready[1]);
}

struct longer {
    const char *more;
    int ready[2];
};

static int sleep_with_a_longer_value(void *userdata)
{
    const struct longer *longer = userdata;
    char command[64];
    char variable[VICTIMS_MARKER_MAX + 8];
    (void)snprintf(variable, sizeof(variable), "%s%s", marked.marker, longer->more);
    (void)putenv(variable);
    (void)snprintf(command, sizeof(command), "echo >&%d; exec sleep 1000", longer->ready[1]);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return 1;
}

static pid_t start_longer(struct longer *longer)
{
    pid_t child;
    char line;

    assert_int_equal(pipe(longer->ready), 0);
    child = process_fork(sleep_with_a_longer_value, longer);
    process_read(longer->ready[0], &line, 1);
    close(longer->ready[0]);
    close(longer->ready[1]);
    return child;
}

static void a_marker_matches_whole_variables_only(void **state)
{
    struct longer longer = {.more = "5"};
    pid_t child = start_longer(&longer);

    (void)victims_hunt(&marked, 0);
    assert_true(process_lives(child));
    process_end(child);
}

static void a_marker_matches_those_of_single_commands_too(void **state)
{
    struct longer longer = {.more = "-12"};
    pid_t child = start_longer(&longer);

    (void)victims_hunt(&marked, PATIENCE_MS);
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
}

/* ---- Processes that take their environment away ---------------------------------------------- */

static void a_stranger_that_takes_its_environment_away_does_not_hold_up_the_search(void **state)
{
    static const char *const hows[] = {"unmap", "protect", "nothing", "file",
                                       "end",   "secret",  "guard"};
    size_t count = sizeof(hows) / sizeof(hows[0]);
    struct sysinfo host;

    assert_int_equal(sysinfo(&host), 0);
    if (host.totalswap > 0) {
        count--; /* a guard page looks like one in the swap area */
    }
    for (size_t i = 0; i < count; i++) {
        pid_t stranger = hider_start(&(struct hider){.how = hows[i], .before = 1});
        bool is_certain = stranger == 0 || victims_hunt(&marked, PATIENCE_MS);
        assert_true(stranger == 0 || process_lives(stranger));
        if (stranger != 0) {
            process_end(stranger);
        }
        if (!is_certain) {
            fail_msg("unknown beside a stranger: %s", hows[i]);
        }
    }
}

static void a_marker_behind_a_page_that_was_taken_away_is_found(void **state)
{
    pid_t child =
        hider_start(&(struct hider){.how = "first", .marker = marked.marker, .before = 1});

    assert_true(child > 0);
    assert_true(victims_hunt(&marked, PATIENCE_MS));
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
}

static void a_marker_at_the_end_of_a_long_environment_is_found(void **state)
{
    pid_t child =
        hider_start(&(struct hider){.how = "leave", .marker = marked.marker, .before = 15});

    assert_true(child > 0);
    assert_true(victims_hunt(&marked, PATIENCE_MS));
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
}

static void a_process_that_outlives_its_first_thread_is_found(void **state)
{
    pid_t child = hider_start(&(struct hider){.how = "thread", .marker = marked.marker});

    assert_true(child > 0);
    assert_true(victims_hunt(&marked, PATIENCE_MS));
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
}

/* ---- A process that is always another -------------------------------------------------------- */

static void who_ends_before_its_turn_has_left_no_child_unseen(void **state)
{
    char how[16];
    int over[2];
    bool has_found_none;

    assert_int_equal(pipe(over), 0);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)snprintf(how, sizeof(how), "relay%d", over[0]);
    assert_true(hider_start(&(struct hider){.how = how, .marker = marked.marker}) > 0);
    has_found_none = victims_hunt_for(&marked, SOMEBODY_ELSE, 1000);
    assert_int_equal(write(over[1], "", 1), 1);
    assert_true(victims_hunt(&marked, PATIENCE_MS));
    (void)signal(SIGCHLD, SIG_DFL);
    close(over[0]);
    close(over[1]);
    assert_false(has_found_none);
}

/* ---- On whose behalf ------------------------------------------------------------------------- */

static void on_behalf_of_a_user_only_that_users_processes_are_killed(void **state)
{
    pid_t child = hider_start(
        &(struct hider){.how = "leave", .marker = marked.marker, .before = 1, .user = SOMEBODY});

    if (child == 0) {
        skip();
    }
    assert_false(victims_hunt_for(&marked, SOMEBODY_ELSE, 0));
    assert_true(process_lives(child));
    assert_true(victims_hunt_for(&marked, SOMEBODY, PATIENCE_MS));
    assert_int_equal(WTERMSIG(process_wait(child)), SIGKILL);
}

/* ---- What is certain ------------------------------------------------------------------------- */

static void nobody_to_end_is_certain(void **state)
{
    assert_true(victims_end(&(struct victims){0}, 0));
}

/* Only a supervisor can know. */
static void without_a_supervisor_nothing_is_certain(void **state)
{
    assert_false(victims_end(&marked, 0));
    assert_false(victims_end(&(struct victims){.cgroup = "/nonexistent/cgroup"}, 0));
}

static void a_supervisor_that_dies_without_a_reply_leaves_it_uncertain(void **state)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    close(pair[1]);
    assert_false(victims_end(&(struct victims){.supervisor = pair[0]}, PATIENCE_MS));
    close(pair[0]);
}

static void a_reply_counts_though_its_sender_is_gone(void **state)
{
    int pair[2];
    char byte = VICTIMS_NONE_LEFT;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(send(pair[1], &byte, 1, 0), 1);
    close(pair[1]);
    assert_true(victims_end(&(struct victims){.supervisor = pair[0]}, PATIENCE_MS));
    close(pair[0]);
}

int main(int count, char *arguments[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_group_dies_whole),
        cmocka_unit_test(who_left_group_and_parent_is_found_by_the_marker),
        cmocka_unit_test(a_process_in_the_middle_of_execve_is_searched_again),
        cmocka_unit_test(a_marker_matches_whole_variables_only),
        cmocka_unit_test(a_marker_matches_those_of_single_commands_too),
        cmocka_unit_test(a_stranger_that_takes_its_environment_away_does_not_hold_up_the_search),
        cmocka_unit_test(a_marker_behind_a_page_that_was_taken_away_is_found),
        cmocka_unit_test(a_marker_at_the_end_of_a_long_environment_is_found),
        cmocka_unit_test(a_process_that_outlives_its_first_thread_is_found),
        cmocka_unit_test(who_ends_before_its_turn_has_left_no_child_unseen),
        cmocka_unit_test(on_behalf_of_a_user_only_that_users_processes_are_killed),
        cmocka_unit_test(nobody_to_end_is_certain),
        cmocka_unit_test(without_a_supervisor_nothing_is_certain),
        cmocka_unit_test(a_supervisor_that_dies_without_a_reply_leaves_it_uncertain),
        cmocka_unit_test(a_reply_counts_though_its_sender_is_gone),
    };

    if (hider_is_meant(count, arguments)) {
        return hider_main(arguments);
    }
    (void)snprintf(marked.marker, sizeof(marked.marker), "BATON_TEST_MARK=%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
