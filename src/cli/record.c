#include "cli/record.h"

#include "guardian/victims.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT_MAX = 1024,
    BOOT_MAX = 40,
    PATIENCE_MS = 5000,  /* for a supervisor that is ending CMD */
    KILL_MS = 2000,      /* for a killed supervisor, and for the processes that it left behind */
    LEASE_AT = TEXT_MAX, /* offset of the lease, behind the text */
    LEASE_BYTES = 24,
    RECORD_BYTES = TEXT_MAX + LEASE_BYTES,
};

/* Identifies a process by its number and its start time, since numbers are used again. */
struct mark {
    int pid;
    uint64_t since;
};

struct content {
    char boot[BOOT_MAX];
    struct mark wrapper, supervisor;
    struct victims victims;
    int64_t lease_ns;
};

static uint64_t since_of(pid_t pid)
{
    char path[64], text[TEXT_MAX] = "";
    uint64_t since = 0;
    const char *after_name;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file != NULL && fgets(text, sizeof(text), file) != NULL &&
        (after_name = strrchr(text, ')')) != NULL) {
        (void)sscanf(after_name + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                     "%*d %" SCNu64,
                     &since);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return since;
}

static void read_boot(char ret[BOOT_MAX])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    (void)snprintf(ret, BOOT_MAX, "unknown");
    if (file != NULL) {
        (void)fscanf(file, "%39s", ret);
        (void)fclose(file);
    }
}

/* ---- Its content ----------------------------------------------------------------------------- */

void record_write(int fd, const struct record *record)
{
    char text[TEXT_MAX], boot[BOOT_MAX];
    int length;

    read_boot(boot);
    length = snprintf(text, sizeof(text),
                      "baton-run 1\nboot %s\nwrapper %d %" PRIu64 "\nsupervisor %d %" PRIu64
                      "\nmarker %s\ncgroup %s\n",
                      boot, (int)record->wrapper, since_of(record->wrapper),
                      (int)record->supervisor, since_of(record->supervisor), record->marker,
                      record->cgroup[0] != '\0' ? record->cgroup : "-");
    if (fd >= 0 && length > 0 && length < (int)sizeof(text)) {
        (void)!pwrite(fd, text, (size_t)length, 0);
    }
}

void record_note_lease(int fd, span left)
{
    char text[LEASE_BYTES + 1];

    if (fd >= 0 && left.ns != INT64_MAX) {
        (void)snprintf(text, sizeof(text), "%*" PRId64, LEASE_BYTES, left.ns);
        (void)!pwrite(fd, text, LEASE_BYTES, LEASE_AT);
    }
}

void record_clear(int fd)
{
    if (fd >= 0) {
        (void)!ftruncate(fd, 0);
    }
}

/* Returns false if nothing is left: the file is empty or blank, of another boot, or not ours. */
static bool read_content(int fd, struct content *ret)
{
    char text[RECORD_BYTES + 1] = "", boot[BOOT_MAX];
    ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
    int fields;

    *ret = (struct content){0};
    fields = sscanf(text,
                    "baton-run 1 boot %39s wrapper %d %" SCNu64 " supervisor %d %" SCNu64
                    " marker %63s cgroup %511s",
                    ret->boot, &ret->wrapper.pid, &ret->wrapper.since, &ret->supervisor.pid,
                    &ret->supervisor.since, ret->victims.marker, ret->victims.cgroup);
    if (fields == 7 && ret->victims.cgroup[0] != '/') {
        ret->victims.cgroup[0] = '\0';
    }
    if (bytes > LEASE_AT) {
        ret->lease_ns = strtoll(text + LEASE_AT, NULL, 10);
    }
    read_boot(boot);
    return fields == 7 && strcmp(boot, ret->boot) == 0;
}

/* ---- What an earlier one left behind --------------------------------------------------------- */

/* Returns a pidfd of that process; -1: it has ended. */
static int open_mark(const struct mark *mark)
{
    int pidfd = mark->pid > 0 ? pidfd_open(mark->pid, 0) : -1;

    if (pidfd >= 0 && (mark->since == 0 || since_of(mark->pid) != mark->since)) {
        (void)close(pidfd);
        pidfd = -1;
    }
    return pidfd;
}

static bool lives(const struct mark *mark)
{
    int pidfd = open_mark(mark);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    bool is_alive = pidfd >= 0 && poll(&ended, 1, 0) == 0;

    if (pidfd >= 0) {
        (void)close(pidfd);
    }
    return is_alive;
}

/* The supervisor ends by itself, unless it hangs. */
static void await_supervisor(const struct mark *mark)
{
    int pidfd = open_mark(mark);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0) {
        return;
    }
    (void)pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
    if (poll(&ended, 1, PATIENCE_MS) == 0) {
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        (void)poll(&ended, 1, KILL_MS);
    }
    (void)close(pidfd);
}

static bool lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* The supervisor was killed, so no process knows whether any part of CMD is left. */
static void wait_out(const struct content *content, struct logger *logger)
{
    struct timespec pause = {.tv_sec = content->lease_ns / 1000000000,
                             .tv_nsec = content->lease_ns % 1000000000};

    log_warning(logger, "supervisor-was-killed",
                LOG_STR("text",
                        "CMD of an earlier baton run may be alive: all that is found of it is "
                        "killed, and this node waits until its lease is over"),
                LOG_I64("lease_ms", content->lease_ns / 1000000));
    (void)victims_hunt(&content->victims, KILL_MS);
    victims_remove_cgroup(content->victims.cgroup);
    if (content->lease_ns > 0) {
        while (clock_nanosleep(CLOCK_BOOTTIME, 0, &pause, &pause) == EINTR) {
        }
    }
}

/* Reserves the disk space of the record: if a record could not be written, the next start would
 * read "nothing is left". */
static int reserve(int fd, const char *path, struct baton_error *reterr)
{
    static const char blank[RECORD_BYTES];

    record_clear(fd);
    ssize_t bytes = pwrite(fd, blank, sizeof(blank), 0);
    if (bytes == (ssize_t)sizeof(blank)) {
        return 0;
    }
    return error_set(reterr, bytes >= 0 || errno == ENOSPC ? BATON_EFULL : BATON_EIO,
                     "%s: %s; what runs under this node must be noted there (%d bytes)", path,
                     bytes >= 0 ? "the disk is full" : strerror(errno), (int)sizeof(blank));
}

static int take(int fd, const char *path, struct logger *logger, struct baton_error *reterr)
{
    struct content content;
    bool is_free = lock(fd);

    if (!is_free && errno != EWOULDBLOCK) {
        return error_set(reterr, BATON_EIO,
                         "%s: cannot be locked: %s; --data must name a directory on a disk that "
                         "has locks (flock)",
                         path, strerror(errno));
    }
    if (!is_free) {
        bool is_ours = read_content(fd, &content);
        if (!is_ours) {
            return error_set(reterr, BATON_EIO,
                             "%s: another process is starting with this data directory", path);
        }
        if (lives(&content.wrapper)) {
            return error_set(reterr, BATON_EIO, "%s: process %d uses this data directory", path,
                             content.wrapper.pid);
        }
        log_notice(logger, "ending-earlier-command", LOG_I64("supervisor", content.supervisor.pid));
        await_supervisor(&content.supervisor);
        if (!lock(fd) && !lives(&content.supervisor)) {
            return error_set(reterr, BATON_EIO,
                             "%s: a process that cannot be seen from here has it: one of another "
                             "container that uses this data directory? each needs one of its own",
                             path);
        }
        if (!lock(fd)) {
            return error_set(reterr, BATON_EIO,
                             "%s: what an earlier baton run started cannot be ended (supervisor: "
                             "process %d); end it by hand",
                             path, content.supervisor.pid);
        }
    }
    if (read_content(fd, &content)) {
        wait_out(&content, logger);
    }
    return reserve(fd, path, reterr);
}

int record_take(int *ret_fd, const char *data, struct logger *logger, struct baton_error *reterr)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/supervisor", data);
    int fd, code;

    if (length < 0 || length >= (int)sizeof(path)) {
        return error_set(reterr, BATON_ETOOBIG, "--data %s: the path is too long", data);
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errno));
    }
    code = take(fd, path, logger, reterr);
    if (code != 0) {
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return 0;
}
