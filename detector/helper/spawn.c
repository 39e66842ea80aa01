/* The parent's side: finding a helper, starting and ending it, and its memory. */
#include "base/spawn.h"
#include "detector/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    END_MS = 30000, /* a killed process has to give its memory back, which may take seconds */
    LOOK_MS = 1,
    RECEIVE_US = 50000,
};

bool helper_find(char ret[PATH_MAX], const char *name)
{
    static const char *const places[] = {"", "/../libexec/baton", "/../bin"};
    char folder[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;

    folder[bytes > 0 ? bytes : 0] = '\0';
    slash = strrchr(folder, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        *slash = '\0';
        if (snprintf(ret, PATH_MAX, "%s%s/%s", folder, places[i], name) < PATH_MAX &&
            access(ret, X_OK) == 0) {
            return true;
        }
    }
    (void)snprintf(ret, PATH_MAX, "%s/%s", BATON_LIBEXECDIR, name);
    return access(ret, X_OK) == 0;
}

void helper_environment(char *ret[HELPER_ENVIRONMENT_MAX])
{
    /* Decoders and models touch megabytes for each frame, and their processes take turns: with huge
     * pages, where the kernel has them on request, they find what they left sooner. */
    static char huge_pages[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    static const char *const names[] = {"LD_LIBRARY_PATH=",   "GLIBC_TUNABLES=",
                                        "LIBVA_DRIVER_NAME=", "ASAN_OPTIONS=",
                                        "UBSAN_OPTIONS=",     "HOME=",
                                        "TSAN_OPTIONS=",      "SSL_CERT_FILE=",
                                        "SSL_CERT_DIR=",      "TZ="};
    size_t count = 0;

    if (getenv("GLIBC_TUNABLES") == NULL) {
        ret[count++] = huge_pages;
    }
    for (char **entry = environ; *entry != NULL; entry++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (count + 1 < HELPER_ENVIRONMENT_MAX &&
                strncmp(*entry, names[i], strlen(names[i])) == 0) {
                ret[count++] = *entry;
            }
        }
    }
    ret[count] = NULL;
}

void helper_close(const int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

int helper_start(struct helper *ret, const char *program, const char *name, const int *files,
                 struct baton_error *reterr)
{
    static const struct timeval look = {.tv_usec = RECEIVE_US};
    char *const argv[] = {(char *)name, (char *)"--inherited", NULL};
    char found[PATH_MAX], *environment[HELPER_ENVIRONMENT_MAX];
    struct spawn_fd fds[3 + HELPER_FILES_MAX] = {{SPAWN_NOWHERE, STDIN_FILENO},
                                                 {SPAWN_NOWHERE, STDOUT_FILENO}};
    struct spawn spawn = {
        .argv = argv, .environment = environment, .fds = fds, .count = 2, .is_alone = true};
    int sockets[2] = {-1, -1};
    pid_t pid = 0;
    int errnum;

    if (program == NULL && !helper_find(found, name)) {
        return error_set(reterr, BATON_EUNAVAILABLE, "%s: not found; is it installed?", found);
    }
    spawn.program = program != NULL ? program : found;
    helper_environment(environment);
    errnum = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 ? 0 : errno;
    fds[spawn.count++] = (struct spawn_fd){sockets[1], HELPER_FD};
    for (int i = 0; files[i] >= 0; i++) {
        fds[spawn.count++] = (struct spawn_fd){files[i], HELPER_FILE + i};
    }
    errnum = errnum ? errnum : spawn_start(&pid, &spawn);
    if (errnum != 0) {
        helper_close(sockets, 2);
        return error_set(reterr, BATON_EUNAVAILABLE, "%s: cannot be started: %s", spawn.program,
                         strerror(errnum));
    }
    (void)close(sockets[1]);
    (void)setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
    *ret = (struct helper){.pid = pid, .socket = sockets[0]};
    return 0;
}

bool helper_wait(struct helper *helper, int wait_ms, int *ret)
{
    bool has_ended = helper->pid <= 0;

    *ret = 0;
    /* Not by its pidfd, which may be readable before it can be waited for: what traces it, as
     * strace or a leak checker does, is told first. */
    for (int ms = 0; !has_ended && ms <= wait_ms; ms += LOOK_MS) {
        has_ended = waitpid(helper->pid, ret, WNOHANG) != 0;
        if (!has_ended && ms < wait_ms) {
            (void)poll(NULL, 0, LOOK_MS);
        }
    }
    helper->pid = has_ended ? 0 : helper->pid;
    return has_ended;
}

int helper_kill(struct helper *helper)
{
    int status = 0;

    if (helper->pid > 0) {
        (void)kill(helper->pid, SIGKILL);
        (void)helper_wait(helper, END_MS, &status);
        helper->pid = 0;
    }
    return status;
}

int helper_share(void **ret, const char *name, size_t bytes, struct baton_error *reterr)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, HELPER_SEALS) == 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (memory == MAP_FAILED) {
        int errnum = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return error_set(reterr, BATON_ENOMEM,
                         "shared memory of %zu bytes: %s; is it above ulimit -v or -f?", bytes,
                         strerror(errnum));
    }
    *ret = memory;
    return fd;
}
