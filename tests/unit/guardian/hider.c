#include "hider.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILL_BYTES = 100000, HIDES = 1, CANNOT = 2 };

/* ---- Its start ------------------------------------------------------------------------------- */

struct start {
    const struct hider *hider;
    int ready;
};

static void fill(int from, int to)
{
    static char value[FILL_BYTES];
    char name[16];

    memset(value, 'x', sizeof(value) - 1);
    for (int i = from; i < to; i++) {
        (void)snprintf(name, sizeof(name), "FILL%d", i);
        (void)setenv(name, value, 1);
    }
}

static int become(void *userdata)
{
    const struct start *start = userdata;
    const struct hider *hider = start->hider;
    char ready[16];
    int cannot = CANNOT;

    (void)clearenv();
    fill(0, hider->before);
    if (hider->marker) {
        (void)putenv((char *)hider->marker);
    }
    fill(hider->before, hider->before + hider->behind);
    (void)snprintf(ready, sizeof(ready), "%d", start->ready);
    if (hider->user == 0 || setresuid(hider->user, hider->user, hider->user) == 0) {
        (void)execl("/proc/self/exe", "hider", hider->how, ready, (char *)NULL);
    }
    (void)!write(start->ready, &cannot, sizeof(cannot));
    return 1;
}

pid_t hider_start(const struct hider *hider)
{
    int ready[2], word = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = process_fork(become, &(struct start){hider, ready[1]});
    process_read(ready[0], &word, sizeof(word));
    close(ready[0]);
    close(ready[1]);
    if (word != HIDES) {
        process_end(child);
        return 0;
    }
    if (strcmp(hider->how, "block") == 0) {
        hider_wait_blocked(child);
    }
    return child;
}

/* ---- How it hides ---------------------------------------------------------------------------- */

/* The whole pages of the environment. */
struct pages {
    char *start;
    size_t bytes;
};

static struct pages own_pages(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = UINTPTR_MAX, end = 0;

    for (char **variable = environ; *variable; variable++) {
        uintptr_t at = (uintptr_t)*variable, behind = at + strlen(*variable) + 1;
        start = at < start ? at : start;
        end = behind > end ? behind : end;
    }
    start = (start + page - 1) / page * page;
    return (struct pages){(char *)start, end / page * page - start};
}

static bool map_over(struct pages pages, int rights, int fd)
{
    int kind = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;

    return mmap(pages.start, pages.bytes, rights, kind | MAP_FIXED, fd, 0) == pages.start;
}

static bool leave(struct pages pages)
{
    return pages.bytes > 0;
}

/* The first page alone. */
static bool forbid_the_first(struct pages pages)
{
    return mprotect(pages.start, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) == 0;
}

static bool unmap(struct pages pages)
{
    return munmap(pages.start, pages.bytes) == 0;
}

static bool protect(struct pages pages)
{
    return mprotect(pages.start, pages.bytes, PROT_NONE) == 0;
}

static bool map_nothing(struct pages pages)
{
    return map_over(pages, PROT_NONE, -1);
}

static bool map_a_file(struct pages pages)
{
    int fd = memfd_create("full", MFD_CLOEXEC);

    return ftruncate(fd, (off_t)pages.bytes) == 0 && map_over(pages, PROT_READ, fd);
}

static bool map_behind_the_end_of_a_file(struct pages pages)
{
    return map_over(pages, PROT_READ, memfd_create("empty", MFD_CLOEXEC));
}

/* Nobody but the process can read such memory. */
static bool map_a_secret(struct pages pages)
{
    int fd = (int)syscall(SYS_memfd_secret, 0);

    return fd >= 0 && ftruncate(fd, (off_t)pages.bytes) == 0 &&
           map_over(pages, PROT_READ | PROT_WRITE, fd) && memset(pages.start, 'x', pages.bytes);
}

/* Linux 6.13 and later. The kernel shows such pages as if they were in a swap area. */
static bool guard(struct pages pages)
{
    enum { MADV_GUARD = 102 };

    return madvise(pages.start, pages.bytes, MADV_GUARD) == 0;
}

static bool block(struct pages pages)
{
    return pages.bytes > 0 && hider_block_readers();
}

static const struct {
    const char *name;
    bool (*act)(struct pages pages);
} ways[] = {
    {"leave", leave},         {"unmap", unmap},     {"protect", protect},
    {"nothing", map_nothing}, {"file", map_a_file}, {"end", map_behind_the_end_of_a_file},
    {"secret", map_a_secret}, {"guard", guard},     {"first", forbid_the_first},
    {"block", block},
};

/* Says that it hides once the process looks like one that has ended. */
static void *outlive_the_first_thread(void *userdata)
{
    int word = HIDES;
    char text[512] = "";

    while (!strstr(text, ") Z ")) {
        int fd = open("/proc/self/stat", O_RDONLY);
        (void)!read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    (void)!write(*(int *)userdata, &word, sizeof(word));
    while (pause() < 0) {
    }
    return NULL;
}

static void leave_the_first_thread(int ready)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, outlive_the_first_thread, &ready) == 0) {
        (void)syscall(SYS_exit, 0);
    }
}

/* Each process forks the next one and ends, until `over` can be read. */
static void relay(int over)
{
    struct pollfd polled = {.fd = over, .events = POLLIN};

    while (poll(&polled, 1, 0) == 0 && fork() == 0) {
    }
    _exit(0);
}

bool hider_is_meant(int count, char *const arguments[])
{
    return count == 3 && strcmp(arguments[0], "hider") == 0;
}

/* A change of the user has undone what process_fork() did for its end. */
int hider_main(char *const arguments[])
{
    int ready = (int)strtol(arguments[2], NULL, 10), word = CANNOT;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(arguments[1], "thread") == 0) {
        leave_the_first_thread(ready);
    }
    if (strncmp(arguments[1], "relay", 5) == 0) {
        word = HIDES;
        (void)!write(ready, &word, sizeof(word));
        relay((int)strtol(arguments[1] + 5, NULL, 10));
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i].name, arguments[1]) == 0 && ways[i].act(own_pages())) {
            word = HIDES;
        }
    }
    (void)!write(ready, &word, sizeof(word));
    while (pause() < 0) {
    }
    return 0;
}
