/* What a confined child may still do: the settings of its fences (confine.h). */
#ifndef DETECTOR_CAMERA_CONFINEMENT_H
#define DETECTOR_CAMERA_CONFINEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct confinement {
    uint16_t port;        /* the one that may be dialled; 0: none */
    bool uses_hardware;   /* a graphics driver needs its devices, threads and code of its own */
    const char *readable; /* one more file that may be read; NULL: none */
    bool uses_udp;        /* media come and reports go without a connection */
    int *listener;        /* not NULL: a broker (broker.h) connects for this process; set to the
                             descriptor at which it hears of that */
    bool is_broker;       /* it may answer there */
};

#endif
