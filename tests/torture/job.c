/* The command of an item of work: it acts for a while, and records when.
 *
 *   torture_job RECORDS MILLISECONDS KIND
 *
 * 0 ms: for ever. About every millisecond it reads the clock and then appends a record: that
 * is the act. At its end it prints its life and its epoch, by which a result is told from others.
 *
 * KIND:
 *   plain      ends with 0
 *   flaky      one attempt of four fails
 *   stubborn   SIGTERM is ignored
 */
#include "acts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILS_ONE_OF = 4 };

/* As work_checker.py reads it. */
struct record {
    uint64_t life; /* when it began: common to all records of one start */
    uint64_t epoch;
    int64_t at_ns;
    uint32_t pid;
    uint32_t is_end;
    char item[12];
    char worker[4];
};

static void act(int fd, struct record *record, bool is_end)
{
    record->at_ns = acts_clock();
    record->is_end = is_end;
    if (write(fd, record, sizeof(*record)) != (ssize_t)sizeof(*record)) {
        perror("records");
        _exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *item = getenv("BATON_ITEM");
    const char *epoch = getenv("BATON_EPOCH");
    const char *worker = getenv("BATON_NODE");
    int fd = argc == 4 ? open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    struct record record = {.life = (uint64_t)acts_clock(), .pid = (uint32_t)getpid()};
    int64_t end_ns;

    if (fd < 0 || !item || !epoch || !worker) {
        (void)fprintf(stderr,
                      "usage: BATON_ITEM=ID BATON_EPOCH=N BATON_NODE=NAME %s RECORDS "
                      "MILLISECONDS KIND\n",
                      argv[0]);
        return 64;
    }
    if (strcmp(argv[3], "stubborn") == 0) {
        (void)signal(SIGTERM, SIG_IGN);
    }
    record.epoch = strtoull(epoch, NULL, 10);
    (void)snprintf(record.item, sizeof(record.item), "%s", item);
    (void)snprintf(record.worker, sizeof(record.worker), "%s", worker);
    end_ns = (int64_t)record.life + strtoll(argv[2], NULL, 10) * 1000000;
    while (end_ns == (int64_t)record.life || acts_clock() < end_ns) {
        act(fd, &record, false);
        acts_rest();
    }
    if (strcmp(argv[3], "flaky") == 0 && record.life / 1000 % FAILS_ONE_OF == 0) {
        return 1;
    }
    act(fd, &record, true);
    printf("%llu %llu\n", (unsigned long long)record.life, (unsigned long long)record.epoch);
    return 0;
}
