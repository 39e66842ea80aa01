#include "guardian/dying.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel's PF_EXITING, in the ninth field of /proc/…/stat. */
enum { EXITING = 0x4, FLAGS_FIELD = 9 };

/* ---- The flag -------------------------------------------------------------------------------- */

/* Reads a small file of /proc whole. False: it cannot be read. */
static bool read_file(const char *path, char *ret, size_t ret_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, ret, ret_bytes - 1) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    ret[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0;
}

/* The name in parentheses may contain parentheses itself; the third field follows the last one. */
static bool is_exiting(const char *stat_path)
{
    char text[1024];
    const char *field;

    if (!read_file(stat_path, text, sizeof(text)) || !(field = strrchr(text, ')'))) {
        return false;
    }
    for (int at = 2; field && at < FLAGS_FIELD; at++) {
        field = strchr(field + 1, ' ');
    }
    return field && (strtoul(field + 1, NULL, 10) & EXITING) != 0;
}

/* ---- All threads ----------------------------------------------------------------------------- */

/* The number of threads in the list, including those that have ended but are still listed. */
static int count_threads(int directory)
{
    struct stat about;

    return fstat(directory, &about) == 0 ? (int)about.st_nlink - 2 : -1;
}

/* The number of listed threads, all of which are exiting. -1: one is not, or the list cannot be
 * read. */
static int count_exiting(int directory, const char *path)
{
    _Alignas(struct dirent64) char entries[4096];
    int count = 0;
    ssize_t bytes;

    while (count >= 0 && (bytes = getdents64(directory, entries, sizeof(entries))) != 0) {
        for (ssize_t at = 0; bytes > 0 && count >= 0 && at < bytes;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            char stat_path[PATH_MAX];

            at += entry->d_reclen;
            if (entry->d_name[0] != '.') {
                (void)snprintf(stat_path, sizeof(stat_path), "%s/%s/stat", path, entry->d_name);
                count = is_exiting(stat_path) ? count + 1 : -1;
            }
        }
        if (bytes < 0) {
            count = -1;
        }
    }
    return count;
}

/* Reading the list may end early when threads end meanwhile: the result counts only if as many
 * threads were read as the list had before and after. */
static bool are_all_exiting(pid_t name)
{
    char path[64];
    bool are = false;
    int before, directory;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)name);
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        before = count_threads(directory);
        are = before > 0 && count_exiting(directory, path) == before &&
              count_threads(directory) == before;
        (void)close(directory);
    }
    return are;
}

/* Looks twice: a thread that was seen exiting later may have created another behind the first
 * look's position. After a look that found all threads exiting, none is left to create one. */
bool dying_is_certain(pid_t name)
{
    bool are = are_all_exiting(name);

    return are && are_all_exiting(name);
}

/* ---- What /proc means ------------------------------------------------------------------------ */

/* The process number behind a pidfd. */
static pid_t name_of(int pidfd)
{
    char path[64], text[1024];
    const char *line;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    line = read_file(path, text, sizeof(text)) ? strstr(text, "Pid:") : NULL;
    return line != NULL ? (pid_t)strtol(line + strlen("Pid:"), NULL, 10) : 0;
}

/* The values of process flags are no stable interface. We check them against a process that is
 * certainly dead and against ourselves. */
static bool is_understood(void)
{
    siginfo_t info;
    bool is;
    pid_t child = fork();
    int pidfd;

    if (child == 0) {
        _exit(0);
    }
    pidfd = child > 0 ? pidfd_open(child, 0) : -1;
    is = pidfd >= 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0 &&
         dying_is_certain(name_of(pidfd)) && !is_exiting("/proc/self/stat");
    if (pidfd >= 0) {
        (void)close(pidfd);
    }
    if (child > 0) {
        (void)waitpid(child, NULL, 0);
    }
    return is;
}

pid_t dying_name(int pidfd)
{
    pid_t name = name_of(pidfd);

    return name > 0 && is_understood() ? name : 0;
}

/* ---- The moment ------------------------------------------------------------------------------ */

bool dying_wait(pthread_mutex_t *held_for_life)
{
    int error = pthread_mutex_lock(held_for_life);

    if (error == 0) {
        (void)pthread_mutex_unlock(held_for_life);
    }
    return error == EOWNERDEAD;
}
