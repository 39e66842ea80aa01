/* A node's durable state, in its data directory: one SQLite file, one fsync per write.
 *
 *   DATA/lock       held with flock(2) for as long as the process lives; contains its process id
 *   DATA/raft.db    SQLite in WAL mode, synchronous=FULL; docs/disk-format.md describes it
 *
 * A write is one transaction. Each row has a CRC-32C of its content, so that a flipped bit is found
 * when it is read; SQLite cuts a torn tail of the write-ahead log, and a log with a gap before it
 * is refused. Inconsistent content is refused with BATON_ECORRUPT and the path, never used in part.
 *
 * After a failed write nothing more is written: the disk's content is unknown until a new start
 * reads it (a repeated fsync may report success for lost data).
 */
#ifndef PROVIDER_RAFT_STORAGE_H
#define PROVIDER_RAFT_STORAGE_H

#include "raft/raft.h"

struct storage; /* opaque; one thread */

/* Values that a directory gets when it is made, and keeps. */
struct storage_birth {
    raft_id id;
    uint64_t birth;       /* random, never 0 */
    uint64_t founders;    /* hash of the first configuration; 0: joins an existing group */
    uint64_t incarnation; /* of the first process */
};

struct storage_identity {
    const char *directory;     /* made if it does not exist */
    const char *cluster;       /* must be the directory's */
    const char *node;          /* must be the directory's */
    struct storage_birth born; /* for a new directory */
};

/* The end of each error of a damaged data directory. */
#define STORAGE_WAY_OUT                                                                            \
    "do not restore it: let this member leave the group, empty its data directory, and let it "    \
    "join anew"

/* Remembered about another member, so that an emptied or restored directory is recognised. */
struct storage_peer {
    raft_id id;
    uint64_t birth;
    uint64_t incarnation; /* the latest one that greeted */
    raft_term term;       /* the member has stored this term */
    raft_index index;     /* the member has stored the committed entries up to this one */
};

/* The content that an open found. Owned by the caller: storage_loaded_fini. */
struct storage_loaded {
    struct storage_birth born; /* .incarnation is one more than at the last open, and stored */
    uint64_t group;            /* the group that it belongs to; 0: none yet */
    struct storage_peer *peers;
    size_t peer_count;
    struct raft_hard_state hard;
    struct raft_snapshot snapshot;
    struct raft_entry *entries;
    size_t entry_count;
};

/* Whether an earlier start has stored something there. */
bool storage_is_there(const char *directory);

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

/* Stores the group that this node has become a member of. */
int storage_set_group(struct storage *storage, uint64_t group, struct baton_error *reterr);
/* Every later open fails with BATON_EUNSAFE and this text. */
int storage_cast_out(struct storage *storage, const char *text, struct baton_error *reterr);
/* Stores without an fsync, for which a leader would have to wait: lost only if this machine loses
 * power before the next one. BATON_EFULL: no room; all else is unaffected. */
int storage_remember(struct storage *storage, const struct storage_peer *peer,
                     struct baton_error *reterr);

/* Whether the write-ahead log should be moved into the file soon: it must not become longer than
 * its blocks on disk, else a write takes several times as long. */
bool storage_is_log_due(const struct storage *storage);
/* Moves the write-ahead log into the file, which bounds what a start has to read. Takes as long as
 * several writes: for a moment at which nobody waits for one. */
int storage_checkpoint(struct storage *storage, struct baton_error *reterr);

void storage_close(struct storage *storage); /* NULL allowed */

#endif
