/* The program that `make torture` lets `baton run` start: it acts as the leader, and says when.
 *
 *   baton_actor KIND RECORDS STORE
 *
 * Each act is a record appended to the file RECORDS: the clock is read right before, and the record
 * is the act. Some acts are updates of the value in the store (store.py), a Unix socket, which
 * refuses epochs lower than the highest that was registered; the epoch is registered before the
 * first value is read.
 *
 * KIND says which process acts, joined by '+':
 *   plain      the program itself
 *   setuid     the program itself, as another user, so that it has no parent-death signal any more
 *   daemon     a worker in a session of its own, whose parent has ended
 *   opaque     its environment and descriptors cannot be read by an unprivileged process
 *   forks      the program and two children
 *   moves      a process that leaves its cgroup for the topmost one
 *   stubborn   SIGTERM is ignored
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { OTHER_USER = 61999, PERIOD_NS = 1000000, ACTS_PER_UPDATE = 8, CHILDREN = 2 };

struct record {
    uint64_t life; /* one for each program that was started, common to its processes */
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

static struct record self;

/* By a system call: the clock of this program is true even where baton's is not (clocks.c). */
static int64_t now_ns(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_kind(const char *kinds, const char *kind)
{
    return strstr(kinds, kind) != NULL;
}

static int connect_store(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static bool ask(int store, char verb, uint64_t *version)
{
    struct request request = {
        .verb = verb, .epoch = self.epoch, .version = *version, .life = self.life};
    struct reply reply;
    (void)snprintf(request.node, sizeof(request.node), "%s", self.node);
    if (send(store, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request) ||
        recv(store, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply)) {
        return false;
    }
    *version = reply.version;
    return reply.is_granted != 0;
}

/* An epoch that was refused once is over: nothing is asked of the store again. */
static bool update(int store)
{
    uint64_t version = 0;
    return ask(store, 'g', &version) && ask(store, 'p', &version);
}

static _Noreturn void act(int records, const char *path)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    int store = path ? connect_store(path) : -1;
    uint64_t version = 0;
    bool is_fenced = !path || !ask(store, 'r', &version);

    self.pid = (uint32_t)getpid();
    for (int count = 0;; count++) {
        self.at_ns = now_ns();
        if (write(records, &self, sizeof(self)) != (ssize_t)sizeof(self)) {
            _exit(1);
        }
        if (!is_fenced && count % ACTS_PER_UPDATE == 0) {
            is_fenced = !update(store);
        }
        (void)nanosleep(&period, NULL);
    }
}

/* Becomes a process of its own session whose parent has ended; the program itself only waits. */
static void daemonize(void)
{
    pid_t middle = fork();
    if (middle < 0) {
        exit(1);
    }
    if (middle > 0) {
        for (;;) {
            (void)pause();
        }
    }
    (void)setsid();
    if (fork() != 0) {
        _exit(0);
    }
}

/* As `systemd-run --scope` and container engines do it. Where it is not allowed, it stays. */
static void move_to_top_cgroup(void)
{
    static const char *const paths[] = {"/sys/fs/cgroup/cgroup.procs",
                                        "/sys/fs/cgroup/unified/cgroup.procs"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!write(fd, "0", 1);
            (void)close(fd);
        }
    }
}

static void become_other_user(void)
{
    if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0) {
        perror("setuid");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *epoch = getenv("BATON_EPOCH");
    const char *node = getenv("BATON_NODE");
    if (argc != 4 || !epoch || !node) {
        (void)fprintf(stderr, "usage: BATON_EPOCH=N BATON_NODE=NAME %s KIND RECORDS STORE\n",
                      argv[0]);
        return 64;
    }
    const char *kinds = argv[1];
    int records = open(argv[2], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (records < 0) {
        perror(argv[2]);
        return 1;
    }
    self.life = (uint64_t)now_ns();
    self.epoch = strtoull(epoch, NULL, 10);
    (void)snprintf(self.node, sizeof(self.node), "%s", node);
    if (is_kind(kinds, "stubborn")) {
        (void)signal(SIGTERM, SIG_IGN);
    }
    if (is_kind(kinds, "moves")) {
        move_to_top_cgroup();
    }
    if (is_kind(kinds, "setuid")) {
        become_other_user();
    }
    if (is_kind(kinds, "opaque")) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    if (is_kind(kinds, "daemon")) {
        daemonize();
    }
    for (int i = 0; is_kind(kinds, "forks") && i < CHILDREN; i++) {
        if (fork() == 0) {
            act(records, NULL);
        }
    }
    act(records, argv[3]);
}
