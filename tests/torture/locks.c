#include "locks.h"

#include "acts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEPS_PER_LOOK = 200,
    STEPS_PER_RESIGNATION = 1000, /* on the average, while it leads; for some up to */
    DOUBLINGS = 5,                /* so many times twice that: they keep on through the faults */
    RESIGN_MS = 5000,
};

/* Little-endian, as locks.py reads it. */
struct record {
    int64_t at_ns;
    uint64_t epoch;
    uint32_t pid;
    char election[8];
    char leader[24]; /* NODE.PID */
    char kind;       /* 'c' campaigns, 'd' has resigned, 'o' was told of the leader */
    char unused[3];
};

static _Thread_local struct record self;
static _Thread_local int records_fd = -1;
static _Thread_local unsigned dice, steps;
static _Thread_local int steps_per_resignation;

static void record(char kind, uint64_t epoch, const char *leader)
{
    self.at_ns = acts_clock();
    self.epoch = epoch;
    self.kind = kind;
    (void)snprintf(self.leader, sizeof(self.leader), "%s", leader);
    if (write(records_fd, &self, sizeof(self)) != (ssize_t)sizeof(self)) {
        perror("locks");
        _exit(1);
    }
}

void locks_open(const char *records, const char *election)
{
    records_fd = open(records, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (records_fd < 0) {
        perror(records);
        _exit(1);
    }
    self.pid = (uint32_t)getpid();
    dice = (unsigned)acts_clock();
    steps_per_resignation = STEPS_PER_RESIGNATION << rand_r(&dice) % (DOUBLINGS + 1);
    (void)snprintf(self.election, sizeof(self.election), "%s", election);
    record('c', 0, "");
}

static void look(struct baton_election *election)
{
    struct baton_member leader;
    uint64_t epoch;

    if (baton_leader(election, &leader, &epoch, NULL) == BATON_OK) {
        record('o', epoch, leader.name);
    }
}

void locks_step(struct baton_election *election, uint64_t epoch)
{
    if (epoch != 0 && rand_r(&dice) % steps_per_resignation == 0 &&
        baton_resign(election, RESIGN_MS, NULL) == BATON_OK) {
        record('d', epoch, "");
    }
    if (steps++ % STEPS_PER_LOOK == 0) {
        look(election);
    }
}
