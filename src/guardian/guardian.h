/* The library's side of the guardian: starts it, keeps it alive, tells it what it must know.
 *
 *   guardian_start ─▶ set_peers, set_heir, publish, … in any order ─▶ guardian_stop
 *
 * The guardian is a process of its own (baton-guardian(8)), detached from this one: a program that
 * waits for any of its children never meets it. It certifies this process's death to the peers.
 * If it dies itself, leadership is unaffected: there is a warning, and it is started again.
 *
 * On the loop's thread, all of it. guardian_publish and guardian_set_heir write a shared word and
 * mostly make no system call, so they may be called with each heartbeat. A forked child must not
 * touch it.
 */
#ifndef GUARDIAN_GUARDIAN_H
#define GUARDIAN_GUARDIAN_H

#include "base/clock.h"
#include "base/error.h"
#include "guardian/certificate.h"
#include "guardian/victims.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct guardian; /* opaque */

/* error: what happened, as a sentence. Comes on the loop's thread; may not stop the guardian. */
typedef void (*guardian_warning_cb)(void *userdata, const struct baton_error *error);

struct guardian_options {
    uv_loop_t *loop;                /* outlives the guardian */
    struct certificate certificate; /* what it shall say; .heir is ignored (guardian_set_heir) */
    /* Kills this process when the instant told by guardian_publish comes without a later one, so
     * that a hung leader cannot wake up and act. */
    bool kills_outliving;
    uint32_t words_slots; /* how many leases last words may be said of; 0: none */
    const char *program;  /* path of baton-guardian; NULL: see guardian_find */
    bool speaks_tls;      /* the image that can, baton-guardian-tls, which lies beside the other */
    guardian_warning_cb on_warning; /* or NULL */
    void *userdata;
};

/* A peer's raft address: "HOST:PORT", numeric or a name, IPv6 in brackets. A name is resolved in
 * the background, once for each call of guardian_set_peers. */
struct guardian_peer {
    uint64_t node;
    const char *address; /* borrowed during the call */
};

/* BATON_ENOENT: no such program; BATON_EIO: the system refused. Later troubles are warnings. */
int guardian_start(struct guardian **ret, const struct guardian_options *options,
                   struct baton_error *reterr);

/* A clean end: bids farewell (nothing will be certified), frees; then `closed` (may be NULL).
 * NULL allowed: then nothing happens. */
void guardian_stop(struct guardian *guardian, void (*closed)(void *userdata), void *userdata);

/* All peers, each time; at most GUARDIAN_PEERS_MAX (64), the rest get no certificate. */
void guardian_set_peers(struct guardian *guardian, const struct guardian_peer *peers, size_t count);
/* Who campaigns first after our death; 0: nobody in particular. */
void guardian_set_heir(struct guardian *guardian, uint64_t node);
/* Who is killed before anything is certified; NULL: nobody. Copied. */
void guardian_set_victims(struct guardian *guardian, const struct victims *victims);

/* Leads until `end`; at or before 0: does not lead. Only kills_outliving looks at it. Whoever lets
 * a program act under the lease tells the instant at which that program must be dead. */
void guardian_publish(struct guardian *guardian, instant end);

/* ---- Last words (guardian/words.h) ----------------------------------------------------------- */

/* As TLS's options are for the process itself; files are looked for from where it is now. */
struct guardian_tls {
    const char *ca, *certificate, *key; /* "": the system's; none */
    bool is_unverified;
};

struct guardian_words {
    const char *const *addresses;   /* of all servers: "HOST:PORT", numeric, or a socket's path */
    size_t address_count;           /* at most WORDS_SERVERS_MAX */
    const struct guardian_tls *tls; /* NULL: in the clear. Only with .speaks_tls */
    const char *const *names;       /* with TLS: whose certificate each must have; "": anybody's */
    const void *greeting;
    size_t greeting_bytes;
    const char *const *lease; /* the request for a lease that is held: its words */
    size_t lease_count;
    const char *const *seat; /* the request for each slot in use */
    size_t seat_count;
};

/* From now on these are said; NULL: nothing. All is copied. BATON_EINVAL: an address is no
 * number; BATON_ENOENT: a file of TLS's is not there; BATON_ETOOBIG. */
int guardian_set_words(struct guardian *guardian, const struct guardian_words *words,
                       struct baton_error *reterr);
enum { GUARDIAN_NO_SLOT = -1 };

/* A slot comes into use under a name. GUARDIAN_NO_SLOT: all are taken, the name is too long, or
 * nothing is to be said of any; the other functions allow it, and do nothing. */
int guardian_open_slot(struct guardian *guardian, const char *name);
void guardian_close_slot(struct guardian *guardian, int slot);
/* It holds a lease of this epoch; 0: none. */
void guardian_set_epoch(struct guardian *guardian, int slot, uint64_t epoch);

/* From now on a fatal signal of this process (guardian/fatal.h, which must be installed) calls
 * void_lease(lease) and announces the crash. At most once for each guardian. BATON_ETOOBIG: too
 * many elections in one process. */
int guardian_arm(struct guardian *guardian, void (*void_lease)(void *lease), void *lease,
                 struct baton_error *reterr);

/* Of the running guardian; 0 until it has greeted. */
pid_t guardian_pid(const struct guardian *guardian);

/* Where the program is: beside this executable or in ../libexec/baton from there, else the same as
 * seen from this library's file, else in the folder that it is installed in. False: nowhere. */
bool guardian_find(char *ret, size_t ret_bytes);

#endif
