/* Takes from a helper's process what it does not need, in two steps. Each step is final.
 *
 *   confine_process    at once: no other program, no new process, no privilege, nothing written;
 *                      reads only what names, certificates and drivers need; dials only one port;
 *                      dies with its parent, and is not dumpable
 *   confine_stream     once the camera is connected: no further connection, no file, no thread
 *
 * The kernel enforces this by the user, limits, Landlock (as far as the kernel has it) and seccomp,
 * set in this order. Without one of the first three the others still hold; seccomp is required.
 */
#ifndef DETECTOR_CAMERA_CONFINE_H
#define DETECTOR_CAMERA_CONFINE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct confinement {
    uint16_t port;        /* the one that can be dialled; 0: none */
    bool uses_hardware;   /* a graphics driver needs its devices, threads and code of its own */
    const char *readable; /* one more file that can be read; NULL: none */
    bool uses_udp;        /* media arrive and reports leave in datagrams */
    int broker; /* not 0: a broker (broker.h) connects for this process; it is written here by which
                   descriptor it gets its requests */
    bool is_broker; /* it can answer them */
};

/* Both return BATON_EUNAVAILABLE if the kernel refuses the filter; then the camera must not be
 * opened. */
int confine_process(const struct confinement *confinement, struct baton_error *reterr);
int confine_stream(const struct confinement *confinement, struct baton_error *reterr);

/* Of confine_process, or of broker_start where there is a broker: Landlock, which limits the files
 * that can be read and the port that can be dialled. Applies as much as the kernel has: files from
 * 5.13, TCP ports from 6.7, signals and abstract sockets from 6.12. */
void landlock_restrict(const struct confinement *confinement);

#endif
