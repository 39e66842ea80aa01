/* How a process blocks the readers of its memory: one of its threads reads, by /proc/self/mem, a
 * page of a file whose file system never answers, and has the lock of the process's memory
 * meanwhile. Another thread waits to change that memory, and behind it wait all who read any of it.
 */
#include "hider.h"
#include "lib/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIFE_S = 20, REQUEST_BYTES = 1 << 20, FILE_NODE = 2, FILE_BYTES = 1 << 16 };

static int device;

static void answer(const struct fuse_in_header *request, int error, const void *body, size_t bytes)
{
    struct {
        struct fuse_out_header header;
        char body[256];
    } reply = {.header = {.len = (uint32_t)(sizeof(reply.header) + bytes),
                          .error = error,
                          .unique = request->unique}};

    memcpy(reply.body, body, bytes);
    (void)!write(device, &reply, reply.header.len);
}

static struct fuse_attr attributes(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .size = FILE_BYTES,
                              .mode = node == FILE_NODE ? S_IFREG | 0444 : S_IFDIR | 0555,
                              .nlink = 1};
}

/* A read waits for ever. */
static void serve(const struct fuse_in_header *request)
{
    struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
    struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
    struct fuse_attr_out attr = {.attr = attributes(request->nodeid)};
    struct fuse_open_out opened = {.fh = 1};

    if (request->opcode == FUSE_INIT) {
        answer(request, 0, &init, sizeof(init));
    } else if (request->opcode == FUSE_LOOKUP) {
        answer(request, 0, &entry, sizeof(entry));
    } else if (request->opcode == FUSE_GETATTR) {
        answer(request, 0, &attr, sizeof(attr));
    } else if (request->opcode == FUSE_OPEN) {
        answer(request, 0, &opened, sizeof(opened));
    } else if (request->opcode != FUSE_READ) {
        answer(request, -EOPNOTSUPP, "", 0);
    }
}

/* In a process of its own. It dies with the hider, or of age: programs of other people that list
 * processes wait, too. Then the kernel ends what waits. */
static _Noreturn void serve_all(void)
{
    static char request[REQUEST_BYTES];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(LIFE_S);
    while (read(device, request, sizeof(request)) > 0) {
        serve((const struct fuse_in_header *)request);
    }
    _exit(0);
}

/* In a mount namespace of its own, so that nobody else meets it. */
static bool mount_it(void)
{
    char options[80];

    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    return device >= 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("blocker", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

static char *blocked;        /* the page to which the file is mapped */
static _Atomic pid_t reader; /* the thread that reads it */

/* One of proc_pid_stat(5): R runs, S and D wait. */
static char state_of(pid_t process, pid_t thread)
{
    char path[64], text[256] = ") ?";
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)process, (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    return strrchr(text, ')')[2];
}

static void *read_blocked(void *userdata)
{
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char byte;

    reader = gettid();
    (void)!pread(memory, &byte, 1, (off_t)(uintptr_t)blocked);
    return NULL;
}

static void *change_memory(void *userdata)
{
    while (reader == 0 || state_of(getpid(), reader) == 'R') {
    }
    (void)mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return NULL;
}

bool hider_block_readers(void)
{
    pthread_t threads[2];
    int file;

    if (!mount_it()) {
        return false;
    }
    if (fork() == 0) {
        serve_all();
    }
    (void)close(device);
    file = open("/tmp/file", O_RDONLY | O_CLOEXEC);
    blocked = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    return file >= 0 && blocked != MAP_FAILED &&
           pthread_create(&threads[0], NULL, change_memory, NULL) == 0 &&
           pthread_create(&threads[1], NULL, read_blocked, NULL) == 0;
}

/* The threads are listed as they were begun: first the one that changes, last the one that reads. A
 * thread that waits for a moment, while they begin, blocks nobody yet. */
void hider_wait_blocked(pid_t hider)
{
    bool is_blocked = false;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)hider);
    while (!is_blocked && process_lives(hider)) {
        DIR *tasks = opendir(path);
        char changer = '?', last = '?';
        int threads = 0;
        for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
            if (entry->d_name[0] != '.') {
                changer = last;
                last = state_of(hider, (pid_t)strtol(entry->d_name, NULL, 10));
                threads++;
            }
        }
        (void)closedir(tasks);
        is_blocked = threads > 2 && changer == 'D' && last != 'R';
    }
}
