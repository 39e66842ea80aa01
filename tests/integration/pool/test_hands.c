/* A pool of real processes, which are killed and stopped while it works. What counts is the file in
 * which they note what they do (hand.c): of each item the epochs never go back, so no copy acts
 * beside a later one, and every job ends with its result. */
#include "lib/process.h"

#include "cmocka_all.h"
#include "provider/agent_host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

enum { HANDS = 3, JOBS = 200, JOB_MS = 20, ROUNDS = 6, LOOK_MS = 5 };

static char folder[64];
static char path[96];
static pid_t pids[HANDS];
static const char *provider; /* of this run */

/* ---- What the hands have done -----------------------------------------------------------------
 */

struct item {
    unsigned long long epoch;
    int pid;
    int starts;
    UT_hash_handle hh;
    char id[64];
};

struct seen {
    struct item *items;
    int starts, ends, finished, wrong_finish;
    int stale;       /* lines of an earlier epoch */
    int service_pid; /* that acted last as "all.0" */
    char first_stale[160];
};

static void take(struct seen *seen, const char *line)
{
    char what[16], id[64];
    unsigned long long epoch;
    struct item *item;
    int pid;

    if (sscanf(line, "finished %llu %d", &epoch, &pid) == 2) {
        seen->finished++;
        seen->wrong_finish += epoch != JOBS;
        return;
    }
    assert_int_equal(sscanf(line, "%15s %63s %llu %d", what, id, &epoch, &pid), 4);
    HASH_FIND_STR(seen->items, id, item);
    if (!item) {
        item = calloc(1, sizeof(*item));
        assert_non_null(item);
        memcpy(item->id, id, strlen(id) + 1);
        HASH_ADD_STR(seen->items, id, item);
    }
    if (epoch < item->epoch || (epoch == item->epoch && pid != item->pid)) {
        seen->stale++;
        (void)snprintf(seen->first_stale, sizeof(seen->first_stale), "%s", line);
        return;
    }
    item->epoch = epoch;
    item->pid = pid;
    item->starts += strcmp(what, "start") == 0;
    seen->starts += strcmp(what, "start") == 0;
    seen->ends += strcmp(what, "end") == 0;
    if (strcmp(id, "all.0") == 0) {
        seen->service_pid = pid;
    }
}

static void forget(struct seen *seen)
{
    struct item *item = seen->items;

    HASH_CLEAR(hh, seen->items);
    while (item) {
        struct item *next = item->hh.next;

        free(item);
        item = next;
    }
}

/* The items are freed: only the counts are of use. */
static struct seen look(void)
{
    struct seen seen = {.items = NULL};
    FILE *file = fopen(path, "re");
    char line[256];

    while (file && fgets(line, sizeof(line), file)) {
        if (strchr(line, '\n')) { /* otherwise it is being written */
            take(&seen, line);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    forget(&seen);
    return seen;
}

static void pause_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = LOOK_MS * 1000000};

    (void)nanosleep(&moment, NULL);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            if (looks_++ > PATIENCE_MS / LOOK_MS) {                                                \
                fail_msg("not in time: %s", #condition);                                           \
            }                                                                                      \
            pause_a_moment();                                                                      \
        }                                                                                          \
    } while (0)

/* ---- Providers --------------------------------------------------------------------------------
 */

static struct agent_host host = {.program = BATON_PROGRAM, .lease = "1s"};
static int ports[HANDS];

static int redis_main(void *userdata)
{
    char port[12];

    (void)snprintf(port, sizeof(port), "%d", ports[0]);
    (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null",
                 (char *)NULL);
    return 127;
}

static void begin_provider(void)
{
    process_free_ports(ports, HANDS);
    if (strcmp(provider, "redis") == 0) {
        (void)process_fork(redis_main, NULL); /* ends with this process */
    } else if (strcmp(provider, "agent") == 0) {
        agent_host_begin(&host);
    }
}

static void url_of(int number, char *ret, size_t ret_bytes)
{
    char data[96];

    if (strcmp(provider, "redis") == 0) {
        (void)snprintf(ret, ret_bytes,
                       "redis://127.0.0.1:%d?lease=3s&max-lease=3s&check-interval=500ms"
                       "&guardian=no",
                       ports[0]);
    } else if (strcmp(provider, "agent") == 0) {
        (void)snprintf(ret, ret_bytes, "%s", host.url);
    } else {
        (void)snprintf(data, sizeof(data), "%s/n%d", folder, number);
        (void)mkdir(data, 0700);
        (void)snprintf(ret, ret_bytes,
                       "raft://127.0.0.1:%d?group=hands&preset=fast&heartbeat-timeout=3s&lease=3s"
                       "&guardian=no&data=%s"
                       "&peers=h0@127.0.0.1:%d,h1@127.0.0.1:%d,h2@127.0.0.1:%d",
                       ports[number], data, ports[0], ports[1], ports[2]);
    }
}

/* ---- Hands ------------------------------------------------------------------------------------
 */

static int hand_main(void *userdata)
{
    int number = *(int *)userdata;
    char url[512], name[8], jobs[8], ms[8];

    url_of(number, url, sizeof(url));
    (void)snprintf(name, sizeof(name), "h%d", number);
    (void)snprintf(jobs, sizeof(jobs), "%d", JOBS);
    (void)snprintf(ms, sizeof(ms), "%d", JOB_MS);
    (void)execl(POOL_HAND, POOL_HAND, url, name, path, jobs, ms, (char *)NULL);
    return 127;
}

static void start_hand(int number)
{
    pids[number] = process_fork(hand_main, &number);
}

static int set_up(void **state)
{
    process_make_folder(folder, sizeof(folder));
    (void)snprintf(path, sizeof(path), "%s/acts", folder);
    begin_provider();
    for (int i = 0; i < HANDS; i++) {
        start_hand(i);
    }
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < HANDS; i++) {
        if (pids[i]) {
            (void)kill(pids[i], SIGCONT);
            process_end(pids[i]);
        }
    }
    if (strcmp(provider, "agent") == 0) {
        agent_host_end(&host);
    }
    process_remove_folder(folder);
    return 0;
}

static int hand_of(pid_t pid)
{
    for (int i = 0; i < HANDS; i++) {
        if (pids[i] == pid) {
            return i;
        }
    }
    return -1;
}

static void await_progress(int ends)
{
    int wanted = look().ends + ends;

    AWAIT(look().ends >= (wanted < JOBS ? wanted : JOBS));
}

/* The process in which the first service runs. */
static int serving(void)
{
    AWAIT(hand_of(look().service_pid) >= 0);
    return hand_of(look().service_pid);
}

static void check_all(int excused)
{
    struct seen seen;

    AWAIT(look().finished >= 1);
    seen = look();
    assert_int_equal(seen.wrong_finish, 0);
    if (seen.stale > excused) {
        fail_msg("%d acts of an earlier epoch, the last one: %s", seen.stale, seen.first_stale);
    }
}

static void
every_job_ends_and_no_copy_acts_beside_a_later_one_when_processes_are_killed(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        int victim = round % 2 ? round / 2 % HANDS : serving();

        await_progress(15);
        process_end(pids[victim]);
        start_hand(victim);
    }
    check_all(0);
}

/* A process that was stopped after it had looked at its lease may act once more: no lease can
 * prevent that. */
static void every_job_ends_and_no_copy_acts_beside_a_later_one_when_processes_stop(void **state)
{
    for (int round = 0; round < ROUNDS / 2; round++) {
        int victim = serving();
        pid_t pid = pids[victim];

        await_progress(5);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        process_wait_stopped(pid);
        AWAIT(look().service_pid != pid);
        assert_int_equal(kill(pid, SIGCONT), 0);
    }
    check_all(ROUNDS / 2);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            every_job_ends_and_no_copy_acts_beside_a_later_one_when_processes_are_killed, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            every_job_ends_and_no_copy_acts_beside_a_later_one_when_processes_stop, set_up,
            tear_down),
    };

    if (count != 2) {
        (void)fprintf(stderr, "usage: integration_pool_hands redis|agent|raft\n");
        return 64;
    }
    provider = arguments[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
