#include "acts.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 1000000, ACTS_PER_UPDATE = 8 };

struct record {
    uint64_t life; /* common to all processes of one program that was started */
    uint64_t epoch;
    int64_t at_ns;
    uint32_t pid;
    char node[12];
};

struct request {
    char verb; /* 'r' registers the epoch, 'g' reads the version, 'p' writes upon a version */
    char node[15];
    uint64_t epoch, version, life;
};

struct reply {
    uint64_t is_granted, version;
};

static _Thread_local struct record self;
static _Thread_local int records_fd = -1, store_fd = -1;
static _Thread_local bool is_fenced; /* the store refused this epoch: it gets no more requests */
static _Thread_local unsigned count;

int64_t acts_clock(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void connect_store(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    store_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (store_fd < 0 ||
        connect(store_fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        fail(path);
    }
}

void acts_open(const char *records, const char *store, const char *node)
{
    (void)snprintf(self.node, sizeof(self.node), "%s", node);
    records_fd = open(records, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (records_fd < 0) {
        fail(records);
    }
    connect_store(store);
}

static bool ask(char verb, uint64_t *version)
{
    struct request request = {
        .verb = verb, .epoch = self.epoch, .version = *version, .life = self.life};
    struct reply reply;
    (void)snprintf(request.node, sizeof(request.node), "%s", self.node);
    if (send(store_fd, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request) ||
        recv(store_fd, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply)) {
        return false;
    }
    *version = reply.version;
    return reply.is_granted != 0;
}

void acts_begin(uint64_t epoch)
{
    uint64_t version = 0;
    self.life = (uint64_t)acts_clock();
    self.epoch = epoch;
    self.pid = (uint32_t)getpid();
    is_fenced = !ask('r', &version);
}

void acts_inherit(void)
{
    self.pid = (uint32_t)getpid();
    is_fenced = true;
}

void acts_act(int64_t at_ns)
{
    uint64_t version = 0;
    self.at_ns = at_ns;
    if (write(records_fd, &self, sizeof(self)) != (ssize_t)sizeof(self)) {
        fail("records");
    }
    if (!is_fenced && count++ % ACTS_PER_UPDATE == 0) {
        is_fenced = !ask('g', &version) || !ask('p', &version);
    }
}

void acts_rest(void)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    (void)nanosleep(&period, NULL);
}
