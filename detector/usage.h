/* How much of what this process may use is in use: CPU, memory and GPUs, in percent.
 *
 * "May use" is the smallest limit of the cgroups (version 2) that the process is in, or the machine
 * where there is none: 100 % of CPU is the quota, or else every core that the process may run on.
 * "In use" is what the process's cgroup uses, children and all; outside any cgroup, or in the
 * machine's root cgroup, it is what this process, its ended children and its living ones use.
 *
 * GPUs are the machine's NVIDIA ones, of several the mean, by the driver's own library (NVML),
 * which is loaded at run time: the build needs no header and no package of it.
 *
 * All files are read below `root` ("" on a real machine), so that tests can show other machines.
 */
#ifndef DETECTOR_USAGE_H
#define DETECTOR_USAGE_H

#include "base/clock.h"
#include "protocol/protocol.h"

#define USAGE_GPU_LIBRARY "libnvidia-ml.so.1"

enum { USAGE_PATH_MAX = 1024, USAGE_GPUS_MAX = 16 };

struct nvml_utilization;
struct nvml_memory;

struct usage_meter {
    char root[USAGE_PATH_MAX / 4];
    char cgroup[USAGE_PATH_MAX]; /* its folder; "": none */
    size_t mount_bytes;          /* of that, up to where the hierarchy begins */
    bool has_last;
    instant last_at;
    double last_cpu_s;
    struct usage_gpus {
        int (*utilization)(void *device, struct nvml_utilization *utilization);
        int (*memory)(void *device, struct nvml_memory *memory);
        void *devices[USAGE_GPUS_MAX];
        unsigned count;
    } gpus;
};

/* Finds the cgroup and the GPUs. Never fails: what cannot be read or loaded counts as not there. */
void usage_meter_init(struct usage_meter *meter, const char *root, const char *gpu_library);

/* CPU is the mean since the last call; 0 at the first one. */
void usage_measure(struct usage_meter *meter, instant now, struct usage *usage);

/* What counts: "cgroup v2" or "process". */
const char *usage_source(const struct usage_meter *meter);
/* Cores' worth of CPU time, and bytes of memory, that the process may use; 0: not known. */
double usage_cpus(const struct usage_meter *meter);
uint64_t usage_memory_limit(const struct usage_meter *meter);

#endif
