/* The rights of a confined process (confine.h). */
#ifndef DETECTOR_CAMERA_CONFINEMENT_H
#define DETECTOR_CAMERA_CONFINEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct confinement {
    uint16_t port;        /* the one that can be dialled; 0: none */
    bool uses_hardware;   /* a graphics driver needs its devices, threads and code of its own */
    const char *readable; /* one more file that can be read; NULL: none */
    bool uses_udp;        /* media arrive and reports leave in datagrams */
    int *listener; /* not NULL: a broker (broker.h) connects for this process, and gets its requests
                      at the descriptor that is put here */
    bool is_broker;          /* it can answer them */
    unsigned memory_max_mib; /* 0: as much as a decoder needs */
};

#endif
