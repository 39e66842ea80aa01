#include "detector/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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

struct gpu_meter {
    void *library;
    struct nvml nvml;
    bool has_begun;
    void *devices[GPU_DEVICES_MAX];
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

struct gpu_meter *gpu_meter_new(const char *library)
{
    struct gpu_meter *meter = calloc(1, sizeof(*meter));
    unsigned count = 0;

    if (meter == NULL) {
        return NULL;
    }
    meter->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    meter->has_begun =
        meter->library != NULL && load_all(meter->library, &meter->nvml) && meter->nvml.init() == 0;
    if (meter->has_begun) {
        (void)meter->nvml.count(&count);
    }
    for (unsigned i = 0; i < count && meter->count < GPU_DEVICES_MAX; i++) {
        meter->count += meter->nvml.handle(i, &meter->devices[meter->count]) == 0;
    }
    if (meter->count == 0) {
        gpu_meter_free(meter);
        return NULL;
    }
    return meter;
}

void gpu_meter_free(struct gpu_meter *meter)
{
    if (meter != NULL && meter->has_begun) {
        (void)meter->nvml.shutdown();
    }
    if (meter != NULL && meter->library != NULL) {
        (void)dlclose(meter->library);
    }
    free(meter);
}

unsigned gpu_count(const struct gpu_meter *meter)
{
    return meter != NULL ? meter->count : 0;
}

void gpu_measure(const struct gpu_meter *meter, struct usage *usage)
{
    double busy = 0;
    double filled = 0;

    for (unsigned i = 0; i < gpu_count(meter); i++) {
        struct nvml_utilization utilization = {0};
        struct nvml_memory memory = {0};
        if (meter->nvml.utilization(meter->devices[i], &utilization) == 0) {
            busy += utilization.gpu;
        }
        if (meter->nvml.memory(meter->devices[i], &memory) == 0 && memory.total > 0) {
            filled += 100 * (double)memory.used / (double)memory.total;
        }
    }
    usage->gpu = gpu_count(meter) > 0 ? busy / meter->count : 0;
    usage->gpu_memory = gpu_count(meter) > 0 ? filled / meter->count : 0;
}
