/* Scripts, each of which runs on the server as one operation. Times are the server's, in
 * milliseconds.
 *
 * An election NAME has a lock and a heartbeat, whose keys depend on the layout
 * (provider/redis/layout.h); NAME:master_process, NAME:processes, NAME:channels and NAME:slaves, as
 * in the seed; and keys of our own, which other programs need not know: NAME:epoch (a hash),
 * NAME:processes:expiry (a sorted set, since a server may lack lifetimes for the fields of a hash)
 * and the channel NAME:wake.
 */
#ifndef PROVIDER_REDIS_SCRIPTS_H
#define PROVIDER_REDIS_SCRIPTS_H

#include "net/redis/redis.h"

enum script_name {
    SCRIPT_TAKE,     /* lock heartbeat epoch wake | id ttl min-epoch heartbeat-ttl beats
                        wanted-epoch ("0": the time) quiet (no notice is published) max-lease
                        the-longest-max-lease-known the-interval-of-a-seed's-peer ("0": its
                        renewal is one script) */
    SCRIPT_LOOK,     /* lock epoch | beats */
    SCRIPT_RENEW,    /* lock heartbeat epoch | id ttl epoch history ("": not known) heartbeat-ttl
                        beats max-lease */
    SCRIPT_RAISE,    /* lock epoch | id epoch new-epoch */
    SCRIPT_RELEASE,  /* lock heartbeat epoch wake | id epoch notice ("": none) */
    SCRIPT_SWEEP,    /* | cursor pattern heartbeat-ttl */
    SCRIPT_REGISTER, /* processes expiry channels wake slaves master_process, of each election | id
                        ttl channel role "again" (a heartbeat: what has not changed is left) way
                        ("": to be asked) json slave-json-of-each; gives how their fields end, and
                        of each election how many there are and how many of them have a lifetime in
                        `expiry` */
    SCRIPT_LEAVE,    /* processes expiry channels wake slaves | id */
    SCRIPT_FORGET,   /* processes expiry channels wake slaves | id json; of a peer that has no
                        lifetime in `expiry` and whose entry is still the same */
    SCRIPT_MEMBERS,  /* processes expiry channels wake slaves; gives ids and JSON in turns, nil for
                        what is too large */
    SCRIPT_PUT,      /* key counter index changes | name data has-data revision lifetime */
    SCRIPT_GET,      /* key */
    SCRIPT_LIST,     /* index | prefix key-prefix */
    SCRIPT_COUNT
};

/* The answers of TAKE, LOOK and RENEW begin with one of these. Then comes the epoch, what is left
 * of the lock, and for HELD the holder's id, its max-lease (0: not known) and, where `beats` (what
 * stands before the id in the key of a heartbeat) is not "", how many ms old its heartbeat is, or
 * "none". GRANTED may name what stood where the epoch is kept and is none. */
enum { ANSWER_HELD = 0, ANSWER_GRANTED = 1, ANSWER_NOT_YET = 2, ANSWER_FREE = 3 };

/* Fills in SCRIPT_COUNT scripts, for redis_options. */
void scripts_fill(struct redis_script *ret);

#endif
