/* From a leader to its guardian: datagrams on a socket pair, and memory that both map.
 *
 * Both ends are of one build on one host, so the structs are the wire format; the version detects
 * an old guardian beside a new library. When a parent dies, its last datagrams still wait in the
 * socket: the guardian reads them all before it acts.
 *
 *   parent → guardian   CONFIGURE once · PEERS_CLEAR, PEER… · VICTIMS · LEASE · FAREWELL · CRASH
 *   guardian → parent   HELLO once
 */
#ifndef GUARDIAN_PROTOCOL_H
#define GUARDIAN_PROTOCOL_H

#include "base/clock.h"
#include "guardian/certificate.h"
#include "guardian/commands.h"
#include "guardian/victims.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { GUARDIAN_VERSION = 4, GUARDIAN_PEERS_MAX = 64, GUARDIAN_PATH_MAX = 512 };

/* The descriptors that the guardian inherits. */
enum { GUARDIAN_FD_SOCKET = 3, GUARDIAN_FD_PARENT = 4, GUARDIAN_FD_SHARED = 5 };

enum guardian_message_type {
    GUARDIAN_HELLO = 1,   /* .pid */
    GUARDIAN_CONFIGURE,   /* .configure */
    GUARDIAN_PEERS_CLEAR, /* forget all peers; the new ones follow */
    GUARDIAN_PEER,        /* .peer */
    GUARDIAN_VICTIMS,     /* .victims: all, each time */
    GUARDIAN_LEASE,       /* the shared end was 0 and has changed: read it */
    GUARDIAN_FAREWELL,    /* a clean end: certify nothing */
    GUARDIAN_CRASH,       /* the lease is void for good, and the death will follow: certify */
};

struct guardian_message {
    uint16_t version; /* GUARDIAN_VERSION */
    uint16_t type;
    union {
        pid_t pid;
        struct {
            struct certificate certificate; /* except the heir, which is shared */
            bool kills_outliving;           /* kill a parent that outlives the shared end */
            span hang;                     /* kill a parent without a beat for so long; 0: do not */
            char tally[GUARDIAN_PATH_MAX]; /* counts such kills (guardian/tally.h); "": nowhere */
        } configure;
        struct {
            uint64_t node;
            socklen_t address_bytes;
            struct sockaddr_storage address;
        } peer;
        struct victims victims; /* socket and pidfd are sent as descriptors (SCM_RIGHTS) */
    };
};

/* False: see errno. */
bool protocol_send(int fd, const struct guardian_message *message);
/* Returns as recv(2) does. A descriptor that was lost is received as -1. */
ssize_t protocol_receive(int fd, struct guardian_message *ret);

/* In a memfd that both map; a forked child of the parent does not have it. The commands for servers
 * (commands.h) follow, if there are slots: the memfd's length says how many. */
struct guardian_shared {
    _Alignas(64) _Atomic int64_t end_ns; /* CLOCK_BOOTTIME; 0: does not lead */
    _Atomic int64_t beat_ns;             /* CLOCK_BOOTTIME of the loop's latest beat; 0: none */
    _Atomic int32_t loop_thread;         /* its number */
    _Atomic uint64_t heir;               /* 0: none */
    pthread_mutex_t life; /* robust; held by the parent's loop thread (guardian/dying.h) */
};

#endif
