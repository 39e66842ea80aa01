/* The parent's side: finding a helper and starting it. */
#include "detector/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Copies of the descriptors in places that none of them takes in the new process. Returns how many
 * there are. */
static size_t copy_high(int ret[HELPER_DESCRIPTORS_MAX], const int *descriptors, size_t count)
{
    size_t copied = 0;

    while (copied < count && (ret[copied] = fcntl(descriptors[copied], F_DUPFD_CLOEXEC,
                                                  HELPER_FD + HELPER_DESCRIPTORS_MAX)) >= 0) {
        copied++;
    }
    return copied;
}

static int place(posix_spawn_file_actions_t *files, const int *descriptors, size_t count)
{
    int errnum = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    errnum = errnum
                 ? errnum
                 : posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (size_t i = 0; i < count && errnum == 0; i++) {
        errnum = posix_spawn_file_actions_adddup2(files, descriptors[i], HELPER_FD + (int)i);
    }
    return errnum;
}

static int spawn(pid_t *ret, const char *program, const char *name, const int *descriptors,
                 size_t count)
{
    char *argv[] = {(char *)name, (char *)"--inherited", NULL};
    char *environment[HELPER_ENVIRONMENT_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    int errnum;

    helper_environment(environment);
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    errnum = place(&files, descriptors, count);
    errnum = errnum ? errnum : posix_spawn(ret, program, &files, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return errnum;
}

int helper_spawn(pid_t *ret, const char *program, const char *name, const int *descriptors,
                 size_t count)
{
    int copies[HELPER_DESCRIPTORS_MAX];
    size_t copied = copy_high(copies, descriptors, count);
    int errnum = copied == count ? spawn(ret, program, name, copies, count) : errno;

    while (copied > 0) {
        (void)close(copies[--copied]);
    }
    return errnum;
}
