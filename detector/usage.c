#include "detector/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 16384 /* files of /proc and /sys are short */, GPUS_MAX = 16 };

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

/* What follows `key` at the beginning of a line; NULL: no line begins so. */
static const char *after(const char *text, const char *key)
{
    const char *at = text;

    while ((at = strstr(at, key)) != NULL && at != text && at[-1] != '\n') {
        at++;
    }
    return at != NULL ? at + strlen(key) : NULL;
}

/* False for "max" and all else that is no number. */
static bool number_after(const char *text, const char *key, double *ret)
{
    const char *at = after(text, key);

    return at != NULL && sscanf(at, "%lf", ret) == 1;
}

static bool read_number(const char *folder, const char *name, double *ret)
{
    char text[FILE_MAX];

    return read_file(text, "%s/%s", folder, name) && sscanf(text, "%lf", ret) == 1;
}

/* ---- The cgroup ------------------------------------------------------------------------------ */

#define MOUNT "/sys/fs/cgroup"

/* The path of this process's cgroup, out of the line "0::path". */
static bool read_path(const char *root, char ret[static USAGE_PATH_MAX])
{
    char lines[FILE_MAX];
    const char *path = read_file(lines, "%s/proc/self/cgroup", root) ? after(lines, "0::") : NULL;

    if (path != NULL) {
        (void)snprintf(ret, USAGE_PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
    }
    return path != NULL;
}

static bool is_cgroup(const char *folder)
{
    char text[FILE_MAX];

    return read_file(text, "%s/memory.current", folder);
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
    double quota, period;
    bool is_limit = read_file(text, "%s/cpu.max", folder) &&
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
    char text[FILE_MAX];
    double kib;

    if (read_file(text, "%s/proc/%s/stat", root, pid)) {
        tally->cpu_s += cpu_s_of(text, is_child);
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

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* The part of NVML's interface that is used here; its structs never change under these names. */
struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last period in which it was busy */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, void **device);
    int (*utilization)(void *device, struct nvml_utilization *utilization);
    int (*memory)(void *device, struct nvml_memory *memory);
};

struct gpus {
    void *library;
    struct nvml nvml;
    bool has_begun;
    void *devices[GPUS_MAX];
    unsigned count;
};

/* ISO C knows no way from an object's address to a function's; POSIX says that they are alike. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool load_all(void *library, struct nvml *nvml)
{
    return load(library, "nvmlInit_v2", &nvml->init) &&
           load(library, "nvmlShutdown", &nvml->shutdown) &&
           load(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
           load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
           load(library, "nvmlDeviceGetUtilizationRates", &nvml->utilization) &&
           load(library, "nvmlDeviceGetMemoryInfo", &nvml->memory);
}

static void close_gpus(struct gpus *gpus)
{
    if (gpus->has_begun) {
        (void)gpus->nvml.shutdown();
    }
    if (gpus->library != NULL) {
        (void)dlclose(gpus->library);
    }
    free(gpus);
}

/* NULL: the library is not there, lacks a function, or finds no GPU. */
static struct gpus *open_gpus(const char *library)
{
    struct gpus *gpus = calloc(1, sizeof(*gpus));
    unsigned count = 0;

    if (gpus == NULL) {
        return NULL;
    }
    gpus->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    gpus->has_begun =
        gpus->library != NULL && load_all(gpus->library, &gpus->nvml) && gpus->nvml.init() == 0;
    if (gpus->has_begun) {
        (void)gpus->nvml.count(&count);
    }
    for (unsigned i = 0; i < count && gpus->count < GPUS_MAX; i++) {
        gpus->count += gpus->nvml.handle(i, &gpus->devices[gpus->count]) == 0;
    }
    if (gpus->count == 0) {
        close_gpus(gpus);
        return NULL;
    }
    return gpus;
}

unsigned usage_gpus(const struct usage_meter *meter)
{
    return meter->gpus != NULL ? meter->gpus->count : 0;
}

static void measure_gpus(const struct gpus *gpus, struct usage *usage)
{
    double busy = 0, filled = 0;

    for (unsigned i = 0; i < gpus->count; i++) {
        struct nvml_utilization utilization = {0};
        struct nvml_memory memory = {0};
        if (gpus->nvml.utilization(gpus->devices[i], &utilization) == 0) {
            busy += utilization.gpu;
        }
        if (gpus->nvml.memory(gpus->devices[i], &memory) == 0 && memory.total > 0) {
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
    char path[USAGE_PATH_MAX];

    *meter = (struct usage_meter){.gpus = open_gpus(gpu_library)};
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

void usage_meter_fini(struct usage_meter *meter)
{
    if (meter->gpus != NULL) {
        close_gpus(meter->gpus);
        meter->gpus = NULL;
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
    if (meter->gpus != NULL) {
        measure_gpus(meter->gpus, usage);
    }
}
