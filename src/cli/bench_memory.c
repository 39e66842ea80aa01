#include "cli/bench_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_AGAIN_NS = 10000000, LOOKS_MAX = 500 };

#define V2_FOLDER "/sys/fs/cgroup"
#define V1_FOLDER "/sys/fs/cgroup/memory"

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    ssize_t bytes;
    int fd, errnum;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    bytes = fd >= 0 ? write(fd, text, strlen(text)) : -1;
    errnum = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = errnum;
    return bytes == (ssize_t)strlen(text);
}

/* Without swap, where there is any: a swapped page would only delay the end. */
static bool limit_folder(const char *folder, bool is_v1, size_t limit)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%zu", limit);
    if (!write_file(folder, is_v1 ? "memory.limit_in_bytes" : "memory.max", text)) {
        return false;
    }
    (void)write_file(folder, is_v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max",
                     is_v1 ? text : "0");
    return true;
}

int bench_memory_open(struct bench_memory *memory, unsigned nodes, size_t limit,
                      struct baton_error *reterr)
{
    bool is_v1 = access(V1_FOLDER "/memory.limit_in_bytes", F_OK) == 0;

    *memory = (struct bench_memory){0};
    for (unsigned i = 0; i < nodes && i < BENCH_MEMORY_NODES_MAX; i++) {
        char *folder = memory->folders[i];

        (void)snprintf(folder, sizeof(memory->folders[i]), "%s/baton-bench-%d-%u",
                       is_v1 ? V1_FOLDER : V2_FOLDER, (int)getpid(), i);
        bool is_made = mkdir(folder, 0755) == 0;
        memory->nodes += is_made;
        if (!is_made || !limit_folder(folder, is_v1, limit)) {
            int errnum = errno;
            bench_memory_close(memory);
            return error_set(reterr, BATON_ENOTSUP,
                             "--fault oom: a memory cgroup is needed for each process, and %s "
                             "cannot be made with a limit: %s; it takes root, and on cgroup v2 "
                             "\"memory\" in " V2_FOLDER "/cgroup.subtree_control",
                             is_v1 ? V1_FOLDER "/…" : V2_FOLDER "/…", strerror(errnum));
        }
    }
    return BATON_OK;
}

/* A guardian may outlive its node for a moment. */
static void kill_all(const char *folder)
{
    char path[128];
    FILE *file;
    int pid;

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1) {
        (void)kill(pid, SIGKILL);
    }
    if (file) {
        (void)fclose(file);
    }
}

void bench_memory_close(struct bench_memory *memory)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};

    while (memory->nodes > 0) {
        const char *folder = memory->folders[--memory->nodes];

        for (int i = 0; rmdir(folder) != 0 && errno == EBUSY && i < LOOKS_MAX; i++) {
            kill_all(folder);
            (void)nanosleep(&pause, NULL);
        }
    }
}

static _Atomic int64_t child_ended;

static void on_child(int number)
{
    int64_t none = INSTANT_PAST.ns;
    (void)number;

    (void)atomic_compare_exchange_strong(&child_ended, &none, clock_now().ns);
}

void bench_memory_await_end(void)
{
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP};

    atomic_store(&child_ended, INSTANT_PAST.ns);
    (void)sigaction(SIGCHLD, &action, NULL);
}

instant bench_memory_ended(void)
{
    return (instant){atomic_load(&child_ended)};
}

bool bench_memory_enter(const struct bench_memory *memory, unsigned node)
{
    char path[sizeof(memory->folders[0]) + 16];
    size_t length = strlen(memory->folders[node]);
    bool entered;
    int fd;

    memcpy(path, memory->folders[node], length);
    memcpy(path + length, "/cgroup.procs", sizeof("/cgroup.procs"));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    entered = fd >= 0 && write(fd, "0", 1) == 1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return entered;
}
