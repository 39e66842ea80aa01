#include "detector/usage.h"

#include <ctype.h>
#include <dirent.h>
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
    bool is_read;
    FILE *file;
    size_t used;

    va_start(arguments, format);
    (void)vsnprintf(path, sizeof(path), format, arguments);
    va_end(arguments);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    used = fread(ret, 1, FILE_MAX - 1, file);
    is_read = ferror(file) == 0;
    (void)fclose(file);
    ret[used] = '\0';
    return is_read;
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

/* ---- The cgroup ------------------------------------------------------------------------------ */

#define MOUNT "/sys/fs/cgroup"

/* The path of this process's cgroup, out of the line "0::path". */
static bool read_path(const char *root, char ret[static USAGE_PATH_MAX])
{
    char lines[FILE_MAX], *rest = lines, *line;

    if (!read_file(lines, "%s/proc/self/cgroup", root)) {
        return false;
    }
    while ((line = strsep(&rest, "\n")) != NULL && strncmp(line, "0::", 3) != 0) {
    }
    (void)snprintf(ret, USAGE_PATH_MAX, "%s", line != NULL ? line + 3 : "");
    return line != NULL;
}

static bool is_cgroup(const char *folder)
{
    char text[FILE_MAX];

    return read_file(text, "%s/memory.current", folder);
}

/* A container sees its own cgroup at the mount, whatever path it is told. */
void usage_meter_init(struct usage_meter *meter, const char *root)
{
    char path[USAGE_PATH_MAX];

    *meter = (struct usage_meter){.has_last = false};
    (void)snprintf(meter->root, sizeof(meter->root), "%s", root);
    if (!read_path(meter->root, path)) {
        return;
    }
    meter->mount_bytes = strlen(meter->root) + strlen(MOUNT);
    (void)snprintf(meter->cgroup, sizeof(meter->cgroup), "%s" MOUNT "%s", meter->root, path);
    if (strcmp(path, "/") == 0 || !is_cgroup(meter->cgroup)) {
        meter->cgroup[meter->mount_bytes] = '\0';
    }
    if (!is_cgroup(meter->cgroup)) {
        meter->cgroup[0] = '\0';
    }
}

const char *usage_source(const struct usage_meter *meter)
{
    return meter->cgroup[0] != '\0' ? "cgroup v2" : "process";
}

/* ---- Limits: the smallest from the cgroup up to the mount ------------------------------------ */

static double bytes_in(const char *folder)
{
    double bytes;

    return read_number(folder, "memory.max", &bytes) ? bytes : INFINITY;
}

/* Its file has "quota period". */
static double cpus_in(const char *folder)
{
    char text[FILE_MAX];
    double quota = 0, period = 0;

    if (read_file(text, "%s/cpu.max", folder) && number_at(text, &quota)) {
        (void)number_at(text + strcspn(text, " \n"), &period);
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

static double least(const struct usage_meter *meter, double machine,
                    double (*in)(const char *folder))
{
    char folder[USAGE_PATH_MAX];

    memcpy(folder, meter->cgroup, sizeof(folder));
    while (folder[0] != '\0') {
        char *slash = strrchr(folder, '/');
        machine = fmin(machine, in(folder));
        *((size_t)(slash - folder) < meter->mount_bytes ? folder : slash) = '\0';
    }
    return machine;
}

double usage_cpus(const struct usage_meter *meter)
{
    cpu_set_t set;

    return least(meter, sched_getaffinity(0, sizeof(set), &set) == 0 ? (double)CPU_COUNT(&set) : 1,
                 cpus_in);
}

uint64_t usage_memory_limit(const struct usage_meter *meter)
{
    char text[FILE_MAX];
    double bytes = INFINITY, kib;

    if (read_file(text, "%s/proc/meminfo", meter->root) && number_after(text, "MemTotal:", &kib)) {
        bytes = kib * 1024;
    }
    bytes = least(meter, bytes, bytes_in);
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

static struct tally count_cgroup(const char *folder)
{
    char text[FILE_MAX];
    struct tally tally = {0};

    if (read_file(text, "%s/cpu.stat", folder) && number_after(text, "usage_usec", &tally.cpu_s)) {
        tally.cpu_s /= 1e6;
    }
    (void)read_number(folder, "memory.current", &tally.bytes);
    return tally;
}

static double percent_of(double part, double whole)
{
    return whole > 0 ? fmin(100 * part / whole, 100) : 0;
}

void usage_measure(struct usage_meter *meter, instant now, struct usage *usage)
{
    struct tally tally =
        meter->cgroup[0] != '\0' ? count_cgroup(meter->cgroup) : count_processes(meter->root);
    double elapsed_s = (double)instant_since(now, meter->last_at).ns / 1e9;

    usage->cpu = 0;
    if (meter->has_last && elapsed_s > 0 && tally.cpu_s >= meter->last_cpu_s) {
        usage->cpu = percent_of(tally.cpu_s - meter->last_cpu_s, elapsed_s * usage_cpus(meter));
    }
    meter->has_last = true;
    meter->last_at = now;
    meter->last_cpu_s = tally.cpu_s;
    usage->memory = percent_of(tally.bytes, (double)usage_memory_limit(meter));
}
