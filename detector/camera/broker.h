/* A process that makes the connections of baton-camera for it, so that it can make none itself.
 *
 *   baton-camera                      kernel                  broker
 *   connect(fd, address) ─────▶ seccomp stops the call ─────▶ reads the address, once; checks it;
 *                        ◀───── the call's result ◀────────── connect(fd, its copy)
 *
 * The broker shares the table of descriptors with baton-camera, and no memory: a decoder that a
 * hostile stream has taken over can change neither the copy nor the check. It can replace every
 * descriptor, so the broker opens no file between the first byte of the camera and its own end. The
 * same holds for sendto(2) with an address. A connection to an rtsps camera becomes one end of a
 * tunnel (tunnel.h). Once a stream is open the broker ends, unless datagrams or a tunnel need it.
 * It dies with baton-camera: Landlock would keep the death signal from a process that is in none of
 * its domains, so baton-camera enters its own before the broker is cloned. Inside of this folder
 * only.
 */
#ifndef DETECTOR_CAMERA_BROKER_H
#define DETECTOR_CAMERA_BROKER_H

#include "detector/camera/confine.h"
#include "detector/camera/message.h"

/* Before the process holds a secret. */
void broker_prepare(void);

/* Before confine_process() of this process, which `confinement` describes, and where the broker is
 * put; the config is borrowed for good. BATON_EUNAVAILABLE. */
int broker_start(const struct camera_config *config, struct confinement *confinement,
                 struct baton_error *reterr);
/* The following may be called without a broker.
 *
 * The stream is open: no connection is made any more. */
void broker_settle(void);
/* The stream is closed: waits until the camera has been sent what is in the tunnel. */
void broker_farewell(void);

/* Whether a connection to the camera has been tried: its name is known. */
bool broker_has_dialled(void);
/* Why there is no connection to the camera; its code is 0 if none has failed. */
const struct baton_error *broker_fault(void);

#endif
