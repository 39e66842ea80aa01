/* The program `baton` with an observer in it, which relies on is_leader alone.
 *
 * It is linked with --wrap=lease_cell_new: the unchanged program, plus a thread that calls
 * lease_cell_is_leader() again and again. The observations are in the file that FAULTS_OBSERVED
 * names (a mapping, which outlives kill -9): for each leadership its epoch, and the first and last
 * instant at which is_leader was certainly true. The instants of two processes on one machine can
 * be compared.
 *
 * On SIGUSR1 the process forks; the child writes into FAULTS_FORKED how often is_leader was true in
 * it, and its pid.
 */
#include "base/clock.h"
#include "provider/lease_cell.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LEADERSHIPS_MAX = 512, PAUSE_NS = 100000, CHILD_LOOKS = 1000, CHILD_LIFE_S = 60 };

struct leadership {
    uint64_t epoch;
    int64_t first_ns;
    int64_t last_ns;
};

static struct lease_cell *observed;
static struct leadership *seen;
static int forked_fd = -1;
static _Atomic int forks_wanted;

struct lease_cell *__real_lease_cell_new(void);
struct lease_cell *__wrap_lease_cell_new(void);
void __wrap_lease_cell_free(struct lease_cell *cell);

static void pause_a_little(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    (void)nanosleep(&pause, NULL);
}

/* Only what is async-signal-safe: the parent has threads. It keeps all that it inherited open, as a
 * careless program's child does, until the test kills it. */
static void be_the_child(void)
{
    int32_t word[2] = {0, (int32_t)getpid()};
    for (int i = 0; i < CHILD_LOOKS; i++) {
        word[0] += lease_cell_is_leader(observed, NULL);
        pause_a_little();
    }
    (void)alarm(CHILD_LIFE_S);
    if (write(forked_fd, word, sizeof(word)) == sizeof(word)) {
        (void)pause();
    }
    _exit(1);
}

static void on_fork_wanted(int number)
{
    atomic_fetch_add(&forks_wanted, 1);
}

static void look(size_t *count)
{
    uint64_t epoch = 0;
    int64_t before = clock_now().ns;
    bool leads = lease_cell_is_leader(observed, &epoch);
    int64_t after = clock_now().ns;

    if (!leads) {
        return;
    }
    if (*count == 0 || seen[*count - 1].epoch != epoch) {
        if (*count == LEADERSHIPS_MAX) {
            abort(); /* a test that elects so often has gone wrong */
        }
        seen[*count].first_ns = after;
        seen[*count].last_ns = after;
        seen[(*count)++].epoch = epoch;
    } else {
        seen[*count - 1].last_ns = before;
    }
}

static void *observe(void *nothing)
{
    size_t count = 0;
    for (;;) {
        look(&count);
        if (atomic_exchange(&forks_wanted, 0) > 0 && fork() == 0) {
            be_the_child();
        }
        pause_a_little();
    }
    return nothing;
}

static void begin(const char *path)
{
    const char *forked = getenv("FAULTS_FORKED");
    size_t bytes = LEADERSHIPS_MAX * sizeof(struct leadership);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pthread_attr_t detached;
    pthread_t thread;

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        abort();
    }
    seen = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (forked) {
        struct sigaction action = {.sa_handler = on_fork_wanted, .sa_flags = SA_RESTART};
        forked_fd = open(forked, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)sigaction(SIGUSR1, &action, NULL);
    }
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (seen == MAP_FAILED || pthread_create(&thread, &detached, observe, NULL) != 0) {
        abort();
    }
}

struct lease_cell *__wrap_lease_cell_new(void)
{
    const char *path = getenv("FAULTS_OBSERVED");
    struct lease_cell *cell = __real_lease_cell_new();

    if (path && cell && !observed) {
        observed = cell;
        begin(path);
    }
    return cell;
}

/* Never: the thread looks until the process ends. */
void __wrap_lease_cell_free(struct lease_cell *cell)
{
}
