/* The library's side of the guardian: starts the process, restarts it, and sends it its settings.
 *
 *   guardian_start ─▶ set_peers, set_heir, publish, … in any order ─▶ guardian_stop
 *
 * The guardian is a process of its own (baton-guardian(8)). It is detached, so a program that waits
 * for any of its children never meets it. It certifies this process's death to the peers. If the
 * guardian dies, leadership is unaffected: the library warns and starts another.
 *
 * Call all functions on the loop's thread, and never in a forked child. guardian_publish and
 * guardian_set_heir write shared memory and mostly make no system call, so each heartbeat may call
 * them.
 */
#ifndef GUARDIAN_GUARDIAN_H
#define GUARDIAN_GUARDIAN_H

#include "base/clock.h"
#include "base/error.h"
#include "guardian/certificate.h"
#include "guardian/commands.h"
#include "guardian/victims.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct guardian; /* opaque */

/* The text of `error` is a sentence. Called on the loop's thread; must not stop the guardian. */
typedef void (*guardian_warning_cb)(void *userdata, const struct baton_error *error);

struct guardian_options {
    uv_loop_t *loop;                /* outlives the guardian */
    struct certificate certificate; /* is sent at death; .heir is ignored (guardian_set_heir) */
    /* Kills this process at the instant given to guardian_publish if no later one was given since,
     * so that a hung leader cannot resume and act. */
    bool kills_outliving;
    span
        hang; /* kills this process if its loop leaves no beat for so long while it leads; 0: not */
    /* The program's own beat, in CLOCK_BOOTTIME: if it is older than the loop's, it counts instead.
     * 0: the program leaves none. Outlives the guardian; NULL: none. */
    const _Atomic int64_t *alive_ns;
    const char *tally;      /* file that counts such kills (guardian/tally.h); NULL: none */
    uint32_t release_slots; /* how many leases the guardian may release on servers; 0: none */
    const char *program;    /* path of baton-guardian; NULL: guardian_find() */
    bool speaks_tls;        /* use baton-guardian-tls, which lies beside the other */
    guardian_warning_cb on_warning; /* or NULL */
    void *userdata;
};

/* Checks the setting `hang` of a process whose lease lasts so long: BATON_EINVAL. */
int guardian_check_hang(span hang, span lease, bool has_guardian, struct baton_error *reterr);

/* A peer's raft address: "HOST:PORT", numeric or a name, IPv6 in brackets. A name is looked up in
 * the background, until it is found. */
struct guardian_peer {
    uint64_t node;
    const char *address; /* borrowed during the call */
};

/* BATON_ENOENT: no such program; BATON_EIO: the system refused. Later failures are warnings. */
int guardian_start(struct guardian **ret, const struct guardian_options *options,
                   struct baton_error *reterr);

/* Ends the guardian without a certificate, frees, then calls `closed` (may be NULL). NULL
 * allowed. */
void guardian_stop(struct guardian *guardian, void (*closed)(void *userdata), void *userdata);

/* Replaces the peers; at most GUARDIAN_PEERS_MAX (64), further ones get no certificate. */
void guardian_set_peers(struct guardian *guardian, const struct guardian_peer *peers, size_t count);
/* The heir, which campaigns first after our death; 0: none. */
void guardian_set_heir(struct guardian *guardian, uint64_t node);
/* The processes to kill before a certificate is sent; NULL: none. Copied. */
void guardian_set_victims(struct guardian *guardian, const struct victims *victims);

/* This process leads until `end`; at or before 0: it does not lead. Only kills_outliving and hang
 * use it.
 * If a program acts under the lease, `end` is the instant at which that program must be dead. */
void guardian_publish(struct guardian *guardian, instant end);

/* ---- Commands for servers (guardian/commands.h) ---------------------------------------------- */

/* Replaces the commands; NULL: none. All is copied. BATON_EINVAL: an address is not numeric;
 * BATON_ENOENT: a file for TLS is missing; BATON_ETOOBIG. */
int guardian_set_commands(struct guardian *guardian, const struct guardian_commands *commands,
                          struct baton_error *reterr);

/* Takes a slot for the name. GUARDIAN_NO_SLOT: all are taken, the name is too long, or there are no
 * slots; the other functions allow this value, and do nothing. */
int guardian_open_slot(struct guardian *guardian, const char *name);
void guardian_close_slot(struct guardian *guardian, int slot);
/* The slot's election holds a lease of this epoch; 0: none. */
void guardian_set_epoch(struct guardian *guardian, int slot, uint64_t epoch);

/* From now on, a fatal signal of this process (guardian/fatal.h, which must be installed) calls
 * void_lease(lease) and announces the crash. At most once for each guardian. BATON_ETOOBIG: too
 * many elections in one process. */
int guardian_arm(struct guardian *guardian, void (*void_lease)(void *lease), void *lease,
                 struct baton_error *reterr);

/* The running guardian's process id; 0 until its HELLO has arrived. */
pid_t guardian_pid(const struct guardian *guardian);

#endif
