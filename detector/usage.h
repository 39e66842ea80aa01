/* How much of what this process may use is in use: CPU and memory, in percent.
 *
 * "May use" is the smallest limit of the cgroups that the process is in (version 2 or 1), or the
 * machine where there is none: 100 % of CPU is the quota, or else every core that the process may
 * run on. "In use" is what the process's cgroup uses, children and all; outside any cgroup, or in
 * the machine's root cgroup, it is what this process and its ended children used.
 *
 * All files are read below `root` ("" on a real machine), so that tests can show other machines.
 */
#ifndef DETECTOR_USAGE_H
#define DETECTOR_USAGE_H

#include "base/clock.h"
#include "protocol/protocol.h"

enum { USAGE_PATH_MAX = 1024 };

enum usage_source { USAGE_PROCESS, USAGE_CGROUP_V1, USAGE_CGROUP_V2 };

struct usage_meter {
    enum usage_source cpu_source, memory_source; /* version 1 may have one of them only */
    char root[USAGE_PATH_MAX / 4];
    char cpu_path[USAGE_PATH_MAX];    /* folder of the cgroup that counts the CPU */
    char memory_path[USAGE_PATH_MAX]; /* and the memory; the same in version 2 */
    size_t cpu_mount, memory_mount;   /* bytes of the paths up to where the hierarchy begins */
    bool has_last;
    instant last_at;
    uint64_t last_cpu_ns;
};

/* Finds the cgroups. Never fails: what cannot be read counts as not there. */
void usage_meter_init(struct usage_meter *meter, const char *root);

/* Writes cpu and memory of `usage` (not the GPU's). CPU is the mean since the last call; 0 at the
 * first one. */
void usage_measure(struct usage_meter *meter, instant now, struct usage *usage);

/* Cores' worth of CPU time, and bytes of memory, that the process may use. */
double usage_cpus(const struct usage_meter *meter);
uint64_t usage_memory_limit(const struct usage_meter *meter);

#endif
