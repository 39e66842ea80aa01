/* The usage of the machine's NVIDIA GPUs, by the driver's own library (NVML), loaded at run time.
 *
 * The build needs no header and no package, and on a machine without a GPU every figure is 0. Of
 * several GPUs it is the mean.
 */
#ifndef DETECTOR_GPU_H
#define DETECTOR_GPU_H

#include "protocol/protocol.h"

#define GPU_LIBRARY "libnvidia-ml.so.1"

enum { GPU_DEVICES_MAX = 16 };

struct gpu_meter; /* opaque */

/* Loads `library`. NULL if it is not there, lacks a function, or finds no GPU: all allowed below.
 */
struct gpu_meter *gpu_meter_new(const char *library);
void gpu_meter_free(struct gpu_meter *meter);

unsigned gpu_count(const struct gpu_meter *meter);

/* Writes gpu and gpu_memory of `usage`, in percent. */
void gpu_measure(const struct gpu_meter *meter, struct usage *usage);

#endif
