/* The rights of a confined process (confine.h), and Landlock, which limits which files it can read
 * and which port it can dial. */
#ifndef DETECTOR_CAMERA_LANDLOCK_H
#define DETECTOR_CAMERA_LANDLOCK_H

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

/* Applies as much as the kernel has: files from 5.13, TCP ports from 6.7, signals and abstract
 * sockets from 6.12. no_new_privs must be set. */
void landlock_restrict(const struct confinement *confinement);

#endif
