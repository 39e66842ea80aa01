/* Parcels on their way: what waits to be sent or delivered, and what has arrived in parts.
 *
 *   publish ─▶ parcel ─▶ parcels of each connection ─part─part─▶ assembly ─▶ parcels to deliver
 *
 * One parcel is shared by all the lines that it waits in. Pure but for the allocator. Inside of
 * this folder only.
 */
#ifndef PROVIDER_RAFT_PARCELS_H
#define PROVIDER_RAFT_PARCELS_H

#include "provider/raft/part.h"

enum {
    PARCEL_OVERHEAD = 64, /* counted for each parcel that waits, besides its bytes */
};

/* ---- One parcel ------------------------------------------------------------------------------ */

struct parcel {
    unsigned users;
    uint64_t number;
    size_t bytes;
    uint8_t data[];
};

/* A message within the limits. The caller is its user. NULL: out of memory. */
struct parcel *parcel_of_message(uint64_t number, const char *channel, const void *data,
                                 size_t bytes);
/* The bytes of a parcel of a peer, copied. */
struct parcel *parcel_of_bytes(uint64_t number, const void *data, size_t bytes);
/* One user less; the last one frees it. NULL is nothing. */
void parcel_unref(struct parcel *parcel);

/* ---- A line of them -------------------------------------------------------------------------- */

struct waiting_parcel;

struct parcels {
    struct waiting_parcel *first, *last;
    size_t count;
    size_t bytes; /* of all, with their overhead */
    size_t bytes_max;
    size_t given; /* bytes of the first one that were given out in parts */
};

void parcels_init(struct parcels *parcels, size_t bytes_max);
/* Drops all; returns how many there were. */
size_t parcels_end(struct parcels *parcels);
/* Appends, as one more user. False: no room, or no memory. */
bool parcels_add(struct parcels *parcels, struct parcel *parcel);
/* Takes the first one out; the caller becomes its user. NULL: there is none. */
struct parcel *parcels_take(struct parcels *parcels);

/* The next part of the first parcel, borrowed until the line changes. False: none waits. */
bool parcels_next_part(const struct parcels *parcels, struct part *ret);
/* That part was sent; after its last part the parcel is dropped. */
void parcels_part_sent(struct parcels *parcels, const struct part *part);

/* ---- Assembling ------------------------------------------------------------------------------ */

/* Of one connection, on which parcels come one after the other, and their parts in order. */
struct assembly {
    uint64_t parcel; /* of which parts have come; 0: of none */
    size_t parcel_bytes;
    struct buffer received;
};

void assembly_init(struct assembly *assembly);
void assembly_fini(struct assembly *assembly);
/* Takes the next part. True: the parcel is whole; *ret_data is borrowed until assembly_clear(). A
 * part that does not continue what has come is dropped, and so is what has come; without memory
 * too. The memory grows with the bytes that come, never with what a part promises. */
bool assembly_take(struct assembly *assembly, const struct part *part, const void **ret_data);
/* Forgets what has come, and keeps little memory. */
void assembly_clear(struct assembly *assembly);

#endif
