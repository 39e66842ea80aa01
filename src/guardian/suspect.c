#include "guardian/suspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 2048, /* of /proc/PID/stat, and the head of /proc/PID/status */
    CHUNK_BYTES = 1 << 16,
    ENVIRON_MAX = 6 << 20, /* execve(2) takes no more; beyond it the process has moved the end */
};

/* ---- What stat says -------------------------------------------------------------------------- */

/* Positions in /proc/PID/stat behind the name, as in proc_pid_stat(5) less 2. */
enum {
    STAT_STATE = 1,
    STAT_GROUP = 3,
    STAT_FLAGS = 7,
    STAT_THREADS = 18,
    STAT_MEMORY = 21,
    STAT_CODE = 24,
    STAT_ENV_START = 48,
    STAT_ENV_END = 49,
};

/* Of the kernel's sched.h. */
enum { FLAG_EXITING = 0x4, FLAG_KERNEL_THREAD = 0x200000 };

static void read_field(struct suspect *suspect, int position, const char *field)
{
    uint64_t value = strtoull(field, NULL, 10);

    switch (position) {
    case STAT_GROUP:
        suspect->group = (pid_t)value;
        break;
    case STAT_FLAGS:
        suspect->flags = value;
        break;
    case STAT_THREADS:
        suspect->threads = (int)value;
        break;
    case STAT_MEMORY:
        suspect->memory = value;
        break;
    case STAT_CODE:
        suspect->code = value;
        break;
    case STAT_ENV_START:
        suspect->environ_start = value;
        break;
    case STAT_ENV_END:
        suspect->environ_end = value;
        break;
    default:
        break;
    }
}

static int open_of(pid_t pid, const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Returns as read(2) does. */
static ssize_t read_text(pid_t pid, const char *name, char ret[TEXT_BYTES])
{
    int fd = open_of(pid, name);
    ssize_t bytes = fd >= 0 ? read(fd, ret, TEXT_BYTES - 1) : -1;
    int errnum = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    ret[bytes > 0 ? bytes : 0] = '\0';
    errno = errnum;
    return bytes;
}

/* What /proc says of a process that has ended. */
static bool is_gone(int errnum)
{
    return errnum == ENOENT || errnum == ESRCH;
}

static struct suspect read_thread(pid_t pid)
{
    struct suspect suspect = {.pid = pid};
    char text[TEXT_BYTES], *rest = NULL, *after_name;
    int position = STAT_STATE;

    errno = 0;
    if (read_text(pid, "stat", text) <= 0) {
        suspect.is_unread = !is_gone(errno);
    }
    after_name = strrchr(text, ')'); /* the name may contain parentheses itself */
    for (char *field = after_name != NULL ? strtok_r(after_name + 1, " ", &rest) : NULL;
         field != NULL; field = strtok_r(NULL, " ", &rest), position++) {
        if (position == STAT_STATE) {
            suspect.is_alive = field[0] != 'Z' && field[0] != 'X';
        }
        read_field(&suspect, position, field);
    }
    return suspect;
}

/* A process whose first thread has ended, as a zombie: it acts until the last one ends. */
static struct suspect read_others(const struct suspect *first)
{
    struct suspect dead = *first;
    struct dirent *entry;
    char path[64];
    int count = 0;
    DIR *tasks;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)first->pid);
    tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        pid_t name = (pid_t)strtol(entry->d_name, NULL, 10); /* "." is 0 */
        struct suspect thread = name > 0 ? read_thread(name) : (struct suspect){0};
        if (thread.is_alive) {
            (void)closedir(tasks);
            return thread;
        }
        count += thread.threads > 0;
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    dead.is_unread = count < first->threads; /* the list may end early when threads end */
    return dead;
}

struct suspect suspect_read(pid_t pid)
{
    struct suspect suspect = read_thread(pid);

    return !suspect.is_alive && suspect.threads > 1 ? read_others(&suspect) : suspect;
}

bool suspect_is_within_reach(const struct suspect *suspect, uid_t user)
{
    char text[TEXT_BYTES];
    unsigned real, saved;
    const char *line;

    if (user == 0) {
        return true;
    }
    line = read_text(suspect->pid, "status", text) > 0 ? strstr(text, "\nUid:") : NULL;
    return line != NULL && sscanf(line, "\nUid: %u %*u %u", &real, &saved) == 2 &&
           (user == real || user == saved);
}

/* ---- The environment ------------------------------------------------------------------------- */

/* A search in pieces: the end of the one before is kept, since the marker may lie across both. */
struct search {
    const char *marker;
    size_t length; /* of the marker, with the byte that ends it */
    size_t kept;
    char text[SUSPECT_MARKER_MAX + CHUNK_BYTES];
};

static void search_begin(struct search *search, const char *marker)
{
    *search = (struct search){.marker = marker, .length = strlen(marker) + 1};
}

/* Whether the marker is there, or one that begins with it and "-". */
static bool names(const char *text, size_t bytes, const char *marker)
{
    size_t length = strlen(marker);
    const char *end = text + bytes, *found = memmem(text, bytes, marker, length);

    while (found != NULL && found + length < end && found[length] != '\0' && found[length] != '-') {
        found = memmem(found + 1, (size_t)(end - found) - 1, marker, length);
    }
    return found != NULL && found + length < end;
}

/* The next piece is at text + kept. */
static bool search_goes_on(struct search *search, size_t piece)
{
    size_t bytes = search->kept + piece;
    bool is_found = names(search->text, bytes, search->marker);

    search->kept = bytes < search->length - 1 ? bytes : search->length - 1;
    memmove(search->text, search->text + bytes - search->kept, search->kept);
    return is_found;
}

/* Whether a page that cannot be read may lie in a swap area, by its entry in /proc/PID/pagemap. The
 * kernel says so of other pages, too, as of guard pages. True as well if no process has the memory
 * any more. */
static bool may_be_swapped(int pagemap, uint64_t address)
{
    const uint64_t swapped = UINT64_C(1) << 62;
    struct sysinfo host = {.totalswap = 1};
    off_t at = (off_t)(address / (uint64_t)sysconf(_SC_PAGESIZE) * sizeof(uint64_t));
    uint64_t entry = 0;

    if (pread(pagemap, &entry, sizeof(entry), at) != (ssize_t)sizeof(entry)) {
        return true;
    }
    (void)sysinfo(&host);
    return (entry & swapped) != 0 && host.totalswap > 0;
}

/* A page that execve(2) has filled can be read while it is in memory, and mostly in a swap area,
 * too. So one that cannot, and is in no swap area, is another one, or forbidden: the process has
 * taken it away, and the search goes on behind it. */
static enum finding search_pages(const struct suspect *suspect, int environment, int pagemap,
                                 struct search *search)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = suspect->environ_start;
    uint64_t end = suspect->environ_end, limit = start + ENVIRON_MAX, most;

    end = end < limit ? end : limit;
    for (uint64_t at = start; at < end; at += most) {
        most = page - at % page < CHUNK_BYTES ? page - at % page : CHUNK_BYTES;
        most = end - at < most ? end - at : most;
        ssize_t got = pread(environment, search->text + search->kept, most, (off_t)(at - start));
        if (got <= 0 && may_be_swapped(pagemap, at)) {
            return FINDING_UNKNOWN;
        }
        if (got > 0 && search_goes_on(search, (size_t)got)) {
            return FINDING_YES;
        }
        if (got <= 0) {
            search->kept = 0;
        } else if ((uint64_t)got < most) {
            return FINDING_UNKNOWN;
        }
    }
    return FINDING_NO;
}

/* Whether nothing has happened between two looks: both saw the same program, whole. */
static bool is_same_program(const struct suspect *one, const struct suspect *other)
{
    return one->is_alive && other->is_alive && one->code != 0 && one->code == other->code &&
           one->environ_start == other->environ_start && one->environ_end == other->environ_end;
}

/* Each of the descriptors stands for the memory that the process has while it is opened, whatever
 * the process executes later; that of pagemap says nothing once this memory has gone. It is opened
 * first, between two looks: so while it speaks, both are of the program that these have seen. */
static enum finding search_remains(const struct suspect *suspect, const char *marker)
{
    int pagemap = open_of(suspect->pid, "pagemap");
    int environment = open_of(suspect->pid, "environ");
    struct suspect again = suspect_read(suspect->pid);
    enum finding finding = FINDING_UNKNOWN;
    struct search search;

    if (environment >= 0 && pagemap >= 0 && is_same_program(suspect, &again)) {
        search_begin(&search, marker);
        finding = search_pages(suspect, environment, pagemap, &search);
    }
    if (environment >= 0) {
        (void)close(environment);
    }
    if (pagemap >= 0) {
        (void)close(pagemap);
    }
    return finding;
}

/* During an execve(2) the old environment is gone and the new one not yet there, so a read finds
 * nothing or only a part: NO needs a search to the end that stat named. */
static enum finding search_environ(const struct suspect *suspect, const char *marker)
{
    int fd = open_of(suspect->pid, "environ");
    struct search search;
    bool is_found = false;
    size_t total = 0;
    ssize_t got = 0;

    if (fd < 0) { /* EACCES, EPERM: of a user whose processes this one may not kill either */
        return is_gone(errno)                      ? FINDING_GONE
               : errno == EACCES || errno == EPERM ? FINDING_NO
                                                   : FINDING_UNKNOWN;
    }
    search_begin(&search, marker);
    while (!is_found && total < ENVIRON_MAX &&
           (got = read(fd, search.text + search.kept, CHUNK_BYTES)) > 0) {
        total += (size_t)got;
        is_found = search_goes_on(&search, (size_t)got);
    }
    (void)close(fd);
    if (is_found) {
        return FINDING_YES;
    }
    return total >= ENVIRON_MAX || (got == 0 && suspect->code != 0 &&
                                    total == suspect->environ_end - suspect->environ_start)
               ? FINDING_NO
               : FINDING_UNKNOWN;
}

enum finding suspect_has_marker(const struct suspect *suspect, const char *marker)
{
    enum finding finding;

    if (suspect->memory == 0 && (suspect->flags & (FLAG_EXITING | FLAG_KERNEL_THREAD)) != 0) {
        return (suspect->flags & FLAG_EXITING) != 0 ? FINDING_GONE : FINDING_NO;
    }
    finding = search_environ(suspect, marker);
    return finding == FINDING_UNKNOWN ? search_remains(suspect, marker) : finding;
}
