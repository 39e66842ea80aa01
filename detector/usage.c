#include "detector/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_MAX = 16384, /* files of /proc and /sys are short */
    UTIME = 12,       /* field of a stat, behind the name in brackets */
};

/* ---- Files ----------------------------------------------------------------------------------- */

/* The file's text, cut at FILE_MAX; false if it cannot be read. */
__attribute__((format(printf, 2, 3))) static bool read_file(char ret[static FILE_MAX],
                                                            const char *format, ...)
{
    char path[USAGE_PATH_MAX + 64];
    va_list arguments;
    size_t used = 0;
    ssize_t got = 1;
    int fd;

    va_start(arguments, format);
    (void)vsnprintf(path, sizeof(path), format, arguments);
    va_end(arguments);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    while (used < FILE_MAX - 1 && (got = read(fd, ret + used, FILE_MAX - 1 - used)) > 0) {
        used += (size_t)got;
    }
    (void)close(fd);
    ret[used] = '\0';
    return got >= 0;
}

/* The number behind the blanks; false for "max", -1 and all else that is none. */
static bool number_at(const char *text, double *ret)
{
    text += strspn(text, " \t");
    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    *ret = (double)strtoull(text, NULL, 10);
    return true;
}

/* The number behind `key` at the beginning of a line. */
static bool number_after(const char *text, const char *key, double *ret)
{
    const char *at = text;

    while ((at = strstr(at, key)) != NULL && at != text && at[-1] != '\n') {
        at++;
    }
    return at != NULL && number_at(at + strlen(key), ret);
}

static bool read_number(const char *folder, const char *name, double *ret)
{
    char text[FILE_MAX];

    return read_file(text, "%s/%s", folder, name) && number_at(text, ret);
}

/* ---- Cgroups --------------------------------------------------------------------------------- */

/* What is counted in one version of cgroups, and where. */
struct usage_files {
    const char *source;
    const char *controller; /* "": version 2 */
    const char *mount;
    const char *probe; /* a file that shows that the cgroup is there */
    const char *used, *used_key;
    double used_per; /* what one second, or one byte, is in it */
    const char *limit;
};

#define MOUNT "/sys/fs/cgroup"

static const struct usage_files of_cpu[] = {
    {"cgroup v2", "", MOUNT, "memory.current", "cpu.stat", "usage_usec", 1e6, "cpu.max"},
#define V1(mount)                                                                                  \
    {                                                                                              \
        "cgroup v1", "cpuacct", MOUNT mount, "cpuacct.usage", "cpuacct.usage", NULL, 1e9,          \
            "cpu.cfs_quota_us"                                                                     \
    }
    V1("/cpu,cpuacct"),
    V1("/cpuacct"),
    V1("/cpu"),
#undef V1
    {NULL},
};

static const struct usage_files of_memory[] = {
    {"cgroup v2", "", MOUNT, "memory.current", "memory.current", NULL, 1, "memory.max"},
    {"cgroup v1", "memory", MOUNT "/memory", "memory.usage_in_bytes", "memory.usage_in_bytes", NULL,
     1, "memory.limit_in_bytes"},
    {NULL},
};

/* Whether `list` ("cpu,cpuacct") names the controller; "" is version 2, whose list is empty. */
static bool names(const char *list, const char *controller)
{
    size_t bytes = strlen(controller);

    for (const char *item = list; item != NULL; item = strchr(item, ',')) {
        item += *item == ',';
        if (strcspn(item, ",") == bytes && strncmp(item, controller, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* The path of the controller's cgroup, out of lines "number:controllers:path". */
static bool path_of(const char *root, const char *controller, char ret[static USAGE_PATH_MAX])
{
    char lines[FILE_MAX], *rest = lines, *line;

    if (!read_file(lines, "%s/proc/self/cgroup", root)) {
        return false;
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *list;
        (void)strsep(&line, ":");
        list = strsep(&line, ":");
        if (line != NULL && names(list, controller)) {
            (void)snprintf(ret, USAGE_PATH_MAX, "%s", line);
            return true;
        }
    }
    return false;
}

/* The root of version 1 counts the whole machine: only with a limit is it a container's. Where
 * there is no limit it is -1, or of memory nearly as much as a number can say. */
static bool is_container(const struct usage_cgroup *cgroup, const char *path)
{
    double limit;

    return *cgroup->files->controller == '\0' || strcmp(path, "/") != 0 ||
           (read_number(cgroup->folder, cgroup->files->limit, &limit) && limit < 0x1p62);
}

/* The first of the rows whose cgroup is there: at its path, or at the mount alone, because a
 * container sees its own cgroup there, whatever path it is told. */
static void find(struct usage_cgroup *ret, const char *root, const struct usage_files *rows)
{
    char path[USAGE_PATH_MAX], text[FILE_MAX];

    for (ret->files = rows; ret->files->source != NULL; ret->files++) {
        if (!path_of(root, ret->files->controller, path)) {
            continue;
        }
        ret->mount_bytes = strlen(root) + strlen(ret->files->mount);
        (void)snprintf(ret->folder, sizeof(ret->folder), "%s%s%s", root, ret->files->mount, path);
        if (strcmp(path, "/") == 0 || !read_file(text, "%s/%s", ret->folder, ret->files->probe)) {
            ret->folder[ret->mount_bytes] = '\0';
        }
        if (read_file(text, "%s/%s", ret->folder, ret->files->probe) && is_container(ret, path)) {
            return;
        }
    }
    ret->files = NULL;
}

void usage_meter_init(struct usage_meter *meter, const char *root)
{
    *meter = (struct usage_meter){.has_last = false};
    (void)snprintf(meter->root, sizeof(meter->root), "%s", root);
    find(&meter->cpu, meter->root, of_cpu);
    find(&meter->memory, meter->root, of_memory);
}

const char *usage_source(const struct usage_cgroup *cgroup)
{
    return cgroup->files != NULL ? cgroup->files->source : "process";
}

/* ---- Limits: the smallest from the cgroup up to the mount ------------------------------------ */

static double bytes_in(const char *folder, const char *name)
{
    double bytes;

    return read_number(folder, name, &bytes) ? bytes : INFINITY;
}

/* Version 2 has "quota period" in one file, version 1 has two. */
static double cpus_in(const char *folder, const char *name)
{
    char text[FILE_MAX];
    double quota = 0, period = 0;

    if (read_file(text, "%s/%s", folder, name) && number_at(text, &quota) &&
        !number_at(text + strcspn(text, " \n"), &period)) {
        (void)read_number(folder, "cpu.cfs_period_us", &period);
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

static double least(const struct usage_cgroup *cgroup, double machine,
                    double (*in)(const char *folder, const char *name))
{
    char folder[USAGE_PATH_MAX];

    if (cgroup->files == NULL) {
        return machine;
    }
    memcpy(folder, cgroup->folder, sizeof(folder));
    for (;;) {
        char *slash = strrchr(folder, '/');
        machine = fmin(machine, in(folder, cgroup->files->limit));
        if ((size_t)(slash - folder) < cgroup->mount_bytes) {
            return machine;
        }
        *slash = '\0';
    }
}

double usage_cpus(const struct usage_meter *meter)
{
    cpu_set_t set;

    return least(&meter->cpu,
                 sched_getaffinity(0, sizeof(set), &set) == 0 ? (double)CPU_COUNT(&set) : 1,
                 cpus_in);
}

uint64_t usage_memory_limit(const struct usage_meter *meter)
{
    char text[FILE_MAX];
    double bytes = INFINITY, kib;

    if (read_file(text, "%s/proc/meminfo", meter->root) && number_after(text, "MemTotal:", &kib)) {
        bytes = kib * 1024;
    }
    bytes = least(&meter->memory, bytes, bytes_in);
    return bytes < 0x1p63 ? (uint64_t)bytes : 0;
}

/* ---- What is in use -------------------------------------------------------------------------- */

struct tally {
    double cpu_s, bytes;
};

/* User and system time; the name before may have anything in it, brackets and spaces too. */
static double cpu_s_of(const char *stat, int fields)
{
    const char *at = strrchr(stat, ')');
    double s = 0, ticks;

    for (int field = 0; at != NULL && field < UTIME + fields; field++) {
        if (field >= UTIME && number_at(at, &ticks)) {
            s += ticks / (double)sysconf(_SC_CLK_TCK);
        }
        at = strchr(at + 1, ' ');
    }
    return s;
}

/* This process with its ended children, or a living child, of which only its own memory counts:
 * what it shares with us would count twice. */
static void add(struct tally *tally, const char *root, const char *pid, bool is_child)
{
    char text[FILE_MAX];
    double kib;

    if (read_file(text, "%s/proc/%s/stat", root, pid)) {
        tally->cpu_s += cpu_s_of(text, is_child ? 2 : 4);
    }
    if (read_file(text, "%s/proc/%s/status", root, pid) &&
        number_after(text, is_child ? "RssAnon:" : "VmRSS:", &kib)) {
        tally->bytes += kib * 1024;
    }
}

static void add_children(struct tally *tally, const char *root, const char *thread)
{
    char text[FILE_MAX], *rest = text, *pid;

    if (!read_file(text, "%s/proc/self/task/%s/children", root, thread)) {
        return;
    }
    while ((pid = strsep(&rest, " ")) != NULL) {
        if (isdigit((unsigned char)*pid)) {
            add(tally, root, pid, true);
        }
    }
}

/* Never fails: what cannot be read counts as nothing. */
static struct tally count_processes(const char *root)
{
    char path[USAGE_PATH_MAX];
    struct tally tally = {0};
    const struct dirent *entry;
    DIR *threads;

    add(&tally, root, "self", false);
    (void)snprintf(path, sizeof(path), "%s/proc/self/task", root);
    threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            add_children(&tally, root, entry->d_name);
        }
    }
    if (threads != NULL) {
        (void)closedir(threads);
    }
    return tally;
}

static double used_by(const struct usage_cgroup *cgroup)
{
    const struct usage_files *files = cgroup->files;
    char text[FILE_MAX];
    double used = 0;

    if (read_file(text, "%s/%s", cgroup->folder, files->used)) {
        (void)(files->used_key != NULL ? number_after(text, files->used_key, &used)
                                       : number_at(text, &used));
    }
    return used / files->used_per;
}

static double percent_of(double part, double whole)
{
    return whole > 0 ? fmin(100 * part / whole, 100) : 0;
}

void usage_measure(struct usage_meter *meter, instant now, struct usage *usage)
{
    bool counts_all = meter->cpu.files != NULL && meter->memory.files != NULL;
    struct tally tally = counts_all ? (struct tally){0} : count_processes(meter->root);
    double cpu_s = meter->cpu.files != NULL ? used_by(&meter->cpu) : tally.cpu_s;
    double bytes = meter->memory.files != NULL ? used_by(&meter->memory) : tally.bytes;
    double elapsed_s = (double)instant_since(now, meter->last_at).ns / 1e9;

    usage->cpu = 0;
    if (meter->has_last && elapsed_s > 0 && cpu_s >= meter->last_cpu_s) {
        usage->cpu = percent_of(cpu_s - meter->last_cpu_s, elapsed_s * usage_cpus(meter));
    }
    meter->has_last = true;
    meter->last_at = now;
    meter->last_cpu_s = cpu_s;
    usage->memory = percent_of(bytes, (double)usage_memory_limit(meter));
}
