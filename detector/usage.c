#include "detector/usage.h"

#include "detector/descent.h"
#include "detector/proc_file.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MOUNT "/sys/fs/cgroup"

static bool read_in(const char *folder, const char *name, char text[static PROC_FILE_MAX])
{
    char path[USAGE_PATH_MAX + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return proc_read(path, text);
}

static bool read_number(const char *folder, const char *name, uint64_t *number)
{
    char text[PROC_FILE_MAX];
    return read_in(folder, name, text) && proc_number(text, number);
}

/* ---- where the cgroups are ---- */

/* Whether `list` ("cpu,cpuacct") names `controller`. */
static bool list_names(const char *list, size_t bytes, const char *controller)
{
    size_t wanted = strlen(controller);

    while (bytes > 0) {
        const char *comma = memchr(list, ',', bytes);
        size_t item = comma != NULL ? (size_t)(comma - list) : bytes;
        if (item == wanted && strncmp(list, controller, wanted) == 0) {
            return true;
        }
        item += comma != NULL;
        list += item;
        bytes -= item;
    }
    return false;
}

/* The path of `controller` ("" for version 2) out of the lines "number:controllers:path". */
static bool path_of(const char *lines, const char *controller, char path[static USAGE_PATH_MAX])
{
    for (const char *line = lines; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *list = strchr(line, ':');
        const char *at = list != NULL ? strchr(list + 1, ':') : NULL;
        if (at != NULL && (end == NULL || at < end)) {
            size_t listed = (size_t)(at - list - 1);
            bool is_it =
                *controller == '\0' ? listed == 0 : list_names(list + 1, listed, controller);
            if (is_it) {
                int bytes = (int)(end != NULL ? (size_t)(end - at - 1) : strlen(at + 1));
                (void)snprintf(path, USAGE_PATH_MAX, "%.*s", bytes, at + 1);
                return true;
            }
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

/* Writes mount + path if `probe` is there, else the mount alone (a container sees its own cgroup at
 * the mount, whatever path it is told). False if it is in neither. */
static bool find_folder(const char *root, const char *mount, const char *path, const char *probe,
                        char folder[static USAGE_PATH_MAX], size_t *mount_bytes)
{
    char text[PROC_FILE_MAX];
    int bytes = snprintf(folder, USAGE_PATH_MAX, "%s%s", root, mount);

    if (bytes < 0 || bytes >= USAGE_PATH_MAX) {
        return false;
    }
    *mount_bytes = (size_t)bytes;
    if (strcmp(path, "/") != 0) {
        (void)snprintf(folder + bytes, USAGE_PATH_MAX - (size_t)bytes, "%s", path);
        if (read_in(folder, probe, text)) {
            return true;
        }
        folder[bytes] = '\0';
    }
    return read_in(folder, probe, text);
}

static void find_v2(struct usage_meter *meter, const char *lines)
{
    char path[USAGE_PATH_MAX];

    if (path_of(lines, "", path) && find_folder(meter->root, MOUNT, path, "memory.current",
                                                meter->cpu_path, &meter->cpu_mount)) {
        memcpy(meter->memory_path, meter->cpu_path, sizeof(meter->memory_path));
        meter->memory_mount = meter->cpu_mount;
        meter->cpu_source = meter->memory_source = USAGE_CGROUP_V2;
    }
}

/* The root of version 1 counts the whole machine: only with a limit is it a container's. Where
 * there is no limit it is -1, or of memory nearly as much as a number can say. */
static bool is_container(const char *path, const char *folder, const char *limit)
{
    uint64_t number;

    return strcmp(path, "/") != 0 ||
           (read_number(folder, limit, &number) && number < (uint64_t)1 << 62);
}

static void find_v1_cpu(struct usage_meter *meter, const char *lines)
{
    static const char *const mounts[] = {MOUNT "/cpu,cpuacct", MOUNT "/cpuacct", MOUNT "/cpu"};
    char path[USAGE_PATH_MAX];

    if (!path_of(lines, "cpuacct", path)) {
        return;
    }
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        if (find_folder(meter->root, mounts[i], path, "cpuacct.usage", meter->cpu_path,
                        &meter->cpu_mount)) {
            if (is_container(path, meter->cpu_path, "cpu.cfs_quota_us")) {
                meter->cpu_source = USAGE_CGROUP_V1;
            }
            return;
        }
    }
}

static void find_v1_memory(struct usage_meter *meter, const char *lines)
{
    char path[USAGE_PATH_MAX];

    if (path_of(lines, "memory", path) &&
        find_folder(meter->root, MOUNT "/memory", path, "memory.usage_in_bytes", meter->memory_path,
                    &meter->memory_mount) &&
        is_container(path, meter->memory_path, "memory.limit_in_bytes")) {
        meter->memory_source = USAGE_CGROUP_V1;
    }
}

void usage_meter_init(struct usage_meter *meter, const char *root)
{
    char path[USAGE_PATH_MAX];
    char lines[PROC_FILE_MAX];

    *meter = (struct usage_meter){.cpu_source = USAGE_PROCESS, .memory_source = USAGE_PROCESS};
    (void)snprintf(meter->root, sizeof(meter->root), "%s", root);
    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (!proc_read(path, lines)) {
        return;
    }
    find_v2(meter, lines);
    if (meter->cpu_source == USAGE_PROCESS) {
        find_v1_cpu(meter, lines);
        find_v1_memory(meter, lines);
    }
}

/* ---- limits: the smallest from the cgroup up to the mount ---- */

/* Cuts the last folder off; false at the mount. */
static bool go_up(char *folder, size_t mount_bytes)
{
    char *slash = strrchr(folder, '/');
    if (slash == NULL || (size_t)(slash - folder) < mount_bytes) {
        return false;
    }
    *slash = '\0';
    return true;
}

static double cpus_of(const struct usage_meter *meter, const char *folder)
{
    char text[PROC_FILE_MAX];
    uint64_t quota;
    uint64_t period = 0;
    bool is_limited;

    if (meter->cpu_source == USAGE_CGROUP_V2) {
        is_limited = read_in(folder, "cpu.max", text) && proc_number(text, &quota) &&
                     strchr(text, ' ') != NULL && proc_number(strchr(text, ' ') + 1, &period);
    } else {
        is_limited = read_number(folder, "cpu.cfs_quota_us", &quota) &&
                     read_number(folder, "cpu.cfs_period_us", &period);
    }
    return is_limited && quota > 0 && period > 0 ? (double)quota / (double)period : 1e9;
}

double usage_cpus(const struct usage_meter *meter)
{
    char folder[USAGE_PATH_MAX];
    cpu_set_t set;
    double least = 1;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        least = CPU_COUNT(&set);
    }
    if (meter->cpu_source == USAGE_PROCESS) {
        return least;
    }
    memcpy(folder, meter->cpu_path, sizeof(folder));
    do {
        double here = cpus_of(meter, folder);
        least = here < least ? here : least;
    } while (go_up(folder, meter->cpu_mount));
    return least;
}

uint64_t usage_memory_limit(const struct usage_meter *meter)
{
    const char *name =
        meter->memory_source == USAGE_CGROUP_V2 ? "memory.max" : "memory.limit_in_bytes";
    char text[PROC_FILE_MAX];
    char folder[USAGE_PATH_MAX];
    uint64_t least = UINT64_MAX;
    uint64_t here;

    (void)snprintf(folder, sizeof(folder), "%s/proc/meminfo", meter->root);
    if (proc_read(folder, text) && proc_number_after(text, "MemTotal:", &here)) {
        least = here * 1024;
    }
    if (meter->memory_source == USAGE_PROCESS) {
        return least;
    }
    memcpy(folder, meter->memory_path, sizeof(folder));
    do {
        if (read_number(folder, name, &here) && here < least) {
            least = here;
        }
    } while (go_up(folder, meter->memory_mount));
    return least;
}

/* ---- what is in use ---- */

static uint64_t own_cpu_ns(void)
{
    uint64_t ns = 0;

    for (int i = 0; i < 2; i++) {
        struct rusage used;
        if (getrusage(i == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &used) == 0) {
            ns += (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
                  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
        }
    }
    return ns;
}

static uint64_t cpu_ns(const struct usage_meter *meter)
{
    char text[PROC_FILE_MAX];
    uint64_t number = 0;

    switch (meter->cpu_source) {
    case USAGE_CGROUP_V2:
        if (read_in(meter->cpu_path, "cpu.stat", text)) {
            (void)proc_number_after(text, "usage_usec", &number);
        }
        return number * 1000;
    case USAGE_CGROUP_V1:
        (void)read_number(meter->cpu_path, "cpuacct.usage", &number);
        return number;
    case USAGE_PROCESS:
        break;
    }
    return own_cpu_ns() + descent_measure(meter->root).cpu_ns;
}

static uint64_t memory_bytes(const struct usage_meter *meter)
{
    char path[USAGE_PATH_MAX];
    char text[PROC_FILE_MAX];
    uint64_t number = 0;

    if (meter->memory_source != USAGE_PROCESS) {
        (void)read_number(meter->memory_path,
                          meter->memory_source == USAGE_CGROUP_V2 ? "memory.current"
                                                                  : "memory.usage_in_bytes",
                          &number);
        return number;
    }
    (void)snprintf(path, sizeof(path), "%s/proc/self/status", meter->root);
    if (proc_read(path, text)) {
        (void)proc_number_after(text, "VmRSS:", &number);
    }
    return number * 1024 + descent_measure(meter->root).memory_bytes;
}

static double percent_of(double part, double whole)
{
    double percent = whole > 0 ? 100 * part / whole : 0;
    return percent < 100 ? percent : 100;
}

void usage_measure(struct usage_meter *meter, instant now, struct usage *usage)
{
    uint64_t used = cpu_ns(meter);
    int64_t elapsed = instant_since(now, meter->last_at).ns;

    usage->cpu = 0;
    if (meter->has_last && elapsed > 0 && used >= meter->last_cpu_ns) {
        usage->cpu =
            percent_of((double)(used - meter->last_cpu_ns), (double)elapsed * usage_cpus(meter));
    }
    meter->has_last = true;
    meter->last_at = now;
    meter->last_cpu_ns = used;
    usage->memory = percent_of((double)memory_bytes(meter), (double)usage_memory_limit(meter));
}
