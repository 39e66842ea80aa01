/* Neither uv_spawn nor posix_spawn can bind a child's life to its parent's or put it in a cgroup
 * before it runs, so CMD is forked by hand (child.c) and calls supervise_enter before exec. A plain
 * fork will do: this process is small. */
#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_KILL_MS = 2000 };

/* ---- The cgroup ------------------------------------------------------------------------------ */

/* Where the v2 hierarchy is mounted: "ID PARENT MAJ:MIN ROOT MOUNT … - cgroup2 …". */
static bool find_mount(char *ret, size_t ret_bytes)
{
    char line[1024], mount[512];
    bool is_found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        if (strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %*s %511s", mount) == 1) {
            int length = snprintf(ret, ret_bytes, "%s", mount);
            is_found = length > 0 && (size_t)length < ret_bytes;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return is_found;
}

/* This process's place in it: "0::/path". */
static bool find_place(char *ret, size_t ret_bytes)
{
    char line[1024];
    bool is_found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            int length = snprintf(ret, ret_bytes, "%s", line + 3);
            is_found = length > 0 && (size_t)length < ret_bytes;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return is_found;
}

/* Only a cgroup that can be killed in one go is worth having. */
static bool can_kill(const char *folder)
{
    char path[VICTIMS_PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/cgroup.kill", folder);
    return access(path, W_OK) == 0;
}

static void make_cgroup(struct supervise *supervise)
{
    char mount[256], place[256], procs[VICTIMS_PATH_MAX + 16];
    char *folder = supervise->victims.cgroup;
    int length;

    if (!find_mount(mount, sizeof(mount)) || !find_place(place, sizeof(place))) {
        return;
    }
    length = snprintf(folder, VICTIMS_PATH_MAX, "%s%s/baton-run-%d", mount,
                      strcmp(place, "/") == 0 ? "" : place, (int)getpid());
    if (length <= 0 || length >= VICTIMS_PATH_MAX ||
        (mkdir(folder, 0755) != 0 && errno != EEXIST)) {
        folder[0] = '\0'; /* not ours to divide: the other nets must do */
        return;
    }
    (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", folder);
    if (can_kill(folder)) {
        supervise->procs_fd = open(procs, O_WRONLY | O_CLOEXEC);
    }
    if (supervise->procs_fd < 0) {
        (void)rmdir(folder);
        folder[0] = '\0';
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int make_marker(char ret[VICTIMS_MARKER_MAX], struct baton_error *reterr)
{
    unsigned char random[16];
    size_t used = (size_t)snprintf(ret, VICTIMS_MARKER_MAX, "BATON_RUN=");

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return error_set(reterr, BATON_EIO, "no random bytes: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        used += (size_t)snprintf(ret + used, VICTIMS_MARKER_MAX - used, "%02x", random[i]);
    }
    return 0;
}

int supervise_init(struct supervise *supervise, struct baton_error *reterr)
{
    *supervise = (struct supervise){.procs_fd = -1};
    int code = make_marker(supervise->victims.marker, reterr);
    if (code) {
        return code;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* there since Linux 3.4 */
    make_cgroup(supervise);
    return 0;
}

void supervise_fini(struct supervise *supervise)
{
    if (supervise->victims.marker[0] != '\0') {
        (void)supervise_kill(supervise, LAST_KILL_MS); /* who is left is the guardian's to kill */
    }
    if (supervise->procs_fd >= 0) {
        (void)close(supervise->procs_fd);
        victims_remove_cgroup(&supervise->victims);
    }
    *supervise = (struct supervise){.procs_fd = -1};
}

const char *supervise_variable(const struct supervise *supervise)
{
    return supervise->victims.marker;
}

bool supervise_ignores(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* ---- CMD ------------------------------------------------------------------------------------- */

bool supervise_enter(const struct supervise *supervise, pid_t parent)
{
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return false;
    }
    if (getppid() != parent) { /* it died before the kernel knew that we depend on it */
        errno = ESRCH;
        return false;
    }
    return supervise->procs_fd < 0 || write(supervise->procs_fd, "0", 1) == 1;
}

void supervise_track(struct supervise *supervise, pid_t child)
{
    (void)setpgid(child, child); /* the child does it too; whoever is first */
    supervise->victims.group = child;
}

bool supervise_kill(struct supervise *supervise, int limit_ms)
{
    struct victims all = supervise->victims;
    all.parent = getpid();
    return victims_kill(&all, limit_ms);
}

void supervise_reap(const struct supervise *supervise)
{
    siginfo_t ended = {0};
    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
           ended.si_pid != supervise->victims.group) {
        (void)waitpid(ended.si_pid, NULL, WNOHANG);
        ended.si_pid = 0;
    }
}
