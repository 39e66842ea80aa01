/* What a node must not forget, in its data directory: one SQLite file, one fsync a write.
 *
 *   DATA/lock       held with flock(2) for as long as the process lives; its pid, for people
 *   DATA/raft.db    SQLite in WAL mode, synchronous=FULL; docs/disk-format.md lays it out
 *
 * A write is one transaction: all of it or nothing. Each row carries a CRC-32C of what it says, so
 * that a flipped bit is found when it is read; a torn tail of the write-ahead log is cut by SQLite.
 * Whatever does not add up is refused with BATON_ECORRUPT and the path, never half-used.
 *
 * After a failure nothing more is written, ever: what the disk holds is then unknown until it is
 * read again by a new start (an fsync that is tried again may claim success for what is lost).
 */
#ifndef PROVIDER_RAFT_STORAGE_H
#define PROVIDER_RAFT_STORAGE_H

#include "raft/raft.h"

struct storage; /* opaque; one thread */

/* What a directory is given when it is made, and keeps. */
struct storage_birth {
    raft_id id;
    uint64_t birth;       /* random, never 0 */
    uint64_t founders;    /* hash of the first configuration; 0: it joins a group that is there */
    uint64_t incarnation; /* of its first life */
};

struct storage_identity {
    const char *directory;     /* made if it is not there */
    const char *cluster;       /* must be the one that the directory was made for */
    const char *node;          /* likewise */
    struct storage_birth born; /* for a new directory */
};

/* What is remembered of another member, so that an emptied or restored directory is recognised. */
struct storage_peer {
    raft_id id;
    uint64_t birth;
    uint64_t incarnation; /* the latest that greeted */
    raft_term term;       /* it has stored this one */
    raft_index index;     /* it has stored the committed entries up to here */
};

/* What an open finds. Owned by the caller: storage_loaded_fini. */
struct storage_loaded {
    struct storage_birth born; /* its incarnation: one more than at the last open, and stored */
    uint64_t group;            /* of which it has been a member; 0: of none yet */
    struct storage_peer *peers;
    size_t peer_count;
    struct raft_hard_state hard;
    struct raft_snapshot snapshot;
    struct raft_entry *entries;
    size_t entry_count;
};

/* `first` is the configuration of a new directory, kept as the state at index 0.
 *   BATON_EBUSY     another process holds the directory (the message has its pid)
 *   BATON_EEXIST    the directory belongs to another cluster or node
 *   BATON_EUNSAFE   it is a copy of another one, or the group has refused it: the way out is said
 *   BATON_ECORRUPT  not a file of ours, or damaged
 *   BATON_EFULL, BATON_EIO, BATON_EAUTH, BATON_ENOMEM */
int storage_open(struct storage **ret, const struct storage_identity *identity,
                 const struct raft_configuration *first, struct storage_loaded *ret_loaded,
                 struct baton_error *reterr);
void storage_loaded_fini(struct storage_loaded *loaded);

/* Stores all of `write`, durably, before it returns. BATON_EFULL, BATON_EIO: see above. */
int storage_write(struct storage *storage, const struct raft_write *write,
                  struct baton_error *reterr);

/* Remembers the group of which this node has become a member. */
int storage_set_group(struct storage *storage, uint64_t group, struct baton_error *reterr);
/* Every later open fails with BATON_EUNSAFE and this text. */
int storage_cast_out(struct storage *storage, const char *text, struct baton_error *reterr);
/* Without an fsync of its own, which a leader would have to wait for: lost only if this machine
 * loses its power before the next one. BATON_EFULL: no room; nothing else has failed by that. */
int storage_remember(struct storage *storage, const struct storage_peer *peer,
                     struct baton_error *reterr);

/* Moves the write-ahead log into the file: bounds what a start has to read. */
int storage_checkpoint(struct storage *storage, struct baton_error *reterr);

void storage_close(struct storage *storage); /* NULL allowed */

#endif
