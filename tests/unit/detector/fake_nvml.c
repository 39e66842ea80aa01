/* A driver's library of a machine with three GPUs, the second of which cannot be opened. */
struct utilization {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

static int devices[3];

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 3;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &devices[index];
    return index == 1 ? 15 : 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    utilization->gpu = device == &devices[0] ? 80 : 20;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    memory->total = 1000;
    memory->used = 250;
    return device == &devices[0] ? 0 : 1; /* the third does not tell */
}
