#include "detector/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 16384 }; /* files of /proc and /sys are short */

/* ---- Files ----------------------------------------------------------------------------------- */

/* The file's text, cut at FILE_MAX; false if it cannot be read. */
static bool read_file(char ret[static FILE_MAX], const char *folder, const char *name)
{
    char path[USAGE_PATH_MAX + 64];
    bool is_read;
    FILE *file;
    size_t used;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
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

/* What follows `key` at the beginning of a line; NULL: no line begins so. */
static const char *after(const char *text, const char *key)
{
    const char *at = text;

    while ((at = strstr(at, key)) != NULL && at != text && at[-1] != '\n') {
        at++;
    }
    return at != NULL ? at + strlen(key) : NULL;
}

/* What follows `key` at the beginning of a line of the file. False for "max" and all else that is
 * no number. */
static bool read_number(double *ret, const char *folder, const char *name, const char *key)
{
    char text[FILE_MAX];
    const char *at = read_file(text, folder, name) ? after(text, key) : NULL;

    return at != NULL && sscanf(at, "%lf", ret) == 1;
}

/* ---- The cgroup ------------------------------------------------------------------------------ */

#define MOUNT "/sys/fs/cgroup"

static bool is_cgroup(const char *folder)
{
    double bytes;

    return read_number(&bytes, folder, "memory.current", "");
}

const char *usage_source(const struct usage_meter *meter)
{
    return meter->cgroup[0] != '\0' ? "cgroup v2" : "process";
}

/* ---- Limits: the smallest from the cgroup up to the mount ------------------------------------ */

static double bytes_in(const char *folder)
{
    double bytes = INFINITY;

    (void)read_number(&bytes, folder, "memory.max", "");
    return bytes;
}

/* Its file has "quota period". */
static double cpus_in(const char *folder)
{
    char text[FILE_MAX];
    double quota, period;
    bool is_limit = read_file(text, folder, "cpu.max") &&
                    sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0;

    return is_limit ? quota / period : INFINITY;
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
    double kib = INFINITY, bytes;

    (void)read_number(&kib, meter->root, "proc/meminfo", "MemTotal:");
    bytes = least(meter, kib * 1024, bytes_in);
    return bytes < 0x1p63 ? (uint64_t)bytes : 0;
}

/* ---- What is in use -------------------------------------------------------------------------- */

struct tally {
    double cpu_s, bytes;
};

/* User and system time, also of ended children unless it is a child; the name before may have
 * anything in it, brackets and spaces too. */
static double cpu_s_of(const char *stat, bool is_child)
{
    const char *behind = strrchr(stat, ')');
    double own[2] = {0}, ended[2] = {0};

    (void)sscanf(behind != NULL ? behind : "",
                 ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %lf", &own[0], &own[1],
                 &ended[0], &ended[1]);
    return (own[0] + own[1] + (is_child ? 0 : ended[0] + ended[1])) / (double)sysconf(_SC_CLK_TCK);
}

/* This process with its ended children, or a living child, of which only its own memory counts:
 * what it shares with us would count twice. */
static void add(struct tally *tally, const char *root, const char *pid, bool is_child)
{
    char folder[USAGE_PATH_MAX], text[FILE_MAX];
    double kib = 0;

    (void)snprintf(folder, sizeof(folder), "%s/proc/%s", root, pid);
    if (read_file(text, folder, "stat")) {
        tally->cpu_s += cpu_s_of(text, is_child);
    }
    (void)read_number(&kib, folder, "status", is_child ? "RssAnon:" : "VmRSS:");
    tally->bytes += kib * 1024;
}

static void add_children(struct tally *tally, const char *root, const char *thread)
{
    char name[USAGE_PATH_MAX], text[FILE_MAX], *rest = text, *pid;

    (void)snprintf(name, sizeof(name), "proc/self/task/%s/children", thread);
    if (!read_file(text, root, name)) {
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
    struct tally tally = {0};

    (void)read_number(&tally.cpu_s, folder, "cpu.stat", "usage_usec");
    tally.cpu_s /= 1e6;
    (void)read_number(&tally.bytes, folder, "memory.current", "");
    return tally;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* The part of NVML's interface that is used here; its structs never change under these names. */
struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last period in which it was busy */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

/* ISO C knows no way from an object's address to a function's; POSIX says that they are alike. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* The library stays loaded until the process ends. None, if it is not there, lacks a function, or
 * finds no GPU. */
static void open_gpus(struct usage_gpus *gpus, const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    int (*begin)(void), (*counted)(unsigned *count), (*handle)(unsigned index, void **device);
    unsigned count = 0;

    if (library == NULL || !load(library, "nvmlInit_v2", &begin) ||
        !load(library, "nvmlDeviceGetCount_v2", &counted) ||
        !load(library, "nvmlDeviceGetHandleByIndex_v2", &handle) ||
        !load(library, "nvmlDeviceGetUtilizationRates", &gpus->utilization) ||
        !load(library, "nvmlDeviceGetMemoryInfo", &gpus->memory) || begin() != 0 ||
        counted(&count) != 0) {
        return;
    }
    for (unsigned i = 0; i < count && gpus->count < USAGE_GPUS_MAX; i++) {
        gpus->count += handle(i, &gpus->devices[gpus->count]) == 0;
    }
}

static void measure_gpus(const struct usage_gpus *gpus, struct usage *usage)
{
    double busy = 0, filled = 0;

    for (unsigned i = 0; i < gpus->count; i++) {
        struct nvml_utilization utilization = {0};
        struct nvml_memory memory = {0};
        if (gpus->utilization(gpus->devices[i], &utilization) == 0) {
            busy += utilization.gpu;
        }
        if (gpus->memory(gpus->devices[i], &memory) == 0 && memory.total > 0) {
            filled += 100 * (double)memory.used / (double)memory.total;
        }
    }
    usage->gpu = busy / gpus->count;
    usage->gpu_memory = filled / gpus->count;
}

/* ---- The meter ------------------------------------------------------------------------------- */

/* A container sees its own cgroup at the mount, whatever path it is told. */
void usage_meter_init(struct usage_meter *meter, const char *root, const char *gpu_library)
{
    char lines[FILE_MAX];
    const char *path; /* in the line "0::path" */

    *meter = (struct usage_meter){0};
    open_gpus(&meter->gpus, gpu_library);
    (void)snprintf(meter->root, sizeof(meter->root), "%s", root);
    path = read_file(lines, meter->root, "proc/self/cgroup") ? after(lines, "0::") : NULL;
    if (path == NULL) {
        return;
    }
    meter->mount_bytes = strlen(meter->root) + strlen(MOUNT);
    (void)snprintf(meter->cgroup, sizeof(meter->cgroup), "%s" MOUNT "%.*s", meter->root,
                   (int)strcspn(path, "\n"), path);
    if (!is_cgroup(meter->cgroup)) {
        meter->cgroup[meter->mount_bytes] = '\0';
    }
    if (!is_cgroup(meter->cgroup)) {
        meter->cgroup[0] = '\0';
    }
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
    usage->gpu = usage->gpu_memory = 0;
    if (meter->gpus.count > 0) {
        measure_gpus(&meter->gpus, usage);
    }
}
